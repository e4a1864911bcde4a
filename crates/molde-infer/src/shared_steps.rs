//! One model for several threads that generate at the same time: their steps become one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use molde_vocab::TokenConstraint;

use crate::feed::Feed;
use crate::generate::{GenerateRequest, Generation, TokenEvent};
use crate::sequence::Sequence;
use crate::{InferError, KvCache, Model, Tokenizer, Workspace};

/// How long a step waits for threads that are still between two steps. Masks take less; a thread
/// that takes longer, since whoever listens to its tokens does, misses the step and joins a later one.
const PATIENCE: Duration = Duration::from_millis(5);

/// Threads above which no tokens are guessed: a step then multiplies enough at once.
const MAX_GUESSING: usize = 2;

/// A model whose steps are shared by all threads that [`generate`](Self::generate) at the same
/// time. Constraints and listeners stay on their own threads, where masks are computed at the same
/// time too.
///
/// ```text
///  thread 1   mask ── feed ─┐                 ┌─ choose, mask ── feed ─┐
///  thread 2   mask ── feed ─┼─ one step ──────┼─ choose, mask ── feed ─┼─ one step …
///  thread 3   mask ── feed ─┘ (the last one   └─ end
///                              that came runs it)
/// ```
///
/// What a thread writes does not depend on the others: logits have the same bits as alone.
#[derive(Debug)]
pub struct SharedSteps {
    model: Arc<Model>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that generate.
    threads: usize,
    /// What waits for a step, in the order in which it came.
    waiting: Vec<Waiting>,
    /// What has had its step, and was not fetched yet.
    done: Vec<Done>,
    /// Whether a thread is running a step.
    is_running: bool,
    /// A step has panicked; what it read is lost.
    is_broken: bool,
    /// The buffers of the last step, while nobody runs one.
    work: Option<Arc<Workspace>>,
    tickets: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    feed: Feed,
    is_prompt: bool,
}

#[derive(Debug)]
struct Done {
    ticket: u64,
    feed: Feed,
    outcome: Result<Step, Arc<InferError>>,
}

/// A step that was made.
#[derive(Debug, Clone)]
struct Step {
    work: Arc<Workspace>,
    /// The place of one's own feed.
    index: usize,
    spent: Duration,
}

/// Counts a thread as long as it generates.
struct Present<'s>(&'s SharedSteps);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        // The others may have waited for this one only.
        self.0.changed.notify_all();
    }
}

/// Tells the threads that wait for a step if it panics.
struct Breaks<'s>(&'s SharedSteps);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        self.0.lock().is_broken = true;
        self.0.changed.notify_all();
    }
}

impl SharedSteps {
    /// No thread generates yet.
    pub fn new(model: Arc<Model>) -> Self {
        Self { model, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    /// The model.
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// As [`generate`](crate::generate()), in steps that are shared with the other threads that are
    /// in this function. A step reads at most
    /// [`prefill_chunk_tokens`](crate::ModelOptions::prefill_chunk_tokens) tokens of prompts, and one
    /// token or forced run of every other thread.
    ///
    /// `on_token` is called on this thread. While it takes longer than some milliseconds, the others go on
    /// without this one.
    ///
    /// # Errors
    /// Those of [`generate`](crate::generate()); [`InferError::StepFailed`] if a shared step failed,
    /// [`InferError::Stopped`] after one has panicked.
    pub fn generate(
        &self,
        tokenizer: &Tokenizer,
        request: &GenerateRequest,
        cache: &mut KvCache,
        mut constraint: Option<&mut dyn TokenConstraint>,
        on_token: &mut dyn FnMut(TokenEvent<'_>),
    ) -> Result<Generation, InferError> {
        let model = &self.model;
        let mut sequence = Sequence::new(model, request.clone(), cache, constraint.as_deref_mut())?;
        let mut feed = Feed::new(std::mem::replace(cache, model.new_cache(0)));
        self.lock().threads += 1;
        let present = Present(self);
        let end = loop {
            let may_guess = self.lock().threads <= MAX_GUESSING;
            let constraint = &mut constraint;
            let planned = sequence.plan(tokenizer, constraint.as_deref_mut(), may_guess, on_token);
            match planned {
                Ok(None) => {}
                Ok(Some(end)) => break Ok(end),
                Err(error) => break Err(error),
            }
            sequence.fill(&mut feed, model.prefill_chunk_tokens(), None);
            let step = match self.step(&mut feed, sequence.is_prefill()) {
                Ok(step) => step,
                Err(error) => break Err(error),
            };
            let Step { work, index, spent } = step;
            let settled = sequence.settle(
                tokenizer,
                constraint.as_deref_mut(),
                &mut feed,
                &work,
                index,
                spent,
                on_token,
            );
            match settled {
                Ok(None) => {}
                Ok(Some(end)) => break Ok(end),
                Err(error) => break Err(error),
            }
        };
        drop(present);
        *cache = feed.cache;
        Ok(sequence.finish(end?, constraint))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panics while holding it has changed nothing halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a feed read in a step, which this thread runs itself if it is the last to come.
    fn step(&self, feed: &mut Feed, is_prompt: bool) -> Result<Step, InferError> {
        // What is wrong with one's own feed is nobody else's failure.
        self.model.check(feed)?;
        let cache = self.model.new_cache(0);
        let feed_given = std::mem::replace(feed, Feed::new(cache));
        let mut state = self.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        state.waiting.push(Waiting { ticket, feed: feed_given, is_prompt });
        let since = Instant::now();
        loop {
            if let Some(place) = state.done.iter().position(|done| done.ticket == ticket) {
                let done = state.done.swap_remove(place);
                *feed = done.feed;
                return done.outcome.map_err(|source| match Arc::try_unwrap(source) {
                    Ok(own) => own,
                    Err(source) => InferError::StepFailed { source },
                });
            }
            if state.is_broken {
                return Err(InferError::Stopped);
            }
            let everyone_is_here = state.waiting.len() >= state.threads;
            if !state.is_running && (everyone_is_here || since.elapsed() >= PATIENCE) {
                state = self.run(state);
                continue;
            }
            let left = PATIENCE.saturating_sub(since.elapsed()).max(Duration::from_millis(1));
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Makes a step of what waits: of all answers, and of one chunk of prompts.
    fn run<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let mut of_prompts = self.model.prefill_chunk_tokens();
        let mut is_first_prompt = true;
        let mut take = |waiting: &Waiting| {
            if !waiting.is_prompt {
                return true;
            }
            let tokens = waiting.feed.tokens().len();
            let fits = is_first_prompt || tokens <= of_prompts;
            if fits {
                of_prompts = of_prompts.saturating_sub(tokens);
            } else {
                // Later ones do not overtake.
                of_prompts = 0;
            }
            is_first_prompt = false;
            fits
        };
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.waiting).into_iter().partition(|waiting| take(waiting));
        state.waiting = left;
        state.is_running = true;
        // Where somebody still reads the logits of the step before, new buffers are made.
        let own = state.work.take().and_then(|work| Arc::try_unwrap(work).ok());
        drop(state);

        let mut work = own.unwrap_or_else(|| self.model.new_workspace());
        let tickets: Vec<u64> = taken.iter().map(|waiting| waiting.ticket).collect();
        let mut feeds: Vec<Feed> = taken.into_iter().map(|waiting| waiting.feed).collect();
        let started = Instant::now();
        let breaks = Breaks(self);
        let outcome = self.model.step(&mut feeds, &mut work).map_err(Arc::new);
        std::mem::forget(breaks);
        let spent = started.elapsed();
        let work = Arc::new(work);

        let mut state = self.lock();
        state.done.extend(tickets.into_iter().zip(feeds).enumerate().map(
            |(index, (ticket, feed))| {
                let step = || Step { work: Arc::clone(&work), index, spent };
                let outcome = outcome.as_ref().map(|()| step()).map_err(Arc::clone);
                Done { ticket, feed, outcome }
            },
        ));
        state.work = Some(work);
        state.is_running = false;
        self.changed.notify_all();
        state
    }
}
