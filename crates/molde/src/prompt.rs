//! What the model is told: the system message, in English or Spanish.
//!
//! The pieces always stand in the same order: role and task, format (the signature), notes on
//! fields, conventions, the case without data. Instructions are the system message and the
//! document is the user's, so that a document cannot pass for an instruction.

use serde_json::Value;

use crate::Fault;
use crate::schema_view;
use crate::signature::{SignatureLimits, schema_without_titles, signature};

/// The language of the fixed parts of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Spanish.
    Spanish,
}

/// The fixed words of one language.
pub(crate) struct Words {
    pub(crate) or: &'static str,
    pub(crate) and: &'static str,
    pub(crate) to: &'static str,
    pub(crate) any: &'static str,
    pub(crate) optional: &'static str,
    pub(crate) at_most: &'static str,
    pub(crate) multiple_of: &'static str,
    task: &'static str,
    format: &'static str,
    format_object: &'static str,
    format_schema: &'static str,
    no_data: &'static str,
}

const ENGLISH: Words = Words {
    or: " or ",
    and: " and ",
    to: "to",
    any: "any JSON value",
    optional: " (optional)",
    at_most: "at most",
    multiple_of: "multiple of",
    task: "Extract data from the document.",
    format: "Answer only with JSON like this:",
    format_object: "Answer only with a JSON object like this:",
    format_schema: "Answer only with JSON that satisfies this JSON Schema:",
    no_data: "What the document does not say is null, never a guess.",
};

const SPANISH: Words = Words {
    or: " o ",
    and: " y ",
    to: "a",
    any: "cualquier valor JSON",
    optional: " (opcional)",
    at_most: "como máximo",
    multiple_of: "múltiplo de",
    task: "Extrae los datos del documento.",
    format: "Responde solo con un JSON así:",
    format_object: "Responde solo con un objeto JSON así:",
    format_schema: "Responde solo con un JSON que cumpla este JSON Schema:",
    no_data: "Lo que el documento no dice es null; no lo inventes.",
};

impl Language {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Spanish => &SPANISH,
        }
    }

    /// The turn that sends a fault back.
    pub(crate) fn correction(self, fault: &Fault) -> String {
        let place = if fault.pointer.is_empty() { "" } else { &fault.pointer };
        match self {
            Self::English => format!(
                "Validation error: {} {place}. Correct it and answer with the JSON only.",
                fault.kind
            ),
            Self::Spanish => format!(
                "Error de validación: {} {place}. Corrige y responde solo con el JSON.",
                fault.kind
            ),
        }
        .replace(" .", ".")
    }
}

/// How much of the schema the model is shown. The mask enforces it in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// The one-line summary; see [`signature`](crate::signature).
    #[default]
    Signature,
    /// The whole schema, without titles, on one line.
    Schema,
    /// Nothing of it.
    Nothing,
}

/// What the model is told before a document: role and task, format, conventions, the case without
/// data. What is not given has a default in English or Spanish.
///
/// ```
/// use molde::{Language, PromptTemplate};
///
/// let message = PromptTemplate::new(Language::English)
///     .instructions("Extract the revenue forecast.")
///     .conventions("Amounts in millions of USD.")
///     .system_message(r#"{"type": "object", "properties": {"low": {"type": "number"}}, "required": ["low"]}"#);
/// assert_eq!(
///     message,
///     "Extract the revenue forecast. Answer only with a JSON object like this:\n{\"low\": number}\n\
///      Amounts in millions of USD."
/// );
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PromptTemplate {
    pub(crate) language: Language,
    pub(crate) instructions: Option<String>,
    pub(crate) conventions: Option<String>,
    pub(crate) no_data: Option<String>,
    pub(crate) shown: Shown,
    pub(crate) without_notes: bool,
    pub(crate) limits: SignatureLimits,
}

impl PromptTemplate {
    /// The defaults of a language.
    pub fn new(language: Language) -> Self {
        Self { language, ..Self::default() }
    }

    /// Role and task: what to extract. Default: the schema's `description`, or a general sentence.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Conventions, such as units and how to convert them. Default: none.
    pub fn conventions(mut self, text: impl Into<String>) -> Self {
        self.conventions = Some(text.into());
        self
    }

    /// What to write where the document says nothing. Default: a sentence that asks for null, if the
    /// schema admits null anywhere; an empty text leaves the sentence out.
    pub fn no_data(mut self, text: impl Into<String>) -> Self {
        self.no_data = Some(text.into());
        self
    }

    /// How much of the schema is shown. Default: its signature.
    pub fn shown(mut self, shown: Shown) -> Self {
        self.shown = shown;
        self
    }

    /// Whether descriptions of fields stand below a signature, a line each. Default: they do.
    pub fn field_notes(mut self, shown: bool) -> Self {
        self.without_notes = !shown;
        self
    }

    /// Bounds on the signature.
    pub fn signature_limits(mut self, limits: SignatureLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The one-line summary of the schema with this text, as this template shows it.
    pub fn signature(&self, schema_text: &str) -> String {
        signature(&schema_view::read(schema_text), self.language, &self.limits)
    }

    /// The system message for the schema with this text.
    pub fn system_message(&self, schema_text: &str) -> String {
        self.message(schema_text, &schema_view::read(schema_text))
    }

    fn message(&self, schema_text: &str, schema: &Value) -> String {
        let words = self.language.words();
        let mut message = self
            .instructions
            .as_deref()
            .or_else(|| schema.get("description").and_then(Value::as_str))
            .map(str::trim)
            .filter(|task| !task.is_empty())
            .unwrap_or(words.task)
            .to_owned();
        match self.shown {
            Shown::Nothing => {}
            Shown::Signature => {
                message.push(' ');
                push_form(schema, self.language, &self.limits, !self.without_notes, &mut message);
            }
            Shown::Schema => {
                message.extend([" ", words.format_schema, "\n"]);
                message.push_str(&schema_without_titles(schema_text));
            }
        }
        let no_data = match self.no_data.as_deref() {
            Some(text) => text.trim(),
            // Where nothing may be null the sentence would ask for what the mask forbids.
            None if admits_null(schema) => words.no_data,
            None => "",
        };
        let conventions = self.conventions.as_deref().map(str::trim).unwrap_or_default();
        let last: Vec<&str> =
            [conventions, no_data].into_iter().filter(|text| !text.is_empty()).collect();
        if !last.is_empty() {
            message.push('\n');
            message.push_str(&last.join(" "));
        }
        message
    }
}

/// What a model is told of the form of its answer: a sentence that asks for JSON, the signature of
/// the schema, and the descriptions of the outermost members. Never needed for the answer to be
/// valid: a mask does not explain the task.
///
/// Linear in the text of the schema.
pub fn form_instructions(schema_text: &str, language: Language) -> String {
    let mut message = String::new();
    let schema = schema_view::read(schema_text);
    push_form(&schema, language, &SignatureLimits::default(), true, &mut message);
    message
}

fn push_form(
    schema: &Value,
    language: Language,
    limits: &SignatureLimits,
    notes: bool,
    message: &mut String,
) {
    let words = language.words();
    let is_object = schema.get("properties").is_some()
        || schema.get("type").and_then(Value::as_str) == Some("object");
    message.push_str(if is_object { words.format_object } else { words.format });
    message.push('\n');
    message.push_str(&signature(schema, language, limits));
    if notes {
        for (name, description) in described_fields(schema) {
            message.extend(["\n", name, ": ", description.as_str()]);
        }
    }
}

/// Name and description of the members of the outermost object that have one, on one line each.
fn described_fields(schema: &Value) -> impl Iterator<Item = (&str, String)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().filter_map(
        |(name, property)| {
            let description = property.get("description")?.as_str()?;
            let one_line = description.split_whitespace().collect::<Vec<_>>().join(" ");
            (!one_line.is_empty()).then_some((name.as_str(), one_line))
        },
    )
}

/// Whether the schema mentions null as a type or value anywhere.
fn admits_null(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| match (name.as_str(), value) {
                ("type", Value::String(name)) => name == "null",
                ("type", Value::Array(names)) => names.iter().any(|name| name == "null"),
                ("enum", Value::Array(values)) => values.contains(&Value::Null),
                ("const", value) => value.is_null(),
                (_, value) => admits_null(value),
            })
        }
        Value::Array(items) => items.iter().any(admits_null),
        _ => false,
    }
}
