//! The compiled schema as the constraint crates see an automaton.

use std::sync::Arc;

use molde_schema::{CompiledSchema, SchemaAutomaton};
use molde_vocab::{ByteAutomaton, StateId};

/// A schema automaton by the numbering of `molde-vocab`, with which it agrees: 0 is dead and 1 is
/// undecided. Neither crate knows of the other.
pub(crate) struct SchemaBytes(SchemaAutomaton);

const _: () = assert!(
    molde_schema::DEAD == StateId::DEAD.0 && molde_schema::UNDECIDED == StateId::UNDECIDED.0
);

impl SchemaBytes {
    pub(crate) fn new(schema: &Arc<CompiledSchema>) -> Self {
        Self(SchemaAutomaton::new(schema))
    }
}

impl ByteAutomaton for SchemaBytes {
    fn start(&mut self) -> StateId {
        StateId(self.0.start())
    }

    fn step(&mut self, state: StateId, byte: u8) -> StateId {
        StateId(self.0.step(state.0, byte))
    }

    fn is_accepting(&mut self, state: StateId) -> bool {
        self.0.is_accepting(state.0)
    }

    fn forced_byte(&mut self, state: StateId) -> Option<u8> {
        self.0.forced_byte(state.0)
    }

    fn completion(&mut self, state: StateId) -> Vec<u8> {
        self.0.completion(state.0)
    }

    fn memory_usage(&self) -> usize {
        self.0.memory_usage()
    }

    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId> {
        let keep: Vec<u32> = keep.iter().map(|state| state.0).collect();
        self.0.clear_cache(&keep).into_iter().map(StateId).collect()
    }
}
