//! The members of a value in the order in which a schema has them written.
//!
//! Under [`Order::Schema`](crate::Order) an object is written declared names first, by their first
//! appearance in the schema, then required names that are not declared, then the rest. Where the
//! schema has alternatives, each has its own order, and which of them a value satisfies is for the
//! automaton to say: an object is written in the order of each alternative that is open, the text is
//! read by the automaton at the same time, and what ends in a dead state is dropped. Ways that lead
//! to the same state are one.
//!
//! ```text
//! schema   anyOf [ {"a", "b"}, {"b", "a", "c"} ]         value  {"c": 0, "a": 1, "b": 2}
//! after `{` both are open:   a, b, c  is dead at  c  ──▶  b, a, c  is accepted
//! ```

use std::sync::Arc;

use crate::document::{Document, Value, ValueId};
use crate::error::SchemaError;
use crate::goal::ObjectShape;
use crate::options::{CompileOptions, Limits, Order, Style};
use crate::text::quoted;
use crate::{CompiledSchema, DEAD, SchemaAutomaton, UNDECIDED};

/// Ways to write a value that are kept side by side.
const MAX_WAYS: usize = 64;

/// Objects written at most for one value; beyond that it is written as its first alternative has it.
const MAX_OBJECTS: usize = 20_000;

impl CompiledSchema {
    /// A JSON text rewritten as this schema has it written: members in canonical order, separators
    /// of the compiled [`Style`] ([`Style::Flexible`] has none), strings with the escapes that JSON
    /// demands, numbers as they are.
    ///
    /// A value that the schema accepts comes out as a text that
    /// [`SchemaAutomaton`] accepts, given that its numbers are spelt in the compiled
    /// [`NumberStyle`](crate::NumberStyle). In a value that it does not accept, members are ordered
    /// as far as some alternative goes.
    ///
    /// # Errors
    /// [`SchemaError::Syntax`], [`SchemaError::Malformed`] or [`SchemaError::Limit`] if the text is
    /// not JSON, repeats a key, or is nested deeper than
    /// [`Limits::schema_depth`](crate::Limits::schema_depth).
    ///
    /// # Complexity
    /// One reading of each object for each order in which alternatives that are open write it.
    pub fn canonical_order(&self, text: &str) -> Result<String, SchemaError> {
        let options = self.options();
        let limits = Limits { schema_bytes: usize::MAX, ..options.limits };
        let document = Document::parse(text, &limits)?;
        let automaton = SchemaAutomaton::from_goals(self.goals().clone());
        let start = Way { state: automaton.start(), text: Vec::new() };
        let mut writer =
            Writer { document: &document, automaton, options, objects: 0, all_ways: true };
        let ways = writer.write_value(document.root(), vec![start.clone()]);
        let accepted = ways.into_iter().find(|way| writer.automaton.is_accepting(way.state));
        let way = accepted.or_else(|| {
            writer.all_ways = false;
            writer.write_value(document.root(), vec![start]).pop()
        });
        let text = way.map_or_else(Vec::new, |way| way.text);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// A text that was written so far, and the state after it.
#[derive(Clone)]
struct Way {
    state: u32,
    text: Vec<u8>,
}

struct Writer<'a> {
    document: &'a Document,
    automaton: SchemaAutomaton,
    options: &'a CompileOptions,
    /// Objects written so far.
    objects: usize,
    /// Whether each alternative is tried and what is dead is left; otherwise the first is followed,
    /// dead or not.
    all_ways: bool,
}

impl Writer<'_> {
    /// Every way to go on with a value, one for each state.
    ///
    /// Nesting is bounded by the limit on the depth of a document.
    fn write_value(&mut self, id: ValueId, mut ways: Vec<Way>) -> Vec<Way> {
        let document = self.document;
        match document.get(id) {
            Value::Null => self.put(&mut ways, b"null"),
            Value::Boolean(value) => {
                self.put(&mut ways, if *value { b"true" } else { b"false" });
            }
            Value::Number(number) => self.put(&mut ways, number.as_bytes()),
            Value::String(string) => self.put(&mut ways, &quoted(string)),
            Value::Array(items) => {
                self.put(&mut ways, b"[");
                for (index, &item) in items.iter().enumerate() {
                    self.separate(&mut ways, index);
                    ways = self.write_value(item, ways);
                }
                self.put(&mut ways, b"]");
            }
            Value::Object(members) => {
                self.put(&mut ways, b"{");
                let names: Vec<&str> = members.keys().map(String::as_str).collect();
                let mut after: Vec<Way> = Vec::new();
                for way in ways {
                    for order in self.member_orders(way.state, &names) {
                        self.objects += 1;
                        if self.all_ways && self.objects > MAX_OBJECTS {
                            return Vec::new();
                        }
                        let mut ways = vec![way.clone()];
                        for (index, at) in order.into_iter().enumerate() {
                            self.separate(&mut ways, index);
                            let Some((name, &value)) = members.get_index(at) else { continue };
                            self.put(&mut ways, &quoted(name));
                            self.put(&mut ways, if self.is_spaced() { b": " } else { b":" });
                            ways = self.write_value(value, ways);
                            if ways.is_empty() {
                                break;
                            }
                        }
                        self.put(&mut ways, b"}");
                        for way in ways {
                            let is_new = after.iter().all(|known| known.state != way.state);
                            if is_new && after.len() < MAX_WAYS {
                                after.push(way);
                            }
                        }
                    }
                }
                ways = after;
            }
        }
        ways
    }

    fn is_spaced(&self) -> bool {
        self.options.style == Style::Spaced
    }

    fn separate(&mut self, ways: &mut Vec<Way>, index: usize) {
        if index > 0 {
            self.put(ways, if self.is_spaced() { b", " } else { b"," });
        }
    }

    /// Goes on with some bytes; what is dead then is no way.
    fn put(&mut self, ways: &mut Vec<Way>, bytes: &[u8]) {
        for way in ways.iter_mut() {
            for &byte in bytes {
                way.text.push(byte);
                way.state = self.automaton.step(way.state, byte);
                if byte == b'"' {
                    way.state = self.automaton.settle(way.state, &way.text);
                }
            }
        }
        if self.all_ways {
            ways.retain(|way| way.state != DEAD && way.state != UNDECIDED);
        }
    }

    /// The orders of the members of an object that was just opened, as indices of `names`.
    fn member_orders(&mut self, state: u32, names: &[&str]) -> Vec<Vec<usize>> {
        let mut orders: Vec<Vec<usize>> = Vec::new();
        if self.options.order == Order::Schema {
            for shape in self.automaton.opened_objects(state) {
                let order = order_in(&shape, names);
                if !orders.contains(&order) {
                    orders.push(order);
                }
            }
        }
        if orders.is_empty() {
            orders.push((0..names.len()).collect());
        }
        if !self.all_ways {
            orders.truncate(1);
        }
        orders
    }
}

/// Declared names by their place in the shape, then the others as they came.
fn order_in(shape: &Arc<ObjectShape>, names: &[&str]) -> Vec<usize> {
    let place = |name: &str| {
        let found =
            shape.sorted.binary_search_by(|&index| (*shape.names[index as usize]).cmp(name));
        found.map_or(u32::MAX, |at| shape.sorted[at])
    };
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&at| place(names[at]));
    order
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, CompiledSchema, NumberStyle, Order};

    fn ordered(schema: &str, value: &str) -> String {
        let options =
            CompileOptions { number_style: NumberStyle::Any, ..CompileOptions::default() };
        CompiledSchema::compile(schema, &options).unwrap().canonical_order(value).unwrap()
    }

    #[test]
    fn declared_names_come_first_then_required_ones_then_the_rest_as_written() {
        let schema = r#"{"properties": {"b": true, "a": {"properties": {"y": true, "x": true}}},
                         "required": ["r"]}"#;
        let value = r#"{"z":1,"r":2.50,"a":{"x":[1,{"k":"\u00e9"}],"y":null},"q":"a\/b","b":true}"#;
        let expected =
            r#"{"b": true, "a": {"y": null, "x": [1, {"k": "é"}]}, "r": 2.50, "z": 1, "q": "a/b"}"#;
        assert_eq!(ordered(schema, value), expected);
    }

    #[test]
    fn the_order_is_that_of_an_alternative_which_accepts_the_value() {
        let schema = r#"{"anyOf": [
            {"properties": {"a": {"type": "string"}, "b": true}},
            {"properties": {"b": true, "a": {"type": "integer"}, "c": {"anyOf": [
                {"properties": {"p": {"const": 1}, "q": true}},
                {"properties": {"q": true, "p": true}}]}}}]}"#;
        assert_eq!(ordered(schema, r#"{"b":1,"a":"x"}"#), r#"{"a": "x", "b": 1}"#);
        assert_eq!(
            ordered(schema, r#"{"c":{"p":2,"q":3},"a":1,"b":1}"#),
            r#"{"b": 1, "a": 1, "c": {"q": 3, "p": 2}}"#
        );
        // No alternative: in the order of the first.
        assert_eq!(ordered(schema, r#"{"b":1,"a":null}"#), r#"{"a": null, "b": 1}"#);
    }

    #[test]
    fn an_alternative_that_many_others_stand_before_is_found() {
        let item = r#"{"anyOf": [{"properties": {"p": true, "q": true}},
                                 {"properties": {"q": {"type": "integer"}, "p": true}}]}"#;
        let schema = format!(
            r#"{{"anyOf": [
                {{"properties": {{"items": {{"items": {item}}}, "kind": {{"const": 1}}}}}},
                {{"properties": {{"kind": {{"const": 2}}, "items": {{"items": {item}}}}}}}]}}"#
        );
        let items = [r#"{"q": 1, "p": 2}"#; 12].join(", ");
        let expected = [r#"{"p": 2, "q": 1}"#; 12].join(", ");
        assert_eq!(
            ordered(&schema, &format!(r#"{{"items": [{items}], "kind": 2}}"#)),
            format!(r#"{{"kind": 2, "items": [{expected}]}}"#)
        );
    }

    #[test]
    fn under_any_order_members_stay_where_they_are() {
        let options = CompileOptions { order: Order::Any, ..CompileOptions::default() };
        let schema = CompiledSchema::compile(r#"{"properties": {"a": true}}"#, &options).unwrap();
        let text = r#"{"b": 1, "a": {"d": 1, "c": 2}}"#;
        assert_eq!(schema.canonical_order(text).unwrap(), text);
    }
}
