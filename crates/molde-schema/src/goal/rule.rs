//! What one child must be, and the ways in which it can count.

use std::sync::Arc;

use crate::ir::{ALWAYS, Demand};

use super::formula::{FormulaId, LiteralId};
use super::{GoalId, GoalLimit, Goals};

/// Index of a [`ChildRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RuleId(u32);

impl RuleId {
    pub(super) fn position(self) -> usize {
        self.0 as usize
    }
}

/// What an item or a member must satisfy, and what it may count for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChildRule {
    pub(super) base: Box<[Demand]>,
    pub(super) wanted: Box<[Wanted]>,
    /// Of a member: the literals that it can decide, ascending; bit n of what an option counts for
    /// is that the n-th of them holds.
    pub(super) literals: Box<[LiteralId]>,
    /// Of a member: the literals that hold because it is there, ascending.
    pub(super) present: Box<[LiteralId]>,
}

/// Bits for what one child can count for.
pub(crate) type Counts = u128;

/// A counter or literal that a child counts for if it meets one of some demands, or all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) bit: Counts,
    pub(super) demands: Box<[Demand]>,
    /// Whether it must meet all of them.
    pub(super) is_all: bool,
    /// Whether not counting must be certain.
    pub(super) is_exact: bool,
}

/// One way for a child to count: what it must satisfy, and what it then counts for, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChildOption {
    pub(crate) goal: GoalId,
    pub(crate) counts: Counts,
}

/// The ways for a child to count, or why they cannot be told apart.
pub(super) type Options = Result<Arc<[ChildOption]>, GoalLimit>;

/// Ways in which one child can count.
const MAX_OPTIONS: usize = 256;

impl Goals {
    pub(super) fn rule(&mut self, rule: ChildRule) -> RuleId {
        RuleId(self.rules.insert_full(rule).0 as u32)
    }

    /// Every demand that a child may have to meet.
    pub(super) fn all_demands(&self, rule: RuleId) -> Vec<Demand> {
        let rule = &self.rules[rule.position()];
        let wanted = rule.wanted.iter().flat_map(|wanted| wanted.demands.iter());
        rule.base.iter().chain(wanted).copied().collect()
    }

    pub(super) fn child_rule(&self, id: RuleId) -> &ChildRule {
        &self.rules[id.position()]
    }

    /// What a child must satisfy whatever it counts for.
    pub(crate) fn base_goal(&mut self, rule: RuleId) -> GoalId {
        let base = self.rules[rule.0 as usize].base.clone();
        self.goal(base)
    }

    /// The ways for a child to count for what is `active`. Together they allow all that the child
    /// may be.
    ///
    /// # Errors
    /// `child_options` if there are too many to tell apart.
    pub(crate) fn options(&mut self, id: RuleId, active: Counts) -> Options {
        self.options_with(id, active, 0)
    }

    /// The ways for a member to count for what is left to be met: it must count for what every
    /// member must.
    pub(crate) fn member_options(&mut self, id: RuleId, condition: FormulaId) -> Options {
        let rule = &self.rules[id.position()];
        let (mut active, mut forced) = (0, 0);
        for (index, &literal) in rule.literals.iter().enumerate().take(Counts::BITS as usize) {
            if self.formulas.has(condition, literal) {
                active |= 1 << index;
                if rule.wanted[index].is_all && self.formulas.needs(condition, literal) {
                    forced |= 1 << index;
                }
            }
        }
        self.options_with(id, active, forced)
    }

    fn options_with(&mut self, id: RuleId, active: Counts, forced: Counts) -> Options {
        let concerned = self.rules[id.position()].wanted.iter().fold(0, |bits, w| bits | w.bit);
        let key = (id, active & concerned, forced);
        if let Some(known) = self.rule_options.get(&key) {
            return known.clone();
        }
        let options = self.split(id, active, forced);
        self.rule_options.insert(key, options.clone());
        options
    }

    /// Ways for a child to count that are enough to plan with: [`options`](Self::options) for all
    /// there is, or, where those are too many, one for each thing by itself.
    pub(super) fn plan_options(&mut self, id: RuleId) -> Options {
        let error = match self.options(id, Counts::MAX) {
            Ok(options) => return Ok(options),
            Err(error) => error,
        };
        let rule = self.rules[id.position()].clone();
        if rule.wanted.iter().any(|wanted| wanted.is_exact) {
            return Err(error);
        }
        let mut options = vec![ChildOption { goal: self.goal(rule.base.to_vec()), counts: 0 }];
        for wanted in &rule.wanted {
            let ways = if wanted.is_all { 1 } else { wanted.demands.len() };
            for own in wanted.demands.chunks(wanted.demands.len() / ways) {
                let goal = self.goal(rule.base.iter().chain(own).copied());
                options.push(ChildOption { goal, counts: wanted.bit });
            }
        }
        let all = rule.wanted.iter().filter(|wanted| wanted.is_all);
        let demands = all.clone().flat_map(|wanted| wanted.demands.iter());
        let goal = self.goal(rule.base.iter().chain(demands).copied());
        options.push(ChildOption { goal, counts: all.fold(0, |bits, wanted| bits | wanted.bit) });
        Ok(options.into())
    }

    /// Splits what a child may be by each thing it can count for.
    ///
    /// Ways that nothing can take are left out, and those that count anyway are not split. Scalars
    /// are split exactly, so that there are no more ways than kinds of values; for containers the
    /// way that does not count allows those that would, unless that must be certain.
    fn split(&mut self, id: RuleId, active: Counts, forced: Counts) -> Options {
        let rule = self.rules[id.position()].clone();
        let too_many = |goals: &mut Self| {
            let goal = goals.goal(rule.base.to_vec());
            GoalLimit {
                name: "child_options",
                limit: MAX_OPTIONS as u64,
                unit: "ways for one child to count",
                pointer: goals.pointer(goal),
            }
        };
        if rule.literals.len() > Counts::BITS as usize {
            return Err(too_many(self));
        }
        let mut ways: Vec<(Vec<Demand>, Counts)> = vec![(rule.base.to_vec(), 0)];
        for wanted in rule.wanted.iter().filter(|wanted| wanted.bit & forced != 0) {
            ways[0].0.extend(&wanted.demands);
            ways[0].1 |= wanted.bit;
        }
        for wanted in rule.wanted.iter().filter(|wanted| wanted.bit & active & !forced != 0) {
            let mut next = Vec::with_capacity(ways.len() + 1);
            for (demands, counts) in ways {
                if self.is_met(&demands, wanted) {
                    next.push((demands, counts | wanted.bit));
                    continue;
                }
                let mut failing = demands.clone();
                if wanted.is_all {
                    if let [demand] = *wanted.demands
                        && self.is_cheap_to_tell(&demands, demand)
                    {
                        failing.push(!demand);
                    }
                } else if wanted.is_exact
                    || wanted.demands.iter().all(|&demand| self.is_cheap_to_tell(&demands, demand))
                {
                    failing.extend(wanted.demands.iter().map(|&demand| !demand));
                }
                if failing.len() == demands.len() || self.may_hold(&failing) {
                    next.push((failing, counts));
                }
                let ways = if wanted.is_all { 1 } else { wanted.demands.len() };
                for own in wanted.demands.chunks(wanted.demands.len() / ways) {
                    let with: Vec<Demand> = demands.iter().chain(own).copied().collect();
                    if self.may_hold(&with) {
                        next.push((with, counts | wanted.bit));
                    }
                }
            }
            ways = next;
            if ways.len() > MAX_OPTIONS {
                return Err(too_many(self));
            }
        }
        if ways.is_empty() {
            ways.push((vec![Demand::fails(ALWAYS)], 0));
        }
        Ok(ways
            .into_iter()
            .map(|(demands, counts)| ChildOption { goal: self.goal(demands), counts })
            .collect())
    }

    /// Whether a child that meets some demands counts anyway.
    fn is_met(&mut self, demands: &[Demand], wanted: &Wanted) -> bool {
        let mut meets = |demand: Demand| {
            demands.contains(&demand)
                || self.holds_always(demand)
                || !demands.contains(&!demand)
                    && self.is_impossible(demands.iter().copied().chain([!demand]))
        };
        if wanted.is_all {
            wanted.demands.iter().all(|&demand| meets(demand))
        } else {
            wanted.demands.iter().any(|&demand| meets(demand))
        }
    }

    /// Whether some value may meet these demands.
    fn may_hold(&mut self, demands: &[Demand]) -> bool {
        !demands.iter().any(|&demand| demands.contains(&!demand))
            && !self.is_impossible(demands.iter().copied())
    }

    /// Whether containers are all on one side of a demand, so that only scalars have to be told
    /// apart.
    fn is_cheap_to_tell(&mut self, demands: &[Demand], demand: Demand) -> bool {
        let with = |demand| demands.iter().copied().chain([demand]).collect::<Vec<_>>();
        self.is_scalar(demands) || self.is_scalar(&with(demand)) || self.is_scalar(&with(!demand))
    }

    /// Whether every value meets a demand, by its look.
    pub(super) fn holds_always(&self, demand: Demand) -> bool {
        let node = self.schema.node(demand.node());
        if demand.is_negated() { node.is_false() } else { node.is_true() }
    }
}
