//! Texts that each schema of `tests/data` accepts and rejects.

mod support;

use std::sync::Arc;

use molde_schema::{CompileOptions, CompiledSchema, Formats, Registry, SchemaAutomaton};
use support::{accepts, cases, compile, read, validator};

#[test]
fn every_case_accepts_and_rejects_what_it_says() {
    let mut failures = Vec::new();
    for case in cases() {
        let schema = compile(&case.schema, &case.options);
        let mut automaton = SchemaAutomaton::new(&schema);
        for text in &case.accept {
            if !accepts(&mut automaton, text.as_bytes()) {
                failures.push(format!("{}: rejected {text}", case.name));
            }
        }
        for text in &case.reject {
            if accepts(&mut automaton, text.as_bytes()) {
                failures.push(format!("{}: accepted {text}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_a_case_accepts_is_valid_for_an_independent_validator() {
    for case in cases() {
        let validator = validator(&case.schema);
        for text in &case.accept {
            let value = serde_json::from_str(text).expect("JSON");
            assert!(validator.is_valid(&value), "{}: {text}", case.name);
        }
    }
}

#[test]
fn every_prefix_of_an_accepted_text_can_be_completed() {
    for case in cases() {
        let schema = compile(&case.schema, &case.options);
        let mut automaton = SchemaAutomaton::new(&schema);
        for text in &case.accept {
            for end in 0..=text.len() {
                let prefix = &text.as_bytes()[..end];
                let state = read(&mut automaton, prefix).expect("a prefix of an accepted text");
                let whole = [prefix, &automaton.completion(state)].concat();
                assert!(
                    accepts(&mut automaton, &whole),
                    "{}: {} is no text of {}",
                    case.name,
                    String::from_utf8_lossy(&whole),
                    String::from_utf8_lossy(prefix),
                );
            }
        }
    }
}

#[test]
fn dropping_the_cache_changes_no_answer() {
    for case in cases() {
        let schema = compile(&case.schema, &case.options);
        for text in &case.accept {
            let mut automaton = SchemaAutomaton::new(&schema);
            let mut state = automaton.start();
            for (at, &byte) in text.as_bytes().iter().enumerate() {
                let start = automaton.start();
                state = automaton.clear_cache(&[start, state])[1];
                state = automaton.step(state, byte);
                state = automaton.settle(state, &text.as_bytes()[..=at]);
            }
            assert!(automaton.is_accepting(state), "{}: {text}", case.name);
        }
    }
}

#[test]
fn a_key_is_begun_only_if_it_can_be_written() {
    for (schema, prefixes) in [
        (
            r#"{"maxProperties": 1, "not": {"patternProperties": {"^a": {"type": "integer"}}},
                "propertyNames": {"enum": ["a", "b"]}}"#,
            vec!["{\"a", "{\"b"],
        ),
        (
            r#"{"maxProperties": 3, "not": {"propertyNames": {"not": {"enum": ["a"]}}}}"#,
            vec!["{\"x\": 1, \"y\": 1, \"a", "{\"x\": 1, \"y\": 1, \"z"],
        ),
    ] {
        let schema = compile(schema, &molde_schema::CompileOptions::default());
        let mut automaton = SchemaAutomaton::new(&schema);
        // One name of each pair can still be finished, the other cannot be begun.
        let live: Vec<bool> = prefixes
            .iter()
            .map(|prefix| {
                let Ok(state) = read(&mut automaton, prefix.as_bytes()) else { return false };
                let whole = [prefix.as_bytes(), &automaton.completion(state)].concat();
                assert!(accepts(&mut automaton, &whole), "{}", String::from_utf8_lossy(&whole));
                true
            })
            .collect();
        assert_eq!(live, [true, false], "{prefixes:?}");
    }
}

#[test]
fn a_dialect_with_the_format_assertion_vocabulary_asserts_formats() {
    let dialect = |vocabulary: &str| {
        format!(
            r#"{{"$id": "http://example.com/dialect", "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$vocabulary": {{"https://json-schema.org/draft/2020-12/vocab/core": true,
                                 "https://json-schema.org/draft/2020-12/vocab/{vocabulary}": false}}}}"#
        )
    };
    let schema = r#"{"$schema": "http://example.com/dialect", "type": "string", "format": "ipv4"}"#;
    let options = CompileOptions { formats: Formats::Annotate, ..CompileOptions::default() };
    for (vocabulary, is_asserted) in [("format-assertion", true), ("format-annotation", false)] {
        let mut registry = Registry::new();
        registry.insert("http://example.com/dialect", dialect(vocabulary));
        let schema = CompiledSchema::compile_with(schema, &registry, &options).expect("a schema");
        let mut automaton = SchemaAutomaton::new(&Arc::new(schema));
        assert!(accepts(&mut automaton, br#""127.0.0.1""#));
        assert_eq!(accepts(&mut automaton, br#""localhost""#), !is_asserted, "{vocabulary}");
    }
}
