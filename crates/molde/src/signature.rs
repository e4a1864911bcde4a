//! The one-line summary of a schema that is shown to the model.
//!
//! A full JSON Schema costs a small model three times the tokens of such a line and helps it less.
//! The summary is for reading only: what it leaves out is enforced by the mask all the same.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{Language, schema_view};

/// Bounds on the length of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureLimits {
    /// Characters. A schema that would take more is shown with fewer levels of nesting, and cut
    /// at the end if one level is still too long. Default 4,000 (about 1,500 tokens).
    pub characters: usize,
    /// Values of an enumeration; further ones are shown as `…`. Default 40.
    pub enum_values: usize,
    /// Levels of nesting; deeper values are shown as `{…}` and `[…]`. Default 8.
    pub depth: usize,
    /// Whether descriptions stand behind the values, in parentheses. Default: they do not.
    pub descriptions: bool,
}

impl Default for SignatureLimits {
    fn default() -> Self {
        Self { characters: 4000, enum_values: 40, depth: 8, descriptions: false }
    }
}

/// The text of a schema on one line, without its titles, which say nothing to a model and cost
/// tokens. A member that is called `title` stays. Linear.
pub fn schema_without_titles(text: &str) -> String {
    without_titles(&schema_view::read(text), false).to_string()
}

fn without_titles(value: &Value, names: bool) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(name, value)| names || *name != "title" || !value.is_string())
                .map(|(name, value)| {
                    // The members of these are names of the caller's, not keywords.
                    let inner = matches!(
                        name.as_str(),
                        "properties"
                            | "$defs"
                            | "definitions"
                            | "patternProperties"
                            | "dependentSchemas"
                    ) && !names;
                    let data = !names
                        && matches!(name.as_str(), "enum" | "const" | "default" | "examples");
                    let value = if data { value.clone() } else { without_titles(value, inner) };
                    (name.clone(), value)
                })
                .collect(),
        ),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| without_titles(item, false)).collect())
        }
        other => other.clone(),
    }
}

/// Writes `schema` as one line, such as `{"quarter": integer 1-4 or null, "low": number > 0}`.
///
/// Members stand in schema order. Linear in the part of the schema that is shown; `$ref`s are
/// followed inside the document, at most [`SignatureLimits::depth`] deep.
pub fn signature(schema: &Value, language: Language, limits: &SignatureLimits) -> String {
    let mut depth = limits.depth.max(1);
    loop {
        let writer = Writer {
            root: schema,
            language,
            enum_values: limits.enum_values,
            descriptions: limits.descriptions,
            // Twice the limit is enough to know that it is exceeded, whatever a `$ref` unfolds to.
            budget: limits.characters.saturating_mul(2),
        };
        let mut line = String::new();
        writer.value(schema, depth, &mut line);
        if line.chars().count() <= limits.characters {
            return line;
        }
        if depth == 1 {
            let mut cut: String = line.chars().take(limits.characters).collect();
            cut.push('…');
            return cut;
        }
        depth = depth.div_ceil(2).min(depth - 1);
    }
}

struct Writer<'a> {
    root: &'a Value,
    language: Language,
    enum_values: usize,
    descriptions: bool,
    budget: usize,
}

impl Writer<'_> {
    fn value(&self, schema: &Value, depth: usize, line: &mut String) {
        let Some(map) = schema.as_object() else {
            line.push_str(self.language.words().any);
            return;
        };
        if line.len() > self.budget {
            line.push('…');
        } else if let Some(constant) = map.get("const") {
            line.push_str(&constant.to_string());
        } else if let Some(Value::Array(values)) = map.get("enum") {
            self.enumeration(values, line);
        } else if let Some(branches) = union(map) {
            self.union(&branches, depth, line);
        } else if let Some(Value::Array(types)) = map.get("type") {
            let parts: Vec<Value> = types.iter().map(|name| with_type(map, name)).collect();
            self.union(&parts.iter().collect::<Vec<_>>(), depth, line);
        } else if let Some(name) = map.get("type").and_then(Value::as_str) {
            self.typed(name, map, depth, line);
        } else if let Some(target) = self.resolve(map) {
            if depth == 0 {
                line.push('…');
            } else {
                self.value(target, depth - 1, line);
            }
        } else if let Some(part) = map.get("allOf").and_then(|parts| parts.get(0)) {
            if depth == 0 {
                line.push('…');
            } else {
                self.value(part, depth - 1, line);
            }
        } else if map.contains_key("properties") {
            self.object(map, depth, line);
        } else {
            line.push_str(self.language.words().any);
        }
    }

    fn typed(&self, name: &str, map: &Map<String, Value>, depth: usize, line: &mut String) {
        match name {
            "object" => self.object(map, depth, line),
            "array" => self.array(map, depth, line),
            "string" => self.string(map, line),
            "integer" | "number" => {
                line.push_str(name);
                self.range(map, line);
            }
            other => line.push_str(other),
        }
    }

    fn object(&self, map: &Map<String, Value>, depth: usize, line: &mut String) {
        if depth == 0 {
            line.push_str("{…}");
            return;
        }
        let words = self.language.words();
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        line.push('{');
        let mut first = true;
        for (name, property) in
            map.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if property == &Value::Bool(false) {
                continue;
            }
            separate(&mut first, line);
            line.push_str(&Value::from(name.as_str()).to_string());
            line.push_str(": ");
            self.value(property, depth - 1, line);
            if !required.contains(&name.as_str()) {
                line.push_str(words.optional);
            }
            if self.descriptions
                && let Some(text) = property.get("description").and_then(Value::as_str)
            {
                let one_line: Vec<&str> = text.split_whitespace().collect();
                put(line, format_args!(" ({})", one_line.join(" ")));
            }
        }
        // A map: only then is what further members look like worth a word.
        if first && let Some(extra @ Value::Object(_)) = map.get("additionalProperties") {
            line.push_str("\"…\": ");
            self.value(extra, depth - 1, line);
        }
        line.push('}');
    }

    fn array(&self, map: &Map<String, Value>, depth: usize, line: &mut String) {
        if depth == 0 {
            line.push_str("[…]");
            return;
        }
        line.push('[');
        let mut first = true;
        for item in map.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
            separate(&mut first, line);
            self.value(item, depth - 1, line);
        }
        match map.get("items") {
            Some(Value::Bool(false)) => {}
            Some(item @ Value::Object(_)) => {
                separate(&mut first, line);
                self.value(item, depth - 1, line);
                line.push_str(", …");
            }
            _ if first => line.push('…'),
            _ => {}
        }
        line.push(']');
        match (map.get("minItems"), map.get("maxItems")) {
            (Some(low), Some(high)) if low == high => put(line, format_args!(" ({low})")),
            (Some(low), Some(high)) => put(line, format_args!(" ({low}-{high})")),
            (Some(low), None) if low.as_u64() != Some(0) => put(line, format_args!(" (>= {low})")),
            (None, Some(high)) => put(line, format_args!(" (<= {high})")),
            _ => {}
        }
    }

    fn string(&self, map: &Map<String, Value>, line: &mut String) {
        let words = self.language.words();
        line.push_str("string");
        let mut notes = Vec::new();
        match map.get("format").and_then(Value::as_str) {
            Some("date") => notes.push("YYYY-MM-DD".to_owned()),
            Some("date-time") => notes.push("YYYY-MM-DDThh:mm:ssZ".to_owned()),
            Some("time") => notes.push("hh:mm:ssZ".to_owned()),
            Some(format) => notes.push(format.to_owned()),
            None => {}
        }
        // A long pattern means nothing to a small model and costs more than the rest of the line.
        if let Some(pattern) = map.get("pattern").and_then(Value::as_str)
            && pattern.chars().count() <= 40
        {
            notes.push(format!("/{pattern}/"));
        }
        if let Some(longest) = map.get("maxLength") {
            notes.push(format!("{} {longest}", words.at_most));
        }
        if !notes.is_empty() {
            put(line, format_args!(" ({})", notes.join(", ")));
        }
    }

    fn range(&self, map: &Map<String, Value>, line: &mut String) {
        let words = self.language.words();
        let number = |keyword: &str| map.get(keyword).filter(|bound| bound.is_number());
        // In draft 4 the exclusive keywords are booleans beside the bounds.
        let strict = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
        let low = match (number("exclusiveMinimum"), number("minimum")) {
            (Some(bound), _) => Some((bound, true)),
            (None, Some(bound)) => Some((bound, strict("exclusiveMinimum"))),
            (None, None) => None,
        };
        let high = match (number("exclusiveMaximum"), number("maximum")) {
            (Some(bound), _) => Some((bound, true)),
            (None, Some(bound)) => Some((bound, strict("exclusiveMaximum"))),
            (None, None) => None,
        };
        match (low, high) {
            (Some((low, false)), Some((high, false)))
                if !is_negative(low) && !is_negative(high) =>
            {
                put(line, format_args!(" {low}-{high}"));
            }
            (Some((low, false)), Some((high, false))) => {
                put(line, format_args!(" {low} {} {high}", words.to));
            }
            (low, high) => {
                let low = low
                    .map(|(bound, strict)| format!("{} {bound}", if strict { ">" } else { ">=" }));
                let high = high
                    .map(|(bound, strict)| format!("{} {bound}", if strict { "<" } else { "<=" }));
                let parts: Vec<String> = low.into_iter().chain(high).collect();
                if !parts.is_empty() {
                    line.push(' ');
                    line.push_str(&parts.join(words.and));
                }
            }
        }
        if let Some(step) = number("multipleOf") {
            put(line, format_args!(" ({} {step})", words.multiple_of));
        }
    }

    fn enumeration(&self, values: &[Value], line: &mut String) {
        let (nulls, mut shown): (Vec<&Value>, Vec<&Value>) =
            values.iter().partition(|value| value.is_null());
        let cut = shown.len() > self.enum_values;
        shown.truncate(self.enum_values);
        let mut parts: Vec<String> = shown.iter().map(ToString::to_string).collect();
        if cut {
            parts.push("…".to_owned());
        }
        let mut text = parts.join(" | ");
        if !nulls.is_empty() {
            if !text.is_empty() {
                text.push_str(self.language.words().or);
            }
            text.push_str("null");
        }
        line.push_str(&text);
    }

    fn union(&self, branches: &[&Value], depth: usize, line: &mut String) {
        let (nulls, others): (Vec<&&Value>, Vec<&&Value>) = branches
            .iter()
            .partition(|branch| branch.get("type").and_then(Value::as_str) == Some("null"));
        let or = self.language.words().or;
        let mut first = true;
        for branch in others {
            if !std::mem::take(&mut first) {
                line.push_str(or);
            }
            if depth == 0 {
                line.push('…');
            } else {
                self.value(branch, depth - 1, line);
            }
        }
        if !nulls.is_empty() {
            if !first {
                line.push_str(or);
            }
            line.push_str("null");
        }
    }

    /// The target of a `$ref` inside the document.
    fn resolve(&self, map: &Map<String, Value>) -> Option<&Value> {
        let reference = map.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// The branches of `anyOf` or `oneOf`, unless the schema has members of its own beside them.
fn union(map: &Map<String, Value>) -> Option<Vec<&Value>> {
    if map.contains_key("properties") {
        return None;
    }
    let branches = map.get("anyOf").or_else(|| map.get("oneOf"))?.as_array()?;
    Some(branches.iter().collect())
}

fn with_type(map: &Map<String, Value>, name: &Value) -> Value {
    let mut single = map.clone();
    single.insert("type".to_owned(), name.clone());
    Value::Object(single)
}

fn put(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a String takes any text");
}

fn separate(first: &mut bool, line: &mut String) {
    if !std::mem::take(first) {
        line.push_str(", ");
    }
}

fn is_negative(number: &Value) -> bool {
    number.to_string().starts_with('-')
}
