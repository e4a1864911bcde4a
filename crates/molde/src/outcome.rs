//! What an extraction or a generation returns.

use std::time::Duration;

use serde_json::Value;

use crate::{Evidence, FieldReport, MoldeError, deep};

/// Why an answer ends where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The model ended it, or nothing could follow.
    Complete,
    /// The value is whole and valid, but the token budget took at least one choice away from the
    /// model so that it could be closed in time.
    ClosedByBudget {
        /// JSON Pointers (RFC 6901) of the values in which that happened, in order of first
        /// occurrence, each once. `""` is the whole answer.
        fields: Vec<String>,
    },
    /// The token limit was reached. Free generation only: a constrained answer is closed instead.
    Truncated,
    /// The caller cancelled. The text is what had been written by then.
    Cancelled,
    /// The deadline passed. The text is what had been written by then.
    DeadlineExceeded,
}

/// Tokens read and written for one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that had been computed before and were reused.
    pub cached_prompt_tokens: usize,
    /// Tokens of the answer, forced ones included.
    pub output_tokens: usize,
    /// Tokens of the answer that needed no decision of the model: the constraint allowed one only.
    pub forced_tokens: usize,
}

impl Usage {
    pub(crate) fn add(&mut self, other: &Self) {
        self.prompt_tokens += other.prompt_tokens;
        self.cached_prompt_tokens += other.cached_prompt_tokens;
        self.output_tokens += other.output_tokens;
        self.forced_tokens += other.forced_tokens;
    }
}

/// Wall time spent on one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// From the call to the return. At least the sum of reading, writing and the constraint's work.
    pub total: Duration,
    /// Reading the prompt. Includes the shared prefix in the call that computes it.
    pub prefill: Duration,
    /// The model's work while it writes the answer.
    pub decode: Duration,
    /// The part of both that was spent in the output head.
    pub head: Duration,
    /// The constraint's work: masks, forced tokens, keeping up with what was written.
    pub mask: Duration,
}

impl Timings {
    pub(crate) fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.prefill += other.prefill;
        self.decode += other.decode;
        self.head += other.head;
        self.mask += other.mask;
    }
}

/// The result of one extraction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The value, where the answer is whole: always for [`End::Complete`] and
    /// [`End::ClosedByBudget`], never for the other ends.
    pub value: Option<T>,
    /// The answer exactly as the model wrote it; cut off where it was cancelled.
    pub text: String,
    /// What ended it.
    pub end: End,
    /// Tokens, summed over windows.
    pub usage: Usage,
    /// Wall time, summed over windows.
    pub timings: Timings,
    /// How often a token was masked out because its effect could not be decided within the limits
    /// of the constraint. 0 means: nothing that the schema allows was withheld.
    pub undecided: u64,
    /// How sure the model was of each field, in the order in which they were begun; empty unless
    /// [`Confidence`](crate::Confidence) was asked for.
    pub fields: Vec<FieldReport>,
    /// JSON Pointers of fields that became null because they were less certain than
    /// [`ExtractorBuilder::abstain_below`](crate::ExtractorBuilder::abstain_below) asks for.
    pub abstained: Vec<String>,
    /// Where the document says the numbers of grounded fields; empty without such fields.
    pub evidence: Vec<Evidence>,
    /// With [`Overflow::Windows`](crate::Overflow::Windows), the answer for each window of a
    /// document that did not fit, in document order; empty otherwise.
    pub windows: Vec<WindowOutcome>,
}

/// The answer for one window of a document that did not fit into the context.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WindowOutcome {
    /// Index of the window's first token in the document.
    pub first_token: usize,
    /// Number of tokens of the document in the window.
    pub tokens: usize,
    /// The answer exactly as the model wrote it.
    pub text: String,
    /// What ended it.
    pub end: End,
    /// Whether this window's answer became the answer of the document.
    pub chosen: bool,
}

impl<T> Outcome<T> {
    /// The value, if the model was free to finish it.
    ///
    /// # Errors
    /// [`MoldeError::ClosedByBudget`] if the budget changed the answer (see
    /// [`into_value_or_closed`](Self::into_value_or_closed)), [`MoldeError::Cancelled`] and
    /// [`MoldeError::DeadlineExceeded`] if it is not whole.
    pub fn into_value(self) -> Result<T, MoldeError> {
        if let End::ClosedByBudget { fields } = self.end {
            return Err(MoldeError::ClosedByBudget { fields });
        }
        self.into_value_or_closed()
    }

    /// The value, also where the token budget had to close it.
    ///
    /// # Errors
    /// [`MoldeError::Cancelled`] and [`MoldeError::DeadlineExceeded`] if it is not whole.
    pub fn into_value_or_closed(self) -> Result<T, MoldeError> {
        match (self.value, self.end) {
            (Some(value), _) => Ok(value),
            (None, End::DeadlineExceeded) => Err(MoldeError::DeadlineExceeded),
            (None, _) => Err(MoldeError::Cancelled),
        }
    }
}

/// A JSON value as the model wrote it: no digit, escape or space of it is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson(String);

impl RawJson {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON text, without a copy.
    pub fn into_string(self) -> String {
        self.0
    }

    /// The text read into a `serde_json` value: a convenience, lossy for numbers beyond `u64`,
    /// `i64` and `f64`.
    ///
    /// # Errors
    /// [`MoldeError::Deserialize`] for a number beyond `f64`, which `serde_json` cannot hold,
    /// [`MoldeError::TooDeep`] beyond 10,000 levels of nesting, and [`MoldeError::Stack`].
    pub fn to_value(&self) -> Result<Value, MoldeError> {
        deep::read(&self.0)
    }
}

impl std::fmt::Display for RawJson {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The result of one free generation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generation {
    /// The text. Bytes that are no UTF-8 are replaced by U+FFFD.
    pub text: String,
    /// What ended it.
    pub end: End,
    /// Tokens.
    pub usage: Usage,
    /// Wall time.
    pub timings: Timings,
}
