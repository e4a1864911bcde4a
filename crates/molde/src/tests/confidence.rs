//! How sure the model was, with logits that are known.

use super::fake::{Fake, Policy, SCRIPT_LOGIT};
use crate::{Confidence, MoldeError, Outcome, RawJson};

const SCHEMA: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "n": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]},
    "c": {"const": "x"},
    "m": {"type": "integer", "minimum": 5, "maximum": 6}},
    "required": ["n", "c", "m"]}"#;

fn extract(script: &str, confidence: Confidence) -> Outcome<RawJson> {
    Fake::engine(Policy::Script(script.to_owned()))
        .extractor(SCHEMA)
        .confidence(confidence)
        .build()
        .expect("the schema is supported")
        .extract("x")
        .expect("the fake works")
}

#[test]
fn probabilities_are_those_among_the_allowed_tokens() {
    let outcome = extract(r#"{"n": 3, "c": "x", "m": 6}"#, Confidence::Scored);
    let report = |pointer: &str| {
        outcome.fields.iter().find(|report| report.pointer == pointer).expect("every field")
    };
    // The script's token has a logit of its own, all others 0. Allowed are 1 to 4, `n`, `nu` and `null`.
    let e = f64::from(SCRIPT_LOGIT).exp();
    let n = report("/n");
    assert!((n.probability - e / (e + 6.0)).abs() < 1e-9, "{n:?}");
    assert!((n.null_probability.expect("null is allowed") - 3.0 / (e + 6.0)).abs() < 1e-9, "{n:?}");
    assert_eq!((n.json.as_str(), n.chosen_tokens), ("3", 1));
    assert_eq!(n.runner_up, None);
    let c = report("/c");
    assert_eq!((c.json.as_str(), c.chosen_tokens), ("\"x\"", 0));
    assert!(c.forced_tokens > 0 && (c.probability - 1.0).abs() < 1e-12, "{c:?}");
    let m = report("/m");
    assert!((m.probability - e / (e + 1.0)).abs() < 1e-9, "{m:?}");
    assert_eq!(m.null_probability, None);
}

#[test]
fn what_the_mask_removed_is_high_where_the_model_wanted_something_else() {
    let wanted = extract(r#"{"n": 3, "c": "x", "m": 6}"#, Confidence::Scored);
    let other = extract(r#"{"n": 9, "c": "x", "m": 6}"#, Confidence::Scored);
    let removed = |outcome: &Outcome<RawJson>| {
        outcome.fields.iter().find(|report| report.pointer == "/n").expect("the field").removed
    };
    assert!(removed(&other) > removed(&wanted), "{} {}", removed(&other), removed(&wanted));
}

#[test]
fn the_runner_up_is_the_second_choice_written_to_its_end() {
    let outcome = extract(r#"{"n": null, "c": "x", "m": 5}"#, Confidence::Full);
    let report = |pointer: &str| {
        outcome.fields.iter().find(|report| report.pointer == pointer).expect("every field")
    };
    // Of equal ones the lowest token: the digit 1.
    assert_eq!(report("/n").runner_up.as_deref(), Some("1"));
    assert_eq!(report("/m").runner_up.as_deref(), Some("6"));
    assert_eq!(report("/c").runner_up, None);
}

#[test]
fn without_being_asked_nothing_is_scored() {
    assert!(extract(r#"{"n": 1, "c": "x", "m": 5}"#, Confidence::Off).fields.is_empty());
}

#[test]
fn an_uncertain_field_becomes_null_and_what_follows_is_written_again() {
    let engine = Fake::engine(Policy::Script(r#"{"n": 3, "c": "x", "m": 6}"#.to_owned()));
    let build = |below: f64| {
        engine.extractor(SCHEMA).abstain_below("n", below).build().expect("null is allowed")
    };
    let outcome = build(0.999).extract("x").expect("the fake works");
    assert!(outcome.text.starts_with(r#"{"n": null, "#), "{}", outcome.text);
    assert_eq!(outcome.abstained, ["/n"]);
    let outcome = build(0.1).extract("x").expect("the fake works");
    assert_eq!(outcome.text, r#"{"n": 3, "c": "x", "m": 6}"#);
    assert!(outcome.abstained.is_empty());
}

#[test]
fn abstaining_is_not_offered_where_null_is_illegal() {
    let engine = Fake::engine(Policy::Random(1));
    for field in ["m", "unknown"] {
        let error =
            engine.extractor(SCHEMA).abstain_below(field, 0.5).build().expect_err("no null there");
        assert!(
            matches!(&error, MoldeError::CannotAbstain { .. } | MoldeError::UnknownField { .. }),
            "{error}"
        );
    }
}
