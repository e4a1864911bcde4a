//! One answer, between the steps of the model: what to read next, and which token follows.

use std::time::{Duration, Instant};

use molde_vocab::{ConstraintError, MaskKind, TokenConstraint, TokenId, Vocabulary};

use crate::draft::{Drafter, LONGEST as LONGEST_GUESS};
use crate::feed::Feed;
use crate::generate::{End, GenerateRequest, Generation, Timings, TokenEvent, Usage};
use crate::sampler::{Logits, Sampler, TokenScores, scores};
use crate::{InferError, Interrupt, KvCache, Model, TextStream, Tokenizer, Workspace};

/// What hears of each token of the output.
pub(crate) type Listener<'l> = &'l mut dyn FnMut(TokenEvent<'_>);
/// The constraint of a sequence, if it has one.
pub(crate) type Constraint<'s, 'c> = Option<&'s mut (dyn TokenConstraint + 'c)>;

/// Tokens of an answer for which room is made at once.
const MAX_RESERVED_TOKENS: usize = 4096;

/// The state of one answer. The cache, the constraint and the listener belong to the caller and
/// are the same in all calls.
#[derive(Debug)]
pub(crate) struct Sequence {
    max_tokens: usize,
    stop_tokens: Vec<TokenId>,
    interrupt: Interrupt,
    sampler: Sampler,
    /// [`GenerateRequest::scores`].
    scored: Option<usize>,
    drafter: Option<Drafter>,
    prompt: Vec<TokenId>,
    cached: usize,
    /// Decided tokens from the prompt on that the model has not read: `prompt[read..]`, then these.
    read: usize,
    unread: Vec<TokenId>,
    /// Guesses that follow `unread`, and what is wanted after the last decided token and each of
    /// them. Planned anew for each answer token.
    guesses: Vec<TokenId>,
    wants: Vec<Want>,
    rows: Vec<TokenId>,
    is_planned: bool,
    /// Whether no step has chosen a token yet.
    is_first: bool,
    tokens: Vec<TokenId>,
    text: String,
    stream: TextStream,
    forced: usize,
    guessed_right: usize,
    closed_by_budget: Vec<usize>,
    timings: Timings,
}

/// What decides the token at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// There is no choice.
    Forced(TokenId),
    All,
    /// The logits of that many of [`Sequence::rows`], from the first index on.
    Rows {
        first: usize,
        len: usize,
    },
}

enum Choice {
    Token(TokenId, Option<TokenScores>),
    End(End),
}

impl Sequence {
    /// Checks the request, and keeps of `cache` what the prompt begins with.
    pub(crate) fn new(
        model: &Model,
        request: GenerateRequest,
        cache: &mut KvCache,
        constraint: Constraint<'_, '_>,
    ) -> Result<Self, InferError> {
        let GenerateRequest { prompt, max_tokens, interrupt, stop_tokens, .. } = request;
        let prompt_tokens = prompt.len();
        let context_tokens = model.config().context_tokens;
        if prompt_tokens == 0 {
            return Err(InferError::EmptyPrompt);
        }
        if prompt_tokens.saturating_add(max_tokens) > context_tokens {
            return Err(InferError::ContextOverflow { prompt_tokens, max_tokens, context_tokens });
        }
        let vocabulary = model.vocabulary_len();
        if let Some(&token) = prompt.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(InferError::TokenOutOfRange { token, vocabulary });
        }
        if let Some(constraint) = constraint {
            let needed_tokens = constraint.completion_tokens();
            if needed_tokens > max_tokens {
                return Err(InferError::BudgetTooSmall { needed_tokens, max_tokens });
            }
        }
        // At least one token is read, since logits are not cached.
        let cached = cache.common_prefix(&prompt).min(prompt_tokens - 1);
        cache.truncate(cached);
        let sampler = Sampler::new(&request.sampling);
        let speculates = request.speculate && sampler.is_greedy();
        Ok(Self {
            drafter: speculates.then(|| Drafter::new(&prompt, max_tokens)),
            max_tokens,
            stop_tokens,
            interrupt,
            sampler,
            scored: request.scores,
            cached,
            read: cached,
            prompt,
            unread: Vec::new(),
            guesses: Vec::new(),
            wants: Vec::new(),
            rows: Vec::new(),
            is_planned: false,
            is_first: true,
            tokens: Vec::with_capacity(max_tokens.min(MAX_RESERVED_TOKENS)),
            text: String::new(),
            stream: TextStream::new(),
            forced: 0,
            guessed_right: 0,
            closed_by_budget: Vec::new(),
            timings: Timings::default(),
        })
    }

    /// Whether tokens of the prompt are still to be read.
    pub(crate) fn is_prefill(&self) -> bool {
        self.read < self.prompt.len()
    }

    /// Decides what needs no model, and what the next step must tell. `Some` if there is nothing
    /// left to do. `may_guess` says whether a batch has room for guesses.
    pub(crate) fn plan(
        &mut self,
        tokenizer: &Tokenizer,
        mut constraint: Constraint<'_, '_>,
        may_guess: bool,
        on_token: Listener<'_>,
    ) -> Result<Option<End>, InferError> {
        match self.interrupt.check() {
            Ok(()) => {}
            Err(InferError::Cancelled) => return Ok(Some(End::Cancelled)),
            Err(InferError::DeadlineExceeded) => return Ok(Some(End::DeadlineExceeded)),
            Err(error) => return Err(error),
        }
        if self.is_planned {
            return Ok(None);
        }
        let started = Instant::now();
        let vocabulary = tokenizer.vocabulary();
        let end = match constraint.as_deref_mut() {
            Some(constraint) => self
                .write_forced(vocabulary, constraint, on_token)?
                .then_some(End::ConstraintComplete),
            None => (self.tokens.len() == self.max_tokens).then_some(End::TokenLimit),
        };
        if end.is_none() {
            self.guesses.clear();
            self.wants.clear();
            self.rows.clear();
            match constraint {
                Some(constraint) => self.plan_masked(vocabulary, constraint, may_guess)?,
                None => self.plan_free(vocabulary, may_guess),
            }
            self.is_planned = true;
        }
        self.timings.mask += started.elapsed();
        Ok(end)
    }

    /// Writes the tokens that the constraint leaves no choice about. Whether it is finished.
    fn write_forced(
        &mut self,
        vocabulary: &Vocabulary,
        constraint: &mut dyn TokenConstraint,
        on_token: Listener<'_>,
    ) -> Result<bool, InferError> {
        loop {
            if constraint.is_finished() {
                return Ok(true);
            }
            let forced = constraint.forced().filter(|&token| !vocabulary.is_end_of_turn(token));
            let Some(token) = forced.filter(|_| self.tokens.len() < self.max_tokens) else {
                return Ok(false);
            };
            constraint.accept(token)?;
            self.write(vocabulary, token, true, None, on_token);
            self.unread.push(token);
        }
    }

    /// The guesses to check, copied: at most [`LONGEST_GUESS`], none if there is no time for them.
    fn guess(&self, may_guess: bool) -> ([TokenId; LONGEST_GUESS], usize) {
        let mut copy = [0; LONGEST_GUESS];
        let guess = self.drafter.as_ref().filter(|_| may_guess).map_or(&[][..], Drafter::guess);
        copy[..guess.len()].copy_from_slice(guess);
        (copy, guess.len())
    }

    fn plan_free(&mut self, vocabulary: &Vocabulary, may_guess: bool) {
        self.wants.push(Want::All);
        let (guess, len) = self.guess(may_guess);
        let room = self.max_tokens - self.tokens.len() - 1;
        for &token in guess[..len].iter().take(room) {
            if self.is_stop(vocabulary, token) {
                break;
            }
            self.guesses.push(token);
            self.wants.push(Want::All);
        }
    }

    /// Walks along the guess as far as the masks go with it, and back.
    fn plan_masked(
        &mut self,
        vocabulary: &Vocabulary,
        constraint: &mut dyn TokenConstraint,
        may_guess: bool,
    ) -> Result<(), InferError> {
        let (guess, len) = self.guess(may_guess);
        let outcome = loop {
            let index = self.guesses.len();
            let remaining = self.max_tokens - self.tokens.len() - index;
            let forced = if index > 0 { constraint.forced() } else { None };
            let mask = match constraint.mask() {
                Ok(mask) => mask,
                Err(error) => break Err(error),
            };
            let want = match (forced, mask.kind()) {
                (Some(token), _) if !vocabulary.is_end_of_turn(token) => Want::Forced(token),
                (_, MaskKind::Many) => Want::All,
                // Scores are those among all tokens.
                _ if self.scored.is_some() => Want::All,
                _ => {
                    let first = self.rows.len();
                    self.rows.extend(mask);
                    Want::Rows { first, len: mask.len() }
                }
            };
            self.wants.push(want);
            let next = guess[..len].get(index).copied().filter(|&token| {
                remaining > 1 && mask.contains(token) && !vocabulary.is_end_of_turn(token)
            });
            let Some(token) = next else { break Ok(()) };
            if !constraint.fits(token, remaining) || constraint.accept(token).is_err() {
                break Ok(());
            }
            self.guesses.push(token);
            if constraint.is_finished() {
                break Ok(());
            }
        };
        constraint.rollback(self.guesses.len())?;
        Ok(outcome?)
    }

    /// Puts into `feed` what the next step reads: at most `limit` tokens, and no more than up to
    /// position `stop`. Tells the head what is wanted if all decided tokens are read with it.
    pub(crate) fn fill(&self, feed: &mut Feed, limit: usize, stop: Option<usize>) {
        feed.clear();
        let limit = stop.map_or(limit, |stop| limit.min(stop.saturating_sub(self.read)));
        let prompt = &self.prompt[self.read..];
        feed.push(&prompt[..prompt.len().min(limit)]);
        let left = limit - feed.tokens().len();
        feed.push(&self.unread[..self.unread.len().min(left)]);
        if feed.tokens().len() < prompt.len() + self.unread.len() {
            return;
        }
        feed.push(&self.guesses);
        for want in &self.wants {
            match *want {
                Want::Forced(_) => feed.want_nothing(),
                Want::All => feed.want_all(),
                Want::Rows { first, len } => feed.want_rows(&self.rows[first..first + len]),
            }
        }
    }

    /// Takes in a step that has read `feed`, the feed number `index` of `work`, in `spent` time.
    /// `Some` if the answer ends with it.
    #[allow(clippy::too_many_arguments, reason = "the caller owns the parts")]
    pub(crate) fn settle(
        &mut self,
        tokenizer: &Tokenizer,
        constraint: Constraint<'_, '_>,
        feed: &mut Feed,
        work: &Workspace,
        index: usize,
        spent: Duration,
        on_token: Listener<'_>,
    ) -> Result<Option<End>, InferError> {
        let time = if self.is_first { &mut self.timings.prefill } else { &mut self.timings.decode };
        *time += spent;
        let wants = feed.wants();
        let decided = feed.tokens().len() - if wants > 0 { self.guesses.len() } else { 0 };
        let of_prompt = decided.min(self.prompt.len() - self.read);
        self.read += of_prompt;
        self.unread.drain(..decided - of_prompt);
        if wants == 0 {
            return Ok(None);
        }
        self.timings.head += work.head_time();
        self.is_first = false;
        self.is_planned = false;
        let before = feed.cache.len() - self.guesses.len();
        let started = Instant::now();
        let outcome = self.choose_all(tokenizer, constraint, work, index, on_token);
        self.timings.mask += started.elapsed();
        let (right, end) = outcome?;
        feed.cache.truncate(before + right);
        self.guessed_right += right;
        let guessed = self.guesses.len();
        if let Some(drafter) = &mut self.drafter {
            drafter.learn(guessed, right);
        }
        Ok(end)
    }

    /// Decides the next token, and those after it as long as the guesses are right; tells how
    /// many were.
    fn choose_all(
        &mut self,
        tokenizer: &Tokenizer,
        mut constraint: Constraint<'_, '_>,
        work: &Workspace,
        index: usize,
        on_token: Listener<'_>,
    ) -> Result<(usize, Option<End>), InferError> {
        let vocabulary = tokenizer.vocabulary();
        let mut right = 0;
        for position in 0..self.wants.len() {
            let want = self.wants[position];
            let logits = work.logits(index, position);
            let choice = match constraint.as_deref_mut() {
                Some(constraint) => self.choose(tokenizer, logits, want, constraint)?,
                None => self.choose_freely(tokenizer, logits)?,
            };
            let (token, scores) = match choice {
                Choice::Token(token, scores) => (token, scores),
                Choice::End(end) => return Ok((right, Some(end))),
            };
            let is_forced = matches!(want, Want::Forced(_));
            self.write(vocabulary, token, is_forced, scores.as_ref(), on_token);
            if self.guesses.get(position) != Some(&token) {
                self.unread.push(token);
                break;
            }
            // The model has read it already.
            right += 1;
        }
        Ok((right, None))
    }

    fn choose(
        &mut self,
        tokenizer: &Tokenizer,
        values: &[f32],
        want: Want,
        constraint: &mut dyn TokenConstraint,
    ) -> Result<Choice, InferError> {
        let vocabulary = tokenizer.vocabulary();
        let nothing = InferError::Constraint(ConstraintError::NoTokenAllowed);
        let remaining = self.max_tokens - self.tokens.len();
        let Self { sampler, rows, .. } = self;
        let logits = match want {
            Want::Forced(token) => {
                constraint.accept(token)?;
                return Ok(Choice::Token(token, None));
            }
            Want::All => Logits::All(values),
            Want::Rows { first, len } => {
                Logits::Rows { tokens: &rows[first..first + len], logits: values }
            }
        };
        let mut token = sampler.choose_allowed(logits, constraint.mask()?)?.ok_or(nothing)?;
        if !vocabulary.is_end_of_turn(token) && !constraint.fits(token, remaining) {
            self.closed_by_budget.push(self.tokens.len());
            if remaining == 0 && constraint.is_complete() {
                return Ok(Choice::End(End::ConstraintComplete));
            }
            let nothing = InferError::Constraint(ConstraintError::NoTokenAllowed);
            let mask = constraint.mask_within(remaining)?;
            token = sampler.choose_allowed(logits, mask)?.ok_or(nothing)?;
        }
        let scored = match self.scored {
            Some(count) => {
                let mask = constraint.mask()?;
                let used = tokenizer.used_tokens().iter();
                Some(scores(values, used, |token| mask.contains(token), token, count)?)
            }
            None => None,
        };
        constraint.accept(token)?;
        if vocabulary.is_end_of_turn(token) {
            return Ok(Choice::End(End::EndOfTurn));
        }
        Ok(Choice::Token(token, scored))
    }

    fn choose_freely(
        &mut self,
        tokenizer: &Tokenizer,
        logits: &[f32],
    ) -> Result<Choice, InferError> {
        let used = tokenizer.used_tokens();
        let token = self.sampler.choose_allowed(Logits::All(logits), used)?;
        // A tokenizer has a token for each byte, so there is one.
        let token = token.ok_or(InferError::EmptyPrompt)?;
        if self.is_stop(tokenizer.vocabulary(), token) {
            return Ok(Choice::End(End::EndOfTurn));
        }
        let scored = self.scored.map(|count| scores(logits, used.iter(), |_| true, token, count));
        Ok(Choice::Token(token, scored.transpose()?))
    }

    fn is_stop(&self, vocabulary: &Vocabulary, token: TokenId) -> bool {
        vocabulary.is_end_of_turn(token) || self.stop_tokens.contains(&token)
    }

    fn write(
        &mut self,
        vocabulary: &Vocabulary,
        token: TokenId,
        forced: bool,
        scores: Option<&TokenScores>,
        on_token: Listener<'_>,
    ) {
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        let text = self.stream.push(bytes);
        let index = self.tokens.len();
        on_token(TokenEvent { index, token, bytes, text: &text, forced, scores });
        self.sampler.note(token);
        self.text.push_str(&text);
        self.tokens.push(token);
        self.forced += usize::from(forced);
        if let Some(drafter) = &mut self.drafter {
            drafter.push(token);
        }
    }

    /// The outcome, once there is an end.
    pub(crate) fn finish(mut self, end: End, constraint: Constraint<'_, '_>) -> Generation {
        self.text.push_str(&std::mem::take(&mut self.stream).finish());
        Generation {
            usage: Usage {
                prompt_tokens: self.prompt.len(),
                cached_prompt_tokens: self.cached,
                generated_tokens: self.tokens.len(),
                forced_tokens: self.forced,
                guessed_tokens: self.guessed_right,
            },
            tokens: self.tokens,
            text: self.text,
            end,
            closed_by_budget: self.closed_by_budget,
            undecided: constraint.map_or(0, |constraint| constraint.undecided()),
            timings: self.timings,
        }
    }
}
