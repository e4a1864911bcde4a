//! `molde lint` and `molde trace`: what is printed, and the exit codes.

mod support;

use std::fmt::Write;

use serde_json::{Map, Value, json};

use support::Sandbox;

const LESSON: &str = r#"{"title": "A forecast", "type": "object", "additionalProperties": false,
    "properties": {"trimestre": {"anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]}},
    "required": ["trimestre"]}"#;

/// A sandbox with a tokenizer of all bytes and some merges, as `t.json`, and the lesson's schema.
fn sandbox(test: &str) -> Sandbox {
    let sandbox = Sandbox::new(test);
    let mut vocabulary = Map::new();
    let mut next = 0x100;
    let mut tokens: Vec<String> = Vec::new();
    for byte in 0..=255_u8 {
        // The alphabet of byte-level tokenizers: what cannot be printed is shifted.
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..);
        let code = if printable { u32::from(byte) } else { next };
        next += u32::from(!printable);
        tokens.push(char::from_u32(code).expect("below the surrogates").to_string());
    }
    let mut merges = Vec::new();
    for (left, right) in [
        ("t", "r"),
        ("tr", "i"),
        ("{", "\""),
        ("\"", ":"),
        ("Ġ", "\""),
        ("n", "u"),
        ("l", "l"),
        ("nu", "ll"),
    ] {
        merges.push(format!("{left} {right}"));
        tokens.push(format!("{left}{right}"));
    }
    for (id, token) in tokens.iter().enumerate() {
        vocabulary.insert(token.clone(), json!(id));
    }
    let pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let end = tokens.len();
    let tokenizer = json!({
        "added_tokens": [{"id": end, "content": "<|im_end|>", "special": true}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ]},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    });
    sandbox.file("t.json", tokenizer.to_string());
    sandbox.file("lesson.json", LESSON);
    sandbox
}

/// The exit code and the lines of `molde trace --tokenizer t.json ARGUMENTS`.
fn trace(sandbox: &Sandbox, arguments: &[&str], code: i32) -> String {
    let arguments = [&["trace", "--tokenizer", "t.json"], arguments].concat();
    sandbox.run(&arguments).exits(code).output()
}

#[test]
fn every_keyword_is_listed_with_its_verdict() {
    let sandbox = sandbox("lint");
    let run = sandbox.run(&["lint", "--schema", "lesson.json"]).exits(0);
    assert_eq!(run.errors(), "");
    let rows: Vec<String> = run
        .output()
        .lines()
        .map(|line| line.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "enforced /additionalProperties additionalProperties",
        "enforced /properties properties",
        "enforced /properties/trimestre/anyOf anyOf",
        "enforced /properties/trimestre/anyOf/0/maximum maximum",
        "enforced /properties/trimestre/anyOf/0/minimum minimum",
        "enforced /properties/trimestre/anyOf/0/type type",
        "enforced /properties/trimestre/anyOf/1/type type",
        "enforced /required required",
        "annotation /title title",
        "enforced /type type",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_schema_that_is_refused_has_its_whole_table_and_exits_with_2() {
    let sandbox = sandbox("lint-refused");
    let schema = r#"{"title": "x", "properties": {"a": {"pattern": "(a)\\1"}, "b": {"minLength": 1}},
        "items": {"pattern": "(b)\\1"}}"#;
    sandbox.file("s.json", schema);
    let run = sandbox.run(&["lint", "--schema", "s.json", "--json"]).exits(2);
    assert!(run.errors().contains("2 keywords cannot be enforced"), "{}", run.errors());
    let table: Value = serde_json::from_str(&run.output()).expect("the output is JSON");
    assert_eq!(table["status"], "refused");
    let mut rows = String::new();
    for row in table["keywords"].as_array().expect("a list") {
        let text = |name: &str| row[name].as_str().expect("a text");
        writeln!(rows, "{} {} {}", text("pointer"), text("keyword"), text("verdict"))
            .expect("a string takes all");
        assert_eq!(text("verdict") == "enforced", text("reason").is_empty(), "{row}");
    }
    let expected = "/items items enforced\n/items/pattern pattern refused\n\
        /properties properties enforced\n/properties/a/pattern pattern refused\n\
        /properties/b/minLength minLength enforced\n/title title annotation\n";
    assert_eq!(rows, expected);
}

#[test]
fn what_no_value_satisfies_is_told_from_what_is_no_schema() {
    let sandbox = sandbox("lint-kinds");
    for (schema, status, message) in [
        (
            r#"{"type": "number", "minimum": 2, "maximum": 1}"#,
            "unsatisfiable",
            "no value satisfies",
        ),
        (r#"{"type": "text"}"#, "malformed", "1 keyword malformed"),
        ("{", "syntax", "not JSON"),
    ] {
        sandbox.file("s.json", schema);
        let run = sandbox.run(&["lint", "--schema", "s.json", "--json"]).exits(2);
        assert!(run.errors().contains(message), "{schema}: {}", run.errors());
        let table: Value = serde_json::from_str(&run.output()).expect("the output is JSON");
        assert_eq!(table["status"], status, "{schema}");
    }
}

#[test]
fn formats_are_annotations_by_option() {
    let sandbox = sandbox("lint-formats");
    sandbox.file("s.json", r#"{"format": "date"}"#);
    let verdict = |arguments: &[&str]| {
        let run = sandbox.run(&[&["lint", "--schema", "s.json"], arguments].concat()).exits(0);
        run.output().split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(verdict(&[]).as_deref(), Some("enforced"));
    assert_eq!(verdict(&["--formats", "annotate"]).as_deref(), Some("annotation"));
    let date = ["--schema", "s.json", "\"x\""];
    trace(&sandbox, &date, 3);
    trace(&sandbox, &[&["--formats", "annotate"], &date[..]].concat(), 0);
}

#[test]
fn references_are_found_in_the_registry_by_name_and_by_id() {
    let sandbox = sandbox("registry");
    sandbox.file(
        "s.json",
        r#"{"prefixItems": [{"$ref": "other.json"}, {"$ref": "urn:x:y#/$defs/n"}]}"#,
    );
    std::fs::create_dir(sandbox.folder.join("r")).expect("the sandbox can be written to");
    sandbox.file("r/other.json", r#"{"type": "null"}"#);
    sandbox.file("named.json", r#"{"$id": "urn:x:y", "$defs": {"n": {"maximum": 1}}}"#);
    let run = sandbox.run(&["lint", "--schema", "s.json", "--registry", "r"]).exits(2);
    assert!(run.output().contains("/prefixItems/1/$ref"), "{}", run.output());
    let registry = ["--registry", "r", "--registry", "named.json"];
    sandbox.run(&[&["lint", "--schema", "s.json"], &registry[..]].concat()).exits(0);
    trace(&sandbox, &[&registry[..], &["--schema", "s.json", "[null, 1]"]].concat(), 0);
    let output =
        trace(&sandbox, &[&registry[..], &["--schema", "s.json", "[null, 2]"]].concat(), 3);
    assert!(output.contains("`maximum` at urn:x:y#/$defs/n"), "{output}");
    trace(&sandbox, &["--schema", "s.json", "[null, 1]"], 2);
}

#[test]
fn a_text_is_traced_token_by_token() {
    let sandbox = sandbox("trace");
    let output = trace(
        &sandbox,
        &["--schema", "lesson.json", "--numbers", "plain", r#"{"trimestre": 3}"#],
        0,
    );
    let rows: Vec<Vec<&str>> =
        output.lines().map(|line| line.split_whitespace().collect()).collect();
    let texts: Vec<&str> = rows.iter().filter_map(|row| row.last()).copied().collect();
    assert_eq!(texts[..2], [r#""{\"""#, r#""tri""#], "{output}");
    assert_eq!(rows.last().expect("a line").join(" "), "accepted and complete, 16 bytes");
    // After `3` of a plain integer up to 4 nothing but `}` can come.
    assert_eq!(rows[rows.len() - 3][1..], ["forced", "1", "forced", r#""}""#], "{output}");
    let ids: Vec<u32> = rows[..rows.len() - 2]
        .iter()
        .map(|row| row[0].parse().expect("the id of a token"))
        .collect();
    assert_eq!(ids[0], 258, "the third of the merges");
}

#[test]
fn a_rejection_names_the_byte_the_keyword_and_its_place() {
    let sandbox = sandbox("trace-rejected");
    for digit in ["5", "6", "8"] {
        let text = format!(r#"{{"trimestre": {digit}}}"#);
        let output = trace(&sandbox, &["--schema", "lesson.json", &text], 3);
        assert!(output.contains("rejected at byte 14"), "{output}");
        assert!(output.contains("`maximum` at /properties/trimestre/anyOf/0: "), "{output}");
        assert!(!output.contains("anyOf/1"), "{output}");
    }
    let plain = ["--schema", "lesson.json", "--numbers", "plain", r#"{"trimestre": 0}"#];
    let output = trace(&sandbox, &plain, 3);
    assert!(output.contains("`minimum` at /properties/trimestre/anyOf/0: "), "{output}");
    let json = trace(&sandbox, &["--schema", "lesson.json", "--json", "{}"], 3);
    let last: Value = serde_json::from_str(json.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["outcome"], "rejected");
    assert_eq!(last["byte"], 1);
    assert_eq!(last["reasons"][0]["keyword"], "required");
    assert_eq!(last["next"], json!(["\""]));
}

#[test]
fn a_text_that_is_not_complete_exits_with_3() {
    let sandbox = sandbox("trace-incomplete");
    for text in ["", "{", r#"{"trimestre": 3"#] {
        let output = trace(&sandbox, &["--schema", "lesson.json", "--", text], 3);
        assert!(output.contains(&format!("not complete after {} bytes", text.len())), "{output}");
    }
    sandbox.file("s.json", r#"{"type": "integer", "minimum": 10}"#);
    let output = trace(&sandbox, &["--schema", "s.json", "5"], 3);
    assert!(output.contains("`minimum` at the root"), "{output}");
    trace(&sandbox, &["--schema", "s.json", "55"], 0);
    let output = trace(&sandbox, &["--schema", "s.json", "-5"], 3);
    assert!(output.contains("rejected at byte 0"), "{output}");
}

#[test]
fn options_say_how_texts_may_be_written() {
    let sandbox = sandbox("trace-options");
    sandbox.file("s.json", r#"{"properties": {"a": {"type": "integer"}, "b": true}}"#);
    for (options, text, code) in [
        (&[][..], r#"{"a": 1, "b": []}"#, 0),
        (&[], r#"{"a":1}"#, 3),
        (&["--style", "compact"], r#"{"a":1,"b":[]}"#, 0),
        (&["--style", "compact"], r#"{"a": 1}"#, 3),
        (&["--style", "flexible"], "{\n  \"a\": 1\n}", 0),
        (&[], r#"{"b": 1, "a": 1}"#, 3),
        (&["--order", "any"], r#"{"b": 1, "a": 1}"#, 0),
        (&[], r#"{"a": 1e0}"#, 0),
        (&["--numbers", "plain"], r#"{"a": 1e0}"#, 3),
        (&[], r#"{"\u0061": 1}"#, 0),
        (&["--escapes", "needed"], r#"{"\u0061": 1}"#, 3),
        (&["--segmentation", "canonical"], r#"{"a": 1}"#, 0),
        (&[], "{\"e\u{301}\": 1}", 0),
    ] {
        let arguments = [options, &["--schema", "s.json", text]].concat();
        trace(&sandbox, &arguments, code);
        let quiet = trace(&sandbox, &[&["--quiet"], &arguments[..]].concat(), code);
        assert_eq!(quiet, "", "{text}");
    }
}

#[test]
fn the_standard_input_is_a_text_of_any_bytes() {
    let sandbox = sandbox("trace-stdin");
    for (input, code) in [
        (&b"{\"trimestre\": null}"[..], 0),
        (b"{\"trimestre\": null}\n", 0),
        (b"{\"trimestre\": null}\r\n", 0),
        (b"{\"trimestre\": null}\n\n", 3),
        (b"{\"trimestre\": \xff", 3),
        (b"\xef\xbb\xbf{\"trimestre\": null}", 3),
    ] {
        for arguments in [
            &["trace", "--schema", "lesson.json", "--tokenizer", "t.json", "-"][..],
            &["trace", "--schema", "lesson.json", "--quiet"],
        ] {
            sandbox.run_with_input(arguments, input).exits(code);
        }
    }
}

#[test]
fn a_pattern_choices_and_any_object_are_constraints_too() {
    let sandbox = sandbox("trace-sources");
    for (arguments, code) in [
        (&["--regex", "[0-9]{2}|x", "12"][..], 0),
        (&["--regex", "[0-9]{2}|x", "1"], 3),
        (&["--regex", "[0-9]{2}|x", "12x"], 3),
        (&["--regex", "(a)\\1", "aa"], 2),
        (&["--regex", "-+", "--", "--"], 0),
        (&["--choices", "yes,no", "no"], 0),
        (&["--choices", "yes,no", "n"], 3),
        (&["--choices", "yes,no", "maybe"], 3),
        (&["--choice", "yes, please", "--choice", "no", "yes, please"], 0),
        (&["--any-object", r#"{"a": [1, {"b": null}]}"#], 0),
        (&["--any-object", "[]"], 3),
    ] {
        let output = trace(&sandbox, arguments, code);
        assert_eq!(output.is_empty(), code == 2, "{arguments:?}");
        assert_eq!(trace(&sandbox, &[&["--quiet"], arguments].concat(), code), "");
    }
}

#[test]
fn what_cannot_be_traced_is_bad_usage() {
    let sandbox = sandbox("trace-usage");
    sandbox.file("s.json", r#"{"properties": {"a": {"pattern": "(a)\\1"}}}"#);
    sandbox.file("broken.json", "{}");
    for arguments in [
        &["trace", "--schema", "s.json", "{}"][..],
        &["trace", "--schema", "s.json", "--quiet", "{}"],
        &["trace", "--schema", "missing.json", "{}"],
        &["trace", "--schema", "lesson.json", "--tokenizer", "missing.json", "{}"],
        &["trace", "--schema", "lesson.json", "--tokenizer", "missing.json", "--quiet", "{}"],
        &["trace", "--schema", "lesson.json", "--tokenizer", "broken.json", "{}"],
        &["trace", "{}"],
    ] {
        let run = sandbox.run(arguments).exits(2);
        assert_eq!(run.output(), "", "{arguments:?}");
        assert!(!run.errors().is_empty(), "{arguments:?}");
    }
    let errors = sandbox.run(&["trace", "--schema", "s.json", "{}"]).exits(2).errors();
    assert!(errors.contains("/properties/a/pattern"), "{errors}");
    // Without a tokenizer nothing is fetched.
    sandbox.run(&["trace", "--schema", "lesson.json", "{}"]).exits(1);
    sandbox.run(&["trace", "--schema", "lesson.json", "--quiet", "{}"]).exits(3);
}
