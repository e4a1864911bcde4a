//! Faults of numbers, texts and types.

use molde_schema::CompileOptions;
use serde_json::{Map, Number, Value, json};

use super::FreeForm;
use crate::{Fault, Verdict};

/// Whether a value is of a type. `4.0` is an integer.
pub(super) fn is_of(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => is_whole(number),
        _ => false,
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// Equality of JSON Schema: by value, members in any order.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// The fault of a value that is not of the type `name`.
pub(super) fn wrong_type(name: &str, map: &Map<String, Value>, value: &Value, at: &str) -> Fault {
    let (kind, expected) = match (name, value) {
        ("integer", Value::Number(_)) => ("int_from_float", "a whole number"),
        ("integer", Value::String(text)) if !reads_as_integer(text) => {
            ("int_parsing", "a whole number")
        }
        ("integer", _) => ("int_type", "a whole number"),
        ("number", Value::String(text)) if !reads_as_float(text) => ("float_parsing", "a number"),
        ("number", _) => ("float_type", "a number"),
        ("boolean", Value::String(text)) if !reads_as_bool(text) => {
            ("bool_parsing", "true or false")
        }
        ("boolean", Value::Number(number)) if is_whole(number) && !is_zero_or_one(number) => {
            ("bool_parsing", "true or false")
        }
        ("boolean", _) => ("bool_type", "true or false"),
        ("string", _) => {
            let kind = match map.get("format").and_then(Value::as_str) {
                Some("date") => "date_type",
                Some("date-time") => "datetime_type",
                Some("time") => "time_type",
                Some("uuid") => "uuid_type",
                Some("uri") => "url_type",
                Some("ipv4") => "ip_v4_address",
                Some("ipv6") => "ip_v6_address",
                _ => "string_type",
            };
            (kind, "a string")
        }
        ("null", _) => ("none_required", "null"),
        ("array", _) if map.contains_key("prefixItems") => ("tuple_type", "an array"),
        ("array", _) if map.get("uniqueItems") == Some(&Value::Bool(true)) => {
            ("set_type", "an array")
        }
        ("array", _) => ("list_type", "an array"),
        ("object", _) if map.contains_key("properties") => ("model_type", "an object"),
        ("object", _) => ("dict_type", "an object"),
        _ => ("json_schema", "another type"),
    };
    Fault::new(kind, at, format!("expected {expected}"))
}

/// Whether Pydantic's lax mode takes a text for an integer.
fn reads_as_integer(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0') && is_grouped(whole)
}

/// Digits, with single underscores between them.
fn is_grouped(text: &str) -> bool {
    text.split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether Pydantic's lax mode takes a text for a number.
fn reads_as_float(text: &str) -> bool {
    let text = text.trim();
    let plain =
        if text.split(['.', 'e', 'E', '+', '-']).all(|part| part.is_empty() || is_grouped(part)) {
            text.replace('_', "")
        } else {
            text.to_owned()
        };
    plain.parse::<f64>().is_ok()
}

fn reads_as_bool(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = ["0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"];
    words.contains(&text.as_str())
}

fn is_zero_or_one(number: &Number) -> bool {
    matches!(number.to_string().as_str(), "0" | "1" | "0.0" | "1.0" | "-0.0")
}

pub(super) fn number(map: &Map<String, Value>, number: &Number, at: &str) -> Option<Fault> {
    let value = number.as_f64()?;
    let bound = |keyword: &str| map.get(keyword).filter(|bound| bound.is_number());
    let strict = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
    let float = |bound: &Value| bound.as_f64().unwrap_or(f64::NAN);
    if let Some(step) = bound("multipleOf")
        && !is_multiple(value, float(step))
    {
        return Some(Fault::new("multiple_of", at, format!("expected a multiple of {step}")));
    }
    // Draft 4 has booleans beside the bounds.
    let upper = strict("exclusiveMaximum");
    if let Some(most) = bound("maximum").filter(|_| !upper).filter(|most| value > float(most)) {
        return Some(Fault::new("less_than_equal", at, format!("expected at most {most}")));
    }
    let below = bound("exclusiveMaximum").or_else(|| bound("maximum").filter(|_| upper));
    if let Some(bound) = below.filter(|bound| value >= float(bound)) {
        return Some(Fault::new("less_than", at, format!("expected less than {bound}")));
    }
    let lower = strict("exclusiveMinimum");
    if let Some(least) = bound("minimum").filter(|_| !lower).filter(|least| value < float(least)) {
        return Some(Fault::new("greater_than_equal", at, format!("expected at least {least}")));
    }
    let above = bound("exclusiveMinimum").or_else(|| bound("minimum").filter(|_| lower));
    let bound = above.filter(|bound| value <= float(bound))?;
    Some(Fault::new("greater_than", at, format!("expected more than {bound}")))
}

/// As near as binary64 tells. The exact verdict has been given already.
fn is_multiple(value: f64, step: f64) -> bool {
    let quotient = value / step;
    (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
}

pub(super) fn string(map: &Map<String, Value>, text: &str, at: &str) -> Option<Fault> {
    let count = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if let Some(least) = count("minLength").filter(|least| length < *least) {
        let message = format!("expected at least {least} characters");
        return Some(Fault::new("string_too_short", at, message));
    }
    if let Some(most) = count("maxLength").filter(|most| length > *most) {
        let message = format!("expected at most {most} characters");
        return Some(Fault::new("string_too_long", at, message));
    }
    if let Some(pattern) = map.get("pattern")
        && !holds(&json!({ "pattern": pattern }), text)
    {
        let message = "expected a string that the pattern matches";
        return Some(Fault::new("string_pattern_mismatch", at, message));
    }
    let format = map.get("format")?;
    if holds(&json!({ "format": format }), text) {
        return None;
    }
    let kind = match format.as_str()? {
        "date" => "date_from_datetime_parsing",
        "date-time" => "datetime_from_date_parsing",
        "time" => "time_parsing",
        "uuid" => "uuid_parsing",
        "uri" => "url_parsing",
        "ipv4" => "ip_v4_address",
        "ipv6" => "ip_v6_address",
        _ => "value_error",
    };
    Some(Fault::new(kind, at, format!("expected the format {format}")))
}

/// Whether a text satisfies one keyword; also where that cannot be decided.
fn holds(schema: &Value, text: &str) -> bool {
    FreeForm::new(&schema.to_string(), &CompileOptions::default()).map_or(true, |form| {
        !matches!(
            form.judge(&Value::from(text).to_string()),
            Verdict::Invalid { .. } | Verdict::Incomplete { .. }
        )
    })
}
