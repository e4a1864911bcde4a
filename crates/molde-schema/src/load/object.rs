//! `properties`, `patternProperties`, `additionalProperties`, `propertyNames`, `required`,
//! `minProperties`, `maxProperties`, `unevaluatedProperties`.

use crate::document::{Value, ValueId, join};
use crate::ir::ObjectRule;

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_object_keyword(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        match keyword {
            "minProperties" => {
                if let Some(count) = self.count(location, keyword, value) {
                    rule(location).min_properties = count;
                }
            }
            "maxProperties" => {
                if let Some(count) = self.count(location, keyword, value) {
                    rule(location).max_properties = Some(count);
                }
            }
            "required" => self.load_required(location, value),
            "additionalProperties" => {
                let additional = self.child(location, &[keyword], value);
                rule(location).additional = Some(additional);
            }
            "propertyNames" => {
                let names = self.child(location, &[keyword], value);
                rule(location).names = Some(names);
            }
            "unevaluatedProperties" => {
                let members = self.child(location, &[keyword], value);
                location.node.unevaluated_properties = Some(members);
            }
            _ => self.load_properties(location, keyword, value),
        }
    }

    fn load_properties(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        let Value::Object(members) = self.document.get(value) else {
            return self.malform(location.pointer, keyword, "must be an object of schemas");
        };
        let pointer = join(location.pointer, keyword);
        for (name, &member) in members {
            let node = self.child(location, &[keyword, name], member);
            if keyword == "properties" {
                rule(location).properties.insert(name.as_str().into(), node);
            } else if let Some(language) = self.name_pattern(&pointer, name) {
                rule(location).patterns.push((language, node));
            }
        }
    }

    fn load_required(&mut self, location: &mut Location<'_>, value: ValueId) {
        let names: Option<Vec<Box<str>>> = match self.document.get(value) {
            Value::Array(names) => names
                .iter()
                .map(|&name| match self.document.get(name) {
                    Value::String(name) => Some(name.as_str().into()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        match names {
            Some(names) => rule(location).required = names,
            None => self.malform(location.pointer, "required", "must be an array of strings"),
        }
    }
}

fn rule<'a>(location: &'a mut Location<'_>) -> &'a mut ObjectRule {
    location.node.object.get_or_insert_default()
}
