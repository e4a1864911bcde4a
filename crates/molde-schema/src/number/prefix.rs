//! A number text read up to some byte before its exponent.

use num_bigint::BigUint;

use super::decimal::pow10;

/// Where in RFC 8259's grammar the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Before the first byte.
    Start,
    /// After `-`.
    Minus,
    /// After the only digit of an integer part that is zero.
    Zero,
    /// Among the digits of another integer part.
    Integer,
    /// After the point.
    Point,
    /// Among the digits of the fraction.
    Fraction,
}

/// What was read, as digits. The sign is left to the choice of the constraints.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    pub(super) phase: Phase,
    /// The digits from the first that is not zero on, 0 to 9 each.
    pub(super) digits: Vec<u8>,
    pub(super) integer_digits: i64,
    pub(super) fraction_digits: i64,
}

impl Prefix {
    pub(super) fn start() -> Self {
        Self { phase: Phase::Start, digits: Vec::new(), integer_digits: 0, fraction_digits: 0 }
    }

    /// After one more byte, unless the grammar forbids it. The exponent is not read here.
    pub(super) fn step(&self, byte: u8) -> Option<Self> {
        let phase = match (self.phase, byte) {
            (Phase::Start, b'-') => Phase::Minus,
            (Phase::Start | Phase::Minus, b'0') => Phase::Zero,
            (Phase::Start | Phase::Minus | Phase::Integer, b'0'..=b'9') => Phase::Integer,
            (Phase::Zero | Phase::Integer, b'.') => Phase::Point,
            (Phase::Point | Phase::Fraction, b'0'..=b'9') => Phase::Fraction,
            _ => return None,
        };
        let mut next = self.clone();
        next.phase = phase;
        if byte.is_ascii_digit() {
            if byte != b'0' || !self.digits.is_empty() {
                next.digits.push(byte - b'0');
            }
            match phase {
                Phase::Fraction => next.fraction_digits += 1,
                _ => next.integer_digits += 1,
            }
        }
        Some(next)
    }

    /// Whether the text is a whole number.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Zero | Phase::Integer | Phase::Fraction)
    }

    /// Whether there is neither point nor exponent so far.
    pub(super) fn is_bare(&self) -> bool {
        !matches!(self.phase, Phase::Point | Phase::Fraction)
    }

    /// Whether all digits so far are zeros, or there are none.
    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The exponent of the number written as `0.d…e…`; meaningless for zero.
    pub(super) fn order(&self) -> i64 {
        self.digits.len() as i64 - self.fraction_digits
    }

    /// The digits as an integer.
    pub(super) fn mantissa(&self) -> BigUint {
        mantissa(&self.digits)
    }

    /// The zeros that the digits end with; zero if there are no digits.
    pub(super) fn trailing_zeros(&self) -> i64 {
        self.digits.iter().rev().take_while(|digit| **digit == 0).count() as i64
    }

    /// Whether every digit of the fraction is zero.
    pub(super) fn fraction_is_zero(&self) -> bool {
        self.is_zero() || self.trailing_zeros() >= self.fraction_digits
    }
}

/// Digits, 0 to 9 each, as an integer.
pub(super) fn mantissa(digits: &[u8]) -> BigUint {
    if digits.len() <= 19 {
        return digits.iter().fold(0u64, |value, digit| value * 10 + u64::from(*digit)).into();
    }
    BigUint::from_radix_be(digits, 10).expect("digits are below ten")
}

/// The integers whose digits are those of `base` and then `more` others: first and last.
pub(super) fn continuations(base: &BigUint, more: i64) -> (BigUint, BigUint) {
    let power = pow10(more.unsigned_abs());
    let first = base * &power;
    let last = &first + power - 1u32;
    (first, last)
}
