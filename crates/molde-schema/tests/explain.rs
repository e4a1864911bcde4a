//! Why texts are rejected: the byte, the keyword and its place.

use molde_schema::{CompileOptions, CompiledSchema, NumberStyle, Order, Style};

fn compile(schema: &str, options: CompileOptions) -> CompiledSchema {
    CompiledSchema::compile(schema, &options).expect("the schema is one")
}

/// The offset of the first bad byte, and the reasons as `instance location keyword`.
fn explain(schema: &CompiledSchema, text: &str, is_whole: bool) -> Option<(usize, Vec<String>)> {
    let rejection = schema.explain(text.as_bytes(), is_whole)?;
    let reasons = rejection.reasons.iter().map(|reason| {
        assert!(!reason.expected.is_empty());
        let joint = if reason.is_joint { " +" } else { "" };
        format!("{} {} {}{joint}", reason.instance, reason.location, reason.keyword)
    });
    Some((rejection.offset, reasons.collect()))
}

#[track_caller]
fn check(schema: &str, text: &str, expected: &[&str]) {
    let compiled = compile(schema, CompileOptions::default());
    let (offset, reasons) = explain(&compiled, text, false).expect("the text is rejected");
    assert_eq!(offset + 1, text.len(), "{text}: {reasons:?}");
    assert_eq!(reasons, expected, "{schema}\n{text}");
}

const LESSON: &str = r#"{"type": "object", "additionalProperties": false,
    "properties": {"trimestre": {"anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]}},
    "required": ["trimestre"]}"#;

#[test]
fn digits_outside_of_a_range_are_removed_by_its_ends() {
    let at = "/trimestre /properties/trimestre/anyOf/0";
    for (digit, keyword) in [("0", "minimum"), ("5", "maximum"), ("6", "maximum"), ("8", "maximum")]
    {
        check(LESSON, &format!(r#"{{"trimestre": {digit}"#), &[&format!("{at} {keyword}")]);
    }
    // Whatever exponents may follow, an integer that begins with 5 is above 4.
    let options = CompileOptions { number_style: NumberStyle::Any, ..CompileOptions::default() };
    let schema = compile(LESSON, options);
    let found = explain(&schema, r#"{"trimestre": 5"#, false);
    assert_eq!(found, Some((14, vec![format!("{at} maximum")])));
    assert_eq!(explain(&schema, r#"{"trimestre": 0"#, false), None, "0.1e1 is 1");
}

#[test]
fn a_value_of_no_branch_is_told_all_their_types() {
    check(
        LESSON,
        r#"{"trimestre": ""#,
        &[
            "/trimestre /properties/trimestre/anyOf/0 type",
            "/trimestre /properties/trimestre/anyOf/1 type",
        ],
    );
}

#[test]
fn each_keyword_is_named_where_it_alone_forbids_the_byte() {
    let mut wrong = Vec::new();
    for (schema, text, expected) in [
        (r#"{"type": "integer"}"#, "\"", "  type"),
        (r#"{"minimum": 10}"#, "-", "  minimum"),
        (r#"{"exclusiveMaximum": 3, "minimum": 0}"#, "4", "  exclusiveMaximum"),
        (r#"{"items": {"multipleOf": 5}}"#, "[12,", "/0 /items multipleOf"),
        (r#"{"minLength": 3}"#, "\"ab\"", "  minLength"),
        (
            r#"{"items": {"properties": {"a": {"minLength": 3}}}}"#,
            "[{\"a\": \"ab\"",
            "/0/a /items/properties/a minLength",
        ),
        (
            r#"{"items": {"items": {"minItems": 2}}}"#,
            "[[[null, 1], [1]",
            "/0/1 /items/items minItems",
        ),
        (r#"{"maxLength": 2}"#, "\"abc", "  maxLength"),
        (r#"{"pattern": "^a+$", "maxLength": 9}"#, "\"ab", "  pattern"),
        (r#"{"pattern": "^[a-z]{1,999}$"}"#, "\"\"", "  pattern"),
        (r#"{"format": "date"}"#, "\"20x", "  format"),
        (r#"{"enum": ["aa", "b", 3]}"#, "\"ab", "  enum"),
        (r#"{"enum": ["aa", {"k": 1}]}"#, r#"{"k": 2"#, "  enum"),
        (r#"{"const": "aa"}"#, "\"b", "  const"),
        (r#"{"items": false}"#, "[1", "/0  items"),
        (r#"{"prefixItems": [{"type": "null"}]}"#, "[1", "/0 /prefixItems/0 type"),
        (r#"{"minItems": 2}"#, "[null]", "  minItems"),
        (r#"{"maxItems": 1}"#, "[null,", "  maxItems"),
        (r#"{"contains": {"const": 7}}"#, "[null]", "  contains"),
        (r#"{"contains": {"const": 7}, "maxContains": 1}"#, "[7, 7]", "  maxContains"),
        (r#"{"uniqueItems": true}"#, "[1, 1]", "  uniqueItems"),
        (r#"{"required": ["a"]}"#, "{}", "  required"),
        (r#"{"properties": {"a": {"type": "null"}}}"#, r#"{"a": 1"#, "/a /properties/a type"),
        (
            r#"{"properties": {"a": true}, "additionalProperties": false}"#,
            r#"{"b"#,
            "  additionalProperties",
        ),
        (r#"{"properties": {"a": false}}"#, r#"{"a""#, "  properties"),
        (
            r#"{"additionalProperties": {"type": "null"}}"#,
            r#"{"b": 1"#,
            "/b /additionalProperties type",
        ),
        (
            r#"{"patternProperties": {"^x": {"maximum": 3}}}"#,
            r#"{"x/y": 4"#,
            "/x~1y /patternProperties/^x maximum",
        ),
        (r#"{"propertyNames": {"maxLength": 1}}"#, r#"{"ab"#, "  propertyNames"),
        (r#"{"minProperties": 1}"#, "{}", "  minProperties"),
        (r#"{"maxProperties": 1}"#, r#"{"a": 1,"#, "  maxProperties"),
        (r#"{"not": {"type": "string"}}"#, "\"", "  not"),
        (
            r#"{"dependentRequired": {"a": ["b"]}, "properties": {"a": true, "b": true}}"#,
            r#"{"a": 1}"#,
            "  dependentRequired",
        ),
        (
            r#"{"unevaluatedProperties": false, "properties": {"a": true}}"#,
            r#"{"b"#,
            "  unevaluatedProperties",
        ),
        (
            r##"{"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"items": {"maximum": 3}}}}"##,
            "[-2, 5",
            "/1 /$defs/a~1b/items maximum",
        ),
        (r#"{"allOf": [{"maximum": 3}, {"minimum": 0}]}"#, "-", " /allOf/1 minimum"),
    ] {
        let found = explain(&compile(schema, CompileOptions::default()), text, false);
        if found != Some((text.len() - 1, vec![expected.to_owned()])) {
            wrong.push(format!("{schema} {text}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_alternatives_those_count_that_read_furthest() {
    let schema = r#"{"oneOf": [
        {"properties": {"kind": {"const": "a"}, "n": {"maximum": 3}}, "required": ["kind"]},
        {"properties": {"kind": {"const": "b"}, "n": {"type": "null"}}, "required": ["kind"]}]}"#;
    check(schema, r#"{"kind": "a", "n": 7"#, &["/n /oneOf/0/properties/n maximum"]);
    check(schema, r#"{"kind": "b", "n": 7"#, &["/n /oneOf/1/properties/n type"]);
}

#[test]
fn too_many_branches_of_one_of_are_said_so() {
    let schema = r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}"#;
    check(schema, r#"{"a": 1, "b""#, &["  oneOf"]);
}

#[test]
fn a_conditional_is_told_by_what_follows_from_it() {
    let schema = r#"{"properties": {"a": {"type": "integer"}, "b": true},
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}}"#;
    check(schema, r#"{"a": 1}"#, &[" /then required"]);
}

#[test]
fn what_only_keywords_together_forbid_is_told_with_all_of_them() {
    let schema = r#"{"type": "integer", "minimum": 3, "maximum": 7, "multipleOf": 5}"#;
    check(schema, "7", &["  maximum +", "  multipleOf +"]);
}

#[test]
fn what_json_or_its_style_forbids_has_no_keyword() {
    for text in ["{\"a\":1", "[1,2", "[1 ", "{\"a\": 1, \"a\"", "[\"\\u0041", "{1", "[1e5", "}"] {
        let schema = compile("true", CompileOptions::default());
        let rejection = schema.explain(text.as_bytes(), false).expect("it is rejected");
        let [reason] = rejection.reasons.as_slice() else { panic!("{text}: {rejection:?}") };
        assert_eq!((reason.keyword.as_str(), reason.location.as_str()), ("", ""), "{text}");
    }
    let schema = compile(r#"{"properties": {"a": true, "b": true}}"#, CompileOptions::default());
    let rejection = schema.explain(br#"{"b": 1, "a""#, false).expect("b comes after a");
    assert!(rejection.reasons[0].expected.contains("order"), "{rejection:?}");
    let options = CompileOptions { order: Order::Any, ..CompileOptions::default() };
    let any = compile(r#"{"properties": {"a": true, "b": true}}"#, options);
    assert_eq!(any.explain(br#"{"b": 1, "a""#, false), None);
}

#[test]
fn required_members_that_were_passed_over_are_named() {
    let schema = r#"{"properties": {"a": true, "b": true}, "required": ["a"]}"#;
    check(schema, r#"{"b"#, &["  required"]);
    check(&format!(r#"{{"items": {schema}}}"#), r#"[{"b"#, &["/0 /items required"]);
}

#[test]
fn a_text_that_only_cannot_end_is_told_at_its_end() {
    let schema = compile(r#"{"minimum": 10, "type": "integer"}"#, CompileOptions::default());
    assert_eq!(explain(&schema, "5", false), None);
    assert_eq!(explain(&schema, "5", true), Some((1, vec!["  minimum".to_owned()])));
    assert_eq!(explain(&schema, "50", true), None);
    let object = compile("{}", CompileOptions::default());
    let rejection = object.explain(b"{\"a\": 1", true).expect("it is not complete");
    assert_eq!(rejection.offset, 7);
    assert!(rejection.reasons[0].expected.contains("not complete"), "{rejection:?}");
    assert!(!rejection.may_end);
    let next: Vec<u8> = (0..=255)
        .filter(|byte| rejection.next[usize::from(byte / 64)] >> (byte % 64) & 1 == 1)
        .collect();
    assert!(next.contains(&b'}') && next.contains(&b',') && next.contains(&b'0'));
    assert!(!next.contains(&b']') && !next.contains(&b'x'));
}

#[test]
fn live_keywords_are_those_of_the_branches_that_can_still_hold() {
    let live = |schema: &str, text: &str| -> Vec<String> {
        let options = CompileOptions { style: Style::Spaced, ..CompileOptions::default() };
        let found = compile(schema, options).live_keywords(text.as_bytes());
        found
            .into_iter()
            .map(|live| format!("{} {} {}", live.instance, live.location, live.keyword))
            .collect()
    };
    let root = ["  type", "  properties", "  additionalProperties", "  required"];
    let value = "/trimestre /properties/trimestre";
    let of = |own: &[&str]| -> Vec<String> {
        let own = own.iter().map(|end| format!("{value}{end}"));
        own.chain(root.map(str::to_owned)).collect()
    };
    assert_eq!(
        live(LESSON, r#"{"trimestre": "#),
        of(&[" anyOf", "/anyOf/0 type", "/anyOf/0 minimum", "/anyOf/0 maximum", "/anyOf/1 type"])
    );
    assert_eq!(live(LESSON, r#"{"trimestre": n"#), of(&[" anyOf", "/anyOf/1 type"]));
    assert_eq!(live(LESSON, "{"), root);
    assert_eq!(live(LESSON, r#"{"trimestre": 3}"#), root);
    assert_eq!(live("true", "[1, "), Vec::<String>::new());
}

/// Low and high as in the lesson: the bound of the one is the value of the other.
const RELATED: &str = r#"{"type": "object", "required": ["bajo", "alto"], "additionalProperties": false,
  "properties": {
    "bajo": {"type": ["number", "null"]},
    "alto": {"anyOf": [{"type": "number", "minimum": {"$data": "1/bajo"}}, {"type": "null"}]}}}"#;

#[test]
fn a_bound_that_is_read_from_the_instance_is_told_with_its_value() {
    let schema = compile(RELATED, CompileOptions::default());
    let reasons = |text: &str| -> Vec<String> {
        let rejection = schema.explain(text.as_bytes(), false).expect("it is rejected");
        assert_eq!(rejection.offset, text.len() - 1, "{text}");
        rejection.reasons.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        reasons(r#"{"bajo": 5, "alto": 3}"#),
        ["`minimum` at /properties/alto/anyOf/0: expected a number at least the value of \
             /bajo, which is 5"]
    );
    assert_eq!(
        reasons(r#"{"bajo": null, "alto": 3"#),
        ["`minimum` at /properties/alto/anyOf/0: expected no number, since the value of /bajo \
             is no number"]
    );
    let live = schema.live_keywords(br#"{"bajo": 12.5, "alto": 1"#);
    let minimum = live.iter().find(|live| live.keyword == "minimum").expect("it has a say");
    assert_eq!(minimum.expected, "a number at least the value of /bajo, which is 12.5");
    assert_eq!((&*minimum.instance, &*minimum.location), ("/alto", "/properties/alto/anyOf/0"));
}
