//! What is compared of a value: the number itself, a length or a count.

use crate::goal::{Alternative, GoalId, GoalLimit, Goals};
use crate::ir::{ArrayRule, Demand, Node, ObjectRule, StringRule, TypeSet};
use crate::number::{Decimal, NumberBound, NumberError, NumberSpec, Numbers};

use super::instance::MadeUp;

/// Code points, or items, that a bound from the instance may ask for. A greater one is as good as
/// none that can be met.
const MOST_COUNT: u64 = 1 << 16;

/// The same for members, of which each needs a name.
const MOST_MEMBERS: u64 = 1 << 10;

/// What is compared of values of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Measure {
    /// The number.
    Number,
    /// Code points.
    Length,
    Items,
    Members,
}

impl Measure {
    /// What is compared of values of some types; `None` if nothing is.
    pub(super) fn of(types: TypeSet) -> Option<Self> {
        Some(match types {
            TypeSet::NUMBER => Self::Number,
            TypeSet::STRING => Self::Length,
            TypeSet::ARRAY => Self::Items,
            TypeSet::OBJECT => Self::Members,
            _ => return None,
        })
    }
}

/// Two ends; `None` is no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub(super) low: Option<NumberBound>,
    pub(super) high: Option<NumberBound>,
}

impl Range {
    /// Exactly one value.
    pub(super) fn point(value: &Decimal) -> Self {
        let bound = Some(NumberBound { value: value.clone(), exclusive: false });
        Self { low: bound.clone(), high: bound }
    }

    pub(super) fn raise(&mut self, bound: NumberBound) {
        let is_stricter = self.low.as_ref().is_none_or(|known| {
            bound.value > known.value
                || bound.value == known.value && bound.exclusive && !known.exclusive
        });
        if is_stricter {
            self.low = Some(bound);
        }
    }

    pub(super) fn lower(&mut self, bound: NumberBound) {
        let is_stricter = self.high.as_ref().is_none_or(|known| {
            bound.value < known.value
                || bound.value == known.value && bound.exclusive && !known.exclusive
        });
        if is_stricter {
            self.high = Some(bound);
        }
    }

    pub(super) fn contains(&self, value: &Decimal) -> bool {
        let spec = NumberSpec {
            minimum: self.low.clone(),
            maximum: self.high.clone(),
            ..NumberSpec::default()
        };
        spec.accepts(value)
    }
}

/// Values whose measure lies in a range. Values of other types are no such values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) measure: Measure,
    pub(super) range: Range,
}

impl Bounds {
    pub(super) fn node(&self) -> Node {
        let types = match self.measure {
            Measure::Number => TypeSet::NUMBER,
            Measure::Length => TypeSet::STRING,
            Measure::Items => TypeSet::ARRAY,
            Measure::Members => TypeSet::OBJECT,
        };
        let mut node = Node::of_types(String::new(), types);
        if self.measure == Measure::Number {
            let minimum = self.range.low.clone();
            let maximum = self.range.high.clone();
            node.number = Some(Box::new(NumberSpec { minimum, maximum, ..NumberSpec::default() }));
            return node;
        }
        let Some((min, max)) = self.range.counts() else {
            node.types = TypeSet::NONE;
            return node;
        };
        match self.measure {
            Measure::Number => {}
            Measure::Length => {
                node.string = Some(Box::new(StringRule {
                    min_length: min,
                    max_length: max,
                    ..StringRule::default()
                }));
            }
            Measure::Items => {
                node.array = Some(Box::new(ArrayRule {
                    min_items: min,
                    max_items: max,
                    ..ArrayRule::default()
                }));
            }
            Measure::Members => {
                node.object = Some(Box::new(ObjectRule {
                    min_properties: min,
                    max_properties: max,
                    ..ObjectRule::default()
                }));
            }
        }
        node
    }
}

impl Range {
    /// The least and the greatest natural number in the range; `None` if there is none.
    fn counts(&self) -> Option<(u64, Option<u64>)> {
        let naturals = NumberSpec { integer_only: true, ..NumberSpec::default() };
        let numbers = Numbers { specs: &[naturals], style: crate::number::NumberStyle::Plain };
        let zero = NumberBound { value: Decimal::zero(), exclusive: false };
        let mut range = self.clone();
        range.raise(zero);
        let (low, high) = (range.low.as_ref(), range.high.as_ref());
        let min = numbers.least(low, high).ok()??;
        let max = match high {
            None => None,
            Some(_) => Some(numbers.greatest(low, high).ok()??.to_u64().unwrap_or(u64::MAX)),
        };
        Some((min.to_u64().unwrap_or(u64::MAX), max))
    }
}

/// Which end of what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Least,
    Greatest,
}

impl Goals {
    /// A goal with bounds on what is compared.
    pub(super) fn within(&mut self, goal: GoalId, measure: Measure, range: &Range) -> GoalId {
        if *range == Range::default() {
            return goal;
        }
        let node = self.made_up(MadeUp::Bounds(Bounds { measure, range: range.clone() }));
        self.extended(goal, [Demand::holds(node)])
    }

    /// The least or greatest measure of the values of a goal within a range; `None` if no value is
    /// in it. The digits of numbers are those that the style has without the range.
    pub(super) fn extreme(
        &mut self,
        goal: GoalId,
        measure: Measure,
        range: &Range,
        side: Side,
    ) -> Result<Option<Decimal>, GoalLimit> {
        let key = (goal, measure, range.clone(), side);
        if let Some(known) = self.related.extremes.get(&key) {
            return known.clone();
        }
        let found = if measure == Measure::Number {
            self.extreme_number(goal, range, side)
        } else {
            self.extreme_count(goal, measure, range, side)
        };
        self.related.extremes.insert(key, found.clone());
        found
    }

    fn extreme_number(
        &mut self,
        goal: GoalId,
        range: &Range,
        side: Side,
    ) -> Result<Option<Decimal>, GoalLimit> {
        let style = self.options.number_style;
        let mut best: Option<Decimal> = None;
        for alternative in self.solve(goal)?.alternatives.iter() {
            let Alternative::Number(id) = alternative else { continue };
            // Many goals have the same numbers.
            let key = (*id, range.clone(), side);
            let known = self.related.numbers.get(&key).cloned();
            let found = known.unwrap_or_else(|| {
                let numbers = Numbers { specs: &self.number_specs[id.0 as usize], style };
                let (low, high) = (range.low.as_ref(), range.high.as_ref());
                let found = match side {
                    Side::Least => numbers.least(low, high),
                    Side::Greatest => numbers.greatest(low, high),
                };
                self.related.numbers.insert(key, found.clone());
                found
            });
            let found = found.map_err(|error| self.measure_limit(&error, goal))?;
            best = match (best, found, side) {
                (Some(one), Some(two), Side::Least) => Some(one.min(two)),
                (Some(one), Some(two), Side::Greatest) => Some(one.max(two)),
                (one, two, _) => one.or(two),
            };
        }
        Ok(best)
    }

    /// Lengths and counts: the goal itself says which bounds leave a value.
    fn extreme_count(
        &mut self,
        goal: GoalId,
        measure: Measure,
        range: &Range,
        side: Side,
    ) -> Result<Option<Decimal>, GoalLimit> {
        let Some((min, max)) = range.counts() else { return Ok(None) };
        // Longer values than may be offered are none.
        let most = max.unwrap_or(u64::MAX).min(match measure {
            Measure::Members => MOST_MEMBERS,
            _ => MOST_COUNT,
        });
        if min > most {
            return Ok(None);
        }
        let has = |goals: &mut Self, low: u64, high: u64| {
            let bound = |value: u64| Some(NumberBound { value: value.into(), exclusive: false });
            let range = Range { low: bound(low), high: bound(high) };
            let goal = goals.within(goal, measure, &range);
            match goals.shortest(goal) {
                Ok(found) => Ok(found.is_some()),
                Err(limit) if limit.name == "completion_bytes" => Ok(false),
                Err(limit) => Err(limit),
            }
        };
        if !has(self, min, most)? {
            return Ok(None);
        }
        // Where nothing else bounds them, one question is enough.
        let end = if side == Side::Least { min } else { most };
        if has(self, end, end)? {
            return Ok(Some(end.into()));
        }
        let (mut low, mut high) = (min, most);
        while low < high {
            let middle = match side {
                Side::Least => low + (high - low) / 2,
                Side::Greatest => low + (high - low).div_ceil(2),
            };
            match side {
                Side::Least if has(self, min, middle)? => high = middle,
                Side::Least => low = middle + 1,
                Side::Greatest if has(self, middle, most)? => low = middle,
                Side::Greatest => high = middle - 1,
            }
        }
        Ok(Some(low.into()))
    }

    fn measure_limit(&self, error: &NumberError, goal: GoalId) -> GoalLimit {
        let (name, limit, unit) = match error {
            NumberError::OrderTooLarge { limit, .. } => {
                ("max_decimal_order", limit.unsigned_abs(), "orders of magnitude")
            }
            _ => ("max_decimal_digits", 0, "digits"),
        };
        GoalLimit { name, limit, unit, pointer: self.pointer(goal) }
    }
}
