//! Numbers in an order: what is left for each.

use crate::goal::{Alternative, FormulaId, GoalId, GoalLimit, Goals};
use crate::ir::Demand;
use crate::number::{Decimal, NumberBound};

use super::instance::MadeUp;
use super::{Bounds, Measure, Range, Side};

/// A number that is ordered with others: a value, a length or a count.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) domain: Domain,
}

#[derive(Debug, Clone)]
pub(super) enum Domain {
    /// What is compared of the values of a goal.
    Goal(GoalId, Measure),
    /// It is known.
    Known(Decimal),
}

/// That one variable is less than another, or not greater.
#[derive(Debug, Clone, Copy)]
pub(super) struct Less {
    pub(super) lesser: usize,
    pub(super) greater: usize,
    pub(super) is_strict: bool,
}

/// What an order leaves to a variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    pub(super) range: Range,
    /// What the variables that equal it must satisfy.
    pub(super) demands: Vec<Demand>,
}

/// Variables that are all equal, because each is less than or equal to the next in a circle.
struct Class {
    members: Vec<usize>,
    domain: Domain,
}

impl Goals {
    /// What an order leaves to each variable; `None` if it leaves nothing.
    ///
    /// Every value of a variable's domain that is left is part of a solution.
    pub(super) fn ordered(
        &mut self,
        variables: &[Variable],
        order: &[Less],
    ) -> Result<Option<Vec<Left>>, GoalLimit> {
        let (class_of, count) = circles(variables.len(), order);
        let mut classes = Vec::with_capacity(count);
        for class in 0..count {
            let members: Vec<usize> =
                (0..variables.len()).filter(|&at| class_of[at] == class).collect();
            match self.common_domain(variables, &members)? {
                Some(domain) => classes.push(Class { members, domain }),
                None => return Ok(None),
            }
        }
        let mut edges: Vec<(usize, usize, bool)> = Vec::new();
        for less in order {
            let (from, to) = (class_of[less.lesser], class_of[less.greater]);
            if from != to {
                edges.push((from, to, less.is_strict));
            } else if less.is_strict {
                return Ok(None);
            }
        }
        let mut ranges = vec![Range::default(); count];
        // Classes are numbered such that lesser ones come first.
        for class in 0..count {
            for &(from, _, is_strict) in edges.iter().filter(|(_, to, _)| *to == class) {
                let low = Range { low: ranges[from].low.clone(), high: None };
                let Some(value) = self.extreme_of(&classes[from].domain, &low, Side::Least)? else {
                    return Ok(None);
                };
                let bound = NumberBound { value, exclusive: is_strict };
                if self.cuts(&classes[class].domain, &bound, Side::Least)? {
                    ranges[class].raise(bound);
                }
            }
            let low = Range { low: ranges[class].low.clone(), high: None };
            if self.extreme_of(&classes[class].domain, &low, Side::Least)?.is_none() {
                return Ok(None);
            }
        }
        for class in (0..count).rev() {
            for &(_, to, is_strict) in edges.iter().filter(|(from, ..)| *from == class) {
                let high = Range { low: None, high: ranges[to].high.clone() };
                let Some(value) = self.extreme_of(&classes[to].domain, &high, Side::Greatest)?
                else {
                    return Ok(None);
                };
                let bound = NumberBound { value, exclusive: is_strict };
                if self.cuts(&classes[class].domain, &bound, Side::Greatest)? {
                    ranges[class].lower(bound);
                }
            }
        }
        let mut result = vec![Left::default(); variables.len()];
        for (class, range) in classes.iter().zip(ranges) {
            for &member in &class.members {
                result[member].range = range.clone();
                if class.members.len() > 1 {
                    self.bind(&mut result[member], &variables[member], class)?;
                }
            }
        }
        Ok(Some(result))
    }

    /// Within a class of equal variables, each must be what the others can be.
    fn bind(
        &mut self,
        left: &mut Left,
        variable: &Variable,
        class: &Class,
    ) -> Result<(), GoalLimit> {
        match (&variable.domain, &class.domain) {
            (Domain::Known(_), _) => {}
            (Domain::Goal(_, Measure::Number), Domain::Goal(common, Measure::Number)) => {
                left.demands = self.ids[common.0 as usize].to_vec();
            }
            // Lengths and counts in a range are all attained.
            (Domain::Goal(..), _) => {
                for side in [Side::Least, Side::Greatest] {
                    let Some(value) = self.extreme_of(&class.domain, &left.range.clone(), side)?
                    else {
                        continue;
                    };
                    let bound = NumberBound { value, exclusive: false };
                    match side {
                        Side::Least => left.range.raise(bound),
                        Side::Greatest => left.range.lower(bound),
                    }
                }
            }
        }
        Ok(())
    }

    fn extreme_of(
        &mut self,
        domain: &Domain,
        range: &Range,
        side: Side,
    ) -> Result<Option<Decimal>, GoalLimit> {
        match domain {
            Domain::Known(value) => Ok(range.contains(value).then(|| value.clone())),
            Domain::Goal(goal, measure) => self.extreme(*goal, *measure, range, side),
        }
    }

    /// Whether a bound leaves anything of a domain out.
    fn cuts(
        &mut self,
        domain: &Domain,
        bound: &NumberBound,
        side: Side,
    ) -> Result<bool, GoalLimit> {
        let Some(own) = self.extreme_of(domain, &Range::default(), side)? else { return Ok(true) };
        let mut range = Range::default();
        match side {
            Side::Least => range.raise(bound.clone()),
            Side::Greatest => range.lower(bound.clone()),
        }
        Ok(!range.contains(&own))
    }

    /// What several variables can all be at once; `None` if nothing.
    fn common_domain(
        &mut self,
        variables: &[Variable],
        members: &[usize],
    ) -> Result<Option<Domain>, GoalLimit> {
        if let [only] = members {
            return Ok(Some(variables[*only].domain.clone()));
        }
        let mut known: Option<Decimal> = None;
        let mut numbers: Option<GoalId> = None;
        let mut counts: Vec<(GoalId, Measure)> = Vec::new();
        for &member in members {
            match &variables[member].domain {
                Domain::Known(value) => {
                    if known.as_ref().is_some_and(|known| known != value) {
                        return Ok(None);
                    }
                    known = Some(value.clone());
                }
                Domain::Goal(goal, Measure::Number) => {
                    numbers = Some(match numbers {
                        None => *goal,
                        Some(numbers) => {
                            let more = self.ids[goal.0 as usize].to_vec();
                            self.extended(numbers, more)
                        }
                    });
                }
                Domain::Goal(goal, measure) => counts.push((*goal, *measure)),
            }
        }
        if let Some(value) = known {
            let point = Range::point(&value);
            let goals = numbers.map(|goal| (goal, Measure::Number)).into_iter().chain(counts);
            for (goal, measure) in goals {
                if self.extreme(goal, measure, &point, Side::Least)?.is_none() {
                    return Ok(None);
                }
            }
            return Ok(Some(Domain::Known(value)));
        }
        // Lengths and counts are compared with numbers only.
        let Some(mut numbers) = numbers else { return Ok(None) };
        for (goal, measure) in counts {
            let whole = Range::default();
            let least = self.extreme(goal, measure, &whole, Side::Least)?;
            let greatest = self.extreme(goal, measure, &whole, Side::Greatest)?;
            let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(None) };
            if least != greatest && !self.has_all_counts(goal, measure)? {
                return Err(GoalLimit {
                    name: "counts",
                    limit: 1,
                    unit: "ranges of lengths or counts that equal a number of the instance",
                    pointer: self.pointer(goal),
                });
            }
            let mut range = Range::default();
            range.raise(NumberBound { value: least, exclusive: false });
            range.lower(NumberBound { value: greatest, exclusive: false });
            let bounds = Bounds { measure: Measure::Number, range };
            let within = self.made_up(MadeUp::Bounds(bounds));
            let integers = self.made_up(MadeUp::Integers);
            numbers = self.extended(numbers, [Demand::holds(within), Demand::holds(integers)]);
        }
        Ok(self.shortest(numbers)?.map(|_| Domain::Goal(numbers, Measure::Number)))
    }

    /// Whether every length or count between two that values of a goal have is one that some value
    /// has; `false` if that is not known.
    fn has_all_counts(&mut self, goal: GoalId, measure: Measure) -> Result<bool, GoalLimit> {
        let alternatives = self.solve(goal)?.alternatives;
        let [alternative] = *alternatives else { return Ok(false) };
        Ok(match (alternative, measure) {
            (Alternative::String(id), Measure::Length) => self.string(id).has_all_lengths(),
            // One more item, or member, at a time.
            (Alternative::Array(id), Measure::Items) => {
                let shape = self.array(id);
                shape.counters.is_empty() && !shape.is_unique
            }
            (Alternative::Object(id), Measure::Members) => {
                let shape = self.object(id);
                shape.condition == FormulaId::MET && shape.relations.is_none()
            }
            _ => false,
        })
    }
}

/// For each variable, the class of those it is in a circle with; classes are numbered such that
/// lesser ones come first. And their number.
fn circles(count: usize, order: &[Less]) -> (Vec<usize>, usize) {
    let mut reaches = vec![vec![false; count]; count];
    for less in order {
        reaches[less.lesser][less.greater] = true;
    }
    for middle in 0..count {
        let onwards = reaches[middle].clone();
        for row in reaches.iter_mut().filter(|row| row[middle]) {
            for (known, more) in row.iter_mut().zip(&onwards) {
                *known |= more;
            }
        }
    }
    let same = |one: usize, two: usize| one == two || reaches[one][two] && reaches[two][one];
    let first = |at: usize| (0..count).find(|&other| same(at, other)).unwrap_or(at);
    let mut firsts: Vec<usize> = (0..count).filter(|&at| first(at) == at).collect();
    // What reaches more comes sooner: along an order each reaches all that the next one does.
    firsts.sort_by_key(|&at| {
        std::cmp::Reverse((0..count).filter(|&to| reaches[at][to] && !same(at, to)).count())
    });
    let class_of = (0..count)
        .map(|at| firsts.iter().position(|&known| known == first(at)).unwrap_or(0))
        .collect();
    (class_of, firsts.len())
}
