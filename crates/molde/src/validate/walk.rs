//! The first fault of a value, in the order in which Pydantic reports them.

use serde_json::{Map, Value};

use super::scalar;
use crate::Fault;
use crate::fields::push_segment;

/// Levels of schemas inside schemas that are followed, `$ref`s included. What lies deeper is left
/// to the automaton's verdict.
const LEVELS: usize = 64;

/// The first fault of `value`, if one of the keywords that are known here forbids it.
pub(super) fn first_fault(schema: &Value, value: &Value) -> Option<Fault> {
    Walk { root: schema }.value(schema, value, "", LEVELS)
}

struct Walk<'s> {
    root: &'s Value,
}

impl<'s> Walk<'s> {
    fn value(&self, schema: &Value, value: &Value, at: &str, levels: usize) -> Option<Fault> {
        let map = match schema {
            Value::Bool(false) => {
                return Some(Fault::new("extra_forbidden", at, "no value is allowed here"));
            }
            Value::Object(map) if levels > 0 => map,
            _ => return None,
        };
        if let Some(target) = self.resolve(map)
            && let Some(fault) = self.value(target, value, at, levels - 1)
        {
            return Some(fault);
        }
        Self::constants(map, value, at)
            .or_else(|| self.unions(map, value, at, levels))
            .or_else(|| self.typed(map, value, at, levels))
            .or_else(|| {
                let parts = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
                parts.into_iter().find_map(|part| self.value(part, value, at, levels - 1))
            })
    }

    fn constants(map: &Map<String, Value>, value: &Value, at: &str) -> Option<Fault> {
        if let Some(constant) = map.get("const")
            && !scalar::same(constant, value)
        {
            return Some(Fault::new("literal_error", at, format!("expected {constant}")));
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array)
            && !values.iter().any(|constant| scalar::same(constant, value))
        {
            let shown: Vec<String> = values.iter().take(20).map(ToString::to_string).collect();
            let more = if values.len() > shown.len() { ", …" } else { "" };
            let message = format!("expected one of {}{more}", shown.join(", "));
            return Some(Fault::new("enum", at, message));
        }
        None
    }

    fn unions(
        &self,
        map: &Map<String, Value>,
        value: &Value,
        at: &str,
        levels: usize,
    ) -> Option<Fault> {
        for keyword in ["anyOf", "oneOf"] {
            let Some(branches) = map.get(keyword).and_then(Value::as_array) else { continue };
            if let Some(fault) = self.discriminator(map, branches, value, at, levels) {
                return fault;
            }
            let faults: Vec<Option<Fault>> =
                branches.iter().map(|branch| self.value(branch, value, at, levels - 1)).collect();
            match faults.iter().filter(|fault| fault.is_none()).count() {
                0 => {
                    let is_null =
                        |branch: &Value| branch.get("type").and_then(Value::as_str) == Some("null");
                    let first = branches.iter().position(|branch| !is_null(branch)).unwrap_or(0);
                    return faults.into_iter().nth(first).flatten();
                }
                1 => {}
                _ if keyword == "oneOf" => {
                    let message = "several of the alternatives hold, exactly one may";
                    return Some(Fault::new("json_schema", at, message));
                }
                _ => {}
            }
        }
        None
    }

    /// The fault of a union whose branch a member chooses; the outer `None` if no member does.
    #[expect(
        clippy::option_option,
        reason = "not chosen by a member, or chosen and without a fault"
    )]
    fn discriminator(
        &self,
        map: &Map<String, Value>,
        branches: &[Value],
        value: &Value,
        at: &str,
        levels: usize,
    ) -> Option<Option<Fault>> {
        let discriminator = map.get("discriminator")?;
        let name = discriminator.get("propertyName")?.as_str()?;
        let mapping = discriminator.get("mapping")?.as_object()?;
        if !value.is_object() {
            return Some(Some(Fault::new("model_attributes_type", at, "expected an object")));
        }
        let Some(tag) = value.get(name) else {
            let message = format!("expected a member `{name}` that says which form it has");
            return Some(Some(Fault::new("union_tag_not_found", at, message)));
        };
        let tag = tag.as_str().map_or_else(|| tag.to_string(), ToOwned::to_owned);
        let Some(target) = mapping.get(&tag).and_then(Value::as_str) else {
            let message = format!("`{name}` is none of the tags that are known");
            return Some(Some(Fault::new("union_tag_invalid", at, message)));
        };
        let branch = branches
            .iter()
            .find(|branch| branch.get("$ref").and_then(Value::as_str) == Some(target))?;
        Some(self.value(branch, value, at, levels - 1))
    }

    fn typed(
        &self,
        map: &Map<String, Value>,
        value: &Value,
        at: &str,
        levels: usize,
    ) -> Option<Fault> {
        match map.get("type") {
            Some(Value::String(name)) if !scalar::is_of(name, value) => {
                return Some(scalar::wrong_type(name, map, value, at));
            }
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                if !names.iter().any(|name| scalar::is_of(name, value)) {
                    let name = names.iter().find(|name| **name != "null").unwrap_or(&"null");
                    return Some(scalar::wrong_type(name, map, value, at));
                }
            }
            _ => {}
        }
        match value {
            Value::Number(number) => scalar::number(map, number, at),
            Value::String(text) => scalar::string(map, text, at),
            Value::Array(items) => self.array(map, items, at, levels),
            Value::Object(members) => self.object(map, members, at, levels),
            _ => None,
        }
    }

    fn array(
        &self,
        map: &Map<String, Value>,
        items: &[Value],
        at: &str,
        levels: usize,
    ) -> Option<Fault> {
        let count = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
        let prefix: &[Value] =
            map.get("prefixItems").and_then(Value::as_array).map_or(&[], Vec::as_slice);
        if let Some(most) = count("maxItems").filter(|most| items.len() as u64 > *most) {
            return Some(Fault::new("too_long", at, format!("expected at most {most} items")));
        }
        for (index, item) in items.iter().enumerate() {
            let Some(schema) = prefix.get(index).or_else(|| map.get("items")) else { break };
            if let Some(fault) = self.value(schema, item, &format!("{at}/{index}"), levels - 1) {
                return Some(fault);
            }
        }
        if let Some(least) = count("minItems").filter(|least| (items.len() as u64) < *least) {
            // A tuple's places are fields.
            if items.len() < prefix.len() {
                let pointer = format!("{at}/{}", items.len());
                return Some(Fault::new("missing", pointer, "expected a value"));
            }
            return Some(Fault::new("too_short", at, format!("expected at least {least} items")));
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            let repeated = items
                .iter()
                .enumerate()
                .any(|(index, item)| items[..index].iter().any(|other| scalar::same(other, item)));
            if repeated {
                return Some(Fault::new("unique_items", at, "an item comes twice"));
            }
        }
        None
    }

    fn object(
        &self,
        map: &Map<String, Value>,
        members: &Map<String, Value>,
        at: &str,
        levels: usize,
    ) -> Option<Fault> {
        let inner = |name: &str| {
            let mut pointer = at.to_owned();
            push_segment(&mut pointer, name);
            pointer
        };
        let missing = |name: &str| Some(Fault::new("missing", inner(name), "expected a value"));
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = map.get("properties").and_then(Value::as_object);
        let is_undeclared = |name: &str| {
            let declared = properties.is_some_and(|properties| properties.contains_key(name));
            !declared && !map.contains_key("patternProperties")
        };
        // Pydantic reports members that it does not know before all others.
        let forbids = |keyword: &str| map.get(keyword) == Some(&Value::Bool(false));
        let unknown = members.keys().find(|name| {
            is_undeclared(name)
                && (forbids("additionalProperties")
                    || (forbids("unevaluatedProperties") && !self.declares(map, name, levels)))
        });
        if let Some(name) = unknown {
            return Some(Fault::new("extra_forbidden", inner(name), "the member is not known"));
        }
        for (name, schema) in properties.into_iter().flatten() {
            match members.get(name) {
                Some(value) => {
                    if let Some(fault) = self.value(schema, value, &inner(name), levels - 1) {
                        return Some(fault);
                    }
                }
                None if required.contains(&name.as_str()) => return missing(name),
                None => {}
            }
        }
        if let Some(name) = required.iter().find(|name| !members.contains_key(**name)) {
            return missing(name);
        }
        for (name, value) in members.iter().filter(|(name, _)| is_undeclared(name)) {
            if let Some(schema @ Value::Object(_)) = map.get("additionalProperties")
                && let Some(fault) = self.value(schema, value, &inner(name), levels - 1)
            {
                return Some(fault);
            }
        }
        let count = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
        let len = members.len() as u64;
        if let Some(least) = count("minProperties").filter(|least| len < *least) {
            return Some(Fault::new("too_short", at, format!("expected at least {least} members")));
        }
        let most = count("maxProperties").filter(|most| len > *most)?;
        Some(Fault::new("too_long", at, format!("expected at most {most} members")))
    }

    /// Whether the schema, or one that applies to the same value, declares a member.
    pub(super) fn declares(&self, map: &Map<String, Value>, name: &str, levels: usize) -> bool {
        let Some(levels) = levels.checked_sub(1) else { return false };
        let declared = |keyword: &str| map.get(keyword).is_some_and(|own| own.get(name).is_some());
        let parts = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| map.get(keyword).and_then(Value::as_array))
            .flatten()
            .chain(["if", "then", "else"].into_iter().filter_map(|keyword| map.get(keyword)))
            .chain(
                map.get("dependentSchemas")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|schemas| schemas.values()),
            )
            .chain(self.resolve(map));
        declared("properties")
            || parts.filter_map(Value::as_object).any(|part| self.declares(part, name, levels))
    }

    /// The target of a `$ref` inside the document.
    fn resolve(&self, map: &Map<String, Value>) -> Option<&'s Value> {
        let reference = map.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}
