//! The items that an array still needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ir::Demand;

use super::rule::Counts;
use super::values::ConstantId;
use super::{ArrayId, ArrayShape, ChildOption, GoalId, GoalLimit, Goals};

/// What an open array remembers of its items beyond their number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ItemState {
    /// The count of each counter, as far as it matters; empty where the array has none.
    pub(crate) counters: Box<[u64]>,
    /// The items so far, where they are compared, ascending.
    pub(crate) values: Box<[ConstantId]>,
    /// One more item has ended whose value is not recorded yet (see
    /// [`SchemaAutomaton::settle`](crate::SchemaAutomaton::settle)): so many of the first free
    /// values of each goal it is not.
    pub(crate) pending: Option<u64>,
    /// Whether two items were equal, where two must be.
    pub(crate) repeated: bool,
}

impl ItemState {
    pub(crate) fn start(shape: &ArrayShape) -> Self {
        Self { counters: vec![0; shape.counters.len()].into(), ..Self::default() }
    }

    /// After an item that counts as `option` says; `None` if a counter exceeds its bound.
    pub(crate) fn counted(&self, option: ChildOption, shape: &ArrayShape) -> Option<Self> {
        Some(Self { counters: count(&self.counters, option, shape)?, ..self.clone() })
    }

    /// With the value of an item that has ended.
    pub(crate) fn with_value(&self, value: ConstantId) -> Self {
        let mut after = self.clone();
        if let Err(at) = self.values.binary_search(&value) {
            let mut values = self.values.to_vec();
            values.insert(at, value);
            after.values = values.into();
        }
        after
    }

    /// The counters for which it matters whether an item counts, as bits.
    pub(crate) fn active(&self, shape: &ArrayShape) -> Counts {
        let active =
            |(count, (min, max)): (&u64, &(u64, Option<u64>))| max.is_some() || count < min;
        self.counters
            .iter()
            .zip(&shape.counters)
            .enumerate()
            .fold(0, |bits, (index, counter)| bits | Counts::from(active(counter)) << index)
    }

    /// Whether every counter has what it needs.
    pub(crate) fn is_complete(&self, shape: &ArrayShape) -> bool {
        is_complete(&self.counters, shape)
    }
}

pub(super) fn is_complete(counters: &[u64], shape: &ArrayShape) -> bool {
    counters.iter().zip(&shape.counters).all(|(count, (min, _))| count >= min)
}

pub(super) fn count(
    counters: &[u64],
    option: ChildOption,
    shape: &ArrayShape,
) -> Option<Box<[u64]>> {
    let mut after: Box<[u64]> = counters.into();
    for (index, (count, (min, max))) in after.iter_mut().zip(&shape.counters).enumerate() {
        let bit: Counts = 1 << index;
        if option.counts & bit == 0 {
            continue;
        }
        match max {
            Some(max) if *count >= *max => return None,
            Some(_) => *count += 1,
            None => *count = (*count + 1).min(*min),
        }
    }
    Some(after)
}

/// The shortest text of a goal, as far as it is known; `None` if it has none.
pub(super) type Bytes<'a> = &'a dyn Fn(GoalId) -> Option<u64>;

/// Whether two items are equal, where two must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repeat {
    /// They need not be, or are.
    Done,
    /// No item is meant for it yet.
    Open,
    /// An item with the first goal was written, and one that may have the second goal must be equal
    /// to it.
    Half(GoalId, GoalId),
}

/// Goals that are tried in pairs for two equal items.
const MAX_TWIN_GOALS: usize = 32;

impl Goals {
    /// The items with which an array can be finished; `None` if it cannot. The shortest text, or
    /// close to it. Whether items must differ is not asked here.
    pub(super) fn item_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        bytes: Bytes<'_>,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        let repeat = if shape.repeats && !state.repeated { Repeat::Open } else { Repeat::Done };
        self.item_plan_with(shape, count, state, repeat, bytes)
    }

    fn item_plan_with(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
        repeat: Repeat,
        bytes: Bytes<'_>,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        if shape.counters.is_empty() && repeat == Repeat::Done {
            return Ok(self.plain_plan(shape, count, bytes));
        }
        let twins = if repeat == Repeat::Open { self.option_goals(shape)? } else { Vec::new() };
        // Dijkstra over (number of items, counters, whether two are equal). Where counters have what
        // they need and positions no longer matter, the rest is the cheapest item again and again.
        type Node = (u64, Box<[u64]>, Repeat);
        let start: Node = (count, state.counters.clone(), repeat);
        let mut costs: FxHashMap<Node, (u64, Option<(Node, GoalId)>)> = FxHashMap::default();
        let mut open = BinaryHeap::new();
        costs.insert(start.clone(), (0, None));
        open.push(Reverse((0, start)));
        let mut steps = 0;
        while let Some(Reverse((cost, node))) = open.pop() {
            if costs[&node].0 < cost {
                continue;
            }
            steps += 1;
            if steps > self.options.limits.item_steps {
                return Err(too_many_steps(self.options.limits.item_steps));
            }
            let (count, counters, repeat) = &node;
            if is_complete(counters, shape) && *repeat == Repeat::Done {
                let rest = if *count >= shape.min_items {
                    Some(ItemPlan::default())
                } else {
                    self.filler(shape, *count, counters, bytes)?
                };
                if let Some(rest) = rest {
                    let mut items = Vec::new();
                    let mut at = &node;
                    while let Some((before, goal)) = &costs[at].1 {
                        items.push(*goal);
                        at = before;
                    }
                    items.reverse();
                    items.extend(rest.items);
                    return Ok(Some(ItemPlan { items, repeat: rest.repeat }));
                }
            }
            if shape.max_items.is_some_and(|max| *count >= max) {
                continue;
            }
            for &option in self.options(shape.rule(*count), Counts::MAX)?.iter() {
                let Some(counters) = self::count(counters, option, shape) else { continue };
                let mut ways = vec![(option.goal, *repeat)];
                match *repeat {
                    Repeat::Open => {
                        if !state.values.is_empty() {
                            let known = self.known_item(option.goal, &state.values)?;
                            ways.push((known, Repeat::Done));
                        }
                        for &other in &twins {
                            let both = self.twin(option.goal, other);
                            ways.push((both, Repeat::Half(both, other)));
                        }
                    }
                    Repeat::Half(both, other) if other == option.goal => {
                        ways.push((both, Repeat::Done));
                    }
                    Repeat::Done | Repeat::Half(..) => {}
                }
                for (goal, repeat) in ways {
                    let Some(own) = bytes(goal) else { continue };
                    let next = (shape.saturate(count + 1), counters.clone(), repeat);
                    let cost = cost.saturating_add(own).saturating_add(2);
                    if costs.get(&next).is_none_or(|(known, _)| cost < *known) {
                        costs.insert(next.clone(), (cost, Some((node.clone(), goal))));
                        open.push(Reverse((cost, next)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// An item that satisfies two goals.
    fn twin(&mut self, one: GoalId, two: GoalId) -> GoalId {
        let more = self.ids[two.0 as usize].to_vec();
        self.extended(one, more)
    }

    /// An item that equals one of those before it.
    fn known_item(&mut self, goal: GoalId, values: &[ConstantId]) -> Result<GoalId, GoalLimit> {
        let known = self.one_of_values(values)?;
        Ok(self.extended(goal, [Demand::holds(known)]))
    }

    /// The goals that some item of an array can have.
    fn option_goals(&mut self, shape: &ArrayShape) -> Result<Vec<GoalId>, GoalLimit> {
        let mut goals = Vec::new();
        for &rule in shape.prefix.iter().chain([&shape.items]) {
            for option in self.options(rule, Counts::MAX)?.iter() {
                if !goals.contains(&option.goal) {
                    goals.push(option.goal);
                }
            }
        }
        if shape.repeats && goals.len() > MAX_TWIN_GOALS {
            return Err(GoalLimit {
                name: "twin_goals",
                limit: MAX_TWIN_GOALS as u64,
                unit: "kinds of items of which two must be equal",
                pointer: String::new(),
            });
        }
        Ok(goals)
    }

    /// The items up to the least number of them, where nothing counts items.
    fn plain_plan(&mut self, shape: &ArrayShape, count: u64, bytes: Bytes<'_>) -> Option<ItemPlan> {
        if count >= shape.min_items {
            return Some(ItemPlan::default());
        }
        let own = shape.min_items.min(shape.prefix.len() as u64);
        let mut items = Vec::new();
        for at in count..own {
            let goal = self.base_goal(shape.rule(at));
            bytes(goal)?;
            items.push(goal);
        }
        let rest = shape.min_items - own.max(count);
        let goal = self.base_goal(shape.items);
        if rest > 0 {
            bytes(goal)?;
        }
        Some(ItemPlan { items, repeat: (rest > 0).then_some((goal, rest)) })
    }

    /// The items up to the least number of them, where counters have what they need; `None` if
    /// items of one kind do not do.
    fn filler(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        counters: &[u64],
        bytes: Bytes<'_>,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        if count < shape.prefix.len() as u64 {
            return Ok(None);
        }
        let options = self.options(shape.items, Counts::MAX)?;
        let is_idle = |option: &ChildOption| {
            self::count(counters, *option, shape).is_some_and(|after| *after == *counters)
        };
        let cheapest = options
            .iter()
            .copied()
            .filter(is_idle)
            .filter_map(|option| Some((bytes(option.goal)?, option.goal)))
            .min();
        Ok(cheapest.map(|(_, goal)| ItemPlan {
            items: Vec::new(),
            repeat: Some((goal, shape.min_items - count)),
        }))
    }

    /// [`item_plan`](Self::item_plan) of an open array, with what is known for certain.
    pub(super) fn solved_item_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        state: &ItemState,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        if !shape.remembers() && count >= shape.min_items {
            return Ok(Some(ItemPlan::default()));
        }
        let lookup = self.item_lookup(shape, state)?;
        let bytes = |goal: GoalId| lookup.get(&goal).copied().flatten();
        self.item_plan(shape, count, state, &bytes)
    }

    fn item_lookup(
        &mut self,
        shape: &ArrayShape,
        state: &ItemState,
    ) -> Result<FxHashMap<GoalId, Option<u64>>, GoalLimit> {
        let mut lookup: FxHashMap<GoalId, Option<u64>> = FxHashMap::default();
        for goal in self.item_goals(shape, state)? {
            lookup.insert(goal, self.shortest(goal)?);
        }
        Ok(lookup)
    }

    /// The goals that decide whether and how an array can be finished.
    pub(super) fn item_goals(
        &mut self,
        shape: &ArrayShape,
        state: &ItemState,
    ) -> Result<Vec<GoalId>, GoalLimit> {
        let repeats = shape.repeats && !state.repeated;
        if !shape.counters.is_empty() || repeats {
            let mut goals = self.option_goals(shape)?;
            if repeats {
                let own = goals.clone();
                for &one in &own {
                    if !state.values.is_empty() {
                        goals.push(self.known_item(one, &state.values)?);
                    }
                    goals.extend(own.iter().map(|&two| self.twin(one, two)));
                }
            }
            return Ok(goals);
        }
        let own = shape.min_items.min(shape.prefix.len() as u64);
        let mut goals: Vec<GoalId> = (0..own).map(|at| self.base_goal(shape.rule(at))).collect();
        if shape.min_items > own {
            goals.push(self.base_goal(shape.items));
        }
        Ok(goals)
    }

    /// Whether an array can be finished.
    pub(crate) fn can_finish_items(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
    ) -> Result<bool, GoalLimit> {
        let shape = Arc::clone(self.array(id));
        if shape.is_unique {
            return Ok(self.distinct_plan(id, count, state, None)?.is_some());
        }
        if shape.counters.is_empty() && !shape.repeats {
            return Ok(true);
        }
        Ok(self.solved_item_plan(&shape, count, state)?.is_some())
    }

    /// The ways to write one more item of an open array: its goal, and what the array remembers
    /// then. Each leaves a way to finish the array, whatever value the item gets that is not in the
    /// [pool](Self::value_pool).
    pub(crate) fn item_ways(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
    ) -> Result<Vec<(GoalId, ItemState)>, GoalLimit> {
        let shape = Arc::clone(self.array(id));
        let mut ways = Vec::with_capacity(1);
        if shape.max_items.is_some_and(|max| count >= max) {
            return Ok(ways);
        }
        let next = shape.saturate(count + 1);
        let options = self.options(shape.rule(count), state.active(&shape))?;
        for &option in options.iter() {
            let Some(counted) = state.counted(option, &shape) else { continue };
            if shape.is_unique {
                if self.shortest(option.goal)?.is_some()
                    && self.distinct_plan(id, next, &counted, Some(option.goal))?.is_some()
                {
                    ways.push((option.goal, counted));
                }
            } else if shape.repeats && !state.repeated {
                self.repeating_ways(&shape, next, option.goal, &counted, &mut ways)?;
            } else if self.shortest(option.goal)?.is_some()
                && self.can_finish_items(id, next, &counted)?
            {
                ways.push((option.goal, counted));
            }
        }
        Ok(ways)
    }

    /// The ways to write an item where two must be equal and none are: what it may be, and, where
    /// nothing but it could be repeated later, what can be.
    fn repeating_ways(
        &mut self,
        shape: &ArrayShape,
        next: u64,
        goal: GoalId,
        counted: &ItemState,
        ways: &mut Vec<(GoalId, ItemState)>,
    ) -> Result<(), GoalLimit> {
        if counted.pending.is_some() {
            return Err(GoalLimit::unsettled());
        }
        let lookup = self.item_lookup(shape, counted)?;
        let bytes = |goal: GoalId| lookup.get(&goal).copied().flatten();
        if self.item_plan(shape, next, counted, &bytes)?.is_some() {
            if self.shortest(goal)?.is_some() {
                ways.push((goal, counted.clone()));
            }
            return Ok(());
        }
        if !counted.values.is_empty() {
            let known = self.known_item(goal, &counted.values)?;
            let after = ItemState { repeated: true, ..counted.clone() };
            if self.shortest(known)?.is_some()
                && self.solved_item_plan(shape, next, &after)?.is_some()
            {
                ways.push((known, counted.clone()));
            }
        }
        for other in self.option_goals(shape)? {
            let both = self.twin(goal, other);
            let half = Repeat::Half(both, other);
            if self.shortest(both)?.is_some()
                && self
                    .item_plan_with(shape, next, counted, half, &|goal| {
                        if goal == both { Some(1) } else { bytes(goal) }
                    })?
                    .is_some()
            {
                ways.push((both, counted.clone()));
            }
        }
        Ok(())
    }
}

pub(super) fn too_many_steps(limit: usize) -> GoalLimit {
    GoalLimit {
        name: "item_steps",
        limit: limit as u64,
        unit: "steps in the search for items",
        pointer: String::new(),
    }
}

/// Items to write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemPlan {
    pub(crate) items: Vec<GoalId>,
    /// An item that follows as often as said.
    pub(crate) repeat: Option<(GoalId, u64)>,
}

impl ItemPlan {
    /// Every item.
    pub(super) fn goals(&self) -> impl DoubleEndedIterator<Item = GoalId> + Clone + use<> {
        let repeat = self.repeat.map_or(0..0, |(_, times)| 0..times);
        let repeated = self.repeat.map_or(GoalId(0), |(goal, _)| goal);
        self.items.clone().into_iter().chain(repeat.map(move |_| repeated))
    }

    /// Bytes of the items and of what stands between them; `None` if some item has no value.
    pub(super) fn bytes(
        &self,
        separator: u64,
        bytes: &dyn Fn(GoalId) -> Option<u64>,
    ) -> Option<u64> {
        let mut total: u64 = 0;
        for &goal in &self.items {
            total = total.saturating_add(bytes(goal)?.saturating_add(separator));
        }
        if let Some((goal, times)) = self.repeat {
            let one = bytes(goal)?.saturating_add(separator);
            total = total.saturating_add(one.saturating_mul(times));
        }
        Some(total.saturating_sub(separator))
    }
}
