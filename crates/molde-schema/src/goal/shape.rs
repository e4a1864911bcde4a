//! Shapes: the merged rules for one string, array or object.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::dfa::{Dfa, DfaError, DfaLimits, Lengths};
use crate::ir::{ArrayRule, NodeId, ObjectRule};
use crate::text::escape_into;

use super::{GoalId, Goals};

/// A string: a language of decoded contents and a number of code points.
#[derive(Debug)]
pub(crate) struct StringShape {
    pub(crate) language: Dfa,
    pub(crate) min_length: u64,
    pub(crate) max_length: Option<u64>,
    /// Absent where the bounds say nothing.
    pub(crate) lengths: Option<Lengths>,
    /// Any content at all.
    pub(crate) is_free: bool,
}

// Lengths follow from the rest.
impl PartialEq for StringShape {
    fn eq(&self, other: &Self) -> bool {
        (self.min_length, self.max_length) == (other.min_length, other.max_length)
            && self.language == other.language
    }
}

impl Eq for StringShape {}

impl std::hash::Hash for StringShape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.min_length, self.max_length).hash(state);
        self.language.hash(state);
    }
}

impl StringShape {
    /// `None` if no string fits.
    pub(super) fn new(
        language: Dfa,
        min_length: u64,
        max_length: Option<u64>,
        limits: &DfaLimits,
    ) -> Result<Option<Self>, DfaError> {
        if language.is_empty() {
            return Ok(None);
        }
        let unbounded = min_length == 0 && max_length.is_none();
        let lengths =
            if unbounded { None } else { Some(Lengths::new(&language, max_length, limits)?) };
        let is_free = unbounded && language.is_universal();
        let shape = Self { language, min_length, max_length, lengths, is_free };
        let start = shape.language.start();
        Ok(shape.is_live(start, 0).then_some(shape))
    }

    /// Whether a state of the language, reached with `count` code points, can still end well.
    pub(crate) fn is_live(&self, state: u32, count: u64) -> bool {
        if state == Dfa::DEAD {
            return false;
        }
        let Some(lengths) = &self.lengths else { return true };
        let most = match self.max_length {
            Some(max) if count > max => return false,
            Some(max) => Some(max - count),
            None => None,
        };
        lengths.reachable(state, self.min_length.saturating_sub(count), most)
    }

    /// Whether the content may end here.
    pub(crate) fn is_complete(&self, state: u32, count: u64) -> bool {
        self.language.is_accepting(state)
            && count >= self.min_length
            && self.max_length.is_none_or(|max| count <= max)
    }

    /// The count to carry on: above the minimum, and without a maximum, it no longer matters.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_length {
            Some(_) => count,
            None => count.min(self.min_length),
        }
    }

    /// The shortest text between the quotes that goes on from a state reached with `count` code
    /// points, or from the start: close to the fewest bytes, exact without length bounds.
    pub(crate) fn shortest_text(&self, from: Option<(u32, u64)>) -> Vec<u8> {
        self.shortest_text_start(from, usize::MAX)
    }

    /// As [`shortest_text`](Self::shortest_text), or its first bytes, at least so many.
    pub(crate) fn shortest_text_start(&self, from: Option<(u32, u64)>, enough: usize) -> Vec<u8> {
        let (mut state, mut count) = from.unwrap_or((self.language.start(), 0));
        let mut text = Vec::new();
        if self.lengths.is_none() {
            escape_into(&self.language.shortest(state), &mut text);
            return text;
        }
        let mut content = Vec::new();
        while !self.is_complete(state, count) && content.len() < enough {
            // Among the live successors the one closest to acceptance; the count bounds the loop.
            let step = self
                .language
                .transitions(state)
                .iter()
                .filter_map(|transition| {
                    let next = count + u64::from(transition.lo & 0xC0 != 0x80);
                    let byte = readable(transition.lo, transition.hi);
                    self.is_live(transition.target, next).then_some((
                        self.language.shortest_len(transition.target),
                        byte,
                        transition.target,
                        next,
                    ))
                })
                .min();
            let Some((_, byte, target, next)) = step else { break };
            content.push(byte);
            (state, count) = (target, next);
        }
        escape_into(&content, &mut text);
        text
    }
}

/// A byte of a range that needs no escape and is easy to read, if there is one.
fn readable(lo: u8, hi: u8) -> u8 {
    [b'a', b'0', b'A', b' ']
        .into_iter()
        .find(|&byte| lo <= byte && byte <= hi)
        .unwrap_or(if lo < b' ' { b' '.min(hi) } else { lo })
}

/// An array: a goal for each item, and a number of items.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ArrayShape {
    pub(crate) prefix: Box<[GoalId]>,
    pub(crate) items: GoalId,
    pub(crate) min_items: u64,
    pub(crate) max_items: Option<u64>,
}

impl ArrayShape {
    pub(super) fn merge(goals: &mut Goals, nodes: &[NodeId]) -> Self {
        let schema = Arc::clone(&goals.schema);
        let rules: Vec<&ArrayRule> =
            nodes.iter().filter_map(|&node| schema.node(node).array.as_deref()).collect();
        let prefix_len = rules.iter().map(|rule| rule.prefix.len()).max().unwrap_or(0);
        let prefix = (0..prefix_len)
            .map(|at| {
                goals.goal(
                    rules.iter().filter_map(|rule| rule.prefix.get(at).copied().or(rule.items)),
                )
            })
            .collect();
        Self {
            prefix,
            items: goals.goal(rules.iter().filter_map(|rule| rule.items)),
            min_items: rules.iter().map(|rule| rule.min_items).max().unwrap_or(0),
            max_items: rules.iter().filter_map(|rule| rule.max_items).min(),
        }
    }

    /// The goal of the item at `index`.
    pub(crate) fn goal(&self, index: u64) -> GoalId {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index).copied())
            .unwrap_or(self.items)
    }

    /// The count to carry on: where all further items are alike, it no longer matters.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_items {
            Some(_) => count,
            None => count.min(self.min_items.max(self.prefix.len() as u64)).max(count.min(1)),
        }
    }
}

/// An object: a goal for each declared name, rules for all other names, and a number of members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectShape {
    /// Declared names in the order in which they are written, then required names that no schema
    /// declares.
    pub(crate) names: Box<[Box<str>]>,
    pub(crate) goals: Box<[GoalId]>,
    pub(crate) is_required: Box<[bool]>,
    /// For each index, and one past the last, the first required one that is not before it;
    /// `names.len()` if there is none.
    pub(crate) next_required: Box<[u32]>,
    /// Indices of `names` in byte order of the names.
    pub(crate) sorted: Box<[u32]>,
    /// Nodes that have something to say about other names.
    pub(super) extra_rules: Box<[NodeId]>,
    pub(crate) min_properties: u64,
    pub(crate) max_properties: Option<u64>,
}

impl ObjectShape {
    pub(super) fn merge(goals: &mut Goals, nodes: &[NodeId]) -> Self {
        let schema = Arc::clone(&goals.schema);
        let rules: Vec<&ObjectRule> =
            nodes.iter().filter_map(|&node| schema.node(node).object.as_deref()).collect();
        let mut declared: IndexMap<&str, bool> = IndexMap::new();
        for rule in &rules {
            for name in rule.properties.keys() {
                declared.entry(name).or_insert(false);
            }
        }
        for name in rules.iter().flat_map(|rule| &rule.required) {
            declared.insert(name, true);
        }
        let mut list = Vec::with_capacity(declared.len());
        for name in declared.keys() {
            let applicable = rules.iter().flat_map(|rule| applicable(rule, name));
            list.push(goals.goal(applicable.collect::<Vec<_>>()));
        }
        let names: Box<[Box<str>]> = declared.keys().map(|&name| name.into()).collect();
        let mut sorted: Box<[u32]> = (0..names.len() as u32).collect();
        sorted.sort_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
        let is_required: Box<[bool]> = declared.values().copied().collect();
        let mut next_required = vec![names.len() as u32; names.len() + 1];
        for index in (0..names.len()).rev() {
            next_required[index] =
                if is_required[index] { index as u32 } else { next_required[index + 1] };
        }
        Self {
            goals: list.into(),
            is_required,
            next_required: next_required.into(),
            sorted,
            names,
            extra_rules: nodes
                .iter()
                .copied()
                .filter(|&node| {
                    schema
                        .node(node)
                        .object
                        .as_deref()
                        .is_some_and(|rule| rule.additional.is_some() || !rule.patterns.is_empty())
                })
                .collect(),
            min_properties: rules.iter().map(|rule| rule.min_properties).max().unwrap_or(0),
            max_properties: rules.iter().filter_map(|rule| rule.max_properties).min(),
        }
    }

    /// The count to carry on: beyond what the bounds ask about, it no longer matters. Zero and one
    /// differ always, since the first member has no comma before it.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_properties {
            Some(_) => count,
            None => count.min(self.min_properties.max(1)),
        }
    }

    /// Whether the number of members is bounded, so that choosing one more can go wrong.
    pub(crate) fn is_bounded(&self) -> bool {
        self.min_properties > 0 || self.max_properties.is_some()
    }
}

/// The nodes of one schema location that apply to a member of the given name.
fn applicable(rule: &ObjectRule, name: &str) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = rule.properties.get(name).copied().into_iter().collect();
    nodes.extend(rule.patterns.iter().filter(|(language, _)| language.accepts(name)).map(|x| x.1));
    if nodes.is_empty() {
        nodes.extend(rule.additional);
    }
    nodes
}
