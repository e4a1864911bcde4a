//! Multiples of a divisor among the numbers `unit * 10^exponent`.

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Zero};

use super::decimal::{Decimal, digit_count, pow10};

/// A positive divisor `mantissa * 10^exponent`, its mantissa split as `2^twos * 5^fives * rest`.
#[derive(Clone, Debug)]
pub(super) struct Divisor {
    mantissa: BigUint,
    exponent: i64,
    twos: u64,
    fives: u64,
    rest: BigUint,
    integer_modulus: BigUint,
}

impl Divisor {
    /// `divisor` is not zero; its sign does not matter.
    pub(super) fn new(divisor: &Decimal) -> Self {
        let mantissa = divisor.mantissa().magnitude().clone();
        let (twos, fives, rest) = split(&mantissa);
        let exponent = divisor.exponent();
        let integer_modulus = &mantissa * pow10(exponent.max(0).unsigned_abs());
        Self { mantissa, exponent, twos, fives, rest, integer_modulus }
    }

    /// The divisor whose multiples are the integers.
    pub(super) fn one() -> Self {
        Self::new(&Decimal::from(1u64))
    }

    pub(super) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The exponent of the divisor written as `0.d…e…`.
    pub(super) fn order(&self) -> i64 {
        digit_count(&self.mantissa) + self.exponent
    }

    pub(super) fn mantissa(&self) -> &BigUint {
        &self.mantissa
    }

    /// Fraction digits of the multiples: those beyond are zero.
    pub(super) fn fraction_digits(&self) -> i64 {
        (-self.exponent).max(0)
    }

    /// The modulus of the digits up to the last of [`fraction_digits`](Self::fraction_digits), read
    /// as an integer.
    pub(super) fn integer_modulus(&self) -> &BigUint {
        &self.integer_modulus
    }

    /// From this exponent of the unit on, the multiples among the units no longer depend on it.
    pub(super) fn saturation(&self) -> i64 {
        self.exponent + self.twos.max(self.fives) as i64
    }

    /// The step `s` such that `u * 10^exponent` is a multiple exactly if `s` divides `u`, or `None`
    /// if the step is larger than every `u` of at most `digits` digits.
    pub(super) fn step_in_units(&self, exponent: i64, digits: i64) -> Option<BigUint> {
        let shift = exponent - self.exponent;
        if shift >= 0 {
            let shift = shift.unsigned_abs();
            let twos = BigUint::one() << self.twos.saturating_sub(shift);
            return Some(twos * pow5(self.fives.saturating_sub(shift)) * &self.rest);
        }
        if -shift > digits {
            return None;
        }
        Some(&self.mantissa * pow10(shift.unsigned_abs()))
    }

    /// The least exponent from which on `mantissa * 10^exponent` is a multiple, or `None` if it
    /// never is. `mantissa` is not zero.
    pub(super) fn least_exponent(&self, mantissa: &BigUint) -> Option<i64> {
        if !(mantissa % &self.rest).is_zero() {
            return None;
        }
        let twos = mantissa.trailing_zeros().unwrap_or(0) as i64;
        let fives = split_fives(mantissa).0 as i64;
        Some(self.exponent + (self.twos as i64 - twos).max(self.fives as i64 - fives))
    }
}

fn split(value: &BigUint) -> (u64, u64, BigUint) {
    let twos = value.trailing_zeros().unwrap_or(0);
    let (fives, rest) = split_fives(&(value >> twos));
    (twos, fives, rest)
}

fn split_fives(value: &BigUint) -> (u64, BigUint) {
    let five = BigUint::from(5u32);
    let mut rest = value.clone();
    let mut fives = 0;
    loop {
        let (quotient, remainder) = rest.div_rem(&five);
        if !remainder.is_zero() || quotient.is_zero() {
            return (fives, rest);
        }
        rest = quotient;
        fives += 1;
    }
}

fn pow5(exponent: u64) -> BigUint {
    let exponent = u32::try_from(exponent).expect("no larger than the bits of a bounded divisor");
    BigUint::from(5u32).pow(exponent)
}

/// The least `u >= from` that is a multiple of `step`, of none of `avoid`, and for which `holes`
/// is false, up to `to`. `tries` bounds the candidates; see [`candidates`].
pub(super) fn least_multiple(
    from: &BigUint,
    to: &BigUint,
    step: &BigUint,
    avoid: &[BigUint],
    tries: usize,
    is_hole: impl Fn(&BigUint) -> bool,
) -> Option<BigUint> {
    if avoid.iter().any(|divisor| (step % divisor).is_zero()) {
        return None;
    }
    let mut unit = if step.is_one() { from.clone() } else { from.next_multiple_of(step) };
    for _ in 0..tries {
        if unit > *to {
            return None;
        }
        if !avoid.iter().any(|divisor| (&unit % divisor).is_zero()) && !is_hole(&unit) {
            return Some(unit);
        }
        unit += step;
    }
    None
}

/// How many consecutive multiples have to be looked at so that one avoids `divisors` proper
/// divisors and `holes` points, if there are as many.
///
/// Replacing each divisor by one of its primes only excludes more, and a run of integers that each
/// have one of k primes as a factor is shorter than 2^k (Kanold's bound on Jacobsthal's function).
pub(super) fn candidates(divisors: usize, holes: usize) -> usize {
    (1usize << divisors.min(30)) * (holes + 1)
}
