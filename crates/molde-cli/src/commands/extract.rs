//! `molde extract`: documents into values.

use std::collections::BTreeSet;
use std::time::Instant;

use molde::{
    Confidence, Contract, Control, End, Extractor, FieldRule, Journal, MoldeError, Outcome,
    Overflow, RawJson, content_hash,
};
use serde_json::{Value, json};

use crate::args::Extract;
use crate::documents::{Source, read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::output::{DocumentFailure, Results};
use crate::progress::{documents_bar, say};
use crate::records::{Item, Reading};
use crate::table;

/// What becomes of one document: members of its line, each a name and a JSON text. The first is
/// `value`.
type Line = Vec<(&'static str, String)>;

/// Reads every document. The schema is checked first, and the model is loaded when the first
/// document needs it.
pub(crate) fn run(args: &Extract, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let schema = read_argument(&args.schema)?;
    let schema = if args.keep_open { schema } else { molde::close_objects(&schema).text };
    let bad_schema =
        |source| Failure::Schema { path: args.schema.clone(), source: Box::new(source) };
    let contract = Contract::from_schema(&schema).map_err(bad_schema)?;
    let rules = rules(args);
    // Rules and fields are checked before the model is loaded.
    FieldRule::add_to(&schema, &rules).map_err(bad_schema)?;
    let instructions = args.instructions.as_deref().map(text_or_file).transpose()?;
    let conventions = args.conventions.as_deref().map(text_or_file).transpose()?;
    let make = || -> Result<Extractor, Failure> {
        let engine = model::load(&args.model, interrupts)?;
        let mut builder = engine
            .extractor_with(contract.clone())
            .language(args.language.into())
            .max_tokens(args.max_tokens)
            .field_rules(rules.clone())
            .grounded_numbers(args.grounded_numbers.iter().flatten().cloned());
        if args.confidence {
            builder = builder.confidence(Confidence::Full);
        }
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
    let reading = Reading {
        jsonl: args.jsonl,
        text_column: args.text_column.clone(),
        id_column: args.id_column.clone(),
    };
    let sources = Source::all(&args.files);
    let items = reading.items(&sources);
    // A file of several documents makes lines even if it has one.
    let several = items.len() > 1
        || !matches!((&items[..], &sources[..]), ([item], [source]) if item.id == source.id());
    let mut journal = match &args.journal {
        Some(path) => {
            distinct(&items)?;
            Some(Journal::open(path)?)
        }
        None => None,
    };
    let settings = [
        schema.as_str(),
        instructions.as_deref().unwrap_or_default(),
        conventions.as_deref().unwrap_or_default(),
        args.model.model.as_deref().unwrap_or_default(),
    ];
    let options = format!(
        "{:?}",
        (
            args.max_tokens,
            args.windows,
            args.language,
            args.confidence,
            args.model.exact,
            &rules,
            &args.grounded_numbers
        )
    );
    let start = Instant::now();
    let mut results = Results::new(std::io::stdout().lock(), std::io::stderr(), several);
    let mut table = args.output.as_ref().map(|path| table::Table::new(path, &schema));
    let bar = documents_bar(items.len());
    let mut extractor = None;
    for item in &items {
        interrupts.check()?;
        let id = id_text(&item.id);
        let hash = match &item.text {
            Ok(text) => content_hash(settings.into_iter().chain([options.as_str(), text.as_str()])),
            Err((kind, _)) => content_hash([*kind]),
        };
        let known = journal.as_ref().and_then(|journal| journal.result(&id, &hash));
        let known =
            known.and_then(table::read_line).filter(|known| known.is_ok() || !args.retry_failed);
        let result = if let Some(known) = known {
            known
        } else {
            let result = match &item.text {
                Err((kind, message)) => {
                    Err(DocumentFailure { kind: (*kind).into(), message: message.clone() })
                }
                Ok(text) if text.trim().is_empty() => {
                    Err(document_failure(&MoldeError::EmptyDocument))
                }
                Ok(text) => {
                    let extractor = match &extractor {
                        Some(extractor) => extractor,
                        None => extractor.insert(make()?),
                    };
                    one(extractor, text, args, interrupts)?
                }
            };
            if let Some(journal) = &mut journal {
                let members = members(&result);
                let borrowed: Vec<(&str, &str)> =
                    members.iter().map(|(name, json)| (*name, json.as_str())).collect();
                journal.append(&id, &hash, &borrowed)?;
            }
            result
        };
        bar.suspend(|| results.write(&item.id, &result))?;
        if let Some(table) = &mut table {
            table.add(&item.id, &result);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(table) = table {
        table.write()?;
    }
    let exit = results.exit();
    if several {
        let seconds = start.elapsed().as_secs_f64();
        say(&format!("{} documents in {seconds:.1} s{}", items.len(), results.summary()));
    }
    Ok(exit)
}

fn rules(args: &Extract) -> Vec<FieldRule> {
    let pairs = args.less_or_equal.iter().flatten().filter_map(|pair| pair.split_once(','));
    let lists = args.all_or_none.iter().flatten();
    pairs
        .map(|(low, high)| FieldRule::less_or_equal(low, high))
        .chain(lists.map(|names| FieldRule::all_or_none(names.split(','))))
        .collect()
}

/// An id as a text; ids that are no texts are their JSON.
fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned)
}

fn distinct(items: &[Item]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match items.iter().map(|item| id_text(&item.id)).find(|id| !seen.insert(id.clone())) {
        Some(id) => Err(Failure::RepeatedId { id }),
        None => Ok(()),
    }
}

fn members(result: &Result<Line, DocumentFailure>) -> Vec<(&'static str, String)> {
    match result {
        Ok(line) => line.clone(),
        Err(failure) => {
            vec![("error", json!({"kind": failure.kind, "message": failure.message}).to_string())]
        }
    }
}

fn one(
    extractor: &Extractor,
    text: &str,
    args: &Extract,
    interrupts: &Interrupts,
) -> Result<Result<Line, DocumentFailure>, Failure> {
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
    let details = details(&outcome, args);
    let value =
        if args.accept_closed { outcome.into_value_or_closed() } else { outcome.into_value() };
    Ok(value
        .map(|value| {
            let mut line = vec![("value", value.into_string())];
            line.extend(details);
            line
        })
        .map_err(|error| document_failure(&error)))
}

/// What is said beside the value, where it is asked for.
fn details(outcome: &Outcome<RawJson>, args: &Extract) -> Line {
    let mut line = Vec::new();
    if args.confidence {
        line.push(("fields", json!(outcome.fields).to_string()));
    }
    if args.grounded_numbers.is_some() {
        line.push(("evidence", json!(outcome.evidence).to_string()));
    }
    if args.timings {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        let timings = json!({
            "total": ms(outcome.timings.total), "read": ms(outcome.timings.prefill),
            "write": ms(outcome.timings.decode), "mask": ms(outcome.timings.mask),
        });
        line.push(("ms", timings.to_string()));
    }
    line
}

fn document_failure(error: &MoldeError) -> DocumentFailure {
    DocumentFailure { kind: error.kind().into(), message: error.to_string() }
}
