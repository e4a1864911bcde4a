//! Token ids and their bytes, the trie over them, the mask of allowed tokens, and the two traits
//! between which constrained decoding happens.
//!
//! # Invariants
//! - A token is always a *model* token. Control tokens (end of turn, padding, tool markers) have
//!   no bytes here, so no text can ever produce one.
//! - Everything compiled ([`Vocabulary`], [`TokenTrie`]) is immutable and shared behind `Arc`.
//! - This crate knows nothing of JSON, of schemas, or of models.

mod automaton;
mod byte_set;
mod constraint;
mod error;
mod mask;
mod quoted;
mod segmenter;
mod trie;
mod vocabulary;

pub use automaton::{ByteAutomaton, StateId};
pub use byte_set::ByteSet;
pub use constraint::{ConstraintError, TokenConstraint, TokenId};
pub use error::VocabularyError;
pub use mask::{FEW_TOKENS, MaskIter, MaskKind, TokenMask};
pub use quoted::{QuotedContent, QuotedEnd, QuotedPosition, QuotedReading, QuotedRules};
pub use segmenter::Segmenter;
pub use trie::{GuidedVisitor, TokenTrie, TrieVisitor};
pub use vocabulary::{TokenEntry, Vocabulary};
