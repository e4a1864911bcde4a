//! `uniqueItems`: values that differ from those before.
//!
//! An item must satisfy its own goal and fail to be any value that the array has already, which are
//! demands like all others. What is left is to see that there are values enough: each position that
//! must be filled needs a choice of at least as many values as there are items, so that no earlier
//! choice can use it up.

use crate::constant::{canonical, constant};
use crate::document::Document;
use crate::ir::{Demand, NodeId};
use crate::options::Limits;

use super::{Alternative, ArrayId, GoalId, GoalLimit, Goals};

/// Items that an array of distinct ones may need.
const MAX_DISTINCT: u64 = 4096;

impl Goals {
    /// The node of a single value, from its text.
    pub(crate) fn constant(&mut self, text: &[u8]) -> Result<NodeId, GoalLimit> {
        let limit = |name, unit| GoalLimit { name, limit: 0, unit, pointer: String::new() };
        let text = std::str::from_utf8(text).map_err(|_| limit("constant", "texts"))?;
        let document = Document::parse(text, &Limits::default())
            .map_err(|_| limit("constant", "bytes or levels"))?;
        let key = canonical(&document, document.root())
            .map_err(|_| limit("max_decimal_digits", "digits"))?;
        if let Some(&known) = self.constants.get(&key) {
            return Ok(known);
        }
        let schema = std::sync::Arc::make_mut(&mut self.schema);
        let node = constant(&document, "", document.root(), &mut schema.nodes)
            .map_err(|_| limit("max_decimal_digits", "digits"))?;
        self.constants.insert(key, node);
        Ok(node)
    }

    /// Sees that an array whose items must differ has values enough to choose from.
    ///
    /// `Ok(false)` if it has not; an error if that cannot be told.
    pub(super) fn has_distinct_items(&mut self, id: ArrayId) -> Result<bool, GoalLimit> {
        let shape = std::sync::Arc::clone(self.array(id));
        let needed: u64 = shape.counters.iter().map(|(min, _)| *min).sum();
        let needed = needed.max(shape.min_items);
        if !shape.is_unique || needed < 2 {
            return Ok(true);
        }
        if needed > MAX_DISTINCT {
            return Err(GoalLimit {
                name: "distinct_items",
                limit: MAX_DISTINCT,
                unit: "items that differ",
                pointer: String::new(),
            });
        }
        let positions = needed.min(shape.prefix.len() as u64);
        let alike = positions == 0;
        let mut goals: Vec<GoalId> = Vec::new();
        for at in 0..positions + u64::from(needed > positions) {
            goals.extend(self.options(shape.rule(at), u64::MAX)?.iter().map(|option| option.goal));
        }
        let single = goals.len() == 1;
        for goal in goals {
            let values = self.distinct_values(goal, needed)?;
            if values < needed {
                if alike && single {
                    return Ok(false);
                }
                // Which choice leaves enough for the others is a matching problem.
                if values > 0 {
                    return Err(GoalLimit {
                        name: "distinct_choices",
                        limit: needed,
                        unit: "values for each item that must differ from others",
                        pointer: self.pointer(goal),
                    });
                }
            }
        }
        Ok(true)
    }

    /// Number of different values of a goal, counted up to `most`.
    fn distinct_values(&mut self, goal: GoalId, most: u64) -> Result<u64, GoalLimit> {
        let mut rest = goal;
        for found in 0..most {
            let solution = self.solve(rest)?;
            if solution.shortest.is_none() {
                return Ok(found);
            }
            if solution.alternatives.iter().any(|&alternative| self.is_endless(alternative)) {
                return Ok(most);
            }
            let mut text = Vec::new();
            self.write_value(rest, usize::MAX, &mut text)?;
            let value = self.constant(&text)?;
            rest = self.extended(rest, [Demand::fails(value)]);
        }
        Ok(most)
    }

    /// Whether an alternative is known to have more values than any array needs.
    fn is_endless(&mut self, alternative: Alternative) -> bool {
        match alternative {
            Alternative::String(id) => self.string(id).is_endless(),
            Alternative::Number(id) => self.number_specs[id.0 as usize].iter().any(|spec| {
                spec.one_of.is_none() && (spec.minimum.is_none() || spec.maximum.is_none())
            }),
            _ => false,
        }
    }
}
