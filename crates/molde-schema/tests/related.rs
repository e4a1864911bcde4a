//! Rules between members, against the same schema with the values of the instance put in: random
//! schemas, every instance made of a few values, and random texts.

mod support;

use std::sync::Arc;

use molde_schema::{
    CompileOptions, CompiledSchema, DEAD, NumberStyle, Order, SchemaAutomaton, SchemaError, Style,
    UNDECIDED,
};
use serde_json::{Map, Value, json};
use support::{Random, accepts};

/// The schema with each `$data` of its members replaced by what it is in an instance.
fn substituted(schema: &Value, instance: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for member in members.values_mut() {
            put_in(member, instance);
        }
    }
    // What stands beside `properties` applies to the same object.
    for keyword in ["anyOf", "allOf", "oneOf"] {
        for branch in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            *branch = substituted(branch, instance);
        }
    }
    for keyword in ["not", "if", "then", "else"] {
        if let Some(branch) = schema.get_mut(keyword) {
            *branch = substituted(branch, instance);
        }
    }
    schema
}

fn put_in(schema: &mut Value, instance: &Value) {
    let Value::Object(members) = schema else { return };
    let mut failing: Vec<Value> = Vec::new();
    let keywords: Vec<String> = members.keys().cloned().collect();
    for keyword in keywords {
        let pointer = members[&keyword].get("$data").and_then(Value::as_str).map(str::to_owned);
        let Some(pointer) = pointer else {
            match &mut members[&keyword] {
                Value::Array(branches) => branches.iter_mut().for_each(|b| put_in(b, instance)),
                branch @ Value::Object(_) => put_in(branch, instance),
                _ => {}
            }
            continue;
        };
        members.remove(&keyword);
        let name = pointer.strip_prefix("1/").expect("a sibling");
        let Some(target) = instance.get(name) else { continue };
        if keyword == "const" {
            members.insert(keyword, target.clone());
            continue;
        }
        let measured = match keyword.as_str() {
            "minLength" | "maxLength" => "string",
            "minItems" | "maxItems" => "array",
            "minProperties" | "maxProperties" => "object",
            _ => "number",
        };
        let Some(number) = target.as_f64() else {
            failing.push(json!({"not": {"type": measured}}));
            continue;
        };
        if measured == "number" {
            members.insert(keyword, target.clone());
        } else if keyword.starts_with("min") {
            members.insert(keyword, json!(number.ceil().max(0.0) as u64));
        } else if number < 0.0 {
            failing.push(json!({"not": {"type": measured}}));
        } else {
            members.insert(keyword, json!(number.floor() as u64));
        }
    }
    if !failing.is_empty() {
        let all = members.entry("allOf").or_insert_with(|| json!([]));
        all.as_array_mut().expect("an array").extend(failing);
    }
}

fn is_valid(schema: &Value, instance: &Value) -> bool {
    jsonschema::is_valid(&substituted(schema, instance), instance)
}

struct Generator {
    random: Random,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl Generator {
    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len())].clone()
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    fn data(&mut self, own: &str) -> Value {
        let others: Vec<&str> = NAMES.into_iter().filter(|name| *name != own).collect();
        json!({"$data": format!("1/{}", self.pick(&others[..2]))})
    }

    fn number(&mut self) -> Map<String, Value> {
        let mut schema = Map::new();
        let kind = self.pick(&["number", "integer", "integer"]);
        schema.insert("type".into(), json!(kind));
        if self.chance(3) {
            schema.insert("minimum".into(), json!(self.random.below(4) as i64 - 1));
        }
        if self.chance(3) {
            schema.insert("maximum".into(), json!(self.random.below(4) + 2));
        }
        if self.chance(6) {
            schema.insert("multipleOf".into(), self.pick(&[json!(2), json!(0.5), json!(3)]));
        }
        schema
    }

    fn member(&mut self, own: &str) -> Value {
        match self.random.below(16) {
            0..=2 => Value::Object(self.number()),
            3..=5 => {
                let mut schema = self.number();
                let keyword =
                    self.pick(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
                schema.insert(keyword.into(), self.data(own));
                Value::Object(schema)
            }
            6 => {
                let mut schema = self.number();
                schema.remove("type");
                schema.insert("minimum".into(), self.data(own));
                schema.insert("maximum".into(), self.data(own));
                Value::Object(schema)
            }
            7 => {
                let mut schema = self.number();
                schema.insert("minimum".into(), self.data(own));
                json!({"anyOf": [schema, {"type": "null"}]})
            }
            8 => {
                let mut schema = Map::from_iter([("type".to_owned(), json!("string"))]);
                schema.insert("maxLength".into(), json!(3));
                let keyword = self.pick(&["minLength", "maxLength"]);
                schema.insert(keyword.into(), self.data(own));
                Value::Object(schema)
            }
            9 => {
                let mut schema = json!({"type": ["array", "null"], "items": {"type": "null"}});
                schema["maxItems"] = json!(3);
                schema[self.pick(&["minItems", "maxItems"])] = self.data(own);
                schema
            }
            10 => json!({"type": "object", "additionalProperties": false,
                "properties": {"x": {"type": "null"}, "y": {"type": "null"}},
                (self.pick(&["minProperties", "maxProperties"])): self.data(own)}),
            11 => json!({"const": self.data(own)}),
            12 => {
                json!({"type": ["integer", "string", "null"], "not": {"minimum": self.data(own)}})
            }
            13 => json!({"type": ["integer", "null"], "if": {"maximum": self.data(own)},
                "then": {"type": "integer", "maximum": 3}, "else": {"minimum": 1}}),
            14 => json!({"oneOf": [{"type": "integer", "minimum": self.data(own)},
                {"type": "integer", "maximum": self.data(own)}, {"type": "boolean"}]}),
            _ => json!({"enum": [0, 1, 3, null, "ab", [null], {}], "minimum": self.data(own)}),
        }
    }

    fn schema(&mut self) -> Value {
        let count = 2 + self.random.below(2);
        let mut properties = Map::new();
        let mut required: Vec<&str> = Vec::new();
        for name in &NAMES[..count] {
            properties.insert((*name).to_owned(), self.member(name));
            if self.chance(2) {
                required.push(name);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if !self.chance(4) {
            schema["additionalProperties"] = json!(false);
        }
        match self.random.below(12) {
            0 => schema["minProperties"] = json!(2),
            1 => schema["maxProperties"] = json!(count - 1),
            2 => schema["dependentRequired"] = json!({"a": ["b"]}),
            3 => {
                schema["anyOf"] =
                    json!([{"required": ["a"]}, {"properties": {"b": {"type": "null"}}}]);
            }
            4 => {
                schema["if"] = json!({"properties": {"a": {"type": "number"}}, "required": ["a"]});
                schema["then"] = json!({"required": ["b"]});
                schema["else"] = json!({"properties": {"b": {"type": "null"}}});
            }
            5 => schema["not"] = json!({"properties": {"b": {"minimum": {"$data": "1/a"}}}}),
            _ => {}
        }
        schema
    }
}

/// Every object of the first names with values of a list, or without.
fn instances(count: usize, values: &[Value], mut visit: impl FnMut(&Value)) {
    let choices = values.len() + 1;
    for mut number in 0..choices.pow(count as u32) {
        let mut members = Map::new();
        for name in &NAMES[..count] {
            if let Some(value) = values.get(number % choices) {
                members.insert((*name).to_owned(), value.clone());
            }
            number /= choices;
        }
        visit(&Value::Object(members));
    }
}

fn compile(schema: &Value, options: &CompileOptions) -> Option<Arc<CompiledSchema>> {
    match CompiledSchema::compile(&schema.to_string(), options) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(
            SchemaError::Unsatisfiable { .. }
            | SchemaError::Limit { name: "counts" | "different", .. },
        ) => None,
        Err(error) => panic!("{schema}: {error}"),
    }
}

fn values(random: &mut Random, count: usize) -> Vec<Value> {
    let mut values = vec![json!(0), json!(1), json!(2), json!(null)];
    let more = [
        json!(3),
        json!(4),
        json!(-1),
        json!(0.5),
        json!("a"),
        json!("abc"),
        json!([]),
        json!([null, null]),
        json!({}),
        json!({"x": null}),
        json!(true),
        json!(2.5),
        json!(6),
    ];
    for _ in 0..if count > 2 { 3 } else { 8 } {
        values.push(more[random.below(more.len())].clone());
    }
    values
}

#[test]
fn every_small_instance_is_judged_as_with_its_values_put_in() {
    let mut generator = Generator { random: Random(11) };
    let mut refused = 0;
    let mut failures = Vec::new();
    for number in 0..40 {
        let schema = generator.schema();
        let count = schema["properties"].as_object().expect("properties").len();
        let values = values(&mut generator.random, count);
        let number_style = NumberStyle::Plain;
        let in_order = CompileOptions { number_style, ..CompileOptions::default() };
        let any = CompileOptions { order: Order::Any, style: Style::Compact, ..in_order };
        for options in [in_order, any] {
            let compiled = match CompiledSchema::compile(&schema.to_string(), &options) {
                Ok(schema) => Some(Arc::new(schema)),
                Err(SchemaError::Unsatisfiable { .. }) => None,
                Err(SchemaError::Limit { name: "counts" | "different", .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{number}: {schema}: {error}"),
            };
            let mut automaton = compiled.as_ref().map(SchemaAutomaton::new);
            instances(count, &values, |instance| {
                let expected = is_valid(&schema, instance);
                let text = match &compiled {
                    Some(schema) => {
                        schema.canonical_order(&instance.to_string()).expect("a JSON text")
                    }
                    None => String::new(),
                };
                let found =
                    automaton.as_mut().is_some_and(|automaton| accepts(automaton, text.as_bytes()));
                if expected != found && failures.len() < 20 {
                    failures.push(format!(
                        "{number} {:?}: {schema}\n   {instance}: {expected} expected",
                        options.order
                    ));
                }
            });
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(refused < 8, "{refused} schemas were beyond a limit");
}

/// Walks at random and then finishes as the automaton says.
fn walk(
    automaton: &mut SchemaAutomaton,
    random: &mut Random,
    bytes: usize,
) -> Result<String, String> {
    let mut text = Vec::new();
    let mut state = automaton.start();
    let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    while text.len() < bytes {
        let live: Vec<(u8, u32)> = (0..=u8::MAX)
            .map(|byte| (byte, automaton.step(state, byte)))
            .filter(|&(_, next)| next != DEAD && next != UNDECIDED)
            .collect();
        if live.is_empty() {
            if automaton.is_accepting(state) {
                break;
            }
            return Err(format!("dead end after {}", show(&text)));
        }
        let (byte, next) = live[random.below(live.len())];
        text.push(byte);
        state = automaton.settle(next, &text);
    }
    for byte in automaton.completion(state) {
        text.push(byte);
        state = automaton.step(state, byte);
        state = automaton.settle(state, &text);
    }
    if automaton.is_accepting(state) {
        Ok(show(&text))
    } else {
        Err(format!("incomplete: {}", show(&text)))
    }
}

#[test]
fn random_texts_are_valid_with_their_values_put_in_and_end() {
    let mut generator = Generator { random: Random(23) };
    let mut walks = 0;
    let mut failures = Vec::new();
    for _ in 0..60 {
        let schema = generator.schema();
        for order in [Order::Schema, Order::Any] {
            let options = CompileOptions { order, ..CompileOptions::default() };
            let Some(compiled) = compile(&schema, &options) else { continue };
            let mut automaton = SchemaAutomaton::new(&compiled);
            for _ in 0..12 {
                let bytes = generator.random.below(40);
                walks += 1;
                match walk(&mut automaton, &mut generator.random, bytes) {
                    Err(error) => failures.push(format!("{schema}: {error}")),
                    Ok(text) => {
                        let value: Value = serde_json::from_str(&text).expect("JSON");
                        // The validator computes with floats.
                        let is_judged =
                            text.split(|c: char| !c.is_ascii_digit()).all(|part| part.len() <= 15);
                        if is_judged && !is_valid(&schema, &value) {
                            failures.push(format!("{schema}: {text} is not valid"));
                        }
                    }
                }
            }
        }
    }
    failures.truncate(8);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(walks > 1_000, "{walks}");
}

#[test]
fn lint_says_where_a_value_is_read_from_the_instance_and_where_it_cannot_be() {
    use molde_schema::{Lint, Registry, Verdict};
    let schema = json!({"type": "object", "properties": {
        "bajo": {"type": "number"},
        "alto": {"type": "number", "minimum": {"$data": "1/bajo"}, "multipleOf": 2},
    }});
    let lint = Lint::new(&schema.to_string(), &Registry::new(), &CompileOptions::default());
    assert!(lint.outcome.is_ok());
    let verdict = |lint: &Lint, pointer: &str| {
        lint.occurrences.iter().find(|known| known.pointer == pointer).map(|known| known.verdict)
    };
    assert_eq!(verdict(&lint, "/properties/alto/minimum"), Some(Verdict::EnforcedWithData));
    assert_eq!(verdict(&lint, "/properties/alto/multipleOf"), Some(Verdict::Enforced));

    for (keyword, pointer) in [
        ("multipleOf", "1/bajo"),
        ("enum", "1/bajo"),
        ("pattern", "1/bajo"),
        ("format", "1/bajo"),
        ("uniqueItems", "1/bajo"),
        ("minimum", "0#"),
        ("minimum", "1/alto"),
        ("minimum", "0/x"),
        ("minimum", "2/bajo"),
        ("minimum", "/bajo/x"),
        ("minimum", "1/a//b"),
        ("minimum", "1"),
        ("const", ""),
        ("minContains", "1/bajo"),
    ] {
        let schema = json!({"properties": {"alto": {keyword: {"$data": pointer}}}});
        match CompiledSchema::compile(&schema.to_string(), &CompileOptions::default()) {
            Err(SchemaError::Refused(list)) => {
                assert_eq!(list.0.len(), 1, "{keyword} {pointer}");
                assert_eq!(list.0[0].pointer, format!("/properties/alto/{keyword}"));
                assert!(list.0[0].reason.contains("$data"), "{}", list.0[0].reason);
            }
            other => panic!("{keyword} {pointer}: {other:?}"),
        }
    }
    for pointer in ["bajo", "01/bajo", "1bajo", "1/~2"] {
        let schema = json!({"properties": {"alto": {"minimum": {"$data": pointer}}}});
        let found = CompiledSchema::compile(&schema.to_string(), &CompileOptions::default());
        assert!(matches!(found, Err(SchemaError::Malformed(_))), "{pointer}: {found:?}");
    }
}

#[test]
fn the_digits_of_a_style_count_when_a_bound_is_projected_back() {
    // Of numbers with 15 digits, 9.99999999999999 is the last one below 10.
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "number"},
        "b": {"type": "number", "exclusiveMaximum": 10, "exclusiveMinimum": {"$data": "1/a"}}}});
    let compiled = compile(&schema, &CompileOptions::default()).expect("it has values");
    let mut automaton = SchemaAutomaton::new(&compiled);
    for (text, expected) in [
        (r#"{"a": 9.99999999999998, "b": 9.99999999999999}"#, true),
        (r#"{"a": 9.99999999999999, "#, false),
        (r#"{"a": 9.99999999999998, "b": 9.99999999999998}"#, false),
    ] {
        let is_live = support::read(&mut automaton, text.as_bytes()).is_ok();
        assert_eq!(is_live, expected, "{text}");
    }
    // An integer has up to 400 digits, another number up to 308.
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "integer"}, "b": {"type": "number", "minimum": {"$data": "1/a"}}}});
    let compiled = compile(&schema, &CompileOptions::default()).expect("it has values");
    let mut automaton = SchemaAutomaton::new(&compiled);
    let nines = "9".repeat(308);
    assert!(accepts(&mut automaton, format!(r#"{{"a": {nines}, "b": {nines}}}"#).as_bytes()));
    assert!(support::read(&mut automaton, format!(r#"{{"a": {nines}9"#).as_bytes()).is_err());
}
