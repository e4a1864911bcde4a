//! The shortest way to finish a number text so that its value is in a set.
//!
//! A continuation adds digits, perhaps a point among them, perhaps an exponent. Its *shape* is how
//! many bytes each takes. The texts of one shape are the numbers `u * 10^e` with `u` in one range
//! of integers and `e` in another, so whether a shape has a member of the set is arithmetic
//! ([`Interval::find`](super::interval::Interval::find)), not a search over texts. Shapes are tried
//! from the shortest on.

use num_bigint::BigUint;
use num_traits::Zero;

use super::decimal::pow10;
use super::exponent::ExponentSet;
use super::interval::Window;
use super::limits::NumberStyle;
use super::magnitude::Magnitude;
use super::piece::{Piece, Set, Spelling};
use super::prefix::{Phase, Prefix, continuations};

/// A continuation: the digits that are added, and the exponent of the last of all digits.
type Found = (Vec<u8>, i64);

/// How the bytes of a continuation are spent.
#[derive(Clone, Copy, Debug)]
struct Shape {
    digits: i64,
    point: bool,
    /// Bytes of the exponent, its mark included: none, or two and more.
    exponent_bytes: i64,
    /// How many of the digits may stand in the fraction.
    fraction: (i64, i64),
}

/// What a continuation has to be.
#[derive(Clone, Copy, Debug)]
struct Demand {
    digits: i64,
    /// Range of the exponent of the last digit.
    exponents: (i64, i64),
    non_integer: bool,
    /// If only zeros were read: how many digits are left from the first other one on.
    significant: (i64, i64),
}

/// Lengths that are tried before it is asked whether there is any continuation at all.
const SHORT: i64 = 2;

/// A shortest text that, after `prefix`, makes a number of `piece`; `None` if there is none.
pub(super) fn completion(
    piece: &Piece,
    prefix: &Prefix,
    style: NumberStyle,
    max_exponent_digits: u32,
) -> Option<Vec<u8>> {
    let search = Search {
        piece,
        prefix,
        style,
        max_exponent_digits: i64::from(max_exponent_digits),
        base: prefix.mantissa(),
        values: match &piece.set {
            Set::Interval(_) => &[],
            Set::Values(values) => starting_with(values, &prefix.digits),
        },
    };
    search.shortest()
}

/// The values whose digits begin with those read, padded with zeros where they are fewer.
pub(super) fn starting_with<'a>(values: &'a [Magnitude], read: &[u8]) -> &'a [Magnitude] {
    let from = values.partition_point(|value| value.cmp_start(read).is_lt());
    let rest = &values[from..];
    &rest[..rest.partition_point(|value| value.cmp_start(read).is_eq())]
}

struct Search<'a> {
    piece: &'a Piece,
    prefix: &'a Prefix,
    style: NumberStyle,
    max_exponent_digits: i64,
    base: BigUint,
    values: &'a [Magnitude],
}

impl Search<'_> {
    fn shortest(&self) -> Option<Vec<u8>> {
        if !self.within_caps() {
            return None;
        }
        if let Some(text) = (0..=SHORT).find_map(|length| self.of_length(length, 0)) {
            return Some(text);
        }
        // Every continuation is one of these numbers. If none of them fits, there is none; and the
        // fewest digits with which one fits are a lower bound for the shapes.
        let most_digits = self.most_digits();
        let enough_digits = match &self.piece.set {
            Set::Interval(interval) => (interval)
                .enough_digits(self.prefix, self.may_have_exponent())
                .unwrap_or(most_digits),
            Set::Values(_) => most_digits,
        };
        let most_useful = enough_digits.min(most_digits);
        if !self.fits(most_useful) {
            return None;
        }
        let (mut too_few, mut enough) = (-1, 0);
        while enough < most_useful && !self.fits(enough) {
            (too_few, enough) = (enough, most_useful.min(2 * enough + 4));
        }
        while enough - too_few > 1 {
            let middle = i64::midpoint(too_few, enough);
            if self.fits(middle) { enough = middle } else { too_few = middle }
        }
        let most_bytes = most_digits + self.max_exponent_digits + 3;
        let fewest = enough;
        (fewest.max(SHORT + 1)..=most_bytes).find_map(|length| self.of_length(length, fewest))
    }

    fn within_caps(&self) -> bool {
        let (prefix, caps) = (self.prefix, &self.piece.caps);
        if prefix.integer_digits > caps.integer || prefix.fraction_digits > caps.fraction {
            return false;
        }
        if prefix.is_bare() {
            return true;
        }
        let significant = prefix.digits.len() as i64;
        let zeros = if prefix.is_zero() { prefix.fraction_digits } else { 0 };
        significant <= caps.significant && zeros <= caps.fraction_zeros
    }

    /// No continuation has more digits.
    fn most_digits(&self) -> i64 {
        let (prefix, caps) = (self.prefix, &self.piece.caps);
        let integer = match prefix.phase {
            Phase::Integer => caps.integer - prefix.integer_digits,
            _ => 0,
        };
        let fraction = match self.piece.spelling {
            Spelling::Bare => 0,
            _ => caps.fraction - prefix.fraction_digits,
        };
        integer + fraction
    }

    /// Whether `digits` more digits and any exponent that the style knows make a member, the
    /// point's place apart. Monotone in `digits`: a zero more, and an exponent one less, are the
    /// same number.
    fn fits(&self, digits: i64) -> bool {
        let last = -self.prefix.fraction_digits - digits;
        let exponents = if self.may_have_exponent() {
            (ExponentSet::LEAST, ExponentSet::GREATEST)
        } else if self.prefix.phase == Phase::Integer {
            (last, 0)
        } else {
            (last, last)
        };
        let non_integer = self.style == NumberStyle::Plain && !self.prefix.is_bare();
        self.find(&Demand { digits, exponents, non_integer, significant: (0, i64::MAX) }).is_some()
    }

    fn may_have_exponent(&self) -> bool {
        self.style == NumberStyle::Any && self.piece.spelling != Spelling::Bare
    }

    fn of_length(&self, length: i64, fewest_digits: i64) -> Option<Vec<u8>> {
        let longest_exponent =
            if self.may_have_exponent() { self.max_exponent_digits + 2 } else { 0 };
        for exponent_bytes in 0..=longest_exponent.min(length) {
            if exponent_bytes == 1 {
                continue;
            }
            for point in [false, true] {
                let digits = length - exponent_bytes - i64::from(point);
                if digits < fewest_digits {
                    continue;
                }
                if let Some(text) = self.shape(digits, point, exponent_bytes).and_then(|shape| {
                    let found = self.of_shape(&shape)?;
                    Some(self.text(&shape, &found))
                }) {
                    return Some(text);
                }
            }
        }
        None
    }

    /// The shape, if grammar, caps and spelling allow it.
    fn shape(&self, digits: i64, point: bool, exponent_bytes: i64) -> Option<Shape> {
        let (prefix, caps) = (self.prefix, &self.piece.caps);
        let bare = prefix.is_bare() && !point && exponent_bytes == 0;
        match self.piece.spelling {
            Spelling::Bare if !bare => return None,
            Spelling::NotBare if bare => return None,
            _ => {}
        }
        let integer_room = match prefix.phase {
            Phase::Integer => caps.integer - prefix.integer_digits,
            _ => 0,
        };
        let fraction_room = caps.fraction - prefix.fraction_digits;
        let fraction = match (prefix.phase, point) {
            (Phase::Zero | Phase::Integer, false) => (digits <= integer_room).then_some((0, 0))?,
            (Phase::Zero | Phase::Integer, true) => {
                ((digits - integer_room).max(1), digits.min(fraction_room))
            }
            (Phase::Point, false) if digits > 0 => (digits, digits.min(fraction_room)),
            (Phase::Fraction, false) => (digits, digits.min(fraction_room)),
            _ => return None,
        };
        let written = prefix.digits.len() as i64 + digits;
        let fractional = point || !prefix.is_bare();
        if fractional && !prefix.is_zero() && written > caps.significant {
            return None;
        }
        (fraction.0 <= fraction.1).then_some(Shape { digits, point, exponent_bytes, fraction })
    }

    fn of_shape(&self, shape: &Shape) -> Option<Found> {
        let (least, greatest) = self.exponents_of_bytes(shape.exponent_bytes);
        let fraction_digits = self.prefix.fraction_digits;
        let least = least - fraction_digits - shape.fraction.1;
        let greatest = greatest - fraction_digits - shape.fraction.0;
        let fractional = shape.point || !self.prefix.is_bare();
        let non_integer = self.style == NumberStyle::Plain && fractional;
        let caps = &self.piece.caps;
        let significant = if non_integer && self.prefix.is_zero() {
            // All that is left is the fraction, and its zeros are counted apart.
            (fraction_digits + shape.digits - caps.fraction_zeros, caps.significant)
        } else {
            (0, i64::MAX)
        };
        let exponents = (least, greatest);
        self.find(&Demand { digits: shape.digits, exponents, non_integer, significant })
    }

    fn find(&self, demand: &Demand) -> Option<Found> {
        let &Demand { digits, exponents, non_integer, significant } = demand;
        if self.prefix.is_zero() && self.piece.contains_zero && !non_integer {
            let exponent = 0.clamp(exponents.0, exponents.1);
            return Some((vec![0; digits as usize], exponent));
        }
        let interval = match &self.piece.set {
            Set::Values(_) => {
                return self.values.iter().find_map(|value| self.find_value(value, demand));
            }
            Set::Interval(interval) => interval,
        };
        let (mut base, mut top) = continuations(&self.base, digits);
        if significant.0 > 0 {
            base = base.max(pow10((significant.0 - 1).unsigned_abs()));
        }
        if significant.1 < digits {
            top = top.min(pow10(significant.1.unsigned_abs()) - 1u32);
        }
        let window = Window {
            base: &base,
            top: &top,
            low_exponent: exponents.0,
            high_exponent: exponents.1,
            non_integer,
        };
        let (unit, exponent) = interval.find(&window)?;
        Some((last_digits(&unit, digits), exponent))
    }

    fn find_value(&self, value: &Magnitude, demand: &Demand) -> Option<Found> {
        let &Demand { digits, exponents: (least, greatest), non_integer, significant } = demand;
        let length = value.digits.len() as i64;
        if non_integer && value.order >= length {
            return None;
        }
        let read = self.prefix.digits.len() as i64;
        if read > 0 {
            // The first digit stands for the value's order, so the last digit's exponent is known.
            let exponent = value.order - read - digits;
            if length > read + digits || exponent < least || exponent > greatest {
                return None;
            }
            let more = (read..read + digits).map(|at| value.digit(at)).collect();
            return Some((more, exponent));
        }
        let exponent = greatest.min(value.order - length.max(significant.0));
        let count = value.order - exponent;
        if count > digits.min(significant.1) || exponent < least {
            return None;
        }
        let zeros = digits - count;
        Some(((0..digits).map(|at| value.digit(at - zeros)).collect(), exponent))
    }

    /// The exponents that fit into so many bytes, mark included.
    fn exponents_of_bytes(&self, bytes: i64) -> (i64, i64) {
        if bytes < 2 {
            return (0, 0);
        }
        let power = |digits: i64| 10i64.pow(digits.min(self.max_exponent_digits) as u32);
        (1 - power(bytes - 2), power(bytes - 1) - 1)
    }

    fn text(&self, shape: &Shape, (digits, last_exponent): &Found) -> Vec<u8> {
        // The exponent written is that of the last digit, plus the digits of the fraction.
        let (least, greatest) = self.exponents_of_bytes(shape.exponent_bytes);
        let written = last_exponent + self.prefix.fraction_digits;
        let fraction = (shape.fraction.0).max(least - written).min(shape.fraction.1);
        let exponent = (written + fraction).min(greatest);
        let (integer, fraction) = digits.split_at(digits.len() - fraction as usize);
        let mut text: Vec<u8> = integer.iter().map(|digit| digit + b'0').collect();
        if shape.point {
            text.push(b'.');
        }
        text.extend(fraction.iter().map(|digit| digit + b'0'));
        if shape.exponent_bytes > 0 {
            text.extend(format!("e{exponent}").into_bytes());
        }
        text
    }
}

fn last_digits(unit: &BigUint, count: i64) -> Vec<u8> {
    let digits = if unit.is_zero() { Vec::new() } else { unit.to_radix_be(10) };
    let count = count as usize;
    let mut last = vec![0; count.saturating_sub(digits.len())];
    last.extend(&digits[digits.len().saturating_sub(count)..]);
    last
}
