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

/// A member to write.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let missing = shape.min_properties.saturating_sub(count) as usize;
        optional.sort_unstable();
        optional.truncate(missing);
        let mut declared: Vec<u32> = required;
        declared.extend(optional.iter().map(|&(_, index)| index));
        declared.sort_unstable();
        let mut members: Vec<Member> = declared
            .into_iter()
            .map(|index| Member {
                name: shape.names[index as usize].clone(),
                goal: shape.goals[index as usize],
            })
            .collect();
        let missing = missing - optional.len();
        if missing > 0 {
            let extra = extra?;
            // A name whose text is not recorded may be any of them: one more, and the longest.
            let unknown = usize::from(progress.pending);
            let fresh =
                extra.fresh(missing + unknown, None, |name| is_taken(name, &shape, progress));
            if fresh.len() < missing + unknown {
                return None;
            }
            members.extend(fresh.into_iter().skip(unknown).filter_map(|(name, class)| {
                let name = String::from_utf8(name).ok()?.into_boxed_str();
                Some(Member { name, goal: extra.classes[class].goal })
            }));
        }
        Some(members)
    }

    /// [`plan`](Self::plan) with what is known for certain, once every goal can be solved.
    pub(crate) fn solved_plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let costs = self.member_costs(id)?;
        let extra =
            if shape.min_properties > progress.count { Some(self.extra_names(id)?) } else { None };
        let lookup: rustc_hash::FxHashMap<GoalId, Option<u64>> =
            shape.goals.iter().copied().zip(costs.iter().copied()).collect();
        Ok(self.plan(id, progress, |goal| lookup.get(&goal).copied().flatten(), extra.as_deref()))
    }

    /// The shortest values of an object's declared members; `None` for a member that can have none,
    /// and whose name is therefore never written.
    pub(crate) fn member_costs(&mut self, id: ObjectId) -> Result<Arc<[Option<u64>]>, GoalLimit> {
        if let Some(known) = &self.member_costs[id.0 as usize] {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::clone(self.object(id));
        let costs = shape.goals.iter().map(|&goal| self.shortest(goal));
        let costs: Arc<[Option<u64>]> = costs.collect::<Result<Vec<_>, _>>()?.into();
        self.member_costs[id.0 as usize] = Some(Arc::clone(&costs));
        Ok(costs)
    }
}

/// Whether a name is declared or has been written already.
pub(crate) fn is_taken(name: &[u8], shape: &ObjectShape, progress: &Progress) -> bool {
    shape.sorted.binary_search_by(|&index| shape.names[index as usize].as_bytes().cmp(name)).is_ok()
        || progress.extras.binary_search_by(|extra| extra.as_bytes().cmp(name)).is_ok()
}
