//! A JSON text as a tree in one array, with every number kept as it was written.
//!
//! An arena rather than boxes: deep nesting then costs no stack, neither to build nor to drop.

use indexmap::IndexMap;
use json_event_parser::{JsonEvent, SliceJsonParser};

use crate::error::{Offender, Offenders, SchemaError};
use crate::options::Limits;

/// Index of a value in a [`Document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(u32);

/// One JSON value; the children of containers are in the same document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    /// As written: bounds and constants are exact, whatever their size.
    Number(String),
    String(String),
    Array(Vec<ValueId>),
    Object(IndexMap<String, ValueId>),
}

/// A parsed JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    values: Vec<Value>,
    root: ValueId,
}

/// A container whose end has not been read yet.
enum Open {
    Array(Vec<ValueId>),
    Object(IndexMap<String, ValueId>, Option<String>),
}

impl Document {
    /// Parses a whole JSON text. Repeated keys are an error: which of the two counts would be a
    /// guess.
    pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Self, SchemaError> {
        let mut document = Self { values: Vec::new(), root: ValueId(0) };
        document.root = document.append(text, limits)?;
        Ok(document)
    }

    /// Parses another text into the same array; the result is its root.
    pub(crate) fn append(&mut self, text: &str, limits: &Limits) -> Result<ValueId, SchemaError> {
        if text.len() > limits.schema_bytes {
            return Err(limit("schema_bytes", limits.schema_bytes, "bytes"));
        }
        let mut parser = SliceJsonParser::new(text.as_bytes());
        let values = &mut self.values;
        let mut open: Vec<Open> = Vec::new();
        let mut root = None;
        loop {
            let event = parser.parse_next().map_err(|error| SchemaError::Syntax {
                message: error.message().to_owned(),
                line: error.location().start.line + 1,
                column: error.location().start.column + 1,
            })?;
            let value = match event {
                JsonEvent::Eof => break,
                JsonEvent::StartArray => {
                    open.push(Open::Array(Vec::new()));
                    None
                }
                JsonEvent::StartObject => {
                    open.push(Open::Object(IndexMap::new(), None));
                    None
                }
                JsonEvent::ObjectKey(key) => {
                    if let Some(Open::Object(members, pending)) = open.last_mut() {
                        if members.contains_key(key.as_ref()) {
                            return Err(SchemaError::Malformed(Offenders(vec![Offender {
                                pointer: path(&open),
                                keyword: key.into_owned(),
                                reason: "appears twice in the same object".to_owned(),
                            }])));
                        }
                        *pending = Some(key.into_owned());
                    }
                    None
                }
                JsonEvent::EndArray | JsonEvent::EndObject => match open.pop() {
                    Some(Open::Array(items)) => Some(Value::Array(items)),
                    Some(Open::Object(members, _)) => Some(Value::Object(members)),
                    None => None,
                },
                JsonEvent::Null => Some(Value::Null),
                JsonEvent::Boolean(value) => Some(Value::Boolean(value)),
                JsonEvent::Number(number) => Some(Value::Number(number.into_owned())),
                JsonEvent::String(string) => Some(Value::String(string.into_owned())),
            };
            if open.len() > limits.schema_depth {
                return Err(limit("schema_depth", limits.schema_depth, "levels"));
            }
            if let Some(value) = value {
                let id = ValueId(values.len() as u32);
                values.push(value);
                match open.last_mut() {
                    None => root = Some(id),
                    Some(Open::Array(items)) => items.push(id),
                    Some(Open::Object(members, key)) => {
                        let key = key.take().expect("the parser sends a key before each member");
                        members.insert(key, id);
                    }
                }
            }
        }
        root.ok_or_else(|| SchemaError::Syntax {
            message: "the text is empty".to_owned(),
            line: 1,
            column: 1,
        })
    }

    /// Every value of every text.
    pub(crate) fn values(&self) -> impl Iterator<Item = (ValueId, &Value)> {
        self.values.iter().enumerate().map(|(index, value)| (ValueId(index as u32), value))
    }

    pub(crate) fn root(&self) -> ValueId {
        self.root
    }

    pub(crate) fn get(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// The value at a JSON Pointer (RFC 6901), relative to `from`.
    pub(crate) fn resolve(&self, from: ValueId, pointer: &str) -> Option<ValueId> {
        if pointer.is_empty() {
            return Some(from);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(from, |id, token| {
            let escapes = token
                .match_indices('~')
                .all(|(at, _)| matches!(token.as_bytes().get(at + 1), Some(b'0' | b'1')));
            if !escapes {
                return None;
            }
            let token = token.replace("~1", "/").replace("~0", "~");
            match self.get(id) {
                Value::Object(members) => members.get(&token).copied(),
                Value::Array(items) => {
                    let plain = token == "0" || !token.starts_with(['0', '+']);
                    items.get(token.parse::<usize>().ok().filter(|_| plain)?).copied()
                }
                _ => None,
            }
        })
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Appends one reference token to a JSON Pointer, escaped.
pub(crate) fn join(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// The pointer of the innermost open container.
fn path(open: &[Open]) -> String {
    open.iter().take(open.len().saturating_sub(1)).fold(String::new(), |pointer, container| {
        match container {
            Open::Array(items) => join(&pointer, &items.len().to_string()),
            Open::Object(_, key) => join(&pointer, key.as_deref().unwrap_or("")),
        }
    })
}

fn limit(name: &'static str, limit: usize, unit: &'static str) -> SchemaError {
    SchemaError::Limit { name, limit: limit as u64, unit, pointer: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, SchemaError> {
        Document::parse(text, &Limits::default())
    }

    #[test]
    fn numbers_keep_their_digits() {
        let document = parse("[1.50, 123456789012345678901234567890, 1e400]").expect("valid");
        let Value::Array(items) = document.get(document.root()) else { panic!("not an array") };
        let numbers: Vec<_> = items.iter().map(|&id| document.get(id).clone()).collect();
        assert_eq!(
            numbers,
            ["1.50", "123456789012345678901234567890", "1e400"]
                .map(|n| Value::Number(n.to_owned()))
        );
    }

    #[test]
    fn pointers_resolve_with_escapes_and_indices() {
        let document = parse(r#"{"a/b": {"c~d": [10, 20]}, "": 1}"#).expect("valid");
        let at = |pointer| document.resolve(document.root(), pointer).map(|id| document.get(id));
        assert_eq!(at("/a~1b/c~0d/1"), Some(&Value::Number("20".to_owned())));
        assert_eq!(at("/"), Some(&Value::Number("1".to_owned())));
        assert_eq!(at("/a~1b/c~0d/01"), None);
        assert_eq!(at("/missing"), None);
        assert_eq!(at("a"), None);
        assert_eq!(document.len(), 6);
    }

    #[test]
    fn repeated_keys_are_named_with_their_place() {
        let error = parse(r#"{"a": [0, {"x": 1, "x": 2}]}"#).expect_err("repeated");
        assert_eq!(error.to_string(), "/a/1: `x` appears twice in the same object");
    }

    #[test]
    fn syntax_errors_have_a_position() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "nul", "1 2"] {
            assert!(matches!(parse(text), Err(SchemaError::Syntax { .. })), "{text:?}");
        }
    }

    #[test]
    fn depth_and_size_are_limited_by_name() {
        let deep = "[".repeat(100_000);
        assert!(matches!(parse(&deep), Err(SchemaError::Limit { name: "schema_depth", .. })));
        let limits = Limits { schema_bytes: 3, ..Limits::default() };
        assert!(matches!(
            Document::parse("true", &limits),
            Err(SchemaError::Limit { name: "schema_bytes", .. })
        ));
    }
}
