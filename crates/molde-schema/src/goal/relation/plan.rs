//! Which ends an object that is being written still needs.

use std::sync::Arc;

use crate::goal::plan::Progress;
use crate::goal::rule::Counts;
use crate::goal::{ChildOption, GoalId, GoalLimit, Goals, ObjectId, ObjectShape};
use crate::ir::Demand;

use super::arrange::{Arrangement, Choice};
use super::instance::MadeUp;
use super::{Record, Relations, Writing};

/// Ends that are written, with the option each is written with, and ends that are left out.
#[derive(Debug, Clone, Default)]
pub(in crate::goal) struct EndPlan {
    /// By index of the declared name. The goals are those that the order leaves before any of them
    /// is written.
    pub(in crate::goal) present: Vec<(u32, ChildOption)>,
    pub(in crate::goal) absent: Vec<u32>,
    /// Bytes of the values and keys.
    pub(in crate::goal) cost: u64,
}

/// Plans for the ends of one object that are looked at.
const MAX_PLANS: usize = 1024;

impl Goals {
    /// The ways to write the ends that are left, cheapest first: all of them, or, where `is_free`
    /// says that the other members do not care, the cheapest one. Empty if there is none. The plan of
    /// one component may be fixed.
    pub(in crate::goal) fn end_plans(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        is_free: bool,
        fixed: Option<&(usize, EndPlan)>,
    ) -> Result<Vec<EndPlan>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let Some(relations) = shape.relations.clone() else { return Ok(vec![EndPlan::default()]) };
        let Some(statuses) = self.statuses(&relations, progress, false) else {
            return Ok(Vec::new());
        };
        let mut plans = vec![EndPlan::default()];
        for component in 0..relations.components.len() {
            if let Some((_, plan)) = fixed.filter(|(known, _)| *known == component) {
                plans = plans.iter().map(|known| known.and(plan)).collect();
                continue;
            }
            let found = self.arrangements(id, &relations, component, &statuses)?;
            let mut own: Vec<EndPlan> = Vec::with_capacity(found.len());
            for arrangement in found.iter() {
                own.push(self.end_plan(id, &relations, progress, arrangement)?);
            }
            own.sort_by_key(|plan| plan.cost);
            if is_free {
                own.truncate(1);
            }
            // Of plans with the same members that count for the same, the cheapest will do.
            let mut kept: Vec<EndPlan> = Vec::new();
            for plan in own {
                if !kept.iter().any(|known| known.counts_as(&plan)) {
                    kept.push(plan);
                }
            }
            let mut joined = Vec::with_capacity(plans.len() * kept.len());
            for plan in &plans {
                joined.extend(kept.iter().map(|more| plan.and(more)));
            }
            plans = joined;
            if plans.len() > MAX_PLANS {
                return Err(GoalLimit {
                    name: "end_plans",
                    limit: MAX_PLANS as u64,
                    unit: "ways to choose among members that are related by `$data`",
                    pointer: String::new(),
                });
            }
        }
        plans.sort_by_key(|plan| plan.cost);
        Ok(plans)
    }

    fn end_plan(
        &mut self,
        id: ObjectId,
        relations: &Relations,
        progress: &Progress,
        arrangement: &Arrangement,
    ) -> Result<EndPlan, GoalLimit> {
        let mut plan = EndPlan::default();
        for (end, choice) in &arrangement.choices {
            let member = relations.ends[*end as usize].member;
            if !progress.is_open(member, self.options.order) {
                continue;
            }
            match choice {
                Choice::Absent => plan.absent.push(member),
                Choice::Written { .. } => {}
                Choice::Present { option, goal, .. } => {
                    let bytes = self.shortest(*goal)?.unwrap_or(0);
                    let key = self.object(id).names[member as usize].len() as u64 + 6;
                    plan.cost = plan.cost.saturating_add(bytes).saturating_add(key);
                    plan.present.push((member, ChildOption { goal: *goal, counts: option.counts }));
                }
            }
        }
        Ok(plan)
    }
}

impl Goals {
    /// The ways to write the declared name `member` next in an object with relations: the goal of
    /// its value, and the progress while that is written. `start` is where the value begins in the
    /// text that is remembered.
    ///
    /// That the order of members allows the name is for the caller to see.
    pub(crate) fn related_members(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        member: u32,
        start: u32,
    ) -> Result<Vec<(GoalId, Progress)>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let order = self.options.order;
        let end = shape.relations.as_ref().and_then(|relations| relations.end_of(member));
        let rule = shape.members[member as usize];
        let before = self.condition_at(&shape, progress, Some(member));
        let mut members = Vec::new();
        for option in self.member_options(rule, before)?.iter() {
            let decided = (rule, option.counts);
            let left = self.condition_after(&shape, progress, before, Some(member), decided);
            let after = progress.with_declared(member, left, &shape, order);
            let Some(end) = end else {
                if self.shortest(option.goal)?.is_some() && self.can_finish(id, &after)? {
                    members.push((option.goal, after));
                }
                continue;
            };
            let writing = Writing { end, goal: option.goal, start };
            if let Some(goal) = self.end_goal(id, &after, writing)? {
                members.push((goal, self.while_writing(&shape, after, writing)));
            }
        }
        Ok(members)
    }

    /// What the value of an end must satisfy if its key comes next: the union of what the ways to
    /// choose kinds for the others leave to it. `None` if it has no value. `after` is the progress
    /// with its key.
    fn end_goal(
        &mut self,
        id: ObjectId,
        after: &Progress,
        writing: Writing,
    ) -> Result<Option<GoalId>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let Some(relations) = shape.relations.clone() else { return Ok(None) };
        let end = writing.end;
        let after = &begun(&relations, after, writing);
        let Some(statuses) = self.statuses(&relations, after, false) else { return Ok(None) };
        let component = relations.components.iter().position(|ends| ends.contains(&end));
        let Some(component) = component else { return Ok(None) };
        let found = self.arrangements(id, &relations, component, &statuses)?;
        let mut goals: Vec<GoalId> = Vec::new();
        for arrangement in found.iter() {
            let choice = arrangement.choices.iter().find(|(known, _)| *known == end);
            let Some((_, Choice::Present { goal, .. })) = choice else { continue };
            if goals.contains(goal) {
                continue;
            }
            let plan = self.end_plan(id, &relations, after, arrangement)?;
            if after.count <= shape.max_properties.unwrap_or(u64::MAX)
                && self.can_finish_with(id, after, component, plan)?
            {
                goals.push(*goal);
            }
        }
        Ok(match goals[..] {
            [] => None,
            [only] => Some(only),
            _ => {
                let choice = self.made_up(MadeUp::Choice(goals.into()));
                Some(self.goal([Demand::holds(choice)]))
            }
        })
    }

    /// The progress while the value of an end is written: to be remembered only if another end
    /// asks for it.
    fn while_writing(&self, shape: &ObjectShape, progress: Progress, writing: Writing) -> Progress {
        let Some(relations) = &shape.relations else { return progress };
        let mut after = begun(relations, &progress, writing);
        let Some(statuses) = self.statuses(relations, &after, false) else { return after };
        let is_decided = |end: u32| end == writing.end || statuses[end as usize].is_decided();
        if relations.matters(writing.end, &is_decided) || relations.tells(writing.end, &is_decided)
        {
            return after;
        }
        after.writing = None;
        after.records[writing.end as usize] = Record::Done;
        for (end, record) in after.records.iter_mut().enumerate() {
            if matches!(record, Record::Known { .. }) && !relations.matters(end as u32, &is_decided)
            {
                *record = Record::Done;
            }
        }
        if after.records.iter().all(|record| *record == Record::Open) {
            after.records = Box::default();
        }
        after
    }

    /// Whether an object with relations can be finished within its bounds on the number of members.
    fn can_finish(&mut self, id: ObjectId, progress: &Progress) -> Result<bool, GoalLimit> {
        if self.object(id).max_properties.is_some_and(|max| progress.count > max) {
            return Ok(false);
        }
        Ok(self.solved_plan(id, progress)?.is_some())
    }

    /// Whether what may follow the value that is being written is the same for all of them, until
    /// another end is written.
    pub(crate) fn ends_alike(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<bool, GoalLimit> {
        let found = self.arrangements_of_writing(id, progress)?;
        let mut goals = found.iter().flat_map(|(end, arrangement)| {
            arrangement.choices.iter().filter_map(move |(known, choice)| match choice {
                Choice::Present { goal, .. } if known == end => Some(*goal),
                _ => None,
            })
        });
        let first = goals.next();
        Ok(goals.all(|goal| Some(goal) == first))
    }

    /// Whether an object may end after the value that is being written, given that what may follow
    /// is the same for all values. True where none is.
    pub(crate) fn value_may_be_last(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<bool, GoalLimit> {
        if progress.writing.is_none() {
            return Ok(true);
        }
        let found = self.arrangements_of_writing(id, progress)?;
        Ok(found.iter().any(|(end, arrangement)| {
            arrangement
                .choices
                .iter()
                .all(|(known, choice)| known == end || !matches!(choice, Choice::Present { .. }))
        }))
    }

    /// The arrangements of the component of the end that is being written.
    fn arrangements_of_writing(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<Vec<(u32, Arrangement)>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let (Some(relations), Some(writing)) = (shape.relations.clone(), progress.writing) else {
            return Ok(Vec::new());
        };
        let Some(statuses) = self.statuses(&relations, progress, false) else {
            return Ok(Vec::new());
        };
        let component = relations.components.iter().position(|ends| ends.contains(&writing.end));
        let Some(component) = component else { return Ok(Vec::new()) };
        let found = self.arrangements(id, &relations, component, &statuses)?;
        Ok(found.iter().map(|arrangement| (writing.end, arrangement.clone())).collect())
    }

    /// Whether the rules between members allow an object to end: no further member comes.
    pub(crate) fn relations_may_end(&self, shape: &ObjectShape, progress: &Progress) -> bool {
        let Some(relations) = &shape.relations else { return true };
        self.statuses(relations, progress, true).is_some()
    }
}

/// The progress with the value of an end begun.
fn begun(relations: &Relations, progress: &Progress, writing: Writing) -> Progress {
    let mut after = progress.clone();
    let mut records = after.records.to_vec();
    records.resize(relations.len(), Record::Open);
    records[writing.end as usize] = Record::Writing(writing.goal);
    after.records = records.into();
    after.writing = Some(writing);
    after
}

impl EndPlan {
    fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.present.extend_from_slice(&other.present);
        both.absent.extend_from_slice(&other.absent);
        both.cost = both.cost.saturating_add(other.cost);
        both
    }

    fn counts_as(&self, other: &Self) -> bool {
        let what = |plan: &Self| -> Vec<(u32, Counts)> {
            plan.present.iter().map(|(member, option)| (*member, option.counts)).collect()
        };
        what(self) == what(other)
    }
}
