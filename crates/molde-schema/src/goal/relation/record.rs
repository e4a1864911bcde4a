//! What an open object knows of the ends that it has written.

use std::sync::Arc;

use crate::document::{Document, Value};
use crate::goal::plan::Progress;
use crate::goal::{GoalId, GoalLimit, Goals, ObjectId};
use crate::ir::{Demand, NodeId, TypeSet};
use crate::number::{Decimal, NumberLimits};
use crate::options::Limits;

use super::arrange::Status;
use super::{DataKeyword, Kind, Link, Relations};

/// What is known of an end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Record {
    /// It has not been written; whether it still can be is for the object to know.
    Open,
    /// Its value is being written: what it must satisfy apart from its links.
    Writing(GoalId),
    /// It is written, and some end that it is linked to is not.
    Known {
        /// The kinds that it can be of.
        kinds: Box<[Kind]>,
        /// What is compared of it.
        measure: Option<Decimal>,
        /// The value itself, where it is compared as a whole.
        value: Option<NodeId>,
    },
    /// It no longer matters.
    Done,
}

/// The end that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Writing {
    pub(crate) end: u32,
    /// What the member must satisfy apart from its links.
    pub(crate) goal: GoalId,
    /// Where its value begins in the text that is remembered.
    pub(crate) start: u32,
}

impl Relations {
    /// Whether the value of an end must be remembered, given which ends are written or can no
    /// longer be.
    pub(super) fn matters(&self, end: u32, is_decided: &impl Fn(u32) -> bool) -> bool {
        self.links.iter().any(|link| {
            link.dependent == end && !is_decided(link.target)
                || link.target == end && !is_decided(link.dependent)
        })
    }

    /// Whether the value of an end must be read, though it need not be remembered: an end that came
    /// first has a rule about it, and another about one that is not decided.
    pub(super) fn tells(&self, end: u32, is_decided: &impl Fn(u32) -> bool) -> bool {
        self.links.iter().filter(|link| link.target == end).any(|link| {
            self.links
                .iter()
                .any(|other| other.dependent == link.dependent && !is_decided(other.target))
        })
    }

    /// Whether an end is compared as a whole with one that is not decided.
    fn is_compared(&self, end: u32, is_decided: &impl Fn(u32) -> bool) -> bool {
        self.links.iter().filter(|link| link.rule.keyword == DataKeyword::Const).any(|link| {
            link.dependent == end && !is_decided(link.target)
                || link.target == end && !is_decided(link.dependent)
        })
    }
}

/// A value that has been read.
struct ReadValue {
    types: TypeSet,
    measure: Decimal,
    /// Where it is needed.
    value: Option<NodeId>,
}

impl Goals {
    /// The progress of an object after the value of the end that was being written, from the text
    /// of the value.
    ///
    /// # Errors
    /// Those of comparing with a value, and `max_decimal_order` for numbers beyond all bounds.
    pub(crate) fn recorded(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        text: &[u8],
    ) -> Result<Progress, GoalLimit> {
        let mut after = progress.clone();
        let shape = Arc::clone(self.object(id));
        let (Some(relations), Some(writing)) = (shape.relations.clone(), after.writing.take())
        else {
            return Ok(after);
        };
        let statuses = self.statuses(&relations, progress, false).unwrap_or_default();
        let is_decided = |end: u32| {
            statuses
                .get(end as usize)
                .is_some_and(|status| end == writing.end || status.is_decided())
        };
        let own = self.read_value(&relations, writing, text, &is_decided)?;
        let part = relations.ends[writing.end as usize]
            .parts
            .iter()
            .position(|part| part.has(own.types))
            .unwrap_or(0) as u32;
        // Of its own rules about ends to come, each may hold or not: which does the value allow?
        let mut kinds: Vec<Kind> = Vec::new();
        let links: Vec<usize> = relations.own_links(writing.end, own.types).collect();
        let has_open = links.iter().any(|&link| !is_decided(relations.links[link].target));
        'kinds: for kind in relations.kinds(writing.end) {
            if kind.part != part {
                continue;
            }
            for &link in &links {
                let known = &relations.links[link];
                let truth = truth(known, &own, &relations, statuses.get(known.target as usize));
                if truth.is_some_and(|truth| truth != (kind.holds >> link & 1 == 1)) {
                    continue 'kinds;
                }
            }
            if let Some(value) = own.value.filter(|_| has_open) {
                let goal = self.kind_goal(&relations, writing.end, writing.goal, kind);
                let goal = self.extended(goal, [Demand::holds(value)]);
                if self.shortest(goal)?.is_none() {
                    continue;
                }
            }
            kinds.push(kind);
        }
        let mut records: Vec<Record> = (0..relations.ends.len())
            .map(|end| progress.records.get(end).cloned().unwrap_or(Record::Open))
            .collect();
        // A dependent that came first: what its rule about this value comes to is known now.
        for (index, link) in relations.links.iter().enumerate() {
            if link.target != writing.end {
                continue;
            }
            if let Record::Known { kinds, measure, value } = &mut records[link.dependent as usize] {
                let parts = &relations.ends[link.dependent as usize].parts;
                let left = kinds.iter().copied().filter(|kind| {
                    let types = parts[kind.part as usize];
                    let found = (types, measure.as_ref(), *value);
                    let target =
                        (part_types(&relations, writing.end, part), Some(&own.measure), own.value);
                    compared(link, found, target)
                        .is_none_or(|truth| truth == (kind.holds >> index & 1 == 1))
                });
                *kinds = left.collect::<Vec<Kind>>().into();
            }
        }
        let is_measured = part_types(&relations, writing.end, part).has(TypeSet::NULL);
        let is_compared = relations.is_compared(writing.end, &is_decided);
        records[writing.end as usize] = Record::Known {
            kinds: kinds.into(),
            measure: (!is_measured).then_some(own.measure),
            value: own.value.filter(|_| is_compared),
        };
        for end in 0..relations.ends.len() as u32 {
            let is_known = matches!(records[end as usize], Record::Known { .. });
            if is_known && !relations.matters(end, &is_decided) {
                records[end as usize] = Record::Done;
            }
        }
        after.records = records.into();
        Ok(after)
    }

    fn read_value(
        &mut self,
        relations: &Relations,
        writing: Writing,
        text: &[u8],
        is_decided: &impl Fn(u32) -> bool,
    ) -> Result<ReadValue, GoalLimit> {
        let limit = |name, unit| GoalLimit { name, limit: 0, unit, pointer: String::new() };
        let text = std::str::from_utf8(text).map_err(|_| limit("values", "texts"))?;
        let document = Document::parse(text, &Limits::default())
            .map_err(|_| limit("schema_depth", "bytes or levels of a value that is compared"))?;
        let (types, measure) = match document.get(document.root()) {
            Value::Null => (TypeSet::NULL, count(0)),
            Value::Boolean(true) => (TypeSet::TRUE, count(0)),
            Value::Boolean(false) => (TypeSet::FALSE, count(0)),
            Value::Number(text) => {
                let number = Decimal::parse(text, &NumberLimits::default())
                    .map_err(|_| limit("max_decimal_order", "digits or orders of magnitude"))?;
                (TypeSet::NUMBER, number)
            }
            Value::String(text) => (TypeSet::STRING, count(text.chars().count())),
            Value::Array(items) => (TypeSet::ARRAY, count(items.len())),
            Value::Object(members) => (TypeSet::OBJECT, count(members.len())),
        };
        let has_open = relations
            .own_links(writing.end, types)
            .any(|link| !is_decided(relations.links[link].target));
        let is_compared = relations.links.iter().any(|link| {
            link.rule.keyword == DataKeyword::Const
                && (link.dependent == writing.end || link.target == writing.end)
        });
        let value =
            if has_open || is_compared { Some(self.constant(text.as_bytes())?) } else { None };
        Ok(ReadValue { types, measure, value })
    }
}

fn part_types(relations: &Relations, end: u32, part: u32) -> TypeSet {
    relations.ends[end as usize].parts[part as usize]
}

/// Whether a rule of a value that has been read holds; `None` if its target is yet to come, or it
/// has no say.
fn truth(
    link: &Link,
    own: &ReadValue,
    relations: &Relations,
    target: Option<&Status>,
) -> Option<bool> {
    match target? {
        Status::Absent => Some(true),
        Status::Known { kinds, measure, value } => {
            let part = kinds.first()?.part;
            let types = part_types(relations, link.target, part);
            let own = (own.types, Some(&own.measure), own.value);
            compared(link, own, (types, measure.as_ref(), *value))
        }
        Status::Open | Status::Writing(_) | Status::Done => None,
    }
}

type Compared<'a> = (TypeSet, Option<&'a Decimal>, Option<NodeId>);

/// Whether a rule holds between two values; `None` if it has no say about the first.
fn compared(link: &Link, dependent: Compared<'_>, target: Compared<'_>) -> Option<bool> {
    let keyword = link.rule.keyword;
    if !keyword.measured().has(dependent.0) {
        return None;
    }
    if keyword == DataKeyword::Const {
        return Some(dependent.2? == target.2?);
    }
    if target.0 != TypeSet::NUMBER {
        return Some(false);
    }
    let (own, target) = (dependent.1?, target.1?);
    let ordering = if keyword.is_lower_bound() { target.cmp(own) } else { own.cmp(target) };
    Some(ordering.is_lt() || ordering.is_eq() && !keyword.is_exclusive())
}

fn count(count: usize) -> Decimal {
    Decimal::from(count as u64)
}
