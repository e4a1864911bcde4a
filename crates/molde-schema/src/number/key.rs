//! When two prefixes are one state.
//!
//! A state is looked up by a summary of what was read. Equal summaries have equal continuations
//! (the converse is not needed), and a summary does not grow with the size of a bound: it compares
//! what was read with the first digits of each end, and keeps remainders of divisors.

use std::cmp::Ordering;

use num_bigint::BigUint;

use super::completion::starting_with;
use super::interval::Interval;
use super::lattice::Divisor;
use super::limits::NumberStyle;
use super::magnitude::Magnitude;
use super::piece::{Caps, Piece, Set, Spelling};
use super::prefix::{Phase, Prefix, mantissa};

/// The summary of a prefix without exponent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PrefixKey {
    phase: Phase,
    is_zero: bool,
    fraction_is_zero: bool,
    /// Digits of the part that is being read.
    count: i64,
    /// The order of the number; its significant digits in style `Plain` after the point.
    order: i64,
    trailing_zeros: i64,
    pieces: Vec<PieceKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PieceKey {
    /// Every continuation within the caps is a member.
    Anything(Caps),
    Interval {
        piece: u32,
        low: Ordering,
        high: Ordering,
        /// Those that what was read is the beginning of.
        holes: Vec<u32>,
        remainders: Vec<BigUint>,
    },
    /// Those values, of all that are sorted by their digits.
    Values { piece: u32, from: usize, count: usize },
}

impl PrefixKey {
    /// The summary of `prefix` for the pieces of `live`, from which those that another one
    /// includes are removed.
    pub(super) fn new(
        prefix: &Prefix,
        pieces: &[Piece],
        live: &mut Vec<u32>,
        style: NumberStyle,
    ) -> Self {
        if let Some(all) = (live.iter())
            .filter(|id| holds_anything(&pieces[**id as usize], prefix, style))
            .max_by_key(|id| {
                let caps = &pieces[**id as usize].caps;
                (caps.integer, caps.fraction, caps.significant, std::cmp::Reverse(**id))
            })
            .copied()
        {
            let caps = pieces[all as usize].caps;
            live.retain(|id| *id == all || !caps.covers(&pieces[*id as usize].caps));
        }
        let keys: Vec<PieceKey> = (live.iter())
            .map(|id| PieceKey::new(*id, &pieces[*id as usize], prefix, style))
            .collect();
        let detailed = keys.iter().any(|key| !matches!(key, PieceKey::Anything(_)));
        let divided = keys.iter().any(
            |key| matches!(key, PieceKey::Interval { remainders, .. } if !remainders.is_empty()),
        );
        let is_zero = prefix.is_zero();
        let fractional = !prefix.is_bare();
        let plain_fraction = style == NumberStyle::Plain && fractional && !is_zero;
        let count = match prefix.phase {
            Phase::Integer => prefix.integer_digits,
            _ if plain_fraction && !detailed => 0,
            _ => prefix.fraction_digits,
        };
        let order = match style {
            _ if is_zero => 0,
            NumberStyle::Plain if fractional => prefix.digits.len() as i64,
            NumberStyle::Plain => 0,
            NumberStyle::Any => i64::from(detailed) * prefix.order(),
        };
        Self {
            phase: prefix.phase,
            is_zero,
            fraction_is_zero: plain_fraction && prefix.fraction_is_zero(),
            count,
            order,
            trailing_zeros: match style {
                NumberStyle::Any if divided => prefix.trailing_zeros(),
                _ => 0,
            },
            pieces: keys,
        }
    }

    #[cfg(test)]
    /// Bytes held on the heap.
    pub(super) fn memory_usage(&self) -> usize {
        let inner: usize = (self.pieces.iter())
            .map(|piece| match piece {
                PieceKey::Interval { holes, remainders, .. } => {
                    holes.capacity() * size_of::<u32>()
                        + remainders
                            .iter()
                            .map(|value| value.bits() as usize / 8 + 32)
                            .sum::<usize>()
                }
                _ => 0,
            })
            .sum();
        self.pieces.capacity() * size_of::<PieceKey>() + inner
    }
}

impl PieceKey {
    fn new(id: u32, piece: &Piece, prefix: &Prefix, style: NumberStyle) -> Self {
        if holds_anything(piece, prefix, style) {
            return Self::Anything(piece.caps);
        }
        match &piece.set {
            Set::Values(values) => {
                let found = starting_with(values, &prefix.digits);
                let from = values.partition_point(|value| value.cmp_start(&prefix.digits).is_lt());
                Self::Values { piece: id, from, count: found.len() }
            }
            // Zeros are counted by the key as a whole, and say nothing else.
            Set::Interval(_) if prefix.is_zero() => Self::Interval {
                piece: id,
                low: Ordering::Equal,
                high: Ordering::Equal,
                holes: Vec::new(),
                remainders: Vec::new(),
            },
            Set::Interval(interval) => {
                let divisors = interval.step.iter().chain(&interval.avoid);
                let holes = (interval.holes.iter().zip(0..))
                    .filter(|(hole, _)| compare(hole, prefix, style).is_eq())
                    .map(|(_, index)| index)
                    .collect();
                Self::Interval {
                    piece: id,
                    low: low_end(interval, prefix, style),
                    high: high_end(interval, prefix, style),
                    holes,
                    remainders: divisors.map(|divisor| remainder(divisor, prefix, style)).collect(),
                }
            }
        }
    }
}

/// How a bound compares with every continuation of the prefix, where that is settled; else whether
/// its first digits are less than, equal to or greater than those read.
fn compare(bound: &Magnitude, prefix: &Prefix, style: NumberStyle) -> Ordering {
    if style == NumberStyle::Plain {
        let order = bound.order.cmp(&prefix.order());
        // More digits may come before the point, so only a smaller order is settled there.
        if order.is_lt() || (order.is_gt() && !prefix.is_bare()) {
            return order;
        }
    }
    bound.cmp_start(&prefix.digits)
}

fn low_end(interval: &Interval, prefix: &Prefix, style: NumberStyle) -> Ordering {
    interval.low.as_ref().map_or(Ordering::Less, |low| compare(&low.at, prefix, style))
}

fn high_end(interval: &Interval, prefix: &Prefix, style: NumberStyle) -> Ordering {
    interval.high.as_ref().map_or(Ordering::Greater, |high| compare(&high.at, prefix, style))
}

/// What the divisor has to remember of the digits.
fn remainder(divisor: &Divisor, prefix: &Prefix, style: NumberStyle) -> BigUint {
    match style {
        // Exponents may move the point anywhere, so the zeros at the end are counted apart: of the
        // digits before them, the mantissa's remainder has all that ever matters, for at most one
        // of two and five divides them.
        NumberStyle::Any => {
            let zeros = prefix.trailing_zeros() as usize;
            mantissa(&prefix.digits[..prefix.digits.len() - zeros]) % divisor.mantissa()
        }
        // The point is fixed: digits beyond the divisor's own have to be zeros.
        NumberStyle::Plain => {
            let beyond = (prefix.fraction_digits - divisor.fraction_digits()).max(0) as usize;
            let kept = prefix.digits.len().saturating_sub(beyond);
            if prefix.digits[kept..].iter().any(|digit| *digit != 0) {
                return divisor.integer_modulus().clone();
            }
            mantissa(&prefix.digits[..kept]) % divisor.integer_modulus()
        }
    }
}

/// Whether every continuation within the caps is a member.
fn holds_anything(piece: &Piece, prefix: &Prefix, style: NumberStyle) -> bool {
    let Set::Interval(interval) = &piece.set else { return false };
    let spelling = match piece.spelling {
        Spelling::Free => true,
        Spelling::Bare => false,
        Spelling::NotBare => !prefix.is_bare(),
    };
    if !spelling || interval.step.is_some() || !interval.avoid.is_empty() {
        return false;
    }
    if prefix.is_zero() {
        return piece.contains_zero
            && interval.low.is_none()
            && interval.high.is_none()
            && interval.holes.is_empty();
    }
    // Up to the point, a later digit may still carry the number past an upper end or a hole.
    let settled = style == NumberStyle::Plain && !prefix.is_bare();
    let low = interval.low.is_none()
        || (style == NumberStyle::Plain && low_end(interval, prefix, style).is_lt())
            && (settled || interval.low.as_ref().is_some_and(|low| low.at.order < prefix.order()));
    let high = interval.high.is_none() || (settled && high_end(interval, prefix, style).is_gt());
    let holes = interval.holes.is_empty()
        || (settled && !interval.holes.iter().any(|hole| compare(hole, prefix, style).is_eq()));
    low && high && holes
}
