//! The main job: a document in, a value of the contract's form out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use molde_constraint::{Matcher, MatcherOptions};
use molde_vocab::{TokenConstraint, TokenId};

use crate::backend::{Job, Prefix};
use crate::contract::Contract;
use crate::control::{Control, Event};
use crate::engine::Engine;
use crate::outcome::{Outcome, RawJson, Timings, Usage, WindowOutcome};
use crate::prompt::{Language, Prompt};
use crate::signature::SignatureLimits;
use crate::windows::{Overflow, TokenizedDocument, says_something};
use crate::writing::{Answer, Transcript};
use crate::{End, MoldeError, schema_view};
use molde_constraint::SchemaConstraint;

/// Tokens an answer may take unless the caller says otherwise.
pub const DEFAULT_MAX_TOKENS: usize = 512;

/// The settings of an [`Extractor`].
#[derive(Debug)]
#[must_use]
pub struct ExtractorBuilder<T = RawJson> {
    engine: Engine,
    contract: Result<Contract<T>, MoldeError>,
    prompt: Prompt,
    system_message: Option<String>,
    max_tokens: usize,
    overflow: Overflow,
    matcher: MatcherOptions,
}

impl<T> ExtractorBuilder<T> {
    pub(crate) fn new(engine: Engine, contract: Result<Contract<T>, MoldeError>) -> Self {
        Self {
            engine,
            contract,
            prompt: Prompt::default(),
            system_message: None,
            max_tokens: DEFAULT_MAX_TOKENS,
            overflow: Overflow::default(),
            matcher: MatcherOptions::default(),
        }
    }

    /// Role and task: what to extract. Default: the schema's `description`, or a general sentence.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.prompt.instructions = Some(text.into());
        self
    }

    /// Conventions, such as units and how to convert them. Default: none.
    pub fn conventions(mut self, text: impl Into<String>) -> Self {
        self.prompt.conventions = Some(text.into());
        self
    }

    /// What to write where the document says nothing. Default: a sentence that asks for null, if
    /// the schema admits null anywhere; an empty text leaves the sentence out.
    pub fn no_data(mut self, text: impl Into<String>) -> Self {
        self.prompt.no_data = Some(text.into());
        self
    }

    /// Language of the fixed parts of the prompt. Default: English.
    pub fn language(mut self, language: Language) -> Self {
        self.prompt.language = language;
        self
    }

    /// Bounds on the summary of the schema in the prompt.
    pub fn signature_limits(mut self, limits: SignatureLimits) -> Self {
        self.prompt.limits = limits;
        self
    }

    /// The whole system message, instead of one made from the parts above. It need not show the
    /// schema: the mask enforces it anyway.
    pub fn system_message(mut self, text: impl Into<String>) -> Self {
        self.system_message = Some(text.into());
        self
    }

    /// Tokens that an answer may take; it is closed, validly, before they run out. Default:
    /// [`DEFAULT_MAX_TOKENS`].
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// What to do with a document that does not fit. Default: [`Overflow::Error`].
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// How tokens are held to the schema: segmentation and cache limits.
    pub fn matcher_options(mut self, options: MatcherOptions) -> Self {
        self.matcher = options;
        self
    }

    /// Makes the extractor. Runs no model.
    ///
    /// # Errors
    /// Those of the contract, and [`MoldeError::BudgetTooSmall`] if no valid answer is that short.
    pub fn build(self) -> Result<Extractor<T>, MoldeError> {
        let contract = self.contract?;
        let system = if let Some(message) = self.system_message {
            message
        } else {
            self.prompt.system_message(&schema_view::read(contract.schema_text()))
        };
        let prefix_tokens = shared_prefix(&self.engine, &system)?;
        let extractor = Extractor {
            engine: self.engine,
            contract,
            system,
            prefix_tokens,
            max_tokens: self.max_tokens,
            overflow: self.overflow,
            matcher_options: self.matcher,
            prefix: Mutex::new(None),
            matchers: Mutex::new(Vec::new()),
        };
        let mut matcher = extractor.take_matcher();
        let needed_tokens = matcher.completion_tokens();
        extractor.give_matcher(matcher);
        if needed_tokens > extractor.max_tokens {
            return Err(MoldeError::BudgetTooSmall {
                needed_tokens,
                max_tokens: extractor.max_tokens,
            });
        }
        Ok(extractor)
    }
}

/// Reads documents into values of one form.
///
/// `&self` throughout: share it between threads by reference or `Arc`. The instructions are read
/// by the model once, by the first call, and kept (24 kB a token for the default model).
pub struct Extractor<T = RawJson> {
    engine: Engine,
    contract: Contract<T>,
    system: String,
    /// The tokens that every prompt begins with.
    prefix_tokens: Vec<TokenId>,
    max_tokens: usize,
    overflow: Overflow,
    matcher_options: MatcherOptions,
    /// The model's state after `prefix_tokens`, once it has been computed.
    prefix: Mutex<Option<Arc<dyn Prefix>>>,
    /// Matchers that are not in use: their mask caches are worth keeping.
    matchers: Mutex<Vec<Matcher<SchemaConstraint>>>,
}

impl<T> std::fmt::Debug for Extractor<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Extractor")
            .field("contract", &self.contract)
            .field("system", &self.system)
            .field("max_tokens", &self.max_tokens)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}

impl<T> Extractor<T> {
    /// What the model is told before each document.
    pub fn system_message(&self) -> &str {
        &self.system
    }

    /// The form of the answers.
    pub fn contract(&self) -> &Contract<T> {
        &self.contract
    }

    /// Reads one document.
    ///
    /// The answer is a valid instance of the schema whatever the model's weights are. Costs one
    /// pass of the model over the document, and one per token of the answer that is not forced.
    ///
    /// # Errors
    /// [`MoldeError::EmptyDocument`], [`MoldeError::ContextOverflow`],
    /// [`MoldeError::WindowTooSmall`], [`MoldeError::Deserialize`], [`MoldeError::TooDeep`],
    /// [`MoldeError::Stack`] and [`MoldeError::Inference`].
    pub fn extract(&self, document: &str) -> Result<Outcome<T>, MoldeError> {
        self.extract_with(document, &Control::new(), |_| {})
    }

    /// [`extract`](Self::extract) that can be stopped, and reports tokens and fields as they are
    /// written. Being stopped is no error: see [`Outcome::end`].
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub fn extract_with(
        &self,
        document: &str,
        control: &Control,
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<Outcome<T>, MoldeError> {
        let start = Instant::now();
        if document.trim().is_empty() {
            return Err(MoldeError::EmptyDocument);
        }
        let backend = self.engine.backend();
        let prompt = backend.encode_chat(Some(&self.system), document)?;
        let mut outcome = match (self.fits(&prompt), self.overflow) {
            (Ok(()), _) => self.outcome_of(self.answer(&prompt, control, &mut on_event)?)?,
            (Err(_), Overflow::Windows { overlap_tokens }) => {
                self.windows(document, overlap_tokens, control, &mut on_event)?
            }
            (Err(error), Overflow::Error) => return Err(error),
        };
        outcome.timings.total = start.elapsed();
        Ok(outcome)
    }

    fn fits(&self, prompt: &[TokenId]) -> Result<(), MoldeError> {
        let context_tokens = self.engine.context_tokens();
        if prompt.len().saturating_add(self.max_tokens) <= context_tokens {
            return Ok(());
        }
        Err(MoldeError::ContextOverflow {
            prompt_tokens: prompt.len(),
            max_tokens: self.max_tokens,
            context_tokens,
        })
    }

    fn answer(
        &self,
        prompt: &[TokenId],
        control: &Control,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, MoldeError> {
        let (prefix, newly_read) = match self.prefix_of(prompt, control) {
            Ok(prefix) => prefix,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        let mut matcher = self.take_matcher();
        let mut transcript = Transcript::json(on_event);
        let written = prefix.generate(Job {
            prompt,
            max_tokens: self.max_tokens,
            constraint: Some(&mut matcher),
            control,
            on_token: &mut |token| transcript.push(token),
        });
        let undecided = matcher.undecided();
        let mut answer = match written {
            Ok(written) => transcript.finish(&written, undecided)?,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        self.give_matcher(matcher);
        if let Some(read) = newly_read {
            answer.timings.prefill += read.prefill;
            answer.usage.cached_prompt_tokens -= read.tokens.min(answer.usage.cached_prompt_tokens);
        }
        Ok(answer)
    }

    fn outcome_of(&self, answer: Answer) -> Result<Outcome<T>, MoldeError> {
        let value = match answer.end {
            End::Complete | End::ClosedByBudget { .. } => Some(self.contract.read(&answer.text)?),
            End::Truncated | End::Cancelled | End::DeadlineExceeded => None,
        };
        Ok(Outcome {
            value,
            text: answer.text,
            end: answer.end,
            usage: answer.usage,
            timings: answer.timings,
            undecided: answer.undecided,
            windows: Vec::new(),
        })
    }

    fn windows(
        &self,
        document: &str,
        overlap_tokens: usize,
        control: &Control,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome<T>, MoldeError> {
        let backend = self.engine.backend();
        let document = TokenizedDocument::new(backend, document)?;
        let frame = backend.encode_chat(Some(&self.system), "0")?;
        self.fits(&frame)?;
        let room = self.engine.context_tokens() - self.max_tokens - frame.len() + 1;
        let mut answers = Vec::new();
        let mut usage = Usage::default();
        let mut timings = Timings::default();
        let mut undecided = 0;
        let mut first = 0;
        loop {
            let mut last = (first + room).min(document.tokens());
            // A window's text can take a few tokens more than it had inside the document, where
            // its ends were joined to their neighbours.
            let prompt = loop {
                if last <= first + overlap_tokens && last < document.tokens() {
                    return Err(MoldeError::WindowTooSmall {
                        overlap_tokens,
                        window_tokens: last.saturating_sub(first),
                    });
                }
                let prompt = backend.encode_chat(Some(&self.system), document.text(first..last))?;
                let excess =
                    (prompt.len() + self.max_tokens).saturating_sub(self.engine.context_tokens());
                if excess == 0 {
                    break prompt;
                }
                last = last.saturating_sub(excess).max(first);
            };
            let left = document.tokens() - last;
            let ahead = left.div_ceil((last - first).saturating_sub(overlap_tokens).max(1));
            on_event(Event::Window { index: answers.len(), count: answers.len() + 1 + ahead });
            let answer = self.answer(&prompt, control, on_event)?;
            usage.add(&answer.usage);
            timings.add(&answer.timings);
            undecided += answer.undecided;
            let is_whole = matches!(answer.end, End::Complete | End::ClosedByBudget { .. });
            answers.push((first..last, answer));
            if !is_whole || last == document.tokens() {
                break;
            }
            first = last - overlap_tokens;
        }
        // A stop in any window is a stop of the whole: a later window might have found more.
        let stopped = answers.iter().position(|(_, answer)| answer.end.is_early());
        let chosen = stopped
            .or_else(|| answers.iter().position(|(_, answer)| says_something(&answer.text)))
            .unwrap_or(0);
        let windows = answers
            .iter()
            .enumerate()
            .map(|(index, (tokens, answer))| WindowOutcome {
                first_token: tokens.start,
                tokens: tokens.len(),
                text: answer.text.clone(),
                end: answer.end.clone(),
                chosen: index == chosen,
            })
            .collect();
        let (_, answer) = answers.swap_remove(chosen);
        let mut outcome = self.outcome_of(answer)?;
        outcome.windows = windows;
        outcome.usage = usage;
        outcome.timings = timings;
        outcome.undecided = undecided;
        Ok(outcome)
    }

    /// The shared beginning of `prompt`, read now if no call has read it before.
    fn prefix_of(
        &self,
        prompt: &[TokenId],
        control: &Control,
    ) -> Result<(Arc<dyn Prefix>, Option<NewlyRead>), MoldeError> {
        let backend = self.engine.backend();
        if !prompt.starts_with(&self.prefix_tokens) {
            // A template that writes the instructions differently for this document.
            return Ok((backend.prefill(&[], control)?, None));
        }
        // The lock is held while the model reads: calls that come meanwhile need the same state.
        let mut slot = lock(&self.prefix);
        if let Some(prefix) = &*slot {
            return Ok((Arc::clone(prefix), None));
        }
        let start = Instant::now();
        let prefix = backend.prefill(&self.prefix_tokens, control)?;
        *slot = Some(Arc::clone(&prefix));
        let read = NewlyRead { tokens: self.prefix_tokens.len(), prefill: start.elapsed() };
        Ok((prefix, Some(read)))
    }

    fn take_matcher(&self) -> Matcher<SchemaConstraint> {
        lock(&self.matchers).pop().unwrap_or_else(|| {
            Matcher::new(
                self.contract.automaton(),
                Arc::clone(self.engine.backend().vocabulary()),
                self.matcher_options,
            )
        })
    }

    fn give_matcher(&self, mut matcher: Matcher<SchemaConstraint>) {
        matcher.reset();
        lock(&self.matchers).push(matcher);
    }
}

/// What reading the shared prefix cost the call that did it.
struct NewlyRead {
    tokens: usize,
    prefill: std::time::Duration,
}

/// The tokens with which every prompt with this system message begins.
fn shared_prefix(engine: &Engine, system: &str) -> Result<Vec<TokenId>, MoldeError> {
    // Two documents without a character in common: what their prompts share is not the document.
    let one = engine.backend().encode_chat(Some(system), "0")?;
    let other = engine.backend().encode_chat(Some(system), "Ω")?;
    let shared = one.iter().zip(&other).take_while(|(left, right)| left == right).count();
    Ok(one[..shared].to_vec())
}

/// Locks a slot whose content is valid at any time: a panic elsewhere has not damaged it.
fn lock<S>(slot: &Mutex<S>) -> MutexGuard<'_, S> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
