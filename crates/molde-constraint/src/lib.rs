//! A byte automaton times a vocabulary: the tokens that may come next.
//!
//! [`Matcher`] runs any [`ByteAutomaton`](molde_vocab::ByteAutomaton) (a compiled schema, a regular
//! expression, a list of [`Choices`]) over a [`Vocabulary`](molde_vocab::Vocabulary) and is the
//! [`TokenConstraint`](molde_vocab::TokenConstraint) of one sequence.
//!
//! # Invariants
//! - A token is in the mask exactly when its bytes lead to a live state; under
//!   [`Segmentation::Canonical`], forced text additionally has only the tokenizer's own tokens.
//! - Everything about a state is a function of the state: masks do not depend on the order of
//!   calls, on skipped forced tokens, on rollbacks, or on dropped caches.
//! - While the text is not complete the mask is not empty, given a vocabulary that has every byte.
//!
//! This crate knows nothing of JSON, of schemas, or of models.

mod canonical;
mod choices;
mod completion;
mod explain;
mod matcher;
mod options;
mod table;

pub use choices::{Choices, ChoicesError};
pub use explain::Explanation;
pub use matcher::Matcher;
pub use options::{Limits, MatcherOptions, Segmentation};
