//! Several sequences in one step of the model: they join and leave between steps.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use molde_vocab::{TokenConstraint, TokenId};

use crate::feed::Feed;
use crate::generate::{End, GenerateRequest, Generation, TokenEvent};
use crate::prefix_cache::PrefixCache;
use crate::sequence::{Constraint, Sequence};
use crate::{InferError, Model, Tokenizer, Workspace};

/// The limits of a [`Batch`] or a [`Scheduler`](crate::Scheduler).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchOptions {
    /// Sequences that run at once; more wait, in order. Default: 16.
    pub max_sequences: NonZeroUsize,
    /// Bytes of keys and values kept for beginnings of prompts that requests share; what was not
    /// used for longest goes first. 0 keeps none. Default: 256 MiB, 10,922 tokens of the 0.5B
    /// models.
    pub prefix_cache_bytes: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            max_sequences: NonZeroUsize::new(16).expect("16 is not zero"),
            prefix_cache_bytes: 256 << 20,
        }
    }
}

/// What is reported of a sequence.
#[derive(Debug)]
pub enum SequenceEvent<'a> {
    /// The sequence has joined the batch: the first event, unless something is wrong with it.
    Started,
    /// A token was decided.
    Token(TokenEvent<'a>),
    /// The sequence has left the batch: the last event, and the only one of its kind.
    End(Result<Generation, InferError>),
}

/// What hears of a sequence's events.
pub type SequenceListener = Box<dyn FnMut(SequenceEvent<'_>) + Send>;

/// Sequences above which no tokens are guessed: the step then multiplies enough at once.
const MAX_GUESSING: usize = 2;

/// The sequences that share the steps of one model.
///
/// ```text
///  add ─▶ waiting ─▶ running ─┬─▶ step: all answers by one token, and one chunk of prompts
///                       ▲     └─▶ End
///                       └── shared beginnings of prompts, read once
/// ```
///
/// What a sequence writes does not depend on the others: their logits have the same bits as alone.
/// A panic in a constraint or a listener ends its own sequence, one in the shared step those that
/// run, as [`InferError::Panicked`]; the batch goes on.
pub struct Batch {
    model: Arc<Model>,
    tokenizer: Arc<Tokenizer>,
    max_sequences: usize,
    waiting: VecDeque<Waiting>,
    running: Vec<Running>,
    /// What each of `running` reads in a step.
    feeds: Vec<Feed>,
    prefixes: PrefixCache,
    work: Workspace,
}

struct Waiting {
    request: GenerateRequest,
    constraint: Option<Box<dyn TokenConstraint>>,
    listener: SequenceListener,
}

struct Running {
    sequence: Sequence,
    constraint: Option<Box<dyn TokenConstraint>>,
    listener: SequenceListener,
    /// The beginning of the prompt that is to be kept, until it is.
    shared: Option<Vec<TokenId>>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Batch")
            .field("max_sequences", &self.max_sequences)
            .field("waiting", &self.waiting.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

/// What `work` says; a panic in it is an error of the sequence that it works for.
///
/// Nothing that it may leave half changed is looked at again: the sequence is dropped with its
/// constraint, and its listener hears no more than the end.
fn contain<T>(work: impl FnOnce() -> Result<T, InferError>) -> Result<T, InferError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(InferError::Panicked))
}

/// Gives a constraint back, and tells of the end of its sequence.
fn end(
    constraint: Option<Box<dyn TokenConstraint>>,
    mut listener: SequenceListener,
    outcome: Result<Generation, InferError>,
) {
    let dropped = contain(|| {
        drop(constraint);
        Ok(())
    });
    let outcome = dropped.and(outcome);
    // Whom a panicking listener speaks to hears of it by its silence.
    let _told = contain(|| {
        listener(SequenceEvent::End(outcome));
        Ok(())
    });
}

fn borrow(constraint: &mut Option<Box<dyn TokenConstraint>>) -> Constraint<'_, 'static> {
    constraint.as_deref_mut()
}

impl Batch {
    /// A batch without sequences.
    pub fn new(model: Arc<Model>, tokenizer: Arc<Tokenizer>, options: &BatchOptions) -> Self {
        Self {
            max_sequences: options.max_sequences.get(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            feeds: Vec::new(),
            prefixes: PrefixCache::new(options.prefix_cache_bytes),
            work: model.new_workspace(),
            model,
            tokenizer,
        }
    }

    /// Adds a sequence; it joins in one of the next steps. What is wrong with it, its
    /// [`End`](SequenceEvent::End) says, as [`generate`](crate::generate()) would. Its constraint
    /// is dropped when it ends.
    pub fn add(
        &mut self,
        request: GenerateRequest,
        constraint: Option<Box<dyn TokenConstraint>>,
        listener: SequenceListener,
    ) {
        self.waiting.push_back(Waiting { request, constraint, listener });
    }

    /// Number of sequences that run or wait.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Whether there are no sequences: a step would do nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One step: sequences that were cancelled leave, waiting ones join, every answer that has been
    /// begun gets its next token, and the others together read
    /// [`prefill_chunk_tokens`](crate::ModelOptions::prefill_chunk_tokens) tokens of their prompts.
    ///
    /// # Complexity
    /// One pass over the weights.
    pub fn step(&mut self) {
        self.admit();
        self.plan();
        if self.running.is_empty() || !self.fill() {
            return;
        }
        let started = Instant::now();
        let outcome = contain(|| self.model.step(&mut self.feeds, &mut self.work));
        if let Err(error) = outcome {
            // Which sequence it was, nobody can tell; what the others have read is not whole.
            self.work = self.model.new_workspace();
            return self.fail_all(error);
        }
        let spent = started.elapsed();
        let mut index = 0;
        let mut at = 0;
        while index < self.running.len() {
            let (running, feed) = (&mut self.running[index], &mut self.feeds[index]);
            let Running { sequence, constraint, listener, shared } = running;
            let feed_number = at;
            at += 1;
            if feed.is_empty() {
                index += 1;
                continue;
            }
            if let Some(tokens) = shared.take_if(|tokens| feed.cache.len() >= tokens.len()) {
                self.prefixes.keep(&feed.cache, tokens.len());
            }
            let on_token = &mut |token: TokenEvent<'_>| listener(SequenceEvent::Token(token));
            let settled = contain(|| {
                sequence.settle(
                    &self.tokenizer,
                    borrow(constraint),
                    feed,
                    &self.work,
                    feed_number,
                    spent,
                    on_token,
                )
            });
            match settled {
                Ok(None) => index += 1,
                Ok(Some(end)) => self.leave(index, Ok(end)),
                Err(error) => self.leave(index, Err(error)),
            }
        }
    }

    /// Ends every sequence as cancelled.
    pub fn cancel_all(&mut self) {
        while !self.running.is_empty() {
            self.leave(self.running.len() - 1, Ok(End::Cancelled));
        }
        for waiting in std::mem::take(&mut self.waiting) {
            end(waiting.constraint, waiting.listener, Err(InferError::Cancelled));
        }
    }

    /// Lets waiting sequences join, in order; one whose shared beginning is being read for
    /// another waits for it, and lets later ones pass. Those that nobody waits for leave at once.
    fn admit(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.request.interrupt.check() {
                Ok(()) => self.waiting.push_back(waiting),
                Err(error) => end(waiting.constraint, waiting.listener, Err(error)),
            }
        }
        let mut passed = VecDeque::new();
        while self.running.len() < self.max_sequences
            && let Some(waiting) = self.waiting.pop_front()
        {
            let request = &waiting.request;
            let shared = request.prompt.get(..request.shared_prefix_tokens);
            let shared = shared.filter(|tokens| !tokens.is_empty() && !self.prefixes.holds(tokens));
            let is_being_read = shared.is_some_and(|tokens| {
                self.running.iter().any(|running| running.shared.as_deref() == Some(tokens))
            });
            if is_being_read {
                passed.push_back(waiting);
            } else {
                let shared = shared.map(<[TokenId]>::to_vec);
                self.join(waiting, shared);
            }
        }
        while let Some(waiting) = passed.pop_back() {
            self.waiting.push_front(waiting);
        }
    }

    fn join(&mut self, waiting: Waiting, shared: Option<Vec<TokenId>>) {
        let Waiting { request, mut constraint, mut listener } = waiting;
        let capacity_tokens = request.prompt.len().saturating_add(request.max_tokens);
        let cache = self.prefixes.find(&request.prompt, capacity_tokens);
        let mut cache = cache.unwrap_or_else(|| self.model.new_cache(capacity_tokens));
        let sequence = contain(|| {
            let borrowed = borrow(&mut constraint);
            let sequence = Sequence::new(&self.model, request, &mut cache, borrowed)?;
            listener(SequenceEvent::Started);
            Ok(sequence)
        });
        match sequence {
            Ok(sequence) => {
                self.running.push(Running { sequence, constraint, listener, shared });
                self.feeds.push(Feed::new(cache));
            }
            Err(error) => end(constraint, listener, Err(error)),
        }
    }

    /// Asks every sequence what it needs; those that are done leave.
    fn plan(&mut self) {
        let may_guess = self.running.len() <= MAX_GUESSING;
        let mut index = 0;
        while let Some(running) = self.running.get_mut(index) {
            let Running { sequence, constraint, listener, .. } = running;
            let on_token = &mut |token: TokenEvent<'_>| listener(SequenceEvent::Token(token));
            let planned =
                contain(|| sequence.plan(&self.tokenizer, borrow(constraint), may_guess, on_token));
            match planned {
                Ok(None) => index += 1,
                Ok(Some(end)) => self.leave(index, Ok(end)),
                Err(error) => self.leave(index, Err(error)),
            }
        }
    }

    /// Fills the feeds. Whether there is anything to read.
    fn fill(&mut self) -> bool {
        let chunk = self.model.prefill_chunk_tokens();
        let mut of_prompts = chunk;
        for (running, feed) in self.running.iter().zip(&mut self.feeds) {
            let is_prefill = running.sequence.is_prefill();
            let limit = if is_prefill { of_prompts } else { chunk };
            let stop = running.shared.as_ref().map(Vec::len);
            running.sequence.fill(feed, limit, stop);
            if is_prefill {
                of_prompts -= feed.tokens().len().min(of_prompts);
            }
        }
        self.feeds.iter().any(|feed| !feed.is_empty())
    }

    fn leave(&mut self, index: usize, how: Result<End, InferError>) {
        let Running { sequence, mut constraint, listener, .. } = self.running.remove(index);
        self.feeds.remove(index);
        let outcome =
            how.and_then(|how| contain(|| Ok(sequence.finish(how, borrow(&mut constraint)))));
        end(constraint, listener, outcome);
    }

    fn fail_all(&mut self, error: InferError) {
        let source = Arc::new(error);
        while !self.running.is_empty() {
            let error = InferError::StepFailed { source: Arc::clone(&source) };
            self.leave(self.running.len() - 1, Err(error));
        }
    }
}
