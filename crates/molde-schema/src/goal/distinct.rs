//! `uniqueItems`: which values the items of an array can still be.
//!
//! No two items may be equal, so what an array needs are values that differ, a *system of distinct
//! representatives*. A goal with more values than the array needs items never stands in the way:
//! whatever the others take, one is left. Of the other goals all values are known, and values that
//! are in the same of these goals are alike; so the search for items counts, for each such class,
//! how many of its values are used. It is exact, and its cost does not depend on how many values
//! there are in all.
//!
//! The values that a plan might use are the *pool* of an item: the first values of each goal, one
//! more than are needed. An item that is none of them leaves the plan as it is. So the automaton
//! follows the pool's values by name, and all other items are alike.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::items::{ItemState, count as count_item, is_complete};
use super::rule::Counts;
use super::values::ConstantId;
use super::{ArrayId, ArrayShape, GoalId, GoalLimit, Goals};

/// The goals of the items to come and the value that each may have.
pub(crate) type DistinctPlan = Arc<[(GoalId, ConstantId)]>;

/// Goals with few values that one array can have: their sets are bits.
const MAX_SMALL_GOALS: usize = 64;

/// What a plan depends on.
pub(super) type PlanKey = (ArrayId, u64, ItemState, Option<GoalId>);

/// The values of a goal that are free, as far as they matter.
struct Free {
    values: Vec<ConstantId>,
    /// Whether there are more than the array needs.
    is_ample: bool,
}

/// The free values of the goals of an array.
struct FreeValues {
    by_goal: FxHashMap<GoalId, Free>,
    /// The most items that are needed.
    needed: u64,
}

impl Goals {
    /// Whether an array whose items must differ can have any.
    pub(super) fn has_distinct_items(&mut self, id: ArrayId) -> Result<bool, GoalLimit> {
        let shape = Arc::clone(self.array(id));
        let start = ItemState::start(&shape);
        if !shape.is_unique || needed_items(&shape, 0, &start.counters) < 2 {
            return Ok(true);
        }
        Ok(self.distinct_plan(id, 0, &start, None)?.is_some())
    }

    /// Items that differ from each other and from those before, with which an open array can be
    /// finished; `None` if there are none. `first`, if given, is the goal of an item that `count`
    /// and `state` have counted already.
    pub(crate) fn distinct_plan(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
        first: Option<GoalId>,
    ) -> Result<Option<DistinctPlan>, GoalLimit> {
        let shape = Arc::clone(self.array(id));
        if first.is_none() && count >= shape.min_items && is_complete(&state.counters, &shape) {
            return Ok(Some(Arc::default()));
        }
        let key = (id, count, state.clone(), first);
        if let Some(known) = self.distinct_plans.get(&key) {
            return Ok(known.clone());
        }
        let needed = needed_items(&shape, count, &state.counters) + u64::from(first.is_some());
        if needed == 1 && state.values.is_empty() && state.pending.is_none() {
            return self.single_plan(&shape, count, state, first);
        }
        let free = self.free_values(&shape, count, state, first)?;
        let plan = if free.by_goal.values().all(|free| free.is_ample) {
            self.ample_plan(&shape, count, state, first, &free)?
        } else {
            self.scarce_plan(&shape, count, state, first, &free)?
        };
        let plan: Option<DistinctPlan> = plan.map(Arc::from);
        self.distinct_plans.insert(key, plan.clone());
        Ok(plan)
    }

    /// A plan of one item, which differs from nothing.
    fn single_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        first: Option<GoalId>,
    ) -> Result<Option<DistinctPlan>, GoalLimit> {
        let goal = match first {
            Some(goal) => Some(goal),
            None => {
                self.solved_item_plan(shape, count, state)?.and_then(|plan| plan.goals().next())
            }
        };
        let Some(goal) = goal else { return Ok(None) };
        if self.shortest(goal)?.is_none() {
            return Ok(None);
        }
        let mut text = Vec::new();
        self.write_value(goal, usize::MAX, &mut text)?;
        let value = self.value(&text)?;
        Ok(Some(Arc::from([(goal, value)])))
    }

    /// The values that a plan for the rest of an array might use, an item with the goal `first`
    /// being the next: those that have to be told apart from all others. With the number of them
    /// that are known for each goal.
    pub(crate) fn value_pool(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
        first: GoalId,
    ) -> Result<(Vec<ConstantId>, u64), GoalLimit> {
        let shape = Arc::clone(self.array(id));
        let free = self.free_values(&shape, count, state, Some(first))?;
        let mut pool: Vec<ConstantId> =
            free.by_goal.into_values().flat_map(|free| free.values).collect();
        pool.sort_unstable();
        pool.dedup();
        let known = free.needed + 1;
        Ok((pool, state.pending.map_or(known, |pending| pending.min(known))))
    }

    /// The first free values of each goal that an item from `count` on can have.
    fn free_values(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        first: Option<GoalId>,
    ) -> Result<FreeValues, GoalLimit> {
        let needed = needed_items(shape, count, &state.counters) + u64::from(first.is_some());
        let most = self.options.limits.distinct_items;
        if needed > most {
            return Err(GoalLimit {
                name: "distinct_items",
                limit: most,
                unit: "items that differ",
                pointer: String::new(),
            });
        }
        // Of the first values, one may be that of an item which is not known yet.
        if state.pending.is_some_and(|known| needed > known) {
            return Err(GoalLimit::unsettled());
        }
        let wanted = state.pending.map_or(needed + 1, |known| known.min(needed + 1)) as usize;
        let mut by_goal = FxHashMap::default();
        let rules = shape.prefix.get(count as usize..).unwrap_or_default();
        let mut goals: Vec<GoalId> = first.into_iter().collect();
        for &rule in rules.iter().chain([&shape.items]) {
            goals.extend(self.options(rule, Counts::MAX)?.iter().map(|option| option.goal));
        }
        goals.sort_unstable();
        goals.dedup();
        for goal in goals {
            by_goal.insert(goal, self.free_values_of(goal, &state.values, wanted, needed)?);
        }
        Ok(FreeValues { by_goal, needed })
    }

    fn free_values_of(
        &mut self,
        goal: GoalId,
        taken: &[ConstantId],
        wanted: usize,
        needed: u64,
    ) -> Result<Free, GoalLimit> {
        let is_endless = self.is_endless_goal(goal, super::values::ENDLESS_DEPTH)?;
        let enough = if is_endless { wanted } else { needed as usize + 1 };
        let mut ask = enough;
        let (mut values, is_complete) = loop {
            let list = self.first_values(goal, ask)?;
            let is_free = |value: &&ConstantId| taken.binary_search(value).is_err();
            let free: Vec<ConstantId> = list.found.iter().filter(is_free).copied().collect();
            if free.len() >= enough || list.is_complete {
                break (free, list.is_complete);
            }
            ask += enough - free.len();
        };
        let is_ample = is_endless || !is_complete || values.len() as u64 > needed;
        values.truncate(wanted);
        Ok(Free { values, is_ample })
    }

    /// A plan where every goal has values enough: the cheapest items, each with a value of its own.
    fn ample_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        first: Option<GoalId>,
        free: &FreeValues,
    ) -> Result<Option<Vec<(GoalId, ConstantId)>>, GoalLimit> {
        let Some(plan) = self.solved_item_plan(shape, count, state)? else { return Ok(None) };
        let goals = first.into_iter().chain(plan.goals());
        Ok(assign(goals.map(|goal| (goal, None)), free, &[]))
    }

    /// A plan where some goals have few values.
    fn scarce_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        first: Option<GoalId>,
        free: &FreeValues,
    ) -> Result<Option<Vec<(GoalId, ConstantId)>>, GoalLimit> {
        let classes = Classes::new(free, |value| self.value_text(value).len() as u64)?;
        // Dijkstra over (number of items, counters, values used of each class).
        type Node = (u64, Box<[u64]>, Box<[u32]>);
        type From = Option<(Node, GoalId, Option<usize>)>;
        let mut costs: FxHashMap<Node, (u64, From)> = FxHashMap::default();
        let mut open = BinaryHeap::new();
        let none: Box<[u32]> = vec![0; classes.values.len()].into();
        let start: Node = (count, state.counters.clone(), none);
        match first {
            None => {
                costs.insert(start.clone(), (0, None));
                open.push(Reverse((0, start)));
            }
            Some(goal) => {
                // A node of its own that no step leads to.
                let root: Node = (u64::MAX, Box::default(), Box::default());
                costs.insert(root.clone(), (0, None));
                for (class, cost, used) in classes.uses(goal, &start.2) {
                    let node = (start.0, start.1.clone(), used);
                    costs.insert(node.clone(), (cost, Some((root.clone(), goal, class))));
                    open.push(Reverse((cost, node)));
                }
            }
        }
        // No plan needs more items than these.
        let last = count.saturating_add(needed_items(shape, count, &state.counters));
        let mut steps = 0;
        while let Some(Reverse((cost, node))) = open.pop() {
            if costs[&node].0 < cost {
                continue;
            }
            steps += 1;
            if steps > self.options.limits.item_steps {
                return Err(super::items::too_many_steps(self.options.limits.item_steps));
            }
            let (at, counters, used) = &node;
            if is_complete(counters, shape) && *at >= shape.min_items {
                let mut items = Vec::new();
                let mut at = &node;
                while let Some((before, goal, class)) = &costs[at].1 {
                    items.push((*goal, *class));
                    at = before;
                }
                items.reverse();
                return Ok(assign(items.into_iter(), free, &classes.values));
            }
            if *at >= last || shape.max_items.is_some_and(|max| *at >= max) {
                continue;
            }
            for &option in self.options(shape.rule(*at), Counts::MAX)?.iter() {
                let (Some(own), Some(counters)) =
                    (self.shortest(option.goal)?, count_item(counters, option, shape))
                else {
                    continue;
                };
                for (class, of_class, used) in classes.uses(option.goal, used) {
                    let next = (at + 1, counters.clone(), used);
                    let own = if class.is_some() { of_class } else { own };
                    let cost = cost.saturating_add(own).saturating_add(2);
                    if costs.get(&next).is_none_or(|(known, _)| cost < *known) {
                        let from = Some((node.clone(), option.goal, class));
                        costs.insert(next.clone(), (cost, from));
                        open.push(Reverse((cost, next)));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// The most items that an array with `count` items may need.
fn needed_items(shape: &ArrayShape, count: u64, counters: &[u64]) -> u64 {
    let missing: u64 = counters
        .iter()
        .zip(&shape.counters)
        .map(|(count, (min, _))| min.saturating_sub(*count))
        .sum();
    // An item that counts may have to stand behind the prefix.
    let before = if missing > 0 { shape.prefix.len() as u64 } else { 0 };
    shape.min_items.max(before).saturating_sub(count).saturating_add(missing)
}

/// The values of goals that have few, by which of these goals they are in.
struct Classes {
    /// Goals that have few values.
    goals: Vec<GoalId>,
    sets: Vec<u64>,
    /// The values of each class, those with the shortest texts first.
    values: Vec<Vec<ConstantId>>,
    /// The lengths of their texts.
    lengths: Vec<Vec<u64>>,
}

impl Classes {
    fn new(free: &FreeValues, length: impl Fn(ConstantId) -> u64) -> Result<Self, GoalLimit> {
        let mut goals: Vec<GoalId> =
            free.by_goal.iter().filter(|(_, free)| !free.is_ample).map(|(&goal, _)| goal).collect();
        goals.sort_unstable();
        if goals.len() > MAX_SMALL_GOALS {
            return Err(GoalLimit {
                name: "distinct_choices",
                limit: MAX_SMALL_GOALS as u64,
                unit: "kinds of items with few values",
                pointer: String::new(),
            });
        }
        let mut sets: FxHashMap<ConstantId, u64> = FxHashMap::default();
        for (index, goal) in goals.iter().enumerate() {
            for &value in &free.by_goal[goal].values {
                *sets.entry(value).or_insert(0) |= 1 << index;
            }
        }
        let mut sorted: Vec<(u64, u64, ConstantId)> =
            sets.into_iter().map(|(value, set)| (set, length(value), value)).collect();
        sorted.sort_unstable();
        let mut classes = Self { goals, sets: Vec::new(), values: Vec::new(), lengths: Vec::new() };
        for (set, length, value) in sorted {
            if classes.sets.last() != Some(&set) {
                classes.sets.push(set);
                classes.values.push(Vec::new());
                classes.lengths.push(Vec::new());
            }
            if let (Some(values), Some(lengths)) =
                (classes.values.last_mut(), classes.lengths.last_mut())
            {
                values.push(value);
                lengths.push(length);
            }
        }
        Ok(classes)
    }

    /// The ways to use a value of a goal: the class it is of, if it is one of few, with the length
    /// of its text, and what is used then.
    fn uses(&self, goal: GoalId, used: &[u32]) -> Vec<(Option<usize>, u64, Box<[u32]>)> {
        let Ok(index) = self.goals.binary_search(&goal) else {
            return vec![(None, 0, used.into())];
        };
        let mut uses = Vec::new();
        for (class, set) in self.sets.iter().enumerate() {
            if set >> index & 1 == 1 && (used[class] as usize) < self.values[class].len() {
                let length = self.lengths[class][used[class] as usize];
                let mut used: Box<[u32]> = used.into();
                used[class] += 1;
                uses.push((Some(class), length, used));
            }
        }
        uses
    }
}

/// Gives each item a value of its own: of its class, or any of its goal.
fn assign(
    items: impl Iterator<Item = (GoalId, Option<usize>)> + Clone,
    free: &FreeValues,
    classes: &[Vec<ConstantId>],
) -> Option<Vec<(GoalId, ConstantId)>> {
    let mut used: rustc_hash::FxHashSet<ConstantId> = rustc_hash::FxHashSet::default();
    let mut next = vec![0; classes.len()];
    let mut scarce = Vec::new();
    for class in items.clone().filter_map(|(_, class)| class) {
        let value = classes[class].get(next[class]).copied()?;
        next[class] += 1;
        used.insert(value);
        scarce.push(value);
    }
    let mut scarce = scarce.into_iter();
    let mut plan = Vec::new();
    for (goal, class) in items {
        let value = if class.is_some() {
            scarce.next()?
        } else {
            let values = &free.by_goal.get(&goal)?.values;
            values.iter().copied().find(|value| !used.contains(value))?
        };
        used.insert(value);
        plan.push((goal, value));
    }
    Some(plan)
}
