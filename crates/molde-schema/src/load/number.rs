//! `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, and `integer`.

use crate::dialect::Dialect;
use crate::document::{Value, ValueId};
use crate::number::{Decimal, NumberBound, NumberLimits, NumberSpec};

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_number_keyword(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        let exclusive = keyword.starts_with("exclusive");
        if exclusive && location.dialect == Dialect::Draft4 {
            // A boolean that qualifies its neighbour: see `finish_number`.
            if !matches!(self.document.get(value), Value::Boolean(_)) {
                self.malform(location.pointer, keyword, "must be a boolean in draft 4");
            }
            return;
        }
        let Some(value) = self.decimal(location, keyword, value) else { return };
        let mut spec = NumberSpec::default();
        match keyword {
            "multipleOf" => {
                if value.is_zero() || value.is_negative() {
                    return self.malform(location.pointer, keyword, "must be greater than zero");
                }
                spec.multiple_of.push(value);
            }
            "minimum" | "exclusiveMinimum" => {
                let exclusive = exclusive || self.is_exclusive(location, "exclusiveMinimum");
                spec.minimum = Some(NumberBound { value, exclusive });
            }
            _ => {
                let exclusive = exclusive || self.is_exclusive(location, "exclusiveMaximum");
                spec.maximum = Some(NumberBound { value, exclusive });
            }
        }
        require(location, &spec);
    }

    /// Draft 4: whether the boolean beside a bound makes it exclusive.
    pub(super) fn is_exclusive(&self, location: &Location<'_>, keyword: &str) -> bool {
        if location.dialect != Dialect::Draft4 {
            return false;
        }
        let Value::Object(members) = self.document.get(location.value) else { return false };
        members
            .get(keyword)
            .is_some_and(|&id| matches!(self.document.get(id), Value::Boolean(true)))
    }

    fn decimal(
        &mut self,
        location: &Location<'_>,
        keyword: &str,
        value: ValueId,
    ) -> Option<Decimal> {
        let Value::Number(text) = self.document.get(value) else {
            self.malform(location.pointer, keyword, "must be a number");
            return None;
        };
        match Decimal::parse(text, &NumberLimits::default()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(location.pointer, keyword, format!("cannot be enforced: {error}"));
                None
            }
        }
    }
}

/// Up to draft 4 an integer is a way of writing; since then it is a kind of value.
pub(super) fn require_integer(location: &mut Location<'_>) {
    let spec = if location.dialect == Dialect::Draft4 {
        NumberSpec { draft4_integer: true, ..NumberSpec::default() }
    } else {
        NumberSpec { integer_only: true, ..NumberSpec::default() }
    };
    require(location, &spec);
}

/// Adds a constraint to the location's own.
pub(super) fn require(location: &mut Location<'_>, spec: &NumberSpec) {
    let number = match &location.node.number {
        Some(known) => known.intersect(spec),
        None => spec.clone(),
    };
    location.node.number = Some(Box::new(number));
}

/// The value of a non-negative integer, however it is written; beyond `u64` it saturates, which is
/// beyond every text as well.
pub(super) fn count(text: &str) -> Option<u64> {
    let value = Decimal::parse(text, &NumberLimits::default()).ok()?;
    if value.is_negative() || !value.is_integer() {
        return None;
    }
    Some(value.to_u64().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_are_integers_by_value() {
        for (text, expected) in [
            ("0", Some(0)),
            ("2.0", Some(2)),
            ("1e3", Some(1000)),
            ("18446744073709551616", Some(u64::MAX)),
            ("-1", None),
            ("1.5", None),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }
}
