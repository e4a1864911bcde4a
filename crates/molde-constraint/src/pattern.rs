//! A regular expression as a constraint.

use molde_schema::{PatternAutomaton, RegexError};
use molde_vocab::{ByteAutomaton, ByteSet, StateId};

/// The texts that an ECMA-262 regular expression matches as a whole. Compiled and immutable: a clone
/// shares it.
///
/// ```
/// use molde_constraint::PatternConstraint;
/// use molde_vocab::ByteAutomaton;
///
/// let mut quarter = PatternConstraint::new("Q[1-4]")?;
/// let start = quarter.start();
/// assert_eq!(quarter.forced_byte(start), Some(b'Q'));
/// # Ok::<(), molde_schema::RegexError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PatternConstraint(PatternAutomaton);

impl PatternConstraint {
    /// The constraint of a pattern.
    ///
    /// # Errors
    /// Those of [`PatternAutomaton::new`].
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        Ok(Self(PatternAutomaton::new(pattern)?))
    }
}

impl ByteAutomaton for PatternConstraint {
    fn start(&mut self) -> StateId {
        StateId(self.0.start())
    }

    #[inline]
    fn step(&mut self, state: StateId, byte: u8) -> StateId {
        if state.is_live() { StateId(self.0.step(state.0, byte)) } else { state }
    }

    fn is_accepting(&mut self, state: StateId) -> bool {
        self.0.is_accepting(state.0)
    }

    fn forced_byte(&mut self, state: StateId) -> Option<u8> {
        let bytes = self.successors(state);
        if bytes.len() == 1 && !self.is_accepting(state) { bytes.iter().next() } else { None }
    }

    fn completion(&mut self, state: StateId) -> Vec<u8> {
        self.0.completion(state.0)
    }

    fn successors(&mut self, state: StateId) -> ByteSet {
        ByteSet::from_words(self.0.successors(state.0))
    }

    fn memory_usage(&self) -> usize {
        self.0.memory_usage()
    }

    /// Nothing is cached: all ids stay.
    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId> {
        keep.to_vec()
    }
}
