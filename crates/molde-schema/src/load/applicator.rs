//! `allOf`, `anyOf`, `oneOf`, `not`, `if`/`then`/`else`, `dependentSchemas`, `dependentRequired`,
//! `dependencies`.

use crate::document::{Value, ValueId};
use crate::ir::{Applicator, Demand, Node, NodeId, ObjectRule, TypeSet};

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_applicator(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        match keyword {
            "allOf" | "anyOf" | "oneOf" => self.load_branches(location, keyword, value),
            "not" => {
                let node = self.child(location, &["not"], value);
                location.node.applicators.push(Applicator::All(Demand::fails(node)));
            }
            // Taken up together by `finish_conditional`; beside no `if` the others say nothing.
            "if" | "then" | "else" => {}
            _ => self.load_dependencies(location, keyword, value),
        }
    }

    fn load_branches(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        let Value::Array(branches) = self.document.get(value) else {
            return self.malform(location.pointer, keyword, "must be an array of schemas");
        };
        if branches.is_empty() {
            return self.malform(location.pointer, keyword, "must not be empty");
        }
        let nodes: Vec<NodeId> = branches
            .iter()
            .enumerate()
            .map(|(index, &branch)| self.child(location, &[keyword, &index.to_string()], branch))
            .collect();
        let applicators = &mut location.node.applicators;
        match (keyword, nodes.as_slice()) {
            ("allOf", _) | (_, [_]) => applicators
                .extend(nodes.into_iter().map(|node| Applicator::All(Demand::holds(node)))),
            ("anyOf", _) => applicators.push(Applicator::Any(nodes)),
            _ => applicators.push(Applicator::One(nodes)),
        }
    }

    /// `if` with what follows from it, once the whole location has been read.
    pub(super) fn finish_conditional(&mut self, location: &mut Location<'_>) {
        let Some(condition) = self.sibling(location, "if") else { return };
        if crate::dialect::treatment("if", location.dialect)
            == crate::dialect::Treatment::Annotation
        {
            return;
        }
        let condition = self.child(location, &["if"], condition);
        let mut consequence = |keyword: &str| {
            let value = self.sibling(location, keyword)?;
            Some(self.child(location, &[keyword], value))
        };
        let (then, otherwise) = (consequence("then"), consequence("else"));
        let case = |demand, consequence: Option<NodeId>| {
            std::iter::once(demand).chain(consequence.map(Demand::holds)).collect()
        };
        location.node.applicators.push(Applicator::Cases(vec![
            case(Demand::holds(condition), then),
            case(Demand::fails(condition), otherwise),
        ]));
    }

    fn load_dependencies(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        let Value::Object(entries) = self.document.get(value) else {
            return self.malform(location.pointer, keyword, "must be an object");
        };
        for (name, &entry) in entries {
            let consequence = match (self.document.get(entry), keyword) {
                (Value::Array(names), "dependencies" | "dependentRequired") => {
                    let names: Option<Vec<Box<str>>> = names
                        .iter()
                        .map(|&name| match self.document.get(name) {
                            Value::String(name) => Some(name.as_str().into()),
                            _ => None,
                        })
                        .collect();
                    let Some(names) = names else {
                        self.malform(location.pointer, keyword, "must list names as strings");
                        continue;
                    };
                    self.has_members(location, names)
                }
                // Draft 3 wrote a single name as a string; no later draft does.
                (_, "dependentRequired") => {
                    self.malform(location.pointer, keyword, "must be an object of arrays of names");
                    continue;
                }
                _ => self.child(location, &[keyword, name], entry),
            };
            let present = self.has_members(location, vec![name.as_str().into()]);
            location.node.applicators.push(Applicator::Cases(vec![
                Box::new([Demand::fails(present)]),
                Box::new([Demand::holds(present), Demand::holds(consequence)]),
            ]));
        }
    }

    /// A node of the objects that have all of these members.
    fn has_members(&mut self, location: &Location<'_>, names: Vec<Box<str>>) -> NodeId {
        let mut node = Node::of_types(location.pointer.to_owned(), TypeSet::OBJECT);
        node.object = Some(Box::new(ObjectRule { required: names, ..ObjectRule::default() }));
        self.push(node)
    }
}
