//! `enum` and `const`: values by JSON equality, so that `1`, `1.0` and `1e0` are one value and the
//! members of an object come in any order.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaLimits};
use crate::document::{Value, ValueId, join};
use crate::ir::{Applicator, ArrayRule, Node, NodeId, ObjectRule, StringRule, TypeSet};
use crate::number::{Decimal, NumberLimits, NumberSpec};

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_enum(&mut self, location: &mut Location<'_>, value: ValueId) {
        let Value::Array(values) = self.document.get(value) else {
            return self.malform(location.pointer, "enum", "must be an array");
        };
        self.require_one_of(location, "enum", values);
    }

    pub(super) fn load_const(&mut self, location: &mut Location<'_>, value: ValueId) {
        if let Value::Object(members) = self.document.get(value)
            && members.len() == 1
            && members.contains_key("$data")
        {
            return self.refuse(location.pointer, "const", "with `$data` is not supported");
        }
        self.require_one_of(location, "const", &[value]);
    }

    fn require_one_of(&mut self, location: &mut Location<'_>, keyword: &str, values: &[ValueId]) {
        let pointer = join(location.pointer, keyword);
        let mut compound = Vec::new();
        let mut scalars = Vec::new();
        for &value in values {
            match self.document.get(value) {
                Value::Array(_) | Value::Object(_) => compound.push(value),
                _ => scalars.push(value),
            }
        }
        let Some(scalars) = self.scalars(&pointer, &scalars) else { return };
        if compound.is_empty() {
            location.node.applicators.push(Applicator::All(self.push(scalars)));
            return;
        }
        let mut branches = Vec::with_capacity(compound.len() + 1);
        if scalars.types != TypeSet::NONE {
            branches.push(self.push(scalars));
        }
        for value in compound {
            branches.extend(self.constant(&pointer, value));
        }
        location.node.applicators.push(Applicator::Any(branches));
    }

    /// One node for a list of scalars; `None` if one of them cannot be enforced.
    fn scalars(&mut self, pointer: &str, values: &[ValueId]) -> Option<Node> {
        let mut types = TypeSet::NONE;
        let mut numbers = Vec::new();
        let mut strings: Vec<&str> = Vec::new();
        for &value in values {
            let kind = match self.document.get(value) {
                Value::Null => TypeSet::NULL,
                Value::Boolean(false) => TypeSet::FALSE,
                Value::Boolean(true) => TypeSet::TRUE,
                Value::Number(text) => match Decimal::parse(text, &NumberLimits::default()) {
                    Ok(number) => {
                        numbers.push(number);
                        TypeSet::NUMBER
                    }
                    Err(error) => {
                        let (parent, keyword) = pointer.rsplit_once('/').unwrap_or(("", pointer));
                        let reason = format!("cannot be enforced: {error}");
                        self.refuse(parent, keyword, reason);
                        return None;
                    }
                },
                Value::String(text) => {
                    strings.push(text);
                    TypeSet::STRING
                }
                Value::Array(_) | Value::Object(_) => TypeSet::NONE,
            };
            types = types.union(kind);
        }
        let mut node = Node::of_types(pointer.to_owned(), types);
        if !numbers.is_empty() {
            node.number = Some(Box::new(NumberSpec::from_values(numbers)));
        }
        if !strings.is_empty() {
            match Dfa::from_words(strings, &DfaLimits::default()) {
                Ok(words) => {
                    let languages = vec![Arc::new(words)];
                    node.string = Some(Box::new(StringRule { languages, ..StringRule::default() }));
                }
                Err(error) => {
                    let (parent, keyword) = pointer.rsplit_once('/').unwrap_or(("", pointer));
                    self.refuse(parent, keyword, format!("cannot be compiled: {error}"));
                    return None;
                }
            }
        }
        Some(node)
    }

    /// A node that accepts one value.
    fn constant(&mut self, pointer: &str, value: ValueId) -> Option<NodeId> {
        let node = match self.document.get(value) {
            Value::Array(items) => {
                let prefix: Option<Vec<NodeId>> =
                    items.iter().map(|&item| self.constant(pointer, item)).collect();
                let mut node = Node::of_types(pointer.to_owned(), TypeSet::ARRAY);
                node.array = Some(Box::new(ArrayRule {
                    prefix: prefix?,
                    items: None,
                    min_items: items.len() as u64,
                    max_items: Some(items.len() as u64),
                }));
                node
            }
            Value::Object(members) => {
                let mut rule = ObjectRule::default();
                for (name, &member) in members {
                    let member = self.constant(pointer, member)?;
                    rule.properties.insert(name.as_str().into(), member);
                    rule.required.push(name.as_str().into());
                }
                rule.additional =
                    Some(self.push(Node::of_types(pointer.to_owned(), TypeSet::NONE)));
                let mut node = Node::of_types(pointer.to_owned(), TypeSet::OBJECT);
                node.object = Some(Box::new(rule));
                node
            }
            _ => self.scalars(pointer, &[value])?,
        };
        Some(self.push(node))
    }
}
