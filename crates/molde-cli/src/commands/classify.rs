//! `molde classify`: texts into labels, with the probability of every label.

use std::io::Write;

use molde::{Classifier, Control, MoldeError};
use serde_json::{Map, Value, json};

use crate::args;
use crate::documents::{Source, read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::labels;
use crate::model;
use crate::progress::{documents_bar, say};
use crate::records::{Item, Reading};

/// Prints one JSON line for each text, in order.
pub(crate) fn run(args: &args::Classify, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let labels = labels::read(&args.labels, &read_argument(&args.labels)?)?;
    let instructions = args.instructions.as_deref().map(text_or_file).transpose()?;
    let reading =
        Reading { jsonl: args.jsonl, text_column: "text".to_owned(), id_column: "id".to_owned() };
    let items = reading.items(&Source::all(&args.files));
    let engine = model::load(&args.model, interrupts)?;
    let mut builder = engine
        .classifier(labels)
        .language(args.language.into())
        .ask_confidence(!args.no_confidence);
    if let Some(text) = instructions {
        builder = builder.instructions(text);
    }
    if let Some(label) = &args.fallback {
        builder = builder.fallback(label, args.min_probability);
    }
    let classifier = builder.build()?;
    let bar = documents_bar(items.len());
    let mut failed = 0;
    for item in &items {
        interrupts.check()?;
        let line = line(&classifier, item, args, interrupts)?;
        failed += usize::from(line.get("error").is_some());
        bar.suspend(|| -> Result<(), Failure> {
            let mut output = std::io::stdout().lock();
            writeln!(output, "{line}")?;
            output.flush()?;
            Ok(())
        })?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    if failed > 0 {
        say(&format!("{failed} of {} texts failed", items.len()));
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::Failed })
}

fn line(
    classifier: &Classifier,
    item: &Item,
    args: &args::Classify,
    interrupts: &Interrupts,
) -> Result<Value, Failure> {
    let failure = |kind: &str, message: &str| {
        let mut line = json!({"id": item.id, "error": {"kind": kind, "message": message}});
        // A text that cannot be classified has the fallback too, and its reason.
        if let Some(label) = &args.fallback {
            line["intent"] = json!(label);
            line["fallback"] = json!(kind);
        }
        line
    };
    let text = match &item.text {
        Ok(text) => text,
        Err((kind, message)) => return Ok(failure(kind, message)),
    };
    let found = match classifier.classify(text, &Control::new().cancel(&interrupts.work)) {
        Ok(found) => found,
        Err(MoldeError::Cancelled) => return Err(Failure::Interrupted),
        Err(error) => return Ok(failure(error.kind(), &error.to_string())),
    };
    let probabilities: Map<String, Value> =
        found.probabilities.iter().map(|(label, share)| (label.clone(), json!(share))).collect();
    Ok(json!({
        "id": item.id,
        "intent": found.intent,
        "fallback": found.fallback,
        "probability": found.probability(),
        "probabilities": probabilities,
        "confidence": found.confidence,
        "reasoning": found.reasoning,
    }))
}
