//! Whether a goal has more values than any array can hold.

use std::sync::Arc;

use crate::number::NumberAutomaton;

use super::super::items::ItemState;
use super::super::{Alternative, GoalId, GoalLimit, Goals, Progress};

/// How far the question for endlessly many values looks into containers.
pub(in super::super) const ENDLESS_DEPTH: usize = 4;

impl Goals {
    /// Whether a goal is known to have more values than any array can hold.
    pub(in super::super) fn is_endless_goal(
        &mut self,
        goal: GoalId,
        depth: usize,
    ) -> Result<bool, GoalLimit> {
        if depth == 0 || self.values.asking >= ENDLESS_DEPTH {
            return Ok(false);
        }
        for &alternative in self.solve(goal)?.alternatives.iter() {
            self.values.asking += 1;
            let answer = self.is_endless(alternative, depth);
            self.values.asking -= 1;
            // What is beyond a limit is not known to be.
            if answer.unwrap_or(false) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn is_endless(
        &mut self,
        alternative: Alternative,
        depth: usize,
    ) -> Result<bool, GoalLimit> {
        Ok(match alternative {
            Alternative::Literal(_) => false,
            Alternative::String(id) => self.string(id).is_endless(),
            Alternative::Number(id) => {
                let specs = self.number_specs[id.0 as usize].clone();
                specs.iter().any(|spec| {
                    let unbounded = spec.minimum.is_none() || spec.maximum.is_none();
                    spec.one_of.is_none()
                        && unbounded
                        && NumberAutomaton::new(
                            std::slice::from_ref(spec),
                            self.options.number_style,
                            &self.number_limits,
                        )
                        .is_ok_and(|automaton| !automaton.is_empty())
                })
            }
            Alternative::Array(_) | Alternative::Object(_) if depth == 0 => false,
            Alternative::Array(id) => {
                let shape = Arc::clone(self.array(id));
                let item = self.base_goal(shape.items);
                if shape.counters.is_empty() && shape.max_items.is_none() && !shape.is_unique {
                    return Ok(self.shortest(item)?.is_some());
                }
                // Any item that it cannot do without may have any of its values.
                let start = ItemState::start(&shape);
                let goals: Vec<GoalId> = if shape.is_unique {
                    let plan = self.distinct_plan(id, 0, &start, None)?.unwrap_or_default();
                    plan.iter().map(|&(goal, _)| goal).collect()
                } else {
                    let plan = self.solved_item_plan(&shape, 0, &start)?.unwrap_or_default();
                    plan.items.into_iter().chain(plan.repeat.map(|(goal, _)| goal)).collect()
                };
                for goal in goals {
                    if self.is_endless_goal(goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                // So may the first one, if nothing else is asked of it.
                shape.counters.is_empty() && shape.min_items == 0 && shape.max_items != Some(0) && {
                    let first = self.base_goal(shape.rule(0));
                    self.is_endless_goal(first, depth - 1)?
                }
            }
            Alternative::Object(id) => {
                let shape = Arc::clone(self.object(id));
                let Some(members) = self.solved_plan(id, &Progress::start(&shape))? else {
                    return Ok(false);
                };
                for member in members.iter() {
                    if self.is_endless_goal(member.goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                if shape.is_bounded() {
                    return Ok(false);
                }
                // Members that may be there, and names that may be.
                let costs = self.member_costs(id)?;
                for (&rule, cost) in shape.members.iter().zip(costs.iter()) {
                    let goal = self.base_goal(rule);
                    if matches!(cost, Ok(Some(_))) && self.is_endless_goal(goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                let extra = self.extra_names(id)?;
                extra
                    .classes
                    .iter()
                    .any(|class| class.names_from(class.language.start()) == u64::MAX)
            }
        })
    }
}
