//! A byte automaton times a vocabulary: the tokens that may come next.
//!
//! [`Matcher`] runs any [`ByteAutomaton`](molde_vocab::ByteAutomaton) (a compiled schema, a regular
//! expression, a list of [`Choices`]) over a [`Vocabulary`](molde_vocab::Vocabulary) and is the
//! [`TokenConstraint`](molde_vocab::TokenConstraint) of one sequence.
//!
//! ```
//! use std::sync::Arc;
//!
//! use molde_constraint::{Choices, Matcher, MatcherOptions};
//! use molde_vocab::{TokenConstraint, TokenEntry, Vocabulary};
//!
//! // Token 0 to 3 have texts, token 4 ends the turn.
//! let texts = ["y", "es", "n", "o"].map(TokenEntry::Text);
//! let entries = texts.into_iter().chain([TokenEntry::Control]);
//! let vocabulary = Arc::new(Vocabulary::new(entries, [4], None)?);
//!
//! let answers = Choices::new(["yes", "no"])?;
//! let mut matcher = Matcher::new(answers, vocabulary, MatcherOptions::default());
//! assert_eq!(matcher.mask()?.iter().collect::<Vec<_>>(), [0, 2]);
//! assert_eq!(matcher.completion_tokens(), 2);
//! matcher.accept(0)?;
//! assert_eq!(matcher.forced(), Some(1));
//! matcher.accept(1)?;
//! assert!(matcher.is_finished());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - A token is in the mask exactly when its bytes lead to a live state; under
//!   [`Segmentation::Canonical`], forced text additionally has only the tokenizer's own tokens.
//! - Everything about a state is a function of the state: masks do not depend on the order of
//!   calls, on skipped forced tokens, on rollbacks, or on dropped caches.
//! - While the text is not complete the mask is not empty, given a vocabulary that has every byte.
//!
//! This crate knows nothing of JSON (that is molde-schema's) or of models.

mod calls;
mod canonical;
mod choices;
mod completion;
mod explain;
mod masks;
mod matcher;
mod options;
mod pattern;
mod quoted;
mod schema;
mod table;
mod token_set;

pub use calls::{CallMarkers, Calls, Content};
pub use choices::{Choices, ChoicesError};
pub use explain::Explanation;
pub use matcher::Matcher;
pub use options::{Limits, MatcherOptions, Segmentation};
pub use pattern::PatternConstraint;
pub use schema::{SchemaConstraint, prepare};
