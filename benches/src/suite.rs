//! The official JSON Schema test suite, against a baseline that may only improve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use molde_schema::{CompileOptions, Formats, Order, Registry, Style};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::{Engine, Refusal, Session};
use crate::molde::{Molde, MoldeSession};
use crate::tokenizer::BenchTokenizer;

const DRAFTS: [&str; 2] = ["draft2020-12", "draft7"];

#[derive(Args)]
pub(crate) struct Arguments {
    /// The `tokenizer.json`, gzipped or not.
    #[arg(long)]
    tokenizer: PathBuf,
    /// The folder of the suite, with `tests/` in it.
    #[arg(long)]
    data: PathBuf,
    /// The committed counts by file.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline/suite.json"))]
    baseline: PathBuf,
    /// Writes the baseline instead of comparing with it.
    #[arg(long)]
    update_baseline: bool,
    /// Prints every test that goes wrong.
    #[arg(long)]
    verbose: bool,
    /// Writes the totals as one JSON object.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Box<RawValue>,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    description: String,
    data: Box<RawValue>,
    valid: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    tests: usize,
    pass: usize,
    refused: usize,
    false_negative: usize,
    false_positive: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.pass += other.pass;
        self.refused += other.refused;
        self.false_negative += other.false_negative;
        self.false_positive += other.false_positive;
    }
}

/// Counts by draft, kind and file.
type ByFile = BTreeMap<String, BTreeMap<String, BTreeMap<String, Counts>>>;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let tokenizer = BenchTokenizer::load(&arguments.tokenizer)?;
    let mut by_file = ByFile::new();
    for draft in DRAFTS {
        let root = arguments.data.join("tests").join(draft);
        for (kind, folder, formats) in [
            ("mandatory", root.clone(), Formats::Annotate),
            ("optional", root.join("optional"), Formats::Annotate),
            ("format", root.join("optional/format"), Formats::Assert),
        ] {
            let mut engine = Molde::new(&tokenizer.vocabulary, Style::Spaced, Order::Schema);
            engine.options = CompileOptions { formats, ..engine.options };
            let remotes = arguments.data.join("remotes");
            add_remotes(&remotes, &remotes, &mut engine.registry)?;
            let files = by_file.entry(draft.to_owned()).or_default();
            let files = files.entry(kind.to_owned()).or_default();
            for path in json_files(&folder)? {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let counts = run_file(&path, draft, &engine, &tokenizer, arguments.verbose)?;
                files.insert(name, counts);
            }
        }
    }
    let mut totals: BTreeMap<&str, BTreeMap<&str, Counts>> = BTreeMap::new();
    for (draft, kinds) in &by_file {
        for (kind, files) in kinds {
            let total = totals.entry(draft).or_default().entry(kind).or_default();
            for counts in files.values() {
                total.add(counts);
            }
            println!(
                "{draft} {kind}: {} tests, {} pass ({:.1} %), {} refused, {} false negative, {} \
                 false positive",
                total.tests,
                total.pass,
                100.0 * total.pass as f64 / total.tests.max(1) as f64,
                total.refused,
                total.false_negative,
                total.false_positive
            );
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, format!("{:#}\n", serde_json::to_value(&totals)?))?;
    }
    if arguments.update_baseline {
        if let Some(folder) = arguments.baseline.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&arguments.baseline, format!("{:#}\n", serde_json::to_value(&by_file)?))?;
        return Ok(());
    }
    let text = std::fs::read_to_string(&arguments.baseline)
        .with_context(|| format!("cannot read {}", arguments.baseline.display()))?;
    compare(&by_file, &serde_json::from_str(&text)?)
}

/// Fails where a file passes less or accepts more that is invalid than the baseline says.
fn compare(now: &ByFile, baseline: &ByFile) -> anyhow::Result<()> {
    let mut worse = Vec::new();
    for (draft, kinds) in baseline {
        for (kind, files) in kinds {
            for (file, before) in files {
                let counts = now.get(draft).and_then(|x| x.get(kind)).and_then(|x| x.get(file));
                let counts = counts.copied().unwrap_or_default();
                if counts.pass < before.pass
                    || counts.false_positive > before.false_positive
                    || counts.false_negative > before.false_negative
                {
                    worse.push(format!("{draft} {kind} {file}: {before:?} became {counts:?}"));
                }
            }
        }
    }
    anyhow::ensure!(worse.is_empty(), "worse than the baseline:\n{}", worse.join("\n"));
    Ok(())
}

/// Registers the documents below `folder` under the addresses that the suite gives them.
fn add_remotes(root: &Path, folder: &Path, registry: &mut Registry) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_remotes(root, &path, registry)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            let uri = format!("http://localhost:1234/{}", parts.join("/"));
            registry.insert(&uri, std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn json_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn run_file(
    path: &Path,
    draft: &str,
    engine: &Molde,
    tokenizer: &BenchTokenizer,
    verbose: bool,
) -> anyhow::Result<Counts> {
    let text = std::fs::read_to_string(path)?;
    let groups: Vec<Group> = serde_json::from_str(&text)
        .with_context(|| format!("{} is no file of the suite", path.display()))?;
    let mut counts = Counts::default();
    for group in groups {
        counts.tests += group.tests.len();
        let schema = in_draft(group.schema.get(), draft);
        let mut session = match engine.compile(&schema) {
            Ok(session) => session,
            Err(Refusal::Unsatisfiable) => {
                let valid = group.tests.iter().filter(|test| test.valid).count();
                counts.pass += group.tests.len() - valid;
                counts.false_negative += valid;
                continue;
            }
            Err(Refusal::Refused(reason)) => {
                counts.refused += group.tests.len();
                if verbose {
                    println!("refused {}: {}: {reason}", path.display(), group.description);
                }
                continue;
            }
        };
        for test in &group.tests {
            let accepted = accepts(&mut session, test.data.get(), tokenizer)?;
            if accepted == test.valid {
                counts.pass += 1;
            } else {
                counts.false_negative += usize::from(test.valid);
                counts.false_positive += usize::from(accepted);
                if verbose {
                    let what = if accepted { "accepted" } else { "rejected" };
                    let (group, test) = (&group.description, &test.description);
                    println!("{what} {}: {group}: {test}", path.display());
                }
            }
        }
    }
    Ok(counts)
}

/// The suite's older drafts leave `$schema` out.
fn in_draft(schema: &str, draft: &str) -> String {
    let rest = schema.trim_start().strip_prefix('{');
    match rest {
        Some(rest) if draft == "draft7" && !schema.contains("\"$schema\"") => {
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!("{{\"$schema\": \"http://json-schema.org/draft-07/schema#\"{comma}{rest}")
        }
        _ => schema.to_owned(),
    }
}

fn accepts(
    session: &mut MoldeSession,
    data: &str,
    tokenizer: &BenchTokenizer,
) -> anyhow::Result<bool> {
    let text = session.schema.canonical_order(data)?;
    session.reset();
    for token in tokenizer.encode(&text)? {
        let found = session.look_up(token, &[0; 64]);
        if !found.is_some_and(|found| found.0) || !session.accept(token) {
            return Ok(false);
        }
    }
    Ok(session.is_complete())
}
