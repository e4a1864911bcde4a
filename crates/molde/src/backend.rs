//! What the rest of this crate needs of a model: the seam at which tests put another one.

use std::sync::Arc;

use molde_infer::{Message, TokenEvent};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use crate::{Control, MoldeError, Timings, Usage};

/// A model with its tokenizer and chat template: immutable and shared.
pub(crate) trait Backend: Send + Sync + std::fmt::Debug {
    fn vocabulary(&self) -> &Arc<Vocabulary>;

    /// Tokens that prompt and answer may take together.
    fn context_tokens(&self) -> usize;

    /// The tokens of plain text. No text yields a control token.
    fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, MoldeError>;

    /// The tokens of a conversation up to the point where the answer begins.
    fn encode_chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, MoldeError>;

    /// Reads `tokens`, possibly none, so that any number of prompts that begin with them can go
    /// on from there.
    fn prefill(&self, tokens: &[TokenId], control: &Control)
    -> Result<Arc<dyn Prefix>, MoldeError>;
}

/// The beginning of a prompt, read once.
pub(crate) trait Prefix: Send + Sync + std::fmt::Debug {
    /// Reads the rest of `job.prompt`, which begins with the tokens of the prefix, and writes.
    fn generate(&self, job: Job<'_>) -> Result<Written, MoldeError>;

    /// Calls `each` with the logits after `prompt`, and after each token of `continuation`: one row
    /// more than that has tokens, `[vocabulary]` each. `prompt` begins with the tokens of the prefix
    /// and has one more at least.
    fn score(
        &self,
        prompt: &[TokenId],
        continuation: &[TokenId],
        control: &Control,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<(), MoldeError>;
}

/// One answer to write.
pub(crate) struct Job<'a> {
    pub(crate) prompt: &'a [TokenId],
    pub(crate) max_tokens: usize,
    pub(crate) constraint: Option<&'a mut dyn TokenConstraint>,
    pub(crate) control: &'a Control,
    /// Called with each token of the answer, in order.
    pub(crate) on_token: &'a mut dyn FnMut(TokenEvent<'_>),
}

/// An answer as tokens.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) stop: Stop,
    /// Indices of the tokens of the answer at which the budget took away the model's choice; one
    /// past the last if it ended the answer there.
    pub(crate) closed_at: Vec<usize>,
    pub(crate) usage: Usage,
    pub(crate) timings: Timings,
}

/// Why writing stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The model ended its turn, or nothing can follow.
    Complete,
    TokenLimit,
    Cancelled,
    DeadlineExceeded,
}
