//! What the tests of this crate share: cases as data, and reading a text with an automaton.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use molde_schema::{
    CompileOptions, CompiledSchema, DEAD, Escapes, NumberStyle, Order, SchemaAutomaton, Style,
    UNDECIDED,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// A schema with texts that it accepts and rejects.
pub struct Case {
    pub name: String,
    /// As written in the file: a parsed value would round its numbers.
    pub schema: String,
    pub options: CompileOptions,
    pub accept: Vec<String>,
    pub reject: Vec<String>,
}

/// Every case of `tests/data`, by file and position.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("tests/data exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let list: Vec<BTreeMap<String, Box<RawValue>>> =
            serde_json::from_str(&text).expect("a list of cases");
        cases.extend(list.into_iter().map(|case| Case {
            name: parse(&case, "name").as_str().expect("a name").to_owned(),
            schema: case["schema"].get().to_owned(),
            options: options(&parse(&case, "options")),
            accept: strings(&parse(&case, "accept")),
            reject: strings(&parse(&case, "reject")),
        }));
    }
    assert!(cases.len() > 50, "the cases of {} were not found", folder.display());
    cases
}

fn parse(case: &BTreeMap<String, Box<RawValue>>, key: &str) -> Value {
    case.get(key).map_or(Value::Null, |raw| serde_json::from_str(raw.get()).expect("JSON"))
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list of texts");
    list.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn options(value: &Value) -> CompileOptions {
    let mut options = CompileOptions::default();
    for (key, value) in value.as_object().into_iter().flatten() {
        match (key.as_str(), value.as_str().unwrap_or("")) {
            ("escapes", "any") => options.escapes = Escapes::Any,
            ("order", "any") => options.order = Order::Any,
            ("numbers", "any") => options.number_style = NumberStyle::Any,
            ("style", "compact") => options.style = Style::Compact,
            ("style", "flexible") => options.style = Style::Flexible,
            (key, value) => panic!("unknown option {key}: {value}"),
        }
    }
    options
}

pub fn compile(schema: &str, options: &CompileOptions) -> Arc<CompiledSchema> {
    match CompiledSchema::compile(schema, options) {
        Ok(schema) => Arc::new(schema),
        Err(error) => panic!("{schema}: {error}"),
    }
}

/// The independent validator, formats asserted.
pub fn validator(schema: &str) -> jsonschema::Validator {
    let schema = serde_json::from_str(schema).expect("JSON");
    jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema")
}

/// The state after `text`, settled after every byte; the offset of the byte that has no
/// continuation otherwise.
pub fn read(automaton: &mut SchemaAutomaton, text: &[u8]) -> Result<u32, usize> {
    let mut state = automaton.start();
    for (at, &byte) in text.iter().enumerate() {
        state = automaton.step(state, byte);
        if state == DEAD || state == UNDECIDED {
            return Err(at);
        }
        state = automaton.settle(state, &text[..=at]);
    }
    Ok(state)
}

pub fn accepts(automaton: &mut SchemaAutomaton, text: &[u8]) -> bool {
    read(automaton, text).is_ok_and(|state| automaton.is_accepting(state))
}

/// A small deterministic generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) as u128 * bound as u128) >> 64) as usize
    }
}
