//! The members that an object still needs.

use std::sync::Arc;

use crate::options::Order;

use super::names::ExtraNames;
use super::{GoalId, GoalLimit, Goals, ObjectId, ObjectShape};

/// How far an object has been written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Progress {
    /// Under [`Order::Schema`], the first declared name that may still be written.
    pub(crate) next: u32,
    /// Under [`Order::Any`], the declared names that have been written, ascending.
    pub(crate) seen: Box<[u32]>,
    /// The other names that have been written, ascending.
    pub(crate) extras: Box<[Box<str>]>,
    /// Whether one more such name was written whose text is not recorded yet (see
    /// [`SchemaAutomaton::settle`](crate::SchemaAutomaton::settle)).
    pub(crate) pending: bool,
    /// Number of members, as far as it matters (see [`ObjectShape::saturate`]).
    pub(crate) count: u64,
}

impl Progress {
    /// Whether the declared name `index` may still be written at some point.
    pub(crate) fn is_open(&self, index: u32, order: Order) -> bool {
        match order {
            Order::Schema => index >= self.next,
            Order::Any => self.seen.binary_search(&index).is_err(),
        }
    }

    /// After the declared name `index`.
    pub(crate) fn with_declared(&self, index: u32, shape: &ObjectShape, order: Order) -> Self {
        let mut after = self.clone();
        after.count = shape.saturate(self.count + 1);
        match order {
            Order::Schema => after.next = index + 1,
            Order::Any => {
                let at = self.seen.partition_point(|&seen| seen < index);
                let mut seen = self.seen.to_vec();
                seen.insert(at, index);
                after.seen = seen.into();
            }
        }
        after
    }

    /// After a name that is not declared and whose text is recorded later.
    pub(crate) fn with_pending(&self, shape: &ObjectShape, order: Order) -> Self {
        let mut after = self.clone();
        after.pending = true;
        after.count = shape.saturate(self.count + 1);
        if order == Order::Schema {
            after.next = shape.names.len() as u32;
        }
        after
    }

    /// With the text of the name that was not recorded.
    pub(crate) fn recorded(&self, name: &str) -> Self {
        let mut after = self.clone();
        after.pending = false;
        let at = self.extras.partition_point(|extra| **extra < *name);
        let mut extras = self.extras.to_vec();
        extras.insert(at, name.into());
        after.extras = extras.into();
        after
    }
}

/// A member that an object may be filled up with; declared names before others where both cost
/// the same.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Candidate {
    Declared(u32),
    Extra(Member),
}

/// A member to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) name: Box<str>,
    pub(crate) goal: GoalId,
}

impl Member {
    /// Bytes of the key, quotes included.
    pub(crate) fn key_bytes(&self) -> u64 {
        crate::text::quoted(&self.name).len() as u64
    }
}

impl Goals {
    /// The members with which an object can be finished, in the order to write them; `None` if it
    /// cannot. As few members as possible, and among optional ones those with the shortest text.
    ///
    /// `bytes` gives the shortest text of a goal, `None` if it has none.
    pub(crate) fn plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        mut bytes: impl FnMut(GoalId) -> Option<u64>,
        extra: Option<&ExtraNames>,
    ) -> Option<Vec<Member>> {
        let order = self.options.order;
        let shape = Arc::clone(self.object(id));
        let mut required = Vec::new();
        let mut optional = Vec::new();
        for index in 0..shape.names.len() as u32 {
            if !progress.is_open(index, order) {
                continue;
            }
            let goal = shape.goals[index as usize];
            match bytes(goal) {
                Some(_) if shape.is_required[index as usize] => required.push(index),
                Some(cost) => {
                    let key = crate::text::quoted(&shape.names[index as usize]).len() as u64;
                    optional.push((cost + key, index));
                }
                None if shape.is_required[index as usize] => return None,
                None => {}
            }
        }
        let count = progress.count + required.len() as u64;
        if shape.max_properties.is_some_and(|max| count > max.max(progress.count)) {
            return None;
        }
        if shape.max_properties.is_some_and(|max| max < shape.min_properties) {
            return None;
        }
        let missing = shape.min_properties.saturating_sub(count) as usize;
        // Cheapest first, declared and other names alike: so every member costs less than the
        // object it is in, which is what ends the writing of recursive values.
        let mut candidates: Vec<(u64, Candidate)> = Vec::new();
        if missing > 0 {
            candidates.extend(optional.into_iter().map(|(cost, i)| (cost, Candidate::Declared(i))));
            if let Some(extra) = extra {
                // A name whose text is not recorded may be any of them: one more, and the longest.
                let unknown = usize::from(progress.pending);
                let fresh =
                    extra.fresh(missing + unknown, None, |name| is_taken(name, &shape, progress));
                for (name, class) in fresh.into_iter().skip(unknown) {
                    let Ok(name) = String::from_utf8(name) else { continue };
                    let goal = extra.classes[class].goal;
                    let Some(value) = bytes(goal) else { continue };
                    let member = Member { name: name.into_boxed_str(), goal };
                    candidates.push((value + member.key_bytes(), Candidate::Extra(member)));
                }
            }
        }
        candidates.sort();
        candidates.truncate(missing);
        if candidates.len() < missing {
            return None;
        }
        let mut declared: Vec<u32> = required;
        let mut extras = Vec::new();
        for (_, candidate) in candidates {
            match candidate {
                Candidate::Declared(index) => declared.push(index),
                Candidate::Extra(member) => extras.push(member),
            }
        }
        declared.sort_unstable();
        let mut members: Vec<Member> = declared
            .into_iter()
            .map(|index| Member {
                name: shape.names[index as usize].clone(),
                goal: shape.goals[index as usize],
            })
            .collect();
        members.extend(extras);
        Some(members)
    }

    /// [`plan`](Self::plan) with what is known for certain, once every goal can be solved.
    pub(crate) fn solved_plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        if !shape.is_bounded() {
            // Only what is required is missing, and whether that has a value was decided when the
            // object itself was solved.
            return Ok(Some(required_members(&shape, progress, self.options.order)));
        }
        let costs = self.member_costs(id)?;
        let extra =
            if shape.min_properties > progress.count { Some(self.extra_names(id)?) } else { None };
        let mut lookup: rustc_hash::FxHashMap<GoalId, Option<u64>> =
            shape.goals.iter().copied().zip(costs.iter().copied()).collect();
        for class in extra.iter().flat_map(|extra| &extra.classes) {
            lookup.insert(class.goal, Some(class.value_bytes));
        }
        Ok(self.plan(id, progress, |goal| lookup.get(&goal).copied().flatten(), extra.as_deref()))
    }

    /// The shortest values of an object's declared members; `None` for a member that can have none,
    /// and whose name is therefore never written.
    pub(crate) fn member_costs(&mut self, id: ObjectId) -> Result<Arc<[Option<u64>]>, GoalLimit> {
        if let Some(known) = &self.member_costs[id.0 as usize] {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::clone(self.object(id));
        let mut costs = Vec::with_capacity(shape.goals.len());
        for (&goal, &required) in shape.goals.iter().zip(&shape.is_required) {
            match self.shortest(goal) {
                Err(limit) if required => return Err(limit),
                // An optional member that is beyond a limit is never offered; the object is not
                // lost with it.
                Err(_) => costs.push(None),
                Ok(cost) => costs.push(cost),
            }
        }
        let costs: Arc<[Option<u64>]> = costs.into();
        self.member_costs[id.0 as usize] = Some(Arc::clone(&costs));
        Ok(costs)
    }
}

/// The required members that have not been written. O(their number) under [`Order::Schema`].
fn required_members(shape: &ObjectShape, progress: &Progress, order: Order) -> Vec<Member> {
    let end = shape.names.len() as u32;
    let first = if order == Order::Schema { progress.next } else { 0 };
    let mut members = Vec::new();
    let mut index = shape.next_required[first as usize];
    while index < end {
        if progress.is_open(index, order) {
            let name = shape.names[index as usize].clone();
            members.push(Member { name, goal: shape.goals[index as usize] });
        }
        index = shape.next_required[index as usize + 1];
    }
    members
}

/// Whether a name is declared or has been written already.
pub(crate) fn is_taken(name: &[u8], shape: &ObjectShape, progress: &Progress) -> bool {
    shape.sorted.binary_search_by(|&index| shape.names[index as usize].as_bytes().cmp(name)).is_ok()
        || progress.extras.binary_search_by(|extra| extra.as_bytes().cmp(name)).is_ok()
}
