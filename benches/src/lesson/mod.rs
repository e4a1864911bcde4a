//! The benchmark of extraction: what constraining buys, on the same documents, by every method.

pub(crate) mod documents;
mod figures;
mod page;
mod record;
mod run;
mod stats;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

pub(crate) use documents::Random;
use record::Record;
pub(crate) use run::{SCHEMA, load_engine, template};

/// What the lesson command is asked to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Documents with truth, one JSON object a line: `{"id","text","truth":{…}}` [default: generated]
    #[arg(long, value_name = "FILE")]
    documents: Option<PathBuf>,
    /// Documents to generate
    #[arg(long, default_value_t = 20, conflicts_with = "documents")]
    count: usize,
    /// Seed of the generated documents
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A model of the catalogue, a GGUF file or a folder [default: what is cached]
    #[arg(long, value_name = "ID|PATH")]
    model: Option<String>,
    /// Hold all weights as 32-bit floats and calculate exactly
    #[arg(long)]
    exact: bool,
    /// Tokens of one answer
    #[arg(long, default_value_t = 64)]
    max_tokens: usize,
    /// Methods to run, between commas [default: all]
    #[arg(long, value_delimiter = ',')]
    methods: Option<Vec<String>>,
    /// Where the record of the run is written
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Folder for the figures (SVG) and the page (HTML)
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Makes the report again from the record of a run; runs no model
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["documents", "model", "json"])]
    from: Option<PathBuf>,
    /// Writes the generated documents as JSON lines and ends
    #[arg(long, value_name = "FILE", conflicts_with = "documents")]
    write_documents: Option<PathBuf>,
}

/// Runs every method on every document, and says what came out.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let record = if let Some(path) = &arguments.from {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is no record of a run", path.display()))?
    } else {
        let documents = match &arguments.documents {
            Some(path) => documents::read(path)?,
            None => documents::generate(arguments.count, arguments.seed),
        };
        ensure!(!documents.is_empty(), "there are no documents: --count must be at least 1");
        if let Some(path) = &arguments.write_documents {
            let lines: Result<Vec<String>, _> =
                documents.iter().map(serde_json::to_string).collect();
            return write(path, &(lines?.join("\n") + "\n"));
        }
        run::run(arguments, &documents)?
    };
    println!("{}", record.table());
    if let Some(path) = &arguments.json {
        write(path, &(serde_json::to_string_pretty(&record)? + "\n"))?;
    }
    if let Some(folder) = &arguments.report {
        report(&record, folder)?;
    }
    Ok(())
}

fn report(record: &Record, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let figures = figures::all(record);
    for figure in &figures {
        write(&folder.join(format!("{}.svg", figure.name)), &figure.svg)?;
    }
    write(&folder.join("report.html"), &page::page(record, &figures))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
