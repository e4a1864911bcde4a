//! Arrays whose items must differ, or of which two must be equal, in the company of every other
//! keyword for arrays: generated schemas against an independent validator.

mod support;

use std::sync::Arc;

use molde_schema::{
    CompileOptions, CompiledSchema, DEAD, Escapes, NumberStyle, Order, SchemaAutomaton,
    SchemaError, Style, UNDECIDED,
};
use serde_json::{Map, Value, json};
use support::{Random, accepts, validator};

fn pick<T: Clone>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())].clone()
}

/// A schema for an item.
fn item(random: &mut Random, depth: usize) -> Value {
    let scalars = [
        json!({"enum": ["a", "b", 1, null]}),
        json!({"enum": [0, 1, "a", [0], {"a": 0}]}),
        json!({"type": "boolean"}),
        json!({"type": "integer", "minimum": 0, "maximum": 2}),
        json!({"type": "integer"}),
        json!({"type": "number", "minimum": 0}),
        json!({"type": "string"}),
        json!({"type": "string", "maxLength": 1}),
        json!({"type": "string", "pattern": "^(a|b+)$"}),
        json!({"type": "string", "pattern": "^[ab]{1,2}$"}),
        json!({"const": "a"}),
        json!({"const": {"a": 0, "b": 1}}),
        json!({"type": ["null", "boolean"]}),
        json!({"not": {"type": "string"}}),
        json!({}),
    ];
    if depth == 0 || random.below(3) > 0 {
        return pick(random, &scalars);
    }
    match random.below(5) {
        0 => {
            let a = item(random, depth - 1);
            json!({"type": "object", "properties": {"a": a, "b": {"type": "boolean"}},
                "required": ["a"], "additionalProperties": false})
        }
        1 => json!({"type": "object", "additionalProperties": item(random, depth - 1)}),
        2 => array(random, depth - 1),
        3 => json!({"type": "array", "items": item(random, depth - 1), "maxItems": 2}),
        _ => json!({"anyOf": [item(random, depth - 1), item(random, depth - 1)]}),
    }
}

/// Keywords for arrays.
fn array(random: &mut Random, depth: usize) -> Value {
    let mut schema = Map::new();
    let mut add = |key: &str, value: Value| {
        schema.insert(key.to_owned(), value);
    };
    if random.below(4) > 0 {
        add("type", json!("array"));
    }
    match random.below(8) {
        0 => {}
        1 => add("not", json!({"uniqueItems": true})),
        2 => add("oneOf", json!([{"uniqueItems": true}, {"minItems": 3}])),
        3 => add("if", json!({"uniqueItems": true})),
        _ => add("uniqueItems", json!(true)),
    }
    if random.below(4) > 0 {
        add("items", item(random, depth));
    }
    if random.below(3) == 0 {
        let prefix: Vec<Value> = (0..=random.below(3)).map(|_| item(random, depth)).collect();
        add("prefixItems", prefix.into());
    }
    if random.below(3) == 0 {
        add("contains", item(random, depth));
        if random.below(2) == 0 {
            add("minContains", json!(random.below(3)));
        }
        if random.below(3) == 0 {
            add("maxContains", json!(1 + random.below(2)));
        }
    }
    if random.below(3) == 0 {
        add("minItems", json!(random.below(4)));
    }
    if random.below(4) == 0 {
        add("maxItems", json!(1 + random.below(4)));
    }
    if random.below(6) == 0 {
        add("unevaluatedItems", item(random, depth));
    }
    if random.below(8) == 0 {
        add("then", json!({"minItems": 1}));
    }
    if random.below(8) == 0 {
        add("anyOf", json!([{"uniqueItems": true}, {"maxItems": 2}]));
    }
    Value::Object(schema)
}

/// A small value.
fn value(random: &mut Random, depth: usize) -> Value {
    let scalars = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(1.0),
        json!(0.5),
        json!("a"),
        json!("b"),
        json!(""),
        json!("bb"),
        json!("ab"),
    ];
    if depth == 0 || random.below(4) > 0 {
        return pick(random, &scalars);
    }
    match random.below(3) {
        0 => instance(random, depth - 1),
        1 => {
            let (a, b) = (value(random, 0), value(random, 0));
            if random.below(2) == 0 { json!({"a": a}) } else { json!({"a": a, "b": b}) }
        }
        _ => {
            let mut members = Map::new();
            for key in ["b", "a", "c"] {
                if random.below(2) == 0 {
                    members.insert(key.to_owned(), value(random, 0));
                }
            }
            Value::Object(members)
        }
    }
}

/// A short array, in which values like to come twice.
fn instance(random: &mut Random, depth: usize) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for _ in 0..random.below(5) {
        if !items.is_empty() && random.below(4) == 0 {
            items.push(pick(random, &items.clone()));
        } else {
            items.push(value(random, depth));
        }
    }
    Value::Array(items)
}

/// Every spelling.
fn every_spelling() -> CompileOptions {
    CompileOptions {
        style: Style::Flexible,
        order: Order::Any,
        number_style: NumberStyle::Any,
        escapes: Escapes::Any,
        ..CompileOptions::default()
    }
}

/// Walks at random, or along the completion, and returns the text.
fn walk(
    automaton: &mut SchemaAutomaton,
    random: &mut Random,
    bytes: usize,
    schema: &str,
) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = automaton.start();
    let take = |automaton: &mut SchemaAutomaton, state: u32, byte: u8, text: &mut Vec<u8>| {
        text.push(byte);
        let next = automaton.step(state, byte);
        let next = automaton.settle(next, text);
        let limit = automaton.last_limit().unwrap_or_default();
        assert!(next > UNDECIDED, "{} {limit} {schema}", String::from_utf8_lossy(text));
        next
    };
    while text.len() < bytes {
        let live: Vec<u8> =
            (0..=u8::MAX).filter(|&byte| automaton.step(state, byte) != DEAD).collect();
        if live.is_empty() {
            assert!(
                automaton.is_accepting(state),
                "dead end: {} {schema}",
                String::from_utf8_lossy(&text)
            );
            break;
        }
        let likely: Vec<u8> =
            live.iter().copied().filter(|byte| b"\",:[]{}0a1b".contains(byte)).collect();
        let choice = if likely.is_empty() || random.below(8) == 0 { &live } else { &likely };
        let byte = choice[random.below(choice.len())];
        state = take(automaton, state, byte, &mut text);
    }
    let mut most = 400;
    while !automaton.is_accepting(state) {
        let rest = automaton.completion(state);
        assert!(!rest.is_empty(), "no completion: {} {schema}", String::from_utf8_lossy(&text));
        state = take(automaton, state, rest[0], &mut text);
        most -= 1;
        assert!(most > 0, "never ends: {} {schema}", String::from_utf8_lossy(&text));
    }
    text
}

/// What becomes of a schema.
enum Compiled {
    Schema(Arc<CompiledSchema>),
    /// Nothing satisfies it.
    Unsatisfiable,
    /// It is beyond a limit.
    Limited,
}

fn compile(schema: &str, options: &CompileOptions) -> Compiled {
    match CompiledSchema::compile(schema, options) {
        Ok(schema) => Compiled::Schema(Arc::new(schema)),
        Err(SchemaError::Unsatisfiable { .. }) => Compiled::Unsatisfiable,
        // Some of what is generated multiplies out to more than any schema in use.
        Err(SchemaError::Limit { name: "alternatives", .. }) => Compiled::Limited,
        Err(error) => panic!("{schema}: {error}"),
    }
}

/// Schemas of one test.
const SCHEMAS: usize = 250;

#[test]
fn exactly_the_valid_arrays_are_accepted() {
    let mut random = Random(11);
    let (mut valid, mut limited) = (0, 0);
    for _ in 0..SCHEMAS {
        let schema = array(&mut random, 2).to_string();
        let validator = validator(&schema);
        let compiled = compile(&schema, &every_spelling());
        limited += usize::from(matches!(compiled, Compiled::Limited));
        for _ in 0..40 {
            let instance = instance(&mut random, 2);
            let expected = validator.is_valid(&instance);
            valid += usize::from(expected);
            let text = instance.to_string();
            let compiled = match &compiled {
                Compiled::Schema(compiled) => compiled,
                Compiled::Unsatisfiable => {
                    assert!(!expected, "unsatisfiable, but {text} is valid: {schema}");
                    continue;
                }
                Compiled::Limited => break,
            };
            let mut automaton = SchemaAutomaton::new(compiled);
            let found = accepts(&mut automaton, text.as_bytes());
            let limit = automaton.last_limit().unwrap_or_default();
            assert_eq!(found, expected, "{text} under {schema} {limit}");
        }
    }
    assert!(limited * 50 <= SCHEMAS, "{limited} schemas are beyond limits");
    assert!(valid > SCHEMAS * 5, "too few valid arrays to mean much: {valid}");
}

#[test]
fn walks_end_in_valid_arrays_and_never_in_a_dead_end() {
    let mut random = Random(12);
    for number in 0..SCHEMAS {
        let schema = array(&mut random, 2).to_string();
        let validator = validator(&schema);
        let options = if number % 3 == 0 { every_spelling() } else { CompileOptions::default() };
        let Compiled::Schema(compiled) = compile(&schema, &options) else { continue };
        let mut automaton = SchemaAutomaton::new(&compiled);
        for _ in 0..6 {
            let bytes = random.below(40);
            let text = walk(&mut automaton, &mut random, bytes, &schema);
            let text = String::from_utf8(text).expect("UTF-8");
            let value: Value = match serde_json::from_str(&text) {
                Ok(value) => value,
                // The validator computes with floats.
                Err(error) if error.to_string().contains("out of range") => continue,
                Err(error) => panic!("{text}: {error}: {schema}"),
            };
            assert!(validator.is_valid(&value), "{text} under {schema}");
        }
    }
}
