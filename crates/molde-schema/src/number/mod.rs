//! Numbers, exactly: their values, the constraints on them, and the automaton over their texts.
//!
//! # From a constraint to an automaton
//! A [`NumberSpec`] is a conjunction of conditions on the *value*; the texts of one value are many
//! (`1`, `1.0`, `10e-1`). A text is read byte by byte as
//!
//! ```text
//!            sign      digits u, the point among them       exponent
//!            ┌┴┐ ┌──────────────────┴───────────────────┐ ┌────┴────┐
//!             -           1 2 . 5 0                          e - 3
//! ```
//!
//! and its value is `u * 10^E`, `E` the exponent less the digits of the fraction. Two facts carry
//! everything:
//!
//! - **For fixed digits, the exponents that are allowed are a range less some points.** A lower end
//!   gives a least exponent, an upper end a greatest; being a multiple of `q` holds from some
//!   exponent on (the primes of `q` other than two and five divide `u`, or never do), so being no
//!   multiple holds up to one; an excluded point takes one exponent out. So when `e` is read, all
//!   that is left of a union of constraints is a set of integers, and the exponent is an automaton
//!   over that set's decimal digits.
//! - **For unfinished digits, whether a continuation exists is arithmetic.** After `d` more digits
//!   the numbers are `u * 10^E` with `u` in `[m*10^d, (m+1)*10^d)` and `E` in a range given by the
//!   bytes spent on point and exponent. Whether one of them lies between the ends, on the lattice
//!   of multiples and off the excluded ones is a division for each of a few `E`. Going through
//!   shapes of continuations from the shortest on gives a shortest one, or proves that there is
//!   none: a state that is kept has a completion, so there are no dead ends.
//!
//! Which prefixes are one state is a third matter: a state is looked up by comparisons with the
//! leading digits of the ends and by remainders, so the number of states depends on the number of
//! *digits* of a bound, not on its size. Lists of values (`enum`) are kept sorted by their digits:
//! the values that a prefix can become are a slice of the list, and the slice is the state.
//!
//! # Invariants
//! - No binary floating point anywhere.
//! - What is accepted is exactly: the style's spelling, within the digit limits, of a value that a
//!   constraint accepts.
//! - Nothing is ever expanded to more digits than the text read so far, the limits and the
//!   constraints have together.

mod automaton;
mod completion;
mod decimal;
mod exponent;
mod extreme;
mod interval;
mod key;
mod lattice;
mod limits;
mod magnitude;
mod piece;
mod prefix;
mod spec;
#[cfg(test)]
mod tests;

pub(crate) use automaton::NumberAutomaton;
pub(crate) use decimal::Decimal;
pub(crate) use extreme::Numbers;
pub use limits::NumberStyle;
pub(crate) use limits::{NumberError, NumberLimits};
pub(crate) use spec::{NumberBound, NumberSpec};
