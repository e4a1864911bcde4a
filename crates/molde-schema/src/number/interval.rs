//! Magnitudes between two ends that lie on one lattice and off others.

use num_bigint::BigUint;
use num_traits::One;

use super::decimal::digit_count;
use super::exponent::ExponentSet;
use super::lattice::{Divisor, candidates, least_multiple};
use super::magnitude::{Bound, Magnitude};
use super::prefix::{Phase, Prefix};

/// A set of positive numbers. `None` is no bound; there are no zeros here.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    pub(super) low: Option<Bound>,
    pub(super) high: Option<Bound>,
    /// All values are multiples of it.
    pub(super) step: Option<Divisor>,
    /// No value is a multiple of any.
    pub(super) avoid: Vec<Divisor>,
    /// Points that are left out.
    pub(super) holes: Vec<Magnitude>,
}

/// The numbers `u * 10^e` with `u` in `base..=top` and `e` in `low_exponent..=high_exponent`.
#[derive(Debug)]
pub(super) struct Window<'a> {
    pub(super) base: &'a BigUint,
    pub(super) top: &'a BigUint,
    pub(super) low_exponent: i64,
    pub(super) high_exponent: i64,
    /// Leave the integers out.
    pub(super) non_integer: bool,
}

/// Up to this many exponents are simply all tried.
const FEW_EXPONENTS: i64 = 48;

impl Interval {
    /// Some `(u, e)` of the window for which `u * 10^e` is in the set, if there is one; `u` is not
    /// zero.
    ///
    /// # Complexity
    /// At most as many arithmetic operations as the window's numbers, the divisors and the holes
    /// have digits together, times the candidates of [`candidates`], whatever the range of
    /// exponents: outside of a few orders around the divisors, divisibility does not depend on the
    /// exponent, and between the orders of the two ends every number is inside.
    pub(super) fn find(&self, window: &Window<'_>) -> Option<(BigUint, i64)> {
        let one = BigUint::one();
        let base = window.base.max(&one);
        if window.top < base {
            return None;
        }
        let integers = |step: &Divisor| step.fraction_digits() == 0;
        if window.non_integer && self.step.as_ref().is_some_and(integers) {
            return None;
        }
        let (base_digits, top_digits) = (digit_count(base), digit_count(window.top));
        let mut low = window.low_exponent;
        let mut high = window.high_exponent;
        if let Some(bound) = &self.low {
            low = low.max(bound.at.order - top_digits);
        }
        if let Some(bound) = &self.high {
            high = high.min(bound.at.order - base_digits);
        }
        if let Some(step) = &self.step {
            // No multiple but zero is smaller than the step.
            low = low.max(step.order() - top_digits);
        }
        let find_at = |exponent| {
            self.find_at(base, window.top, (base_digits, top_digits), exponent, window.non_integer)
                .map(|unit| (unit, exponent))
        };
        if high - low <= FEW_EXPONENTS {
            return (low..=high).rev().find_map(find_at);
        }

        // Between these there may be any number of exponents that all behave alike: of each such
        // run, one more than there are holes is enough, and both ends of the run may be partial.
        let margin = 3 + self.holes.len() as i64;
        let mut ranges = vec![(low, low + margin), (high - margin, high)];
        for bound in [&self.low, &self.high].into_iter().flatten() {
            for digits in [base_digits, top_digits] {
                let edge = bound.at.order - digits;
                ranges.push((edge - margin, edge + margin));
            }
        }
        let one = window.non_integer.then(Divisor::one);
        for divisor in self.step.iter().chain(&self.avoid).chain(&one) {
            ranges.push((divisor.exponent() - top_digits - margin, divisor.saturation() + margin));
        }
        ranges.sort_unstable_by_key(|range| std::cmp::Reverse(range.1));
        let mut below = high + 1;
        ranges.into_iter().find_map(|(from, to)| {
            let to = to.min(below - 1);
            let from = from.max(low);
            if from > to {
                return None;
            }
            below = from;
            (from..=to).rev().find_map(find_at)
        })
    }

    fn find_at(
        &self,
        base: &BigUint,
        top: &BigUint,
        (base_digits, top_digits): (i64, i64),
        exponent: i64,
        non_integer: bool,
    ) -> Option<BigUint> {
        // An end is expanded only where its order is that of a number of the window, so what is
        // expanded has no more digits than the two together.
        let mut from = base.clone();
        if let Some(bound) = &self.low
            && base_digits + exponent <= bound.at.order
        {
            from = from.max(bound.least_unit(exponent));
        }
        let mut to = top.clone();
        if let Some(bound) = &self.high
            && top_digits + exponent >= bound.at.order
        {
            to = to.min(bound.greatest_unit(exponent));
        }
        if from > to {
            return None;
        }
        let step = match &self.step {
            None => BigUint::one(),
            Some(divisor) => divisor.step_in_units(exponent, top_digits)?,
        };
        let one = non_integer.then(Divisor::one);
        let avoid: Vec<BigUint> = (self.avoid.iter().chain(&one))
            .filter_map(|divisor| divisor.step_in_units(exponent, top_digits))
            .collect();
        let orders = base_digits + exponent..=top_digits + exponent;
        let mut holes: Vec<BigUint> = (self.holes.iter())
            .filter(|hole| orders.contains(&hole.order))
            .filter_map(|hole| hole.in_units(exponent))
            .collect();
        holes.sort_unstable();
        let tries = candidates(avoid.len(), holes.len());
        let is_hole = |unit: &BigUint| holes.binary_search(unit).is_ok();
        least_multiple(&from, &to, &step, &avoid, tries, is_hole)
    }

    /// How many more digits are enough to tell whether anything can follow `prefix`: if any number
    /// of digits makes a member, so do these. `None` if only the limits tell.
    pub(super) fn enough_digits(&self, prefix: &Prefix, may_have_exponent: bool) -> Option<i64> {
        let read = prefix.digits.len() as i64;
        let beyond_fraction = |digits: i64| (digits - prefix.fraction_digits).max(0);
        // Without an exponent, the integer part itself has to become long enough.
        let integer = if may_have_exponent || prefix.phase != Phase::Integer {
            0
        } else {
            let orders = [&self.low, &self.high].into_iter().flatten().map(|end| end.at.order);
            (orders.max().unwrap_or(0) - prefix.integer_digits).max(0)
        };
        match (&self.step, &self.high) {
            // Digits beyond the last that a multiple has are zeros.
            (Some(step), Some(high)) => {
                let last = step.exponent().min(0);
                let to_last = high.at.order - read - last;
                Some(to_last.max(beyond_fraction(-last)) + 1)
            }
            // Among so many numbers, enough are multiples.
            (Some(step), None) => {
                let tries = candidates(self.avoid.len() + 1, self.holes.len());
                let period = digit_count(step.integer_modulus()) + digit_count(&tries.into());
                Some(integer + beyond_fraction(step.fraction_digits()) + period + 1)
            }
            // Numbers between two ends: one digit more than they have makes room.
            (None, _) if self.avoid.is_empty() && self.holes.is_empty() => {
                let ends = [&self.low, &self.high].into_iter().flatten();
                let digits = ends.map(|end| {
                    let digits = end.at.digits.len() as i64;
                    (digits - read).max(beyond_fraction(digits - end.at.order))
                });
                Some(integer + digits.max().unwrap_or(0) + 2)
            }
            _ => None,
        }
    }

    /// Whether there is any number in the set.
    pub(super) fn is_empty(&self) -> bool {
        // Without a lattice there are infinitely many decimals between the ends, and what is left
        // out is discrete.
        let Some(step) = &self.step else { return false };
        let exponent = step.exponent();
        let base = self.low.as_ref().map_or_else(BigUint::one, |low| low.least_unit(exponent));
        let top = if let Some(high) = &self.high {
            high.greatest_unit(exponent)
        } else {
            let tries = candidates(self.avoid.len(), self.holes.len());
            &base + step.mantissa() * BigUint::from(tries + 1)
        };
        let window = Window {
            base: &base,
            top: &top,
            low_exponent: exponent,
            high_exponent: exponent,
            non_integer: false,
        };
        self.find(&window).is_none()
    }

    /// The exponents `e` for which `digits * 10^e` is in the set. `digits` does not begin with a
    /// zero; `mantissa` is its value.
    pub(super) fn exponents(&self, digits: &[u8], mantissa: &BigUint) -> ExponentSet {
        let count = digits.len() as i64;
        let (mut low, mut high) = (ExponentSet::LEAST, ExponentSet::GREATEST);
        if let Some(bound) = &self.low {
            let ordering = bound.at.cmp_whole(digits);
            let inside = ordering.is_lt() || (ordering.is_eq() && !bound.exclusive);
            low = bound.at.order - count + i64::from(!inside);
        }
        if let Some(bound) = &self.high {
            let ordering = bound.at.cmp_whole(digits);
            let inside = ordering.is_gt() || (ordering.is_eq() && !bound.exclusive);
            high = bound.at.order - count - i64::from(!inside);
        }
        if let Some(step) = &self.step {
            match step.least_exponent(mantissa) {
                Some(least) => low = low.max(least),
                None => return ExponentSet::default(),
            }
        }
        for divisor in &self.avoid {
            if let Some(least) = divisor.least_exponent(mantissa) {
                high = high.min(least - 1);
            }
        }
        let mut set = ExponentSet::range(low, high);
        for hole in &self.holes {
            if hole.cmp_whole(digits).is_eq() {
                set = set.without(hole.order - count);
            }
        }
        set
    }
}
