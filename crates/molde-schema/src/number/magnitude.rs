//! Non-zero magnitudes as strings of significant digits.

use std::cmp::Ordering;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::Zero;

use super::decimal::{Decimal, pow10};

/// A positive number `0.d1d2d3… * 10^order`, `d1` not zero.
#[derive(Clone, Debug)]
pub(super) struct Magnitude {
    /// The significant digits, 0 to 9 each, without trailing zeros.
    pub(super) digits: Vec<u8>,
    pub(super) order: i64,
    mantissa: BigUint,
    exponent: i64,
}

impl Magnitude {
    /// The magnitude of a value that is not zero.
    pub(super) fn new(value: &Decimal) -> Self {
        let mantissa = value.mantissa().magnitude().clone();
        let digits = mantissa.to_radix_be(10);
        let order = digits.len() as i64 + value.exponent();
        Self { digits, order, mantissa, exponent: value.exponent() }
    }

    /// The value as a multiple of `10^exponent`, if it is one.
    pub(super) fn in_units(&self, exponent: i64) -> Option<BigUint> {
        let shift = self.exponent - exponent;
        (shift >= 0).then(|| &self.mantissa * pow10(shift.unsigned_abs()))
    }

    /// The digit at an index, zero before the first and after the last.
    pub(super) fn digit(&self, index: i64) -> u8 {
        usize::try_from(index).ok().and_then(|index| self.digits.get(index)).copied().unwrap_or(0)
    }

    pub(super) fn to_decimal(&self) -> Decimal {
        Decimal::new(self.mantissa.clone().into(), self.exponent)
    }

    /// Ordered by the digits read as a fraction, then by the order.
    pub(super) fn cmp_digits(&self, other: &Self) -> Ordering {
        self.digits.cmp(&other.digits).then(self.order.cmp(&other.order))
    }

    /// The first digits, as many as `read` has, compared with `read`.
    pub(super) fn cmp_start(&self, read: &[u8]) -> Ordering {
        let common = self.digits.len().min(read.len());
        self.digits[..common].cmp(&read[..common]).then_with(|| {
            if read[common..].iter().any(|digit| *digit != 0) {
                Ordering::Less
            } else {
                Ordering::Equal
            }
        })
    }

    /// All digits, padded with zeros without end, compared with `read`, padded likewise.
    pub(super) fn cmp_whole(&self, read: &[u8]) -> Ordering {
        self.cmp_start(read).then_with(|| {
            // No trailing zeros: any digit left makes a difference.
            if self.digits.len() > read.len() { Ordering::Greater } else { Ordering::Equal }
        })
    }
}

/// One end of an interval of magnitudes; not zero.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) at: Magnitude,
    pub(super) exclusive: bool,
}

impl Bound {
    /// The least `u` for which `u * 10^exponent` is on the upper side of this lower end.
    pub(super) fn least_unit(&self, exponent: i64) -> BigUint {
        let (quotient, exact) = self.quotient(exponent);
        if exact && !self.exclusive { quotient } else { quotient + 1u32 }
    }

    /// The greatest `u` for which `u * 10^exponent` is on the lower side of this upper end, or zero.
    pub(super) fn greatest_unit(&self, exponent: i64) -> BigUint {
        let (quotient, exact) = self.quotient(exponent);
        if exact && self.exclusive { quotient - 1u32 } else { quotient }
    }

    fn quotient(&self, exponent: i64) -> (BigUint, bool) {
        if let Some(units) = self.at.in_units(exponent) {
            return (units, true);
        }
        let power = pow10((exponent - self.at.exponent).unsigned_abs());
        let (quotient, remainder) = self.at.mantissa.div_rem(&power);
        (quotient, remainder.is_zero())
    }
}
