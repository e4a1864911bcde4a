//! `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`.

use crate::dialect::Dialect;
use crate::document::{Value, ValueId, join};
use crate::ir::ArrayRule;

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_array_keyword(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        let pointer = join(location.pointer, keyword);
        match keyword {
            "minItems" => {
                if let Some(count) = self.count(location, keyword, value) {
                    rule(location).min_items = count;
                }
            }
            "maxItems" => {
                if let Some(count) = self.count(location, keyword, value) {
                    rule(location).max_items = Some(count);
                }
            }
            // `items` as an array of schemas is what 2020-12 calls `prefixItems`.
            "items" | "prefixItems" if matches!(self.document.get(value), Value::Array(_)) => {
                if (keyword == "items") == (self.dialect == Dialect::Draft202012) {
                    return self.malform(
                        location.pointer,
                        keyword,
                        "must be a schema in this draft; `prefixItems` takes an array",
                    );
                }
                let Value::Array(items) = self.document.get(value) else { return };
                let prefix = items
                    .iter()
                    .enumerate()
                    .map(|(at, &item)| {
                        self.node(item, join(&pointer, &at.to_string()), location.resource)
                    })
                    .collect();
                rule(location).prefix = prefix;
            }
            "prefixItems" => {
                self.malform(location.pointer, keyword, "must be an array of schemas");
            }
            // `additionalItems` is taken up by `finish_array`, once `items` is known.
            "additionalItems" => {}
            _ => {
                let items = self.node(value, pointer, location.resource);
                rule(location).items = Some(items);
            }
        }
    }

    /// `additionalItems` has a meaning only beside an `items` that is an array.
    pub(super) fn finish_array(&mut self, location: &mut Location<'_>) {
        if self.dialect == Dialect::Draft202012 {
            return;
        }
        let Value::Object(members) = self.document.get(location.value) else { return };
        if self.dialect.ref_hides_siblings() && members.contains_key("$ref") {
            return;
        }
        let tuple = members
            .get("items")
            .is_some_and(|&id| matches!(self.document.get(id), Value::Array(_)));
        if let (true, Some(&value)) = (tuple, members.get("additionalItems")) {
            let pointer = join(location.pointer, "additionalItems");
            let items = self.node(value, pointer, location.resource);
            rule(location).items = Some(items);
        }
    }
}

fn rule<'a>(location: &'a mut Location<'_>) -> &'a mut ArrayRule {
    location.node.array.get_or_insert_default()
}
