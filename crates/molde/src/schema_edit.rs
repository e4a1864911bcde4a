//! Additions to the text of a schema. Everything that is there stays as it is written, numbers beyond
//! a float included.

use crate::MoldeError;
use crate::fields::{CompletedField, FieldScanner};

/// The text of a schema with `parts` as further members of its outermost `allOf`.
///
/// # Errors
/// [`MoldeError::NotAnObjectSchema`] if the text is no JSON object.
pub(crate) fn add_all_of(text: &str, parts: &[String]) -> Result<String, MoldeError> {
    if parts.is_empty() {
        return Ok(text.to_owned());
    }
    let closed = close_by_own_members(text)?;
    let text = closed.as_str();
    let fields = fields(text)?;
    let joined = parts.join(", ");
    if let Some(list) = fields.iter().find(|field| field.pointer == "/allOf") {
        let inside = &text[list.bytes.start + 1..list.bytes.end - 1];
        let comma = if inside.trim().is_empty() { "" } else { ", " };
        return Ok(insert(text, list.bytes.end - 1, &format!("{comma}{joined}")));
    }
    let end = text.rfind('}').ok_or(MoldeError::NotAnObjectSchema)?;
    let comma = if fields.is_empty() { "" } else { ", " };
    Ok(insert(text, end, &format!("{comma}\"allOf\": [{joined}]")))
}

/// The text with `unevaluatedProperties: false` of the outermost object as `additionalProperties:
/// false`, where no other schema applies to the object, so that both mean the same. What is added then
/// need not be asked which members it evaluates: that multiplies alternatives.
fn close_by_own_members(text: &str) -> Result<String, MoldeError> {
    const NAME: &str = "\"unevaluatedProperties\"";
    let fields = fields(text)?;
    let at = |pointer: &str| fields.iter().find(|field| field.pointer == pointer);
    let applies = [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "dependentSchemas",
        "additionalProperties",
    ];
    let is_alone = !applies.iter().any(|keyword| at(&format!("/{keyword}")).is_some());
    let Some(value) = at("/unevaluatedProperties").filter(|_| is_alone) else {
        return Ok(text.to_owned());
    };
    let name = text[..value.bytes.start].rfind(NAME);
    let Some(name) = name.filter(|_| &text[value.bytes.clone()] == "false") else {
        return Ok(text.to_owned());
    };
    Ok(format!("{}\"additionalProperties\"{}", &text[..name], &text[name + NAME.len()..]))
}

/// The text of a schema whose answers begin with a required text, in which a model can think before
/// it commits itself to data. The field has at most `max_characters` characters.
///
/// ```
/// let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
/// let thinking = molde::add_reasoning_field(schema, "thoughts", 200)?;
/// assert!(thinking.find("thoughts") < thinking.find("\"a\""));
/// # Ok::<(), molde::MoldeError>(())
/// ```
///
/// # Errors
/// [`MoldeError::NotAnObjectSchema`] if the outermost schema declares no members, or one of that name.
pub fn add_reasoning_field(
    text: &str,
    name: &str,
    max_characters: usize,
) -> Result<String, MoldeError> {
    let found = fields(text)?;
    let range = |pointer: &str| {
        found.iter().find(|field| field.pointer == pointer).map(|field| field.bytes.clone())
    };
    let properties = range("/properties").ok_or(MoldeError::NotAnObjectSchema)?;
    let mut own = "/properties".to_owned();
    crate::fields::push_segment(&mut own, name);
    if range(&own).is_some() {
        return Err(MoldeError::NotAnObjectSchema);
    }
    let quoted = serde_json::Value::from(name).to_string();
    let comma = |range: &std::ops::Range<usize>| {
        if text[range.start + 1..range.end - 1].trim().is_empty() { "" } else { ", " }
    };
    let member = format!(
        "{quoted}: {{\"type\": \"string\", \"maxLength\": {max_characters}}}{}",
        comma(&properties)
    );
    let mut edits = vec![(properties.start + 1, member)];
    if let Some(required) = range("/required") {
        edits.push((required.start + 1, format!("{quoted}{}", comma(&required))));
    } else {
        let start = text.find('{').ok_or(MoldeError::NotAnObjectSchema)?;
        edits.push((start + 1, format!("\"required\": [{quoted}], ")));
    }
    edits.sort();
    let edited = edits
        .iter()
        .rev()
        .fold(text.to_owned(), |text, (place, addition)| insert(&text, *place, addition));
    Ok(edited)
}

fn fields(text: &str) -> Result<Vec<CompletedField>, MoldeError> {
    let trimmed = text.trim();
    if !(trimmed.starts_with('{') && trimmed.ends_with('}')) {
        return Err(MoldeError::NotAnObjectSchema);
    }
    let mut scanner = FieldScanner::new();
    let mut fields = Vec::new();
    scanner.push(text.as_bytes(), &mut fields);
    Ok(fields)
}

fn insert(text: &str, place: usize, addition: &str) -> String {
    format!("{}{addition}{}", &text[..place], &text[place..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn parts_are_added_to_what_is_there() {
        let part = || vec![r#"{"a": 1}"#.to_owned(), r#"{"b": 2}"#.to_owned()];
        let parts = [json!({"a": 1}), json!({"b": 2})];
        for (text, expected) in [
            ("{}", json!({"allOf": parts})),
            (r#" {"type": "object"} "#, json!({"type": "object", "allOf": parts})),
            (r#"{"allOf": []}"#, json!({"allOf": parts})),
            (
                r#"{"allOf": [{"x": {"allOf": [1]}}], "z": 0}"#,
                json!({"allOf": [{"x": {"allOf": [1]}}, parts[0], parts[1]], "z": 0}),
            ),
        ] {
            assert_eq!(parsed(&add_all_of(text, &part()).expect("an object")), expected, "{text}");
        }
        assert!(add_all_of("true", &part()).is_err());
        assert_eq!(add_all_of("true", &[]).expect("nothing to add"), "true");
    }

    #[test]
    fn an_object_that_nothing_else_describes_is_closed_by_its_own_members() {
        let part = || vec!["{}".to_owned()];
        for (text, expected) in [
            (
                r#"{"unevaluatedProperties": false, "properties": {"a": {}}}"#,
                json!({"additionalProperties": false, "properties": {"a": {}}, "allOf": [{}]}),
            ),
            (
                r#"{"unevaluatedProperties": false, "anyOf": [{}]}"#,
                json!({"unevaluatedProperties": false, "anyOf": [{}], "allOf": [{}]}),
            ),
            (
                r#"{"unevaluatedProperties": {"type": "null"}}"#,
                json!({"unevaluatedProperties": {"type": "null"}, "allOf": [{}]}),
            ),
        ] {
            assert_eq!(parsed(&add_all_of(text, &part()).expect("an object")), expected, "{text}");
        }
    }

    #[test]
    fn a_reasoning_field_comes_first_and_is_required() {
        for text in [
            r#"{"properties": {"a": {}, "b": {}}, "required": ["a"]}"#,
            r#"{"required": [], "properties": {}}"#,
            r#"{"properties": {"a": {}}}"#,
        ] {
            let value = parsed(&add_reasoning_field(text, "why", 9).expect("an object"));
            let (first, schema) = value["properties"]
                .as_object()
                .and_then(|all| all.iter().next())
                .expect("a member");
            assert_eq!(
                (first.as_str(), schema),
                ("why", &json!({"type": "string", "maxLength": 9}))
            );
            assert_eq!(value["required"][0], "why");
        }
        for text in ["{}", "[]", r#"{"properties": {"why": {}}}"#] {
            assert!(add_reasoning_field(text, "why", 9).is_err(), "{text}");
        }
    }
}
