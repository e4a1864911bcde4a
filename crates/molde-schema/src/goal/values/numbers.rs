//! Numbers as values: the first ones of an automaton, and automata with and without some values.

use crate::number::{Decimal, NumberAutomaton, NumberLimits, NumberSpec};

use super::super::{Alternative, GoalLimit, Goals, NumberId};
use super::{Texts, too_long};

impl Goals {
    /// Numbers by the length of their shortest text.
    pub(super) fn first_numbers(&mut self, id: NumberId, count: usize) -> Result<Texts, GoalLimit> {
        let specs = self.number_specs[id.0 as usize].clone();
        let mut found = Vec::new();
        let mut excluded: Vec<Decimal> = Vec::new();
        while found.len() < count {
            let rest: Vec<NumberSpec> = specs
                .iter()
                .map(|spec| {
                    let mut spec = spec.clone();
                    spec.excluded.extend(excluded.iter().cloned());
                    spec
                })
                .collect();
            let mut automaton =
                NumberAutomaton::new(&rest, self.options.number_style, &self.number_limits)
                    .map_err(|_| too_long())?;
            if automaton.is_empty() {
                return Ok((found, true));
            }
            let start = automaton.start();
            let text = automaton.shortest(start);
            let spelling = std::str::from_utf8(&text).map_err(|_| too_long())?;
            excluded.push(
                Decimal::parse(spelling, &NumberLimits::unbounded()).map_err(|_| too_long())?,
            );
            if let [only] = specs.as_slice()
                && let Some(values) = &only.one_of
                && values.len() == found.len() + 1
            {
                found.push(text);
                return Ok((found, true));
            }
            found.push(text);
        }
        Ok((found, false))
    }

    /// Whether the schema has numbers that take many digits.
    pub(crate) fn has_long_numbers(&self) -> bool {
        let mut specs = self.schema.nodes.iter().filter_map(|node| node.number.as_deref());
        specs.any(|spec| spec.numbers().any(Decimal::is_long))
    }

    /// The values that a list of numbers has.
    pub(crate) fn listed_numbers(&self, id: NumberId) -> Vec<Decimal> {
        let specs = self.number_specs[id.0 as usize].iter();
        specs.flat_map(|spec| spec.one_of.iter().flatten().cloned()).collect()
    }

    /// The numbers of an automaton without some values; `None` if none are left.
    pub(crate) fn number_without(
        &mut self,
        id: NumberId,
        values: &[Decimal],
    ) -> Result<Option<NumberId>, GoalLimit> {
        let without = NumberSpec { excluded: values.to_vec(), ..NumberSpec::default() };
        self.number_variant(id, &without)
    }

    /// Of some values those that an automaton accepts; `None` if it accepts none.
    pub(crate) fn number_within(
        &mut self,
        id: NumberId,
        values: &[Decimal],
    ) -> Result<Option<NumberId>, GoalLimit> {
        if values.is_empty() {
            return Ok(None);
        }
        self.number_variant(id, &NumberSpec::from_values(values.to_vec()))
    }

    fn number_variant(
        &mut self,
        id: NumberId,
        more: &NumberSpec,
    ) -> Result<Option<NumberId>, GoalLimit> {
        let root = self.root();
        let specs = self.number_specs[id.0 as usize].iter().map(|spec| spec.intersect(more));
        let specs = specs.collect();
        Ok(match self.number_alternative(specs, root)? {
            Some(Alternative::Number(id)) => Some(id),
            _ => None,
        })
    }

    /// A spelling of a number that begins with a byte, if the automaton accepts one.
    pub(crate) fn number_text(
        &self,
        id: NumberId,
        value: &Decimal,
        first: u8,
    ) -> Result<Option<Vec<u8>>, GoalLimit> {
        let only = NumberSpec::from_values(vec![value.clone()]);
        let specs: Vec<NumberSpec> =
            self.number_specs[id.0 as usize].iter().map(|spec| spec.intersect(&only)).collect();
        let mut automaton =
            NumberAutomaton::new(&specs, self.options.number_style, &self.number_limits)
                .map_err(|_| too_long())?;
        let start = automaton.start();
        let Some(state) = automaton.step(start, first) else { return Ok(None) };
        Ok(Some([&[first], &*automaton.shortest(state)].concat()))
    }
}
