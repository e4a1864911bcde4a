//! The byte side: what a constraint looks like before it knows of tokens.

use crate::{ByteSet, QuotedPosition, QuotedRules};

/// A state of a [`ByteAutomaton`]: an index into that automaton's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

impl StateId {
    /// No continuation leads to acceptance. Every automaton reserves id 0 for it.
    pub const DEAD: Self = Self(0);
    /// The successor could not be decided within the limits. Every automaton reserves id 1 for
    /// it. A token that leads here is masked out and counted, never silently allowed.
    pub const UNDECIDED: Self = Self(1);

    /// Whether this is a state one can continue from: neither dead nor undecided.
    #[inline]
    pub const fn is_live(self) -> bool {
        self.0 > Self::UNDECIDED.0
    }
}

/// A deterministic automaton over bytes, built lazily while it is walked.
///
/// An implementor guarantees:
/// - **Co-accessible**: from every live state some byte string leads to acceptance, and
///   [`completion`](Self::completion) returns one.
/// - **Deterministic**: equal states have equal ids for the lifetime of the automaton, or until
///   [`clear_cache`](Self::clear_cache) is called.
pub trait ByteAutomaton {
    /// The state before the first byte. Always live: what accepts nothing is refused earlier.
    fn start(&mut self) -> StateId;

    /// The state after `byte`. `DEAD` and `UNDECIDED` lead to themselves.
    fn step(&mut self, state: StateId, byte: u8) -> StateId;

    /// Whether the bytes read so far are a complete text.
    fn is_accepting(&mut self, state: StateId) -> bool;

    /// The only byte whose successor is not dead, if there is exactly one and the state does not
    /// accept. `None` is always a correct answer where finding out is too expensive.
    fn forced_byte(&mut self, state: StateId) -> Option<u8>;

    /// A shortest byte string that leads from `state` to acceptance, through live states only;
    /// empty where it accepts. The same state gives the same string every time.
    fn completion(&mut self, state: StateId) -> Vec<u8>;

    /// The first bytes of [`completion`](Self::completion), at most so many. Default: cut from the
    /// whole.
    fn completion_start(&mut self, state: StateId, max_bytes: usize) -> Vec<u8> {
        let mut start = self.completion(state);
        start.truncate(max_bytes);
        start
    }

    /// Bytes among which are all those whose successor is not dead. Default: every byte.
    ///
    /// A vocabulary is walked along these bytes alone, so a narrow set is what makes a mask cheap.
    fn successors(&mut self, _state: StateId) -> ByteSet {
        ByteSet::ALL
    }

    /// States that together are this one: whatever follows, it is live (accepting) if one of them
    /// is. Empty, the default, if it cannot be taken apart.
    fn parts(&mut self, _state: StateId) -> Vec<StateId> {
        Vec::new()
    }

    /// How quoted texts are read, if [`quoted`](Self::quoted) ever says something.
    fn quoted_rules(&self) -> Option<QuotedRules> {
        None
    }

    /// The quoted text that the state is inside of, between two characters. `None`, the default, is
    /// always a correct answer.
    fn quoted(&mut self, _state: StateId) -> Option<QuotedPosition> {
        None
    }

    /// The successor of a state of a language of contents by a byte of the decoded content; state 0
    /// is dead.
    fn content_step(&mut self, _language: u32, _state: u32, _byte: u8) -> u32 {
        0
    }

    /// The bytes whose successor in a language of contents is not dead.
    fn content_successors(&mut self, _language: u32, _state: u32) -> ByteSet {
        ByteSet::EMPTY
    }

    /// The least number of bytes of a content that goes on from a state, between two characters, and
    /// can no longer become one that is allowed: `u32::MAX` if there is none, 0 if that is not known.
    fn content_sure_bytes(&mut self, _language: u32, _state: u32) -> u32 {
        0
    }

    /// Bytes that begin characters which all lead from a state of a language of contents, between two
    /// characters, back to it. None is always a correct answer.
    fn content_looping_bytes(&mut self, _language: u32, _state: u32) -> ByteSet {
        ByteSet::EMPTY
    }

    /// The numbers of characters with which a content that led to a state can become one that is
    /// allowed, if they are an interval: the first and the last.
    fn content_live_range(&mut self, _language: u32, _state: u32) -> Option<(u64, u64)> {
        None
    }

    /// Whether an escape sequence can follow a content that led to a state, between two characters,
    /// and has a number of characters.
    fn content_can_escape(&mut self, _language: u32, _state: u32, _characters: u64) -> bool {
        false
    }

    /// Whether the content so far, which led to a state and has a number of characters, can become
    /// one that is allowed.
    fn content_is_live(&mut self, _language: u32, _state: u32, _characters: u64) -> bool {
        false
    }

    /// The kind of the content so far, an index of [`QuotedPosition::closed`], if the text may end
    /// after it.
    fn content_kind(&mut self, _language: u32, _state: u32, _characters: u64) -> Option<u32> {
        None
    }

    /// Whether [`settle`](Self::settle) would change the state. Default: never.
    fn needs_settling(&self, _state: StateId) -> bool {
        false
    }

    /// The state with what only the whole text can tell, such as the exact spelling of a name that
    /// must not come again. `text` is everything read so far and `state` the state it leads to.
    ///
    /// To be called after each byte of a real text; never while a vocabulary is walked, where one
    /// state stands for all the texts that lead to it. A step from a state that needs settling leads
    /// to [`StateId::UNDECIDED`] if it depends on the text: whoever has the text settles and tries
    /// again. Default: the state itself.
    fn settle(&mut self, state: StateId, _text: &[u8]) -> StateId {
        state
    }

    /// An estimate of the heap bytes held by the automaton's tables. O(1).
    fn memory_usage(&self) -> usize;

    /// Drops all cached states but `keep`, and returns its new id. Every other id is invalid
    /// afterwards.
    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId>;
}
