//! A compiled schema as a constraint.

use std::sync::Arc;

use molde_schema::{
    CompiledSchema, Escapes, SchemaAutomaton, StringContent, StringEnd, StringReading,
};
use molde_vocab::{
    ByteAutomaton, ByteSet, QuotedContent, QuotedEnd, QuotedPosition, QuotedReading, QuotedRules,
    StateId, Vocabulary,
};

use crate::quoted::QuotedTokens;

/// The automaton of a compiled schema, as [`Matcher`](crate::Matcher) takes it: molde-schema knows
/// of no trait that has to do with tokens.
#[derive(Clone, Debug)]
pub struct SchemaConstraint(SchemaAutomaton, Arc<CompiledSchema>);

impl SchemaConstraint {
    /// A fresh automaton of `schema`.
    pub fn new(schema: &Arc<CompiledSchema>) -> Self {
        Self(SchemaAutomaton::new(schema), Arc::clone(schema))
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<CompiledSchema> {
        &self.1
    }

    /// The limit that last made a state undecided, as a sentence; `None` if none did.
    pub fn last_limit(&self) -> Option<String> {
        self.0.last_limit()
    }
}

const _: () = assert!(molde_schema::DEAD == StateId::DEAD.0);
const _: () = assert!(molde_schema::UNDECIDED == StateId::UNDECIDED.0);

/// How strings are read whose escapes are those that JSON demands.
const NEEDED: QuotedRules = QuotedRules { key: 1, read: |bytes| reading(bytes, Escapes::Needed) };
/// How strings are read that may have every escape.
const ANY: QuotedRules = QuotedRules { key: 2, read: |bytes| reading(bytes, Escapes::Any) };

fn reading(bytes: &[u8], escapes: Escapes) -> Option<QuotedReading> {
    let reading = StringReading::new(bytes, escapes)?;
    let end = match reading.end {
        StringEnd::Inside => QuotedEnd::Inside,
        StringEnd::Backslash => QuotedEnd::Escape { begun: true },
        StringEnd::Escape => QuotedEnd::Escape { begun: false },
        StringEnd::Closed(rest) => QuotedEnd::Closed { rest },
    };
    Some(QuotedReading { content: reading.content, end })
}

/// Makes the tables that masks under schemas need, which are otherwise made by the first matcher of
/// a vocabulary: for whoever loads a model and wants the first answer fast.
///
/// # Complexity
/// A pass over the bytes of all tokens and a sort of them.
pub fn prepare(vocabulary: &Vocabulary, escapes: Escapes) {
    let rules = match escapes {
        Escapes::Needed => NEEDED,
        Escapes::Any => ANY,
    };
    QuotedTokens::of(vocabulary, rules);
}

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

    fn completion_start(&mut self, state: StateId, max_bytes: usize) -> Vec<u8> {
        self.0.completion_start(state.0, max_bytes)
    }

    fn successors(&mut self, state: StateId) -> ByteSet {
        ByteSet::from_words(self.0.successors(state.0))
    }

    fn parts(&mut self, state: StateId) -> Vec<StateId> {
        self.0.parts(state.0).into_iter().map(StateId).collect()
    }

    fn quoted_rules(&self) -> Option<QuotedRules> {
        Some(match self.0.escapes() {
            Escapes::Needed => NEEDED,
            Escapes::Any => ANY,
        })
    }

    fn quoted(&mut self, state: StateId) -> Option<QuotedPosition> {
        let position = self.0.string_position(state.0)?;
        let content = match position.content {
            StringContent::Any { least, most } => QuotedContent::Any { least, most },
            StringContent::Language { language, state, code_points } => {
                QuotedContent::Language { language, state, characters: code_points }
            }
        };
        Some(QuotedPosition {
            content,
            closed: position.closed.into_iter().map(StateId).collect(),
            apart: position.apart,
            beside: position.beside.map(StateId),
        })
    }

    #[inline]
    fn content_step(&mut self, language: u32, state: u32, byte: u8) -> u32 {
        self.0.content_step(language, state, byte)
    }

    fn content_successors(&mut self, language: u32, state: u32) -> ByteSet {
        ByteSet::from_words(self.0.content_successors(language, state))
    }

    fn content_sure_bytes(&mut self, language: u32, state: u32) -> u32 {
        self.0.content_sure_bytes(language, state)
    }

    fn content_looping_bytes(&mut self, language: u32, state: u32) -> ByteSet {
        ByteSet::from_words(self.0.content_looping_bytes(language, state))
    }

    fn content_live_range(&mut self, language: u32, state: u32) -> Option<(u64, u64)> {
        self.0.content_live_range(language, state)
    }

    fn content_can_escape(&mut self, language: u32, state: u32, characters: u64) -> bool {
        self.0.content_can_escape(language, state, characters)
    }

    #[inline]
    fn content_is_live(&mut self, language: u32, state: u32, characters: u64) -> bool {
        self.0.content_is_live(language, state, characters)
    }

    fn content_kind(&mut self, language: u32, state: u32, characters: u64) -> Option<u32> {
        self.0.content_kind(language, state, characters)
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
