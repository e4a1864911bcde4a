//! The items that an array still needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ir::{Demand, NodeId};

use super::{ArrayId, ArrayShape, ChildOption, GoalId, GoalLimit, Goals};

/// What an open array remembers of its items beyond their number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ItemState {
    /// The count of each counter, as far as it matters; empty where the array has none.
    pub(crate) counters: Box<[u64]>,
    /// The items so far, where no two may be equal, ascending.
    pub(crate) values: Box<[NodeId]>,
}

impl ItemState {
    pub(crate) fn start(shape: &ArrayShape) -> Self {
        Self { counters: vec![0; shape.counters.len()].into(), values: Box::default() }
    }

    /// After an item that counts as `option` says; `None` if a counter exceeds its bound.
    pub(crate) fn counted(&self, option: ChildOption, shape: &ArrayShape) -> Option<Self> {
        Some(Self { counters: count(&self.counters, option, shape)?, values: self.values.clone() })
    }

    /// With the value of an item that has ended.
    pub(crate) fn with_value(&self, value: NodeId) -> Self {
        let mut after = self.clone();
        if let Err(at) = self.values.binary_search(&value) {
            let mut values = self.values.to_vec();
            values.insert(at, value);
            after.values = values.into();
        }
        after
    }

    /// The counters for which it matters whether an item counts, as bits.
    pub(crate) fn active(&self, shape: &ArrayShape) -> u64 {
        let active =
            |(count, (min, max)): (&u64, &(u64, Option<u64>))| max.is_some() || count < min;
        self.counters
            .iter()
            .zip(&shape.counters)
            .enumerate()
            .fold(0, |bits, (index, counter)| bits | u64::from(active(counter)) << index)
    }

    /// Whether every counter has what it needs.
    pub(crate) fn is_complete(&self, shape: &ArrayShape) -> bool {
        is_complete(&self.counters, shape)
    }
}

fn is_complete(counters: &[u64], shape: &ArrayShape) -> bool {
    counters.iter().zip(&shape.counters).all(|(count, (min, _))| count >= min)
}

fn count(counters: &[u64], option: ChildOption, shape: &ArrayShape) -> Option<Box<[u64]>> {
    let mut after: Box<[u64]> = counters.into();
    for (index, (count, (min, max))) in after.iter_mut().zip(&shape.counters).enumerate() {
        let bit = 1u64 << index;
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

/// States visited at most in the search for the items that counters need.
const ITEM_STEPS: usize = 50_000;

/// The shortest text of a goal, as far as it is known; `None` if it has none.
pub(super) type Bytes<'a> = &'a dyn Fn(GoalId) -> Option<u64>;

impl Goals {
    /// The items with which an array can be finished; `None` if it cannot. The shortest text, or
    /// close to it.
    pub(super) fn item_plan(
        &mut self,
        shape: &ArrayShape,
        count: u64,
        counters: &[u64],
        bytes: Bytes<'_>,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        if shape.counters.is_empty() {
            return Ok(self.plain_plan(shape, count, bytes));
        }
        // Dijkstra over (number of items, counters). Where counters have what they need and
        // positions no longer matter, the rest is the cheapest item again and again.
        type Node = (u64, Box<[u64]>);
        let start: Node = (count, counters.into());
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
            if steps > ITEM_STEPS {
                return Err(GoalLimit {
                    name: "item_steps",
                    limit: ITEM_STEPS as u64,
                    unit: "steps",
                    pointer: String::new(),
                });
            }
            let (count, counters) = &node;
            if is_complete(counters, shape) {
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
            for &option in self.options(shape.rule(*count), u64::MAX)?.iter() {
                let (Some(own), Some(counters)) =
                    (bytes(option.goal), self::count(counters, option, shape))
                else {
                    continue;
                };
                let next = (shape.saturate(count + 1), counters);
                let cost = cost.saturating_add(own).saturating_add(2);
                if costs.get(&next).is_none_or(|(known, _)| cost < *known) {
                    costs.insert(next.clone(), (cost, Some((node.clone(), option.goal))));
                    open.push(Reverse((cost, next)));
                }
            }
        }
        Ok(None)
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
        let options = self.options(shape.items, u64::MAX)?;
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
    pub(crate) fn solved_item_plan(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
    ) -> Result<Option<ItemPlan>, GoalLimit> {
        let shape = Arc::clone(self.array(id));
        if !shape.remembers() && count >= shape.min_items {
            return Ok(Some(ItemPlan::default()));
        }
        let mut lookup: FxHashMap<GoalId, Option<u64>> = FxHashMap::default();
        for goal in self.item_goals(&shape)? {
            lookup.insert(goal, self.shortest(goal)?);
        }
        let bytes = |goal: GoalId| lookup.get(&goal).copied().flatten();
        self.item_plan(&shape, count, &state.counters, &bytes)
    }

    /// The goals that decide whether and how an array can be finished.
    pub(super) fn item_goals(&mut self, shape: &ArrayShape) -> Result<Vec<GoalId>, GoalLimit> {
        if !shape.counters.is_empty() {
            let mut goals = Vec::new();
            for &rule in shape.prefix.iter().chain([&shape.items]) {
                goals.extend(self.options(rule, u64::MAX)?.iter().map(|option| option.goal));
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
        if self.array(id).counters.is_empty() {
            return Ok(true);
        }
        Ok(self.solved_item_plan(id, count, state)?.is_some())
    }

    /// A goal without the values that an array has already.
    pub(crate) fn without_values(&mut self, goal: GoalId, values: &[NodeId]) -> GoalId {
        if values.is_empty() {
            return goal;
        }
        self.extended(goal, values.iter().map(|&value| Demand::fails(value)))
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
