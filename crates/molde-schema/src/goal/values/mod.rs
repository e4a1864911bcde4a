//! Values that are known by name: those that items of arrays are compared with, and the first
//! values of goals.

mod containers;
mod endless;
mod numbers;
mod words;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::constant::{canonical, constant};
use crate::document::Document;
use crate::ir::{Applicator, Node, NodeId, TypeSet};
use crate::number::NumberLimits;
use crate::options::Limits;

use super::{Alternative, GoalId, GoalLimit, Goals};

pub(super) use endless::ENDLESS_DEPTH;
use words::first_strings;

/// A value that has come up; equal values have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConstantId(u32);

/// All values that have come up.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// By a text that equal values share.
    ids: FxHashMap<Box<str>, ConstantId>,
    texts: Vec<Arc<[u8]>>,
    bytes: usize,
    /// The nodes of values, where a goal asks for one.
    nodes: FxHashMap<ConstantId, NodeId>,
    /// The nodes that one of some values satisfies.
    choices: FxHashMap<Box<[ConstantId]>, NodeId>,
    /// The first values of goals.
    lists: FxHashMap<GoalId, FirstValues>,
    /// How many questions for endlessly many values are being answered, one for the other.
    asking: usize,
    /// The goals of which the first values are being listed.
    listing: Vec<GoalId>,
    /// The node that arrays and objects satisfy.
    containers: Option<NodeId>,
}

impl Values {
    pub(super) fn memory_usage(&self) -> usize {
        self.bytes + self.nodes.len() * size_of::<Node>()
    }
}

/// The first values of a goal, those with the shortest texts first.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstValues {
    pub(crate) found: Arc<[ConstantId]>,
    /// Whether these are all.
    pub(crate) is_complete: bool,
}

/// Texts by length, and whether they are all there are.
type Texts = (Vec<Vec<u8>>, bool);

impl Goals {
    /// The value with a text.
    ///
    /// # Errors
    /// `distinct_values` if there are too many.
    pub(crate) fn value(&mut self, text: &[u8]) -> Result<ConstantId, GoalLimit> {
        let document = parse(text)?;
        let key = canonical(&document, document.root());
        if let Some(&known) = self.values.ids.get(key.as_str()) {
            return Ok(known);
        }
        let most = self.options.limits.distinct_values;
        if self.values.texts.len() >= most {
            return Err(GoalLimit {
                name: "distinct_values",
                limit: most as u64,
                unit: "values that items are compared with",
                pointer: String::new(),
            });
        }
        let id = ConstantId(self.values.texts.len() as u32);
        self.values.bytes += 2 * text.len() + 96;
        self.values.texts.push(text.into());
        self.values.ids.insert(key.into(), id);
        Ok(id)
    }

    /// A text of a value.
    pub(crate) fn value_text(&self, value: ConstantId) -> Arc<[u8]> {
        Arc::clone(&self.values.texts[value.0 as usize])
    }

    /// The node that only this value satisfies.
    pub(super) fn value_node(&mut self, value: ConstantId) -> Result<NodeId, GoalLimit> {
        if let Some(&known) = self.values.nodes.get(&value) {
            return Ok(known);
        }
        let document = parse(&self.value_text(value))?;
        let schema = Arc::make_mut(&mut self.schema);
        let node =
            constant(&document, "", document.root(), &NumberLimits::unbounded(), &mut schema.nodes)
                .map_err(|_| too_long())?;
        self.values.nodes.insert(value, node);
        Ok(node)
    }

    /// The node that only the value with a text satisfies.
    pub(crate) fn constant(&mut self, text: &[u8]) -> Result<NodeId, GoalLimit> {
        let value = self.value(text)?;
        self.value_node(value)
    }

    /// The node that each of these values satisfies, and nothing else.
    pub(crate) fn one_of_values(&mut self, values: &[ConstantId]) -> Result<NodeId, GoalLimit> {
        if let Some(&known) = self.values.choices.get(values) {
            return Ok(known);
        }
        let nodes =
            values.iter().map(|&value| self.value_node(value)).collect::<Result<Vec<_>, _>>()?;
        let mut node = Node::of_types(String::new(), TypeSet::ALL);
        node.applicators.push(Applicator::Constants(nodes));
        let schema = Arc::make_mut(&mut self.schema);
        schema.nodes.push(node);
        let id = NodeId(schema.nodes.len() as u32 - 1);
        self.values.choices.insert(values.into(), id);
        Ok(id)
    }

    /// At least the `count` first values of a goal, or all of them. More of them begin with the
    /// same.
    pub(super) fn first_values(
        &mut self,
        goal: GoalId,
        count: usize,
    ) -> Result<FirstValues, GoalLimit> {
        let known = self.values.lists.get(&goal);
        if let Some(known) = known
            && (known.is_complete || known.found.len() >= count)
        {
            return Ok(known.clone());
        }
        let count = count.max(known.map_or(0, |known| 2 * known.found.len()));
        if self.values.listing.contains(&goal) {
            return Err(GoalLimit {
                name: "distinct_items",
                limit: 0,
                unit: "recursions through `uniqueItems`",
                pointer: self.pointer(goal),
            });
        }
        self.values.listing.push(goal);
        let list = self.find_first_values(goal, count);
        self.values.listing.pop();
        let list = list?;
        self.values.lists.insert(goal, list.clone());
        Ok(list)
    }

    fn find_first_values(&mut self, goal: GoalId, count: usize) -> Result<FirstValues, GoalLimit> {
        let mut texts: Vec<(usize, usize, Vec<u8>)> = Vec::new();
        let mut is_complete = true;
        let mut add = |(list, complete): Texts, at: usize| {
            is_complete &= complete;
            texts.extend(list.into_iter().map(|text| (text.len(), at, text)));
        };
        let alternatives = self.solve(goal)?.alternatives;
        let mut has_containers = false;
        for (at, &alternative) in alternatives.iter().enumerate() {
            match alternative {
                Alternative::Literal(literal) => add((vec![literal.text().to_vec()], true), at),
                Alternative::Number(id) => add(self.first_numbers(id, count)?, at),
                Alternative::String(id) => {
                    let shape = Arc::clone(self.string(id));
                    let steps = self.options.limits.item_steps;
                    add(first_strings(&shape, count, steps)?, at);
                }
                Alternative::Array(_) | Alternative::Object(_) => has_containers = true,
            }
        }
        // Where scalars are enough, containers are left out.
        let mut has_endless_scalars = false;
        for &alternative in alternatives.iter() {
            has_endless_scalars |= self.is_endless(alternative, 0)?;
        }
        if has_containers && has_endless_scalars {
            add((Vec::new(), false), alternatives.len());
        } else if has_containers {
            add(self.first_containers(goal, count)?, alternatives.len());
        }
        // Of one alternative they come by length already, so the order is that of a merge.
        texts.sort_by_key(|&(length, at, _)| (length, at));
        let mut found = Vec::with_capacity(texts.len());
        for (_, _, text) in texts {
            let value = self.value(&text)?;
            if !found.contains(&value) {
                found.push(value);
            }
            if found.len() == count && !is_complete {
                break;
            }
        }
        Ok(FirstValues { found: found.into(), is_complete })
    }
}

fn parse(text: &[u8]) -> Result<Document, GoalLimit> {
    let text = std::str::from_utf8(text).map_err(|_| too_long())?;
    let limits = Limits { schema_depth: usize::MAX, schema_bytes: usize::MAX, ..Limits::default() };
    Document::parse(text, &limits).map_err(|_| too_long())
}

/// A value that is not compared.
fn too_long() -> GoalLimit {
    GoalLimit {
        name: "completion_bytes",
        limit: 0,
        unit: "bytes of a value that is compared",
        pointer: String::new(),
    }
}
