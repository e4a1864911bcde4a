//! A pattern as a constraint on a whole text, without any JSON.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaLimits};
use crate::{ByteBits, DEAD};

use super::PatternError;
use super::compile::compile_whole;

/// Heap bytes of a state and its transitions, roughly.
const STATE_BYTES: usize = 64;

/// Why a pattern makes no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct RegexError(#[from] Fault);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("the pattern cannot be used: {0}")]
    Pattern(#[from] PatternError),
    #[error("no text matches the pattern")]
    Empty,
}

/// The texts that an ECMA-262 regular expression matches as a whole, as if it stood between `^` and
/// `$`; in UTF-8. Compiled and immutable: a clone shares it.
///
/// State 0 is [`DEAD`]; state 1 is never reached, as with
/// [`SchemaAutomaton`](crate::SchemaAutomaton), whose state 1 has another meaning.
///
/// ```
/// use molde_schema::{DEAD, PatternAutomaton};
///
/// let quarter = PatternAutomaton::new("Q[1-4]|unknown")?;
/// let state = quarter.step(quarter.start(), b'Q');
/// assert_eq!(quarter.step(state, b'5'), DEAD);
/// assert!(quarter.is_accepting(quarter.step(state, b'4')));
/// # Ok::<(), molde_schema::RegexError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PatternAutomaton(Arc<Dfa>);

impl PatternAutomaton {
    /// The dialect is that of the keyword `pattern`: the `u` flag, lookaround included.
    ///
    /// # Errors
    /// If the pattern is none, is no regular language, exceeds a limit, or matches nothing.
    ///
    /// # Complexity
    /// Exponential in the worst case, and bounded.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        let dfa = compile_whole(pattern, &DfaLimits::default()).map_err(Fault::Pattern)?;
        if dfa.is_empty() {
            return Err(Fault::Empty.into());
        }
        Ok(Self(Arc::new(dfa)))
    }

    /// The state before the first byte.
    pub fn start(&self) -> u32 {
        self.0.start() + 1
    }

    /// The state after one more byte; [`DEAD`] leads to itself.
    #[inline]
    pub fn step(&self, state: u32, byte: u8) -> u32 {
        match self.0.step(state.saturating_sub(1), byte) {
            Dfa::DEAD => DEAD,
            next => next + 1,
        }
    }

    /// Whether the bytes read so far are a text that the pattern matches.
    pub fn is_accepting(&self, state: u32) -> bool {
        state > 0 && self.0.is_accepting(state - 1)
    }

    /// The bytes whose successor is not dead.
    pub fn successors(&self, state: u32) -> ByteBits {
        let mut bits = ByteBits::default();
        for transition in self.0.transitions(state.saturating_sub(1)) {
            for byte in transition.lo..=transition.hi {
                bits[usize::from(byte / 64)] |= 1 << (byte % 64);
            }
        }
        bits
    }

    /// A shortest byte string that leads from a state to acceptance; empty where it accepts.
    pub fn completion(&self, state: u32) -> Vec<u8> {
        self.0.shortest(state.saturating_sub(1))
    }

    /// An estimate of the heap bytes of the automaton, shared by all its clones.
    pub fn memory_usage(&self) -> usize {
        self.0.states() * STATE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(pattern: &str, text: &str) -> bool {
        let automaton = PatternAutomaton::new(pattern).unwrap();
        let read = |state, byte| automaton.step(state, byte);
        automaton.is_accepting(text.bytes().fold(automaton.start(), read))
    }

    #[test]
    fn a_pattern_matches_whole_texts() {
        assert!(accepts("a|bc", "bc"));
        assert!(!accepts("a|bc", "abc"), "the alternation is inside the anchors");
        assert!(!accepts("[0-9]{4}", "12345"));
        assert!(accepts("^[0-9]{4}$", "1234"));
        assert!(accepts("(?!0)[0-9é]+", "1é"));
        assert!(!accepts("(?!0)[0-9é]+", "01"));
        assert!(accepts("", ""));
    }

    #[test]
    fn what_is_no_constraint_is_an_error() {
        for pattern in ["a)(b", "(a)\\1", "[]", "a$b"] {
            assert!(PatternAutomaton::new(pattern).is_err(), "{pattern}");
        }
    }
}
