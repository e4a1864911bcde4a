//! Texts that are no schema, or none that can be enforced.

use std::fmt::Write;

use molde_schema::{
    CompileOptions, CompiledSchema, SchemaAutomaton, SchemaError, UNDECIDED, Verdict,
};

fn compile(text: &str) -> Result<CompiledSchema, SchemaError> {
    CompiledSchema::compile(text, &CompileOptions::default())
}

fn offenders(text: &str) -> Vec<(String, String)> {
    match compile(text) {
        Err(SchemaError::Refused(list) | SchemaError::Malformed(list)) => {
            list.0.into_iter().map(|offender| (offender.pointer, offender.keyword)).collect()
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn all_offenders_are_listed_with_their_pointers() {
    let text = r##"{"properties": {"a": {"$ref": "#/nowhere"},
        "b": {"not": {"$ref": "other.json"}}, "c/d": {"items": {"pattern": "(a)\\1"}}},
        "minimum": {"$data": "/x"}}"##;
    let found = offenders(text);
    let expected = [
        ("/minimum", "minimum"),
        ("/properties/a/$ref", "$ref"),
        ("/properties/b/not/$ref", "$ref"),
        ("/properties/c~1d/items/pattern", "pattern"),
    ];
    assert_eq!(found, expected.map(|(pointer, keyword)| (pointer.into(), keyword.into())));
}

#[test]
fn keywords_in_forms_that_demand_nothing_are_accepted() {
    for text in [
        r#"{"uniqueItems": false}"#,
        r#"{"if": {"type": "string"}}"#,
        r#"{"oneOf": [{"type": "string"}]}"#,
        r#"{"minContains": 2}"#,
        r#"{"dependentRequired": {}}"#,
        r#"{"unevaluatedItems": true}"#,
    ] {
        assert!(compile(text).is_ok(), "{text}");
    }
}

#[test]
fn malformed_keywords_are_told_from_refused_ones() {
    for (text, pointer) in [
        (r#"{"type": "strin"}"#, "/type"),
        (r#"{"type": []}"#, "/type"),
        (r#"{"type": ["string", 5]}"#, "/type"),
        (r#"{"properties": {"a": {"minLength": -1}}}"#, "/properties/a/minLength"),
        (r#"{"properties": []}"#, "/properties"),
        (r#"{"items": 3}"#, "/items"),
        (r#"{"required": ["a", 1]}"#, "/required"),
        (r#"{"anyOf": []}"#, "/anyOf"),
        (r#"{"enum": 3}"#, "/enum"),
        (r#"{"multipleOf": 0}"#, "/multipleOf"),
        (r#"{"pattern": "("}"#, "/pattern"),
        (r#"{"minimum": "1"}"#, "/minimum"),
    ] {
        assert!(matches!(compile(text), Err(SchemaError::Malformed(_))), "{text}");
        assert_eq!(offenders(text)[0].0, pointer, "{text}");
    }
}

#[test]
fn a_schema_that_accepts_nothing_is_unsatisfiable() {
    for text in [
        "false",
        r#"{"type": "integer", "minimum": 2, "maximum": 1}"#,
        r#"{"enum": ["a"], "type": "integer"}"#,
        r#"{"type": "object", "required": ["a"], "properties": {"a": false}}"#,
        r#"{"type": "array", "minItems": 3, "maxItems": 2}"#,
        r#"{"type": "object", "minProperties": 3, "maxProperties": 2}"#,
        r#"{"type": "object", "additionalProperties": false, "minProperties": 1}"#,
        r##"{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}"##,
        r#"{"type": "string", "pattern": "^(aaa)+$", "minLength": 4, "maxLength": 5}"#,
        r#"{"type": "integer", "multipleOf": 10, "minimum": 11, "maximum": 19}"#,
    ] {
        assert!(matches!(compile(text), Err(SchemaError::Unsatisfiable { .. })), "{text}");
    }
}

#[test]
fn references_beyond_the_text_are_refused_by_name() {
    for reference in
        ["https://example.com/s.json", "other.json#/a", "#/missing", "#nowhere", "#/%zz"]
    {
        let text = format!(r#"{{"$ref": "{reference}"}}"#);
        assert_eq!(offenders(&text), [("/$ref".to_owned(), "$ref".to_owned())], "{text}");
    }
}

#[test]
fn hostile_schemas_end_in_a_result_or_a_named_limit() {
    let deep = format!("{}{}", r#"{"items":"#.repeat(500), "true") + &"}".repeat(500);
    assert!(compile(&deep).is_ok());
    let too_deep = format!("{}true{}", r#"{"not":"#.repeat(10_000), "}".repeat(10_000));
    assert!(matches!(compile(&too_deep), Err(SchemaError::Limit { name: "schema_depth", .. })));
    let mut product = String::from(r#"{"allOf": ["#);
    for index in 0..20 {
        let comma = if index > 0 { "," } else { "" };
        write!(
            product,
            r#"{comma}{{"anyOf": [{{"required": ["a{index}"]}}, {{"required": ["b{index}"]}}]}}"#
        )
        .expect("writing to a string");
    }
    product.push_str("]}");
    // Independent conditions are not multiplied out.
    assert!(compile(&product).is_ok());
    for text in [
        r#"{"type": "array", "minItems": 1000000000}"#,
        r#"{"type": "array", "minItems": 10000000000000000000}"#,
        r#"{"type": "string", "minLength": 1000000000}"#,
    ] {
        assert!(
            matches!(compile(text), Err(SchemaError::Limit { name: "completion_bytes", .. })),
            "{text}"
        );
    }
    assert!(matches!(
        compile(r#"{"type": "object", "minProperties": 100000}"#),
        Err(SchemaError::Limit { name: "completion_bytes", .. })
    ));
    let many: Vec<String> = (0..2500).map(|value| format!(r#"{{"a": {value}}}"#)).collect();
    let many = format!(r#"{{"enum": [{}]}}"#, many.join(","));
    assert!(matches!(compile(&many), Err(SchemaError::Limit { name: "threads", .. })));
    assert!(compile(r#"{"maxItems": 1000000000, "maxLength": 1000000000}"#).is_ok());
}

#[test]
fn the_verdict_on_each_keyword_is_reported() {
    let schema =
        compile(r#"{"title": "t", "minimum": 1, "format": "colour", "x-y": 1}"#).expect("a schema");
    let verdicts: Vec<_> =
        schema.occurrences().iter().map(|o| (o.pointer.as_str(), o.verdict)).collect();
    assert!(matches!(
        verdicts.as_slice(),
        [
            ("/format", Verdict::Annotation(_)),
            ("/minimum", Verdict::Enforced),
            ("/title", Verdict::Annotation(_)),
            ("/x-y", Verdict::Annotation(_)),
        ]
    ));
}

#[test]
fn messages_contain_no_control_characters_of_the_schema() {
    let text = r##"{"properties": {"\u001b]0;x\u0007\n": {"$ref": "#/no"}}}"##;
    let message = compile(text).expect_err("refused").to_string();
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.contains("\\u{1b}"), "{message}");
}

#[test]
fn more_scopes_than_can_be_told_apart_are_a_limit_and_not_an_empty_branch() {
    let scopes = vec![r#"{"unevaluatedProperties": {"type": "string"}}"#; 33].join(", ");
    let branch = format!(r#"{{"type": "object", "allOf": [{scopes}]}}"#);
    let overlapping = format!(
        r#"{{"oneOf": [{branch}, {{"type": "object", "additionalProperties": {{"type": "string"}}}}]}}"#
    );
    for schema in [branch, overlapping] {
        assert!(matches!(compile(&schema), Err(SchemaError::Limit { name: "scopes", .. })));
    }
}

#[test]
fn a_value_that_is_too_long_to_be_completed_is_undecided_and_others_are_offered() {
    let schema = compile(r#"{"minLength": 1000000000, "minItems": 1000000000}"#).expect("a schema");
    let mut automaton = SchemaAutomaton::new(&std::sync::Arc::new(schema));
    let start = automaton.start();
    assert_eq!(automaton.step(start, b'"'), UNDECIDED);
    assert!(automaton.last_limit().is_some_and(|limit| limit.contains("completion_bytes")));
    for byte in *b"n1t{" {
        assert!(automaton.step(start, byte) > UNDECIDED, "{}", char::from(byte));
    }
}
