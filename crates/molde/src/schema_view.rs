//! The text of a schema as a value to show: for the prompt, never for enforcing.
//!
//! The compiler takes schemas that `serde_json` does not: nested deeper than 128 levels, with
//! numbers beyond a binary64. A prompt leaves out what is deep anyway, so here is no error: what
//! cannot be held is shown as "any value", and a number as the text it is.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Levels that are kept: what lies deeper is far beyond what a signature shows.
const LEVELS: usize = 100;

/// Reads `text` as far as it can be held; `true`, the schema of any value, for the rest.
///
/// # Complexity
/// Linear for a text that `serde_json` can hold; else linear for each level, up to 100.
pub(crate) fn read(text: &str) -> Value {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(text).map(|raw| view(raw, LEVELS)))
        .unwrap_or(Value::Bool(true))
}

fn view(raw: &RawValue, levels: usize) -> Value {
    let text = raw.get();
    let nested = |result: Result<Value, serde_json::Error>| result.unwrap_or(Value::Bool(true));
    match text.as_bytes().first() {
        Some(b'{' | b'[') if levels == 0 => Value::Bool(true),
        Some(b'{') => nested(serde_json::from_str::<Members<'_>>(text).map(|members| {
            let members = members.0.into_iter();
            Value::Object(members.map(|(name, raw)| (name, view(raw, levels - 1))).collect())
        })),
        Some(b'[') => nested(serde_json::from_str::<Vec<&RawValue>>(text).map(|items| {
            Value::Array(items.into_iter().map(|raw| view(raw, levels - 1)).collect())
        })),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// The members of an object in their order, each as its text.
pub(crate) struct Members<'t>(pub(crate) Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_schema_is_the_value_that_it_is() {
        let text = r#"{"b": {"type": "integer", "minimum": -1.5}, "a": [null, true, "é\n"]}"#;
        assert_eq!(read(text), serde_json::from_str::<Value>(text).expect("JSON"));
    }

    #[test]
    fn numbers_beyond_a_float_leave_the_rest_readable_and_in_order() {
        let value = read(r#"{"z": {"maximum": 1e400, "minimum": 2}, "a": [1, -1e999]}"#);
        assert_eq!(value.to_string(), r#"{"z":{"maximum":"1e400","minimum":2},"a":[1,"-1e999"]}"#);
    }

    #[test]
    fn what_is_deep_is_any_value() {
        let depth = 50_000;
        let text = format!(r#"{{"a": 1, "b": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let value = read(&text);
        assert_eq!(value["a"], 1);
        let mut at = &value["b"];
        let mut levels = 1;
        while let Some(inner) = at.get(0) {
            at = inner;
            levels += 1;
        }
        assert_eq!((levels, at), (LEVELS, &json!(true)));
    }

    #[test]
    fn what_serde_json_does_not_read_at_all_is_any_value() {
        for text in ["", "{", r#"{"\ud800": 1e400}"#] {
            assert_eq!(read(text), json!(true), "{text}");
        }
    }
}
