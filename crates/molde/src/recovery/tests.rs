use super::*;

fn recovered(text: &str, spelling: Spelling) -> (String, Vec<(String, &'static str)>) {
    let recovery = recover_bounds(text, spelling);
    let nodes = recovery.nodes.into_iter().map(|node| (node.pointer, node.status.name())).collect();
    (recovery.schema_text, nodes)
}

/// A schema of one type with this description.
fn described(type_name: &str, description: &str) -> String {
    format!(r#"{{"type":"{type_name}","description":{}}}"#, Value::from(description))
}

fn keywords(
    type_name: &str,
    description: &str,
    spelling: Spelling,
) -> Result<String, &'static str> {
    let text = described(type_name, description);
    let (found, nodes) = recovered(&text, spelling);
    match nodes.first() {
        None => Err("untouched"),
        Some((_, "recovered")) => {
            Ok(found[format!(r#"{{"type":"{type_name}""#).len()..].to_owned())
        }
        Some((_, status)) => {
            assert_eq!(found, text, "nothing changes");
            Err(status)
        }
    }
}

#[test]
fn one_reading_is_taken() {
    for (type_name, description, expected) in [
        ("integer", "{maximum: 4, minimum: 1}", r#","maximum":4,"minimum":1}"#),
        ("integer", "{default: 1, minimum: 1}", r#","minimum":1}"#),
        ("number", "{exclusiveMinimum: 0.0}", r#","exclusiveMinimum":0.0}"#),
        ("number", "{multipleOf: 1e-05}", r#","multipleOf":1e-05}"#),
        ("number", "{maximum: {'$data': '1/alto'}}", r#","maximum":{"$data":"1/alto"}}"#),
        ("string", "{pattern: ^[A-Z]{3}-\\d{4}$}", r#","pattern":"^[A-Z]{3}-\\d{4}$"}"#),
        ("string", "{maxLength: 5, pattern: a, b}", r#","maxLength":5,"pattern":"a, b"}"#),
        ("string", "{format: text}", r#","format":"text"}"#),
        ("string", "{const: ingreso}", r#","const":"ingreso"}"#),
        ("string", "{enum: ['USD', 'EUR']}", r#","enum":["USD","EUR"]}"#),
        ("array", "{uniqueItems: True}", r#","uniqueItems":true}"#),
        (
            "array",
            "{maxItems: 2, prefixItems: [{'type': 'integer'}, {'type': 'string'}], minItems: 2}",
            r#","maxItems":2,"prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2}"#,
        ),
        (
            "object",
            "{dependentRequired: {'bajo': ['alto'], 'alto': ['bajo']}}",
            r#","dependentRequired":{"bajo":["alto"],"alto":["bajo"]}}"#,
        ),
        ("integer", "A text\n\n{minimum: 1}", r#","description":"A text","minimum":1}"#),
        (
            "integer",
            "{minimum: 2}\n\n{minimum: 3}",
            r#","description":"{minimum: 2}","minimum":3}"#,
        ),
        ("string", "Name\n\n{default: None}", r#","description":"Name"}"#),
    ] {
        let found = keywords(type_name, description, Spelling::Python);
        assert_eq!(found.as_deref(), Ok(expected), "{description}");
    }
    for (type_name, description, expected) in [
        ("integer", "{minimum: 1, maximum: 4}", r#","minimum":1,"maximum":4}"#),
        ("string", r#"{pattern: "^a, minLength: 3$"}"#, r#","pattern":"^a, minLength: 3$"}"#),
        ("array", "{uniqueItems: true}", r#","uniqueItems":true}"#),
        ("string", r#"{default: "x", minLength: 1}"#, r#","minLength":1}"#),
    ] {
        let found = keywords(type_name, description, Spelling::Json);
        assert_eq!(found.as_deref(), Ok(expected), "{description}");
    }
}

#[test]
fn several_readings_are_none() {
    for (description, spelling) in [
        ("{pattern: a, maxLength: 5}", Spelling::Python),
        ("{default: a, minLength: 1}", Spelling::Python),
        ("{pattern: a}\n\n{minLength: 3}", Spelling::Python),
        (r#"{pattern: "a"}"#, Spelling::Unknown),
    ] {
        assert_eq!(keywords("string", description, spelling), Err("ambiguous"), "{description}");
    }
    let both = r#"{"type":"array","minItems":1,"description":"{minItems: 2}"}"#;
    assert_eq!(recovered(both, Spelling::Python).1, [(String::new(), "ambiguous")]);
}

#[test]
fn no_reading_is_said() {
    for description in [
        "{minimum: x}",
        "{unknown: 1}",
        "{minimum: 1, unknown: 2}",
        "{minimum: 1, minimum: 2}",
        "{minimum: 1,maximum: 2}",
        "{uniqueItems: yes}",
        "Note\n\n{see: below}",
    ] {
        assert_eq!(
            keywords("integer", description, Spelling::Python),
            Err("lost"),
            "{description}"
        );
    }
}

#[test]
fn ordinary_descriptions_stay() {
    for description in
        ["", "}", "A {b}", "The set {1, 2}", "a\n{minimum: 1}", "{minimum: 1} x", "{}"]
    {
        let found = keywords("integer", description, Spelling::Unknown);
        assert_eq!(found, Err("untouched"), "{description}");
    }
}

#[test]
fn schemas_are_found_at_every_place_and_values_are_left_alone() {
    let tail = r#"{"type":"integer","description":"{minimum: 1}"}"#;
    let text = format!(
        r#"{{"$defs":{{"a/b":{tail}}},"anyOf":[{tail},{{"type":"null"}}],"items":{tail},"properties":{{"description":{tail},"enum":{tail}}},"enum":[{tail}],"const":{tail},"default":{tail},"examples":[{tail}]}}"#
    );
    let (found, nodes) = recovered(&text, Spelling::Python);
    let pointers: Vec<_> = nodes.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        ["/$defs/a~1b", "/anyOf/0", "/items", "/properties/description", "/properties/enum"]
    );
    assert_eq!(found.matches(r#""minimum":1"#).count(), 5);
    assert_eq!(found.matches("{minimum: 1}").count(), 4);
}

#[test]
fn numbers_and_order_stay_as_they_were_and_what_is_no_json_too() {
    let text = r#"{"z":1e400,"type":"integer","a":12345678901234567890123,"description":"{maximum: 99999999999999999999}"}"#;
    let expected = r#"{"z":1e400,"type":"integer","a":12345678901234567890123,"maximum":99999999999999999999}"#;
    assert_eq!(recovered(text, Spelling::Unknown).0, expected);
    for text in ["", "{", "[1", r#"{"description": "#] {
        assert_eq!(recovered(text, Spelling::Unknown), (text.to_owned(), Vec::new()));
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!(r#"{{"items":{deep}}}"#);
    assert_eq!(recovered(&text, Spelling::Unknown).0, text);
}

#[test]
fn hostile_descriptions_end() {
    let text = format!("{{default: {}}}", ", pattern: a".repeat(2000));
    assert!(keywords("string", &text, Spelling::Unknown).is_err());
    let text = "\n\n{pattern: ".repeat(2000) + "}";
    assert!(keywords("string", &text, Spelling::Unknown).is_err());
}
