//! `molde explain`: the most likely next tokens, and which of them the mask lets through.

use std::io::Write;

use molde::Contract;
use serde_json::json;

use crate::args;
use crate::documents::{read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::progress::printable;

/// Characters of the longest bar.
const BAR: f64 = 30.0;

/// Prints one line for each token.
pub(crate) fn run(args: &args::Explain, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let schema = read_argument(&args.schema)?;
    let contract =
        Contract::from_schema(&molde::close_objects(&schema).text).map_err(|source| {
            Failure::Schema { path: args.schema.clone(), source: Box::new(source) }
        })?;
    let document = read_argument(&args.document)?;
    if document.trim().is_empty() {
        return Err(molde::MoldeError::EmptyDocument.into());
    }
    let engine = model::load(&args.model, interrupts)?;
    let mut builder = engine.extractor_with(contract).language(args.language.into());
    if let Some(text) = args.instructions.as_deref().map(text_or_file).transpose()? {
        builder = builder.instructions(text);
    }
    if let Some(text) = args.conventions.as_deref().map(text_or_file).transpose()? {
        builder = builder.conventions(text);
    }
    let view = builder.build()?.explain(&document, &args.prefix, args.count)?;
    let mut output = std::io::stdout().lock();
    if args.json {
        writeln!(output, "{}", json!(view))?;
    } else {
        for token in &view.tokens {
            let verdict = if token.allowed { "allowed" } else { "masked out" };
            let bar = "#".repeat((token.probability * BAR).round() as usize);
            writeln!(
                output,
                "{:>7}  {:16} {:5.1} %  {verdict:10}  {bar}",
                token.id,
                printable(&format!("{:?}", token.text)),
                100.0 * token.probability,
            )?;
        }
        writeln!(
            output,
            "the mask lets {} tokens through and removes {:.1} % of the probability",
            view.allowed_tokens,
            100.0 * view.removed
        )?;
    }
    output.flush()?;
    Ok(Exit::Success)
}
