//! The readings of one description.

use super::Spelling;
use super::literal::{is_number, json, python_to_json};

/// Steps that may be spent on one description; one that needs more counts as ambiguous.
const STEPS: usize = 10_000;

/// What a tail can mean.
pub(super) enum Readings {
    /// Nothing looks like a tail.
    NoTail,
    /// Something does, and cannot be read.
    None,
    One(Reading),
    Several,
}

/// One meaning of a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// Where the description ends and the tail, with the blank line before it, begins.
    pub(super) start: usize,
    /// Keywords that say something of values, as JSON. Annotations are left out.
    pub(super) keywords: Vec<(&'static str, String)>,
}

/// What values a keyword has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Number,
    Count,
    Boolean,
    /// Any text.
    Text,
    /// A list or an object.
    Compound,
    /// An object, or a boolean: a schema.
    Schema,
    /// Anything.
    Any,
}

/// Keyword, its values, and whether it says something of values.
const KEYWORDS: [(&str, Values, bool); 52] = [
    ("minimum", Values::Number, true),
    ("maximum", Values::Number, true),
    ("exclusiveMinimum", Values::Number, true),
    ("exclusiveMaximum", Values::Number, true),
    ("multipleOf", Values::Number, true),
    ("minLength", Values::Count, true),
    ("maxLength", Values::Count, true),
    ("minItems", Values::Count, true),
    ("maxItems", Values::Count, true),
    ("minContains", Values::Count, true),
    ("maxContains", Values::Count, true),
    ("minProperties", Values::Count, true),
    ("maxProperties", Values::Count, true),
    ("uniqueItems", Values::Boolean, true),
    ("pattern", Values::Text, true),
    ("format", Values::Text, true),
    ("enum", Values::Compound, true),
    ("const", Values::Any, true),
    ("prefixItems", Values::Compound, true),
    ("items", Values::Schema, true),
    ("additionalItems", Values::Schema, true),
    ("contains", Values::Schema, true),
    ("properties", Values::Compound, true),
    ("patternProperties", Values::Compound, true),
    ("additionalProperties", Values::Schema, true),
    ("propertyNames", Values::Schema, true),
    ("required", Values::Compound, true),
    ("dependentRequired", Values::Compound, true),
    ("dependentSchemas", Values::Compound, true),
    ("dependencies", Values::Compound, true),
    ("unevaluatedItems", Values::Schema, true),
    ("unevaluatedProperties", Values::Schema, true),
    ("allOf", Values::Compound, true),
    ("anyOf", Values::Compound, true),
    ("oneOf", Values::Compound, true),
    ("not", Values::Schema, true),
    ("if", Values::Schema, true),
    ("then", Values::Schema, true),
    ("else", Values::Schema, true),
    ("default", Values::Any, false),
    ("examples", Values::Compound, false),
    ("example", Values::Any, false),
    ("deprecated", Values::Boolean, false),
    ("readOnly", Values::Boolean, false),
    ("writeOnly", Values::Boolean, false),
    ("discriminator", Values::Compound, false),
    ("contentEncoding", Values::Text, false),
    ("contentMediaType", Values::Text, false),
    ("contentSchema", Values::Schema, false),
    ("$comment", Values::Text, false),
    ("$schema", Values::Text, false),
    ("$id", Values::Text, false),
];

/// All readings of a description whose schema has this `type`.
pub(super) fn read_tail(
    description: &str,
    type_name: Option<&str>,
    spelling: Spelling,
) -> Readings {
    let Some(inside) = description.strip_suffix('}') else { return Readings::NoTail };
    let mut search = Search {
        admits_text: matches!(type_name, None | Some("string")),
        is_text: type_name == Some("string"),
        spelling: Spelling::Python,
        found: Vec::new(),
        steps: 0,
    };
    let mut has_tail = false;
    for (brace, _) in inside.match_indices('{') {
        let start = match &inside[..brace] {
            "" => 0,
            before if before.ends_with("\n\n") => brace - 2,
            _ => continue,
        };
        let body = &inside[brace + 1..];
        if !begins_with_a_key(body) {
            continue;
        }
        has_tail = true;
        let spellings: &[Spelling] = match spelling {
            Spelling::Python => &[Spelling::Python],
            Spelling::Json => &[Spelling::Json],
            Spelling::Unknown => &[Spelling::Python, Spelling::Json],
        };
        for &spelling in spellings {
            search.spelling = spelling;
            search.read(start, body, &mut Vec::new());
        }
    }
    let mut found = search.found;
    match found.len() {
        _ if search.steps > STEPS => Readings::Several,
        0 if has_tail => Readings::None,
        0 => Readings::NoTail,
        1 => Readings::One(found.swap_remove(0)),
        _ => Readings::Several,
    }
}

/// Whether a text begins as `word: ` does.
fn begins_with_a_key(text: &str) -> bool {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '$' | '_' | '-')));
    end.is_some_and(|end| end > 0 && text[end..].starts_with(": "))
}

struct Search {
    admits_text: bool,
    is_text: bool,
    spelling: Spelling,
    /// Different readings, up to two.
    found: Vec<Reading>,
    steps: usize,
}

/// A keyword of a reading: its index in the table and its value as JSON.
type Entry = (usize, String);

impl Search {
    /// Reads `text`, which begins with a key, after the entries before it.
    fn read(&mut self, start: usize, text: &str, entries: &mut Vec<Entry>) {
        self.steps += 1;
        if self.found.len() > 1 || self.steps > STEPS {
            return;
        }
        let key = KEYWORDS.iter().position(|(name, ..)| {
            text.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "))
        });
        let Some(key) = key.filter(|key| entries.iter().all(|(other, _)| other != key)) else {
            return;
        };
        let rest = &text[KEYWORDS[key].0.len() + 2..];
        let ends = rest.match_indices(", ").map(|(at, _)| at).chain([rest.len()]);
        for end in ends {
            self.steps += 1;
            if self.steps > STEPS {
                return;
            }
            let next = rest.get(end + 2..);
            if next.is_some_and(|next| !begins_with_a_key(next)) {
                continue;
            }
            let Some(value) = self.value(KEYWORDS[key].1, &rest[..end]) else { continue };
            entries.push((key, value));
            match next {
                Some(next) => self.read(start, next, entries),
                None => self.finish(start, entries),
            }
            entries.pop();
        }
    }

    fn finish(&mut self, start: usize, entries: &[Entry]) {
        let keywords = entries
            .iter()
            .filter(|(key, _)| KEYWORDS[*key].2)
            .map(|(key, value)| (KEYWORDS[*key].0, value.clone()))
            .collect();
        let reading = Reading { start, keywords };
        // Two ways to read annotations are one reading.
        if !self.found.contains(&reading) {
            self.found.push(reading);
        }
    }

    /// The JSON of a value, if it is one of its keyword.
    fn value(&self, values: Values, text: &str) -> Option<String> {
        let is_python = self.spelling == Spelling::Python;
        let literal = || if is_python { python_to_json(text) } else { json(text) };
        let reference = || literal().filter(|json| json.starts_with(r#"{"$data":"#));
        match values {
            Values::Number if is_number(text) => Some(text.to_owned()),
            Values::Count if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(text.to_owned())
            }
            Values::Number | Values::Count => reference(),
            Values::Boolean => literal().filter(|json| matches!(json.as_str(), "true" | "false")),
            Values::Text if is_python => Some(serde_json::Value::from(text).to_string()),
            Values::Text => literal().filter(|json| json.starts_with('"')),
            Values::Compound => literal().filter(|json| json.starts_with(['[', '{'])),
            Values::Schema => literal()
                .filter(|json| json.starts_with('{') || matches!(json.as_str(), "true" | "false")),
            // Python writes a text as it is: `None` may be one.
            Values::Any if is_python && self.is_text => {
                Some(serde_json::Value::from(text).to_string())
            }
            Values::Any if is_python && self.admits_text => {
                literal().or_else(|| Some(serde_json::Value::from(text).to_string()))
            }
            Values::Any => literal(),
        }
    }
}
