//! Bounds that the Anthropic SDKs move into descriptions, read back.
//!
//! Those SDKs send only some keywords. What is left they append to the `description`, as
//! `{maximum: 4, minimum: 1}`, alone or after a blank line: the Python SDK with `str()` of each
//! value, the JavaScript SDK with `JSON.stringify`. A text is not marked off from what stands beside
//! it, so one tail can have several readings: `{pattern: a, maxLength: 5}` may be two keywords or a
//! pattern with a comma. Only where exactly one reading takes every key for a keyword with a value
//! of its type is anything read back.

mod literal;
mod reading;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::schema_view::Members;
use reading::{Readings, read_tail};

/// Levels of nesting below which schemas are left as they are.
const LEVELS: usize = 128;

/// How values in a description are spelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spelling {
    /// As the Python SDK does.
    Python,
    /// As the JavaScript SDK does.
    Json,
    /// Either: what differs between the two is ambiguous.
    #[default]
    Unknown,
}

/// What became of one schema with such a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecoveryStatus {
    /// Its keywords are enforced.
    Recovered,
    /// There are several readings: nothing of it is.
    Ambiguous,
    /// There is no reading: nothing of it is.
    Lost,
}

impl RecoveryStatus {
    /// `recovered`, `ambiguous` or `lost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::Ambiguous => "ambiguous",
            Self::Lost => "lost",
        }
    }
}

/// One schema with such a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredNode {
    /// JSON Pointer of the schema.
    pub pointer: String,
    /// What became of it.
    pub status: RecoveryStatus,
}

/// A schema whose bounds were read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The schema, with the keywords where they belong. Everything else is as it was.
    pub schema_text: String,
    /// Every schema with such a tail, in the order of the text.
    pub nodes: Vec<RecoveredNode>,
}

/// Reads bounds back from the descriptions of a schema. A text that is no JSON stays as it is.
///
/// ```
/// use molde::{RecoveryStatus, Spelling, recover_bounds};
///
/// let text = r#"{"type":"integer","description":"The quarter\n\n{maximum: 4, minimum: 1}"}"#;
/// let recovery = recover_bounds(text, Spelling::Python);
/// assert_eq!(
///     recovery.schema_text,
///     r#"{"type":"integer","description":"The quarter","maximum":4,"minimum":1}"#,
/// );
/// assert_eq!(recovery.nodes[0].status, RecoveryStatus::Recovered);
/// ```
///
/// # Complexity
/// Linear in the text for each level of nesting, up to 128; readings of one description are
/// bounded by a constant.
pub fn recover_bounds(schema_text: &str, spelling: Spelling) -> Recovery {
    let mut walk = Walk { spelling, nodes: Vec::new() };
    let schema_text = match serde_json::from_str::<&RawValue>(schema_text) {
        Ok(raw) => {
            let mut out = String::with_capacity(schema_text.len());
            walk.schema(raw, "", LEVELS, &mut out);
            out
        }
        Err(_) => schema_text.to_owned(),
    };
    Recovery { schema_text, nodes: walk.nodes }
}

/// Where the schemas below a keyword are.
enum Below {
    Schema,
    Map,
    List,
    Nothing,
}

fn below(keyword: &str, value: &str) -> Below {
    match keyword {
        "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
            Below::Map
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Below::List,
        "items" if value.starts_with('[') => Below::List,
        "items"
        | "additionalProperties"
        | "additionalItems"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Below::Schema,
        _ => Below::Nothing,
    }
}

struct Walk {
    spelling: Spelling,
    nodes: Vec<RecoveredNode>,
}

impl Walk {
    fn schema(&mut self, raw: &RawValue, pointer: &str, levels: usize, out: &mut String) {
        let members = match serde_json::from_str::<Members<'_>>(raw.get()) {
            Ok(members) if levels > 0 => members.0,
            _ => return out.push_str(raw.get()),
        };
        let (description, added) = self.tail(&members, pointer);
        out.push('{');
        let mut is_first = true;
        let mut separate = |out: &mut String| {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
        };
        for (name, value) in members {
            let shortened = (name == "description").then_some(description.as_ref()).flatten();
            if shortened.is_some_and(String::is_empty) {
                continue;
            }
            separate(out);
            push_key(&name, out);
            if let Some(description) = shortened {
                out.push_str(&Value::from(description.as_str()).to_string());
                continue;
            }
            let place = format!("{pointer}/{}", escaped(&name));
            self.below(&name, value, &place, levels - 1, out);
        }
        for (name, json) in added {
            separate(out);
            push_key(name, out);
            out.push_str(&json);
        }
        out.push('}');
    }

    fn below(&mut self, name: &str, raw: &RawValue, place: &str, levels: usize, out: &mut String) {
        let text = raw.get();
        match below(name, text) {
            Below::Schema => self.schema(raw, place, levels, out),
            Below::Map => match serde_json::from_str::<Members<'_>>(text) {
                Ok(members) => {
                    out.push('{');
                    for (index, (name, value)) in members.0.into_iter().enumerate() {
                        if index > 0 {
                            out.push(',');
                        }
                        push_key(&name, out);
                        self.schema(value, &format!("{place}/{}", escaped(&name)), levels, out);
                    }
                    out.push('}');
                }
                Err(_) => out.push_str(text),
            },
            Below::List => match serde_json::from_str::<Vec<&RawValue>>(text) {
                Ok(items) => {
                    out.push('[');
                    for (index, item) in items.into_iter().enumerate() {
                        if index > 0 {
                            out.push(',');
                        }
                        self.schema(item, &format!("{place}/{index}"), levels, out);
                    }
                    out.push(']');
                }
                Err(_) => out.push_str(text),
            },
            Below::Nothing => out.push_str(text),
        }
    }

    /// The description without its tail, and the keywords in the tail as JSON.
    fn tail(
        &mut self,
        members: &[(String, &RawValue)],
        pointer: &str,
    ) -> (Option<String>, Vec<(&'static str, String)>) {
        let text = |name: &str| {
            let (_, raw) = members.iter().find(|(member, _)| member == name)?;
            serde_json::from_str::<String>(raw.get()).ok()
        };
        let nothing = (None, Vec::new());
        let Some(description) = text("description") else { return nothing };
        let type_name = text("type");
        let readings = read_tail(&description, type_name.as_deref(), self.spelling);
        let (status, found) = match readings {
            Readings::NoTail => return nothing,
            Readings::None => (RecoveryStatus::Lost, nothing),
            Readings::Several => (RecoveryStatus::Ambiguous, nothing),
            Readings::One(reading) => {
                let is_there = |name: &str| members.iter().any(|(member, _)| member == name);
                if reading.keywords.iter().any(|(name, _)| is_there(name)) {
                    // Which of the two was meant?
                    (RecoveryStatus::Ambiguous, nothing)
                } else {
                    let kept = description[..reading.start].to_owned();
                    (RecoveryStatus::Recovered, (Some(kept), reading.keywords))
                }
            }
        };
        self.nodes.push(RecoveredNode { pointer: pointer.to_owned(), status });
        found
    }
}

fn push_key(name: &str, out: &mut String) {
    out.push_str(&Value::from(name).to_string());
    out.push(':');
}

/// A name as a part of a JSON Pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
