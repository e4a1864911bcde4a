//! What one number must satisfy: a conjunction, by value and exact.

use super::decimal::Decimal;
#[cfg(test)]
use super::limits::{NumberLimits, NumberStyle};
#[cfg(test)]
use super::piece::Piece;

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberBound {
    /// The end.
    pub(crate) value: Decimal,
    /// Whether the end itself is outside the range.
    pub(crate) exclusive: bool,
}

/// A conjunction of constraints on a number. The default accepts every number.
///
/// All but two fields speak of the value; [`draft4_integer`](Self::draft4_integer) and its
/// negation speak of how it is written.
#[expect(clippy::struct_excessive_bools, reason = "four independent conditions, no state machine")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumberSpec {
    /// The value is an integer: `1.0` and `1e3` are.
    pub(crate) integer_only: bool,
    /// The value is not an integer.
    pub(crate) not_integer: bool,
    /// The text has neither fraction nor exponent, which is what draft 4 calls an integer.
    pub(crate) draft4_integer: bool,
    /// The text has a fraction or an exponent: the negation of `draft4_integer`.
    pub(crate) not_draft4_integer: bool,
    /// The lower end, if any.
    pub(crate) minimum: Option<NumberBound>,
    /// The upper end, if any.
    pub(crate) maximum: Option<NumberBound>,
    /// The value is a multiple of each; signs do not matter.
    pub(crate) multiple_of: Vec<Decimal>,
    /// The value is a multiple of none; signs do not matter.
    pub(crate) not_multiple_of: Vec<Decimal>,
    /// The value is none of these.
    pub(crate) excluded: Vec<Decimal>,
    /// The value is one of these.
    pub(crate) one_of: Option<Vec<Decimal>>,
}

impl NumberSpec {
    /// Accepts exactly `values`.
    pub(crate) fn from_values(values: Vec<Decimal>) -> Self {
        Self { one_of: Some(values), ..Self::default() }
    }

    /// Every number that it names.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &Decimal> {
        let ends = self.minimum.iter().chain(&self.maximum).map(|bound| &bound.value);
        ends.chain(&self.multiple_of)
            .chain(&self.not_multiple_of)
            .chain(&self.excluded)
            .chain(self.one_of.iter().flatten())
    }

    /// Accepts what both accept. Lists come out sorted and without repetition.
    #[must_use]
    pub(crate) fn intersect(&self, other: &Self) -> Self {
        let one_of = match (&self.one_of, &other.one_of) {
            (None, None) => None,
            (Some(values), None) | (None, Some(values)) => Some(sorted(values.clone())),
            (Some(values), Some(others)) => {
                let others = sorted(others.clone());
                let mut common = sorted(values.clone());
                common.retain(|value| others.binary_search(value).is_ok());
                Some(common)
            }
        };
        Self {
            integer_only: self.integer_only || other.integer_only,
            not_integer: self.not_integer || other.not_integer,
            draft4_integer: self.draft4_integer || other.draft4_integer,
            not_draft4_integer: self.not_draft4_integer || other.not_draft4_integer,
            minimum: stricter(self.minimum.as_ref(), other.minimum.as_ref(), true),
            maximum: stricter(self.maximum.as_ref(), other.maximum.as_ref(), false),
            multiple_of: joined(&self.multiple_of, &other.multiple_of),
            not_multiple_of: joined(&self.not_multiple_of, &other.not_multiple_of),
            excluded: joined(&self.excluded, &other.excluded),
            one_of,
        }
    }

    /// Whether the value satisfies every constraint on values. This is the reference that the
    /// automaton is tested against.
    ///
    /// Of `draft4_integer` only what follows for the value is asked: it is an integer.
    pub(crate) fn accepts(&self, value: &Decimal) -> bool {
        let integer = value.is_integer();
        (integer || !(self.integer_only || self.draft4_integer))
            && !(integer && self.not_integer)
            && self.minimum.as_ref().is_none_or(|bound| {
                *value > bound.value || (*value == bound.value && !bound.exclusive)
            })
            && self.maximum.as_ref().is_none_or(|bound| {
                *value < bound.value || (*value == bound.value && !bound.exclusive)
            })
            && self.multiple_of.iter().all(|divisor| value.is_multiple_of(divisor))
            && !self.not_multiple_of.iter().any(|divisor| value.is_multiple_of(divisor))
            && !self.excluded.contains(value)
            && self.one_of.as_ref().is_none_or(|values| values.contains(value))
    }

    #[cfg(test)]
    /// Whether the number text satisfies every constraint, spelling included.
    ///
    /// # Errors
    /// Those of [`Decimal::parse`].
    pub(crate) fn accepts_text(
        &self,
        text: &str,
        limits: &NumberLimits,
    ) -> Result<bool, super::NumberError> {
        let value = Decimal::parse(text, limits)?;
        let bare = !text.contains(['.', 'e', 'E']);
        let spelling = if bare { !self.not_draft4_integer } else { !self.draft4_integer };
        Ok(spelling && self.accepts(&value))
    }

    #[cfg(test)]
    /// Whether no number, however written, satisfies every constraint.
    ///
    /// # Errors
    /// [`TooManyExcludedDivisors`](super::NumberError::TooManyExcludedDivisors) or
    /// [`TooManyDigits`](super::NumberError::TooManyDigits) if the question costs more than
    /// `limits` allow.
    pub(crate) fn is_empty(&self, limits: &NumberLimits) -> Result<bool, super::NumberError> {
        Ok(Piece::from_spec(self, NumberStyle::Any, limits)?.is_empty())
    }
}

fn sorted(mut values: Vec<Decimal>) -> Vec<Decimal> {
    values.sort();
    values.dedup();
    values
}

fn joined(one: &[Decimal], two: &[Decimal]) -> Vec<Decimal> {
    sorted(one.iter().chain(two).cloned().collect())
}

fn stricter(
    one: Option<&NumberBound>,
    two: Option<&NumberBound>,
    lower: bool,
) -> Option<NumberBound> {
    let (Some(first), Some(second)) = (one, two) else {
        return one.or(two).cloned();
    };
    let ordering = first.value.cmp(&second.value);
    let ordering = if lower { ordering } else { ordering.reverse() };
    // At equal ends the exclusive one is the stricter.
    let ordering = ordering.then(first.exclusive.cmp(&second.exclusive));
    Some(if ordering.is_ge() { first } else { second }.clone())
}
