//! The JSON Schema of a Rust type, narrowed until every instance of it can be read into the type.
//!
//! What `schemars` derives is wider than what serde reads: the width of an integer is only named
//! by `format`, structs admit members that serde ignores or trips over, a value of any JSON type
//! admits numbers that `serde_json` cannot hold. Each rule below takes a part away; nothing is
//! added, so an instance of the narrowed schema is an instance of the derived one, with one
//! exception that is said at [`decide_unions`].

use std::collections::BTreeSet;

use molde_schema::{Offender, Offenders};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::MoldeError;
use crate::fields::push_segment;

/// Name, in `$defs`, of the schema that stands for "any JSON value".
const ANY_VALUE: &str = "any JSON value";

/// Formats of strings that the schema compiler enforces.
const STRING_FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// The text of the narrowed schema of `T`.
///
/// # Errors
/// [`MoldeError::RustType`] with every format whose meaning is not known: the schema says too
/// little to keep the promise.
pub(crate) fn schema_text<T: JsonSchema>() -> Result<String, MoldeError> {
    let derived = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut schema = derived.to_value();
    let composed = composed_definitions(&schema);
    let mut narrowing = Narrowing { composed, any_value: false, offenders: Vec::new() };
    narrowing.schema(&mut schema, &mut String::new(), false);
    if narrowing.any_value
        && let Some(root) = schema.as_object_mut()
    {
        let definitions = root.entry("$defs").or_insert_with(|| Value::Object(Map::new()));
        definitions[ANY_VALUE] = any_value();
    }
    if narrowing.offenders.is_empty() {
        Ok(schema.to_string())
    } else {
        Err(MoldeError::RustType {
            type_name: std::any::type_name::<T>(),
            offenders: Offenders(narrowing.offenders),
        })
    }
}

/// Any JSON value that `serde_json` can hold.
fn any_value() -> Value {
    let any = json!({ "$ref": format!("#/$defs/{}", ANY_VALUE.replace(' ', "%20")) });
    json!({
        "anyOf": [
            { "type": ["null", "boolean", "string"] },
            { "type": "number", "minimum": f64::MIN, "maximum": f64::MAX },
            { "type": "array", "items": any },
            { "type": "object", "additionalProperties": any },
        ]
    })
}

/// Names of the definitions that are referred to from beside other keywords about the same
/// object: they hold a part of its members only and must not be closed.
fn composed_definitions(root: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // A definition can refer on to another one: repeat until nothing is added.
    loop {
        let before = names.len();
        collect_composed(root, false, &mut names);
        for (name, definition) in root.get("$defs").and_then(Value::as_object).into_iter().flatten()
        {
            let inside = names.contains(name);
            collect_composed(definition, inside, &mut names);
        }
        if names.len() == before {
            return names;
        }
    }
}

fn collect_composed(schema: &Value, composed: bool, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let in_place = composed || is_composition(map);
            if in_place
                && let Some(reference) = map.get("$ref").and_then(Value::as_str)
                && let Some(name) = reference.strip_prefix("#/$defs/")
            {
                names.insert(name.to_owned());
            }
            for (keyword, value) in map {
                match keyword.as_str() {
                    "allOf" | "anyOf" | "oneOf" => {
                        for branch in value.as_array().into_iter().flatten() {
                            collect_composed(branch, in_place, names);
                        }
                    }
                    "$defs" | "properties" | "patternProperties" => {
                        for member in value.as_object().into_iter().flatten() {
                            collect_composed(member.1, false, names);
                        }
                    }
                    "items" | "additionalProperties" | "unevaluatedProperties" => {
                        collect_composed(value, false, names);
                    }
                    "prefixItems" => {
                        for item in value.as_array().into_iter().flatten() {
                            collect_composed(item, false, names);
                        }
                    }
                    _ => {}
                }
            }
        }
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

/// Whether several parts of the schema describe members of the same object.
fn is_composition(map: &Map<String, Value>) -> bool {
    let applicators = ["$ref", "allOf", "anyOf", "oneOf"];
    let count = applicators.iter().filter(|keyword| map.contains_key(**keyword)).count();
    let own = map.contains_key("properties") || map.contains_key("additionalProperties");
    count > 1 || (count == 1 && own) || map.contains_key("allOf")
}

struct Narrowing {
    composed: BTreeSet<String>,
    any_value: bool,
    offenders: Vec<Offender>,
}

impl Narrowing {
    /// Narrows one schema and what is below it. `composed`: other schemas describe members of the
    /// same object.
    fn schema(&mut self, schema: &mut Value, pointer: &mut String, composed: bool) {
        if schema == &Value::Bool(true) || schema.as_object().is_some_and(says_nothing) {
            if composed {
                return;
            }
            self.any_value = true;
            *schema = json!({ "$ref": format!("#/$defs/{}", ANY_VALUE.replace(' ', "%20")) });
            return;
        }
        let Value::Object(map) = schema else { return };
        for keyword in ["default", "examples", "title"] {
            map.remove(keyword);
        }
        bound_integers(map);
        bound_floats(map);
        self.string_format(map, pointer);
        bound_time(map);
        bound_integer_keys(map);
        require_nullable(map);
        exclude_zero(map);
        let in_place = composed || is_composition(map);
        self.children(map, pointer, in_place);
        if !in_place && !["$ref", "anyOf", "oneOf"].iter().any(|keyword| map.contains_key(*keyword))
        {
            close(map);
        }
        decide_unions(map);
    }

    fn children(&mut self, map: &mut Map<String, Value>, pointer: &mut String, in_place: bool) {
        let length = pointer.len();
        for (keyword, value) in map.iter_mut() {
            push_segment(pointer, keyword);
            match keyword.as_str() {
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let inside = in_place && keyword != "prefixItems";
                    for (index, item) in value.as_array_mut().into_iter().flatten().enumerate() {
                        self.child(item, &index.to_string(), pointer, inside);
                    }
                }
                "properties" | "patternProperties" => {
                    for (name, member) in value.as_object_mut().into_iter().flatten() {
                        self.child(member, name, pointer, false);
                    }
                }
                "$defs" => {
                    for (name, member) in value.as_object_mut().into_iter().flatten() {
                        let inside = self.composed.contains(name);
                        self.child(member, name, pointer, inside);
                    }
                }
                "items" | "additionalProperties" => self.schema(value, pointer, false),
                _ => {}
            }
            pointer.truncate(length);
        }
    }

    fn child(&mut self, schema: &mut Value, segment: &str, pointer: &mut String, composed: bool) {
        let length = pointer.len();
        push_segment(pointer, segment);
        self.schema(schema, pointer, composed);
        pointer.truncate(length);
    }

    /// Fails closed on a format of strings that nothing enforces.
    fn string_format(&mut self, map: &mut Map<String, Value>, pointer: &str) {
        let Some(format) = map.get("format").and_then(Value::as_str).map(str::to_owned) else {
            return;
        };
        if !has_type(map, "string") {
            return;
        }
        if format == "ip" {
            map.remove("format");
            let null = has_type(map, "null");
            map.remove("type");
            let mut branches = vec![
                json!({ "type": "string", "format": "ipv4" }),
                json!({ "type": "string", "format": "ipv6" }),
            ];
            if null {
                branches.push(json!({ "type": "null" }));
            }
            map.insert("anyOf".to_owned(), Value::Array(branches));
        } else if !STRING_FORMATS.contains(&format.as_str()) {
            self.offenders.push(Offender {
                pointer: format!("{pointer}/format"),
                keyword: "format".to_owned(),
                reason: format!("names {format:?}, which nothing enforces; give a pattern instead"),
            });
        }
    }
}

/// Whether a schema admits every value: no keyword but annotations.
fn says_nothing(map: &Map<String, Value>) -> bool {
    map.keys().all(|keyword| {
        matches!(
            keyword.as_str(),
            "$schema"
                | "title"
                | "description"
                | "default"
                | "examples"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
        )
    })
}

fn has_type(map: &Map<String, Value>, name: &str) -> bool {
    match map.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|other| other == name),
        _ => false,
    }
}

/// Replaces an integer `format` by bounds.
///
/// Those of 128-bit integers do not fit into a `serde_json` number; floats just inside take
/// their place, of 15 digits, since those are printed as they are written here. Inside a flattened struct or a tagged enum,
/// which a schema does not show, serde reads no 128-bit integer at all.
fn bound_integers(map: &mut Map<String, Value>) {
    if !has_type(map, "integer") {
        return;
    }
    let (low, high): (Value, Value) = match map.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("int128") => ((-1.701_411_834_604_69e38).into(), 1.701_411_834_604_69e38.into()),
        Some("int") => (isize::MIN.into(), isize::MAX.into()),
        Some("uint8") => (0.into(), u8::MAX.into()),
        Some("uint16") => (0.into(), u16::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("uint64") => (0.into(), u64::MAX.into()),
        Some("uint128") => (0.into(), 3.402_823_669_209_38e38.into()),
        Some("uint") => (0.into(), usize::MAX.into()),
        _ => return,
    };
    map.remove("format");
    tighten(map, low, high);
}

/// Replaces a floating-point `format` by the finite range.
fn bound_floats(map: &mut Map<String, Value>) {
    if !has_type(map, "number") {
        return;
    }
    let bound = match map.get("format").and_then(Value::as_str) {
        // The shortest decimal that reads back as `f32::MAX` lies above it; one digit less does not.
        Some("float") => 3.402_823_4e38_f64,
        Some("double") => f64::MAX,
        _ => return,
    };
    map.remove("format");
    tighten(map, (-bound).into(), bound.into());
}

/// Adds bounds unless narrower ones, such as those of `#[schemars(range)]`, are there.
fn tighten(map: &mut Map<String, Value>, low: Value, high: Value) {
    let beyond = |own: Option<&Value>, limit: &Value, low: bool| match (own, limit) {
        (None, _) => true,
        (Some(own), limit) => match (own.as_i64(), limit.as_i64()) {
            (Some(own), Some(limit)) => {
                if low {
                    own < limit
                } else {
                    own > limit
                }
            }
            _ => match (own.as_f64(), limit.as_f64()) {
                (Some(own), Some(limit)) => {
                    if low {
                        own < limit
                    } else {
                        own > limit
                    }
                }
                _ => true,
            },
        },
    };
    if beyond(map.get("minimum"), &low, true) {
        map.insert("minimum".to_owned(), low);
    }
    if beyond(map.get("maximum"), &high, false) {
        map.insert("maximum".to_owned(), high);
    }
}

/// Holds `Duration` and `SystemTime`, recognised by their members, inside what serde can add up.
fn bound_time(map: &mut Map<String, Value>) {
    let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) else { return };
    if properties.len() != 2 {
        return;
    }
    for (seconds, nanoseconds) in [("secs", "nanos"), ("secs_since_epoch", "nanos_since_epoch")] {
        let is_pair =
            [(seconds, "uint64"), (nanoseconds, "uint32")].iter().all(|(name, format)| {
                properties.get(*name).is_some_and(|property| property["format"] == *format)
            });
        if is_pair {
            properties[nanoseconds]["maximum"] = 999_999_999.into();
            properties[seconds]["maximum"] = i64::MAX.into();
        }
    }
}

/// Holds the names of members that stand for integers inside the narrowest integer type: which
/// type it is, the schema does not say.
fn bound_integer_keys(map: &mut Map<String, Value>) {
    let Some(patterns) = map.get_mut("patternProperties").and_then(Value::as_object_mut) else {
        return;
    };
    for (wide, narrow) in [(r"^\d+$", "^(0|[1-9][0-9]?)$"), (r"^-?\d+$", "^(0|-?[1-9][0-9]?)$")] {
        if let Some(schema) = patterns.remove(wide) {
            patterns.insert(narrow.to_owned(), schema);
        }
    }
}

/// A member that can be null is written, as null where the document has nothing: an optional
/// member lets a model skip what it should have looked for.
fn require_nullable(map: &mut Map<String, Value>) {
    let Some(properties) = map.get("properties").and_then(Value::as_object) else { return };
    let nullable: Vec<Value> = properties
        .iter()
        .filter(|(_, property)| is_nullable(property))
        .map(|(name, _)| Value::from(name.as_str()))
        .collect();
    if nullable.is_empty() {
        return;
    }
    let required = map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(names) = required.as_array_mut() {
        for name in nullable {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
}

fn is_nullable(property: &Value) -> bool {
    let Some(map) = property.as_object() else { return false };
    has_type(map, "null")
        || map
            .get("anyOf")
            .and_then(Value::as_array)
            .is_some_and(|branches| branches.iter().any(is_nullable))
}

/// `"not": {"const": 0}` of the signed `NonZero` types, as two ranges.
fn exclude_zero(map: &mut Map<String, Value>) {
    if map.get("not") != Some(&json!({ "const": 0 })) || !has_type(map, "integer") {
        return;
    }
    let (Some(low), Some(high)) = (map.get("minimum").cloned(), map.get("maximum").cloned()) else {
        return;
    };
    for keyword in ["not", "minimum", "maximum"] {
        map.remove(keyword);
    }
    let mut branches = vec![
        json!({ "type": "integer", "minimum": low, "maximum": -1 }),
        json!({ "type": "integer", "minimum": 1, "maximum": high }),
    ];
    if has_type(map, "null") {
        branches.push(json!({ "type": "null" }));
    }
    map.remove("type");
    map.insert("anyOf".to_owned(), Value::Array(branches));
}

/// Closes an object with members of its own: serde would ignore others at best, and mistake an
/// alias or a second variant's tag for a contradiction at worst.
fn close(map: &mut Map<String, Value>) {
    let is_open = !["additionalProperties", "unevaluatedProperties", "patternProperties"]
        .iter()
        .any(|keyword| map.contains_key(*keyword));
    if is_open && map.contains_key("properties") {
        map.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Reads `oneOf` as `anyOf`: serde takes the variant that the tag names, or the first that fits,
/// whether or not another one would fit as well.
fn decide_unions(map: &mut Map<String, Value>) {
    if map.contains_key("anyOf") {
        return;
    }
    if let Some(branches) = map.remove("oneOf") {
        map.insert("anyOf".to_owned(), branches);
    }
}
