//! The members that an object still needs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::options::Order;

use super::items::Bytes;
use super::names::{ExtraNames, needs_extra_names};
use super::relation::{EndPlan, Record, Writing};
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
    /// The clauses that are met, as bits.
    pub(crate) clauses: u64,
    /// What is known of each end of the object's relations; empty while nothing is.
    pub(crate) records: Box<[Record]>,
    /// The end whose value is being written.
    pub(crate) writing: Option<Writing>,
}

impl Progress {
    /// Whether the declared name `index` may still be written at some point.
    pub(crate) fn is_open(&self, index: u32, order: Order) -> bool {
        match order {
            Order::Schema => index >= self.next,
            Order::Any => self.seen.binary_search(&index).is_err(),
        }
    }

    /// After the declared name `index`, whose member counts for some clauses.
    pub(crate) fn with_declared(
        &self,
        index: u32,
        clauses: u64,
        shape: &ObjectShape,
        order: Order,
    ) -> Self {
        let mut after = self.clone();
        after.count = shape.saturate(self.count + 1);
        after.clauses |= clauses;
        match order {
            Order::Schema => {
                after.next = index + 1;
                if !shape.clauses.is_empty() {
                    after.clauses |= shape.skipped(self.next, index);
                }
            }
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
    pub(crate) fn with_pending(&self, clauses: u64, shape: &ObjectShape, order: Order) -> Self {
        let mut after = self.clone();
        after.pending = true;
        after.count = shape.saturate(self.count + 1);
        after.clauses |= clauses;
        if order == Order::Schema {
            after.next = shape.names.len() as u32;
            if !shape.clauses.is_empty() {
                after.clauses |= shape.skipped(self.next, after.next);
            }
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

    /// The clauses that are not met if the object ends here.
    pub(crate) fn unmet(&self, shape: &ObjectShape, order: Order) -> u64 {
        if shape.clauses.is_empty() {
            return 0;
        }
        let met = match order {
            Order::Schema => shape.skipped(self.next, shape.names.len() as u32),
            Order::Any => {
                let is_absent = |index: &u32| self.seen.binary_search(index).is_err();
                let absent = shape.clauses.iter().map(|clause| clause.absent.iter().any(is_absent));
                absent.enumerate().fold(0, |met, (index, absent)| met | u64::from(absent) << index)
            }
        };
        shape.all_clauses() & !(self.clauses | met)
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

/// Steps in the search for members that meet all clauses, for one object.
const CLAUSE_STEPS: usize = 5_000;

/// Steps after which the best members found so far are good enough.
const ENOUGH_STEPS: usize = 500;

/// What may be written in an object, with what it costs.
struct Ways {
    /// For each declared name that is open, the ways for its member to count.
    declared: Vec<Vec<(ChildOption, u64)>>,
    /// The same for each class of other names.
    extras: Vec<Vec<(ChildOption, u64)>>,
}

impl Ways {
    /// The cheapest way to write a member, and its cost.
    fn cheapest(ways: &[(ChildOption, u64)]) -> Option<(u64, GoalId)> {
        ways.iter().map(|(option, cost)| (*cost, option.goal)).min()
    }
}

impl Goals {
    /// The members with which an object can be finished, in the order to write them; `None` if it
    /// cannot. As few members as possible, and among optional ones those with the shortest text.
    ///
    /// `bytes` gives the shortest text of a goal, `None` if it has none.
    pub(super) fn plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
        bytes: Bytes<'_>,
        extra: Option<&ExtraNames>,
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        self.plan_given(id, progress, bytes, extra, None)
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
    ) -> Result<Option<Vec<Member>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let order = self.options.order;
        let priced = |options: &[ChildOption]| -> Vec<(ChildOption, u64)> {
            options
                .iter()
                .filter_map(|option| bytes(option.goal).map(|cost| (*option, cost)))
                .collect()
        };
        let mut ways = Ways { declared: Vec::new(), extras: Vec::new() };
        for (index, &rule) in shape.members.iter().enumerate() {
            // Members that are related to others are planned together, below.
            let is_open = progress.is_open(index as u32, order) && !shape.is_end(index as u32);
            let options = if is_open { priced(&self.plan_options(rule)?) } else { Vec::new() };
            ways.declared.push(options);
        }
        for class in extra.iter().flat_map(|extra| &extra.classes) {
            ways.extras.push(priced(&self.plan_options(class.rule)?));
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
        let is_free =
            shape.clauses.is_empty() && shape.max_properties.is_none() && shape.min_properties == 0;
        let mut best: Option<(u64, Vec<Member>)> = None;
        for ends in self.end_plans(id, progress, is_free, fixed)? {
            if best.as_ref().is_none_or(|(cost, _)| ends.cost < *cost)
                && let Some((cost, members)) =
                    self.plan_with_ends(&shape, progress, &ways, extra, ends)?
                && best.as_ref().is_none_or(|(known, _)| cost < *known)
            {
                best = Some((cost, members));
            }
        }
        Ok(best.map(|(_, members)| members))
    }

    /// The rest of a plan, given which members that are related to others are written.
    fn plan_with_ends(
        &mut self,
        shape: &ObjectShape,
        progress: &Progress,
        ways: &Ways,
        extra: Option<&ExtraNames>,
        ends: EndPlan,
    ) -> Result<Option<(u64, Vec<Member>)>, GoalLimit> {
        let order = self.options.order;
        let counts = ends.present.iter().fold(0, |bits, (_, option)| bits | option.counts);
        let choice = Choice {
            declared: ends.present,
            extras: Vec::new(),
            avoided: ends.absent,
            cost: ends.cost,
        };
        let unmet = shape.all_clauses() & !progress.clauses & !counts;
        if unmet == 0 {
            let members = fill(shape, progress, order, ways, extra, &choice);
            return Ok(members.map(|members| (choice.cost, members)));
        }
        let fresh = extra.map_or_else(Vec::new, |extra| {
            fresh_names(extra, shape.clauses.len(), shape, progress)
        });
        let mut search =
            ClauseSearch { shape, progress, order, ways, extra, steps: 0, best: None, fresh };
        search.run(unmet, &choice);
        if search.best.is_none() && search.steps > CLAUSE_STEPS {
            return Err(GoalLimit {
                name: "clause_steps",
                limit: CLAUSE_STEPS as u64,
                unit: "steps",
                pointer: String::new(),
            });
        }
        Ok(search.best)
    }

    /// [`plan`](Self::plan) with what is known for certain, once every goal can be solved.
    pub(crate) fn solved_plan(
        &mut self,
        id: ObjectId,
        progress: &Progress,
    ) -> Result<Option<Arc<[Member]>>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        if !shape.is_bounded() {
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
        for (index, &rule) in shape.members.iter().enumerate() {
            if shape.is_end(index as u32) {
                continue;
            }
            for option in self.plan_options(rule)?.iter() {
                let cost = match self.shortest(option.goal) {
                    Err(limit) if shape.is_required[index] => return Err(limit),
                    // An optional member that is beyond a limit is never needed.
                    Err(_) => None,
                    Ok(cost) => cost,
                };
                lookup.insert(option.goal, cost);
            }
        }
        let extra = if shape.min_properties > progress.count || !shape.clauses.is_empty() {
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
        self.plan_given(id, progress, &bytes, extra.as_deref(), fixed)
    }

    /// The shortest values of an object's declared members; `None` for a member that can have none,
    /// and whose name is therefore never written. For objects without clauses.
    pub(crate) fn member_costs(&mut self, id: ObjectId) -> Result<Arc<[Option<u64>]>, GoalLimit> {
        if let Some(known) = &self.member_costs[id.0 as usize] {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::clone(self.object(id));
        let mut costs = Vec::with_capacity(shape.names.len());
        for (&rule, &required) in shape.members.iter().zip(&shape.is_required) {
            let goal = self.base_goal(rule);
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

    /// The goals that decide whether and how an object can be finished.
    pub(super) fn member_goals(&mut self, id: ObjectId) -> Result<Vec<GoalId>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let mut needed = Vec::new();
        if !needs_extra_names(&shape) {
            for (index, (&rule, &required)) in
                shape.members.iter().zip(&shape.is_required).enumerate()
            {
                if required && !shape.is_end(index as u32) {
                    needed.push(self.base_goal(rule));
                }
            }
            return Ok(needed);
        }
        let classes = self.name_classes(id)?;
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
        let unmet = (shape.all_clauses() & !progress.clauses).count_ones() as usize;
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

/// What has been chosen in order to meet clauses.
#[derive(Debug, Clone, Default)]
struct Choice {
    /// Declared members with the option each is written with.
    declared: Vec<(u32, ChildOption)>,
    /// Other members: class, number among the fresh names of that class, option.
    extras: Vec<(usize, usize, ChildOption)>,
    /// Declared names that are left out.
    avoided: Vec<u32>,
    /// Bytes beyond those of what is required anyway.
    cost: u64,
}

/// Looks for the cheapest members that meet all clauses: branch and bound over the ways to meet
/// the first clause that is not met.
struct ClauseSearch<'a> {
    shape: &'a ObjectShape,
    progress: &'a Progress,
    order: Order,
    ways: &'a Ways,
    extra: Option<&'a ExtraNames>,
    steps: usize,
    best: Option<(u64, Vec<Member>)>,
    /// Names of each class that may be written.
    fresh: Vec<Vec<Box<str>>>,
}

impl ClauseSearch<'_> {
    fn run(&mut self, unmet: u64, choice: &Choice) {
        self.steps += 1;
        let is_enough = self.best.is_some() && self.steps > ENOUGH_STEPS;
        let is_dearer = self.best.as_ref().is_some_and(|(best, _)| choice.cost >= *best);
        if self.steps > CLAUSE_STEPS || is_enough || is_dearer {
            return;
        }
        if unmet == 0 {
            let with = WithFresh { fresh: &self.fresh, choice };
            let members = with.fill(self.shape, self.progress, self.order, self.ways, self.extra);
            if let Some(members) = members {
                self.best = Some((choice.cost, members));
            }
            return;
        }
        // The clause with the fewest ways first: it fails soonest.
        let mut fewest: Option<Vec<(u64, Choice)>> = None;
        for index in (0..u64::BITS).filter(|index| unmet >> index & 1 == 1) {
            let ways = self.ways_to_meet(index, unmet, choice);
            if fewest.as_ref().is_none_or(|fewest| ways.len() < fewest.len()) {
                fewest = Some(ways);
            }
        }
        for (unmet, choice) in fewest.unwrap_or_default() {
            self.run(unmet, &choice);
        }
    }

    /// Every way to meet a clause, with what is unmet then.
    fn ways_to_meet(&self, index: u32, unmet: u64, choice: &Choice) -> Vec<(u64, Choice)> {
        let bit = 1u64 << index;
        let shape = self.shape;
        let mut ways = Vec::new();
        for &name in &shape.clauses[index as usize].absent {
            // Under schema order a name that was passed over has met its clause already.
            if self.progress.is_open(name, self.order)
                && !shape.is_required[name as usize]
                && !choice.declared.iter().any(|(chosen, _)| *chosen == name)
            {
                let mut choice = choice.clone();
                if !choice.avoided.contains(&name) {
                    choice.avoided.push(name);
                }
                ways.push((unmet & !bit, choice));
            }
        }
        for name in 0..shape.names.len() as u32 {
            if !self.progress.is_open(name, self.order) || choice.avoided.contains(&name) {
                continue;
            }
            let chosen = choice.declared.iter().position(|(chosen, _)| *chosen == name);
            let so_far = chosen.map_or(0, |at| choice.declared[at].1.counts);
            let key = shape.names[name as usize].len() as u64 + 6;
            for (option, bytes) in &self.ways.declared[name as usize] {
                // A member that was chosen for one clause may be changed to meet this one as well.
                if option.counts & bit == 0 || option.counts & so_far != so_far {
                    continue;
                }
                let mut choice = choice.clone();
                choice.cost += bytes + if shape.is_required[name as usize] { 0 } else { key };
                match chosen {
                    Some(at) => choice.declared[at].1 = *option,
                    None => choice.declared.push((name, *option)),
                }
                ways.push((unmet & !option.counts, choice));
            }
        }
        for (class, options) in self.ways.extras.iter().enumerate() {
            let counting = options.iter().filter(|(option, _)| option.counts & bit != 0);
            for (option, bytes) in counting {
                for (at, (used, _, known)) in choice.extras.iter().enumerate() {
                    if *used == class && option.counts & known.counts == known.counts {
                        let mut choice = choice.clone();
                        choice.cost += bytes;
                        choice.extras[at].2 = *option;
                        ways.push((unmet & !option.counts, choice));
                    }
                }
                let used = choice.extras.iter().filter(|(used, ..)| *used == class).count();
                if used < self.fresh.get(class).map_or(0, Vec::len) {
                    let mut choice = choice.clone();
                    choice.cost += bytes + 8;
                    choice.extras.push((class, used, *option));
                    ways.push((unmet & !option.counts, choice));
                }
            }
        }
        ways
    }
}

/// A choice with the names of its extra members.
struct WithFresh<'a> {
    fresh: &'a [Vec<Box<str>>],
    choice: &'a Choice,
}

impl WithFresh<'_> {
    fn fill(
        &self,
        shape: &ObjectShape,
        progress: &Progress,
        order: Order,
        ways: &Ways,
        extra: Option<&ExtraNames>,
    ) -> Option<Vec<Member>> {
        let own: Vec<Member> = self
            .choice
            .extras
            .iter()
            .map(|(class, at, option)| Member {
                name: self.fresh[*class][*at].clone(),
                goal: option.goal,
            })
            .collect();
        let mut written = progress.clone();
        for member in &own {
            written = written.recorded(&member.name);
        }
        written.pending = progress.pending;
        written.count = progress.count + own.len() as u64;
        let mut members = fill(shape, &written, order, ways, extra, self.choice)?;
        members.extend(own);
        Some(members)
    }
}

/// Adds what is required to a choice, and members up to the least number of them.
fn fill(
    shape: &ObjectShape,
    progress: &Progress,
    order: Order,
    ways: &Ways,
    extra: Option<&ExtraNames>,
    choice: &Choice,
) -> Option<Vec<Member>> {
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
        match Ways::cheapest(&ways.declared[index as usize]) {
            Some((_, goal)) if shape.is_required[index as usize] => declared.push((index, goal)),
            Some((cost, goal)) if !choice.avoided.contains(&index) => {
                let key = crate::text::quoted(&shape.names[index as usize]).len() as u64;
                optional.push((cost + key, index, goal));
            }
            None if shape.is_required[index as usize] => return None,
            Some(_) | None => {}
        }
    }
    let count = progress.count + declared.len() as u64;
    if shape.max_properties.is_some_and(|max| count > max.max(progress.count)) {
        return None;
    }
    if shape.max_properties.is_some_and(|max| max < shape.min_properties) {
        return None;
    }
    if !choice.extras.is_empty() && shape.max_properties.is_some_and(|max| count > max) {
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
                fresh_names(extra, missing, shape, progress).into_iter().enumerate()
            {
                let Some((value, goal)) = Ways::cheapest(&ways.extras[class]) else { continue };
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
    Some(members)
}

/// Up to `count` names of each class that are free to be written.
///
/// A key whose text is not recorded is none of them: see [`Goals::is_planned`].
fn fresh_names(
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
