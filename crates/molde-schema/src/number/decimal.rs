//! Exact decimal numbers of any size.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::limits::{NumberError, NumberLimits};

/// Far beyond every order that a limit allows, with room for sums.
const ORDER_SATURATED: i64 = i64::MAX / 8;

/// An exact decimal number, `mantissa * 10^exponent`.
///
/// Normalised: the mantissa is no multiple of ten, and zero is `0 * 10^0`. So equal values have
/// equal parts, and `1`, `1.0` and `10e-1` are the same `Decimal`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    mantissa: BigInt,
    exponent: i64,
}

impl Decimal {
    /// `mantissa * 10^exponent`, normalised.
    pub(crate) fn new(mantissa: BigInt, exponent: i64) -> Self {
        if mantissa.is_zero() {
            return Self { mantissa, exponent: 0 };
        }
        let (sign, magnitude) = mantissa.into_parts();
        let (magnitude, zeros) = strip_trailing_zeros(magnitude);
        Self {
            mantissa: BigInt::from_biguint(sign, magnitude),
            exponent: exponent.saturating_add(zeros),
        }
    }

    /// Zero.
    pub(crate) fn zero() -> Self {
        Self { mantissa: BigInt::zero(), exponent: 0 }
    }

    /// Reads a JSON number (RFC 8259, section 6).
    ///
    /// # Errors
    /// [`NumberError::Syntax`] if the text is no JSON number, [`NumberError::TooManyDigits`] and
    /// [`NumberError::OrderTooLarge`] beyond `limits`.
    ///
    /// # Complexity
    /// Linear scan; memory depends on the digits that are written, not on the exponent.
    pub(crate) fn parse(text: &str, limits: &NumberLimits) -> Result<Self, NumberError> {
        let bytes = text.as_bytes();
        let mut at = 0;
        let negative = bytes.first() == Some(&b'-');
        if negative {
            at += 1;
        }
        let integer_start = at;
        at = skip_digits(bytes, at);
        let integer = &bytes[integer_start..at];
        if integer.is_empty() {
            return Err(NumberError::Syntax { offset: at });
        }
        if integer.len() > 1 && integer[0] == b'0' {
            return Err(NumberError::Syntax { offset: integer_start + 1 });
        }
        let mut fraction: &[u8] = &[];
        if bytes.get(at) == Some(&b'.') {
            let start = at + 1;
            at = skip_digits(bytes, start);
            fraction = &bytes[start..at];
            if fraction.is_empty() {
                return Err(NumberError::Syntax { offset: at });
            }
        }
        let mut exponent: i64 = 0;
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            let negative_exponent = bytes.get(at) == Some(&b'-');
            if matches!(bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
            let start = at;
            at = skip_digits(bytes, start);
            if start == at {
                return Err(NumberError::Syntax { offset: at });
            }
            for digit in &bytes[start..at] {
                exponent = exponent
                    .saturating_mul(10)
                    .saturating_add(i64::from(digit - b'0'))
                    .min(ORDER_SATURATED);
            }
            if negative_exponent {
                exponent = -exponent;
            }
        }
        if at < bytes.len() {
            return Err(NumberError::Syntax { offset: at });
        }

        let mut digits: Vec<u8> = integer.iter().chain(fraction).copied().collect();
        let written = digits.len();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let trailing_zeros = (written - digits.len()) as i64;
        let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
        let significant = &digits[first..];
        if significant.is_empty() {
            return Ok(Self::zero());
        }
        if significant.len() > limits.max_decimal_digits as usize {
            return Err(NumberError::TooManyDigits {
                digits: significant.len(),
                limit: limits.max_decimal_digits,
            });
        }
        let exponent = exponent - fraction.len() as i64 + trailing_zeros;
        let order = exponent + significant.len() as i64;
        if order.abs() > limits.max_decimal_order {
            return Err(NumberError::OrderTooLarge { order, limit: limits.max_decimal_order });
        }
        let magnitude = BigUint::parse_bytes(significant, 10).expect("only digits were collected");
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Ok(Self { mantissa: BigInt::from_biguint(sign, magnitude), exponent })
    }

    /// The integer that is multiplied by a power of ten; no multiple of ten.
    pub(crate) fn mantissa(&self) -> &BigInt {
        &self.mantissa
    }

    /// The power of ten that the mantissa is multiplied by.
    pub(crate) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Whether the value is zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    /// Whether the value is below zero.
    pub(crate) fn is_negative(&self) -> bool {
        self.mantissa.is_negative()
    }

    /// Whether the value has no fraction: true of `1.0` and `1e3`.
    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The value without its sign.
    #[must_use]
    pub(crate) fn abs(&self) -> Self {
        Self { mantissa: self.mantissa.abs(), exponent: self.exponent }
    }

    /// Whether it takes more digits than most numbers do.
    pub(crate) fn is_long(&self) -> bool {
        self.mantissa.bits() > 300 || self.exponent.abs() > 100
    }

    /// Whether the value is an integer times `divisor`, whose sign does not matter. Only zero is a
    /// multiple of zero.
    ///
    /// # Complexity
    /// Polynomial in the digits of both, and logarithmic in their exponents.
    pub(crate) fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.is_zero() {
            return true;
        }
        if divisor.is_zero() || self.exponent < divisor.exponent {
            // A mantissa is no multiple of ten, so it cannot make up for a smaller exponent.
            return false;
        }
        let shift = BigUint::from((self.exponent - divisor.exponent).unsigned_abs());
        let modulus = divisor.mantissa.magnitude();
        let power = BigUint::from(10u32).modpow(&shift, modulus);
        (self.mantissa.magnitude() * power % modulus).is_zero()
    }

    /// The least positive common multiple of two non-zero values: `0.5` for `0.1` and `0.25`.
    #[must_use]
    pub(crate) fn lcm(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let common = self.in_units(exponent).lcm(&other.in_units(exponent));
        Self::new(common.abs(), exponent)
    }

    /// `self - other`, exactly.
    #[must_use]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self::new(self.in_units(exponent) - other.in_units(exponent), exponent)
    }

    /// The value as `u64`, if it is an integer in that range.
    pub(crate) fn to_u64(&self) -> Option<u64> {
        if !self.is_integer() || self.order() > 20 {
            return None;
        }
        self.in_units(0).to_u64()
    }

    /// The exponent of the value written as `0.d…e…`: 1 for 1 to 9, 0 for 0.1; meaningless for 0.
    pub(super) fn order(&self) -> i64 {
        digit_count(self.mantissa.magnitude()) + self.exponent
    }

    /// The mantissa with respect to a lower exponent.
    fn in_units(&self, exponent: i64) -> BigInt {
        &self.mantissa * BigInt::from(pow10((self.exponent - exponent).unsigned_abs()))
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order()).then_with(|| {
            // Equal orders: the exponents differ by no more than the digits written.
            let exponent = self.exponent.min(other.exponent);
            self.in_units(exponent).magnitude().cmp(other.in_units(exponent).magnitude())
        })
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(BigInt::from(value), 0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Self::new(BigInt::from(value), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.mantissa.sign(), other.mantissa.sign()) {
            (Sign::Plus, Sign::Plus) => self.cmp_magnitude(other),
            (Sign::Minus, Sign::Minus) => other.cmp_magnitude(self),
            (one, two) => one.cmp(&two),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A JSON number of that value: plain digits up to 21 of them, with an exponent beyond.
impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            formatter.write_str("-")?;
        }
        let digits = self.mantissa.magnitude().to_string();
        let order = digits.len() as i64 + self.exponent;
        if self.exponent >= 0 && order <= 21 {
            let zeros = self.exponent as usize;
            return write!(formatter, "{digits}{:0<zeros$}", "");
        }
        if self.exponent < 0 && (-5..=21).contains(&order) {
            if order > 0 {
                let (integer, fraction) = digits.split_at(order as usize);
                return write!(formatter, "{integer}.{fraction}");
            }
            let zeros = -order as usize;
            return write!(formatter, "0.{:0<zeros$}{digits}", "");
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(formatter, "{first}{point}{rest}e{}", order - 1)
    }
}

/// Ten to the power of `exponent`.
pub(super) fn pow10(exponent: u64) -> BigUint {
    let exponent = u32::try_from(exponent).expect("exponents are bounded before they are expanded");
    BigUint::from(10u32).pow(exponent)
}

/// Number of decimal digits; 1 for zero.
pub(super) fn digit_count(value: &BigUint) -> i64 {
    if let Some(small) = value.to_u128() {
        return small.checked_ilog10().map_or(1, |log| i64::from(log) + 1);
    }
    // 2^(bits-1) <= value < 2^bits leaves two candidates; the power of ten between them decides.
    let estimate = ((value.bits() - 1) as f64 * std::f64::consts::LOG10_2) as u64;
    let mut count = estimate;
    let mut power = pow10(estimate);
    while power <= *value {
        power *= 10u32;
        count += 1;
    }
    count as i64
}

fn strip_trailing_zeros(mut value: BigUint) -> (BigUint, i64) {
    let ten = BigUint::from(10u32);
    let mut zeros = 0;
    // Halving the candidate powers keeps this quasi-linear for long runs of zeros.
    let mut step = value.trailing_zeros().unwrap_or(0).next_power_of_two();
    while step > 0 {
        let power = if step == 1 { ten.clone() } else { pow10(step) };
        loop {
            let (quotient, remainder) = value.div_rem(&power);
            if !remainder.is_zero() || value.is_zero() || power.is_one() {
                break;
            }
            value = quotient;
            zeros += step as i64;
        }
        step /= 2;
    }
    (value, zeros)
}

fn skip_digits(bytes: &[u8], start: usize) -> usize {
    start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text, &NumberLimits::default()).expect("a valid number")
    }

    #[test]
    fn spellings_of_one_value_are_equal() {
        for (one, two) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("1", "0.1E+01"),
            ("0", "-0.000e7"),
            ("0", "0e999999999999999999999"),
            ("-1500", "-1.5e3"),
            ("100000000000000000000000000000000000000000", "1e41"),
        ] {
            assert_eq!(decimal(one), decimal(two), "{one} {two}");
        }
    }

    #[test]
    fn order_is_that_of_the_reals() {
        let sorted = [
            "-1e400",
            "-12",
            "-1.2",
            "-1.19",
            "-0.001",
            "0",
            "1e-400",
            "0.001",
            "0.9",
            "1",
            "9.99",
            "10",
            "10.01",
            "1e17",
            "123456789012345678901234567890",
            "123456789012345678901234567890.1",
            "1e400",
        ];
        for (i, one) in sorted.iter().enumerate() {
            for (j, two) in sorted.iter().enumerate() {
                assert_eq!(decimal(one).cmp(&decimal(two)), i.cmp(&j), "{one} {two}");
            }
        }
    }

    #[test]
    fn display_parses_back_to_the_same_value() {
        for text in [
            "0",
            "-0.5",
            "12.25",
            "0.00001",
            "1e-7",
            "1e21",
            "12345e30",
            "-98765.4321e-40",
            "1000",
            "9999999999999999999999999999999.5",
        ] {
            let shown = decimal(text).to_string();
            assert_eq!(decimal(&shown), decimal(text), "{text} shown as {shown}");
        }
        assert_eq!(decimal("1e3").to_string(), "1000");
        assert_eq!(decimal("50e-4").to_string(), "0.005");
    }

    #[test]
    fn multiples_are_exact() {
        for (value, divisor, expected) in [
            ("0.07", "0.01", true),
            ("0.075", "0.01", false),
            ("1e300", "7", false),
            ("7e300", "7", true),
            ("1e990", "0.123456789", false),
            ("123456789e990", "0.123456789", true),
            ("9007199254740993", "2", false),
            ("22.5", "-7.5", true),
            ("0", "3", true),
            ("1e4", "16", true),
            ("1e3", "16", false),
            ("5", "0", false),
        ] {
            assert_eq!(
                decimal(value).is_multiple_of(&decimal(divisor)),
                expected,
                "{value} {divisor}"
            );
        }
        assert_eq!(decimal("0.1").lcm(&decimal("0.25")), decimal("0.5"));
        assert_eq!(decimal("4").lcm(&decimal("-6")), decimal("12"));
        assert_eq!(decimal("1").minus(&decimal("0.01")), decimal("0.99"));
    }

    #[test]
    fn integers_in_range_convert() {
        assert_eq!(decimal("3.0").to_u64(), Some(3));
        assert_eq!(decimal("18446744073709551615").to_u64(), Some(u64::MAX));
        for text in ["18446744073709551616", "-1", "0.5", "1e900"] {
            assert_eq!(decimal(text).to_u64(), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused_where_it_stops_being_one() {
        for (text, offset) in [
            ("", 0),
            ("-", 1),
            ("01", 1),
            ("-01", 2),
            ("1.", 2),
            (".5", 0),
            ("+1", 0),
            ("1e", 2),
            ("1e+", 3),
            ("1x", 1),
            ("1.5.5", 3),
            ("NaN", 0),
            ("1 ", 1),
        ] {
            assert_eq!(
                Decimal::parse(text, &NumberLimits::default()),
                Err(NumberError::Syntax { offset }),
                "{text:?}"
            );
        }
    }

    #[test]
    fn huge_numbers_end_in_a_named_limit() {
        let limits = NumberLimits::default();
        for text in ["1e999999999", "-1e-999999999", "1e99999999999999999999999999999999"] {
            assert!(
                matches!(Decimal::parse(text, &limits), Err(NumberError::OrderTooLarge { .. })),
                "{text}"
            );
        }
        let long = "1".repeat(1_001);
        assert_eq!(
            Decimal::parse(&long, &limits),
            Err(NumberError::TooManyDigits { digits: 1_001, limit: 1_000 })
        );
        assert!(Decimal::parse(&format!("1{}", "0".repeat(999)), &limits).is_ok());
    }

    #[test]
    fn digits_are_counted_exactly_around_powers_of_ten() {
        for exponent in [0u64, 1, 37, 38, 39, 40, 100, 308, 1000] {
            let power = pow10(exponent);
            assert_eq!(digit_count(&power), exponent as i64 + 1);
            if exponent > 0 {
                assert_eq!(digit_count(&(power - 1u32)), exponent as i64);
            }
        }
    }
}
