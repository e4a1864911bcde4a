//! Which goals have a value at all, and how short its text can be.
//!
//! The shortest text of a goal is the least fixpoint of "an object costs its braces and the
//! members it cannot do without": a goal of which every alternative needs the goal itself has no
//! finite text. Only members and items that cannot be left out are looked at, so solving a goal
//! touches a small part of a large schema.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::options::Style;

use super::items::ItemState;
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
            Known::Nothing | Known::Pending | Known::Expanded(_) => {}
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
                    let cost = self.alternative_bytes(*alternative, &bytes)?;
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
            let limit = self.options.limits.completion_bytes;
            let mut live = Vec::with_capacity(alternatives.len());
            let mut too_long = Vec::new();
            for &alternative in alternatives.iter() {
                if let Some(cost) = self.alternative_bytes(alternative, &bytes)? {
                    if cost > limit { &mut too_long } else { &mut live }.push(alternative);
                    if shortest.is_none_or(|(best, _)| cost < best) {
                        shortest = Some((cost, alternative));
                    }
                }
            }
            if let Some((bytes, _)) = shortest
                && bytes > limit
            {
                return Err(self.too_long(goal));
            }
            let (alternatives, too_long) = (live.into(), too_long.into());
            let solution = Solution { alternatives, shortest, too_long };
            self.known[goal.0 as usize] = Known::Solved(solution);
        }
        match &self.known[goal.0 as usize] {
            Known::Solved(solution) => Ok(solution.clone()),
            _ => Ok(Solution {
                alternatives: Arc::default(),
                shortest: None,
                too_long: Arc::default(),
            }),
        }
    }

    /// The limit on the bytes of a completion, at a goal.
    pub(crate) fn too_long(&self, goal: GoalId) -> GoalLimit {
        GoalLimit {
            name: "completion_bytes",
            limit: self.options.limits.completion_bytes,
            unit: "bytes",
            pointer: self.pointer(goal),
        }
    }

    fn alternatives(&mut self, goal: GoalId) -> Result<Arc<[Alternative]>, GoalLimit> {
        match &self.known[goal.0 as usize] {
            Known::Nothing => {
                self.known[goal.0 as usize] = Known::Pending;
                let alternatives = self.expand(goal)?;
                let alternatives = self.with_distinct_items(alternatives)?;
                self.known[goal.0 as usize] = Known::Expanded(Arc::clone(&alternatives));
                Ok(alternatives)
            }
            Known::Pending => Err(GoalLimit {
                name: "distinct_items",
                limit: 0,
                unit: "recursions through `uniqueItems`",
                pointer: self.pointer(goal),
            }),
            Known::Expanded(alternatives) => Ok(Arc::clone(alternatives)),
            Known::Solved(solution) => Ok(Arc::clone(&solution.alternatives)),
            Known::Exceeded(limit) => Err(limit.clone()),
        }
    }

    /// Leaves out arrays whose items must differ and cannot.
    fn with_distinct_items(
        &mut self,
        alternatives: Arc<[Alternative]>,
    ) -> Result<Arc<[Alternative]>, GoalLimit> {
        let is_unique = |goals: &Self, alternative: &Alternative| matches!(alternative, Alternative::Array(id) if goals.array(*id).is_unique);
        if !alternatives.iter().any(|alternative| is_unique(self, alternative)) {
            return Ok(alternatives);
        }
        let mut kept = Vec::with_capacity(alternatives.len());
        for &alternative in alternatives.iter() {
            match alternative {
                Alternative::Array(id) if !self.has_distinct_items(id)? => {}
                _ => kept.push(alternative),
            }
        }
        Ok(kept.into())
    }

    /// The goals whose shortest texts decide about the shortest text of an alternative.
    fn needs(&mut self, alternative: Alternative) -> Result<Vec<GoalId>, GoalLimit> {
        let limit = self.options.limits.completion_bytes;
        let too_long =
            || GoalLimit { name: "completion_bytes", limit, unit: "bytes", pointer: String::new() };
        Ok(match alternative {
            Alternative::Array(id) => {
                let shape = Arc::clone(self.array(id));
                let most = shape.counters.iter().map(|(min, _)| *min).max().unwrap_or(0);
                if most > limit {
                    return Err(too_long());
                }
                self.item_goals(&shape, &ItemState::start(&shape))?
            }
            Alternative::Object(id) => {
                if self.object(id).min_properties.saturating_mul(MEMBER_BYTES) > limit {
                    return Err(too_long());
                }
                self.member_goals(id)?
            }
            _ => Vec::new(),
        })
    }

    fn alternative_bytes(
        &mut self,
        alternative: Alternative,
        bytes: &FxHashMap<GoalId, Option<u64>>,
    ) -> Result<Option<u64>, GoalLimit> {
        let separator = self.separator().len() as u64;
        Ok(match alternative {
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
                    return Ok(Some(shape.min_length));
                }
                Some(shape.shortest_text(None).len() as u64 + 2)
            }
            Alternative::Array(id) => {
                let shape = Arc::clone(self.array(id));
                let known = |goal: GoalId| bytes.get(&goal).copied().flatten();
                self.item_plan(&shape, 0, &ItemState::start(&shape), &known)?
                    .and_then(|plan| plan.bytes(separator, &known))
                    .map(|items| items.saturating_add(2))
            }
            Alternative::Object(id) => self.object_bytes(id, bytes)?,
        })
    }

    fn object_bytes(
        &mut self,
        id: ObjectId,
        bytes: &FxHashMap<GoalId, Option<u64>>,
    ) -> Result<Option<u64>, GoalLimit> {
        let known = |goal: GoalId| bytes.get(&goal).copied().flatten();
        let extra = self.extra_names_so_far(id, &known)?;
        let start = Progress::start(self.object(id));
        let Some(members) = self.plan(id, &start, &known, extra.as_ref(), false)? else {
            return Ok(None);
        };
        let mut total: u64 = 2;
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                total += self.separator().len() as u64;
            }
            total += member.key_bytes() + self.colon().len() as u64;
            let value = match known(member.goal) {
                // What is related to other members is solved as it is planned.
                None if self.object(id).relations.is_some() => self.shortest(member.goal)?,
                value => value,
            };
            let Some(value) = value else { return Ok(None) };
            total = total.saturating_add(value);
        }
        Ok(Some(total))
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
