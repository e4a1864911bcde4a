//! The two rules between fields of the lesson, token by token: low <= high, and both or neither.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema, Order};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use crate::real::qwen;
use crate::schemas::vocabulary;
use crate::walk::Random;

/// Both amounts or neither, in two ways to write it.
const BOTH: [&str; 2] = [
    r#""anyOf": [
      {"properties": {"bajo": {"type": "null"}, "alto": {"type": "null"}}},
      {"properties": {"bajo": {"type": "number"}, "alto": {"type": "number"}}}]"#,
    r#""if": {"properties": {"bajo": {"type": "null"}}},
      "then": {"properties": {"alto": {"type": "null"}}},
      "else": {"properties": {"alto": {"type": "number"}}}"#,
];

fn lesson(both: &str, required: &str) -> String {
    format!(
        r#"{{"type": "object", "additionalProperties": false, "required": {required}, "properties": {{
          "trimestre": {{"anyOf": [{{"type": "integer", "minimum": 1, "maximum": 4}}, {{"type": "null"}}]}},
          "bajo": {{"anyOf": [{{"type": "number", "exclusiveMinimum": 0}}, {{"type": "null"}}]}},
          "alto": {{"anyOf": [{{"type": "number", "exclusiveMinimum": 0, "minimum": {{"$data": "1/bajo"}}}},
            {{"type": "null"}}]}}}}, {both}}}"#
    )
}

fn compiled(schema: &str, order: Order) -> Arc<CompiledSchema> {
    let options = CompileOptions { order, ..CompileOptions::default() };
    Arc::new(CompiledSchema::compile(schema, &options).unwrap())
}

/// Whether an answer keeps both rules, and is an answer at all.
fn keeps_the_rules(text: &[u8], all_required: bool) -> bool {
    let value: serde_json::Value = serde_json::from_slice(text).unwrap();
    let object = value.as_object().unwrap();
    let amount =
        |name: &str| object.get(name).map(|value| value.as_f64().filter(|_| !value.is_null()));
    let fits = |found: Option<f64>| found.is_none_or(|amount| amount > 0.0);
    match (amount("bajo"), amount("alto")) {
        (Some(bajo), Some(alto)) => {
            fits(bajo)
                && fits(alto)
                && bajo.is_some() == alto.is_some()
                && bajo.zip(alto).is_none_or(|(bajo, alto)| bajo <= alto)
        }
        _ => !all_required,
    }
}

/// Random walks of which each, from some position on, has only as many tokens left as are promised
/// to be enough. What goes on in a number, or leads to one, is preferred.
fn walk(
    vocabulary: &Arc<Vocabulary>,
    schema: &Arc<CompiledSchema>,
    walks: usize,
    seed: u64,
) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
        let constraint = SchemaConstraint::new(schema);
        let mut matcher = Matcher::new(constraint, Arc::clone(vocabulary), options);
        let mut random = Random(seed);
        for _ in 0..walks {
            matcher.reset();
            let mut remaining = usize::MAX;
            let tight_from = random.below(40);
            for position in 0.. {
                if position == tight_from {
                    remaining = matcher.completion_tokens();
                }
                if matcher.is_complete() {
                    break;
                }
                let mask: Vec<TokenId> = if remaining == usize::MAX {
                    matcher.mask().unwrap().iter().collect()
                } else {
                    matcher.mask_within(remaining).unwrap().iter().collect()
                };
                let digits: Vec<TokenId> = mask
                    .iter()
                    .copied()
                    .filter(|&token| {
                        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
                        bytes.iter().all(|byte| matches!(byte, b' ' | b'0'..=b'9'))
                    })
                    .collect();
                let from = if digits.is_empty() || random.below(3) == 0 { &mask } else { &digits };
                let token = random.choose(from);
                assert!(matcher.fits(token, remaining), "{:?}", matcher.text().escape_ascii());
                matcher.accept(token).unwrap();
                if remaining != usize::MAX {
                    remaining -= 1;
                    assert!(matcher.completion_tokens() <= remaining);
                }
            }
            texts.push(matcher.text().to_vec());
        }
    }
    texts
}

fn check(vocabulary: &Arc<Vocabulary>, walks: usize) {
    for both in BOTH {
        for (required, order) in [
            (r#"["trimestre", "bajo", "alto"]"#, Order::Schema),
            (r#"["alto", "bajo"]"#, Order::Any),
        ] {
            let schema = compiled(&lesson(both, required), order);
            let texts = walk(vocabulary, &schema, walks, 5);
            for text in &texts {
                assert!(keeps_the_rules(text, true), "{}", text.escape_ascii());
            }
            assert!(texts.iter().any(|text| !text.ends_with(b"null}")), "nulls only");
        }
    }
}

#[test]
fn both_rules_of_the_lesson_hold_with_tokens_that_go_across_values() {
    check(&vocabulary(), 60);
}

#[test]
fn both_rules_of_the_lesson_hold_on_the_vocabulary_of_qwen() {
    let Some(vocabulary) = qwen() else { return };
    check(&vocabulary, 6);
}

#[test]
fn after_a_first_amount_only_what_can_become_as_much_is_allowed() {
    let schema = compiled(&lesson(BOTH[0], r#"["bajo", "alto"]"#), Order::Schema);
    let vocabulary = vocabulary();
    let options = MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
    let mut matcher =
        Matcher::new(SchemaConstraint::new(&schema), Arc::clone(&vocabulary), options);
    for &byte in br#"{"bajo": 530, "alto": 5"# {
        let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
        assert!(mask.contains(&TokenId::from(byte)), "{}", char::from(byte));
        matcher.accept(TokenId::from(byte)).unwrap();
    }
    let digits = |matcher: &mut Matcher<SchemaConstraint>| -> Vec<u8> {
        let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
        (b'0'..=b'9').filter(|&digit| mask.contains(&TokenId::from(digit))).collect()
    };
    // 5 can become 530 or 5000, but not 5.
    assert_eq!(digits(&mut matcher), b"0123456789");
    matcher.accept(TokenId::from(b'2')).unwrap();
    matcher.accept(TokenId::from(b'9')).unwrap();
    assert_eq!(digits(&mut matcher), b"0123456789");
    let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
    assert!(!mask.contains(&TokenId::from(b'}')) && !mask.contains(&TokenId::from(b'.')));
}
