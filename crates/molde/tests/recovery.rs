//! Bounds read back from what the anthropic SDK made of generated schemas; the file was written by
//! the SDK itself (`tests/reference/anthropic_transform.py`).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails panics")]

use std::collections::BTreeMap;

use molde::{RecoveryStatus, Spelling, recover_bounds};
use serde_json::Value;

/// What the keywords of a schema say of values, without those that hold schemas: these are nodes.
fn constraints(schema: &Value) -> BTreeMap<&str, &Value> {
    const OTHERS: [&str; 10] = [
        "description",
        "title",
        "default",
        "examples",
        "properties",
        "$defs",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
    ];
    let members = schema.as_object().into_iter().flatten();
    members
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !OTHERS.contains(name))
        .collect()
}

/// Every schema of a tree with its JSON Pointer, as far as the SDK goes.
fn nodes<'s>(schema: &'s Value, pointer: String, found: &mut BTreeMap<String, &'s Value>) {
    for name in ["properties", "$defs"] {
        for (member, below) in schema[name].as_object().into_iter().flatten() {
            let member = member.replace('~', "~0").replace('/', "~1");
            nodes(below, format!("{pointer}/{name}/{member}"), found);
        }
    }
    for name in ["anyOf", "oneOf", "allOf"] {
        let sent_as = if name == "oneOf" { "anyOf" } else { name };
        for (index, below) in schema[name].as_array().into_iter().flatten().enumerate() {
            nodes(below, format!("{pointer}/{sent_as}/{index}"), found);
        }
    }
    if schema["items"].is_object() {
        nodes(&schema["items"], format!("{pointer}/items"), found);
    }
    found.insert(pointer, schema);
}

#[test]
fn no_schema_is_recovered_to_another_constraint_and_most_are_recovered() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut tails = 0;
    for (line_number, line) in include_str!("data/anthropic_transform.jsonl").lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (schema, sent) = (&line["schema"], &line["sent"]);
        for spelling in [Spelling::Python, Spelling::Unknown] {
            let recovery = recover_bounds(&sent.to_string(), spelling);
            let recovered: Value = serde_json::from_str(&recovery.schema_text).unwrap();
            let (mut before, mut after, mut originals) =
                (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            nodes(sent, String::new(), &mut before);
            nodes(&recovered, String::new(), &mut after);
            nodes(schema, String::new(), &mut originals);
            for (pointer, sent) in &before {
                let Some(original) = originals.get(pointer) else { continue };
                let (sent, after) = (constraints(sent), constraints(after[pointer]));
                let original = constraints(original);
                for (name, value) in &after {
                    if sent.get(name) != Some(value) {
                        assert_eq!(
                            original.get(name),
                            Some(value),
                            "line {line_number}, {pointer}/{name}: {line}"
                        );
                    }
                }
            }
            if spelling == Spelling::Python {
                tails += recovery.nodes.len();
                for node in &recovery.nodes {
                    *counts.entry(node.status.name()).or_default() += 1;
                    if node.status == RecoveryStatus::Recovered {
                        // All of a node comes back, or nothing.
                        let original = constraints(originals[&node.pointer]);
                        let after = constraints(after[&node.pointer]);
                        let lost: Vec<_> =
                            original.keys().filter(|name| !after.contains_key(*name)).collect();
                        assert!(
                            lost.iter().all(|name| **name == "type"),
                            "line {line_number}, {}: {lost:?}",
                            node.pointer
                        );
                    }
                }
            }
        }
    }
    println!("of {tails} tails: {counts:?}");
    assert!(counts["recovered"] * 10 > tails * 7, "{counts:?}");
}
