//! Why a token is or is not allowed.

use molde_schema::{LiveKeyword, Rejection};
use molde_vocab::{StateId, TokenId};

use crate::{Matcher, SchemaConstraint};

/// What a token meets in the current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// It is in the mask.
    Allowed,
    /// Its byte at `byte_offset` cannot follow. Under a schema, [`Matcher::reasons`] says which
    /// keywords forbid it.
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

impl Matcher<SchemaConstraint> {
    /// Which keywords forbid `token` here, and what they expect: `None` if its bytes can follow, or
    /// it has none. The offset counts the token's own bytes.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint};
    /// use molde_schema::{CompileOptions, CompiledSchema};
    /// use molde_vocab::{TokenEntry, Vocabulary};
    ///
    /// let schema = r#"{"type": "integer", "minimum": 1, "maximum": 4}"#;
    /// let schema = Arc::new(CompiledSchema::compile(schema, &CompileOptions::default())?);
    /// let entries = ["3", "5"].map(TokenEntry::Text).into_iter().chain([TokenEntry::Control]);
    /// let vocabulary = Arc::new(Vocabulary::new(entries, [2], None)?);
    /// let constraint = SchemaConstraint::new(&schema);
    /// let matcher = Matcher::new(constraint, vocabulary, MatcherOptions::default());
    ///
    /// assert_eq!(matcher.reasons(0), None);
    /// let rejection = matcher.reasons(1).expect("5 is above the maximum");
    /// assert_eq!(rejection.reasons[0].keyword, "maximum");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Complexity
    /// That of [`CompiledSchema::explain`](molde_schema::CompiledSchema::explain): for messages, not
    /// for every token.
    pub fn reasons(&self, token: TokenId) -> Option<Rejection> {
        let bytes = self.vocabulary().token_bytes(token)?;
        let text = [self.text(), bytes].concat();
        let mut rejection = self.automaton().schema().explain(&text, false)?;
        rejection.offset = rejection.offset.saturating_sub(self.text().len());
        Some(rejection)
    }

    /// Why the text cannot end here; `None` if it can.
    ///
    /// # Complexity
    /// As for [`reasons`](Self::reasons).
    pub fn reasons_to_go_on(&self) -> Option<Rejection> {
        self.automaton().schema().explain(self.text(), true)
    }

    /// The keywords that apply to what comes next, those of the innermost value first.
    ///
    /// # Complexity
    /// As for [`reasons`](Self::reasons).
    pub fn live_keywords(&self) -> Vec<LiveKeyword> {
        self.automaton().schema().live_keywords(self.text())
    }
}
