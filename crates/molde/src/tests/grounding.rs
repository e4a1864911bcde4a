//! Numbers of answers that the document must contain.

use serde_json::{Value, json};

use super::fake::{Fake, Policy};
use crate::{FieldRule, MoldeError};

const FORECAST: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "bajo": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "description": "millones de USD"},
    "alto": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "description": "millones de USD"},
    "nota": {"type": "string", "maxLength": 3}},
    "required": ["bajo", "alto", "nota"]}"#;

const RELEASE: &str = "Revenue of $6.10 billion. Net income of $5,157.5 million. 324 stores. We \
    expect the fourth quarter of 2024 revenue of between $7.23 and $7.65 billion, or -3 points.";

/// What a reader of the release would say in millions: with the years and counts as they stand.
const NUMBERS: [f64; 6] = [6100.0, 5157.5, 324.0, 2024.0, 7230.0, 7650.0];

fn rules() -> [FieldRule; 2] {
    [FieldRule::all_or_none(["bajo", "alto"]), FieldRule::less_or_equal("bajo", "alto")]
}

#[test]
fn random_choices_give_numbers_of_the_document_that_keep_the_rules() {
    let engine = Fake::engine(Policy::Random(11));
    let extractor = engine
        .extractor(FORECAST)
        .grounded_numbers(["bajo", "alto"])
        .field_rules(rules())
        .max_tokens(200)
        .build()
        .expect("the schema is supported");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..150 {
        let outcome = extractor.extract(RELEASE).expect("there are numbers");
        let value: Value = serde_json::from_str(&outcome.text).expect("JSON");
        match (value["bajo"].as_f64(), value["alto"].as_f64()) {
            (None, None) => assert!(value["bajo"].is_null() && value["alto"].is_null()),
            (Some(low), Some(high)) => {
                assert!(NUMBERS.contains(&low) && NUMBERS.contains(&high), "{value}");
                assert!(low <= high, "{value}");
                seen.insert(outcome.text.clone());
                for evidence in &outcome.evidence {
                    assert!(!evidence.spans.is_empty(), "{evidence:?}");
                }
            }
            _ => panic!("one without the other: {value}"),
        }
    }
    assert!(seen.len() > 5, "many pairs are reachable: {seen:?}");
}

#[test]
fn the_evidence_is_where_the_document_says_the_number() {
    let script = r#"{"bajo": 7230, "alto": 7650, "nota": ""}"#;
    let engine = Fake::engine(Policy::Script(script.to_owned()));
    let extractor =
        engine.extractor(FORECAST).grounded_numbers(["bajo"]).build().expect("supported");
    let outcome = extractor.extract(RELEASE).expect("there are numbers");
    assert_eq!(outcome.text, script);
    assert_eq!(outcome.evidence.len(), 1);
    let evidence = &outcome.evidence[0];
    assert_eq!(evidence.pointer, "/bajo");
    assert_eq!(&RELEASE[evidence.spans[0].clone()], "7.23");
    assert!(!evidence.ambiguous);
    let script = r#"{"bajo": 1234, "alto": 1.234, "nota": ""}"#;
    let engine = Fake::engine(Policy::Script(script.to_owned()));
    let extractor =
        engine.extractor(FORECAST).grounded_numbers(["bajo", "alto"]).build().expect("supported");
    let outcome = extractor.extract("ventas de 1.234 millones").expect("there is a number");
    assert_eq!(outcome.text, script, "both readings are possible");
    assert!(outcome.evidence.iter().all(|evidence| evidence.ambiguous));
}

#[test]
fn a_model_that_wants_another_number_is_held_to_the_document() {
    let script = r#"{"bajo": 7.23, "alto": 9999, "nota": "x"}"#;
    let engine = Fake::engine(Policy::Script(script.to_owned()));
    let extractor = engine
        .extractor(FORECAST)
        .grounded_numbers(["bajo", "alto"])
        .field_rules(rules())
        .build()
        .expect("supported");
    let outcome = extractor.extract("between $7.23 and $7.65 billion").expect("numbers");
    let value: Value = serde_json::from_str(&outcome.text).expect("JSON");
    let allowed = [json!(7230), json!(7650), Value::Null];
    assert!(allowed.contains(&value["bajo"]) && allowed.contains(&value["alto"]), "{value}");
}

#[test]
fn a_document_without_a_possible_number_fails_with_the_field_before_anything_is_written() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 10}, "m": {"type": "integer"}}, "required": ["n", "m"]}"#;
    let engine = Fake::engine(Policy::Random(1));
    let extractor =
        engine.extractor(schema).grounded_numbers(["m", "n"]).build().expect("supported");
    let error = extractor.extract("only 3 and 4.5").expect_err("no number is at least 10");
    assert!(
        matches!(&error, MoldeError::NoGroundedValue { fields } if fields == &["n"]),
        "{error}"
    );
    assert_eq!(error.kind(), "no_grounded_value");
    let value: Value =
        serde_json::from_str(&extractor.extract("3 and 42").expect("42").text).expect("JSON");
    assert_eq!(value["n"], 42);
    // No pair of numbers keeps the rule, though each field has one.
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 10}, "m": {"type": "integer", "maximum": 5}}, "required": ["n", "m"]}"#;
    let extractor = engine
        .extractor(schema)
        .grounded_numbers(["m", "n"])
        .field_rules([FieldRule::less_or_equal("n", "m")])
        .build()
        .expect("supported");
    let error = extractor.extract("3 and 42").expect_err("42 is above 3");
    assert!(
        matches!(&error, MoldeError::NoGroundedValue { fields } if fields.len() == 2),
        "{error}"
    );
}

#[test]
fn a_field_that_is_not_declared_is_an_error_before_any_document() {
    let engine = Fake::engine(Policy::Random(1));
    let error = engine
        .extractor(FORECAST)
        .grounded_numbers(["low"])
        .build()
        .expect_err("there is no such field");
    assert!(matches!(&error, MoldeError::UnknownField { field } if field == "low"), "{error}");
}

#[test]
fn a_document_with_too_many_numbers_is_an_error_with_both_counts() {
    let engine = Fake::engine(Policy::Random(1));
    let extractor = engine
        .extractor(FORECAST)
        .grounded_numbers(["bajo", "alto"])
        .field_rules(rules())
        .build()
        .expect("supported");
    let many: Vec<String> = (1000..1400).map(|number| format!("{number} million")).collect();
    let many = many.join(", ");
    let error = extractor.extract(&many).expect_err("too many");
    assert!(matches!(error, MoldeError::TooManyNumbers { numbers: 400, limit: 200 }), "{error}");
}

#[test]
fn an_open_schema_that_is_closed_takes_documents_with_many_numbers() {
    let open = FORECAST.replace("\"additionalProperties\": false, ", "");
    assert_ne!(open, FORECAST);
    let engine = Fake::engine(Policy::Random(5));
    let extractor = engine
        .extractor(&open)
        .grounded_numbers(["bajo", "alto"])
        .field_rules(rules())
        .max_tokens(200)
        .build()
        .expect("supported");
    let numbers: Vec<String> = (1..40).map(|number| format!("{number}.5 million")).collect();
    let outcome = extractor.extract(&numbers.join(", ")).expect("39 numbers are few");
    let value: Value = serde_json::from_str(&outcome.text).expect("JSON");
    assert_eq!(value.as_object().map(serde_json::Map::len), Some(3), "{value}");
}
