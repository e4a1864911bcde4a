//! The decoding loop, with or without a constraint.

use std::time::{Duration, Instant};

use molde_vocab::{ConstraintError, TokenConstraint, TokenId, Vocabulary};

use crate::sampler::{Sampler, Sampling, TokenScores, scores};
use crate::{InferError, Interrupt, KvCache, Model, TextStream, Tokenizer};

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
    /// scores nothing. Costs a pass over the logits for each token that is not forced.
    pub scores: Option<usize>,
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
}

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// Reading the prompt, and the forced tokens that directly follow it.
    pub prefill: Duration,
    /// The model's work afterwards.
    pub decode: Duration,
    /// The constraint's work: masks, forced tokens, advancing.
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

/// Reads the prompt and writes tokens, one at a time, until the turn ends.
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
/// [`InferError::NotFinite`] and [`InferError::NotANumber`] for damaged weights, [`InferError::Constraint`] if no token is left.
/// An interrupt is not an error: see [`End`].
pub fn generate(
    model: &Model,
    tokenizer: &Tokenizer,
    request: &GenerateRequest,
    cache: &mut KvCache,
    mut constraint: Option<&mut dyn TokenConstraint>,
    on_token: &mut dyn FnMut(TokenEvent<'_>),
) -> Result<Generation, InferError> {
    let prompt_tokens = request.prompt.len();
    let max_tokens = request.max_tokens;
    let context_tokens = model.config().context_tokens;
    if prompt_tokens == 0 {
        return Err(InferError::EmptyPrompt);
    }
    if prompt_tokens.saturating_add(max_tokens) > context_tokens {
        return Err(InferError::ContextOverflow { prompt_tokens, max_tokens, context_tokens });
    }
    if let Some(constraint) = constraint.as_deref_mut() {
        let needed_tokens = constraint.completion_tokens();
        if needed_tokens > max_tokens {
            return Err(InferError::BudgetTooSmall { needed_tokens, max_tokens });
        }
    }
    // At least one token is read, since logits are not cached.
    let cached = cache.common_prefix(&request.prompt).min(prompt_tokens - 1);
    cache.truncate(cached);
    let mut run = Run {
        vocabulary: tokenizer.vocabulary(),
        unread: request.prompt[cached..].to_vec(),
        tokens: Vec::new(),
        text: String::new(),
        stream: TextStream::new(),
        forced: 0,
        closed_by_budget: Vec::new(),
        timings: Timings::default(),
        sampler: Sampler::new(&request.sampling),
        scored: request.scores,
        on_token,
    };

    let mut is_prefill = true;
    let end = loop {
        let end = match constraint.as_deref_mut() {
            Some(constraint) => {
                run.write_forced(constraint, max_tokens)?.then_some(End::ConstraintComplete)
            }
            None => (run.tokens.len() == max_tokens).then_some(End::TokenLimit),
        };
        if let Some(end) = end {
            break end;
        }
        let started = Instant::now();
        let logits = request
            .interrupt
            .check()
            .and_then(|()| model.forward_unless(&run.unread, cache, &request.interrupt));
        let spent = if is_prefill { &mut run.timings.prefill } else { &mut run.timings.decode };
        *spent += started.elapsed();
        is_prefill = false;
        let logits = match logits {
            Ok(logits) => logits,
            Err(InferError::Cancelled) => break End::Cancelled,
            Err(InferError::DeadlineExceeded) => break End::DeadlineExceeded,
            Err(error) => return Err(error),
        };
        run.unread.clear();
        let choice = match constraint.as_deref_mut() {
            Some(constraint) => run.choose(&logits, constraint, max_tokens)?,
            None => run.choose_freely(&logits)?,
        };
        match choice {
            Choice::Token(token, scores) => run.write(token, false, scores.as_ref()),
            Choice::End(end) => break end,
        }
    };
    run.text.push_str(&run.stream.finish());
    Ok(Generation {
        usage: Usage {
            prompt_tokens,
            cached_prompt_tokens: cached,
            generated_tokens: run.tokens.len(),
            forced_tokens: run.forced,
        },
        tokens: run.tokens,
        text: run.text,
        end,
        closed_by_budget: run.closed_by_budget,
        undecided: constraint.map_or(0, |constraint| constraint.undecided()),
        timings: run.timings,
    })
}

/// The state of one call of [`generate`].
struct Run<'a> {
    vocabulary: &'a Vocabulary,
    /// Decided tokens that the model has not read yet.
    unread: Vec<TokenId>,
    tokens: Vec<TokenId>,
    text: String,
    stream: TextStream,
    forced: usize,
    closed_by_budget: Vec<usize>,
    timings: Timings,
    sampler: Sampler,
    /// [`GenerateRequest::scores`].
    scored: Option<usize>,
    on_token: &'a mut dyn FnMut(TokenEvent<'_>),
}

enum Choice {
    Token(TokenId, Option<TokenScores>),
    End(End),
}

impl Run<'_> {
    fn write(&mut self, token: TokenId, forced: bool, scores: Option<&TokenScores>) {
        let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
        let text = self.stream.push(bytes);
        let index = self.tokens.len();
        (self.on_token)(TokenEvent { index, token, bytes, text: &text, forced, scores });
        self.sampler.note(token);
        self.text.push_str(&text);
        self.tokens.push(token);
        self.unread.push(token);
        self.forced += usize::from(forced);
    }

    /// Writes the tokens that the constraint leaves no choice about. Whether it is finished.
    fn write_forced(
        &mut self,
        constraint: &mut dyn TokenConstraint,
        max_tokens: usize,
    ) -> Result<bool, InferError> {
        let started = Instant::now();
        let finished = loop {
            if constraint.is_finished() {
                break true;
            }
            let forced = constraint.forced().filter(|&t| !self.vocabulary.is_end_of_turn(t));
            let Some(token) = forced.filter(|_| self.tokens.len() < max_tokens) else {
                break false;
            };
            constraint.accept(token)?;
            self.write(token, true, None);
        };
        self.timings.mask += started.elapsed();
        Ok(finished)
    }

    fn choose(
        &mut self,
        logits: &[f32],
        constraint: &mut dyn TokenConstraint,
        max_tokens: usize,
    ) -> Result<Choice, InferError> {
        let started = Instant::now();
        let nothing = InferError::Constraint(ConstraintError::NoTokenAllowed);
        let remaining = max_tokens - self.tokens.len();
        let mut token = self.sampler.choose(logits, constraint.mask()?.iter())?.ok_or(nothing)?;
        if !self.vocabulary.is_end_of_turn(token) && !constraint.fits(token, remaining) {
            self.closed_by_budget.push(self.tokens.len());
            if remaining == 0 && constraint.is_complete() {
                self.timings.mask += started.elapsed();
                return Ok(Choice::End(End::ConstraintComplete));
            }
            let nothing = InferError::Constraint(ConstraintError::NoTokenAllowed);
            let mask = constraint.mask_within(remaining)?;
            token = self.sampler.choose(logits, mask.iter())?.ok_or(nothing)?;
        }
        self.timings.mask += started.elapsed();
        let scored = match self.scored {
            Some(count) => {
                let mask = constraint.mask()?;
                let is_allowed = |token| mask.contains(token);
                Some(scores(logits, used(self.vocabulary), is_allowed, token, count)?)
            }
            None => None,
        };
        let started = Instant::now();
        constraint.accept(token)?;
        self.timings.mask += started.elapsed();
        Ok(self.ended_or(token, scored))
    }

    fn choose_freely(&mut self, logits: &[f32]) -> Result<Choice, InferError> {
        let vocabulary = self.vocabulary;
        // A tokenizer has a token for each byte, so there is a candidate.
        let token =
            self.sampler.choose(logits, used(vocabulary))?.ok_or(InferError::EmptyPrompt)?;
        let scored = self
            .scored
            .map(|count| scores(logits, used(vocabulary), |_| true, token, count))
            .transpose()?;
        Ok(self.ended_or(token, scored))
    }

    fn ended_or(&self, token: TokenId, scores: Option<TokenScores>) -> Choice {
        if self.vocabulary.is_end_of_turn(token) {
            Choice::End(End::EndOfTurn)
        } else {
            Choice::Token(token, scores)
        }
    }
}

/// The tokens that can be written: those with a text, and control tokens.
fn used(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> {
    let is_used =
        |&token: &TokenId| vocabulary.token_bytes(token).is_some() || vocabulary.is_control(token);
    (0..vocabulary.len() as TokenId).filter(is_used)
}
