//! Which goals have a value at all, and how short its text can be.
//!
//! The shortest text of a goal is the least fixpoint of "an object costs its braces and the
//! members it cannot do without": a goal of which every alternative needs the goal itself has no
//! finite text. Only members and items that cannot be left out are looked at, so solving a goal
//! touches a small part of a large schema.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::options::Style;

use super::plan::Progress;
use super::{Alternative, GoalId, GoalLimit, Goals, Known, ObjectId, Solution};

/// What a member with a name of its own takes, roughly: quotes, name, colon, value and comma.
const MEMBER_BYTES: u64 = 12;

impl Goals {
    /// The satisfiable alternatives of a goal and its shortest text.
    pub(crate) fn solve(&mut self, goal: GoalId) -> Result<Solution, GoalLimit> {
        match &self.known[goal.0 as usize] {
            Known::Solved(solution) => return Ok(solution.clone()),
            Known::Exceeded(limit) => return Err(limit.clone()),
            Known::Nothing | Known::Expanded(_) => {}
        }
        match self.solve_closure(goal) {
            Ok(solution) => Ok(solution),
            Err(limit) => {
                self.known[goal.0 as usize] = Known::Exceeded(limit.clone());
                Err(limit)
            }
        }
    }

    /// Bytes of the shortest value of a goal; `None` if it has none.
    pub(crate) fn shortest(&mut self, goal: GoalId) -> Result<Option<u64>, GoalLimit> {
        Ok(self.solve(goal)?.shortest.map(|(bytes, _)| bytes))
    }

    fn solve_closure(&mut self, goal: GoalId) -> Result<Solution, GoalLimit> {
        let mut order = vec![goal];
        let mut bytes: FxHashMap<GoalId, Option<u64>> = FxHashMap::default();
        bytes.insert(goal, None);
        let mut next = 0;
        while next < order.len() {
            let goal = order[next];
            next += 1;
            for alternative in self.alternatives(goal)?.iter() {
                for needed in self.needs(*alternative)? {
                    if let Known::Solved(solution) = &self.known[needed.0 as usize] {
                        bytes.entry(needed).or_insert(solution.shortest.map(|x| x.0));
                    } else if bytes.insert(needed, bytes.get(&needed).copied().flatten()).is_none()
                    {
                        order.push(needed);
                    }
                }
            }
        }
        // What a goal needs mostly comes after it: backwards, one pass does most of the work.
        loop {
            let mut changed = false;
            for &goal in order.iter().rev() {
                let mut best = bytes[&goal];
                for alternative in self.alternatives(goal)?.iter() {
                    let cost = self.alternative_bytes(*alternative, &bytes);
                    if let Some(cost) = cost
                        && best.is_none_or(|best| cost < best)
                    {
                        best = Some(cost);
                        changed = true;
                    }
                }
                bytes.insert(goal, best);
            }
            if !changed {
                break;
            }
        }
        for &goal in &order {
            let alternatives = self.alternatives(goal)?;
            let mut shortest: Option<(u64, Alternative)> = None;
            let mut live = Vec::with_capacity(alternatives.len());
            for &alternative in alternatives.iter() {
                if let Some(cost) = self.alternative_bytes(alternative, &bytes) {
                    live.push(alternative);
                    if shortest.is_none_or(|(best, _)| cost < best) {
                        shortest = Some((cost, alternative));
                    }
                }
            }
            let limit = self.options.limits.completion_bytes;
            if let Some((bytes, _)) = shortest
                && bytes > limit
            {
                return Err(GoalLimit {
                    name: "completion_bytes",
                    limit,
                    unit: "bytes",
                    pointer: self.pointer(goal),
                });
            }
            let solution = Solution { alternatives: live.into(), shortest };
            self.known[goal.0 as usize] = Known::Solved(solution);
        }
        match &self.known[goal.0 as usize] {
            Known::Solved(solution) => Ok(solution.clone()),
            _ => Ok(Solution { alternatives: Arc::default(), shortest: None }),
        }
    }

    fn alternatives(&mut self, goal: GoalId) -> Result<Arc<[Alternative]>, GoalLimit> {
        match &self.known[goal.0 as usize] {
            Known::Nothing => {
                let alternatives = self.expand(goal)?;
                self.known[goal.0 as usize] = Known::Expanded(Arc::clone(&alternatives));
                Ok(alternatives)
            }
            Known::Expanded(alternatives) => Ok(Arc::clone(alternatives)),
            Known::Solved(solution) => Ok(Arc::clone(&solution.alternatives)),
            Known::Exceeded(limit) => Err(limit.clone()),
        }
    }

    /// The goals whose shortest texts decide about the shortest text of an alternative.
    fn needs(&mut self, alternative: Alternative) -> Result<Vec<GoalId>, GoalLimit> {
        Ok(match alternative {
            Alternative::Array(id) => {
                let shape = self.array(id);
                let own = shape.min_items.min(shape.prefix.len() as u64);
                let mut needed: Vec<GoalId> = (0..own).map(|at| shape.goal(at)).collect();
                if shape.min_items > own {
                    needed.push(shape.items);
                }
                needed
            }
            Alternative::Object(id) => {
                let shape = Arc::clone(self.object(id));
                let limit = self.options.limits.completion_bytes;
                if shape.min_properties.saturating_mul(MEMBER_BYTES) > limit {
                    let pointer = String::new();
                    return Err(GoalLimit {
                        name: "completion_bytes",
                        limit,
                        unit: "bytes",
                        pointer,
                    });
                }
                let required =
                    shape.is_required.iter().filter(|&&required| required).count() as u64;
                if shape.min_properties <= required {
                    let pairs = shape.goals.iter().zip(&shape.is_required);
                    pairs.filter(|(_, required)| **required).map(|(goal, _)| *goal).collect()
                } else {
                    let mut needed = shape.goals.to_vec();
                    for (_, nodes) in self.name_classes(id)? {
                        needed.push(self.goal(nodes));
                    }
                    needed
                }
            }
            _ => Vec::new(),
        })
    }

    fn alternative_bytes(
        &mut self,
        alternative: Alternative,
        bytes: &FxHashMap<GoalId, Option<u64>>,
    ) -> Option<u64> {
        let separator = self.separator().len() as u64;
        match alternative {
            Alternative::Literal(literal) => Some(literal.text().len() as u64),
            Alternative::Number(id) => {
                let automaton = self.number(id);
                let start = automaton.start();
                Some(automaton.shortest(start).len() as u64)
            }
            Alternative::String(id) => {
                let shape = self.string(id);
                // Too long to offer, and too long to build just to see how long it is.
                if shape.min_length > self.options.limits.completion_bytes {
                    return Some(shape.min_length);
                }
                Some(shape.shortest_text(None).len() as u64 + 2)
            }
            Alternative::Array(id) => {
                let shape = self.array(id);
                if shape.max_items.is_some_and(|max| max < shape.min_items) {
                    return None;
                }
                let own = shape.min_items.min(shape.prefix.len() as u64);
                let between = separator.saturating_mul(shape.min_items.saturating_sub(1));
                let mut total = between.saturating_add(2);
                for at in 0..own {
                    total = total.saturating_add(bytes.get(&shape.goal(at)).copied().flatten()?);
                }
                let rest = shape.min_items - own;
                if rest > 0 {
                    let item = bytes.get(&shape.items).copied().flatten()?;
                    total = total.saturating_add(item.saturating_mul(rest));
                }
                Some(total)
            }
            Alternative::Object(id) => self.object_bytes(id, bytes),
        }
    }

    fn object_bytes(
        &mut self,
        id: ObjectId,
        bytes: &FxHashMap<GoalId, Option<u64>>,
    ) -> Option<u64> {
        let known = |goal| bytes.get(&goal).copied().flatten();
        let extra = self.extra_names_so_far(id, known);
        let members = self.plan(id, &Progress::default(), known, extra.as_ref())?;
        let mut total = 2;
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                total += self.separator().len() as u64;
            }
            total += member.key_bytes() + self.colon().len() as u64;
            total = total.saturating_add(bytes.get(&member.goal).copied().flatten()?);
        }
        Some(total)
    }

    /// What stands between two members or items, at the shortest.
    pub(crate) fn separator(&self) -> &'static [u8] {
        if self.options.style == Style::Spaced { b", " } else { b"," }
    }

    /// What stands between a key and its value, at the shortest.
    pub(crate) fn colon(&self) -> &'static [u8] {
        if self.options.style == Style::Spaced { b": " } else { b":" }
    }
}
