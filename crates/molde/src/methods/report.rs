//! What a method reports, and how faults are counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ModelAnswer;
use crate::contract::Contract;
use crate::outcome::{Timings, Usage};
use crate::{Fault, MoldeError, Repair};

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The text, as it was written: to be logged.
    pub text: String,
    /// Its first fault; `None` if it is valid.
    pub fault: Option<Fault>,
}

/// Why a value is not the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fallback {
    /// No answer could be read as an instance of the schema that keeps all rules.
    ParseError,
}

impl Fallback {
    /// The reason's stable name: `parse_error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ParseError => "parse_error",
        }
    }
}

/// What came of one document; the same for every method.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report<T> {
    /// The value: the model's, a repaired one, or the fallback. `None` if all failed and there is no
    /// fallback.
    pub value: Option<T>,
    /// The JSON text of the value.
    pub json: Option<String>,
    /// Why the value is the fallback; `None` if it is the model's.
    pub fallback: Option<Fallback>,
    /// The answers, in order. At least one.
    pub attempts: Vec<Attempt>,
    /// What was changed in the last answer to make it valid.
    pub repairs: Vec<Repair>,
    /// JSON Pointers of numbers that a repair changed and that the document does not contain. Such a
    /// value counts as valid, and should be looked at.
    pub ungrounded: Vec<String>,
    /// Tokens, summed over the answers.
    pub usage: Usage,
    /// Wall time, summed over the answers.
    pub timings: Timings,
}

impl<T> Report<T> {
    pub(super) fn new() -> Self {
        Self {
            value: None,
            json: None,
            fallback: None,
            attempts: Vec::new(),
            repairs: Vec::new(),
            ungrounded: Vec::new(),
            usage: Usage::default(),
            timings: Timings::default(),
        }
    }

    /// Whether the value is the model's, repaired or not.
    pub fn is_valid(&self) -> bool {
        self.json.is_some() && self.fallback.is_none()
    }

    /// What was wrong with the last answer, if it was not valid as it stood.
    pub fn fault(&self) -> Option<&Fault> {
        self.attempts.last().and_then(|attempt| attempt.fault.as_ref())
    }

    /// The kind under which the document is counted: `None` if its value is valid.
    pub fn error_kind(&self) -> Option<&str> {
        if self.is_valid() { None } else { self.fault().map(|fault| fault.kind.as_ref()) }
    }

    /// The flag of a value whose repair the document does not support: `repair_ungrounded`.
    pub fn flag(&self) -> Option<&'static str> {
        (!self.ungrounded.is_empty()).then_some("repair_ungrounded")
    }

    /// The last answer as the model wrote it: to be logged.
    pub fn raw(&self) -> &str {
        self.attempts.last().map_or("", |attempt| &attempt.text)
    }

    /// Number of times that the model was asked.
    pub fn calls(&self) -> usize {
        self.attempts.len()
    }

    pub(super) fn add(&mut self, answer: &ModelAnswer, fault: Option<&Fault>) {
        self.usage.add(&answer.usage);
        self.timings.add(&answer.timings);
        self.attempts.push(Attempt { text: answer.text.clone(), fault: fault.cloned() });
    }

    pub(super) fn accept(
        &mut self,
        contract: &Contract<T>,
        json: &str,
        repairs: Vec<Repair>,
    ) -> Result<(), MoldeError> {
        self.value = Some(contract.read(json)?);
        self.json = Some(json.to_owned());
        self.repairs = repairs;
        Ok(())
    }

    pub(super) fn fall_back(
        &mut self,
        contract: &Contract<T>,
        json: &str,
    ) -> Result<(), MoldeError> {
        self.accept(contract, json, Vec::new())?;
        self.fallback = Some(Fallback::ParseError);
        Ok(())
    }
}

/// Kinds of faults, counted overall and by columns of the input, such as type, language or date.
///
/// Counting reasons by column is how one sees that a change of the sources, or of the model, has
/// broken an extraction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Documents by kind; valid ones under `valid`.
    pub all: BTreeMap<String, usize>,
    /// By column, then by the column's value, then by kind.
    pub by: BTreeMap<String, BTreeMap<String, BTreeMap<String, usize>>>,
}

/// The name under which valid documents are counted.
const VALID: &str = "valid";

impl Counts {
    /// Counts one document: its kind of fault, `None` for a valid one, under each of its columns.
    pub fn add<'a>(
        &mut self,
        kind: Option<&str>,
        columns: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        let kind = kind.unwrap_or(VALID);
        *self.all.entry(kind.to_owned()).or_default() += 1;
        for (column, value) in columns {
            let counts = self.by.entry(column.to_owned()).or_default();
            let counts = counts.entry(value.to_owned()).or_default();
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Documents that were counted.
    pub fn total(&self) -> usize {
        self.all.values().sum()
    }

    /// Documents that were valid.
    pub fn valid(&self) -> usize {
        self.all.get(VALID).copied().unwrap_or_default()
    }
}
