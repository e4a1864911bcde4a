//! How sure the model was of each field of an answer.
//!
//! The answer is read by the model once more, in batches, with its whole head: that gives the
//! distribution at every token. Where the mask left a choice, the probability of what was chosen among
//! the allowed tokens, and what the mask removed, are counted for the field that was being written.

use molde_constraint::{Matcher, SchemaConstraint};
use molde_vocab::{TokenConstraint, TokenId, TokenMask, Vocabulary};
use serde::Serialize;

use crate::MoldeError;
use crate::explain::softmax;
use crate::fields::FieldScanner;

/// How much is found out about how sure the model was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Confidence {
    /// Nothing: costs nothing.
    #[default]
    Off,
    /// A [`FieldReport`] for each field. Costs a pass of the model over the tokens of the answer.
    Scored,
    /// The same with the runner-up of each field. Costs, beyond that, writing each field once more.
    Full,
}

/// How sure the model was of one field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FieldReport {
    /// JSON Pointer of the value.
    pub pointer: String,
    /// The value as it was written; for an object or array, empty: its parts have reports of their
    /// own.
    pub json: String,
    /// The probability of the chosen tokens among the allowed ones, multiplied over the field's choice
    /// points; 1 where the mask left no choice.
    pub probability: f64,
    /// The probability that the mask removed at the choice point where it removed most. High means
    /// that the model wanted something else.
    pub removed: f64,
    /// The probability, among the allowed tokens at the field's first choice point, of those that
    /// begin null; `None` where null is not allowed there.
    pub null_probability: Option<f64>,
    /// Tokens that the model chose.
    pub chosen_tokens: usize,
    /// Tokens that the mask left no choice about.
    pub forced_tokens: usize,
    /// What the model would have written for the field if its second token had been taken at the first
    /// choice point; only with [`Confidence::Full`].
    pub runner_up: Option<String>,
}

/// A field's first choice point, from which the runner-up is written.
#[derive(Debug, Clone)]
pub(crate) struct ChoicePoint {
    /// Index of the report.
    pub(crate) field: usize,
    /// Index of the token that was chosen.
    pub(crate) at: usize,
    /// The second most probable of the allowed tokens.
    pub(crate) second: TokenId,
}

/// Collects the reports, row by row of logits.
pub(crate) struct Scoring<'m> {
    matcher: &'m mut Matcher<SchemaConstraint>,
    scanner: FieldScanner,
    tokens: &'m [TokenId],
    at: usize,
    pub(crate) reports: Vec<FieldReport>,
    pub(crate) choices: Vec<ChoicePoint>,
    error: Option<MoldeError>,
}

impl<'m> Scoring<'m> {
    /// `matcher` must be before the first token.
    pub(crate) fn new(matcher: &'m mut Matcher<SchemaConstraint>, tokens: &'m [TokenId]) -> Self {
        Self {
            matcher,
            scanner: FieldScanner::new(),
            tokens,
            at: 0,
            reports: Vec::new(),
            choices: Vec::new(),
            error: None,
        }
    }

    /// Takes the logits before the next token of the answer.
    pub(crate) fn push(&mut self, logits: &[f32]) {
        if self.error.is_none()
            && let Err(error) = self.try_push(logits)
        {
            self.error = Some(error);
        }
    }

    fn try_push(&mut self, logits: &[f32]) -> Result<(), MoldeError> {
        let Some(&token) = self.tokens.get(self.at) else { return Ok(()) };
        let vocabulary = self.matcher.vocabulary().clone();
        let pointer = self.scanner.pointer();
        let field = self.field(&pointer);
        let mask = self.matcher.mask().map_err(molde_infer::InferError::from)?;
        if mask.len() == 1 {
            self.reports[field].forced_tokens += 1;
        } else {
            let step = Step::new(logits, mask, token, &vocabulary);
            let report = &mut self.reports[field];
            if report.chosen_tokens == 0 {
                report.null_probability = step.null;
                if let Some(second) = step.second {
                    self.choices.push(ChoicePoint { field, at: self.at, second });
                }
            }
            report.probability *= step.probability;
            report.removed = report.removed.max(step.removed);
            report.chosen_tokens += 1;
        }
        self.matcher.accept(token).map_err(molde_infer::InferError::from)?;
        let mut completed = Vec::new();
        self.scanner.push(vocabulary.token_bytes(token).unwrap_or_default(), &mut completed);
        for done in completed {
            let text = &self.scanner.text()[done.bytes];
            if !text.starts_with(b"{") && !text.starts_with(b"[") {
                let json = String::from_utf8_lossy(text).into_owned();
                let field = self.field(&done.pointer);
                self.reports[field].json = json;
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Index of the report of a field.
    fn field(&mut self, pointer: &str) -> usize {
        let known = self.reports.iter().position(|report| report.pointer == pointer);
        known.unwrap_or_else(|| {
            self.reports.push(FieldReport {
                pointer: pointer.to_owned(),
                json: String::new(),
                probability: 1.0,
                removed: 0.0,
                null_probability: None,
                chosen_tokens: 0,
                forced_tokens: 0,
                runner_up: None,
            });
            self.reports.len() - 1
        })
    }

    /// The reports and the choice points.
    pub(crate) fn finish(self) -> Result<(Vec<FieldReport>, Vec<ChoicePoint>), MoldeError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.reports, self.choices)),
        }
    }
}

/// What one choice says.
struct Step {
    probability: f64,
    removed: f64,
    null: Option<f64>,
    second: Option<TokenId>,
}

impl Step {
    fn new(logits: &[f32], mask: &TokenMask, token: TokenId, vocabulary: &Vocabulary) -> Self {
        let all = softmax(logits);
        let share = |token: TokenId| all.get(token as usize).copied().unwrap_or(0.0);
        let mut allowed = 0.0;
        let mut null = 0.0;
        let mut begins_null = false;
        let mut second: Option<(f64, TokenId)> = None;
        for candidate in mask {
            let probability = share(candidate);
            allowed += probability;
            let bytes = vocabulary.token_bytes(candidate).unwrap_or_default();
            if !bytes.is_empty() && (b"null".starts_with(bytes) || bytes.starts_with(b"null")) {
                null += probability;
                begins_null = true;
            }
            if candidate != token && second.is_none_or(|(most, _)| probability > most) {
                second = Some((probability, candidate));
            }
        }
        // Where every allowed token has probability 0 in double precision nothing can be said.
        let of_allowed = |part: f64| if allowed > 0.0 { part / allowed } else { 0.0 };
        Self {
            probability: of_allowed(share(token)),
            removed: (1.0 - allowed).max(0.0),
            null: begins_null.then(|| of_allowed(null)),
            second: second
                .map(|(_, token)| token)
                .filter(|token| vocabulary.token_bytes(*token).is_some()),
        }
    }
}
