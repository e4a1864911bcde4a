//! Schemas made to hurt: deep, large, exponential, endless, contradictory, malformed.

use std::fmt::Write;

/// A hostile schema text.
pub(crate) struct Hostile {
    pub(crate) name: String,
    pub(crate) schema: String,
}

/// All of them.
pub(crate) fn cases() -> Vec<Hostile> {
    let mut cases = Vec::new();
    for add in [nested, patterns, large, counts, cycles, contradictions, numbers, texts, products] {
        add(&mut |name: &str, schema: String| {
            cases.push(Hostile { name: name.to_owned(), schema });
        });
    }
    cases
}

type Add<'a> = &'a mut dyn FnMut(&str, String);

/// `count` pieces, each made from its index, with commas.
fn list(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(",")
}

fn nested(add: Add) {
    for (open, inner, close) in [
        (r#"{"not":"#, "true", "}"),
        (r#"{"items":"#, "true", "}"),
        (r#"{"properties":{"a":"#, "true", "}}"),
        (r#"{"allOf":["#, "true", "]}"),
        (r#"{"if":"#, "true", "}"),
        ("[", "", "]"),
        (r#"{"a":"#, "1", "}"),
    ] {
        for depth in [400, 10_000] {
            let text = [open.repeat(depth), inner.to_owned(), close.repeat(depth)].concat();
            if open.starts_with("{\"a\"") || open == "[" {
                add(&format!("const {open} {depth} deep"), format!(r#"{{"const": {text}}}"#));
            } else {
                add(&format!("{open} {depth} deep"), text);
            }
        }
    }
    let chain = list(10_000, |i| format!(r##""d{i}": {{"$ref": "#/$defs/d{}"}}"##, i + 1));
    add(
        "a chain of 10,000 references",
        format!(
            r##"{{"$ref": "#/$defs/d0", "$defs": {{{chain}, "d10000": {{"type": "null"}}}}}}"##
        ),
    );
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let ladder = list(60, |i| {
            let next = i + 1;
            format!(
                r##""d{i}": {{"{keyword}": [{{"$ref": "#/$defs/d{next}"}}, {{"$ref": "#/$defs/d{next}"}}]}}"##
            )
        });
        add(
            &format!("{keyword} of itself doubled 60 times"),
            format!(
                r##"{{"$ref": "#/$defs/d0", "$defs": {{{ladder}, "d60": {{"type": "null"}}}}}}"##
            ),
        );
    }
    let tree = list(60, |i| {
        let next = i + 1;
        format!(
            r##""d{i}": {{"type": "object", "required": ["a", "b"], "properties": {{"a": {{"$ref": "#/$defs/d{next}"}}, "b": {{"$ref": "#/$defs/d{next}"}}}}}}"##
        )
    });
    add(
        "a required tree of 2^60 leaves",
        format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{tree}, "d60": {{"type": "null"}}}}}}"##),
    );
}

fn patterns(add: Add) {
    let million = 1_000_000;
    for (name, pattern) in [
        ("1 MB of letters", "a".repeat(million)),
        ("1 MB of alternatives", "(a|b)".repeat(million / 5)),
        ("1 MB of optional letters", "a?".repeat(million / 2)),
        ("1 MB of classes", "[a-z]*".repeat(million / 6)),
        ("1 MB of choices", list(million / 8, |i| format!("w{i:06}")).replace(',', "|")),
        ("100,000 groups in groups", "(".repeat(100_000) + &")".repeat(100_000)),
        ("stars of stars", "(".repeat(50) + "a" + &"*)*".repeat(50)),
        ("(a*)*", "(a*)*".to_owned()),
        ("^(a*)*b$", "^(a*)*b$".to_owned()),
        ("^(a|a)*$", "^(a|a)*$".to_owned()),
        ("^(a|aa)+$", "^(a|aa)+$".to_owned()),
        ("^(x+x+)+y$", "^(x+x+)+y$".to_owned()),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "^(([a-z])+.)+[A-Z]([a-z])+$".to_owned()),
        (".*.*.*.*.*=.*", ".*.*.*.*.*=.*".to_owned()),
        ("a{1000000}", "^a{1000000}$".to_owned()),
        ("(a{1000}){1000}", "^(a{1000}){1000}$".to_owned()),
        ("(a{0,1000}){0,1000}", "^(a{0,1000}){0,1000}$".to_owned()),
        ("a{99999999999999999999}", "a{99999999999999999999}".to_owned()),
        ("[ab]*a[ab]{30}", "^[ab]*a[ab]{30}$".to_owned()),
        ("(.*a.{20}|.*b.{20})", "^(.*a.{20}|.*b.{20})$".to_owned()),
        ("\\p{L}{500}", "^\\\\p{L}{500}$".to_owned()),
        ("[^\\x00-\\x7f]{2000}", "^[^\\\\x00-\\\\x7f]{2000}$".to_owned()),
        ("40 lookaheads", "(?=.*a)(?!.*b.{4})".repeat(20)),
        ("lookbehinds", "^(?:(?<=a)b|(?<!b)a){100}$".to_owned()),
        ("lookaheads in stars", "^(?:(?=a*b)[ab])*$".to_owned()),
        ("a lone surrogate", "\\ud800".to_owned()),
    ] {
        add(
            &format!("pattern: {name}"),
            format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#),
        );
    }
    let many = list(1000, |i| format!(r#""x{i}y*$": {{"minLength": {i}}}"#));
    add("1,000 patternProperties", format!(r#"{{"patternProperties": {{{many}}}}}"#));
    let all = list(40, |i| {
        format!(r#"{{"pattern": "[a-{}].{{{i}}}x"}}"#, char::from(b'b' + i as u8 % 20))
    });
    add("40 patterns at once", format!(r#"{{"type": "string", "allOf": [{all}]}}"#));
}

fn large(add: Add) {
    let properties = list(50_000, |i| format!(r#""property{i}": {{"type": "integer"}}"#));
    let names = list(50_000, |i| format!(r#""property{i}""#));
    add("50,000 properties", format!(r#"{{"properties": {{{properties}}}}}"#));
    add(
        "50,000 properties, nothing else",
        format!(
            r#"{{"type": "object", "properties": {{{properties}}}, "additionalProperties": false}}"#
        ),
    );
    add(
        "50,000 required properties",
        format!(r#"{{"type": "object", "properties": {{{properties}}}, "required": [{names}]}}"#),
    );
    add("50,000 required names", format!(r#"{{"type": "object", "required": [{names}]}}"#));
    let dependent = list(2000, |i| format!(r#""p{i}": ["p{}"]"#, i + 1));
    add(
        "2,000 dependent names",
        format!(r#"{{"type": "object", "dependentRequired": {{{dependent}}}}}"#),
    );
    let strings = list(100_000, |i| format!(r#""value {i}""#));
    let numbers = list(100_000, |i| (i * 7).to_string());
    let mixed = list(100_000, |i| match i % 4 {
        0 => format!("{i}"),
        1 => format!("\"{i}\""),
        2 => format!("{i}.5"),
        _ => format!("\"\\u00e9{i}\""),
    });
    add("an enum of 100,000 strings", format!(r#"{{"enum": [{strings}]}}"#));
    add("an enum of 100,000 integers", format!(r#"{{"enum": [{numbers}]}}"#));
    add("an enum of 100,000 scalars", format!(r#"{{"enum": [{mixed}]}}"#));
    add("no value of 100,000", format!(r#"{{"not": {{"enum": [{mixed}]}}}}"#));
    add(
        "distinct values of 100,000",
        format!(
            r#"{{"type": "array", "uniqueItems": true, "items": {{"enum": [{strings}]}}, "minItems": 3}}"#
        ),
    );
    let objects = list(20_000, |i| format!(r#"{{"a": {i}, "b": [{i}]}}"#));
    add("an enum of 20,000 objects", format!(r#"{{"enum": [{objects}]}}"#));
    add("a constant of 1 MB", format!(r#"{{"const": "{}"}}"#, "ab".repeat(500_000)));
    add("a constant of 100,000 items", format!(r#"{{"const": [{numbers}]}}"#));
    add(
        "a key of 1 MB",
        format!(r#"{{"required": ["{}"], "type": "object"}}"#, "k".repeat(1_000_000)),
    );
    let branches = list(5000, |i| {
        format!(
            r#"{{"properties": {{"kind": {{"const": "k{i}"}}, "v{i}": {{"type": "integer"}}}}, "required": ["kind"], "type": "object"}}"#
        )
    });
    for keyword in ["anyOf", "oneOf"] {
        add(&format!("{keyword} of 5,000 objects"), format!(r#"{{"{keyword}": [{branches}]}}"#));
    }
}

fn counts(add: Add) {
    for keyword in [
        "maxItems",
        "minItems",
        "maxLength",
        "minLength",
        "maxProperties",
        "minProperties",
        "minContains",
        "maxContains",
    ] {
        for count in ["1000000000", "1e9", "99999999999999999999999", "1e400", "1e1000000"] {
            add(
                &format!("{keyword} {count}"),
                format!(r#"{{"contains": {{"type": "integer"}}, "{keyword}": {count}}}"#),
            );
        }
    }
    for keyword in ["minLength", "minItems", "minProperties"] {
        add(
            &format!("{keyword} of a billion, of any type"),
            format!(r#"{{"{keyword}": 1000000000}}"#),
        );
        add(
            &format!("{keyword} of 100,000"),
            format!(r#"{{"{keyword}": 100000, "type": ["string", "array", "object"]}}"#),
        );
    }
    add(
        "a billion distinct items",
        r#"{"type": "array", "uniqueItems": true, "minItems": 1000000000}"#.to_owned(),
    );
    add(
        "a thousand distinct integers",
        r#"{"type": "array", "uniqueItems": true, "minItems": 1000, "items": {"type": "integer"}}"#
            .to_owned(),
    );
    add(
        "more distinct booleans than there are",
        r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "boolean"}}"#
            .to_owned(),
    );
    add(
        "a pattern with a billion letters",
        r#"{"pattern": "^(ab)*$", "minLength": 999999999, "type": "string"}"#.to_owned(),
    );
}

fn cycles(add: Add) {
    for (name, schema) in [
        ("itself", r##"{"$ref": "#"}"##),
        ("itself in allOf", r##"{"allOf": [{"$ref": "#"}]}"##),
        ("itself in anyOf", r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}"##),
        ("itself in oneOf", r##"{"oneOf": [{"$ref": "#"}, {"type": "null"}]}"##),
        ("not itself", r##"{"not": {"$ref": "#"}}"##),
        ("not not itself", r##"{"not": {"not": {"$ref": "#"}}}"##),
        ("itself in if", r##"{"if": {"$ref": "#"}, "then": false}"##),
        (
            "itself in dependentSchemas",
            r##"{"dependentSchemas": {"a": {"$ref": "#"}}, "required": ["a"]}"##,
        ),
        (
            "a ring",
            r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##,
        ),
        ("an endless list", r##"{"type": "array", "minItems": 1, "items": {"$ref": "#"}}"##),
        (
            "an endless object",
            r##"{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}"##,
        ),
        (
            "endless both ways",
            r##"{"type": "object", "required": ["a", "b"], "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}"##,
        ),
        ("names of itself", r##"{"propertyNames": {"$ref": "#"}, "minProperties": 1}"##),
        ("contains itself", r##"{"type": "array", "contains": {"$ref": "#"}}"##),
        ("contains no such", r##"{"type": "array", "contains": {"not": {"$ref": "#"}}}"##),
        (
            "unevaluated itself",
            r##"{"unevaluatedProperties": {"$ref": "#"}, "anyOf": [{"$ref": "#"}, true]}"##,
        ),
        (
            "a dynamic ring",
            r##"{"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}, {"items": {"$dynamicRef": "#a"}}]}"##,
        ),
        (
            "lists of distinct lists",
            r##"{"type": "array", "uniqueItems": true, "items": {"$ref": "#"}, "minItems": 2}"##,
        ),
    ] {
        add(&format!("cycle: {name}"), schema.to_owned());
    }
}

fn contradictions(add: Add) {
    for schema in [
        r#"{"type": "integer", "minimum": 1e300, "maximum": -1e300}"#,
        r#"{"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}"#,
        r#"{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-300}"#,
        r#"{"type": "string", "minLength": 5, "maxLength": 4}"#,
        r#"{"type": "array", "minItems": 1000000000, "maxItems": 999999999}"#,
        r#"{"type": "object", "minProperties": 3, "propertyNames": {"enum": ["a", "b"]}}"#,
        r#"{"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]}"#,
        r#"{"type": "string", "format": "date", "maxLength": 3}"#,
        r#"{"allOf": [{"multipleOf": 7919}, {"multipleOf": 7907}], "type": "integer", "minimum": 1, "maximum": 62615532}"#,
        r#"{"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 1}"#,
        r#"{"not": {}}"#,
        r#"{"enum": []}"#,
    ] {
        add(&format!("contradiction: {schema}"), schema.to_owned());
    }
}

fn numbers(add: Add) {
    let digits = "9".repeat(1_000_000);
    for (name, schema) in [
        ("minimum of 1 MB", format!(r#"{{"minimum": {digits}}}"#)),
        ("minimum 1e1000000", r#"{"minimum": 1e1000000}"#.to_owned()),
        ("minimum 1e999999999999", r#"{"minimum": 1e999999999999}"#.to_owned()),
        ("integers from 1e1000000", r#"{"type": "integer", "minimum": 1e1000000}"#.to_owned()),
        ("maximum 1e-1000000", r#"{"type": "number", "exclusiveMinimum": 0, "maximum": 1e-1000000}"#.to_owned()),
        ("multipleOf 1e-1000000", r#"{"type": "number", "multipleOf": 1e-1000000}"#.to_owned()),
        ("multipleOf 1e1000000", r#"{"type": "number", "multipleOf": 1e1000000, "minimum": 1}"#.to_owned()),
        ("multipleOf of 10,000 digits", format!(r#"{{"type": "integer", "multipleOf": {}7, "minimum": 1}}"#, &digits[..10_000])),
        ("multipleOf a large prime", r#"{"type": "integer", "multipleOf": 1000000007, "minimum": 1}"#.to_owned()),
        ("coprime multiples", r#"{"type": "number", "allOf": [{"multipleOf": 0.0007919}, {"multipleOf": 0.0007907}, {"multipleOf": 104729}], "minimum": 0.0001}"#.to_owned()),
        ("const 1e400", r#"{"const": 1e400}"#.to_owned()),
        ("enum of huge exponents", r#"{"enum": [1e999999999, -1e999999999, 1e-999999999]}"#.to_owned()),
        ("a constant of 1 MB of digits", format!(r#"{{"const": {digits}}}"#)),
        ("negative zero", r#"{"const": -0.0, "maximum": -0}"#.to_owned()),
    ] {
        add(&format!("number: {name}"), schema);
    }
}

fn texts(add: Add) {
    for (name, schema) in [
        ("a lone high surrogate", r#"{"const": "\ud800"}"#),
        ("a lone low surrogate", r#"{"enum": ["\udc00"]}"#),
        ("surrogates the wrong way", r#"{"properties": {"\udc00\ud800": true}}"#),
        ("half an escape", r#"{"const": "\u12"}"#),
        ("an unknown escape", r#"{"const": "\q"}"#),
        ("a surrogate in a reference", "{\"$ref\": \"#/\\ud800\"}"),
        ("a raw control character", "{\"const\": \"\u{1}\"}"),
        ("a byte order mark", "\u{feff}{\"type\": \"null\"}"),
        ("a key twice", r#"{"type": "null", "type": "string"}"#),
        ("no text", ""),
        ("spaces", "   "),
        ("two texts", "{} {}"),
        ("an open string", "{\"type\": \"nu"),
        ("a list", "[{}]"),
        ("null", "null"),
        ("a number with a zero before it", r#"{"minimum": 01}"#),
        ("NaN", r#"{"minimum": NaN}"#),
    ] {
        add(&format!("text: {name}"), schema.to_owned());
    }
}

fn products(add: Add) {
    let all = |count: usize, piece: &dyn Fn(usize) -> String| {
        format!(r#"{{"type": "object", "allOf": [{}]}}"#, list(count, piece))
    };
    for count in [20, 200] {
        add(
            &format!("{count} choices of names"),
            all(count, &|i| {
                format!(r#"{{"anyOf": [{{"required": ["a{i}"]}}, {{"required": ["b{i}"]}}]}}"#)
            }),
        );
        add(
            &format!("{count} exclusive choices of names"),
            all(count, &|i| {
                format!(r#"{{"oneOf": [{{"required": ["a{i}"]}}, {{"required": ["b{i}"]}}]}}"#)
            }),
        );
        add(
            &format!("{count} conditions"),
            all(count, &|i| {
                format!(
                    r#"{{"if": {{"properties": {{"a{i}": {{"const": 1}}}}}}, "then": {{"required": ["b{i}"]}}, "else": {{"minProperties": 1}}}}"#
                )
            }),
        );
        add(
            &format!("{count} negations"),
            all(count, &|i| format!(r#"{{"not": {{"required": ["a{i}", "b{i}"]}}}}"#)),
        );
    }
    let contains = list(12, |i| format!(r#"{{"contains": {{"multipleOf": {}}}}}"#, i + 2));
    add("12 things to contain", format!(r#"{{"type": "array", "allOf": [{contains}]}}"#));
    let mut deep = String::from(r#"{"type": "string"}"#);
    for level in 0..12 {
        let mut next = String::new();
        write!(
            next,
            r#"{{"oneOf": [{deep}, {{"type": "object", "properties": {{"l{level}": {deep}}}}}]}}"#
        )
        .expect("writing to a string");
        deep = next;
    }
    add("oneOf in oneOf, 12 deep", deep);
}
