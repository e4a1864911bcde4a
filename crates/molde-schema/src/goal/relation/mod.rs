//! Rules between the members of an object: bounds and constants that are read from the instance.
//!
//! ```text
//! {"low": A, "high": B}      B = {"anyOf": [{"type": "number", "minimum": {"$data": "1/low"}}, {"type": "null"}]}
//!
//! link    high ──minimum──▶ low             low, high: the two ends
//! kinds   low:  absent, number, other       high: absent, number with the rule held or broken, other
//!
//! low      high                 is possible
//! absent   number, rule held    yes, without a bound
//! other    number, rule held    no: a target of another type breaks the rule
//! number   number, rule held    with low <= high
//! …
//! ```
//!
//! An *end* is a member that has such a rule or is the target of one; a *link* is a rule of one end
//! about another. A present end is of a *kind*: the type of its value, and for each rule of its own
//! that has a say about this type, whether it holds. Once rules are said to hold or not, the member
//! is an ordinary goal: a rule that holds says nothing, one that does not fails the value. So a
//! rule may stand below `anyOf`, `not`, `if` or anything else. What is left of the rules once every
//! end has a kind is which kinds go together, and an order of some numbers: each of them is a
//! value, a length or a count, and each link says which of two is the lesser.
//!
//! # The order decides exactly
//! Relations `x <= y` and `x < y` on ordered sets are closed under minimum and maximum. So if each
//! set is cut by the extremes of those it is related to, along chains too, every value that is
//! left is part of a solution: all below it at their least, all above it at their greatest. The
//! extremes are those of the texts that the style has ([`Numbers`](crate::number::Numbers)): digit
//! caps count. Ends that are less than or equal to each other both ways, and those that are equal
//! by `const`, are one number with all their demands.
//!
//! # While a text is read
//! The frame of an open object keeps a [`Record`] for each end: what is known of its value, until
//! all that it is linked to are written or left out. Which goal the value of the next end has
//! follows from the records: the union, over all ways to choose kinds for the ends to come, of its
//! goal within the range that the order leaves. So the order in which the ends are written does not
//! matter, a bound is projected back onto a target that comes first, and no choice leaves another
//! end without a value.

mod arrange;
mod instance;
mod measure;
mod order;
mod plan;
mod record;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ir::{DataKeyword, DataRule, NodeId, TypeSet};
use crate::number::{Decimal, NumberError};

use super::{GoalId, GoalLimit, NumberId, ObjectId};

pub(in crate::goal) use plan::EndPlan;
pub(crate) use record::{Record, Writing};

use arrange::{Arrangement, Status};
use instance::{MadeUp, Truth};
use measure::{Bounds, Measure, Range, Side};

/// What was found of members that are related, by what was asked.
#[derive(Debug, Clone, Default)]
pub(in crate::goal) struct Found {
    /// Nodes with their rules decided.
    decided: FxHashMap<(NodeId, Truth), NodeId>,
    made_up: FxHashMap<MadeUp, NodeId>,
    /// The extremes of goals.
    extremes: FxHashMap<ExtremeKey, Result<Option<Decimal>, GoalLimit>>,
    /// Those of the numbers of an automaton.
    numbers: FxHashMap<(NumberId, Range, Side), Result<Option<Decimal>, NumberError>>,
    /// The arrangements of a component of an object, by what is known of each end.
    arrangements: FxHashMap<ArrangementKey, Result<Arc<[Arrangement]>, GoalLimit>>,
}

type ExtremeKey = (GoalId, Measure, Range, Side);

/// An object, a component, and what is known of its ends.
type ArrangementKey = (ObjectId, usize, Box<[Status]>);

impl Found {
    /// Estimate of the heap bytes held, nodes and goals included.
    pub(in crate::goal) fn memory_usage(&self) -> usize {
        (self.decided.len() + self.made_up.len() + self.arrangements.len()) * 1024
            + (self.extremes.len() + self.numbers.len()) * 256
    }
}

/// The members of an object that are related to each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Relations {
    /// Ascending by member.
    pub(super) ends: Box<[End]>,
    pub(super) links: Box<[Link]>,
    /// Ends that are linked, directly or not, ascending: disjoint, and all ends together.
    pub(super) components: Box<[Box<[u32]>]>,
}

/// A member that has a rule about another, or is the target of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct End {
    /// Index of the declared name.
    pub(super) member: u32,
    /// The types that are told apart, disjoint, and all types together.
    pub(super) parts: Box<[TypeSet]>,
}

/// A rule of one end about another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) dependent: u32,
    pub(super) target: u32,
    pub(super) rule: DataRule,
}

/// Rules that one object can have: kinds are sets of them.
const MAX_LINKS: usize = 30;

/// Rules that one member can have.
const MAX_OWN_LINKS: usize = 6;

impl Relations {
    /// The relations of an object, from the rules of each of its members.
    ///
    /// # Errors
    /// `links` if there are too many.
    pub(super) fn new(
        rules: &[(u32, Vec<DataRule>)],
        index_of: impl Fn(&str) -> Option<u32>,
        pointer: &str,
    ) -> Result<Option<Self>, GoalLimit> {
        let mut members: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32, &DataRule)> = Vec::new();
        for (dependent, own) in rules {
            for rule in own {
                let Some(target) = index_of(&rule.target) else { continue };
                pairs.push((*dependent, target, rule));
                members.extend([*dependent, target]);
            }
        }
        if pairs.is_empty() {
            return Ok(None);
        }
        if pairs.len() > MAX_LINKS {
            return Err(GoalLimit {
                name: "links",
                limit: MAX_LINKS as u64,
                unit: "rules with `$data` between the members of one object",
                pointer: pointer.to_owned(),
            });
        }
        let busiest = rules.iter().map(|(_, own)| own.len()).max().unwrap_or(0);
        if busiest > MAX_OWN_LINKS {
            return Err(GoalLimit {
                name: "own_links",
                limit: MAX_OWN_LINKS as u64,
                unit: "rules with `$data` of one member",
                pointer: pointer.to_owned(),
            });
        }
        members.sort_unstable();
        members.dedup();
        let end_of = |member: u32| members.partition_point(|&known| known < member) as u32;
        let links: Box<[Link]> = pairs
            .iter()
            .map(|&(dependent, target, rule)| Link {
                dependent: end_of(dependent),
                target: end_of(target),
                rule: rule.clone(),
            })
            .collect();
        let ends: Box<[End]> = members
            .iter()
            .enumerate()
            .map(|(end, &member)| End { member, parts: parts(end as u32, &links) })
            .collect();
        let components = components(ends.len() as u32, &links);
        Ok(Some(Self { ends, links, components }))
    }

    /// Number of ends.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The end that a declared name is, if it is one.
    pub(crate) fn end_of(&self, member: u32) -> Option<u32> {
        self.ends.binary_search_by(|end| end.member.cmp(&member)).ok().map(|end| end as u32)
    }

    /// The kinds that an end can be of, whatever it must satisfy.
    pub(super) fn kinds(&self, end: u32) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for (part, &types) in self.ends[end as usize].parts.iter().enumerate() {
            let links: Vec<usize> = self.own_links(end, types).collect();
            for subset in (0..1u32 << links.len()).rev() {
                let held = links.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
                let holds = held.fold(0, |bits, (_, link)| bits | 1 << link);
                kinds.push(Kind { part: part as u32, holds });
            }
        }
        kinds
    }

    /// The links of an end's own rules that have a say about some types.
    pub(super) fn own_links(&self, end: u32, types: TypeSet) -> impl Iterator<Item = usize> {
        self.links.iter().enumerate().filter_map(move |(index, link)| {
            let concerns = link.dependent == end && link.rule.keyword.measured().has(types);
            concerns.then_some(index)
        })
    }
}

/// The types that an end's links tell apart.
fn parts(end: u32, links: &[Link]) -> Box<[TypeSet]> {
    let mut parts = Vec::new();
    let mut rest = TypeSet::ALL;
    for types in [TypeSet::NUMBER, TypeSet::STRING, TypeSet::ARRAY, TypeSet::OBJECT] {
        let is_bound = |link: &&Link| link.rule.keyword != DataKeyword::Const;
        let is_told_apart = links.iter().filter(is_bound).any(|link| {
            link.dependent == end && link.rule.keyword.measured() == types
                || link.target == end && types == TypeSet::NUMBER
        });
        if is_told_apart {
            parts.push(types);
            rest = rest.without(types);
        }
    }
    parts.push(rest);
    parts.into()
}

fn components(ends: u32, links: &[Link]) -> Box<[Box<[u32]>]> {
    let mut of: Vec<u32> = (0..ends).collect();
    loop {
        let before = of.clone();
        for link in links {
            let (one, two) = (of[link.dependent as usize], of[link.target as usize]);
            let least = one.min(two);
            for known in &mut of {
                if *known == one || *known == two {
                    *known = least;
                }
            }
        }
        if of == before {
            break;
        }
    }
    (0..ends)
        .map(|first| (0..ends).filter(|&end| of[end as usize] == first).collect::<Box<[u32]>>())
        .filter(|component| !component.is_empty())
        .collect()
}

/// What an end can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// Index of [`End::parts`].
    pub(super) part: u32,
    /// Which links hold, as bits: of the end's own that have a say about the part.
    pub(super) holds: u32,
}
