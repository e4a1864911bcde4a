//! Exact decimals: what a numeral says, without a float in between.

use std::fmt::Write as _;

/// A decimal number, `digits` times ten to the power of `exponent`.
///
/// Normalised, so that equal numbers are equal structures: no zero leads or ends the digits, and
/// zero has none, no sign and exponent 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Exact {
    negative: bool,
    digits: String,
    exponent: i64,
}

/// Digits that [`Exact::plain`] writes at most: far more than any document says, and a bound on
/// what `1e999999999` costs.
const PLAIN_DIGITS: i64 = 400;

impl Exact {
    /// The number of a sign, digits, and decimal places in the last of the digits.
    pub(crate) fn new(negative: bool, digits: &str, places: i64) -> Self {
        let significant = digits.trim_start_matches('0');
        let trimmed = significant.trim_end_matches('0');
        if trimmed.is_empty() {
            return Self { negative: false, digits: String::new(), exponent: 0 };
        }
        let exponent = (significant.len() - trimmed.len()) as i64 - places;
        Self { negative, digits: trimmed.to_owned(), exponent }
    }

    /// Reads a JSON number.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match rest.split_once(['e', 'E']) {
            Some((mantissa, power)) => {
                (mantissa, power.strip_prefix('+').unwrap_or(power).parse::<i64>().ok()?)
            }
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = Self::new(negative, &digits, fraction.len() as i64);
        if number.digits.is_empty() {
            return Some(number);
        }
        Some(Self { exponent: number.exponent.checked_add(power)?, ..number })
    }

    /// The number times ten to the power of `power`.
    pub(crate) fn scaled(&self, power: i64) -> Self {
        if self.digits.is_empty() {
            return self.clone();
        }
        Self { exponent: self.exponent.saturating_add(power), ..self.clone() }
    }

    /// The number with the other sign.
    pub(crate) fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.digits.is_empty(), ..self.clone() }
    }

    /// The power of ten of the first digit: 0 for a number from 1 to below 10. `None` for zero.
    pub(crate) fn magnitude(&self) -> Option<i64> {
        (!self.digits.is_empty()).then(|| self.exponent + self.digits.len() as i64 - 1)
    }

    /// The number in JSON, without an exponent and without needless zeros; `None` if that takes
    /// more than 400 digits.
    pub(crate) fn plain(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        let length = self.digits.len() as i64;
        if length > PLAIN_DIGITS || self.exponent.abs() > PLAIN_DIGITS {
            return None;
        }
        let mut text = String::new();
        if self.negative {
            text.push('-');
        }
        if self.exponent >= 0 {
            text.push_str(&self.digits);
            text.extend(std::iter::repeat_n('0', self.exponent as usize));
        } else {
            let whole = length + self.exponent;
            if whole > 0 {
                let (before, after) = self.digits.split_at(whole as usize);
                write!(text, "{before}.{after}").expect("a String takes any text");
            } else {
                text.push_str("0.");
                text.extend(std::iter::repeat_n('0', (-whole) as usize));
                text.push_str(&self.digits);
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        Exact::from_json(text).and_then(|number| number.plain())
    }

    #[test]
    fn equal_numbers_are_equal_however_they_are_written() {
        for (left, right) in
            [("1", "1.0"), ("1e3", "1000"), ("0.50", "5E-1"), ("-0", "0.000e7"), ("120", "1.2e+2")]
        {
            assert_eq!(Exact::from_json(left), Exact::from_json(right), "{left} and {right}");
            assert!(Exact::from_json(left).is_some());
        }
        assert_ne!(Exact::from_json("1"), Exact::from_json("-1"));
        assert_ne!(
            Exact::from_json("12345678901234567890"),
            Exact::from_json("12345678901234567891")
        );
    }

    #[test]
    fn numbers_are_written_without_exponents_or_needless_zeros() {
        for (text, expected) in [
            ("7230.0", "7230"),
            ("7.230", "7.23"),
            ("5e-3", "0.005"),
            ("-12.5e2", "-1250"),
            ("0.0", "0"),
            ("100", "100"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(plain("1e999999999"), None);
        for text in ["", "-", "1.e", "a", "1e", "--1", "1e99999999999999999999"] {
            assert!(plain(text).is_none(), "{text}");
        }
    }

    #[test]
    fn scaling_moves_the_point_and_nothing_else() {
        let number = Exact::from_json("7.23").expect("a number");
        assert_eq!(number.scaled(3).plain().as_deref(), Some("7230"));
        assert_eq!(number.scaled(-3).plain().as_deref(), Some("0.00723"));
        assert_eq!(number.scaled(3).scaled(-3), number);
        assert_eq!(number.magnitude(), Some(0));
        assert_eq!(Exact::from_json("0").expect("a number").scaled(9).magnitude(), None);
    }
}
