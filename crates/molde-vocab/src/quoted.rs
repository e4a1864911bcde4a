//! Quoted text: the part of a language where most of a vocabulary fits.
//!
//! Inside a string nearly every token goes on with it, whatever stands around the string. An
//! automaton that has such states can say so ([`ByteAutomaton::quoted`](crate::ByteAutomaton)), and
//! the tokens are then not walked one by one: which of them stay inside, how many characters they
//! have, and what is left of those that end it, are a matter of the vocabulary alone.
//!
//! ```text
//! inside  "abc|        token  de      stays inside, 2 characters
//!                      token  e", "   content  e, ends, rest  , "
//!                      token  \n      content  a line feed, 1 character
//! ```

use crate::StateId;

/// How an automaton reads the inside of its quoted texts.
#[derive(Clone, Copy, Debug)]
pub struct QuotedRules {
    /// Tells these rules from others: equal for equal functions.
    pub key: u32,
    /// How bytes are read that begin inside a quoted text, between two characters; `None` if they
    /// cannot be there.
    pub read: fn(&[u8]) -> Option<QuotedReading>,
}

/// What some bytes are, read from inside a quoted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedReading {
    /// The content they stand for, escapes resolved; its last character may be unfinished.
    pub content: Vec<u8>,
    /// How they end.
    pub end: QuotedEnd,
}

/// How some bytes, read from inside a quoted text, end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotedEnd {
    /// Inside the text.
    Inside,
    /// Inside the text, inside an escape sequence: after its first byte alone, or later.
    Escape {
        /// Whether the escape sequence has just begun.
        begun: bool,
    },
    /// After the text, whose end is before the byte at this offset.
    Closed {
        /// Bytes read up to and with the closing quote.
        rest: usize,
    },
}

/// A position inside a quoted text, between two characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedPosition {
    /// What the text may still contain.
    pub content: QuotedContent,
    /// For each kind of content after which the text may end, the state after the end, dead if it
    /// may not end so; it does not depend on the content otherwise, except for those `apart`.
    /// With any content there is one kind.
    pub closed: Vec<StateId>,
    /// Contents such that what was said holds neither for them nor for their beginnings: ask the
    /// automaton itself. (With any content, beginnings are allowed as everything is.)
    pub apart: Vec<Box<[u8]>>,
    /// A state whose continuations are allowed here too.
    pub beside: Option<StateId>,
}

/// What a quoted text may still contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotedContent {
    /// Anything with a number of characters within bounds.
    Any {
        /// Fewest characters to come.
        least: u64,
        /// Most characters to come.
        most: u64,
    },
    /// The words of a language of contents, see
    /// [`ByteAutomaton::content_step`](crate::ByteAutomaton::content_step).
    Language {
        /// Which language.
        language: u32,
        /// Its state, never 0.
        state: u32,
        /// Characters read so far, as far as it matters.
        characters: u64,
    },
}
