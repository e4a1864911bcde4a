//! `molde extract`: documents into values.

use std::time::Instant;

use molde::{Contract, Control, End, Extractor, MoldeError, Overflow};

use crate::args::Extract;
use crate::documents::{Source, read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::output::{DocumentFailure, Results};
use crate::progress::{documents_bar, say};

/// Reads every document. The schema is checked first, and the model is loaded when the first
/// document needs it.
pub(crate) fn run(args: &Extract, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let schema = read_argument(&args.schema)?;
    let contract = Contract::from_schema(&schema).map_err(|source| Failure::Schema {
        path: args.schema.clone(),
        source: Box::new(source),
    })?;
    let instructions = args.instructions.as_deref().map(text_or_file).transpose()?;
    let conventions = args.conventions.as_deref().map(text_or_file).transpose()?;
    let mut extractor = None;
    let make = || -> Result<Extractor, Failure> {
        let engine = model::load(&args.model, interrupts)?;
        let mut builder = engine
            .extractor_with(contract.clone())
            .language(args.language.into())
            .max_tokens(args.max_tokens);
        if let Some(text) = &instructions {
            builder = builder.instructions(text);
        }
        if let Some(text) = &conventions {
            builder = builder.conventions(text);
        }
        if let Some(overlap_tokens) = args.windows {
            builder = builder.overflow(Overflow::Windows { overlap_tokens });
        }
        Ok(builder.build()?)
    };
    let sources = Source::all(&args.files);
    run_all(&sources, interrupts, |text| {
        if text.trim().is_empty() {
            return Ok(Err(document_failure(&MoldeError::EmptyDocument)));
        }
        let extractor = match &extractor {
            Some(extractor) => extractor,
            None => extractor.insert(make()?),
        };
        one(extractor, text, args, interrupts)
    })
}

/// Reads the documents in order and writes their results; `extract` returns the value, or why
/// this document has none, or why the command cannot go on.
fn run_all(
    sources: &[Source],
    interrupts: &Interrupts,
    mut extract: impl FnMut(&str) -> Result<Result<String, DocumentFailure>, Failure>,
) -> Result<Exit, Failure> {
    let start = Instant::now();
    let several = sources.len() > 1;
    let mut results = Results::new(std::io::stdout().lock(), std::io::stderr(), several);
    let bar = documents_bar(sources.len());
    for source in sources {
        interrupts.check()?;
        let result = match source.read() {
            Ok(text) => extract(&text)?,
            Err(error) => Err(DocumentFailure { kind: error.kind(), message: error.to_string() }),
        };
        bar.suspend(|| results.write(&source.id(), &result))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let exit = results.exit();
    if several {
        let seconds = start.elapsed().as_secs_f64();
        say(&format!("{} documents in {seconds:.1} s{}", sources.len(), results.summary()));
    }
    Ok(exit)
}

fn one(
    extractor: &Extractor,
    text: &str,
    args: &Extract,
    interrupts: &Interrupts,
) -> Result<Result<String, DocumentFailure>, Failure> {
    let mut control = Control::new().cancel(&interrupts.work);
    if let Some(deadline) = args.deadline {
        control = control.timeout(deadline);
    }
    let outcome = match extractor.extract_with(text, &control, |_| {}) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(Err(document_failure(&error))),
    };
    if outcome.end == End::Cancelled {
        return Err(Failure::Interrupted);
    }
    if outcome.undecided > 0 {
        say(&format!(
            "{} tokens were masked out because their effect could not be decided within the limits",
            outcome.undecided
        ));
    }
    let value =
        if args.accept_closed { outcome.into_value_or_closed() } else { outcome.into_value() };
    Ok(value.map(molde::RawJson::into_string).map_err(|error| document_failure(&error)))
}

fn document_failure(error: &MoldeError) -> DocumentFailure {
    DocumentFailure { kind: error.kind(), message: error.to_string() }
}
