//! `enum` and `const`.

use crate::constant::{constant, scalars};
use crate::document::{Value, ValueId, join};
use crate::ir::{Applicator, Demand, TypeSet};
use crate::number::NumberLimits;

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_enum(&mut self, location: &mut Location<'_>, value: ValueId) {
        let Value::Array(values) = self.document.get(value) else {
            return self.malform(location.pointer, "enum", "must be an array");
        };
        self.require_one_of(location, "enum", values);
    }

    pub(super) fn load_const(&mut self, location: &mut Location<'_>, value: ValueId) {
        self.require_one_of(location, "const", &[value]);
    }

    fn require_one_of(&mut self, location: &mut Location<'_>, keyword: &str, values: &[ValueId]) {
        let pointer = join(location.pointer, keyword);
        let compound: Vec<ValueId> = values
            .iter()
            .copied()
            .filter(|&value| matches!(self.document.get(value), Value::Array(_) | Value::Object(_)))
            .collect();
        let scalars = match scalars(self.document, &pointer, values, &NumberLimits::default()) {
            Ok(node) => node,
            Err(error) => return self.refuse(location.pointer, keyword, error.to_string()),
        };
        if compound.is_empty() {
            let scalars = Demand::holds(self.push(scalars));
            location.node.applicators.push(Applicator::All(scalars));
            return;
        }
        let mut branches = Vec::with_capacity(compound.len() + 1);
        if scalars.types != TypeSet::NONE {
            branches.push(self.push(scalars));
        }
        for value in compound {
            match constant(
                self.document,
                &pointer,
                value,
                &NumberLimits::default(),
                &mut self.nodes,
            ) {
                Ok(node) => branches.push(node),
                Err(error) => return self.refuse(location.pointer, keyword, error.to_string()),
            }
        }
        location.node.applicators.push(Applicator::Constants(branches));
    }
}
