//! Masks under schemas: of every state that is sampled, the mask is what trying every token gives.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema, Escapes, NumberStyle, Order, Style};
use molde_vocab::TokenEntry::{Control, Text};
use molde_vocab::{ByteAutomaton, StateId, TokenConstraint, TokenEntry, TokenId, Vocabulary};

use crate::walk::Random;

/// The schemas of molde-schema's own tests, and some for what is special about masks: names that
/// are also extra names, length bounds, languages, several ways to read a text.
const FILES: [&str; 3] = [
    include_str!("../../../molde-schema/tests/data/scalars.json"),
    include_str!("../../../molde-schema/tests/data/containers.json"),
    include_str!("../../../molde-schema/tests/data/combinations.json"),
];

pub(crate) const SCHEMAS: [&str; 34] = [
    r#"{"type": "object", "properties": {"a": {"type": "string"}, "ab": true, "": true}}"#,
    r#"{"type": "object", "properties": {"a": true, "n": true}, "required": ["ab", "n"], "minProperties": 4}"#,
    r#"{"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}, "maxProperties": 2}"#,
    r#"{"type": "string", "minLength": 2, "maxLength": 6}"#,
    r#"{"type": "array", "items": {"type": "string", "minLength": 3}}"#,
    r#"{"type": "string", "pattern": "ab|é"}"#,
    r#"{"type": "array", "items": {"type": "string", "pattern": "^[^\"n]*$", "maxLength": 8}}"#,
    r#"{"type": "string", "pattern": "^(a|é)*\\n?$"}"#,
    r#"{"enum": ["a", "ab", "é\"", "n", null, 12, "a\\b"]}"#,
    r#"{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"maxLength": 2}, "n": false}}, {"type": "string"}]}"#,
    r#"{"patternProperties": {"^a": {"type": "string"}, "b$": {"minLength": 1}}, "additionalProperties": {"type": "array"}}"#,
    r#"{"patternProperties": {"^a": {"format": "date"}}, "additionalProperties": false}"#,
    r#"{"properties": {"a": true, "n": {"type": "string"}, "ab": {"type": "null"}}, "patternProperties": {"^[ab]+$": {"type": "string"}, "^n": false}, "additionalProperties": false}"#,
    r#"{"patternProperties": {"^[a-z]{1,40}$": {"type": "integer"}}, "additionalProperties": {"type": "null"}, "required": ["b"]}"#,
    r#"{"patternProperties": {"^[ab]{1,2}$": {"type": "integer"}}, "additionalProperties": false, "minProperties": 3}"#,
    r#"{"properties": {"n": true}, "patternProperties": {"^é|b$": {"type": "string"}}, "minProperties": 2}"#,
    r#"{"type": "object", "minProperties": 3, "maxProperties": 4}"#,
    r#"{"anyOf": [{"patternProperties": {"^a": {"type": "null"}}}, {"properties": {"a": {"type": "object"}}}]}"#,
    r#"{"uniqueItems": true}"#,
    r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": true, "minItems": 2}"#,
    r#"{"type": "array", "items": {"type": "string", "pattern": "^(a|ab|b+)$"}, "uniqueItems": true, "minItems": 2}"#,
    r#"{"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "array", "items": {"enum": ["a", "b", 0, 12, null]}, "uniqueItems": true, "minItems": 4}"#,
    r#"{"type": "array", "items": {"enum": ["a", "b", 0, 12, null]}, "uniqueItems": true, "contains": {"type": "integer"}, "minContains": 2}"#,
    r#"{"type": "array", "prefixItems": [{"enum": ["a", "b"]}, {"const": "a"}], "items": {"type": "boolean"}, "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}, "uniqueItems": true, "minItems": 2}"#,
    r#"{"type": "array", "items": {"type": "object", "properties": {"a": {"enum": [0, 12]}, "b": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}, "uniqueItems": true, "minItems": 3}"#,
    r#"{"type": "array", "items": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true}, "uniqueItems": true, "minItems": 2}"#,
    r#"{"type": "array", "items": {"type": "string"}, "not": {"uniqueItems": true}, "maxItems": 2}"#,
    r#"{"type": "array", "items": {"enum": ["a", "b", null, 12]}, "not": {"uniqueItems": true}, "minItems": 3}"#,
    r#"{"type": "array", "items": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 2}, "uniqueItems": true, "contains": {"required": ["a"]}}"#,
    r#"{"properties": {"a": {"type": "string", "minLength": 1}, "n": {"const": {"$data": "1/a"}}}, "required": ["a", "n"]}"#,
    r#"{"properties": {"a": {"type": "string"}, "b": {"type": "integer", "maximum": 12, "minimum": {"$data": "1/n"}}, "n": {"type": ["number", "null"]}, "ab": {"maxLength": 2, "const": {"$data": "1/a"}}}}"#,
];

/// Every byte, what JSON is made of, and random pieces of that: whatever can stand in one token.
pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    let mut random = Random(11);
    let mut entries: Vec<TokenEntry> = (0..=255).map(|byte| Text(vec![byte])).collect();
    let pieces = [
        "a", "b", "ab", "n", "\"", "\", \"", "\": ", "\"}", "\"]", "{\"", "[\"", ", ", "\\\"",
        "\\n", "\\", "\\u", "\\u00", "\\u0061", "\\ud83d", "\\ude00", "0", "12", ".5", "e", "-",
        "null", "true", " ", "é", "日本", "😀", "}", "]", "{", "[", ":", ",", "2024-0", "x/y",
        "\t",
    ];
    for piece in pieces {
        entries.push(Text(piece.as_bytes().to_vec()));
    }
    for _ in 0..900 {
        let count = 2 + random.below(4);
        let mut text: Vec<u8> = Vec::new();
        for _ in 0..count {
            text.extend(random.choose(&pieces).as_bytes());
        }
        // Some tokens are cut inside a character.
        text.truncate(text.len() - random.below(8) / 7);
        entries.push(Text(text));
    }
    entries.extend([Control, Control]);
    let end = entries.len() as TokenId - 1;
    Arc::new(Vocabulary::new(entries, [end], None).unwrap())
}

/// The tokens that fit after `text` by trying each, and how many are undecided.
pub(crate) fn naive(
    automaton: &mut SchemaConstraint,
    state: StateId,
    text: &[u8],
    vocabulary: &Vocabulary,
) -> (Vec<TokenId>, u64) {
    let mut allowed = Vec::new();
    let mut undecided = 0;
    for token in 0..vocabulary.len() as TokenId {
        match vocabulary.token_bytes(token) {
            Some(bytes) => {
                let mut text = text.to_vec();
                let mut end = state;
                for &byte in bytes {
                    text.push(byte);
                    end = automaton.step(end, byte);
                    if !end.is_live() {
                        break;
                    }
                    end = automaton.settle(end, &text);
                }
                undecided += u64::from(end == StateId::UNDECIDED);
                if end.is_live() {
                    allowed.push(token);
                }
            }
            None if vocabulary.is_end_of_turn(token) && automaton.is_accepting(state) => {
                allowed.push(token);
            }
            None => {}
        }
    }
    (allowed, undecided)
}

/// Walks of up to 12 tokens; returns how many states were looked at.
fn check(schema: &str, options: &CompileOptions, vocabulary: &Arc<Vocabulary>, seed: u64) -> usize {
    let source = schema;
    let Ok(schema) = CompiledSchema::compile(schema, options) else { return 0 };
    let schema = Arc::new(schema);
    let matcher_options =
        MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
    let mut matcher =
        Matcher::new(SchemaConstraint::new(&schema), Arc::clone(vocabulary), matcher_options);
    let mut random = Random(seed);
    let mut states = 0;
    for _ in 0..3 {
        matcher.reset();
        let mut undecided = 0;
        for _ in 0..12 {
            let mut automaton = matcher.automaton().clone();
            let (expected, more) =
                naive(&mut automaton, matcher.state(), matcher.text(), vocabulary);
            undecided += more;
            let so_far = matcher.text().escape_ascii().to_string();
            let mask: Vec<TokenId> = match matcher.mask() {
                Ok(mask) => mask.iter().collect(),
                Err(error) => panic!("{options:?}: {error} after {so_far} under {source}"),
            };
            if mask != expected {
                let text = |t: TokenId| {
                    vocabulary.token_bytes(t).unwrap_or(b"<end>").escape_ascii().to_string()
                };
                let missing: Vec<_> =
                    expected.iter().filter(|t| !mask.contains(t)).map(|&t| text(t)).collect();
                let extra: Vec<_> =
                    mask.iter().filter(|t| !expected.contains(t)).map(|&t| text(t)).collect();
                panic!(
                    "{options:?}: missing {missing:?}, not allowed {extra:?} after {so_far} under {source}"
                );
            }
            assert_eq!(matcher.undecided(), undecided);
            states += 1;
            matcher.accept(random.choose(&mask)).unwrap();
            if matcher.is_finished() {
                break;
            }
        }
    }
    states
}

#[test]
fn under_every_schema_masks_equal_trying_every_token() {
    let vocabulary = vocabulary();
    let mut schemas: Vec<String> = SCHEMAS.iter().map(|&schema| schema.to_owned()).collect();
    for file in FILES {
        let cases: serde_json::Value = serde_json::from_str(file).unwrap();
        schemas.extend(cases.as_array().unwrap().iter().map(|case| case["schema"].to_string()));
    }
    let mut states = 0;
    for (index, schema) in schemas.iter().enumerate() {
        for escapes in [Escapes::Needed, Escapes::Any] {
            for (order, style, number_style) in [
                (Order::Schema, Style::Spaced, NumberStyle::Any),
                (Order::Any, Style::Compact, NumberStyle::Plain),
                (Order::Any, Style::Flexible, NumberStyle::Any),
            ] {
                let options = CompileOptions {
                    escapes,
                    order,
                    style,
                    number_style,
                    ..CompileOptions::default()
                };
                states += check(schema, &options, &vocabulary, index as u64);
            }
        }
    }
    assert!(states >= 2000, "{states} states");
}

/// Walks to completion within the budget that is promised to be enough.
#[test]
fn under_every_schema_texts_are_completed_within_what_is_promised() {
    let vocabulary = vocabulary();
    let mut schemas: Vec<String> = SCHEMAS.iter().map(|&schema| schema.to_owned()).collect();
    schemas.push(r#"{"type": "object", "minProperties": 6}"#.to_owned());
    let mut random = Random(3);
    for (index, schema) in schemas.iter().enumerate() {
        let source = schema;
        let Ok(schema) = CompiledSchema::compile(schema, &CompileOptions::default()) else {
            continue;
        };
        let schema = Arc::new(schema);
        let options =
            MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
        let constraint = SchemaConstraint::new(&schema);
        let mut matcher = Matcher::new(constraint, Arc::clone(&vocabulary), options);
        let needed = matcher.completion_tokens();
        assert_ne!(needed, usize::MAX, "a text can be completed");
        let mut remaining = needed + 4 * (index % 2);
        while !matcher.is_complete() {
            let tokens: Vec<TokenId> = matcher.mask_within(remaining).unwrap().iter().collect();
            let token = random.choose(&tokens);
            assert!(matcher.fits(token, remaining));
            matcher.accept(token).unwrap();
            remaining -= 1;
            let needed = matcher.completion_tokens();
            let so_far = matcher.text().escape_ascii();
            assert!(needed <= remaining, "{needed} of {remaining} after {so_far} under {source}");
        }
    }
}

#[test]
fn a_long_least_length_is_counted_from_the_first_bytes_of_each_completion() {
    let vocabulary = vocabulary();
    let schema = r#"{"type": "string", "minLength": 20000}"#;
    let schema = CompiledSchema::compile(schema, &CompileOptions::default()).unwrap();
    let options = MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
    let constraint = SchemaConstraint::new(&Arc::new(schema));
    let mut matcher = Matcher::new(constraint, Arc::clone(&vocabulary), options);
    let needed = matcher.completion_tokens();
    // No token has more than 40 characters.
    assert!((500..=20_002).contains(&needed), "{needed}");
    let quote = matcher.mask().unwrap().iter().find(|&t| vocabulary.token_bytes(t) == Some(b"\""));
    assert!(matcher.fits(quote.unwrap(), needed + 1));
}
