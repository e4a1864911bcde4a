//! The members of a value in the order in which a schema has them written.
//!
//! Under [`Order::Schema`](crate::Order) an object is written declared names first, by their first
//! appearance in the schema, then required names that are not declared, then the rest. Where the
//! schema has alternatives, each has its own order, and which of them a value satisfies is for the
//! automaton to say: the text is written in the order of the first alternative that is still open,
//! and read by the automaton at the same time; where that ends in a dead state, the next choice is
//! tried.
//!
//! ```text
//! schema   anyOf [ {"a", "b"}, {"b", "a", "c"} ]         value  {"c": 0, "a": 1, "b": 2}
//! after `{` both are open:   a, b, c  is dead at  c  ──▶  b, a, c  is accepted
//! ```

use std::sync::Arc;

use crate::document::{Document, Value, ValueId};
use crate::error::SchemaError;
use crate::goal::ObjectShape;
use crate::options::{Limits, Order, Style};
use crate::text::quoted;
use crate::{CompiledSchema, DEAD, SchemaAutomaton};

/// Texts tried at most for one value: a value with so many wrong turns is written as it came.
const MAX_ATTEMPTS: usize = 64;

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
    /// One reading of the text for each alternative that has to be tried, at most 64.
    pub fn canonical_order(&self, text: &str) -> Result<String, SchemaError> {
        let options = self.options();
        let limits = Limits { schema_bytes: usize::MAX, ..options.limits };
        let document = Document::parse(text, &limits)?;
        let mut writer = Writer {
            document: &document,
            automaton: SchemaAutomaton::from_goals(self.goals().clone()),
            style: options.style,
            order: options.order,
            state: DEAD,
            text: Vec::new(),
            choices: Vec::new(),
            next: 0,
        };
        let mut first = None;
        for _ in 0..MAX_ATTEMPTS {
            writer.write();
            if writer.automaton.is_accepting(writer.state) {
                first = None;
                break;
            }
            first.get_or_insert_with(|| writer.text.clone());
            if !writer.next_choices() {
                break;
            }
        }
        let text = first.unwrap_or(writer.text);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Which of several orders was taken for one object, of how many.
struct Choice {
    taken: usize,
    count: usize,
}

struct Writer<'a> {
    document: &'a Document,
    automaton: SchemaAutomaton,
    style: Style,
    order: Order,
    state: u32,
    text: Vec<u8>,
    /// The choices of this attempt, in the order in which the objects come up.
    choices: Vec<Choice>,
    /// How many of them have been used.
    next: usize,
}

impl Writer<'_> {
    /// Writes the whole value with the choices as they are, and first ones for what is new.
    fn write(&mut self) {
        self.state = self.automaton.start();
        self.text.clear();
        self.next = 0;
        self.write_value(self.document.root());
    }

    /// Moves on to the next combination, the last choice first; `false` if there is none.
    fn next_choices(&mut self) -> bool {
        while let Some(last) = self.choices.last_mut() {
            last.taken += 1;
            if last.taken < last.count {
                return true;
            }
            self.choices.pop();
        }
        false
    }

    /// Nesting is bounded by the limit on the depth of a document.
    fn write_value(&mut self, id: ValueId) {
        let document = self.document;
        match document.get(id) {
            Value::Null => self.put(b"null"),
            Value::Boolean(value) => self.put(if *value { b"true" } else { b"false" }),
            Value::Number(number) => self.put(number.as_bytes()),
            Value::String(string) => self.put(&quoted(string)),
            Value::Array(items) => {
                self.put(b"[");
                for (index, &item) in items.iter().enumerate() {
                    self.separate(index);
                    self.write_value(item);
                }
                self.put(b"]");
            }
            Value::Object(members) => {
                self.put(b"{");
                let written: Vec<&str> = members.keys().map(String::as_str).collect();
                for (index, at) in self.member_order(&written).into_iter().enumerate() {
                    self.separate(index);
                    let Some((name, &value)) = members.get_index(at) else { continue };
                    self.put(&quoted(name));
                    self.put(if self.style == Style::Spaced { b": " } else { b":" });
                    self.write_value(value);
                }
                self.put(b"}");
            }
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.put(if self.style == Style::Spaced { b", " } else { b"," });
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.text.push(byte);
            self.state = self.automaton.step(self.state, byte);
            if byte == b'"' {
                self.state = self.automaton.settle(self.state, &self.text);
            }
        }
    }

    /// The order of the members of the object that was just opened, as indices of `names`.
    fn member_order(&mut self, names: &[&str]) -> Vec<usize> {
        if self.order == Order::Any {
            return (0..names.len()).collect();
        }
        let mut orders: Vec<Vec<usize>> = Vec::new();
        for shape in self.automaton.opened_objects(self.state) {
            let order = order_in(&shape, names);
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        let taken = match orders.len() {
            0 => return (0..names.len()).collect(),
            1 => 0,
            count => {
                if self.next == self.choices.len() {
                    self.choices.push(Choice { taken: 0, count });
                }
                self.next += 1;
                self.choices[self.next - 1].taken.min(count - 1)
            }
        };
        orders.swap_remove(taken)
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
    fn under_any_order_members_stay_where_they_are() {
        let options = CompileOptions { order: Order::Any, ..CompileOptions::default() };
        let schema = CompiledSchema::compile(r#"{"properties": {"a": true}}"#, &options).unwrap();
        let text = r#"{"b": 1, "a": {"d": 1, "c": 2}}"#;
        assert_eq!(schema.canonical_order(text).unwrap(), text);
    }
}
