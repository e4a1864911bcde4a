//! The decoding loop for one sequence, with or without a constraint.

use std::time::{Duration, Instant};

use molde_vocab::{TokenConstraint, TokenId};

use crate::feed::Feed;
use crate::sequence::{Constraint, Sequence};
use crate::{InferError, Interrupt, KvCache, Model, Sampling, TokenScores, Tokenizer};

/// What to generate.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// The tokens to read first. At least one.
    pub prompt: Vec<TokenId>,
    /// Most tokens to write; the end-of-turn token is not counted.
    pub max_tokens: usize,
    /// When to stop early. Default: never.
    pub interrupt: Interrupt,
    /// How tokens are chosen. Default: the most probable one.
    pub sampling: Sampling,
    /// How many rivals of each chosen token are scored, allowed ones and all; `None`, the default,
    /// scores nothing. Costs the whole head and a pass over the logits for each token that is not
    /// forced.
    pub scores: Option<usize>,
    /// Tokens that end a free text as the end-of-turn tokens do; they are not written. Default:
    /// none.
    pub stop_tokens: Vec<TokenId>,
    /// Whether tokens that repeat the prompt are guessed and checked several at once, where no
    /// others wait. Changes speed only. Default: yes.
    pub speculate: bool,
    /// So many tokens at the beginning of the prompt are worth keeping for other requests; only
    /// for a [`Scheduler`](crate::Scheduler). Default: 0.
    pub shared_prefix_tokens: usize,
}

impl GenerateRequest {
    /// A request with the defaults.
    pub fn new(prompt: Vec<TokenId>, max_tokens: usize) -> Self {
        Self {
            prompt,
            max_tokens,
            interrupt: Interrupt::default(),
            sampling: Sampling::default(),
            scores: None,
            stop_tokens: Vec::new(),
            speculate: true,
            shared_prefix_tokens: 0,
        }
    }
}

/// One token of the output, as it is decided.
#[derive(Debug, Clone, Copy)]
pub struct TokenEvent<'a> {
    /// Index in the output.
    pub index: usize,
    /// The token.
    pub token: TokenId,
    /// Its bytes, not necessarily whole characters; empty for a control token.
    pub bytes: &'a [u8],
    /// The text that became complete with it; concatenated, the text of the output.
    pub text: &'a str,
    /// Whether the constraint left no other token, so that the model was not asked.
    pub forced: bool,
    /// How probable it was, if that was asked for and the model was asked.
    pub scores: Option<&'a TokenScores>,
}

/// Why generation stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The model ended its turn. Under a constraint, the text is complete.
    EndOfTurn,
    /// The text is complete, and nothing can follow it, or nothing that fits the token limit.
    ConstraintComplete,
    /// The token limit was reached. Only without a constraint.
    TokenLimit,
    /// The [`CancelHandle`](crate::CancelHandle) was used. The text may be incomplete.
    Cancelled,
    /// The deadline passed. The text may be incomplete.
    DeadlineExceeded,
}

/// How many tokens went in and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that were in the cache already.
    pub cached_prompt_tokens: usize,
    /// Tokens written, forced ones included, the end-of-turn token not.
    pub generated_tokens: usize,
    /// Those of them for which the model was not asked.
    pub forced_tokens: usize,
    /// Those of them that were guessed and needed no step of their own.
    pub guessed_tokens: usize,
}

/// Where the time went. A step that several sequences share counts for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// Reading the prompt, and the forced tokens that directly follow it.
    pub prefill: Duration,
    /// The model's work afterwards.
    pub decode: Duration,
    /// The part of both that was spent in the output head.
    pub head: Duration,
    /// What was done between the steps: masks, forced tokens, the choice of tokens.
    pub mask: Duration,
}

/// The outcome of [`generate`].
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The tokens written, without the end-of-turn token.
    pub tokens: Vec<TokenId>,
    /// Their text. Bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// Why generation stopped.
    pub end: End,
    /// Indices in `tokens` where the model's first choice did not fit the token limit and was
    /// replaced; an index of `tokens.len()` means that the text was ended instead.
    pub closed_by_budget: Vec<usize>,
    /// Tokens that the constraint masked out because it could not decide them.
    pub undecided: u64,
    /// Token counts.
    pub usage: Usage,
    /// Times.
    pub timings: Timings,
}

/// Reads the prompt and writes tokens until the turn ends.
///
/// The longest prefix of the prompt that `cache` already holds is not read again, and what else it
/// holds is forgotten. Under a constraint every token is chosen among those in its mask; runs of
/// forced tokens are read in one batch without asking the model; and the text is complete
/// within `max_tokens`, unless the work is interrupted. Without one, every token that the
/// tokenizer has can be chosen; padding ids never are.
///
/// `on_token` is called once for each token of the output, in order.
///
/// # Errors
/// Before anything is read: [`InferError::EmptyPrompt`], [`InferError::TokenOutOfRange`],
/// [`InferError::ContextOverflow`] if prompt and `max_tokens` exceed the context,
/// [`InferError::BudgetTooSmall`] if the constraint cannot be completed in `max_tokens`. Later:
/// [`InferError::NotFinite`] and [`InferError::NotANumber`] for damaged weights,
/// [`InferError::Constraint`] if no token is left. An interrupt is not an error: see [`End`].
pub fn generate(
    model: &Model,
    tokenizer: &Tokenizer,
    request: &GenerateRequest,
    cache: &mut KvCache,
    mut constraint: Option<&mut dyn TokenConstraint>,
    on_token: &mut dyn FnMut(TokenEvent<'_>),
) -> Result<Generation, InferError> {
    let mut sequence = Sequence::new(model, request.clone(), cache, constraint.as_deref_mut())?;
    let own = std::mem::replace(cache, model.new_cache(0));
    let mut feed = [Feed::new(own)];
    let end = run(model, tokenizer, &mut sequence, &mut feed, constraint.as_deref_mut(), on_token);
    let [feed] = feed;
    *cache = feed.cache;
    Ok(sequence.finish(end?, constraint))
}

fn run(
    model: &Model,
    tokenizer: &Tokenizer,
    sequence: &mut Sequence,
    feed: &mut [Feed; 1],
    mut constraint: Constraint<'_, '_>,
    on_token: &mut dyn FnMut(TokenEvent<'_>),
) -> Result<End, InferError> {
    let mut work = model.new_workspace();
    loop {
        let planned = sequence.plan(tokenizer, constraint.as_deref_mut(), true, on_token)?;
        if let Some(end) = planned {
            return Ok(end);
        }
        let started = Instant::now();
        sequence.fill(&mut feed[0], model.prefill_chunk_tokens(), None);
        model.step(feed, &mut work)?;
        let spent = started.elapsed();
        let constraint = constraint.as_deref_mut();
        let one = &mut feed[0];
        let settled = sequence.settle(tokenizer, constraint, one, &work, 0, spent, on_token)?;
        if let Some(end) = settled {
            return Ok(end);
        }
    }
}
