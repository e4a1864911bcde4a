//! What bounds the texts and the work, the two spellings, and the error.

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NumberStyle {
    /// One way to write a value, but for trailing zeros of a fraction.
    ///
    /// No exponent. An integer value is written without a fraction (`7`, never `7.0`) and keeps all
    /// its digits; `-0` is not written. Any other value has at most 15 digits from its first non-zero
    /// digit on (`7.50` has three), and is non-zero and finite as a binary64.
    #[default]
    Plain,
    /// Every spelling that RFC 8259 allows, up to the digit limits: `1`, `1.0`, `1e0` and `10E-1`
    /// are one value, and so are `0` and `-0.0`.
    Any,
}

/// What bounds the length of number texts and the size of numbers in a schema.
///
/// The three digit limits of texts are raised, for the constraint concerned only, where its bounds
/// or values cannot be told apart with fewer digits: `"const": 1e500` is never unsatisfiable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberLimits {
    /// Digits of the integer part of a text. Default 400. A longer text is not in the language.
    pub(crate) max_integer_digits: u32,
    /// The same in style [`Plain`](NumberStyle::Plain) where non-integers are allowed too, so that
    /// the value is finite as a binary64. Default 308.
    pub(crate) max_plain_number_digits: u32,
    /// Digits of the fraction of a text in style [`Any`](NumberStyle::Any). Default 400.
    pub(crate) max_fraction_digits: u32,
    /// Digits of an exponent, leading zeros included. Default 18, which is also the most.
    pub(crate) max_exponent_digits: u32,
    /// Significant digits of a non-integer in style [`Plain`](NumberStyle::Plain). Default 15: the
    /// decimals of that length survive a round trip through binary64.
    pub(crate) plain_significant_digits: u32,
    /// Zeros right after the point of `0.…` in style [`Plain`](NumberStyle::Plain). Default 20: a
    /// model that has begun to write zeros may not stop by itself.
    pub(crate) plain_fraction_zeros: u32,
    /// Significant digits of a number in a schema, and of the least common multiple of several
    /// divisors. Default 1,000. More is [`NumberError::TooManyDigits`].
    pub(crate) max_decimal_digits: u32,
    /// Largest magnitude of the decimal order (the exponent of `0.d…e…`) of a number in a schema.
    /// Default 10,000. Beyond is [`NumberError::OrderTooLarge`].
    pub(crate) max_decimal_order: i64,
    /// Distinct divisors that one [`NumberSpec`](super::NumberSpec) may exclude. Default 12: up to
    /// 2^12 candidates are looked at to find a value that avoids them all. More is
    /// [`NumberError::TooManyExcludedDivisors`].
    pub(crate) max_excluded_divisors: u32,
}

impl Default for NumberLimits {
    fn default() -> Self {
        Self {
            max_integer_digits: 400,
            max_plain_number_digits: 308,
            max_fraction_digits: 400,
            max_exponent_digits: 18,
            plain_significant_digits: 15,
            plain_fraction_zeros: 20,
            max_decimal_digits: 1_000,
            max_decimal_order: 1_000,
            max_excluded_divisors: 12,
        }
    }
}

impl NumberLimits {
    /// Most digits of an exponent that the arithmetic on exponents has room for.
    pub(crate) const EXPONENT_DIGITS_CEILING: u32 = 18;

    /// For numbers that were let through as texts: whatever they are, they are read.
    pub(crate) fn unbounded() -> Self {
        Self { max_decimal_digits: u32::MAX, max_decimal_order: i64::MAX, ..Self::default() }
    }

    /// For texts that may be as long as the longest numbers of a schema make them.
    pub(crate) fn long_texts() -> Self {
        Self {
            max_integer_digits: Self::MOST_RAISED_DIGITS as u32,
            max_fraction_digits: Self::MOST_RAISED_DIGITS as u32,
            ..Self::unbounded()
        }
    }

    /// The digit limits of texts are raised no further, for the sake of values whose order is larger
    /// by far than a text has digits: those have an exponent.
    pub(crate) const MOST_RAISED_DIGITS: i64 = 4096;
}

/// Why a number, or a constraint on numbers, could not be taken. Says nothing of its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NumberError {
    /// The text is not a JSON number.
    #[error("byte {offset} does not continue a JSON number (RFC 8259, section 6)")]
    Syntax {
        /// Index of the first byte that cannot follow, or the length of a text that is unfinished.
        offset: usize,
    },
    /// A number, or the common multiple of several, has more significant digits than the limit.
    #[error("number with {digits} significant digits, at most {limit}: raise `max_decimal_digits`")]
    TooManyDigits {
        /// Significant digits of the number.
        digits: usize,
        /// [`NumberLimits::max_decimal_digits`].
        limit: u32,
    },
    /// The number is too large, or too close to zero.
    #[error(
        "number of decimal order {order}, at most {limit} either way: raise `max_decimal_order`"
    )]
    OrderTooLarge {
        /// The exponent of the number written as `0.d…e…`; saturated far beyond any limit.
        order: i64,
        /// [`NumberLimits::max_decimal_order`].
        limit: i64,
    },
    /// One constraint excludes the multiples of too many divisors.
    #[error(
        "the multiples of {got} divisors are excluded, at most {limit}: raise \
         `max_excluded_divisors`"
    )]
    TooManyExcludedDivisors {
        /// Distinct divisors.
        got: usize,
        /// [`NumberLimits::max_excluded_divisors`].
        limit: u32,
    },
    /// [`NumberLimits::max_exponent_digits`] is above what exponents are computed with.
    #[error("`max_exponent_digits` is {got}, at most {ceiling}: lower it")]
    ExponentDigitsTooMany {
        /// The limit asked for.
        got: u32,
        /// [`NumberLimits::EXPONENT_DIGITS_CEILING`].
        ceiling: u32,
    },
}
