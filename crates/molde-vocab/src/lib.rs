//! Token ids and their bytes, the trie over them, the mask of allowed tokens, and the two traits
//! between which constrained decoding happens.
//!
//! # Invariants
//! - A token is always a *model* token. Control tokens (end of turn, padding, tool markers) have
//!   no bytes here, so no text can ever produce one.
//! - Everything compiled ([`Vocabulary`], [`TokenTrie`]) is immutable and shared behind `Arc`.
//! - This crate knows nothing of JSON, of schemas, or of models.

mod automaton;
mod constraint;
mod error;
mod mask;
mod segmenter;
mod trie;
mod vocabulary;

pub use automaton::{ByteAutomaton, StateId};
pub use constraint::{ConstraintError, TokenConstraint, TokenId};
pub use error::VocabularyError;
pub use mask::{FEW_TOKENS, MaskIter, MaskKind, TokenMask};
pub use segmenter::Segmenter;
pub use trie::{TokenTrie, TrieVisitor};
pub use vocabulary::{TokenEntry, Vocabulary};
