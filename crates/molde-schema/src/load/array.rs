//! `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`, `contains`, `minContains`,
//! `maxContains`, `uniqueItems`, `unevaluatedItems`.

use crate::dialect::{Dialect, Treatment, treatment};
use crate::document::{Value, ValueId};
use crate::ir::{ArrayRule, Contains};

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_array_keyword(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
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
            "uniqueItems" => match self.document.get(value) {
                Value::Boolean(false) => {}
                Value::Boolean(true) => rule(location).unique = true,
                _ => self.malform(location.pointer, keyword, "must be a boolean"),
            },
            // `items` as an array of schemas is what 2020-12 calls `prefixItems`.
            "items" | "prefixItems" if matches!(self.document.get(value), Value::Array(_)) => {
                if (keyword == "items") == (location.dialect == Dialect::Draft202012) {
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
                    .map(|(at, &item)| self.child(location, &[keyword, &at.to_string()], item))
                    .collect();
                rule(location).prefix = prefix;
            }
            "prefixItems" => {
                self.malform(location.pointer, keyword, "must be an array of schemas");
            }
            "items" => {
                let items = self.child(location, &[keyword], value);
                rule(location).items = Some(items);
            }
            "unevaluatedItems" => {
                let items = self.child(location, &[keyword], value);
                location.node.unevaluated_items = Some(items);
            }
            "minContains" | "maxContains" => {
                self.count(location, keyword, value);
            }
            // `additionalItems` and `contains` are taken up by `finish_array`, with their
            // neighbours.
            _ => {}
        }
    }

    /// Keywords that mean something together with their neighbours only.
    pub(super) fn finish_array(&mut self, location: &mut Location<'_>) {
        let tuple = self
            .sibling(location, "items")
            .is_some_and(|id| matches!(self.document.get(id), Value::Array(_)));
        if let (true, Some(value)) = (tuple, self.sibling(location, "additionalItems"))
            && treatment("additionalItems", location.dialect) != Treatment::Annotation
        {
            let items = self.child(location, &["additionalItems"], value);
            rule(location).items = Some(items);
        }
        if treatment("contains", location.dialect) == Treatment::Annotation {
            return;
        }
        let Some(value) = self.sibling(location, "contains") else { return };
        let counted = treatment("minContains", location.dialect) != Treatment::Annotation;
        let bound = |keyword| {
            let id = self.sibling(location, keyword).filter(|_| counted)?;
            match self.document.get(id) {
                Value::Number(text) => super::number::count(text),
                _ => None,
            }
        };
        let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let contains = Contains {
            node: self.child(location, &["contains"], value),
            min,
            max,
            evaluates: location.dialect >= Dialect::Draft202012,
        };
        rule(location).contains = Some(contains);
    }
}

fn rule<'a>(location: &'a mut Location<'_>) -> &'a mut ArrayRule {
    location.node.array.get_or_insert_default()
}
