//! The rules for one value that one path through the choices of a goal collects.

use std::sync::Arc;

use crate::dfa::Dfa;
use crate::ir::{Demand, NodeId, TypeSet};
use crate::number::NumberSpec;

use super::formula::FormulaId;
use super::violation::Fork;

/// A set of [`Evaluation`]s, by position.
pub(super) type Scopes = u64;

/// What is left to apply to a partial.
#[derive(Debug, Clone)]
pub(super) enum Todo {
    /// A demand, inside some scopes of `unevaluated…`.
    Demand(Demand, Scopes),
    /// Applicator `.1` of a node, which offers a choice.
    Choice(NodeId, usize, Scopes),
    /// That the node fails.
    Violation(NodeId),
    /// That one of these demands is not met.
    NotAll(Box<[Demand]>),
}

/// The rules collected on one path through the choices: a conjunction for one value.
#[derive(Debug, Clone)]
pub(super) struct Partial {
    done: Vec<(Demand, Scopes)>,
    /// A stack: what comes first in the schema is on top.
    pub(super) todo: Vec<Todo>,
    /// A stack of what is looked at when the rest is known: negations.
    pub(super) later: Vec<Todo>,
    pub(super) types: TypeSet,
    pub(super) number: Option<NumberSpec>,
    pub(super) min_length: u64,
    pub(super) max_length: Option<u64>,
    pub(super) languages: Vec<Arc<Dfa>>,
    /// The string is one of these, ascending.
    pub(super) words: Option<Arc<[Box<str>]>>,
    /// The string is in none of these lists.
    pub(super) excluded: Vec<Arc<[Box<str>]>>,
    pub(super) arrays: ArrayRules,
    pub(super) objects: ObjectRules,
}

/// The rules for arrays.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrayRules {
    /// Nodes whose array rules hold.
    pub(super) nodes: Vec<NodeId>,
    /// Counters of negated nodes.
    pub(super) counters: Vec<ItemCounter>,
    pub(super) min_items: u64,
    pub(super) max_items: Option<u64>,
    /// Two items are equal: the negation of `uniqueItems`.
    pub(super) repeats: bool,
    /// Scopes of `unevaluatedItems`.
    pub(super) scopes: Vec<Evaluation>,
}

/// The rules for objects.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectRules {
    /// Nodes whose object rules hold.
    pub(super) nodes: Vec<NodeId>,
    /// What must be met beside the rules of the nodes.
    pub(super) conditions: Vec<FormulaId>,
    pub(super) min_properties: u64,
    pub(super) max_properties: Option<u64>,
    /// Scopes of `unevaluatedProperties`.
    pub(super) scopes: Vec<Evaluation>,
}

/// A node with an `unevaluated…` keyword, and what the value was evaluated by inside it.
#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    pub(super) owner: NodeId,
    /// What the children that were not evaluated must satisfy.
    pub(super) rest: NodeId,
    /// Whether some child must be neither evaluated nor satisfy `rest`: the keyword's negation.
    pub(super) is_violated: bool,
    /// Nodes whose rules have evaluated children.
    pub(super) nodes: Vec<NodeId>,
    /// Nodes whose rules evaluate members where a condition is met.
    pub(super) guarded: Vec<(FormulaId, NodeId)>,
    /// Whether a keyword of the same kind further in has evaluated all that was left.
    pub(super) is_complete: bool,
}

/// Counts items that meet a demand, each in a range of positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemCounter {
    pub(super) atoms: Vec<ItemAtom>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The items from one position up to (not including) another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemAtom {
    pub(super) from: u64,
    pub(super) to: Option<u64>,
    pub(super) demand: Demand,
}

/// Which names a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Selector {
    Name(Box<str>),
    Pattern(Arc<Dfa>),
    /// Names that a node's `properties` and `patternProperties` leave to `additionalProperties`.
    Rest(NodeId),
    /// Names outside of a language.
    Outside(Arc<Dfa>),
    /// Names that none of the nodes evaluates.
    Unevaluated(Box<[NodeId]>),
}

impl Partial {
    pub(super) fn new(demands: &[Demand]) -> Self {
        let mut partial = Self {
            done: Vec::new(),
            todo: Vec::new(),
            later: Vec::new(),
            types: TypeSet::ALL,
            number: None,
            min_length: 0,
            max_length: None,
            languages: Vec::new(),
            words: None,
            excluded: Vec::new(),
            arrays: ArrayRules::default(),
            objects: ObjectRules::default(),
        };
        for &demand in demands.iter().rev() {
            partial.demand(demand, 0);
        }
        partial
    }

    /// Queues a demand, to be applied before all that is queued so far.
    pub(super) fn demand(&mut self, demand: Demand, scopes: Scopes) {
        self.todo.push(Todo::Demand(demand, scopes));
    }

    /// Whether there are more scopes than can be told apart.
    pub(super) fn has_too_many_scopes(&self) -> bool {
        self.arrays.scopes.len().max(self.objects.scopes.len()) > super::expand::MAX_SCOPES
    }

    /// What the value must satisfy as far as it was decided, as the nodes' own rules.
    pub(super) fn company(&self) -> impl Iterator<Item = Demand> {
        let done = self.done.iter().map(|(demand, _)| *demand);
        let todo = self.todo.iter().filter_map(|todo| match todo {
            Todo::Demand(demand, _) => Some(*demand),
            _ => None,
        });
        done.chain(todo)
            .filter(|demand| !demand.is_negated())
            .map(|demand| Demand::own_rules(demand.node()))
    }

    /// Notes that a demand is applied; `None` if it contradicts one that was applied, and `false`
    /// if it was applied itself.
    pub(super) fn note(&mut self, demand: Demand, scopes: Scopes) -> Option<bool> {
        let mut known = false;
        for &(done, done_scopes) in &self.done {
            if done == !demand {
                return None;
            }
            known |= done == demand && scopes & !done_scopes == 0;
        }
        if !known {
            self.done.push((demand, scopes));
        }
        Some(!known)
    }

    /// Whether a fork would change nothing.
    pub(super) fn has(&self, fork: &Fork) -> bool {
        let is_within = |(min, max): (u64, Option<u64>), (low, high): (u64, Option<u64>)| {
            low >= min && max.is_none_or(|max| high.is_some_and(|high| high <= max))
        };
        match fork {
            Fork::Types(types) => self.types.without(*types) == TypeSet::NONE,
            Fork::Length(min, max) => {
                self.types == TypeSet::STRING
                    && is_within((*min, *max), (self.min_length, self.max_length))
            }
            Fork::ItemCount(min, max) => {
                let known = (self.arrays.min_items, self.arrays.max_items);
                self.types == TypeSet::ARRAY && is_within((*min, *max), known)
            }
            Fork::MemberCount(min, max) => {
                let known = (self.objects.min_properties, self.objects.max_properties);
                self.types == TypeSet::OBJECT && is_within((*min, *max), known)
            }
            Fork::Demands(demands) => {
                demands.iter().all(|demand| self.done.iter().any(|(done, _)| done == demand))
            }
            _ => false,
        }
    }

    /// Restricts the types; `false` if none is left.
    pub(super) fn restrict(&mut self, types: TypeSet) -> bool {
        self.types = self.types.intersect(types);
        self.types != TypeSet::NONE
    }

    /// Restricts the length of strings.
    pub(super) fn restrict_length(&mut self, min: u64, max: Option<u64>) -> bool {
        self.min_length = self.min_length.max(min);
        self.max_length = least(self.max_length, max);
        self.max_length.is_none_or(|max| self.min_length <= max)
            || self.restrict(TypeSet::ALL.without(TypeSet::STRING))
    }

    /// Restricts strings to some words; `false` if nothing is left.
    pub(super) fn restrict_words(&mut self, words: &Arc<[Box<str>]>) -> bool {
        let common = match &self.words {
            None => Arc::clone(words),
            Some(known) => {
                known.iter().filter(|word| words.binary_search(word).is_ok()).cloned().collect()
            }
        };
        let is_empty = common.is_empty();
        self.words = Some(common);
        !is_empty || self.restrict(TypeSet::ALL.without(TypeSet::STRING))
    }

    /// The words that a string may be, if they are listed.
    pub(super) fn listed_words(&self) -> Option<Vec<Box<str>>> {
        let words = self.words.as_ref()?;
        let fits = |word: &str| {
            let length = word.chars().count() as u64;
            length >= self.min_length
                && self.max_length.is_none_or(|max| length <= max)
                && self.languages.iter().all(|language| language.accepts(word))
                && !self
                    .excluded
                    .iter()
                    .any(|list| list.binary_search_by(|known| (**known).cmp(word)).is_ok())
        };
        Some(words.iter().filter(|word| fits(word)).cloned().collect())
    }

    pub(super) fn restrict_number(&mut self, spec: &NumberSpec) {
        self.number = Some(match &self.number {
            Some(known) => known.intersect(spec),
            None => spec.clone(),
        });
    }
}

/// The lesser of two upper bounds.
pub(super) fn least(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}
