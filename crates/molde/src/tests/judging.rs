//! Faults against Pydantic's, and repairs against the values that they must give.

use serde_json::Value;

use crate::{Contract, RepairKind, Validator, repair};

fn data(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the data is committed");
    serde_json::from_str(&text).expect("the data is JSON")
}

fn validator(schema: &Value) -> Validator {
    let contract = Contract::from_schema(&schema.to_string()).expect("the schema is supported");
    Validator::new(&contract).expect("the schema is small")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn the_first_fault_is_the_one_that_pydantic_reports() {
    let data = data("faults.json");
    let mut cases = 0;
    let mut wrong = Vec::new();
    for group in list(&data["groups"]) {
        let validator = validator(&group["schema"]);
        for case in list(&group["cases"]) {
            let text = case["text"].as_str().expect("a text");
            let found = validator.validate(text).err();
            let got = found.as_ref().map(|fault| (fault.kind.as_ref(), fault.pointer.as_str()));
            let expected = case["expected"].as_object().map(|expected| {
                (
                    expected["kind"].as_str().expect("a name"),
                    expected["pointer"].as_str().expect("a place"),
                )
            });
            if got != expected {
                wrong.push(format!("{text}: got {got:?}, expected {expected:?}"));
            }
            cases += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 140);
}

#[test]
fn what_json_schema_and_pydantic_see_differently_is_as_documented() {
    let validator = validator(&serde_json::json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false
    }));
    assert!(validator.validate(r#"{"n": 4.0}"#).is_ok());
    let kind = |text: &str| validator.validate(text).expect_err("not valid").kind;
    assert_eq!(kind(r#"{"n": 1, "n": 1}"#), "duplicate_key");
    assert_eq!(kind(r#"{"n": NaN}"#), "json_invalid");
}

#[test]
fn faults_never_quote_the_answer() {
    let validator = validator(&serde_json::json!({
        "type": "object", "properties": {"n": {"type": "integer", "enum": [1]}, "s": {"pattern": "^a$"}},
        "additionalProperties": {"type": "null"}
    }));
    for text in
        [r#"{"n": "SECRET"}"#, r#"{"s": "SECRET"}"#, r#"{"x": "SECRET"}"#, "SECRET", "\"SECRET"]
    {
        let fault = validator.validate(text).expect_err("not valid");
        assert!(!fault.to_string().contains("SECRET"), "{fault}");
    }
}

#[test]
fn every_repair_gives_the_right_value_or_none() {
    let data = data("repair.json");
    let mut wrong = Vec::new();
    let cases = list(&data["cases"]);
    for case in cases {
        let name = case["name"].as_str().expect("a name");
        let schema = &data["schemas"][case["schema"].as_str().expect("a name")];
        let validator = validator(schema);
        let answer = case["answer"].as_str().expect("a text");
        let document = case.get("document").and_then(Value::as_str);
        let result = repair(&validator, answer, document);
        let expected = Some(&case["value"]).filter(|value| !value.is_null());
        let Ok(repaired) = &result else {
            if expected.is_some() {
                wrong.push(format!("{name}: not repaired"));
            }
            continue;
        };
        let value: Value = serde_json::from_str(&repaired.text).expect("a repaired text is JSON");
        let same = expected.is_some_and(|expected| crate::validate::same(expected, &value));
        if !same {
            wrong.push(format!("{name}: {}", repaired.text));
        }
        let mut kinds: Vec<String> = repaired
            .repairs
            .iter()
            .map(|log| {
                serde_json::to_value(log.kind).expect("a name").as_str().expect("text").to_owned()
            })
            .collect();
        let mut logged: Vec<&str> =
            list(&case["kinds"]).iter().map(|kind| kind.as_str().expect("a name")).collect();
        kinds.sort_unstable();
        logged.sort_unstable();
        if same && kinds != logged {
            wrong.push(format!("{name}: logged {kinds:?}, expected {logged:?}"));
        }
        if let Some(flags) = case.get("ungrounded") {
            let flags: Vec<&str> = list(flags).iter().filter_map(Value::as_str).collect();
            if repaired.ungrounded != flags {
                wrong.push(format!("{name}: ungrounded {:?}", repaired.ungrounded));
            }
        }
        assert!(validator.validate(&repaired.text).is_ok(), "{name}");
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() >= 150);
}

/// Numbers of a text, as their characters, in order.
fn numerals(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter(|part| part.contains(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_number_that_changes_is_in_the_log_with_what_it_was() {
    let data = data("repair.json");
    for case in list(&data["cases"]) {
        let schema = &data["schemas"][case["schema"].as_str().expect("a name")];
        let answer = case["answer"].as_str().expect("a text");
        let Ok(repaired) = repair(&validator(schema), answer, None) else { continue };
        let changed: Vec<&str> = repaired
            .repairs
            .iter()
            .filter(|log| matches!(log.kind, RepairKind::NumberForm | RepairKind::NumberText))
            .map(|log| log.after.as_str())
            .collect();
        let before = numerals(answer);
        for numeral in numerals(&repaired.text) {
            assert!(
                before.contains(&numeral) || changed.iter().any(|after| after.contains(&numeral)),
                "{}: {numeral}",
                case["name"]
            );
        }
    }
}

#[test]
fn no_answer_makes_the_repair_panic() {
    let validator = validator(&data("repair.json")["schemas"]["nested"]);
    let pieces = [
        "{", "}", "[", "]", "\"", "'", "“", ":", ",", "\\", "\\u", "\\ud83d", "//", "/*", "```",
        "null", "tru", "1", ".5", "7.230,0", "é", "😀", "\n", " ", "x", "\"rows\"", "-",
    ];
    let mut seed = 7;
    for _ in 0..20_000 {
        let length = super::fake::next(&mut seed) % 12;
        let answer: String = (0..length)
            .map(|_| pieces[(super::fake::next(&mut seed) % pieces.len() as u64) as usize])
            .collect();
        if let Ok(repaired) = repair(&validator, &answer, Some(&answer)) {
            assert!(validator.validate(&repaired.text).is_ok(), "{answer:?}");
        }
    }
}
