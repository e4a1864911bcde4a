//! The independent validator, and where it is known to depart from the standard.

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

/// The committed table of what the validator is known to judge wrongly.
const DEVIATIONS: &str = include_str!("../baseline/oracle_deviations.json");

/// A kind of instance that the validator rejects although the standard accepts it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    /// The keyword that has to be somewhere in the schema, with this value if there is one.
    #[serde(default)]
    keyword: Option<String>,
    #[serde(default)]
    value: Option<Value>,
    instance: Scalar,
    /// Why the verdict is no verdict: for the reader of the table.
    #[allow(dead_code, reason = "a table without reasons is not taken")]
    reason: String,
}

/// What some scalar of the instance has.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scalar {
    /// More digits than this.
    NumberDigitsAbove(usize),
    NumberContains(String),
    StringContains(String),
}

/// What the validator says of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    Invalid,
    /// The validator takes no such schema, or is known to be wrong about such a text.
    Unjudged,
}

/// The table of deviations.
pub(crate) struct Deviations(Vec<Deviation>);

/// The validator of one schema.
pub(crate) struct Oracle<'a> {
    schema: Value,
    validator: Option<jsonschema::Validator>,
    deviations: &'a Deviations,
}

impl Deviations {
    /// Reads the committed table.
    ///
    /// # Errors
    /// If it is no table.
    pub(crate) fn load() -> anyhow::Result<Self> {
        Ok(Self(serde_json::from_str(DEVIATIONS).context("the table of deviations")?))
    }
}

impl<'a> Oracle<'a> {
    /// The validator of a schema text, formats asserted or not. It takes no schema with a number
    /// beyond binary64.
    pub(crate) fn new(schema: &str, formats: bool, deviations: &'a Deviations) -> Self {
        let schema = serde_json::from_str(schema).ok();
        let build =
            |schema| jsonschema::options().should_validate_formats(formats).build(schema).ok();
        let validator = schema.as_ref().and_then(build);
        Self { schema: schema.unwrap_or_default(), validator, deviations }
    }

    /// Judges a text. What is no JSON text is invalid.
    pub(crate) fn judge(&self, text: &[u8]) -> Verdict {
        let value = match serde_json::from_slice::<Value>(text) {
            Ok(value) => value,
            // JSON, but beyond binary64.
            Err(error) if error.to_string().starts_with("number out of range") => {
                return Verdict::Unjudged;
            }
            Err(_) => return Verdict::Invalid,
        };
        match &self.validator {
            Some(validator) if validator.is_valid(&value) => Verdict::Valid,
            Some(_) if !self.is_known_deviation(text) => Verdict::Invalid,
            _ => Verdict::Unjudged,
        }
    }

    fn is_known_deviation(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        self.deviations.0.iter().any(|deviation| {
            deviation.instance.is_in(&text)
                && deviation.keyword.as_deref().is_none_or(|keyword| {
                    has_keyword(&self.schema, keyword, deviation.value.as_ref())
                })
        })
    }
}

/// Whether some object of the schema has the member.
fn has_keyword(schema: &Value, keyword: &str, value: Option<&Value>) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, member)| {
            (name == keyword && value.is_none_or(|value| value == member))
                || has_keyword(member, keyword, value)
        }),
        Value::Array(items) => items.iter().any(|item| has_keyword(item, keyword, value)),
        _ => false,
    }
}

impl Scalar {
    /// Whether a JSON text has such a scalar, as a member's name or a value.
    fn is_in(&self, text: &str) -> bool {
        scalars(text).any(|scalar| match self {
            Self::NumberDigitsAbove(most) => {
                let digits = scalar.bytes().filter(u8::is_ascii_digit).count();
                is_number(scalar) && digits > *most
            }
            Self::NumberContains(part) => is_number(scalar) && scalar.contains(part),
            Self::StringContains(part) => scalar.starts_with('"') && scalar.contains(part),
        })
    }
}

fn is_number(scalar: &str) -> bool {
    scalar.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The scalars of a JSON text as they are written.
fn scalars(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || "{}[],:".contains(c));
        let mut escaped = false;
        let len = match rest.chars().next()? {
            '"' => rest
                .bytes()
                .enumerate()
                .skip(1)
                .find(|&(_, byte)| {
                    let closes = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    closes
                })
                .map_or(rest.len(), |(at, _)| at + 1),
            _ => rest
                .find(|c: char| c.is_ascii_whitespace() || "{}[],:\"".contains(c))
                .unwrap_or(rest.len()),
        };
        let (scalar, after) = rest.split_at(len);
        rest = after;
        Some(scalar)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_a_keyword_of_the_schema_and_a_scalar_of_the_instance() {
        let deviations = Deviations::load().expect("a table");
        let schema = r#"{"items": {"multipleOf": 0.1}}"#;
        let oracle = Oracle::new(schema, true, &deviations);
        assert_eq!(oracle.judge(b"[0.5, 1]"), Verdict::Valid);
        assert_eq!(oracle.judge(b"[\"0.35\", 1.05]"), Verdict::Unjudged);
        let oracle = Oracle::new(r#"{"maximum": 2}"#, true, &deviations);
        assert_eq!(oracle.judge(b"2.5"), Verdict::Invalid);
        assert_eq!(oracle.judge(b"2.5]"), Verdict::Invalid);
        assert_eq!(oracle.judge(b"20000000000000000000"), Verdict::Unjudged);
        assert_eq!(oracle.judge(b"[1e999]"), Verdict::Unjudged);
        let oracle = Oracle::new(r#"{"maximum": 1e999}"#, true, &deviations);
        assert_eq!(oracle.judge(b"1"), Verdict::Unjudged);
    }

    #[test]
    fn scalars_are_found_as_they_are_written() {
        let found: Vec<_> = scalars(r#"{"a\"{": [1.50,true ], "": -2e1}"#).collect();
        assert_eq!(found, [r#""a\"{""#, "1.50", "true", r#""""#, "-2e1"]);
    }
}
