//! Documents that do not fit into the context, read in overlapping windows.

use std::ops::Range;

use molde_vocab::Vocabulary;
use serde_json::Value;

use crate::MoldeError;
use crate::backend::Backend;

/// What to do with a document that does not fit into the context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// [`MoldeError::ContextOverflow`], with the numbers. Nothing is ever cut silently.
    #[default]
    Error,
    /// The document is read in windows, each as long as fits, and each gets an answer of its own.
    ///
    /// The answer of the document is that of the first window that found something: whose value
    /// holds at least one scalar that is not null. If none did, it is the first window's. All
    /// answers are in [`Outcome::windows`](crate::Outcome::windows).
    Windows {
        /// Tokens that neighbouring windows share, so that a fact is not cut in two. Must be less
        /// than a window holds.
        overlap_tokens: usize,
    },
}

/// A document cut into tokens, of which any range can be turned back into text.
pub(crate) struct TokenizedDocument {
    /// The text of all tokens. It can differ from the document in its Unicode normal form, which
    /// a tokenizer may change.
    text: String,
    /// Offset of each token in `text`, moved down to the beginning of a character, and the end.
    offsets: Vec<usize>,
}

impl TokenizedDocument {
    pub(crate) fn new(backend: &dyn Backend, document: &str) -> Result<Self, MoldeError> {
        let tokens = backend.encode_text(document)?;
        let vocabulary: &Vocabulary = backend.vocabulary();
        let mut bytes = Vec::with_capacity(document.len());
        let mut offsets = Vec::with_capacity(tokens.len() + 1);
        for token in tokens {
            offsets.push(bytes.len());
            bytes.extend_from_slice(vocabulary.token_bytes(token).unwrap_or_default());
        }
        offsets.push(bytes.len());
        let text = String::from_utf8(bytes)
            .map_err(|error| MoldeError::NotUtf8 { offset: error.utf8_error().valid_up_to() })?;
        for offset in &mut offsets {
            *offset = text.floor_char_boundary(*offset);
        }
        Ok(Self { text, offsets })
    }

    pub(crate) fn tokens(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn text(&self, tokens: Range<usize>) -> &str {
        &self.text[self.offsets[tokens.start]..self.offsets[tokens.end]]
    }
}

/// Whether an answer says anything: it holds a scalar that is not null.
pub(crate) fn says_something(answer: &str) -> bool {
    fn holds_scalar(value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            Value::Array(items) => items.iter().any(holds_scalar),
            Value::Object(members) => members.values().any(holds_scalar),
        }
    }
    // What `serde_json` cannot hold is deep or huge, not empty.
    serde_json::from_str(answer).map_or(true, |value| holds_scalar(&value))
}
