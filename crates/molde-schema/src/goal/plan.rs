//! The members that an object still needs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::options::Order;

use super::condition::Literal;
use super::formula::FormulaId;
use super::items::Bytes;
use super::meet::Choice;
use super::names::{ExtraNames, needs_extra_names};
use super::relation::{EndPlan, Record, Writing};
use super::rule::{Counts, RuleId};
use super::{ChildOption, GoalId, GoalLimit, Goals, ObjectId, ObjectShape};

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
    /// What is left to be met.
    pub(crate) condition: FormulaId,
    /// What is known of each end of the object's relations; empty while nothing is.
    pub(crate) records: Box<[Record]>,
    /// The end whose value is being written.
    pub(crate) writing: Option<Writing>,
}

impl Progress {
    /// Of an object without members.
    pub(crate) fn start(shape: &ObjectShape) -> Self {
        Self { condition: shape.condition, ..Self::default() }
    }

    /// Whether the declared name `index` may still be written at some point.
    pub(crate) fn is_open(&self, index: u32, order: Order) -> bool {
        match order {
            Order::Schema => index >= self.next,
            Order::Any => self.seen.binary_search(&index).is_err(),
        }
    }

    /// After the declared name `index`, with what is left to be met then.
    pub(crate) fn with_declared(
        &self,
        index: u32,
        condition: FormulaId,
        shape: &ObjectShape,
        order: Order,
    ) -> Self {
        let mut after = self.clone();
        after.count = shape.saturate(self.count + 1);
        after.condition = condition;
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
    pub(crate) fn with_pending(
        &self,
        condition: FormulaId,
        shape: &ObjectShape,
        order: Order,
    ) -> Self {
        let mut after = self.clone();
        after.pending = true;
        after.count = shape.saturate(self.count + 1);
        after.condition = condition;
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
    Declared(u32, GoalId),
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

/// What may be written in an object, with what it costs.
pub(super) struct Ways {
    /// For each declared name that is open, the ways for its member to count.
    pub(super) declared: Vec<Vec<(ChildOption, u64)>>,
    /// The same for each class of other names.
    pub(super) others: Vec<Vec<(ChildOption, u64)>>,
    /// The rule of each class of other names.
    pub(super) rules: Vec<RuleId>,
}

/// The shortest value of each declared member, or why that is not known.
pub(super) type MemberCosts = Arc<[Result<Option<u64>, GoalLimit>]>;

impl Goals {
    /// The members with which an object can be finished, in the order to write them; `None` if it
    /// cannot. As few members as possible, and among optional ones those with the shortest text.
    ///
    /// `bytes` gives the shortest text of a goal, `None` if it has none; `is_final` says that it
    /// always will give the same.
    pub(super) fn plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        bytes: Bytes<'_>,
        extra: Option<&ExtraNames>,
        is_final: bool,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        self.plan_given(id, progress, bytes, extra, None, is_final)
    }

    /// [`plan`](Self::plan), where which ends of one component of the object's relations are
    /// written may be fixed.
    fn plan_given(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        bytes: Bytes<'_>,
        extra: Option<&ExtraNames>,
        fixed: Option<&(usize, EndPlan)>,
        is_final: bool,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let order = self.options.order;
        let priced = |options: &[ChildOption]| -> Vec<(ChildOption, u64)> {
            options
                .iter()
                .filter_map(|option| bytes(option.goal).map(|cost| (*option, cost)))
                .collect()
        };
        let mut ways = Ways { declared: Vec::new(), others: Vec::new(), rules: Vec::new() };
        for (index, &rule) in shape.members.iter().enumerate() {
            // Members that are related to others are planned together, below.
            let is_open = progress.is_open(index as u32, order) && !shape.is_end(index as u32);
            let options = if is_open { priced(&self.plan_options(rule)?) } else { Vec::new() };
            ways.declared.push(options);
        }
        for class in extra.iter().flat_map(|extra| &extra.classes) {
            ways.others.push(priced(&self.plan_options(class.rule)?));
            ways.rules.push(class.rule);
        }
        let is_missing = |(index, ways): (usize, &Vec<_>)| {
            shape.is_required[index]
                && progress.is_open(index as u32, order)
                && !shape.is_end(index as u32)
                && ways.is_empty()
        };
        if ways.declared.iter().enumerate().any(is_missing) {
            return Ok(None);
        }
        let is_free = shape.condition == FormulaId::MET
            && shape.max_properties.is_none()
            && shape.min_properties == 0;
        let mut best: Option<(u64, Vec<Member>)> = None;
        for ends in self.end_plans(id, progress, is_free, fixed)? {
            if best.as_ref().is_none_or(|(cost, _)| ends.cost < *cost)
                && let Some((cost, members)) =
                    self.meet(&shape, progress, &ways, extra, ends, is_final.then_some(id))?
                && best.as_ref().is_none_or(|(known, _)| cost < *known)
            {
                best = Some((cost, members));
            }
        }
        Ok(best.map(|(_, members)| members))
    }

    /// What is left to be met where a member is next: the declared name `index`, or another one.
    /// Under [`Order::Schema`] the names before it have been passed over.
    pub(crate) fn condition_at(
        &mut self,
        shape: &ObjectShape,
        progress: &Progress,
        index: Option<u32>,
    ) -> FormulaId {
        if self.options.order == Order::Any {
            return progress.condition;
        }
        let end = index.unwrap_or(shape.names.len() as u32);
        let Self { formulas, literals, .. } = self;
        formulas.assign(progress.condition, &mut |literal| {
            let reach = shape.reach(literal)?;
            let is_over = !reach.others && reach.names.iter().all(|&name| name < end);
            let holds = !matches!(literals[literal.0 as usize], Literal::Some(_));
            is_over.then_some(holds)
        })
    }

    /// What is left to be met after a member: the declared name `index`, or another one.
    /// `condition` is what was left [before](Self::condition_at).
    pub(crate) fn condition_after(
        &mut self,
        shape: &ObjectShape,
        progress: &Progress,
        condition: FormulaId,
        index: Option<u32>,
        (rule, counts): (RuleId, Counts),
    ) -> FormulaId {
        let order = self.options.order;
        let end = index.map_or(shape.names.len() as u32, |index| index + 1);
        let is_gone = |name: u32| match order {
            Order::Schema => name < end,
            Order::Any => index == Some(name) || progress.seen.binary_search(&name).is_ok(),
        };
        let Self { formulas, literals, rules, .. } = self;
        let rule = &rules[rule.position()];
        formulas.assign(condition, &mut |literal| {
            let reach = shape.reach(literal)?;
            let is_over = || !reach.others && reach.names.iter().all(|&name| is_gone(name));
            let counted = || {
                let bit = rule.literals.binary_search(&literal).ok()?;
                Some(counts >> bit & 1 == 1)
            };
            match &literals[literal.0 as usize] {
                Literal::No(_) if index.is_some_and(|index| reach.names.contains(&index)) => {
                    Some(false)
                }
                Literal::No(_) => None,
                Literal::Some(_) => {
                    if rule.present.binary_search(&literal).is_ok() || counted() == Some(true) {
                        Some(true)
                    } else {
                        is_over().then_some(false)
                    }
                }
                Literal::Every(..) | Literal::EveryOf(_) => {
                    if counted() == Some(false) {
                        Some(false)
                    } else {
                        is_over().then_some(true)
                    }
                }
            }
        })
    }

    /// Whether what is left to be met is met by ending here.
    pub(crate) fn is_met_at_end(&mut self, condition: FormulaId) -> bool {
        let Self { formulas, literals, .. } = self;
        let after = formulas.assign(condition, &mut |literal| {
            Some(!matches!(literals[literal.0 as usize], Literal::Some(_)))
        });
        after == FormulaId::MET
    }

    /// Whether whatever meets one condition meets the other; `false` if that is not seen.
    pub(crate) fn implies(&self, given: FormulaId, then: FormulaId) -> bool {
        self.formulas.implies(given, then)
    }

    /// The number of literals left that a member with an undeclared name can meet.
    fn open_to_others(&self, shape: &ObjectShape, condition: FormulaId) -> usize {
        let literals = self.formulas.literals(condition).iter();
        literals.filter(|&&literal| shape.reach(literal).is_some_and(|reach| reach.others)).count()
    }

    /// [`plan`](Self::plan) with what is known for certain, once every goal can be solved.
    pub(crate) fn solved_plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<Option<Arc<[Member]>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        if progress.condition == FormulaId::LOST {
            return Ok(None);
        }
        if !shape.is_bounded()
            || progress.condition == FormulaId::MET
                && shape.max_properties.is_none()
                && shape.relations.is_none()
                && progress.count >= shape.min_properties
        {
            // Only what is required is missing, and whether that has a value was decided when the
            // object itself was solved.
            return Ok(Some(self.required_members(&shape, progress).into()));
        }
        let key = (id, progress.clone());
        if let Some(known) = self.plans.get(&key) {
            return Ok(known.clone());
        }
        let plan = self.find_plan(id, progress, None)?.map(Arc::from);
        self.plans.insert(key, plan.clone());
        Ok(plan)
    }

    /// Whether an object can be finished with these ends of one component of its relations.
    pub(super) fn can_finish_with(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        component: usize,
        plan: EndPlan,
    ) -> Result<bool, GoalLimit> {
        Ok(self.find_plan(id, progress, Some(&(component, plan)))?.is_some())
    }

    fn find_plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        fixed: Option<&(usize, EndPlan)>,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let mut lookup: FxHashMap<GoalId, Option<u64>> = FxHashMap::default();
        let mut beyond: Option<GoalLimit> = None;
        for (index, &rule) in shape.members.iter().enumerate() {
            if shape.is_end(index as u32) {
                continue;
            }
            for option in self.plan_options(rule)?.iter() {
                let cost = match self.shortest(option.goal) {
                    Err(limit) if shape.is_required[index] => return Err(limit),
                    // An optional member that is beyond a limit may turn out not to be needed.
                    Err(limit) => {
                        beyond.get_or_insert(limit);
                        None
                    }
                    Ok(cost) => cost,
                };
                lookup.insert(option.goal, cost);
            }
        }
        let others = self.open_to_others(&shape, progress.condition);
        let extra = if shape.min_properties > progress.count || others > 0 {
            Some(self.extra_names(id)?)
        } else {
            None
        };
        for class in extra.iter().flat_map(|extra| &extra.classes) {
            for option in self.plan_options(class.rule)?.iter() {
                lookup.insert(option.goal, self.shortest(option.goal)?);
            }
        }
        let bytes = |goal: GoalId| lookup.get(&goal).copied().flatten();
        let plan = self.plan_given(id, progress, &bytes, extra.as_deref(), fixed, true)?;
        match (plan, beyond) {
            (None, Some(limit)) => Err(limit),
            (plan, _) => Ok(plan),
        }
    }

    /// The shortest values of an object's declared members; `None` for a member that can have none,
    /// and whose name is therefore never written. For objects without conditions.
    pub(crate) fn member_costs(&mut self, id: ObjectId) -> Result<MemberCosts, GoalLimit> {
        if let Some(known) = &self.member_costs[id.0 as usize] {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::clone(self.object(id));
        let mut costs = Vec::with_capacity(shape.names.len());
        for (&rule, &required) in shape.members.iter().zip(&shape.is_required) {
            let goal = self.base_goal(rule);
            match self.shortest(goal) {
                Err(limit) if required => return Err(limit),
                // The object is not lost with an optional member that is beyond a limit.
                known => costs.push(known),
            }
        }
        let costs: MemberCosts = costs.into();
        self.member_costs[id.0 as usize] = Some(Arc::clone(&costs));
        Ok(costs)
    }

    /// The goals that decide whether and how an object can be finished.
    pub(super) fn member_goals(&mut self, id: ObjectId) -> Result<Vec<GoalId>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let mut needed = Vec::new();
        let others = needs_extra_names(&shape);
        if !others && shape.condition == FormulaId::MET {
            for (index, (&rule, &required)) in
                shape.members.iter().zip(&shape.is_required).enumerate()
            {
                if required && !shape.is_end(index as u32) {
                    needed.push(self.base_goal(rule));
                }
            }
            return Ok(needed);
        }
        let classes = if others { self.name_classes(id)? } else { Arc::default() };
        let classes = classes.iter().map(|class| class.rule);
        let own = shape.members.iter().enumerate();
        let own = own.filter(|(index, _)| !shape.is_end(*index as u32)).map(|(_, rule)| *rule);
        for rule in own.chain(classes) {
            needed.extend(self.plan_options(rule)?.iter().map(|option| option.goal));
        }
        Ok(needed)
    }

    /// Whether a key that begins with `typed` may be a name with which a plan fills the object up.
    pub(crate) fn is_planned(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        extra: &ExtraNames,
        typed: &[u8],
    ) -> bool {
        let shape = Arc::clone(self.object(id));
        let unmet = self.open_to_others(&shape, progress.condition);
        let missing = shape.min_properties.saturating_sub(progress.count) as usize;
        let most = missing.max(unmet);
        if most == 0 {
            return false;
        }
        let key = (id, progress.clone());
        let planned = self
            .planned_names
            .entry(key)
            .or_insert_with(|| fresh_names(extra, most, &shape, progress).concat().into());
        planned.iter().any(|name| name.as_bytes().starts_with(typed))
    }

    /// The required members that have not been written. O(their number) under [`Order::Schema`].
    fn required_members(&mut self, shape: &ObjectShape, progress: &Progress) -> Vec<Member> {
        let order = self.options.order;
        let end = shape.names.len() as u32;
        let first = if order == Order::Schema { progress.next } else { 0 };
        let mut members = Vec::new();
        let mut index = shape.next_required[first as usize];
        while index < end {
            if progress.is_open(index, order) {
                let name = shape.names[index as usize].clone();
                let goal = self.base_goal(shape.members[index as usize]);
                members.push(Member { name, goal });
            }
            index = shape.next_required[index as usize + 1];
        }
        members
    }
}

impl Goals {
    /// Adds what is required to a choice, and members up to the least number of them. `fresh` are
    /// the names of each class that the choice has members of.
    pub(super) fn fill(
        &self,
        shape: &ObjectShape,
        progress: &Progress,
        ways: &Ways,
        extra: Option<&ExtraNames>,
        fresh: &[Vec<Box<str>>],
        choice: &Choice,
    ) -> Option<Vec<Member>> {
        let order = self.options.order;
        let own: Vec<Member> = choice
            .others
            .iter()
            .map(|(class, at, option)| Member {
                name: fresh[*class][*at].clone(),
                goal: option.goal,
            })
            .collect();
        let mut written = progress.clone();
        for member in &own {
            written = written.recorded(&member.name);
        }
        written.pending = progress.pending;
        written.count = progress.count + own.len() as u64;
        let mut declared: Vec<(u32, GoalId)> = Vec::new();
        let mut optional = Vec::new();
        for index in 0..shape.names.len() as u32 {
            if !progress.is_open(index, order) {
                continue;
            }
            if let Some((_, option)) = choice.declared.iter().find(|(chosen, _)| *chosen == index) {
                declared.push((index, option.goal));
                continue;
            }
            let is_required = shape.is_required[index as usize];
            let rule = shape.members[index as usize];
            match self.cheapest(rule, &ways.declared[index as usize], choice) {
                Some((_, goal)) if is_required => declared.push((index, goal)),
                Some((cost, goal)) if !choice.avoided.contains(&index) => {
                    let key = crate::text::quoted(&shape.names[index as usize]).len() as u64;
                    optional.push((cost + key, index, goal));
                }
                None if is_required => return None,
                Some(_) | None => {}
            }
        }
        let count = written.count + declared.len() as u64;
        if shape.max_properties.is_some_and(|max| count > max.max(written.count)) {
            return None;
        }
        if shape.max_properties.is_some_and(|max| max < shape.min_properties) {
            return None;
        }
        if !own.is_empty() && shape.max_properties.is_some_and(|max| count > max) {
            return None;
        }
        let missing = shape.min_properties.saturating_sub(count) as usize;
        // Cheapest first, declared and other names alike: so every member costs less than the
        // object it is in, which is what ends the writing of recursive values.
        let mut candidates: Vec<(u64, Candidate)> = Vec::new();
        if missing > 0 {
            candidates.extend(
                optional
                    .into_iter()
                    .map(|(cost, index, goal)| (cost, Candidate::Declared(index, goal))),
            );
            if let Some(extra) = extra {
                for (class, names) in
                    fresh_names(extra, missing, shape, &written).into_iter().enumerate()
                {
                    let cheapest = self.cheapest(ways.rules[class], &ways.others[class], choice);
                    let Some((value, goal)) = cheapest else { continue };
                    for name in names {
                        let member = Member { name, goal };
                        candidates.push((value + member.key_bytes(), Candidate::Extra(member)));
                    }
                }
            }
        }
        candidates.sort();
        candidates.truncate(missing);
        if candidates.len() < missing {
            return None;
        }
        let mut extras = Vec::new();
        for (_, candidate) in candidates {
            match candidate {
                Candidate::Declared(index, goal) => declared.push((index, goal)),
                Candidate::Extra(member) => extras.push(member),
            }
        }
        declared.sort_unstable();
        let mut members: Vec<Member> = declared
            .into_iter()
            .map(|(index, goal)| Member { name: shape.names[index as usize].clone(), goal })
            .collect();
        members.extend(extras);
        members.extend(own);
        Some(members)
    }

    /// The cheapest way to write a member that breaks nothing a choice relies on, and its cost.
    fn cheapest(
        &self,
        rule: RuleId,
        ways: &[(ChildOption, u64)],
        choice: &Choice,
    ) -> Option<(u64, GoalId)> {
        let fits = |(option, _): &&(ChildOption, u64)| choice.allows(self.child_rule(rule), option);
        ways.iter().filter(fits).map(|(option, cost)| (*cost, option.goal)).min()
    }
}

/// Up to `count` names of each class that are free to be written.
///
/// A key whose text is not recorded is none of them: see [`Goals::is_planned`].
pub(super) fn fresh_names(
    extra: &ExtraNames,
    count: usize,
    shape: &ObjectShape,
    progress: &Progress,
) -> Vec<Vec<Box<str>>> {
    let mut fresh = vec![Vec::new(); extra.classes.len()];
    for (name, class) in extra.fresh(count, None, |name| is_taken(name, shape, progress)) {
        if let Ok(name) = String::from_utf8(name) {
            fresh[class].push(name.into_boxed_str());
        }
    }
    fresh
}

/// Whether a name is declared or has been written already.
pub(crate) fn is_taken(name: &[u8], shape: &ObjectShape, progress: &Progress) -> bool {
    shape.sorted.binary_search_by(|&index| shape.names[index as usize].as_bytes().cmp(name)).is_ok()
        || progress.extras.binary_search_by(|extra| extra.as_bytes().cmp(name)).is_ok()
}
