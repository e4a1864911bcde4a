//! Judging answers: whether a text is an instance of the schema, and what its first fault is.
//!
//! The verdict is the automaton's, which is exact. Which fault comes first is found by a walk over
//! the schema in the order of its fields; the walk only has to name what the automaton has refused.

mod scalar;
mod walk;

use std::sync::Arc;

pub(crate) use scalar::same;

use molde_constraint::SchemaConstraint;
use molde_schema::{
    CompileOptions, CompiledSchema, Escapes, FormatProfile, NumberStyle, Order, Style,
};
use molde_vocab::{ByteAutomaton, StateId};
use serde_json::Value;

use crate::fields::FieldScanner;
use crate::{Contract, Fault, MoldeError, Rule, Verdict, deep, schema_view};

/// Judges texts that were written without a constraint, and rules between fields. Immutable, made
/// once for any number of texts.
#[derive(Debug, Clone)]
pub struct Validator {
    schema: Arc<Value>,
    free: FreeForm,
    rules: Vec<Rule>,
}

impl Validator {
    /// The validator of a contract.
    ///
    /// # Errors
    /// [`MoldeError::Schema`] if the freer spelling of texts exceeds a limit.
    pub fn new<T>(contract: &Contract<T>) -> Result<Self, MoldeError> {
        Ok(Self {
            schema: Arc::new(schema_view::read(contract.schema_text())),
            free: FreeForm::new(contract.schema_text(), contract.options())?,
            rules: Vec::new(),
        })
    }

    /// Checks one more rule between fields, after those that are there.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Reads `text`, in any JSON spelling, as an instance of the schema that keeps all rules.
    ///
    /// Linear in the text; a text that is refused is walked a second time.
    ///
    /// # Errors
    /// The first [`Fault`]: of the schema, in the order of its fields, then of the rules.
    pub fn validate(&self, text: &str) -> Result<Value, Fault> {
        let verdict = self.free.judge(text);
        let value = match deep::read::<Value>(trim(text)) {
            Ok(value) => value,
            // An instance that serde_json cannot hold, such as 1e400, has no rules to be asked of.
            Err(_) if verdict == Verdict::Valid => Value::Null,
            Err(error) => return Err(not_json(&error, text)),
        };
        match verdict {
            Verdict::Valid => {}
            Verdict::Undecided { offset } => {
                let message = format!("not decided within the limits, from byte {offset} on");
                return Err(Fault::new("undecided", "", message));
            }
            Verdict::Invalid { pointer, .. } | Verdict::Incomplete { pointer } => {
                if let Some(pointer) = duplicate_key(trim(text)) {
                    return Err(Fault::new("duplicate_key", pointer, "the member comes twice"));
                }
                return Err(walk::first_fault(&self.schema, &value).unwrap_or_else(|| {
                    Fault::new("json_schema", pointer, "a keyword of the schema forbids the value")
                }));
            }
        }
        self.rules.iter().try_for_each(|rule| rule.check(&value))?;
        Ok(value)
    }

    /// The schema, as far as it can be shown.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }
}

/// A schema compiled for texts in any JSON spelling.
#[derive(Debug, Clone)]
pub(crate) struct FreeForm(Arc<CompiledSchema>);

impl FreeForm {
    pub(crate) fn new(schema: &str, options: &CompileOptions) -> Result<Self, MoldeError> {
        let options = CompileOptions {
            style: Style::Flexible,
            order: Order::Any,
            number_style: NumberStyle::Any,
            escapes: Escapes::Any,
            format_profile: FormatProfile::Standard,
            ..*options
        };
        Ok(Self(Arc::new(CompiledSchema::compile(schema, &options)?)))
    }

    pub(crate) fn judge(&self, text: &str) -> Verdict {
        let mut automaton = SchemaConstraint::new(&self.0);
        let text = trim(text);
        let mut scanner = FieldScanner::new();
        let mut state = automaton.start();
        for (offset, byte) in text.bytes().enumerate() {
            let next = automaton.step(state, byte);
            if next == StateId::UNDECIDED {
                return Verdict::Undecided { offset };
            }
            if !next.is_live() {
                return Verdict::Invalid { pointer: scanner.pointer(), offset };
            }
            state = automaton.settle(next, &text.as_bytes()[..=offset]);
            scanner.push(&[byte], &mut Vec::new());
        }
        if automaton.is_accepting(state) {
            Verdict::Valid
        } else {
            Verdict::Incomplete { pointer: scanner.pointer() }
        }
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Why a text is no JSON value. `serde_json`'s own message can quote the text.
fn not_json(error: &MoldeError, text: &str) -> Fault {
    match error {
        MoldeError::Deserialize { line, column, category, .. } if *category != "data" => {
            let what = if trim(text).is_empty() {
                "the answer is empty".to_owned()
            } else {
                format!("no JSON from line {line}, column {column} on")
            };
            Fault::new("json_invalid", "", what)
        }
        _ => Fault::new("json_schema", "", "the value is beyond what can be held"),
    }
}

/// The place of a member that comes a second time, in a text that is JSON.
fn duplicate_key(text: &str) -> Option<String> {
    let mut scanner = FieldScanner::new();
    let mut completed = Vec::new();
    scanner.push(text.as_bytes(), &mut completed);
    let mut seen = std::collections::BTreeSet::new();
    completed.into_iter().map(|field| field.pointer).find(|pointer| !seen.insert(pointer.clone()))
}
