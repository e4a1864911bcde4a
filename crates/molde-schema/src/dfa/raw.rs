//! The mutable automaton that constructions fill and minimization consumes.

use super::{DfaError, DfaLimits};

/// A transition on every byte of `lo..=hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Transition {
    /// First byte of the range.
    pub(crate) lo: u8,
    /// Last byte of the range, inclusive.
    pub(crate) hi: u8,
    /// The state it leads to.
    pub(crate) target: u32,
}

/// A deterministic automaton under construction: neither trimmed nor minimal.
///
/// State 0 is dead. States are appended in id order: [`push_state`](Self::push_state), then the
/// transitions of that state in ascending byte order.
#[derive(Debug, Clone)]
pub(crate) struct RawDfa {
    pub(super) offsets: Vec<u32>,
    pub(super) transitions: Vec<Transition>,
    pub(super) accepting: Vec<bool>,
}

impl RawDfa {
    /// An automaton with the dead state alone.
    pub(crate) fn new() -> Self {
        Self { offsets: vec![0, 0], transitions: Vec::new(), accepting: vec![false] }
    }

    /// Number of states, the dead one included.
    pub(crate) fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Appends a state and returns its id.
    ///
    /// # Errors
    /// [`DfaError::States`] or [`DfaError::Transitions`] above the limits.
    pub(crate) fn push_state(
        &mut self,
        accepting: bool,
        limits: &DfaLimits,
    ) -> Result<u32, DfaError> {
        if self.len() > limits.max_states {
            return Err(DfaError::States { limit: limits.max_states });
        }
        if self.transitions.len() > limits.max_transitions {
            return Err(DfaError::Transitions { limit: limits.max_transitions });
        }
        let id = self.len() as u32;
        self.accepting.push(accepting);
        self.offsets.push(self.transitions.len() as u32);
        Ok(id)
    }

    /// Appends a transition to the state pushed last. Ranges must be disjoint and ascending; a
    /// range next to the previous one with the same target extends it. Target 0 is left out.
    pub(crate) fn push_transition(&mut self, lo: u8, hi: u8, target: u32) {
        if target == 0 {
            return;
        }
        let first = self.offsets[self.offsets.len() - 2] as usize;
        if let Some(last) = self.transitions[first..].last_mut() {
            debug_assert!(last.hi < lo, "ranges are disjoint and ascending");
            if last.target == target && u16::from(last.hi) + 1 == u16::from(lo) {
                last.hi = hi;
                return;
            }
        }
        self.transitions.push(Transition { lo, hi, target });
        *self.offsets.last_mut().expect("offsets always hold the dead state's") =
            self.transitions.len() as u32;
    }

    /// The transitions of a state, ascending.
    pub(crate) fn transitions(&self, state: u32) -> &[Transition] {
        let state = state as usize;
        &self.transitions[self.offsets[state] as usize..self.offsets[state + 1] as usize]
    }
}
