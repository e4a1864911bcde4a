//! From tokens to the text of an answer, and to the events of a stream.

use molde_infer::TokenEvent;
use molde_vocab::TokenId;

use crate::backend::{Stop, Written};
use crate::confidence::FieldReport;
use crate::control::Event;
use crate::fields::{CompletedField, FieldScanner};
use crate::outcome::{Timings, Usage};
use crate::{End, MoldeError};

/// The text of an answer and how it came about, before it is read into a value.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) end: End,
    pub(crate) usage: Usage,
    pub(crate) timings: Timings,
    pub(crate) undecided: u64,
    /// The tokens of the text.
    pub(crate) tokens: Vec<TokenId>,
    /// How sure the model was; empty unless it was asked for.
    pub(crate) fields: Vec<FieldReport>,
    /// JSON Pointers of fields that became null because they were too uncertain.
    pub(crate) abstained: Vec<String>,
}

impl Answer {
    /// The answer of a call that was stopped while it read the prompt; any other error stays one.
    pub(crate) fn stopped_before(
        error: MoldeError,
        prompt_tokens: usize,
    ) -> Result<Self, MoldeError> {
        let end = match error {
            MoldeError::Cancelled => End::Cancelled,
            MoldeError::DeadlineExceeded => End::DeadlineExceeded,
            other => return Err(other),
        };
        Ok(Self {
            text: String::new(),
            end,
            usage: Usage { prompt_tokens, ..Usage::default() },
            timings: Timings::default(),
            undecided: 0,
            tokens: Vec::new(),
            fields: Vec::new(),
            abstained: Vec::new(),
        })
    }
}

impl End {
    /// Whether the caller stopped the work before the answer was whole.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self, Self::Cancelled | Self::DeadlineExceeded)
    }
}

/// Collects the tokens of one answer and reports them.
pub(crate) struct Transcript<'a> {
    on_event: &'a mut dyn FnMut(Event<'_>),
    scanner: FieldScanner,
    is_json: bool,
    completed: Vec<CompletedField>,
    /// Offset at which each token begins.
    token_offsets: Vec<usize>,
    tokens: Vec<TokenId>,
}

impl<'a> Transcript<'a> {
    /// For an answer that is JSON: its fields are reported.
    pub(crate) fn json(on_event: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self::new(on_event, true)
    }

    /// For any text.
    pub(crate) fn free(on_event: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self::new(on_event, false)
    }

    fn new(on_event: &'a mut dyn FnMut(Event<'_>), is_json: bool) -> Self {
        Self {
            on_event,
            scanner: FieldScanner::new(),
            is_json,
            completed: Vec::new(),
            token_offsets: Vec::new(),
            tokens: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, token: TokenEvent<'_>) {
        self.token_offsets.push(self.scanner.text().len());
        self.tokens.push(token.token);
        self.scanner.push(token.bytes, &mut self.completed);
        (self.on_event)(Event::Token { text: token.text, forced: token.forced });
        for field in self.completed.drain(..) {
            if self.is_json
                && let Ok(json) = std::str::from_utf8(&self.scanner.text()[field.bytes])
            {
                (self.on_event)(Event::Field { pointer: &field.pointer, json });
            }
        }
    }

    /// The answer. A cut one loses an incomplete character at its end; in free text, bytes that
    /// are no UTF-8 are U+FFFD.
    pub(crate) fn finish(self, written: &Written, undecided: u64) -> Result<Answer, MoldeError> {
        let end = match written.stop {
            Stop::Complete if written.closed_at.is_empty() => End::Complete,
            Stop::Complete => End::ClosedByBudget { fields: self.pointers_at(&written.closed_at) },
            Stop::TokenLimit => End::Truncated,
            Stop::Cancelled => End::Cancelled,
            Stop::DeadlineExceeded => End::DeadlineExceeded,
        };
        let bytes = self.scanner.text();
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) if !self.is_json => String::from_utf8_lossy(bytes).into_owned(),
            Err(error) if end.is_early() => {
                String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
            }
            Err(error) => return Err(MoldeError::NotUtf8 { offset: error.valid_up_to() }),
        };
        Ok(Answer {
            text,
            end,
            usage: written.usage,
            timings: written.timings,
            undecided,
            tokens: self.tokens,
            fields: Vec::new(),
            abstained: Vec::new(),
        })
    }

    /// JSON Pointers of what was being written when the given tokens were chosen, each once.
    fn pointers_at(&self, tokens: &[usize]) -> Vec<String> {
        let mut pointers: Vec<String> = Vec::new();
        let mut scanner = FieldScanner::new();
        let mut ignored = Vec::new();
        for &token in tokens {
            let end = self.scanner.text().len();
            let offset = self.token_offsets.get(token).copied().unwrap_or(end);
            let from = scanner.text().len().min(offset);
            scanner.push(&self.scanner.text()[from..offset], &mut ignored);
            let pointer = scanner.pointer();
            if !pointers.contains(&pointer) {
                pointers.push(pointer);
            }
        }
        pointers
    }
}
