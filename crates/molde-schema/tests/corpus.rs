//! The corpus of `tests/data/corpus`: what each schema accepts, rejects, and whether it compiles.

mod support;

use std::path::Path;
use std::sync::Arc;

use molde_schema::{
    CompileOptions, CompiledSchema, Escapes, NumberStyle, Order, SchemaAutomaton, SchemaError,
    Style,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use support::accepts;

/// A schema with instances; texts where the spelling matters.
#[derive(Deserialize)]
struct Case {
    name: String,
    schema: Box<RawValue>,
    #[serde(default)]
    valid: Vec<Box<RawValue>>,
    #[serde(default)]
    invalid: Vec<Box<RawValue>>,
    #[serde(default)]
    valid_texts: Vec<String>,
    #[serde(default)]
    invalid_texts: Vec<String>,
}

/// A schema that must not compile.
#[derive(Deserialize)]
struct Fault {
    name: String,
    schema: Box<RawValue>,
    kind: String,
    pointers: Vec<String>,
}

fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(file).expect("readable");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus")
}

/// Any spelling, any order, any whitespace: what is tested is which values are accepted.
fn options() -> CompileOptions {
    CompileOptions {
        style: Style::Flexible,
        order: Order::Any,
        number_style: NumberStyle::Any,
        escapes: Escapes::Any,
        ..CompileOptions::default()
    }
}

/// Bounds that are read from farther than a member of the same object, and are refused by name.
const NOT_SIBLINGS: &[&str] = &[
    "an absolute pointer",
    "a relative pointer two levels up",
    "a maximum of items by an absolute pointer into an array",
    "const by an absolute pointer to an enum",
    "a bound from the object around an array",
];

/// Formats that are enforced as a subset, with a valid text that is left out.
const LEFT_OUT: &[(&str, &str)] = &[("hostname", r#""xn--4gbwdl.xn--wgbh1c""#)];

#[test]
fn every_instance_of_the_corpus_is_judged_as_it_says() {
    let mut failures = Vec::new();
    let mut schemas = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .expect("the corpus exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "json")
                && !path.ends_with("refused.json")
        })
        .collect();
    files.sort();
    for case in files.iter().flat_map(|file| read::<Case>(file)) {
        schemas += 1;
        let schema = match CompiledSchema::compile(case.schema.get(), &options()) {
            Ok(schema) => Arc::new(schema),
            Err(SchemaError::Refused(list))
                if NOT_SIBLINGS.contains(&case.name.as_str())
                    && list.0.iter().all(|offender| offender.reason.contains("$data")) =>
            {
                continue;
            }
            Err(error) => {
                failures.push(format!("{}: {error}", case.name));
                continue;
            }
        };
        let raw = |list: &[Box<RawValue>]| -> Vec<String> {
            list.iter().map(|value| value.get().to_owned()).collect()
        };
        let valid = [raw(&case.valid), case.valid_texts].concat();
        let invalid = [raw(&case.invalid), case.invalid_texts].concat();
        for (texts, expected) in [(valid, true), (invalid, false)] {
            for text in texts {
                let mut automaton = SchemaAutomaton::new(&schema);
                if accepts(&mut automaton, text.as_bytes()) != expected
                    && !LEFT_OUT.contains(&(case.name.as_str(), text.as_str()))
                {
                    let verb = if expected { "rejects" } else { "accepts" };
                    let limit = automaton.last_limit().unwrap_or_default();
                    failures.push(format!("{}: {verb} {text} {limit}", case.name));
                }
            }
        }
    }
    assert!(schemas > 700, "the corpus is gone: {schemas} schemas");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_cannot_be_enforced_is_told_apart_by_kind_and_place() {
    let mut failures = Vec::new();
    for fault in read::<Fault>(&folder().join("refused.json")) {
        let (kind, pointers) = match CompiledSchema::compile(fault.schema.get(), &options()) {
            Ok(_) => ("compiled", Vec::new()),
            Err(SchemaError::Malformed(list)) => {
                ("malformed", list.0.into_iter().map(|offender| offender.pointer).collect())
            }
            Err(SchemaError::Refused(list)) => {
                ("refused", list.0.into_iter().map(|offender| offender.pointer).collect())
            }
            Err(SchemaError::Unsatisfiable { pointer }) => ("unsatisfiable", vec![pointer]),
            Err(error) => {
                failures.push(format!("{}: {error}", fault.name));
                continue;
            }
        };
        if kind != fault.kind || pointers != fault.pointers {
            let (expected, places) = (&fault.kind, &fault.pointers);
            failures.push(format!(
                "{}: {kind} at {pointers:?}, expected {expected} at {places:?}",
                fault.name
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
