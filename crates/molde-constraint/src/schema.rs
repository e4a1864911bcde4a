//! A compiled schema as a constraint.

use std::sync::Arc;

use molde_schema::{CompiledSchema, SchemaAutomaton};
use molde_vocab::{ByteAutomaton, StateId};

/// The automaton of a compiled schema, as [`Matcher`](crate::Matcher) takes it: molde-schema knows
/// of no trait that has to do with tokens.
#[derive(Clone, Debug)]
pub struct SchemaConstraint(SchemaAutomaton);

impl SchemaConstraint {
    /// A fresh automaton of `schema`.
    pub fn new(schema: &Arc<CompiledSchema>) -> Self {
        Self(SchemaAutomaton::new(schema))
    }

    /// The limit that last made a state undecided, as a sentence; `None` if none did.
    pub fn last_limit(&self) -> Option<String> {
        self.0.last_limit()
    }
}

const _: () = assert!(molde_schema::DEAD == StateId::DEAD.0);
const _: () = assert!(molde_schema::UNDECIDED == StateId::UNDECIDED.0);

impl ByteAutomaton for SchemaConstraint {
    fn start(&mut self) -> StateId {
        StateId(self.0.start())
    }

    #[inline]
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

    fn needs_settling(&self, state: StateId) -> bool {
        self.0.needs_settling(state.0)
    }

    fn settle(&mut self, state: StateId, text: &[u8]) -> StateId {
        StateId(self.0.settle(state.0, text))
    }

    fn memory_usage(&self) -> usize {
        self.0.memory_usage()
    }

    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId> {
        let keep: Vec<u32> = keep.iter().map(|state| state.0).collect();
        self.0.clear_cache(&keep).into_iter().map(StateId).collect()
    }
}
