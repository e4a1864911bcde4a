//! Why a token is or is not allowed.

use molde_vocab::{StateId, TokenId};

/// What a token meets in the current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// It is in the mask.
    Allowed,
    /// Its byte at `byte_offset` cannot follow.
    Rejected {
        /// Index in the token's bytes.
        byte_offset: usize,
        /// The state of the automaton before that byte: ask the automaton what it expects there.
        state: StateId,
    },
    /// What follows its byte at `byte_offset` could not be decided within the limits.
    Undecided {
        /// Index in the token's bytes.
        byte_offset: usize,
        /// The state of the automaton before that byte.
        state: StateId,
    },
    /// Its bytes could follow, but the tokenizer writes the forced text with another token.
    NotCanonical {
        /// The only token in the mask.
        expected: TokenId,
    },
    /// It would end the turn, and the text is not complete.
    NotComplete,
    /// It has no text: a control token, an unused or unknown id, or an empty text.
    NotText,
    /// The turn has ended.
    Ended,
}
