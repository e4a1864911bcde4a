//! What one child must be, and the ways in which it can count.

use std::sync::Arc;

use crate::ir::{ALWAYS, Demand};

use super::{GoalId, GoalLimit, Goals};

/// Index of a [`ChildRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RuleId(u32);

/// What an item or a member must satisfy, and what it may count for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChildRule {
    pub(super) base: Box<[Demand]>,
    pub(super) wanted: Box<[Wanted]>,
}

/// A counter or clause that a child counts for if it meets one of some demands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) bit: u64,
    pub(super) demands: Box<[Demand]>,
    /// Whether not counting must be certain.
    pub(super) is_exact: bool,
}

/// One way for a child to count: what it must satisfy, and what it then counts for, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChildOption {
    pub(crate) goal: GoalId,
    pub(crate) counts: u64,
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
        let rule = &self.rules[rule.0 as usize];
        let wanted = rule.wanted.iter().flat_map(|wanted| wanted.demands.iter());
        rule.base.iter().chain(wanted).copied().collect()
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
    pub(crate) fn options(
        &mut self,
        id: RuleId,
        active: u64,
    ) -> Result<Arc<[ChildOption]>, GoalLimit> {
        let concerned = self.rules[id.0 as usize].wanted.iter().fold(0, |bits, w| bits | w.bit);
        let key = (id, active & concerned);
        if let Some(known) = self.rule_options.get(&key) {
            return known.clone();
        }
        let options = self.split(id, active);
        self.rule_options.insert(key, options.clone());
        options
    }

    /// Ways for a child to count that are enough to plan with: [`options`](Self::options) for all
    /// there is, or, where those are too many, one for each thing by itself.
    pub(super) fn plan_options(&mut self, id: RuleId) -> Options {
        let error = match self.options(id, u64::MAX) {
            Ok(options) => return Ok(options),
            Err(error) => error,
        };
        let rule = self.rules[id.0 as usize].clone();
        if rule.wanted.iter().any(|wanted| wanted.is_exact) {
            return Err(error);
        }
        let mut options = vec![ChildOption { goal: self.goal(rule.base.to_vec()), counts: 0 }];
        for wanted in &rule.wanted {
            for &demand in &wanted.demands {
                let goal = self.goal(rule.base.iter().copied().chain([demand]));
                options.push(ChildOption { goal, counts: wanted.bit });
            }
        }
        Ok(options.into())
    }

    /// Splits what a child may be by each thing it can count for.
    ///
    /// Ways that nothing can take are left out, and those that count anyway are not split. Scalars
    /// are split exactly, so that there are no more ways than kinds of values; for containers the
    /// way that does not count allows those that would, unless that must be certain.
    fn split(&mut self, id: RuleId, active: u64) -> Result<Arc<[ChildOption]>, GoalLimit> {
        let rule = self.rules[id.0 as usize].clone();
        let mut ways: Vec<(Vec<Demand>, u64)> = vec![(rule.base.to_vec(), 0)];
        for wanted in rule.wanted.iter().filter(|wanted| wanted.bit & active != 0) {
            let mut next = Vec::with_capacity(ways.len() + 1);
            for (demands, counts) in ways {
                let with = |demand: Demand| demands.iter().copied().chain([demand]);
                let is_met = wanted.demands.iter().any(|&demand| {
                    demands.contains(&demand)
                        || self.holds_always(demand)
                        || self.is_impossible(with(!demand))
                });
                if is_met {
                    next.push((demands, counts | wanted.bit));
                    continue;
                }
                let mut failing = demands.clone();
                if wanted.is_exact || self.is_scalar(&demands) {
                    failing.extend(wanted.demands.iter().map(|&demand| !demand));
                }
                if failing.len() == demands.len() || !self.is_impossible(failing.iter().copied()) {
                    next.push((failing, counts));
                }
                for &demand in &wanted.demands {
                    if !self.is_impossible(with(demand)) {
                        next.push((with(demand).collect(), counts | wanted.bit));
                    }
                }
            }
            ways = next;
            if ways.len() > MAX_OPTIONS {
                let goal = self.goal(rule.base);
                return Err(GoalLimit {
                    name: "child_options",
                    limit: MAX_OPTIONS as u64,
                    unit: "ways for one child to count",
                    pointer: self.pointer(goal),
                });
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

    /// Whether every value meets a demand, by its look.
    fn holds_always(&self, demand: Demand) -> bool {
        let node = self.schema.node(demand.node());
        if demand.is_negated() { node.is_false() } else { node.is_true() }
    }
}
