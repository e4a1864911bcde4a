//! Closing objects: a model that writes members nobody asked for must not pass.
//!
//! An object that declares members and does not say what becomes of others is closed with
//! `unevaluatedProperties: false` at its outermost schema, so that `$ref`, `allOf` and `anyOf` beside
//! it still add members. Nothing is added where that could make another value valid: below `not`,
//! `if`, `contains`, `oneOf` (unless a constant member tells its branches apart), or in a definition
//! that such a place refers to as well. Maps, and objects that declare no members, stay open.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::fields::{FieldScanner, push_segment};
use crate::schema_view;

/// A schema whose objects are closed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The schema's text, which is the given one but for what was put in.
    pub text: String,
    /// JSON Pointers of the schemas that `unevaluatedProperties: false` was put into, or
    /// `additionalProperties: false` in drafts that have no such keyword.
    pub closed: Vec<String>,
    /// JSON Pointers of the schemas of objects that stay open because closing them could change what
    /// else is valid.
    pub left_open: Vec<String>,
}

/// Closes the objects of a schema that do not say themselves whether other members are allowed. A
/// text that is no schema is left as it is.
///
/// ```
/// let closed = molde::close_objects(r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#);
/// assert_eq!(closed.closed, [""]);
/// assert!(closed.text.contains("\"unevaluatedProperties\": false"));
/// ```
///
/// # Complexity
/// Linear in the schema, times the number of places that refer to a definition.
pub fn close_objects(text: &str) -> Closed {
    let root = schema_view::read(text);
    let mut survey = Survey {
        root: &root,
        seen: BTreeSet::new(),
        locations: BTreeMap::new(),
        doubtful: BTreeSet::new(),
    };
    survey.location("", true, LEVELS);
    let modern = has_unevaluated(&root);
    let mut closed = Vec::new();
    let mut left_open = Vec::new();
    for (pointer, sound) in &survey.locations {
        let Some(map) = root.pointer(pointer).and_then(Value::as_object) else { continue };
        let merged = survey.merge(map);
        if says_so(map) || !merged.declares || merged.bare_branch {
            continue;
        }
        let simple = merged.parts == 1 && !map.contains_key("$ref");
        if *sound && !survey.doubtful.contains(pointer) && (modern || simple) {
            closed.push(pointer.clone());
        } else if !(modern || says_so(map)) || !sound || survey.doubtful.contains(pointer) {
            left_open.push(pointer.clone());
        }
    }
    let keyword = if modern { "unevaluatedProperties" } else { "additionalProperties" };
    Closed { text: insert(text, &closed, keyword), closed, left_open }
}

/// Levels of schemas that are followed.
const LEVELS: usize = 64;

struct Survey<'s> {
    root: &'s Value,
    /// Schemas that were visited, with whether that was as a location of their own, and soundly.
    seen: BTreeSet<(String, bool, bool)>,
    /// Schemas that are the outermost ones of an instance location, with whether closing is sound.
    locations: BTreeMap<String, bool>,
    /// Locations whose value is described by another schema too, which would not see the members.
    doubtful: BTreeSet<String>,
}

/// What the schemas that apply to one value say together.
#[derive(Default)]
struct Merged {
    declares: bool,
    /// An alternative is an object that declares nothing: a map.
    bare_branch: bool,
    parts: usize,
}

impl Survey<'_> {
    /// Visits the outermost schema of an instance location.
    fn location(&mut self, pointer: &str, sound: bool, levels: usize) {
        if self.root.pointer(pointer).and_then(Value::as_object).is_none() {
            return;
        }
        let known = self.locations.entry(pointer.to_owned()).or_insert(sound);
        *known &= sound;
        self.in_place(pointer, sound, levels);
        self.shared_members(pointer);
    }

    /// Visits a schema and what it says about the parts of its value.
    fn in_place(&mut self, pointer: &str, sound: bool, levels: usize) {
        let Some(levels) = levels.checked_sub(1) else { return };
        if !self.seen.insert((pointer.to_owned(), false, sound)) {
            return;
        }
        let Some(map) = self.root.pointer(pointer).and_then(Value::as_object) else { return };
        let at = |keyword: &str| format!("{pointer}/{keyword}");
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(members)) => {
                    for name in members.keys() {
                        let mut inner = at(keyword);
                        push_segment(&mut inner, name);
                        self.location(&inner, sound, levels);
                    }
                }
                ("items", Value::Array(_)) | ("prefixItems", _) => {
                    for index in 0..value.as_array().map_or(0, Vec::len) {
                        self.location(&format!("{}/{index}", at(keyword)), sound, levels);
                    }
                }
                (
                    "items"
                    | "additionalItems"
                    | "additionalProperties"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    Value::Object(_),
                ) => self.location(&at(keyword), sound, levels),
                ("contains" | "propertyNames" | "not" | "if", _) => {
                    self.in_place(&at(keyword), false, levels);
                }
                ("then" | "else", _) => self.in_place(&at(keyword), sound, levels),
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    let sound = sound && (keyword != "oneOf" || self.tells_apart(branches));
                    for index in 0..branches.len() {
                        self.in_place(&format!("{}/{index}", at(keyword)), sound, levels);
                    }
                }
                ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                    for name in members.keys() {
                        let mut inner = at(keyword);
                        push_segment(&mut inner, name);
                        self.in_place(&inner, sound, levels);
                    }
                }
                ("$ref", Value::String(reference)) => {
                    if let Some(target) = reference.strip_prefix('#') {
                        self.in_place(target, sound, levels);
                    }
                }
                _ => {}
            }
        }
    }

    /// Finds members of the value at `pointer` that several of its schemas describe: closing by one
    /// description would forbid what the others declare.
    fn shared_members(&mut self, pointer: &str) {
        let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
        self.collect(pointer, &mut declared, &mut BTreeSet::new(), LEVELS);
        for places in declared.into_values().filter(|places| places.len() > 1) {
            self.doubtful.extend(places);
        }
    }

    /// The places in which the schemas that apply to one value describe each member.
    fn collect(
        &self,
        pointer: &str,
        declared: &mut BTreeMap<String, Vec<String>>,
        visited: &mut BTreeSet<String>,
        levels: usize,
    ) {
        let Some(levels) = levels.checked_sub(1) else { return };
        let Some(map) = self.root.pointer(pointer).and_then(Value::as_object) else { return };
        if !visited.insert(pointer.to_owned()) {
            return;
        }
        for name in map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
        {
            let mut place = format!("{pointer}/properties");
            push_segment(&mut place, name);
            declared.entry(name.clone()).or_default().push(place);
        }
        for inner in applied(pointer, map) {
            self.collect(&inner, declared, visited, levels);
        }
    }

    fn merge(&self, map: &Map<String, Value>) -> Merged {
        let mut merged = Merged::default();
        self.merge_into(map, &mut merged, false, LEVELS);
        merged
    }

    fn merge_into(
        &self,
        map: &Map<String, Value>,
        merged: &mut Merged,
        branch: bool,
        levels: usize,
    ) {
        let Some(levels) = levels.checked_sub(1) else { return };
        merged.parts += 1;
        merged.declares |= map.contains_key("properties");
        let applies = ["allOf", "anyOf", "oneOf", "if", "then", "else", "$ref", "dependentSchemas"];
        let is_leaf = !applies.iter().any(|keyword| map.contains_key(*keyword));
        let is_object = map.get("type").is_none_or(|name| match name {
            Value::String(name) => name == "object",
            Value::Array(names) => names.iter().any(|name| name == "object"),
            _ => false,
        });
        let constant = map.contains_key("enum") || map.contains_key("const");
        if branch
            && is_leaf
            && is_object
            && !constant
            && !map.contains_key("properties")
            && !says_so(map)
        {
            merged.bare_branch = true;
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
            for part in parts.filter_map(Value::as_object) {
                self.merge_into(part, merged, keyword != "allOf", levels);
            }
        }
        for keyword in ["then", "else"] {
            if let Some(part) = map.get(keyword).and_then(Value::as_object) {
                self.merge_into(part, merged, false, levels);
            }
        }
        let target =
            map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        if let Some(part) =
            target.and_then(|target| self.root.pointer(target)).and_then(Value::as_object)
        {
            self.merge_into(part, merged, branch, levels);
        }
    }

    /// Whether a required member with a constant tells branches apart, so that no value is of two.
    fn tells_apart(&self, branches: &[Value]) -> bool {
        let resolved: Option<Vec<&Map<String, Value>>> = branches
            .iter()
            .map(|branch| {
                let map = branch.as_object()?;
                match map.get("$ref").and_then(Value::as_str) {
                    Some(reference) => self.root.pointer(reference.strip_prefix('#')?)?.as_object(),
                    None => Some(map),
                }
            })
            .collect();
        let Some(resolved) = resolved else { return false };
        let Some(first) = resolved.first().and_then(|map| map.get("properties")?.as_object())
        else {
            return false;
        };
        first.keys().any(|name| {
            let mut tags: Vec<&Value> = Vec::new();
            resolved.iter().all(|map| {
                let required = map
                    .get("required")
                    .and_then(Value::as_array)
                    .is_some_and(|names| names.iter().any(|required| required == name));
                let tag = map.get("properties").and_then(|own| own.get(name)?.get("const"));
                tag.filter(|tag| required && !tags.contains(tag))
                    .map(|tag| tags.push(tag))
                    .is_some()
            })
        })
    }
}

/// The schemas that apply to the same value as `map`.
fn applied(pointer: &str, map: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let parts = map.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        found.extend((0..parts).map(|index| format!("{pointer}/{keyword}/{index}")));
    }
    for keyword in ["if", "then", "else"].into_iter().filter(|keyword| map.contains_key(*keyword)) {
        found.push(format!("{pointer}/{keyword}"));
    }
    for name in
        map.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::keys)
    {
        let mut inner = format!("{pointer}/dependentSchemas");
        push_segment(&mut inner, name);
        found.push(inner);
    }
    let target = map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    found.extend(target.map(ToOwned::to_owned));
    found
}

fn says_so(map: &Map<String, Value>) -> bool {
    map.contains_key("additionalProperties") || map.contains_key("unevaluatedProperties")
}

/// Whether the schema's draft has `unevaluatedProperties`.
fn has_unevaluated(root: &Value) -> bool {
    root.get("$schema").and_then(Value::as_str).is_none_or(|draft| {
        !["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old))
    })
}

/// The text with `"keyword": false` as first member of the objects at `pointers`.
fn insert(text: &str, pointers: &[String], keyword: &str) -> String {
    let mut scanner = FieldScanner::new();
    let mut fields = Vec::new();
    scanner.push(text.as_bytes(), &mut fields);
    let mut places: Vec<usize> = fields
        .iter()
        .filter(|field| pointers.contains(&field.pointer))
        .map(|field| field.bytes.start)
        .collect();
    if pointers.iter().any(String::is_empty) {
        places.extend(text.find('{'));
    }
    places.sort_unstable();
    let mut closed = String::with_capacity(text.len() + places.len() * 40);
    let mut at = 0;
    for place in places {
        closed.push_str(&text[at..=place]);
        at = place + 1;
        let is_empty = text[at..].trim_start().starts_with('}');
        closed.extend(["\"", keyword, "\": false", if is_empty { "" } else { ", " }]);
    }
    closed.push_str(&text[at..]);
    closed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is closed and what is left open, and whether the text says just that.
    fn closed(schema: &Value) -> (Vec<String>, Vec<String>) {
        let found = close_objects(&schema.to_string());
        let mut expected = schema.clone();
        let modern = has_unevaluated(schema);
        let keyword = if modern { "unevaluatedProperties" } else { "additionalProperties" };
        for pointer in &found.closed {
            expected.pointer_mut(pointer).expect("a place")[keyword] = json!(false);
        }
        let text: Value = serde_json::from_str(&found.text).expect("JSON");
        assert_eq!(text, expected, "{}", found.text);
        (found.closed, found.left_open)
    }

    #[test]
    fn objects_that_say_nothing_are_closed_at_their_outermost_schema() {
        let a = json!({"properties": {"a": {"type": "integer"}}});
        for (schema, expected) in [
            (a.clone(), &[""][..]),
            (
                json!({"properties": {"p": a, "q": {"anyOf": [a, {"type": "null"}]}}}),
                &["", "/properties/p", "/properties/q"],
            ),
            (json!({"allOf": [a, {"properties": {"b": true}}]}), &[""]),
            (json!({"anyOf": [a, {"properties": {"b": true}}]}), &[""]),
            (json!({"$ref": "#/$defs/x", "$defs": {"x": a}}), &[""]),
            (json!({"type": "array", "items": a}), &["/items"]),
            (json!({"additionalProperties": a}), &["/additionalProperties"]),
            (
                json!({"if": a, "then": {"properties": {"b": true}}, "properties": {"c": true}}),
                &[""],
            ),
            (json!({"properties": {"a/b~c": a}}), &["", "/properties/a~1b~0c"]),
        ] {
            assert_eq!(closed(&schema).0, expected, "{schema}");
        }
    }

    #[test]
    fn what_says_so_and_maps_stay_as_they_are() {
        for schema in [
            json!({"properties": {"a": true}, "additionalProperties": false}),
            json!({"properties": {"a": true}, "additionalProperties": true}),
            json!({"properties": {"a": true}, "unevaluatedProperties": {"type": "null"}}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"anyOf": [{"properties": {"a": true}}, {"type": "object"}]}),
            json!({"type": "string"}),
            json!(true),
        ] {
            assert_eq!(closed(&schema).0, [""; 0], "{schema}");
        }
    }

    #[test]
    fn nothing_is_closed_where_another_value_could_become_valid() {
        let nested = json!({"properties": {"n": {"properties": {"a": true}}}});
        for schema in [
            json!({"type": "object", "properties": {}, "not": nested}),
            json!({"properties": {}, "if": nested}),
            json!({"properties": {}, "oneOf": [nested, {"properties": {"n": {"properties": {"b": true}}}}]}),
            json!({"properties": {}, "allOf": [{"$ref": "#/$defs/x"}], "not": {"$ref": "#/$defs/x"}, "$defs": {"x": nested}}),
            // Two schemas describe the same member.
            json!({"allOf": [nested, {"properties": {"n": {"properties": {"b": true}}}}]}),
        ] {
            let (closed, left_open) = closed(&schema);
            assert_eq!(closed, [""], "{schema}");
            assert!(!left_open.is_empty(), "{schema}");
        }
    }

    #[test]
    fn branches_that_a_constant_tells_apart_are_closed_inside() {
        let branch = |tag: &str| json!({"properties": {"kind": {"const": tag}, "n": {"properties": {"a": true}}}, "required": ["kind"]});
        let schema = json!({"oneOf": [branch("x"), branch("y")]});
        // The members are of different branches, so `n` is described twice and stays open.
        assert_eq!(closed(&schema).0, [""]);
        let other = json!({"properties": {"kind": {"const": "y"}}, "required": ["kind"]});
        let schema = json!({"oneOf": [branch("x"), other]});
        assert_eq!(closed(&schema).0, ["", "/oneOf/0/properties/n"]);
    }

    #[test]
    fn drafts_without_the_keyword_close_simple_objects() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"properties": {"b": true}}, "r": {"allOf": [{"properties": {"c": true}}]}},
        });
        let (closed, left_open) = closed(&schema);
        assert_eq!(closed, ["", "/properties/a"]);
        assert_eq!(left_open, ["/properties/r"]);
    }

    #[test]
    fn numbers_and_order_of_the_text_stay() {
        let text =
            r#"{ "b": 12345678901234567890123, "properties" : { "z":{"minimum":1e400}, "a":{} }}"#;
        let closed = close_objects(text);
        let expected = r#"{"unevaluatedProperties": false,  "b": 12345678901234567890123, "properties" : { "z":{"minimum":1e400}, "a":{} }}"#;
        assert_eq!(closed.text, expected);
        assert_eq!(close_objects("{").text, "{");
    }
}
