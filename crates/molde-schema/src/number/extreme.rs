//! The greatest and the least number that some constraints leave within two ends.
//!
//! A style caps the digits of a text, so there is a greatest number, and a number next to an end.
//! Where an end is too close for the caps, the automaton raises them; here they stay as they are
//! without the ends, since the question is which ends leave a number that the style has anyway.
//!
//! The only question asked is whether there is a number between two ends; a digit is found by
//! asking for each, and a run of nines or zeros by doubling its length.

use num_bigint::{BigInt, BigUint};
use num_traits::{One, Zero};

use super::automaton::NumberAutomaton;
use super::decimal::{Decimal, pow10};
use super::limits::{NumberError, NumberLimits, NumberStyle};
use super::piece::Piece;
use super::spec::{NumberBound, NumberSpec};

/// Orders beyond those of the numbers that a schema may have.
const MAX_ORDER: i64 = 1_100;

/// Some constraints, of which a number must satisfy one, and how it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub(crate) specs: &'a [NumberSpec],
    pub(crate) style: NumberStyle,
}

impl Numbers<'_> {
    /// Whether there is a number between two ends.
    ///
    /// # Errors
    /// Those of [`NumberAutomaton::new`].
    pub(crate) fn has(
        self,
        low: Option<&NumberBound>,
        high: Option<&NumberBound>,
    ) -> Result<bool, NumberError> {
        let limits = NumberLimits::default();
        let ends =
            NumberSpec { minimum: low.cloned(), maximum: high.cloned(), ..NumberSpec::default() };
        let mut pieces = Vec::new();
        for spec in self.specs {
            let own = Piece::from_spec(spec, self.style, &limits)?;
            let mut within = Piece::from_spec(&spec.intersect(&ends), self.style, &limits)?;
            within.retain_mut(|piece| {
                let known = own.iter().find(|own| own.negative == piece.negative);
                if let Some(known) = known {
                    piece.caps = known.caps;
                }
                known.is_some()
            });
            pieces.extend(within);
        }
        Ok(!NumberAutomaton::of_pieces(pieces, self.style, &limits).is_empty())
    }

    /// The greatest number between two ends; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`NumberAutomaton::new`], and [`NumberError::OrderTooLarge`] if there is no
    /// greatest one within any order that a schema may have.
    ///
    /// # Complexity
    /// A few questions for each digit of the result, but only one for each doubling of a run of
    /// nines or zeros.
    pub(crate) fn greatest(
        self,
        low: Option<&NumberBound>,
        high: Option<&NumberBound>,
    ) -> Result<Option<Decimal>, NumberError> {
        if let Some(high) = high
            && !high.exclusive
            && self.has(later(low, Some(high)), Some(high))?
            && low.is_none_or(|low| low.value <= high.value)
        {
            return Ok(Some(high.value.clone()));
        }
        if !self.has(low, high)? {
            return Ok(None);
        }
        let zero = NumberBound { value: Decimal::zero(), exclusive: false };
        let above_zero = NumberBound { exclusive: true, ..zero.clone() };
        if self.has(later(low, Some(&above_zero)), high)? {
            let search = Search { numbers: self, low, high };
            return search.greatest_positive().map(Some);
        }
        let reaches_zero = low
            .is_none_or(|low| low.value < zero.value || low.value == zero.value && !low.exclusive);
        if reaches_zero && self.has(Some(&zero), Some(earlier(high, &zero)))? {
            return Ok(Some(zero.value));
        }
        let mirrored: Vec<NumberSpec> = self.specs.iter().map(mirror).collect();
        let numbers = Numbers { specs: &mirrored, style: self.style };
        let (low, high) = (high.map(mirror_bound), low.map(mirror_bound));
        let search = Search { numbers, low: low.as_ref(), high: high.as_ref() };
        search.least_positive().map(|least| Some(negative(&least)))
    }

    /// The least number between two ends; `None` if there is none.
    ///
    /// # Errors
    /// As [`greatest`](Self::greatest).
    pub(crate) fn least(
        self,
        low: Option<&NumberBound>,
        high: Option<&NumberBound>,
    ) -> Result<Option<Decimal>, NumberError> {
        let mirrored: Vec<NumberSpec> = self.specs.iter().map(mirror).collect();
        let numbers = Numbers { specs: &mirrored, style: self.style };
        let (low, high) = (high.map(mirror_bound), low.map(mirror_bound));
        let found = numbers.greatest(low.as_ref(), high.as_ref())?;
        Ok(found.map(|greatest| negative(&greatest)))
    }
}

struct Search<'a> {
    numbers: Numbers<'a>,
    low: Option<&'a NumberBound>,
    high: Option<&'a NumberBound>,
}

impl Search<'_> {
    /// Whether there is a number from `value` on (after it, if `exclusive`).
    fn reaches(&self, value: &Decimal, exclusive: bool) -> Result<bool, NumberError> {
        let bound = NumberBound { value: value.clone(), exclusive };
        self.numbers.has(later(self.low, Some(&bound)), self.high)
    }

    /// Whether there is a positive number before `value` (up to it, unless `exclusive`).
    fn stays_below(&self, value: &Decimal, exclusive: bool) -> Result<bool, NumberError> {
        let above_zero = NumberBound { value: Decimal::zero(), exclusive: true };
        let bound = NumberBound { value: value.clone(), exclusive };
        self.numbers.has(later(self.low, Some(&above_zero)), Some(earlier(self.high, &bound)))
    }

    /// The greatest number, given that there is a positive one.
    fn greatest_positive(&self) -> Result<Decimal, NumberError> {
        // 10^known is reached, 10^unknown is not.
        let (mut known, mut unknown) = (-MAX_ORDER, MAX_ORDER);
        if self.reaches(&scaled(BigUint::one(), unknown), false)? {
            return Err(too_large());
        }
        while unknown - known > 1 {
            let middle = i64::midpoint(known, unknown);
            if self.reaches(&scaled(BigUint::one(), middle), false)? {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        let (mut digits, mut exponent) = (BigUint::zero(), known + 1);
        while exponent > -2 * MAX_ORDER {
            let nines = |run: u64| (&digits + 1u32) * pow10(run) - 1u32;
            let run = longest_run(exponent + 2 * MAX_ORDER, |run| {
                self.reaches(&scaled(nines(run), exponent - run as i64), false)
            })?;
            (digits, exponent) = (nines(run), exponent - run as i64);
            if run == 0 {
                let mut digit = 9u32;
                let next = |digit: u32| scaled(&digits * 10u32 + digit, exponent - 1);
                while digit > 0 && !self.reaches(&next(digit), false)? {
                    digit -= 1;
                }
                (digits, exponent) = (&digits * 10u32 + digit, exponent - 1);
            }
            let value = scaled(digits.clone(), exponent);
            if !digits.is_zero() && !self.reaches(&value, true)? {
                return Ok(value);
            }
        }
        Err(too_large())
    }

    /// The least positive number, given that there is one.
    fn least_positive(&self) -> Result<Decimal, NumberError> {
        // There is one below 10^known, and none below 10^unknown.
        let (mut unknown, mut known) = (-MAX_ORDER, MAX_ORDER);
        if self.stays_below(&scaled(BigUint::one(), unknown), true)? {
            return Err(too_large());
        }
        while known - unknown > 1 {
            let middle = i64::midpoint(unknown, known);
            if self.stays_below(&scaled(BigUint::one(), middle), true)? {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        let (mut digits, mut exponent) = (BigUint::zero(), known);
        while exponent > -2 * MAX_ORDER {
            // The digits so far are right: which digit, or run of zeros, is next?
            let zeros = |run: u64| &digits * pow10(run);
            let run = if digits.is_zero() {
                0
            } else {
                longest_run(exponent + 2 * MAX_ORDER, |run| {
                    self.stays_below(&scaled(zeros(run) + 1u32, exponent - run as i64), true)
                })?
            };
            (digits, exponent) = (zeros(run), exponent - run as i64);
            if run == 0 {
                let mut digit = 0u32;
                let after = |digit: u32| scaled(&digits * 10u32 + digit + 1u32, exponent - 1);
                while digit < 9 && !self.stays_below(&after(digit), true)? {
                    digit += 1;
                }
                (digits, exponent) = (&digits * 10u32 + digit, exponent - 1);
            }
            let value = scaled(digits.clone(), exponent);
            if !digits.is_zero() && self.stays_below(&value, false)? {
                return Ok(value);
            }
        }
        Err(too_large())
    }
}

/// The greatest length up to `most` for which a condition holds that a longer one implies for a
/// shorter one.
fn longest_run(
    most: i64,
    mut holds: impl FnMut(u64) -> Result<bool, NumberError>,
) -> Result<u64, NumberError> {
    let most = most.unsigned_abs();
    let (mut known, mut step) = (0, 1);
    while known < most && holds((known + step).min(most))? {
        known = (known + step).min(most);
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if known + step <= most && holds(known + step)? {
            known += step;
        }
    }
    Ok(known)
}

fn too_large() -> NumberError {
    NumberError::OrderTooLarge {
        order: MAX_ORDER,
        limit: NumberLimits::default().max_decimal_order,
    }
}

fn scaled(digits: BigUint, exponent: i64) -> Decimal {
    Decimal::new(BigInt::from(digits), exponent)
}

fn negative(value: &Decimal) -> Decimal {
    Decimal::new(-value.mantissa(), value.exponent())
}

fn mirror_bound(bound: &NumberBound) -> NumberBound {
    NumberBound { value: negative(&bound.value), exclusive: bound.exclusive }
}

/// What the negatives of the numbers of a constraint satisfy.
fn mirror(spec: &NumberSpec) -> NumberSpec {
    let all = |values: &[Decimal]| values.iter().map(negative).collect();
    NumberSpec {
        minimum: spec.maximum.as_ref().map(mirror_bound),
        maximum: spec.minimum.as_ref().map(mirror_bound),
        excluded: all(&spec.excluded),
        one_of: spec.one_of.as_deref().map(all),
        ..spec.clone()
    }
}

/// The stricter of two lower ends.
fn later<'a>(
    one: Option<&'a NumberBound>,
    two: Option<&'a NumberBound>,
) -> Option<&'a NumberBound> {
    match (one, two) {
        (Some(first), Some(second)) => {
            let order = first.value.cmp(&second.value).then(first.exclusive.cmp(&second.exclusive));
            Some(if order.is_ge() { first } else { second })
        }
        _ => one.or(two),
    }
}

/// The stricter of two upper ends.
fn earlier<'a>(one: Option<&'a NumberBound>, two: &'a NumberBound) -> &'a NumberBound {
    match one {
        Some(first) => {
            let order = two.value.cmp(&first.value).then(first.exclusive.cmp(&two.exclusive));
            if order.is_ge() { first } else { two }
        }
        None => two,
    }
}
