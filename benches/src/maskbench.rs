//! Time to the first mask, and time between masks, over MaskBench.
//!
//! A schema is compiled from its text and asked for its first mask: TTFM. For each token of each
//! instance, the mask (with a look-up of that token and of 64 fixed ids) and accepting the token
//! are TBM. Three passes, each from a fresh compile; a time is the least of its three, so that
//! preemption does not count and a cold mask does. At the end of an instance completeness is
//! checked.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use molde_schema::{CompileOptions, CompiledSchema, Order, Style};
use molde_vocab::TokenId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::data::{Case, for_each_case};
use crate::distribution::{Distribution, Times};
use crate::engine::{Engine, Refusal, Session};
use crate::molde::Molde;
use crate::peer::Llguidance;
use crate::tokenizer::BenchTokenizer;

/// A schema that takes longer counts as refused.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Arguments {
    /// The `tokenizer.json`, gzipped or not.
    #[arg(long)]
    tokenizer: PathBuf,
    /// MaskBench files (`.jsonl` or `.jsonl.gz`).
    #[arg(long, required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Which engines run.
    #[arg(long, value_delimiter = ',', default_value = "molde,llguidance")]
    engines: Vec<EngineName>,
    /// Whitespace of the texts.
    #[arg(long, value_enum, default_value = "spaced")]
    style: StyleName,
    /// Only schemas whose id contains this.
    #[arg(long)]
    only: Option<String>,
    /// Passes over each schema.
    #[arg(long, default_value_t = 3)]
    passes: usize,
    /// Leaves out the column of order `any`.
    #[arg(long)]
    no_any_order: bool,
    /// Prints the slowest schemas of molde.
    #[arg(long, default_value_t = 0)]
    slowest: usize,
    /// Writes the results as one JSON object.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes one JSON line for each schema that an engine does not pass.
    #[arg(long)]
    failures: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Molde,
    Llguidance,
}

#[derive(Clone, Copy, ValueEnum)]
enum StyleName {
    Spaced,
    Compact,
}

/// What became of the schemas.
#[derive(Default, Clone, Serialize)]
struct Counts {
    schemas: usize,
    pass: usize,
    refused: usize,
    valid_rejected: usize,
    invalid_accepted: usize,
}

/// What one engine did with one schema.
enum Verdict {
    Refused(String),
    Checked { rejected: Option<String>, accepted: Option<String> },
}

/// All that is known of one engine.
#[derive(Default)]
struct Tally {
    counts: Counts,
    ttfm: Times,
    tbm: Times,
}

/// An instance as an engine reads it.
struct Text {
    valid: bool,
    tokens: Vec<TokenId>,
}

/// The times of one schema, in nanoseconds: the least over the passes.
struct Measured {
    ttfm: u32,
    tbm: Vec<u32>,
    /// By instance: accepted to the end and complete, or the index of the first token that is not.
    accepted: Vec<Result<(), usize>>,
}

impl Tally {
    fn count(&mut self, verdict: &Verdict) {
        self.counts.schemas += 1;
        match verdict {
            Verdict::Refused(_) => self.counts.refused += 1,
            Verdict::Checked { rejected, accepted } => {
                self.counts.valid_rejected += usize::from(rejected.is_some());
                self.counts.invalid_accepted += usize::from(accepted.is_some());
                self.counts.pass += usize::from(rejected.is_none() && accepted.is_none());
            }
        }
    }
}

/// Fixed ids all over the vocabulary, to look up in every mask.
fn fixed_ids(vocabulary_len: usize) -> [TokenId; 64] {
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    std::array::from_fn(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocabulary_len as u64) as TokenId
    })
}

/// One pass: a fresh compile, the first mask, and all instances.
fn pass<E: Engine>(
    engine: &E,
    schema: &str,
    texts: &[Text],
    ids: &[TokenId; 64],
) -> Result<Measured, Refusal> {
    let first = texts.first().and_then(|text| text.tokens.first().copied()).unwrap_or(0);
    let begin = Instant::now();
    let mut session = engine.compile(schema)?;
    let look_up = session.look_up(first, ids);
    let ttfm = nanoseconds(begin);
    std::hint::black_box(look_up);
    let mut measured = Measured { ttfm, tbm: Vec::new(), accepted: Vec::new() };
    for text in texts {
        session.reset();
        let mut result = Ok(());
        for (index, &token) in text.tokens.iter().enumerate() {
            let start = Instant::now();
            let found = session.look_up(token, ids);
            let goes_on =
                std::hint::black_box(found).is_some_and(|found| found.0) && session.accept(token);
            measured.tbm.push(nanoseconds(start));
            if !goes_on {
                result = Err(index);
                break;
            }
        }
        if result.is_ok() && !session.is_complete() {
            result = Err(text.tokens.len());
        }
        measured.accepted.push(result);
        if begin.elapsed() > TIMEOUT {
            return Err(Refusal::Refused("timeout".to_owned()));
        }
    }
    Ok(measured)
}

fn nanoseconds(begin: Instant) -> u32 {
    u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

/// Merges the passes: the least of each time. The instances go alike in each.
fn merge(best: &mut Option<Result<Measured, Refusal>>, new: Result<Measured, Refusal>) {
    match (best.as_mut(), new) {
        (None, new) => *best = Some(new),
        (Some(Ok(best)), Ok(new)) => {
            best.ttfm = best.ttfm.min(new.ttfm);
            for (best, new) in best.tbm.iter_mut().zip(&new.tbm) {
                *best = (*best).min(*new);
            }
        }
        (Some(Ok(_)), Err(refusal)) => *best = Some(Err(refusal)),
        (Some(Err(_)), _) => {}
    }
}

/// What the results of the instances say.
fn verdict(result: &Result<Measured, Refusal>, texts: &[Text]) -> Verdict {
    match result {
        Err(Refusal::Refused(reason)) => Verdict::Refused(reason.clone()),
        Err(Refusal::Unsatisfiable) => {
            let valid = texts.iter().position(|text| text.valid);
            let rejected = valid.map(|index| format!("instance {index}: unsatisfiable"));
            Verdict::Checked { rejected, accepted: None }
        }
        Ok(measured) => {
            let mut rejected = None;
            let mut accepted = None;
            for (index, (text, result)) in texts.iter().zip(&measured.accepted).enumerate() {
                match result {
                    Err(token) if text.valid => {
                        let of = text.tokens.len();
                        rejected.get_or_insert(format!("instance {index}: token {token} of {of}"));
                    }
                    Ok(()) if !text.valid => {
                        accepted.get_or_insert(format!("instance {index}"));
                    }
                    _ => {}
                }
            }
            Verdict::Checked { rejected, accepted }
        }
    }
}

/// Everything that is shared by all schemas.
struct Bench<'a> {
    tokenizer: &'a BenchTokenizer,
    /// Accepts everything, as written: to write what has no schema of its own.
    plain: CompiledSchema,
    ids: [TokenId; 64],
    passes: usize,
    failures: Option<BufWriter<File>>,
}

impl Bench<'_> {
    /// The instances of a case, each rewritten by `schema`.
    fn texts(&self, case: &Case, schema: Option<&CompiledSchema>) -> anyhow::Result<Vec<Text>> {
        let schema = schema.unwrap_or(&self.plain);
        let texts = case.tests.iter().map(|test| {
            let text = schema.canonical_order(test.data.get())?;
            Ok(Text { valid: test.valid, tokens: self.tokenizer.encode(&text)? })
        });
        texts.collect()
    }

    fn note(&mut self, case: &Case, engine: &str, verdict: &Verdict) -> anyhow::Result<()> {
        let Some(out) = &mut self.failures else { return Ok(()) };
        let line = match verdict {
            Verdict::Refused(reason) => json!({ "refused": reason }),
            Verdict::Checked { rejected: None, accepted: None } => return Ok(()),
            Verdict::Checked { rejected, accepted } => {
                json!({ "valid_rejected": rejected, "invalid_accepted": accepted })
            }
        };
        writeln!(out, "{}", json!({ "id": case.id, "engine": engine, "what": line }))?;
        Ok(())
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let tokenizer = BenchTokenizer::load(&arguments.tokenizer)?;
    println!("vocabulary, trie and classes: {:.3} s", tokenizer.load.as_secs_f64());
    let style = match arguments.style {
        StyleName::Spaced => Style::Spaced,
        StyleName::Compact => Style::Compact,
    };
    let with = |name| arguments.engines.contains(&name);
    let molde =
        with(EngineName::Molde).then(|| Molde::new(&tokenizer.vocabulary, style, Order::Schema));
    let any_order = (molde.is_some() && !arguments.no_any_order)
        .then(|| Molde::new(&tokenizer.vocabulary, style, Order::Any));
    let begin = Instant::now();
    let peer = if with(EngineName::Llguidance) {
        let peer = Llguidance::new(&tokenizer, style)?;
        println!("llguidance's trie and slices: {:.3} s", begin.elapsed().as_secs_f64());
        Some(peer)
    } else {
        None
    };

    let plain = CompileOptions { style, order: Order::Any, ..CompileOptions::default() };
    let mut bench = Bench {
        tokenizer: &tokenizer,
        plain: CompiledSchema::compile("true", &plain)?,
        ids: fixed_ids(tokenizer.vocabulary.len()),
        passes: arguments.passes.max(1),
        failures: match &arguments.failures {
            Some(path) => Some(BufWriter::new(File::create(path)?)),
            None => None,
        },
    };
    let (mut ours, mut theirs, mut free) = (Tally::default(), Tally::default(), Tally::default());
    let mut slow: Vec<(u32, u32, String)> = Vec::new();
    for_each_case(&arguments.data, |case| {
        if arguments.only.as_ref().is_some_and(|only| !case.id.contains(only.as_str())) {
            return Ok(());
        }
        let schema = case.schema.get();
        let as_written = bench.texts(&case, None)?;
        let in_order = match &molde {
            Some(engine) => {
                let compiled = CompiledSchema::compile(schema, &engine.options).ok();
                bench.texts(&case, compiled.as_ref())?
            }
            None => Vec::new(),
        };
        let (mut own, mut other) = (None, None);
        for _ in 0..bench.passes {
            if let Some(engine) = &molde {
                merge(&mut own, pass(engine, schema, &in_order, &bench.ids));
            }
            if let Some(engine) = &peer {
                merge(&mut other, pass(engine, schema, &as_written, &bench.ids));
            }
        }
        if let Some(result) = own {
            let verdict = verdict(&result, &in_order);
            ours.count(&verdict);
            bench.note(&case, "molde", &verdict)?;
            if let Ok(measured) = result {
                let worst = measured.tbm.iter().copied().max().unwrap_or(0);
                slow.push((measured.ttfm, worst, case.id.clone()));
                ours.ttfm.extend([measured.ttfm]);
                ours.tbm.extend(measured.tbm);
            }
        }
        if let Some(result) = other {
            let verdict = verdict(&result, &as_written);
            theirs.count(&verdict);
            bench.note(&case, "llguidance", &verdict)?;
            if let Ok(measured) = result {
                theirs.ttfm.extend([measured.ttfm]);
                theirs.tbm.extend(measured.tbm);
            }
        }
        if let Some(engine) = &any_order {
            let result = pass(engine, schema, &as_written, &bench.ids);
            let verdict = verdict(&result, &as_written);
            free.count(&verdict);
            bench.note(&case, "molde, order any", &verdict)?;
        }
        Ok(())
    })?;
    if let Some(out) = &mut bench.failures {
        out.flush()?;
    }

    let peak = crate::memory::peak_bytes();
    let mut engines = serde_json::Map::new();
    let mut molde_times = None;
    if molde.is_some() {
        let any = any_order.is_some().then_some(&free.counts);
        let times = (ours.tbm.distribution(), ours.ttfm.distribution());
        print_engine("molde", &ours.counts, &times.0, &times.1);
        if let Some(any) = any {
            print_counts("molde, order any", any);
        }
        let mut value = summary(&ours.counts, &times.0, &times.1);
        value["any_order"] = json!(any);
        engines.insert("molde".to_owned(), value);
        molde_times = Some(times);
        print_slowest(&mut slow, arguments.slowest);
    }
    let mut ratios = Value::Null;
    if peer.is_some() {
        let (tbm, ttfm) = (theirs.tbm.distribution(), theirs.ttfm.distribution());
        print_engine("llguidance", &theirs.counts, &tbm, &ttfm);
        engines.insert("llguidance".to_owned(), summary(&theirs.counts, &tbm, &ttfm));
        if let Some((own_tbm, own_ttfm)) = &molde_times {
            println!("molde / llguidance");
            ratios = json!({
                "tbm": print_ratios("TBM", own_tbm, &tbm),
                "ttfm": print_ratios("TTFM", own_ttfm, &ttfm),
            });
        }
    }
    if let Some(peak) = peak {
        println!("peak memory of the process: {} MiB", peak >> 20);
    }
    if let Some(path) = &arguments.json {
        let result = json!({
            "engines": engines,
            "ratios": ratios,
            "peak_memory_bytes": peak,
            "vocabulary_load_seconds": tokenizer.load.as_secs_f64(),
        });
        std::fs::write(path, format!("{result:#}\n"))?;
    }
    Ok(())
}

fn summary(counts: &Counts, tbm: &Distribution, ttfm: &Distribution) -> Value {
    let mut value = json!(counts);
    value["tbm_us"] = json!(tbm);
    value["ttfm_us"] = json!(ttfm);
    value
}

fn print_counts(name: &str, counts: &Counts) {
    let percent = 100.0 * counts.pass as f64 / counts.schemas.max(1) as f64;
    println!(
        "{name}: {} schemas, {} pass ({percent:.1} %), {} refused, {} valid rejected, {} invalid \
         accepted",
        counts.schemas, counts.pass, counts.refused, counts.valid_rejected, counts.invalid_accepted
    );
}

fn print_engine(name: &str, counts: &Counts, tbm: &Distribution, ttfm: &Distribution) {
    print_counts(name, counts);
    for (name, times) in [("TBM", tbm), ("TTFM", ttfm)] {
        print!("  {name:<4} us, n {:>9}:", times.count);
        for (column, value) in times.columns() {
            print!("  {column} {value:.1}");
        }
        println!();
    }
}

fn print_ratios(name: &str, own: &Distribution, other: &Distribution) -> Value {
    let mut ratios = serde_json::Map::new();
    print!("  {name:<4}:");
    for ((column, own), (_, other)) in own.columns().into_iter().zip(other.columns()) {
        let ratio = own / other.max(f64::MIN_POSITIVE);
        print!("  {column} {ratio:.3}");
        ratios.insert(column.to_owned(), json!(ratio));
    }
    println!();
    Value::Object(ratios)
}

fn print_slowest(slow: &mut [(u32, u32, String)], count: usize) {
    for (what, by_mask) in [("first mask", false), ("mask", true)] {
        slow.sort_by_key(|&(ttfm, tbm, _)| std::cmp::Reverse(if by_mask { tbm } else { ttfm }));
        for (ttfm, tbm, id) in slow.iter().take(count) {
            let time = if by_mask { tbm } else { ttfm };
            println!("  slowest {what}: {:.1} us  {id}", f64::from(*time) / 1000.0);
        }
    }
}
