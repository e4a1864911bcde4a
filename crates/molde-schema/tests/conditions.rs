//! Many independent conditions on one object: they stay apart, and each is exact.

mod support;

use std::fmt::Write;
use std::sync::Arc;

use molde_schema::{CompileOptions, CompiledSchema, Order, SchemaAutomaton};
use support::{Random, accepts, compile, read, validator};

/// Conditions of each kind.
const MANY: usize = 40;

/// One condition, about the names `aN`, `bN` and `cN`.
fn condition(kind: &str, n: usize) -> String {
    match kind {
        "dependentRequired" => format!(r#""dependentRequired": {{"a{n}": ["b{n}"]}}"#),
        "dependentSchemas" => format!(
            r#""dependentSchemas": {{"a{n}": {{"required": ["b{n}"], "properties": {{"b{n}": {{"const": 1}}}}}}}}"#
        ),
        "if" => format!(
            r#""if": {{"properties": {{"a{n}": {{"const": 1}}}}, "required": ["a{n}"]}},
               "then": {{"required": ["b{n}"]}}, "else": {{"properties": {{"c{n}": {{"const": 0}}}}}}"#
        ),
        "anyOf" => {
            format!(r#""anyOf": [{{"required": ["a{n}"]}}, {{"required": ["b{n}", "c{n}"]}}]"#)
        }
        "oneOf" => format!(
            r#""oneOf": [{{"required": ["a{n}"]}}, {{"required": ["b{n}"]}}, {{"required": ["c{n}"]}}]"#
        ),
        "not" => format!(r#""not": {{"required": ["a{n}", "b{n}"]}}"#),
        _ => panic!("no kind of this name"),
    }
}

const KINDS: [&str; 6] = ["dependentRequired", "dependentSchemas", "if", "anyOf", "oneOf", "not"];

/// An object on which `MANY` conditions are put, of the given kinds in turn.
fn schema(kinds: &[&str], head: &str) -> String {
    let mut text = format!(r#"{{{head}"allOf": ["#);
    for n in 0..MANY {
        let comma = if n > 0 { ", " } else { "" };
        let condition = condition(kinds[n % kinds.len()], n);
        write!(text, "{comma}{{{condition}}}").expect("writing to a string");
    }
    text + "]}"
}

fn schemas() -> Vec<String> {
    let typed = r#""type": "object", "#;
    let mut schemas: Vec<String> = KINDS.iter().map(|kind| schema(&[kind], typed)).collect();
    schemas.push(schema(&KINDS, typed));
    // Values that are no objects meet all of them.
    schemas.push(schema(&["dependentRequired", "if", "anyOf", "not"], ""));
    schemas.push(schema(&["if"], r#""type": "object", "maxProperties": 7, "required": ["a3"], "#));
    schemas
}

/// An object with what most conditions demand, and some members more.
fn instance(random: &mut Random, base: usize) -> String {
    let mut members: Vec<(String, usize)> = Vec::new();
    for n in 0..MANY {
        let name = |letter: &str| format!("{letter}{n}");
        match (base, random.below(12)) {
            (0, 0) => members.extend([(name("a"), 1), (name("b"), 1)]),
            (0, 1) => members.push((name("c"), 0)),
            (1, 0) => members.extend([(name("b"), 1), (name("c"), 0)]),
            (1, value) => members.push((name("a"), value % 2)),
            (2, value) => members.push((name(["a", "b", "c"][value % 3]), 0)),
            _ => {}
        }
    }
    for _ in 0..random.below(3) {
        let name = format!("{}{}", ["a", "b", "c"][random.below(3)], random.below(MANY));
        if !members.iter().any(|(known, _)| *known == name) {
            members.insert(random.below(members.len() + 1), (name, random.below(2)));
        }
    }
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!(r#""{name}": {value}"#)).collect();
    format!("{{{}}}", members.join(", "))
}

/// The shortest value of an object, however it comes about.
fn shortest(schema: &str) -> serde_json::Map<String, serde_json::Value> {
    let typed =
        schema.replacen('{', r#"{"type": "object", "#, usize::from(!schema.contains("type")));
    let mut automaton = SchemaAutomaton::new(&compile(&typed, &CompileOptions::default()));
    let start = automaton.start();
    serde_json::from_slice(&automaton.completion(start)).expect("an object")
}

/// A value with up to two members more, less or with another value.
fn changed(random: &mut Random, value: &serde_json::Map<String, serde_json::Value>) -> String {
    let mut value = value.clone();
    for _ in 0..random.below(3) {
        let name = format!("{}{}", ["a", "b", "c"][random.below(3)], random.below(MANY));
        match random.below(2) {
            0 => value.remove(&name),
            _ => value.insert(name, random.below(2).into()),
        };
    }
    serde_json::Value::Object(value).to_string()
}

#[test]
fn many_conditions_are_judged_as_an_independent_validator_does() {
    let mut random = Random(3);
    for text in schemas() {
        let oracle = validator(&text);
        let mut verdicts = [0, 0];
        let shortest = shortest(&text);
        let in_order = compile(&text, &CompileOptions::default());
        let any = CompileOptions { order: Order::Any, ..CompileOptions::default() };
        let any = compile(&text, &any);
        let mut automata = [SchemaAutomaton::new(&in_order), SchemaAutomaton::new(&any)];
        for round in 0..24 {
            let instance = match round % 4 {
                _ if round == 0 => "{}".to_owned(),
                3 => changed(&mut random, &shortest),
                base => instance(&mut random, base),
            };
            let value = serde_json::from_str(&instance).expect("JSON");
            let expected = oracle.is_valid(&value);
            verdicts[usize::from(expected)] += 1;
            let ordered = in_order.canonical_order(&instance).expect("JSON");
            let as_written = any.canonical_order(&instance).expect("JSON");
            for (automaton, written) in automata.iter_mut().zip([&ordered, &as_written]) {
                let verdict = accepts(automaton, written.as_bytes());
                let limit = automaton.last_limit();
                assert_eq!(verdict, expected, "{written} {limit:?} of {text}");
            }
        }
        assert!(verdicts[0] > 0 && verdicts[1] > 0, "{verdicts:?} of {text}");
    }
}

#[test]
fn every_prefix_under_many_conditions_has_a_completion() {
    let mut random = Random(5);
    for text in schemas() {
        let oracle = validator(&text);
        let schema = compile(&text, &CompileOptions::default());
        let mut automaton = SchemaAutomaton::new(&schema);
        for round in 0..4 {
            let instance = instance(&mut random, round % 3);
            let instance = schema.canonical_order(&instance).expect("JSON");
            let end = match read(&mut automaton, instance.as_bytes()) {
                Ok(_) => instance.len(),
                Err(end) => end,
            };
            for end in (0..=end).filter(|end| end % 5 == 0) {
                let prefix = &instance.as_bytes()[..end];
                let state = read(&mut automaton, prefix).expect("a live prefix");
                let whole = [prefix, &automaton.completion(state)].concat();
                let whole = String::from_utf8(whole).expect("UTF-8");
                assert!(accepts(&mut automaton, whole.as_bytes()), "{whole}");
                let value = serde_json::from_str(&whole).expect("JSON");
                assert!(oracle.is_valid(&value), "{whole} of {text}");
            }
        }
    }
}

#[test]
fn conditions_on_one_member_are_told_apart_by_its_value() {
    // Forty kinds of object by one member, and what each demands of another one.
    let mut text = String::from(r#"{"type": "object", "properties": {"kind": {}}, "allOf": ["#);
    for n in 0..MANY {
        let comma = if n > 0 { ", " } else { "" };
        write!(
            text,
            r#"{comma}{{"if": {{"properties": {{"kind": {{"const": "k{n}"}}}}, "required": ["kind"]}},
                "then": {{"required": ["config"], "properties": {{"config": {{
                    "properties": {{"p{n}": {{"type": "integer"}}}}, "required": ["p{n}"]}}}}}}}}"#
        )
        .expect("writing to a string");
    }
    text.push_str("]}");
    let schema = compile(&text, &CompileOptions::default());
    let oracle = validator(&text);
    let mut automaton = SchemaAutomaton::new(&schema);
    for (instance, expected) in [
        (r#"{"kind": "k7", "config": {"p7": 1}}"#, true),
        (r#"{"kind": "k7", "config": {"p8": 1}}"#, false),
        (r#"{"kind": "k7", "config": {"p7": "x"}}"#, false),
        (r#"{"kind": "k7"}"#, false),
        (r#"{"kind": "other"}"#, true),
        (r#"{"kind": {"k7": 1}, "config": 1}"#, true),
        (r#"{"config": {"p7": "x"}}"#, true),
    ] {
        let value = serde_json::from_str(instance).expect("JSON");
        assert_eq!(oracle.is_valid(&value), expected, "{instance}");
        let verdict = accepts(&mut automaton, instance.as_bytes());
        assert_eq!(verdict, expected, "{instance} {:?}", automaton.last_limit());
    }
}

#[test]
fn what_many_conditions_leave_nothing_of_is_unsatisfiable() {
    let contradiction = schema(
        &["dependentRequired"],
        r#""type": "object", "required": ["a0"],
        "properties": {"b0": false}, "#,
    );
    let result = CompiledSchema::compile(&contradiction, &CompileOptions::default());
    assert!(
        matches!(result, Err(molde_schema::SchemaError::Unsatisfiable { .. })),
        "{:?}",
        result.map(|schema| Arc::new(schema).occurrences().len())
    );
}

#[test]
fn what_many_branches_evaluate_depends_on_which_of_them_hold() {
    let mut branches = Vec::new();
    for n in 0..20 {
        branches.push(format!(
            r#"{{"properties": {{"a{n}": {{"type": "integer"}}, "b{n}": true}}, "required": ["a{n}"],
                "patternProperties": {{"^x{n}$": true}}}}"#
        ));
    }
    for rest in ["false", r#"{"const": "rest"}"#] {
        let text = format!(
            r#"{{"type": "object", "properties": {{"own": true}}, "anyOf": [{}],
                "if": {{"required": ["c"], "properties": {{"c": true}}}},
                "then": {{"properties": {{"d": true}}}}, "unevaluatedProperties": {rest}}}"#,
            branches.join(", ")
        );
        let oracle = validator(&text);
        let schema = compile(&text, &CompileOptions::default());
        let any = CompileOptions { order: Order::Any, ..CompileOptions::default() };
        let any = compile(&text, &any);
        let mut automata = [SchemaAutomaton::new(&schema), SchemaAutomaton::new(&any)];
        let mut random = Random(11);
        let mut verdicts = [0, 0];
        for _ in 0..60 {
            let mut value = serde_json::Map::new();
            for _ in 0..random.below(4) {
                let n = random.below(20);
                value.insert(
                    format!("a{n}"),
                    if random.below(8) == 0 { "rest".into() } else { 1.into() },
                );
                let letter = ["b", "x", "b"][random.below(3)];
                value.insert(format!("{letter}{n}"), ["rest", "y"][random.below(2)].into());
            }
            for (name, odds) in [("own", 2), ("c", 3), ("d", 4), ("b3", 6), ("other", 7)] {
                if random.below(odds) == 0 {
                    value.insert(name.to_owned(), ["rest", "y"][random.below(2)].into());
                }
            }
            let value = serde_json::Value::Object(value);
            let expected = oracle.is_valid(&value);
            verdicts[usize::from(expected)] += 1;
            let ordered = schema.canonical_order(&value.to_string()).expect("JSON");
            let written = any.canonical_order(&value.to_string()).expect("JSON");
            for (automaton, written) in automata.iter_mut().zip([ordered, written]) {
                let verdict = accepts(automaton, written.as_bytes());
                assert_eq!(verdict, expected, "{written} {:?}", automaton.last_limit());
            }
        }
        assert!(verdicts[0] > 5 && verdicts[1] > 5, "{verdicts:?}");
    }
}

/// A condition on a string.
fn string_condition(random: &mut Random, depth: usize) -> String {
    let inner = |random: &mut Random| string_condition(random, depth - 1);
    match random.below(if depth == 0 { 4 } else { 9 }) {
        0 => format!(
            r#"{{"pattern": "{}"}}"#,
            ["ab", "^[ab]*$", "b1|1b", "a.*1", "1$", "^.{3}$"][random.below(6)]
        ),
        1 => format!(r#"{{"minLength": {}}}"#, random.below(4)),
        2 => format!(r#"{{"maxLength": {}}}"#, 2 + random.below(4)),
        3 => {
            format!(r#"{{"enum": ["", "a", "ab1", "{}", 1]}}"#, ["b", "1b1", "ab"][random.below(3)])
        }
        4 => format!(r#"{{"not": {}}}"#, inner(random)),
        5 => format!(
            r#"{{"if": {}, "then": {}, "else": {}}}"#,
            inner(random),
            inner(random),
            inner(random)
        ),
        6 => format!(r#"{{"oneOf": [{}, {}, {}]}}"#, inner(random), inner(random), inner(random)),
        _ => format!(r#"{{"anyOf": [{}, {}, {}]}}"#, inner(random), inner(random), inner(random)),
    }
}

#[test]
fn many_conditions_on_a_string_are_one_language() {
    let mut random = Random(17);
    let mut satisfiable = 0;
    for round in 0..120 {
        let list: Vec<String> = (0..2 + round % 6)
            .map(|_| string_condition(&mut random, 2))
            .map(|condition| format!(r#"{{"anyOf": [{condition}, {{"pattern": "^(ab)?1?b?$"}}]}}"#))
            .collect();
        let text = format!(r#"{{"allOf": [{}]}}"#, list.join(", "));
        let oracle = validator(&text);
        let mut automaton = SchemaAutomaton::new(&compile(&text, &CompileOptions::default()));
        let mut verdicts = [0, 0];
        for _ in 0..60 {
            let length = random.below(6);
            let word: String = (0..length).map(|_| ['a', 'b', '1'][random.below(3)]).collect();
            let expected = oracle.is_valid(&word.clone().into());
            verdicts[usize::from(expected)] += 1;
            let verdict = accepts(&mut automaton, format!("\"{word}\"").as_bytes());
            assert_eq!(verdict, expected, "{word} {:?} of {text}", automaton.last_limit());
        }
        satisfiable += usize::from(verdicts[0] > 0 && verdicts[1] > 0);
    }
    assert!(satisfiable > 60, "{satisfiable}");
}

#[test]
fn branches_that_a_member_tells_apart_are_judged_as_an_independent_validator_does() {
    // What is changed in one branch: nothing, or so that the tag no longer tells it apart.
    let changes = [
        r#"{"type": "object", "required": ["tag"], "properties": {"tag": {"enum": ["t3", "u3"]}}}"#,
        r#"{"type": "object", "required": ["tag"], "properties": {"tag": {"enum": ["t3", "t4"]}}}"#,
        r#"{"type": "object", "properties": {"tag": {"const": "t3"}}}"#,
        r#"{"required": ["tag"], "properties": {"tag": {"const": "t3"}}}"#,
        r#"{"type": "object", "required": ["tag"], "properties": {"tag": {"enum": ["t3", 4]}}}"#,
        r##"{"allOf": [{"$ref": "#/$defs/three"}], "required": ["v3"]}"##,
    ];
    for change in changes {
        for negated in [false, true] {
            let branches: Vec<String> = (0..12)
                .map(|n| match n {
                    3 => change.to_owned(),
                    _ => format!(
                        r#"{{"type": "object", "required": ["tag"], "properties": {{"tag": {{"const": "t{n}"}}, "v{n}": {{"type": "integer"}}}}}}"#
                    ),
                })
                .collect();
            let one = format!(r#""oneOf": [{}]"#, branches.join(", "));
            let inner = if negated { format!(r#""not": {{{one}}}"#) } else { one };
            let text = format!(
                r#"{{{inner}, "$defs": {{"three": {{"type": "object", "required": ["tag"], "properties": {{"tag": {{"const": "t3"}}}}}}}}}}"#
            );
            let oracle = validator(&text);
            let schema = compile(&text, &CompileOptions::default());
            let mut automaton = SchemaAutomaton::new(&schema);
            let mut verdicts = [0, 0];
            for tag in [r#""t3""#, r#""t4""#, r#""u3""#, r#""t9""#, r#""x""#, "4", "null"] {
                for rest in ["", r#", "v3": 1"#, r#", "v4": "x""#, r#", "v9": 2"#] {
                    for instance in [format!(r#"{{"tag": {tag}{rest}}}"#), tag.to_owned()] {
                        let value = serde_json::from_str(&instance).expect("JSON");
                        let expected = oracle.is_valid(&value);
                        verdicts[usize::from(expected)] += 1;
                        let verdict = accepts(&mut automaton, instance.as_bytes());
                        let limit = automaton.last_limit();
                        assert_eq!(verdict, expected, "{instance} {limit:?} of {text}");
                    }
                }
            }
            assert!(verdicts[0] > 0 && verdicts[1] > 0, "{verdicts:?} of {text}");
        }
    }
}
