//! The ways to choose kinds for the ends that are still to come.

use std::sync::Arc;

use crate::goal::plan::Progress;
use crate::goal::{ChildOption, GoalId, GoalLimit, Goals, ObjectId};
use crate::ir::{DataKeyword, Demand, NodeId, TypeSet};
use crate::number::{Decimal, NumberStyle};

use super::instance::MadeUp;
use super::order::{Domain, Less, Variable};
use super::{Kind, Link, Measure, Record, Relations};

/// What is known of each end, as far as it matters for the others: [`Record`]s, with those ends
/// that can no longer be written told apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Status {
    Open,
    /// Of what its value must satisfy apart from its links.
    Writing(GoalId),
    Known {
        kinds: Box<[Kind]>,
        measure: Option<Decimal>,
        value: Option<NodeId>,
    },
    Absent,
    Done,
}

impl Status {
    /// Whether nothing about it can change any more.
    pub(super) const fn is_decided(&self) -> bool {
        !matches!(self, Self::Open | Self::Writing(_))
    }
}

/// One end, as one arrangement has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Absent,
    /// It is written already.
    Written {
        kind: Kind,
        measure: Option<Decimal>,
        value: Option<NodeId>,
    },
    /// It is to be written.
    Present {
        kind: Kind,
        option: ChildOption,
        goal: GoalId,
    },
}

/// A choice for each end of a component that goes with all others. Ends that no longer matter are
/// left out.
#[derive(Debug, Clone)]
pub(super) struct Arrangement {
    pub(super) choices: Box<[(u32, Choice)]>,
}

/// Ways to choose kinds for the ends of one component that are looked at.
const MAX_ARRANGEMENTS: usize = 4096;

impl Goals {
    /// What a value of a kind must satisfy, before other ends are looked at.
    pub(super) fn kind_goal(
        &mut self,
        relations: &Relations,
        end: u32,
        goal: GoalId,
        kind: Kind,
    ) -> GoalId {
        let types = relations.ends[end as usize].parts[kind.part as usize];
        // A rule that has no say about the type may as well hold.
        let truth = relations
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| link.dependent == end)
            .map(|(index, link)| {
                let concerns = link.rule.keyword.measured().has(types);
                (link.rule.clone(), !concerns || kind.holds >> index & 1 == 1)
            })
            .collect();
        let demands = self.ids[goal.0 as usize].to_vec();
        let mut demands = self.decided(&demands, &truth);
        if types != TypeSet::ALL {
            demands.push(Demand::holds(self.made_up(MadeUp::Types(types))));
        }
        if types == TypeSet::NUMBER && self.options.number_style == NumberStyle::Any {
            demands.push(Demand::holds(self.made_up(MadeUp::Comparable)));
        }
        self.goal(demands)
    }

    /// What is known of each end, `None` if that leaves no way to go on. If `is_ending`, nothing
    /// more is written.
    pub(super) fn statuses(
        &self,
        relations: &Relations,
        progress: &Progress,
        is_ending: bool,
    ) -> Option<Box<[Status]>> {
        let order = self.options.order;
        let mut statuses: Vec<Status> = relations
            .ends
            .iter()
            .enumerate()
            .map(|(index, end)| match progress.records.get(index).unwrap_or(&Record::Open) {
                Record::Open if !is_ending && progress.is_open(end.member, order) => Status::Open,
                Record::Open => Status::Absent,
                Record::Writing(goal) => Status::Writing(*goal),
                Record::Known { kinds, measure, value } => {
                    Status::Known { kinds: kinds.clone(), measure: measure.clone(), value: *value }
                }
                Record::Done => Status::Done,
            })
            .collect();
        for index in 0..relations.ends.len() as u32 {
            let absent: Vec<usize> = relations
                .own_links(index, TypeSet::ALL)
                .filter(|&link| statuses[relations.links[link].target as usize] == Status::Absent)
                .collect();
            let parts = &relations.ends[index as usize].parts;
            if let Status::Known { kinds, .. } = &mut statuses[index as usize] {
                // Rules about a member that is not there hold.
                let left = kinds.iter().copied().filter(|kind| {
                    let types = parts[kind.part as usize];
                    absent.iter().all(|&link| {
                        !relations.links[link].rule.keyword.measured().has(types)
                            || kind.holds >> link & 1 == 1
                    })
                });
                *kinds = left.collect::<Vec<Kind>>().into();
                if kinds.is_empty() {
                    return None;
                }
            }
        }
        let decided: Vec<bool> = statuses.iter().map(Status::is_decided).collect();
        for (index, status) in statuses.iter_mut().enumerate() {
            if decided[index] && !relations.matters(index as u32, &|other| decided[other as usize])
            {
                *status = Status::Done;
            }
        }
        Some(statuses.into())
    }

    /// Every arrangement of a component, given what is known.
    pub(super) fn arrangements(
        &mut self,
        id: ObjectId,
        relations: &Relations,
        component: usize,
        statuses: &[Status],
    ) -> Result<Arc<[Arrangement]>, GoalLimit> {
        let ends = &relations.components[component];
        let own: Box<[Status]> = ends.iter().map(|&end| statuses[end as usize].clone()).collect();
        let key = (id, component, own);
        if let Some(known) = self.related.arrangements.get(&key) {
            return known.clone();
        }
        // What is asked again while it is worked out has no answer.
        let pending = Err(GoalLimit {
            name: "relations",
            limit: 0,
            unit: "recursions through `$data`",
            pointer: String::new(),
        });
        self.related.arrangements.insert(key.clone(), pending);
        let found = self.find_arrangements(id, relations, ends, statuses);
        self.related.arrangements.insert(key, found.clone());
        found
    }

    fn find_arrangements(
        &mut self,
        id: ObjectId,
        relations: &Relations,
        ends: &[u32],
        statuses: &[Status],
    ) -> Result<Arc<[Arrangement]>, GoalLimit> {
        let mut candidates: Vec<(u32, Vec<Choice>)> = Vec::new();
        for &end in ends {
            if statuses[end as usize] == Status::Done {
                continue;
            }
            let choices = self.choices_of(id, relations, end, &statuses[end as usize])?;
            if choices.is_empty() {
                return Ok(Arc::default());
            }
            candidates.push((end, choices));
        }
        let mut found: Vec<Arrangement> = Vec::new();
        let mut steps = 0;
        // Depth first; the number is how many choices were taken at each level.
        let mut taken = vec![0usize; candidates.len()];
        let mut chosen: Vec<(u32, Choice)> = Vec::new();
        loop {
            if chosen.len() == candidates.len() {
                if let Some(arrangement) = self.arranged(relations, &chosen)? {
                    found.push(arrangement);
                }
            } else if let Some(choice) = candidates[chosen.len()].1.get(taken[chosen.len()]) {
                steps += 1;
                if steps > MAX_ARRANGEMENTS {
                    return Err(GoalLimit {
                        name: "arrangements",
                        limit: MAX_ARRANGEMENTS as u64,
                        unit: "ways for members that are related by `$data` to go together",
                        pointer: String::new(),
                    });
                }
                let level = chosen.len();
                taken[level] += 1;
                let choice = (candidates[level].0, choice.clone());
                if chosen.iter().all(|known| go_together(relations, known, &choice)) {
                    chosen.push(choice);
                    if let Some(next) = taken.get_mut(level + 1) {
                        *next = 0;
                    }
                }
                continue;
            }
            if chosen.pop().is_none() {
                break;
            }
        }
        Ok(found.into())
    }

    fn choices_of(
        &mut self,
        id: ObjectId,
        relations: &Relations,
        end: u32,
        status: &Status,
    ) -> Result<Vec<Choice>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let member = relations.ends[end as usize].member as usize;
        let mut options: Vec<ChildOption> = Vec::new();
        let mut choices = Vec::new();
        match status {
            Status::Done => {}
            Status::Absent => choices.push(Choice::Absent),
            Status::Known { kinds, measure, value } => {
                choices.extend(kinds.iter().map(|&kind| Choice::Written {
                    kind,
                    measure: measure.clone(),
                    value: *value,
                }));
            }
            Status::Writing(goal) => options.push(ChildOption { goal: *goal, counts: 0 }),
            Status::Open => {
                // Few members rather than many: those that may be missing are, if they can.
                if !shape.is_required[member] {
                    choices.push(Choice::Absent);
                }
                options.extend(self.plan_options(shape.members[member])?.iter());
            }
        }
        for option in options {
            for kind in relations.kinds(end) {
                let goal = self.kind_goal(relations, end, option.goal, kind);
                if self.shortest(goal)?.is_some() {
                    choices.push(Choice::Present { kind, option, goal });
                }
            }
        }
        Ok(choices)
    }

    /// The arrangement with the goals of what is to be written cut to what the others leave;
    /// `None` if they leave nothing.
    fn arranged(
        &mut self,
        relations: &Relations,
        chosen: &[(u32, Choice)],
    ) -> Result<Option<Arrangement>, GoalLimit> {
        let at = |end: u32| chosen.iter().position(|(known, _)| *known == end);
        let mut choices = chosen.to_vec();
        let mut order: Vec<Less> = Vec::new();
        let mut equal: Vec<(usize, usize)> = Vec::new();
        let mut different: Vec<(usize, usize)> = Vec::new();
        for (index, link) in relations.links.iter().enumerate() {
            let (Some(dependent), Some(target)) = (at(link.dependent), at(link.target)) else {
                continue;
            };
            let both_written = [dependent, target].iter().all(|&end| !is_to_come(&chosen[end].1));
            let Some(kind) = kind_of(&chosen[dependent].1).filter(|_| !both_written) else {
                continue;
            };
            if !concerns(relations, link, kind) || kind_of(&chosen[target].1).is_none() {
                continue;
            }
            let holds = kind.holds >> index & 1 == 1;
            if link.rule.keyword == DataKeyword::Const {
                (if holds { &mut equal } else { &mut different }).push((dependent, target));
            } else if is_number(relations, link.target, &chosen[target].1) {
                order.push(less(link, dependent, target, holds));
            }
        }
        if !self.separate(&mut choices, &different, &order)? {
            return Ok(None);
        }
        let Some(class) = self.unite(relations, &mut choices, &equal)? else { return Ok(None) };
        for less in &mut order {
            (less.lesser, less.greater) = (class[less.lesser], class[less.greater]);
        }
        // Only what is ordered is a variable.
        let mut ordered: Vec<usize> =
            order.iter().flat_map(|less| [less.lesser, less.greater]).collect();
        ordered.sort_unstable();
        ordered.dedup();
        let mut variables = Vec::with_capacity(ordered.len());
        for &index in &ordered {
            let (end, choice) = &choices[index];
            let Some(domain) = domain(relations, *end, choice) else { return Ok(None) };
            variables.push(Variable { domain });
        }
        let number = |index: usize| ordered.partition_point(|&known| known < index);
        for less in &mut order {
            (less.lesser, less.greater) = (number(less.lesser), number(less.greater));
        }
        let Some(left) = self.ordered(&variables, &order)? else { return Ok(None) };
        for ((&index, left), variable) in ordered.iter().zip(&left).zip(&variables) {
            let Domain::Goal(_, measure) = variable.domain else { continue };
            for (_, choice) in choices.iter_mut().enumerate().filter(|(at, _)| class[*at] == index)
            {
                if let (_, Choice::Present { goal, .. }) = choice {
                    *goal = self.extended(*goal, left.demands.iter().copied());
                    *goal = self.within(*goal, measure, &left.range);
                    if self.shortest(*goal)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(Arrangement { choices: choices.into() }))
    }

    /// Makes what is equal one: each end must be what the others are, or can be. For each choice the
    /// one that stands for it in an order; `None` if there is nothing that all can be.
    fn unite(
        &mut self,
        relations: &Relations,
        choices: &mut [(u32, Choice)],
        equal: &[(usize, usize)],
    ) -> Result<Option<Vec<usize>>, GoalLimit> {
        let mut class: Vec<usize> = (0..choices.len()).collect();
        for &(one, two) in equal {
            let (one, two) = (class[one], class[two]);
            for known in &mut class {
                if *known == one {
                    *known = two;
                }
            }
        }
        for first in 0..choices.len() {
            let members: Vec<usize> = (0..choices.len()).filter(|&at| class[at] == first).collect();
            if members.len() < 2 {
                continue;
            }
            let mut demands: Vec<Demand> = Vec::new();
            for &member in &members {
                match &choices[member].1 {
                    Choice::Absent => {}
                    Choice::Written { value, .. } => demands.extend(value.map(Demand::holds)),
                    Choice::Present { goal, .. } => demands.extend(&self.ids[goal.0 as usize]),
                }
            }
            let common = self.goal(demands);
            if self.shortest(common)?.is_none() {
                return Ok(None);
            }
            for &member in &members {
                if let Choice::Present { goal, .. } = &mut choices[member].1 {
                    *goal = common;
                }
            }
            let is_measured = |at: &usize| {
                let (end, choice) = &choices[*at];
                is_to_come(choice) && domain(relations, *end, choice).is_some()
            };
            let stands = members.iter().copied().find(is_measured).unwrap_or(first);
            for &member in &members {
                class[member] = stands;
            }
        }
        Ok(Some(class))
    }

    /// Sees that ends which must differ can: `false` if they cannot.
    fn separate(
        &mut self,
        choices: &mut [(u32, Choice)],
        different: &[(usize, usize)],
        order: &[Less],
    ) -> Result<bool, GoalLimit> {
        let degree = |at: usize| different.iter().filter(|(a, b)| *a == at || *b == at).count();
        // A value that is known, or the only one that an end can have, is none of the other's.
        for &(one, two) in different {
            for (from, to) in [(one, two), (two, one)] {
                let value = match &choices[from].1 {
                    Choice::Absent => None,
                    Choice::Written { value, .. } => *value,
                    Choice::Present { goal, .. } => self.only_value(*goal)?,
                };
                if let (Some(value), Choice::Present { goal, .. }) = (value, &mut choices[to].1) {
                    let known = *goal;
                    *goal = self.extended(known, [Demand::fails(value)]);
                    if self.shortest(*goal)?.is_none() {
                        return Ok(false);
                    }
                }
            }
        }
        for &(one, two) in different {
            let both_to_come = is_to_come(&choices[one].1) && is_to_come(&choices[two].1);
            if !both_to_come {
                continue;
            }
            for at in [one, two] {
                let Choice::Present { goal, .. } = choices[at].1 else { continue };
                let other = if at == one { two } else { one };
                let Choice::Present { goal: other_goal, .. } = choices[other].1 else { continue };
                let is_settled =
                    self.only_value(goal)?.is_some() || self.only_value(other_goal)?.is_some();
                let is_ordered = order.iter().any(|less| less.lesser == at || less.greater == at);
                if !is_settled && (degree(at) > 1 || is_ordered) {
                    return Err(GoalLimit {
                        name: "different",
                        limit: 1,
                        unit: "members that one member must differ from, without a bound",
                        pointer: self.pointer(goal),
                    });
                }
            }
        }
        Ok(true)
    }

    /// The value of a goal that has only one.
    fn only_value(&mut self, goal: GoalId) -> Result<Option<NodeId>, GoalLimit> {
        if self.shortest(goal)?.is_none() {
            return Ok(None);
        }
        let mut text = Vec::new();
        self.write_value(goal, usize::MAX, &mut text)?;
        let value = self.constant(&text)?;
        let others = self.extended(goal, [Demand::fails(value)]);
        Ok(self.shortest(others)?.is_none().then_some(value))
    }
}

fn kind_of(choice: &Choice) -> Option<Kind> {
    match choice {
        Choice::Absent => None,
        Choice::Written { kind, .. } | Choice::Present { kind, .. } => Some(*kind),
    }
}

fn is_to_come(choice: &Choice) -> bool {
    matches!(choice, Choice::Present { .. })
}

fn types_of(relations: &Relations, end: u32, kind: Kind) -> TypeSet {
    relations.ends[end as usize].parts[kind.part as usize]
}

/// Whether a link has a say about values of a kind of its dependent.
fn concerns(relations: &Relations, link: &Link, kind: Kind) -> bool {
    link.rule.keyword.measured().has(types_of(relations, link.dependent, kind))
}

fn is_number(relations: &Relations, end: u32, choice: &Choice) -> bool {
    kind_of(choice).is_some_and(|kind| types_of(relations, end, kind) == TypeSet::NUMBER)
}

/// What a link says of two numbers.
fn less(link: &Link, dependent: usize, target: usize, holds: bool) -> Less {
    let keyword = link.rule.keyword;
    let (lesser, greater) =
        if keyword.is_lower_bound() { (target, dependent) } else { (dependent, target) };
    if holds {
        Less { lesser, greater, is_strict: keyword.is_exclusive() }
    } else {
        Less { lesser: greater, greater: lesser, is_strict: !keyword.is_exclusive() }
    }
}

/// Whether the links between two ends allow these choices, apart from any order of numbers.
fn go_together(relations: &Relations, one: &(u32, Choice), two: &(u32, Choice)) -> bool {
    let fits = |dependent: &(u32, Choice), target: &(u32, Choice)| {
        relations.links.iter().enumerate().all(|(index, link)| {
            if (link.dependent, link.target) != (dependent.0, target.0) {
                return true;
            }
            let Some(kind) = kind_of(&dependent.1) else { return true };
            if !concerns(relations, link, kind) {
                return true;
            }
            let holds = kind.holds >> index & 1 == 1;
            match &target.1 {
                Choice::Absent => holds,
                _ if link.rule.keyword == DataKeyword::Const => true,
                target if is_number(relations, link.target, target) => true,
                _ => !holds,
            }
        })
    };
    fits(one, two) && fits(two, one)
}

/// The number that an end has in an order.
fn domain(relations: &Relations, end: u32, choice: &Choice) -> Option<Domain> {
    match choice {
        Choice::Absent => None,
        Choice::Written { measure, .. } => measure.clone().map(Domain::Known),
        Choice::Present { kind, goal, .. } => {
            let types = types_of(relations, end, *kind);
            Measure::of(types).map(|measure| Domain::Goal(*goal, measure))
        }
    }
}
