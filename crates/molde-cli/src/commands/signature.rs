//! `molde signature`: what the model is shown of a schema, and what it costs.

use std::io::Write;

use molde::{PromptTemplate, SignatureLimits, schema_without_titles};
use serde_json::{Value, json};

use crate::args;
use crate::documents::{read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::tokenizer;

/// Prints the signature or the schema without titles, and the tokens of both.
pub(crate) fn run(args: &args::Signature, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let schema = read_argument(&args.schema)?;
    // What cannot be enforced is not worth showing.
    molde::Contract::from_schema(&schema).map_err(|source| Failure::Schema {
        path: args.schema.clone(),
        source: Box::new(source),
    })?;
    let limits = SignatureLimits { descriptions: args.descriptions, ..SignatureLimits::default() };
    let mut template = PromptTemplate::new(args.language.into())
        .signature_limits(limits)
        .field_notes(!args.no_notes);
    if let Some(text) = args.instructions.as_deref().map(text_or_file).transpose()? {
        template = template.instructions(text);
    }
    if let Some(text) = args.conventions.as_deref().map(text_or_file).transpose()? {
        template = template.conventions(text);
    }
    if let Some(text) = args.no_data.as_deref().map(text_or_file).transpose()? {
        template = template.no_data(text);
    }
    let full = schema_without_titles(&schema);
    let short = template.signature(&schema);
    let message = template.system_message(&schema);
    let tokens = if args.count {
        let loaded = tokenizer::load(args.tokenizer.as_deref(), args.model.as_deref(), interrupts)?;
        Some(tokenizer::counts(&loaded, [&short, &full, &message])?)
    } else {
        None
    };
    let mut output = std::io::stdout().lock();
    if args.json {
        let counts = tokens.map(|[signature, schema, system_message]| {
            json!({"signature": signature, "schema": schema, "system_message": system_message})
        });
        let line = json!({
            "signature": short, "schema": full, "system_message": message,
            "tokens": counts.unwrap_or(Value::Null),
        });
        writeln!(output, "{line}")?;
    } else {
        writeln!(output, "{}", if args.full { &full } else { &short })?;
        if let Some([signature, schema, system_message]) = tokens {
            writeln!(output, "signature {signature} tokens")?;
            writeln!(output, "schema {schema} tokens")?;
            writeln!(output, "system message {system_message} tokens")?;
        }
    }
    output.flush()?;
    Ok(Exit::Success)
}
