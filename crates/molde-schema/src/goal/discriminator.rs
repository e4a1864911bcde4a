//! Branches of `oneOf` that one member tells apart by its constant, as tagged unions are written.
//!
//! Whether branches exclude each other is otherwise asked of each pair, which n branches make
//! quadratic.

use crate::ir::{Applicator, Demand, NodeId, TypeSet};

use super::Goals;

/// References and `allOf` that are followed in search of a constant.
const MAX_DEPTH: usize = 8;

impl Goals {
    /// Whether there is a member that every branch requires, each with other strings for it. Then
    /// no two branches have a value in common. O(the size of the branches' own rules).
    pub(super) fn have_discriminator(&self, branches: &[NodeId]) -> bool {
        let [first, ..] = branches else { return true };
        let names = self.tags(*first, MAX_DEPTH);
        names.iter().any(|name| self.is_discriminator(name, branches))
    }

    fn is_discriminator(&self, name: &str, branches: &[NodeId]) -> bool {
        let mut all: Vec<&str> = Vec::with_capacity(branches.len());
        for &branch in branches {
            if !self.requires(branch, name, MAX_DEPTH)
                || !self.is_object(branch, MAX_DEPTH)
                || !self.tag_words(branch, name, MAX_DEPTH, &mut all)
            {
                return false;
            }
        }
        all.sort_unstable();
        all.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The required names of a node that have constants.
    fn tags(&self, node: NodeId, depth: usize) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = Vec::new();
        if let Some(rule) = self.schema.node(node).object.as_deref() {
            for name in &rule.required {
                if self.tag_words(node, name, depth, &mut Vec::new()) {
                    names.push(name.clone());
                }
            }
        }
        for inner in self.conjuncts_of(node, depth) {
            names.extend(self.tags(inner, depth - 1));
        }
        names
    }

    fn requires(&self, node: NodeId, name: &str, depth: usize) -> bool {
        let own = self.schema.node(node).object.as_deref();
        own.is_some_and(|rule| rule.required.iter().any(|required| **required == *name))
            || self.conjuncts_of(node, depth).any(|inner| self.requires(inner, name, depth - 1))
    }

    fn is_object(&self, node: NodeId, depth: usize) -> bool {
        self.schema.node(node).types == TypeSet::OBJECT
            || self.conjuncts_of(node, depth).any(|inner| self.is_object(inner, depth - 1))
    }

    /// Adds the strings that the member of a name may be, each once; `false` if they are not
    /// listed.
    fn tag_words<'a>(
        &'a self,
        node: NodeId,
        name: &str,
        depth: usize,
        all: &mut Vec<&'a str>,
    ) -> bool {
        let own = self.schema.node(node).object.as_deref();
        let own = own.and_then(|rule| rule.properties.get(name));
        own.is_some_and(|&own| self.words_of(own, depth, all))
            || self
                .conjuncts_of(node, depth)
                .any(|inner| self.tag_words(inner, name, depth - 1, all))
    }

    /// Adds the strings that a node lists, each once; `false`, and nothing added, if it lists none
    /// or has other values as well.
    fn words_of<'a>(&'a self, node: NodeId, depth: usize, all: &mut Vec<&'a str>) -> bool {
        let own = self.schema.node(node);
        if own.types == TypeSet::STRING
            && let Some(words) = own.string.as_deref().and_then(|rule| rule.words.as_ref())
        {
            all.extend(words.iter().map(|word| &**word));
            return true;
        }
        if depth == 0 {
            return false;
        }
        let known = all.len();
        own.applicators.iter().any(|applicator| match applicator {
            Applicator::All(demand) if !demand.is_negated() => {
                self.words_of(demand.node(), depth - 1, all)
            }
            Applicator::Constants(list) => {
                let are_words = list.iter().all(|&node| self.words_of(node, depth - 1, all));
                if !are_words {
                    all.truncate(known);
                }
                are_words
            }
            _ => false,
        })
    }

    /// The nodes that hold wherever a node does, one step further in.
    fn conjuncts_of(&self, node: NodeId, depth: usize) -> impl Iterator<Item = NodeId> {
        let applicators = &self.schema.node(node).applicators;
        applicators.iter().filter_map(move |applicator| match applicator {
            Applicator::All(demand) if depth > 0 && *demand == Demand::holds(demand.node()) => {
                Some(demand.node())
            }
            _ => None,
        })
    }
}
