//! The main job: a document in, a value of the contract's form out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use molde_constraint::{Matcher, MatcherOptions};
use molde_infer::{Message, Role};
use molde_vocab::{TokenConstraint, TokenId};

use crate::backend::{Job, Prefix};
use crate::confidence::Confidence;
use crate::contract::Contract;
use crate::control::{Control, Event};
use crate::engine::Engine;
use crate::grounding::Grounding;
use crate::numbers::DocumentNumbers;
use crate::outcome::{Outcome, RawJson, Timings, Usage, WindowOutcome};
use crate::prompt::{Language, PromptTemplate, Shown};
use crate::schema_edit::add_all_of;
use crate::signature::SignatureLimits;
use crate::windows::{Overflow, TokenizedDocument, says_something};
use crate::writing::{Answer, Transcript};
use crate::{AnswerModel, End, FieldRule, Form, MaskView, ModelAnswer, MoldeError, Validator};
use crate::{explain, grounding};
use molde_constraint::SchemaConstraint;

/// Tokens an answer may take unless the caller says otherwise.
pub const DEFAULT_MAX_TOKENS: usize = 512;

/// The settings of an [`Extractor`].
#[derive(Debug)]
#[must_use]
pub struct ExtractorBuilder<T = RawJson> {
    engine: Engine,
    contract: Result<Contract<T>, MoldeError>,
    prompt: PromptTemplate,
    system_message: Option<String>,
    examples: Vec<Message>,
    max_tokens: usize,
    overflow: Overflow,
    matcher: MatcherOptions,
    grounding: Grounding,
    confidence: Confidence,
    abstain: Vec<(String, f64)>,
}

impl<T> ExtractorBuilder<T> {
    pub(crate) fn new(engine: Engine, contract: Result<Contract<T>, MoldeError>) -> Self {
        Self {
            engine,
            contract,
            prompt: PromptTemplate::default(),
            system_message: None,
            examples: Vec::new(),
            max_tokens: DEFAULT_MAX_TOKENS,
            overflow: Overflow::default(),
            matcher: MatcherOptions::default(),
            grounding: Grounding::default(),
            confidence: Confidence::default(),
            abstain: Vec::new(),
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

    /// All parts of the prompt at once, instead of those that were given before.
    pub fn prompt(mut self, template: PromptTemplate) -> Self {
        self.prompt = template;
        self
    }

    /// How much of the schema the model is shown. Default: its signature.
    pub fn shown(mut self, shown: Shown) -> Self {
        self.prompt.shown = shown;
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

    /// A document with its answer, shown to the model as turns before each document. May be called
    /// several times; the order is kept.
    pub fn example(mut self, document: impl Into<String>, answer: impl Into<String>) -> Self {
        self.examples.push(Message::user(document));
        self.examples.push(Message::assistant(answer));
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

    /// Fields of the outermost object whose number must be one that the document contains, after its
    /// separators are read, and converted from its unit word to the unit that the field's
    /// description declares. What else the schema allows, such as null, stays allowed. May be called
    /// several times.
    ///
    /// A document without a possible number is [`MoldeError::NoGroundedValue`] before anything is
    /// written, unless the field may be null. Costs a compilation for each document.
    pub fn grounded_numbers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.grounding.numbers.extend(names.into_iter().map(Into::into));
        self
    }

    /// Rules between fields that the mask enforces.
    pub fn field_rules(mut self, rules: impl IntoIterator<Item = FieldRule>) -> Self {
        self.grounding.rules.extend(rules);
        self
    }

    /// How much is found out about how sure the model was. Default: nothing.
    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    /// Takes null for a field of the outermost object whose probability is below `probability`, and
    /// writes what follows it again. The field must be one that may be null. May be called for several
    /// fields; implies [`Confidence::Scored`].
    pub fn abstain_below(mut self, field: impl Into<String>, probability: f64) -> Self {
        self.abstain.push((field.into(), probability));
        self.confidence = self.confidence.max(Confidence::Scored);
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
    /// Those of the contract, [`MoldeError::BudgetTooSmall`] if no valid answer is that short, and
    /// [`MoldeError::InvalidAnswer`] for an example whose answer is not valid.
    pub fn build(self) -> Result<Extractor<T>, MoldeError> {
        let contract = self.contract?;
        let shown = contract.schema_text().to_owned();
        // Of two grounded fields a document's numbers are compared: see `Grounding::narrow`.
        let enforced: Vec<FieldRule> = self
            .grounding
            .rules
            .iter()
            .filter(|rule| {
                let grounded = |name: &&str| self.grounding.numbers.iter().any(|own| own == name);
                !(matches!(rule, FieldRule::LessOrEqual(..)) && rule.fields().iter().all(grounded))
            })
            .cloned()
            .collect();
        let contract = if self.grounding.rules.is_empty() {
            contract
        } else {
            // Every rule's fields are checked, also of those that are enforced otherwise.
            FieldRule::add_to(contract.schema_text(), &self.grounding.rules)?;
            contract.with_schema(&FieldRule::add_to(contract.schema_text(), &enforced)?)?
        };
        self.grounding.check(&shown)?;
        for (field, _) in &self.abstain {
            FieldRule::check_declared(&shown, field)?;
            let null = grounding::only_null(field);
            let is_legal = contract.with_schema(&add_all_of(contract.schema_text(), &[null])?);
            if is_legal.is_err() {
                return Err(MoldeError::CannotAbstain { field: field.clone() });
            }
        }
        if !self.examples.is_empty() {
            let validator = Validator::new(&contract)?;
            for example in self.examples.iter().filter(|turn| turn.role == Role::Assistant) {
                validator.validate(&example.content).map_err(|fault| {
                    MoldeError::InvalidAnswer { what: "an example's answer", fault }
                })?;
            }
        }
        let system = if let Some(message) = self.system_message {
            message
        } else {
            self.prompt.system_message(&shown)
        };
        let prefix_tokens = shared_prefix(&self.engine, &system, &self.examples)?;
        let extractor = Extractor {
            engine: self.engine,
            contract,
            system,
            examples: self.examples,
            prefix_tokens,
            max_tokens: self.max_tokens,
            overflow: self.overflow,
            matcher_options: self.matcher,
            grounding: self.grounding,
            confidence: self.confidence,
            abstain: self.abstain,
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
    examples: Vec<Message>,
    /// The tokens that every prompt begins with.
    prefix_tokens: Vec<TokenId>,
    max_tokens: usize,
    overflow: Overflow,
    matcher_options: MatcherOptions,
    grounding: Grounding,
    confidence: Confidence,
    /// Fields that become null below a probability.
    abstain: Vec<(String, f64)>,
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

    /// What is found out about how sure the model was.
    pub(crate) fn confidence(&self) -> Confidence {
        self.confidence
    }

    pub(crate) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Fields that become null below a probability.
    pub(crate) fn abstain_limits(&self) -> &[(String, f64)] {
        &self.abstain
    }

    /// The turns that the model reads for a document: instructions, examples, document.
    pub fn messages(&self, document: &str) -> Vec<Message> {
        conversation(&self.system, &self.examples, document)
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
        let prompt = backend.encode_chat(&self.messages(document))?;
        let mut outcome = match (self.fits(&prompt), self.overflow) {
            (Ok(()), _) => {
                self.outcome_of(self.answer(&prompt, document, control, &mut on_event)?)?
            }
            (Err(_), Overflow::Windows { overlap_tokens }) => {
                self.windows(document, overlap_tokens, control, &mut on_event)?
            }
            (Err(error), Overflow::Error) => return Err(error),
        };
        if self.grounding.is_active() && outcome.value.is_some() {
            let numbers = DocumentNumbers::read(document);
            let schema = self.contract.schema_text();
            outcome.evidence = self.grounding.evidence(schema, &outcome.text, &numbers);
        }
        outcome.timings.total = start.elapsed();
        Ok(outcome)
    }

    /// The `count` most likely tokens after `prefix`, with which the answer begins, and which of them
    /// the mask lets through. Costs a pass of the model over instructions and document.
    ///
    /// # Errors
    /// [`MoldeError::PrefixRejected`], and those of [`extract`](Self::extract).
    pub fn explain(
        &self,
        document: &str,
        prefix: &str,
        count: usize,
    ) -> Result<MaskView, MoldeError> {
        let messages = self.messages(document);
        let backend = self.engine.backend();
        if self.grounding.is_active() {
            let numbers = DocumentNumbers::read(document);
            let contract = self.grounding.narrow(&self.contract, &numbers)?;
            return explain::view(backend, &contract, &messages, prefix, count);
        }
        explain::view(backend, &self.contract, &messages, prefix, count)
    }

    /// One document under another contract than the extractor's, with its prompt.
    pub(crate) fn extract_under(
        &self,
        contract: &Contract<T>,
        document: &str,
        control: &Control,
    ) -> Result<Outcome<T>, MoldeError> {
        let prompt = self.engine.backend().encode_chat(&self.messages(document))?;
        self.fits(&prompt)?;
        let mut matcher = self.new_matcher(contract);
        self.outcome_of(self.answer_with(&prompt, &mut matcher, control, &mut |_| {})?)
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
        document: &str,
        control: &Control,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, MoldeError> {
        let start = Instant::now();
        let narrowed = if self.grounding.is_active() {
            let numbers = DocumentNumbers::read(document);
            Some(self.grounding.narrow(&self.contract, &numbers)?)
        } else {
            None
        };
        let compiling = start.elapsed();
        let mut matcher = match &narrowed {
            Some(contract) => self.new_matcher(contract),
            None => self.take_matcher(),
        };
        let mut answer = self.answer_with(prompt, &mut matcher, control, on_event)?;
        if self.confidence > Confidence::Off && !answer.end.is_early() {
            self.score(prompt, &mut matcher, &mut answer, control)?;
            let contract = narrowed.as_ref().unwrap_or(&self.contract);
            answer = self.abstain(contract, prompt, answer, control)?;
        }
        if narrowed.is_none() {
            self.give_matcher(matcher);
        }
        answer.timings.mask += compiling;
        Ok(answer)
    }

    pub(crate) fn answer_with(
        &self,
        prompt: &[TokenId],
        matcher: &mut Matcher<SchemaConstraint>,
        control: &Control,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, MoldeError> {
        let (prefix, newly_read) = match self.prefix_of(prompt, control) {
            Ok(prefix) => prefix,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        let mut transcript = Transcript::json(on_event);
        let written = prefix.generate(Job {
            prompt,
            max_tokens: self.max_tokens,
            constraint: Some(&mut *matcher),
            control,
            on_token: &mut |token| transcript.push(token),
        });
        let undecided = matcher.undecided();
        let mut answer = match written {
            Ok(written) => transcript.finish(&written, undecided)?,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        answer.count_prefix(newly_read.as_ref());
        Ok(answer)
    }

    /// Writes without the mask, from the same prefix.
    fn answer_freely(&self, prompt: &[TokenId], control: &Control) -> Result<Answer, MoldeError> {
        let (prefix, newly_read) = match self.prefix_of(prompt, control) {
            Ok(prefix) => prefix,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        let mut ignore = |_: Event<'_>| {};
        let mut transcript = Transcript::free(&mut ignore);
        let written = prefix.generate(Job {
            prompt,
            max_tokens: self.max_tokens,
            constraint: None,
            control,
            on_token: &mut |token| transcript.push(token),
        });
        let mut answer = match written {
            Ok(written) => transcript.finish(&written, 0)?,
            Err(error) => return Answer::stopped_before(error, prompt.len()),
        };
        answer.count_prefix(newly_read.as_ref());
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
            fields: answer.fields,
            abstained: answer.abstained,
            evidence: Vec::new(),
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
        let frame = backend.encode_chat(&self.messages("0"))?;
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
                let prompt = backend.encode_chat(&self.messages(document.text(first..last)))?;
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
            let answer = self.answer(&prompt, document.text(first..last), control, on_event)?;
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
    pub(crate) fn prefix_of(
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
        lock(&self.matchers).pop().unwrap_or_else(|| self.new_matcher(&self.contract))
    }

    pub(crate) fn new_matcher(&self, contract: &Contract<T>) -> Matcher<SchemaConstraint> {
        let vocabulary = Arc::clone(self.engine.backend().vocabulary());
        Matcher::new(contract.automaton(), vocabulary, self.matcher_options)
    }

    fn give_matcher(&self, mut matcher: Matcher<SchemaConstraint>) {
        matcher.reset();
        lock(&self.matchers).push(matcher);
    }
}

impl<T> AnswerModel for Extractor<T> {
    fn write(
        &self,
        messages: &[Message],
        form: Form,
        control: &Control,
    ) -> Result<ModelAnswer, MoldeError> {
        let start = Instant::now();
        let prompt = self.engine.backend().encode_chat(messages)?;
        self.fits(&prompt)?;
        let answer = match form {
            Form::Constrained => {
                // Behind the instructions and the examples; corrections come later.
                let document = messages.get(1 + self.examples.len());
                let document = document.map_or("", |turn| turn.content.as_str());
                self.answer(&prompt, document, control, &mut |_| {})?
            }
            Form::Free => self.answer_freely(&prompt, control)?,
        };
        let timings = Timings { total: start.elapsed(), ..answer.timings };
        Ok(ModelAnswer { text: answer.text, end: answer.end, usage: answer.usage, timings })
    }
}

/// Instructions, examples and a document as turns.
fn conversation(system: &str, examples: &[Message], document: &str) -> Vec<Message> {
    let mut messages = Vec::with_capacity(examples.len() + 2);
    messages.push(Message::system(system));
    messages.extend_from_slice(examples);
    messages.push(Message::user(document));
    messages
}

/// What reading the shared prefix cost the call that did it.
pub(crate) struct NewlyRead {
    tokens: usize,
    prefill: std::time::Duration,
}

impl Answer {
    /// Counts the shared prefix where this call has read it.
    fn count_prefix(&mut self, newly_read: Option<&NewlyRead>) {
        if let Some(read) = newly_read {
            self.timings.prefill += read.prefill;
            let cached = &mut self.usage.cached_prompt_tokens;
            *cached -= read.tokens.min(*cached);
        }
    }
}

/// The tokens with which every prompt with this system message begins.
fn shared_prefix(
    engine: &Engine,
    system: &str,
    examples: &[Message],
) -> Result<Vec<TokenId>, MoldeError> {
    // Two documents without a character in common: what their prompts share is not the document.
    let one = engine.backend().encode_chat(&conversation(system, examples, "0"))?;
    let other = engine.backend().encode_chat(&conversation(system, examples, "Ω"))?;
    let shared = one.iter().zip(&other).take_while(|(left, right)| left == right).count();
    Ok(one[..shared].to_vec())
}

/// Locks a slot whose content is valid at any time: a panic elsewhere has not damaged it.
fn lock<S>(slot: &Mutex<S>) -> MutexGuard<'_, S> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
