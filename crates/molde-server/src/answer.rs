//! One answer: what is heard of it while it is written, and the whole of it.

use std::time::Duration;

use crate::fault::Fault;

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Delta {
    /// The model has begun to read.
    Started,
    /// More of the text.
    Text { text: String, tokens: Vec<TokenScore> },
    /// A call begins; calls are numbered from 0.
    CallStart { index: usize, name: String },
    /// More of the arguments of a call.
    CallArguments { index: usize, json: String },
    /// The end; nothing follows.
    End(Result<Box<Finish>, Fault>),
}

/// A token of the text with its scores, for dialects that show them.
#[derive(Debug, Clone)]
pub(crate) struct TokenScore {
    pub(crate) token: Piece,
    pub(crate) forced: bool,
    /// Logarithm of the probability that the mask left to the tokens it allows; 0 for forced ones.
    pub(crate) allowed: f32,
    /// The best ones the mask allows, and the best ones at all; descending.
    pub(crate) candidates: Vec<(Piece, bool)>,
}

/// A token as dialects show it.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
    /// Natural logarithm of the probability, as the model gives it without a mask.
    pub(crate) logprob: f32,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    pub(crate) reason: Reason,
    pub(crate) prompt_tokens: usize,
    pub(crate) cached_tokens: usize,
    pub(crate) output_tokens: usize,
    pub(crate) forced_tokens: usize,
    pub(crate) queued: Duration,
    pub(crate) prefill: Duration,
    pub(crate) decode: Duration,
    pub(crate) mask: Duration,
    /// JSON Pointers of what was cut short to stay inside the token limit.
    pub(crate) closed_by_budget: Vec<String>,
    /// Tokens masked out because their effect could not be decided within the limits.
    pub(crate) undecided: u64,
    /// Whether stop texts were asked for and not looked for, because a constraint was in force.
    pub(crate) stop_ignored: bool,
    /// The probability of each completed field, if a report was asked for.
    pub(crate) fields: Vec<FieldReport>,
    /// Mean probability that the mask removed at tokens that were not forced.
    pub(crate) removed: Option<f64>,
}

/// How sure the model was of one field.
#[derive(Debug, Clone)]
pub(crate) struct FieldReport {
    pub(crate) pointer: String,
    /// Product of the probabilities, under the mask, of the chosen tokens.
    pub(crate) probability: f64,
    pub(crate) tokens: usize,
    pub(crate) forced_tokens: usize,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is whole.
    Complete,
    /// This text was met.
    Stop(String),
    /// The token limit, or, if `context`, the model's context.
    Length { context: bool },
    /// It is whole, and holds calls.
    Calls,
}

/// A whole answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) scores: Vec<TokenScore>,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Option<Box<Finish>>,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// A JSON object, unless the answer was cut.
    pub(crate) arguments: String,
}

impl Answer {
    /// Adds a piece.
    pub(crate) fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Started | Delta::End(Err(_)) => {}
            Delta::Text { text, tokens } => {
                self.text.push_str(text);
                self.scores.extend_from_slice(tokens);
            }
            Delta::CallStart { name, .. } => {
                self.calls.push(Call { name: name.clone(), arguments: String::new() });
            }
            Delta::CallArguments { index, json } => {
                if let Some(call) = self.calls.get_mut(*index) {
                    call.arguments.push_str(json);
                }
            }
            Delta::End(Ok(finish)) => self.finish = Some(finish.clone()),
        }
    }

    /// The end. Only for answers that have come to one.
    pub(crate) fn finish(&self) -> Result<&Finish, Fault> {
        self.finish.as_deref().ok_or_else(Fault::internal)
    }
}
