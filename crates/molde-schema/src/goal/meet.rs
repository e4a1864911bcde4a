//! The cheapest members that meet a condition.
//!
//! A condition is met by literals that are relied upon: a member that counts for one, a name that is
//! left out, a rule that all further members keep. What does not depend on each other is looked for
//! apart; within what does, the search is branch and bound over the part with the fewest ways.

use rustc_hash::FxHashMap;

use crate::options::Order;

use super::condition::Literal;
use super::formula::{Formula, FormulaId, LiteralId};
use super::names::ExtraNames;
use super::plan::{Member, Progress, Ways, fresh_names};
use super::relation::EndPlan;
use super::rule::{ChildRule, Counts, RuleId};
use super::{ChildOption, GoalLimit, Goals, ObjectId, ObjectShape};

/// Steps in the search for members that meet a condition, for one object.
const MEET_STEPS: usize = 5_000;

/// Steps after which the best members found so far are good enough.
const ENOUGH_STEPS: usize = 500;

/// What meets each part of a condition, by object, part, and the names it may still use.
pub(super) type MetParts = FxHashMap<(ObjectId, FormulaId, Box<[u32]>), Option<Choice>>;

/// What has been chosen in order to meet a condition.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Declared members with the option each is written with.
    pub(super) declared: Vec<(u32, ChildOption)>,
    /// Other members: class, number among the fresh names of that class, option.
    pub(super) others: Vec<(usize, usize, ChildOption)>,
    /// Declared names that are left out.
    pub(super) avoided: Vec<u32>,
    /// What every member must keep to.
    kept: Vec<LiteralId>,
    /// Bytes beyond those of what is required anyway.
    cost: u64,
}

/// The bit of a literal in what the options of a rule count for.
fn bit(rule: &ChildRule, literal: LiteralId) -> Option<Counts> {
    let at = rule.literals.binary_search(&literal).ok()?;
    Some(Counts::from(1u8).checked_shl(at as u32).unwrap_or(0))
}

impl Choice {
    /// Whether a way to write a member breaks nothing that is relied upon.
    pub(super) fn allows(&self, rule: &ChildRule, option: &ChildOption) -> bool {
        self.kept
            .iter()
            .all(|&literal| bit(rule, literal).is_none_or(|bit| option.counts & bit != 0))
    }

    fn extend(&mut self, other: Self) {
        self.declared.extend(other.declared);
        self.others.extend(other.others);
        self.avoided.extend(other.avoided);
        self.kept.extend(other.kept);
        self.cost += other.cost;
    }
}

impl Goals {
    /// The members with which an object can be finished, and their cost, given which of those that
    /// are related to others are written; `None` if it cannot.
    ///
    /// Where costs are final, `known` says of which object, and what is found for parts is kept.
    ///
    /// # Errors
    /// `meet_steps` if the search ends before it has found any.
    pub(super) fn meet(
        &mut self,
        shape: &ObjectShape,
        progress: &Progress,
        ways: &Ways,
        extra: Option<&ExtraNames>,
        ends: EndPlan,
        known: Option<ObjectId>,
    ) -> Result<Option<(u64, Vec<Member>)>, GoalLimit> {
        let given = Choice {
            declared: ends.present,
            avoided: ends.absent,
            cost: ends.cost,
            ..Choice::default()
        };
        let condition = self.settled(shape, ways, progress.condition, &given);
        if condition == FormulaId::MET {
            let members = self.fill(shape, progress, ways, extra, &[], &given);
            return Ok(members.map(|members| (given.cost, members)));
        }
        let open = self.formulas.literals(condition).iter();
        let open =
            open.filter(|&&literal| shape.reach(literal).is_some_and(|reach| reach.others)).count();
        let fresh = extra.map_or_else(Vec::new, |extra| fresh_names(extra, open, shape, progress));
        if shape.relations.is_none() {
            let mut choice = Choice::default();
            for (part, members) in self.independent_parts(shape, condition) {
                // Among declared names, a part depends on which of its own are open, and on
                // nothing else.
                let others = members.last() == Some(&shape.names.len());
                let order = self.options.order;
                let is_open = |&name: &u32| progress.is_open(name, order);
                let open = members.iter().map(|&name| name as u32).filter(is_open).collect();
                let key = known.filter(|_| !others).map(|id| (id, part, open));
                let kept = key.as_ref().and_then(|key| self.met_parts.get(key)).cloned();
                let found = if let Some(kept) = kept {
                    kept
                } else {
                    let mut search = Search::new(self, shape, progress, ways, &fresh, extra);
                    search.run(part, &Choice::default());
                    let found = search.result()?;
                    if let Some(key) = key {
                        self.met_parts.insert(key, found.clone());
                    }
                    found
                };
                match found {
                    Some(found) => choice.extend(found),
                    None => return Ok(None),
                }
            }
            if let Some(members) = self.fill(shape, progress, ways, extra, &fresh, &choice) {
                return Ok(Some((choice.cost, members)));
            }
        }
        // With few members to spend, what meets one part decides what is left for the others.
        let mut search = Search::new(self, shape, progress, ways, &fresh, extra);
        search.is_whole = true;
        search.run(condition, &given);
        let Some(choice) = search.result()? else { return Ok(None) };
        let members = self.fill(shape, progress, ways, extra, &fresh, &choice);
        Ok(members.map(|members| (choice.cost, members)))
    }

    /// What is left of a formula with what a choice decides.
    fn settled(
        &mut self,
        shape: &ObjectShape,
        ways: &Ways,
        open: FormulaId,
        choice: &Choice,
    ) -> FormulaId {
        let Self { formulas, literals, rules, .. } = self;
        formulas.assign(open, &mut |literal| {
            let reach = shape.reach(literal)?;
            let is_chosen = |name: &u32| choice.declared.iter().any(|(chosen, _)| chosen == name);
            if let Literal::No(_) = literals[literal.0 as usize] {
                return if reach.names.iter().any(is_chosen) {
                    Some(false)
                } else {
                    reach.names.iter().any(|name| choice.avoided.contains(name)).then_some(true)
                };
            }
            let declared = choice
                .declared
                .iter()
                .map(|(name, option)| (shape.members[*name as usize], option.counts));
            let others =
                choice.others.iter().map(|(class, _, option)| (ways.rules[*class], option.counts));
            let is_some = matches!(literals[literal.0 as usize], Literal::Some(_));
            if !is_some && choice.kept.contains(&literal) {
                return Some(true);
            }
            for (rule, counts) in declared.chain(others) {
                let rule = &rules[rule.position()];
                let bit = bit(rule, literal);
                if is_some {
                    if rule.present.binary_search(&literal).is_ok()
                        || bit.is_some_and(|bit| counts & bit != 0)
                    {
                        return Some(true);
                    }
                } else if bit.is_some_and(|bit| counts & bit == 0) {
                    return Some(false);
                }
            }
            None
        })
    }

    /// The parts of a condition that have no member in common, with the members of each: indices of
    /// declared names, ascending, and one past the last for all other names.
    fn independent_parts(
        &mut self,
        shape: &ObjectShape,
        condition: FormulaId,
    ) -> Vec<(FormulaId, Vec<usize>)> {
        let parts = self.formulas.conjuncts(condition);
        let mut groups = Groups((0..=shape.names.len()).collect());
        let mut members_of = Vec::with_capacity(parts.len());
        for &part in &parts {
            let mut members = Vec::new();
            for &literal in self.formulas.literals(part) {
                let Some(reach) = shape.reach(literal) else { continue };
                members.extend(reach.names.iter().map(|&name| name as usize));
                members.extend(reach.others.then_some(shape.names.len()));
            }
            for &member in &members {
                groups.join(members[0], member);
            }
            members_of.push(members);
        }
        let mut found: Vec<(Vec<FormulaId>, Vec<usize>)> = Vec::new();
        let mut place = FxHashMap::default();
        for (part, members) in parts.into_iter().zip(members_of) {
            let group = groups.find(members.first().copied().unwrap_or(shape.names.len()));
            let at = *place.entry(group).or_insert_with(|| {
                found.push((Vec::new(), Vec::new()));
                found.len() - 1
            });
            found[at].0.push(part);
            found[at].1.extend(members);
        }
        found
            .into_iter()
            .map(|(parts, mut members)| {
                members.sort_unstable();
                members.dedup();
                (self.formulas.all(parts), members)
            })
            .collect()
    }
}

/// Disjoint sets.
struct Groups(Vec<usize>);

impl Groups {
    fn find(&mut self, at: usize) -> usize {
        let mut at = at;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, two: usize) {
        let (one, two) = (self.find(one), self.find(two));
        self.0[one.max(two)] = one.min(two);
    }
}

struct Search<'a> {
    goals: &'a mut Goals,
    shape: &'a ObjectShape,
    progress: &'a Progress,
    ways: &'a Ways,
    /// Names of each class that may be written.
    fresh: &'a [Vec<Box<str>>],
    /// Names to fill the object up with.
    extra: Option<&'a ExtraNames>,
    /// Whether what is found counts only if the object can be filled up with it.
    is_whole: bool,
    order: Order,
    steps: usize,
    best: Option<Choice>,
}

impl<'a> Search<'a> {
    fn new(
        goals: &'a mut Goals,
        shape: &'a ObjectShape,
        progress: &'a Progress,
        ways: &'a Ways,
        fresh: &'a [Vec<Box<str>>],
        extra: Option<&'a ExtraNames>,
    ) -> Self {
        let order = goals.options.order;
        Self {
            goals,
            shape,
            progress,
            ways,
            fresh,
            extra,
            is_whole: false,
            order,
            steps: 0,
            best: None,
        }
    }

    fn result(self) -> Result<Option<Choice>, GoalLimit> {
        if self.best.is_none() && self.steps > MEET_STEPS {
            return Err(GoalLimit {
                name: "meet_steps",
                limit: MEET_STEPS as u64,
                unit: "steps",
                pointer: String::new(),
            });
        }
        Ok(self.best)
    }

    fn run(&mut self, open: FormulaId, choice: &Choice) {
        self.steps += 1;
        let is_enough = self.best.is_some() && self.steps > ENOUGH_STEPS;
        let is_dearer = self.best.as_ref().is_some_and(|best| choice.cost >= best.cost);
        let is_over = self.steps > MEET_STEPS || is_enough || is_dearer;
        if open == FormulaId::LOST || is_over || self.has_too_many(choice) {
            return;
        }
        let parts = self.goals.formulas.conjuncts(open);
        if parts.is_empty() {
            self.finish(choice);
            return;
        }
        // The part with the fewest ways first: it fails soonest.
        let mut fewest: Option<(FormulaId, Vec<(Choice, FormulaId)>)> = None;
        for &part in &parts {
            let ways = self.ways_to_meet(part, choice);
            let (count, is_free) =
                (ways.len(), ways.first().is_some_and(|x| x.0.cost == choice.cost));
            if fewest.as_ref().is_none_or(|(_, fewest)| count < fewest.len()) {
                fewest = Some((part, ways));
            }
            if count == 0 || count == 1 && is_free {
                break;
            }
        }
        let Some((part, ways)) = fewest else { return };
        let rest: Vec<FormulaId> = parts.into_iter().filter(|&other| other != part).collect();
        for (choice, instead) in ways {
            let open = self.goals.formulas.all(rest.iter().copied().chain([instead]));
            let open = self.goals.settled(self.shape, self.ways, open, &choice);
            self.run(open, &choice);
        }
    }

    /// Whether a choice has more members than there may be.
    fn has_too_many(&self, choice: &Choice) -> bool {
        let Some(max) = self.shape.max_properties.filter(|_| self.is_whole) else {
            return false;
        };
        let required = self.shape.is_required.iter().enumerate().filter(|&(index, required)| {
            *required && self.progress.is_open(index as u32, self.order)
        });
        let optional = choice.declared.iter();
        let optional = optional.filter(|(name, _)| !self.shape.is_required[*name as usize]);
        let members = required.count() + optional.count() + choice.others.len();
        self.progress.count.saturating_add(members as u64) > max.max(self.progress.count)
    }

    /// Every way to meet a part, the cheapest first, with what must be met in its place.
    fn ways_to_meet(&self, part: FormulaId, choice: &Choice) -> Vec<(Choice, FormulaId)> {
        let branches = match self.goals.formulas.get(part) {
            Formula::Any(branches) => branches.to_vec(),
            _ => vec![part],
        };
        let mut ways = Vec::new();
        for branch in branches {
            if let Formula::Literal(literal) = *self.goals.formulas.get(branch) {
                let met = self.ways_for(literal, choice).into_iter();
                ways.extend(met.map(|choice| (choice.cost, choice, FormulaId::MET)));
            } else if let Some(cost) = self.least_cost(branch, choice) {
                ways.push((cost, choice.clone(), branch));
            }
        }
        ways.sort_by_key(|(cost, ..)| *cost);
        ways.into_iter().map(|(_, choice, instead)| (choice, instead)).collect()
    }

    /// A cost below which a conjunction cannot be met after a choice; `None` if it cannot at all.
    fn least_cost(&self, branch: FormulaId, choice: &Choice) -> Option<u64> {
        let mut least = choice.cost;
        for part in self.goals.formulas.conjuncts(branch) {
            if let Formula::Literal(literal) = *self.goals.formulas.get(part) {
                let ways = self.ways_for(literal, choice);
                least = least.max(ways.iter().map(|choice| choice.cost).min()?);
            }
        }
        Some(least)
    }

    /// Every way for a literal to hold.
    fn ways_for(&self, literal: LiteralId, choice: &Choice) -> Vec<Choice> {
        let Some(reach) = self.shape.reach(literal) else { return Vec::new() };
        let mut ways = Vec::new();
        match self.goals.literals[literal.0 as usize] {
            Literal::No(_) => {
                let is_free = |&name: &u32| {
                    self.progress.is_open(name, self.order)
                        && !self.shape.is_required[name as usize]
                        && !choice.declared.iter().any(|(chosen, _)| *chosen == name)
                };
                if let Some(&name) = reach.names.first().filter(|name| is_free(name)) {
                    let mut choice = choice.clone();
                    choice.avoided.push(name);
                    ways.push(choice);
                }
            }
            Literal::Some(_) => {
                for &name in &reach.names {
                    self.write_declared(name, literal, choice, &mut ways);
                }
                if reach.others {
                    self.write_other(literal, choice, &mut ways);
                }
            }
            Literal::Every(..) | Literal::EveryOf(_) => ways.extend(self.keep(literal, choice)),
        }
        ways
    }

    fn rule(&self, name: u32) -> RuleId {
        self.shape.members[name as usize]
    }

    /// Whether an option of a rule makes a literal hold.
    fn counts(&self, rule: RuleId, option: ChildOption, literal: LiteralId) -> bool {
        let rule = self.goals.child_rule(rule);
        rule.present.binary_search(&literal).is_ok()
            || bit(rule, literal).is_some_and(|bit| option.counts & bit != 0)
    }

    /// Meets a literal by the member of a declared name.
    fn write_declared(
        &self,
        name: u32,
        literal: LiteralId,
        choice: &Choice,
        ways: &mut Vec<Choice>,
    ) {
        if !self.progress.is_open(name, self.order) || choice.avoided.contains(&name) {
            return;
        }
        let chosen = choice.declared.iter().position(|(chosen, _)| *chosen == name);
        let so_far = chosen.map_or(0, |at| choice.declared[at].1.counts);
        let key = self.shape.names[name as usize].len() as u64 + 6;
        let rule = self.goals.child_rule(self.rule(name));
        for (option, bytes) in &self.ways.declared[name as usize] {
            // A member that was chosen for one literal may be changed to meet this one as well.
            if !self.counts(self.rule(name), *option, literal)
                || option.counts & so_far != so_far
                || !choice.allows(rule, option)
            {
                continue;
            }
            let mut choice = choice.clone();
            let is_there = chosen.is_some() || self.shape.is_required[name as usize];
            choice.cost += bytes + if is_there { 0 } else { key };
            match chosen {
                Some(at) => choice.declared[at].1 = *option,
                None => choice.declared.push((name, *option)),
            }
            ways.push(choice);
        }
    }

    /// Meets a literal by a member whose name is not declared.
    fn write_other(&self, literal: LiteralId, choice: &Choice, ways: &mut Vec<Choice>) {
        for (class, options) in self.ways.others.iter().enumerate() {
            let rule = self.ways.rules[class];
            for (option, bytes) in options {
                if !self.counts(rule, *option, literal)
                    || !choice.allows(self.goals.child_rule(rule), option)
                {
                    continue;
                }
                for (at, (used, _, known)) in choice.others.iter().enumerate() {
                    if *used == class && option.counts & known.counts == known.counts {
                        let mut choice = choice.clone();
                        choice.cost += bytes;
                        choice.others[at].2 = *option;
                        ways.push(choice);
                    }
                }
                let used = choice.others.iter().filter(|(used, ..)| *used == class).count();
                if used < self.fresh.get(class).map_or(0, Vec::len) {
                    let mut choice = choice.clone();
                    choice.cost += bytes + 8;
                    choice.others.push((class, used, *option));
                    ways.push(choice);
                }
            }
        }
    }

    /// Relies on what every member must keep to; members that are chosen already are changed where
    /// they do not.
    fn keep(&self, literal: LiteralId, choice: &Choice) -> Option<Choice> {
        let mut kept = choice.clone();
        kept.kept.push(literal);
        let better = |rule: RuleId, ways: &[(ChildOption, u64)], known: ChildOption| {
            let rule = self.goals.child_rule(rule);
            if kept.allows(rule, &known) {
                return Some((0, known));
            }
            ways.iter()
                .filter(|(option, _)| {
                    option.counts & known.counts == known.counts && kept.allows(rule, option)
                })
                .map(|(option, cost)| (*cost, *option))
                .min_by_key(|(cost, option)| (*cost, option.goal))
        };
        let mut cost = 0;
        let mut declared = choice.declared.clone();
        for (name, option) in &mut declared {
            let (more, changed) =
                better(self.rule(*name), &self.ways.declared[*name as usize], *option)?;
            (*option, cost) = (changed, cost + more);
        }
        let mut others = choice.others.clone();
        for (class, _, option) in &mut others {
            let (more, changed) =
                better(self.ways.rules[*class], &self.ways.others[*class], *option)?;
            (*option, cost) = (changed, cost + more);
        }
        Some(Choice { declared, others, cost: kept.cost + cost, ..kept })
    }

    /// Notes a choice that meets everything, if what is required can be written with it.
    fn finish(&mut self, choice: &Choice) {
        let mut choice = choice.clone();
        if !choice.kept.is_empty() {
            for name in 0..self.shape.names.len() as u32 {
                if !self.shape.is_required[name as usize]
                    || !self.progress.is_open(name, self.order)
                    || choice.declared.iter().any(|(chosen, _)| *chosen == name)
                {
                    continue;
                }
                let rule = self.goals.child_rule(self.rule(name));
                let ways = &self.ways.declared[name as usize];
                let least = ways.iter().map(|(_, cost)| *cost).min();
                let kept = ways.iter().filter(|(option, _)| choice.allows(rule, option));
                let (Some(least), Some(kept)) = (least, kept.map(|(_, cost)| *cost).min()) else {
                    return;
                };
                choice.cost += kept - least;
            }
        }
        if self.best.as_ref().is_some_and(|best| choice.cost >= best.cost) {
            return;
        }
        let Self { shape, progress, ways, fresh, extra, .. } = *self;
        if self.is_whole && self.goals.fill(shape, progress, ways, extra, fresh, &choice).is_none()
        {
            return;
        }
        self.best = Some(choice);
    }
}
