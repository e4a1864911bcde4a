//! Four ways to get a valid value out of a model, behind one interface and with one report: write
//! freely and validate, send faults back, repair, or write under the mask.
//!
//! The model is a trait: the loop does not know whether an answer comes from this process, from
//! somewhere else, or from a script.

mod report;

use molde_infer::Message;

pub use report::{Attempt, Counts, Fallback, Report};

use crate::contract::Contract;
use crate::outcome::{RawJson, Timings, Usage};
use crate::{Control, End, Fault, Language, MoldeError, Rule, Validator, repair};

/// What an answer is held to while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing: any text.
    Free,
    /// The model's contract.
    Constrained,
}

/// A model as the methods see it: a conversation in, a text out.
pub trait AnswerModel {
    /// Writes an answer to a conversation.
    ///
    /// # Errors
    /// What keeps the model from answering. Who wraps something else than this crate's models puts
    /// its error into [`MoldeError::Model`].
    fn write(
        &self,
        messages: &[Message],
        form: Form,
        control: &Control,
    ) -> Result<ModelAnswer, MoldeError>;
}

/// What a model has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// Why it ends there.
    pub end: End,
    /// Tokens, as far as they are known.
    pub usage: Usage,
    /// Wall time, as far as it is known.
    pub timings: Timings,
}

impl ModelAnswer {
    /// An answer of which nothing but the text is known.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            end: End::Complete,
            usage: Usage::default(),
            timings: Timings::default(),
        }
    }
}

/// How a valid value is got out of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    form: Form,
    retries: usize,
    repairs: bool,
}

impl Method {
    /// Writes freely; what is not valid has failed.
    pub const fn free() -> Self {
        Self { form: Form::Free, retries: 0, repairs: false }
    }

    /// Writes freely; an answer that is not valid goes back with its fault, at most `retries` times.
    pub const fn retry(retries: usize) -> Self {
        Self { retries, ..Self::free() }
    }

    /// Writes freely; an answer that is not valid is repaired if it can be.
    pub const fn repair() -> Self {
        Self { repairs: true, ..Self::free() }
    }

    /// Writes under the mask. Only rules between fields can fail.
    pub const fn constrained() -> Self {
        Self { form: Form::Constrained, ..Self::free() }
    }

    /// The same, and at most `retries` times the fault is sent back.
    #[must_use]
    pub const fn with_retries(self, retries: usize) -> Self {
        Self { retries, ..self }
    }

    /// The same, and what is still not valid then is repaired if it can be.
    #[must_use]
    pub const fn with_repair(self) -> Self {
        Self { repairs: true, ..self }
    }
}

/// Runs a method and judges what comes out. Immutable: one for any number of documents and threads.
#[derive(Debug, Clone)]
pub struct Runner<T = RawJson> {
    contract: Contract<T>,
    validator: Validator,
    method: Method,
    language: Language,
    fallback: Option<String>,
}

impl<T> Runner<T> {
    /// A runner without rules and without a fallback.
    ///
    /// # Errors
    /// Those of [`Validator::new`].
    pub fn new(contract: &Contract<T>, method: Method) -> Result<Self, MoldeError> {
        Ok(Self {
            contract: contract.clone(),
            validator: Validator::new(contract)?,
            method,
            language: Language::default(),
            fallback: None,
        })
    }

    /// Checks one more rule between fields.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.validator = self.validator.with_rule(rule);
        self
    }

    /// Language in which faults are sent back. Default: English.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// The value that stands for an answer when all fails.
    ///
    /// # Errors
    /// [`MoldeError::InvalidAnswer`] if it is no instance of the schema that keeps all rules so far.
    pub fn fallback(mut self, json: impl Into<String>) -> Result<Self, MoldeError> {
        let json = json.into();
        self.validator
            .validate(&json)
            .map_err(|fault| MoldeError::InvalidAnswer { what: "the fallback", fault })?;
        self.fallback = Some(json);
        Ok(self)
    }

    /// The judge of the answers.
    pub fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Asks `model`, and does what the method says until there is a valid value or nothing is left to
    /// do. `messages` end with the document's turn; `document` is what repaired numbers are looked
    /// up in.
    ///
    /// An answer that is not valid is no error: see [`Report::fault`].
    ///
    /// # Errors
    /// Those of the model, and of reading a valid answer into `T`.
    pub fn run(
        &self,
        model: &dyn AnswerModel,
        messages: &[Message],
        document: &str,
        control: &Control,
    ) -> Result<Report<T>, MoldeError> {
        let mut report = Report::new();
        let mut conversation = messages.to_vec();
        loop {
            let answer = model.write(&conversation, self.method.form, control)?;
            match answer.end {
                End::Cancelled => return Err(MoldeError::Cancelled),
                End::DeadlineExceeded => return Err(MoldeError::DeadlineExceeded),
                End::Complete | End::ClosedByBudget { .. } | End::Truncated => {}
            }
            let judged = self.judge(&answer);
            report.add(&answer, judged.as_ref().err());
            let fault = match judged {
                Ok(()) => {
                    report.accept(&self.contract, answer.text.trim(), Vec::new())?;
                    return Ok(report);
                }
                Err(fault) => fault,
            };
            if report.attempts.len() > self.method.retries {
                break;
            }
            conversation.push(Message::assistant(answer.text));
            conversation.push(Message::user(self.language.correction(&fault)));
        }
        if self.method.repairs
            && let Ok(repaired) = repair(&self.validator, report.raw(), Some(document))
        {
            report.ungrounded = repaired.ungrounded;
            report.accept(&self.contract, &repaired.text, repaired.repairs)?;
            return Ok(report);
        }
        if let Some(fallback) = &self.fallback {
            report.fall_back(&self.contract, fallback)?;
        }
        Ok(report)
    }

    fn judge(&self, answer: &ModelAnswer) -> Result<(), Fault> {
        if let End::ClosedByBudget { fields } = &answer.end {
            let pointer = fields.first().cloned().unwrap_or_default();
            let message = "the token limit took a choice away: raise it";
            return Err(Fault::new("closed_by_budget", pointer, message));
        }
        self.validator.validate(&answer.text).map(|_| ())
    }
}
