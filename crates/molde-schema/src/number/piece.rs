//! A constraint on numbers of one sign, in the form in which texts are checked against it.

use num_traits::Zero;

use super::decimal::{Decimal, digit_count};
use super::interval::Interval;
use super::lattice::Divisor;
use super::limits::{NumberError, NumberLimits, NumberStyle};
use super::magnitude::{Bound, Magnitude};
use super::spec::{NumberBound, NumberSpec};

/// The most digits that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Caps {
    pub(super) integer: i64,
    pub(super) fraction: i64,
    /// From the first non-zero digit on, in a text with a fraction.
    pub(super) significant: i64,
    /// Zeros between the point and the first other digit of `0.…`.
    pub(super) fraction_zeros: i64,
}

impl Caps {
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.integer >= other.integer
            && self.fraction >= other.fraction
            && self.significant >= other.significant
            && self.fraction_zeros >= other.fraction_zeros
    }

    fn raised(&self, other: &Self) -> Self {
        Self {
            integer: self.integer.max(other.integer),
            fraction: self.fraction.max(other.fraction),
            significant: self.significant.max(other.significant),
            fraction_zeros: self.fraction_zeros.max(other.fraction_zeros),
        }
    }
}

/// What draft 4's notion of an integer says of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spelling {
    Free,
    /// Neither fraction nor exponent.
    Bare,
    /// A fraction or an exponent.
    NotBare,
}

/// The magnitudes, zero apart.
#[derive(Clone, Debug)]
pub(super) enum Set {
    Interval(Box<Interval>),
    /// Ordered by [`Magnitude::cmp_digits`], so that those with a common start are neighbours.
    Values(Vec<Magnitude>),
}

/// One half of a [`NumberSpec`]: the numbers that are written with, or without, a sign.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) negative: bool,
    pub(super) contains_zero: bool,
    pub(super) spelling: Spelling,
    pub(super) caps: Caps,
    pub(super) set: Set,
}

impl Piece {
    /// The halves of a constraint that accept anything, by value.
    pub(super) fn from_spec(
        spec: &NumberSpec,
        style: NumberStyle,
        limits: &NumberLimits,
    ) -> Result<Vec<Self>, NumberError> {
        let spelling = match (spec.draft4_integer, spec.not_draft4_integer) {
            (true, true) => return Ok(Vec::new()),
            (true, false) => Spelling::Bare,
            (false, true) => Spelling::NotBare,
            (false, false) => Spelling::Free,
        };
        let others = NumberSpec { one_of: None, ..spec.clone() };
        let mut pieces = Vec::new();
        for negative in [false, true] {
            let set = match &spec.one_of {
                Some(values) => Set::values(values, &others, negative),
                None => half(spec, negative, limits)?,
            };
            let contains_zero =
                spec.accepts(&Decimal::zero()) && !(negative && style == NumberStyle::Plain);
            if set.is_empty() && !contains_zero {
                continue;
            }
            let caps = caps(&set, style, limits);
            pieces.push(Self { negative, contains_zero, spelling, caps, set });
        }
        Ok(pieces)
    }
}

impl Set {
    /// The values of one sign, zero apart, that `others` accepts too.
    fn values(values: &[Decimal], others: &NumberSpec, negative: bool) -> Self {
        let mut magnitudes: Vec<Magnitude> = (values.iter())
            .filter(|value| !value.is_zero() && value.is_negative() == negative)
            .filter(|value| others.accepts(value))
            .map(Magnitude::new)
            .collect();
        magnitudes.sort_by(Magnitude::cmp_digits);
        magnitudes.dedup_by(|one, two| one.cmp_digits(two).is_eq());
        Self::Values(magnitudes)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Interval(interval) => interval.is_empty(),
            Self::Values(values) => values.is_empty(),
        }
    }
}

/// The non-zero magnitudes of one sign that a constraint without `one_of` accepts.
fn half(spec: &NumberSpec, negative: bool, limits: &NumberLimits) -> Result<Set, NumberError> {
    let none = || Ok(Set::Values(Vec::new()));
    let (low, high) =
        if negative { (&spec.maximum, &spec.minimum) } else { (&spec.minimum, &spec.maximum) };
    let outward = |bound: &&NumberBound| bound.value.is_negative() == negative;
    // A lower end at zero, or on the other side of it, leaves all magnitudes.
    let low = low.as_ref().filter(outward).filter(|bound| !bound.value.is_zero());
    if let Some(high) = high {
        if high.value.is_zero() || !outward(&high) {
            return none();
        }
        if let Some(low) = low {
            match low.value.abs().cmp(&high.value.abs()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal if !low.exclusive && !high.exclusive => {
                    return Ok(Set::values(std::slice::from_ref(&low.value), spec, negative));
                }
                _ => return none(),
            }
        }
    }

    let mut step: Option<Decimal> = None;
    let mut divisors = spec.multiple_of.clone();
    if spec.integer_only || spec.draft4_integer {
        divisors.push(Decimal::from(1u64));
    }
    for divisor in &divisors {
        if divisor.is_zero() {
            return none();
        }
        let common = step.map_or_else(|| divisor.abs(), |step| step.lcm(divisor));
        let digits = digit_count(common.mantissa().magnitude());
        if digits > i64::from(limits.max_decimal_digits) {
            return Err(NumberError::TooManyDigits {
                digits: digits as usize,
                limit: limits.max_decimal_digits,
            });
        }
        step = Some(common);
    }
    let mut avoid: Vec<Decimal> = (spec.not_multiple_of.iter())
        .filter(|divisor| !divisor.is_zero())
        .map(Decimal::abs)
        .collect();
    if spec.not_integer {
        avoid.push(Decimal::from(1u64));
    }
    avoid.sort();
    avoid.dedup();
    if avoid.len() > limits.max_excluded_divisors as usize {
        return Err(NumberError::TooManyExcludedDivisors {
            got: avoid.len(),
            limit: limits.max_excluded_divisors,
        });
    }
    let bound = |bound: &NumberBound| Bound {
        at: Magnitude::new(&bound.value),
        exclusive: bound.exclusive,
    };
    let mut holes: Vec<Magnitude> = (spec.excluded.iter())
        .filter(|value| !value.is_zero() && value.is_negative() == negative)
        .map(Magnitude::new)
        .collect();
    holes.sort_by(Magnitude::cmp_digits);
    holes.dedup_by(|one, two| one.cmp_digits(two).is_eq());
    Ok(Set::Interval(Box::new(Interval {
        low: low.map(bound),
        high: high.as_ref().map(bound),
        step: step.as_ref().map(Divisor::new),
        avoid: avoid.iter().map(Divisor::new).collect(),
        holes,
    })))
}

fn caps(set: &Set, style: NumberStyle, limits: &NumberLimits) -> Caps {
    let integers = match set {
        Set::Interval(interval) => {
            interval.step.as_ref().is_some_and(|step| step.fraction_digits() == 0)
        }
        Set::Values(_) => true,
    };
    let caps = match style {
        NumberStyle::Any => Caps {
            integer: i64::from(limits.max_integer_digits),
            fraction: i64::from(limits.max_fraction_digits),
            significant: i64::MAX,
            fraction_zeros: i64::MAX,
        },
        NumberStyle::Plain => Caps {
            integer: i64::from(if integers {
                limits.max_integer_digits
            } else {
                limits.max_plain_number_digits
            }),
            fraction: i64::from(limits.plain_fraction_zeros)
                + i64::from(limits.plain_significant_digits),
            significant: i64::from(limits.plain_significant_digits),
            fraction_zeros: i64::from(limits.plain_fraction_zeros),
        },
    };
    caps.raised(&needed(set))
}

/// Digits without which a set with distant or close ends would have no text.
fn needed(set: &Set) -> Caps {
    let (integer, fraction, significant, fraction_zeros) = match set {
        Set::Values(values) => {
            let longest =
                |digits: &dyn Fn(&Magnitude) -> i64| values.iter().map(digits).max().unwrap_or(0);
            (
                longest(&|value| value.order),
                longest(&|value| value.digits.len() as i64 - value.order),
                longest(&|value| value.digits.len() as i64),
                longest(&|value| -value.order),
            )
        }
        Set::Interval(interval) => {
            let low_order = interval.low.as_ref().map_or(0, |low| low.at.order);
            let high_order = interval.high.as_ref().map_or(0, |high| high.at.order);
            // The order of the gap between the ends: one digit below it, there is room.
            let gap = interval.gap_order().unwrap_or(0).min(high_order);
            let (step_order, step_fraction) = (interval.step.as_ref())
                .map_or((0, 0), |step| (step.order(), step.fraction_digits()));
            let fraction = step_fraction.max(2 - gap);
            (
                low_order.max(step_order) + step_order.max(0) + 1,
                fraction,
                high_order.max(0) + fraction,
                -high_order,
            )
        }
    };
    let most = NumberLimits::MOST_RAISED_DIGITS;
    Caps {
        integer: integer.min(most),
        fraction: fraction.max(significant).min(most.max(significant)),
        significant,
        fraction_zeros: (fraction_zeros + 1).min(most),
    }
}

impl Interval {
    /// The order of the difference of the two ends, if there are two.
    fn gap_order(&self) -> Option<i64> {
        let high = self.high.as_ref()?;
        let Some(low) = &self.low else { return Some(high.at.order) };
        let gap = high.at.to_decimal().minus(&low.at.to_decimal());
        (!gap.mantissa().is_zero()).then(|| gap.order())
    }
}
