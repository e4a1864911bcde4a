//! What the model is told: the system message, in English or Spanish.
//!
//! The pieces always stand in the same order: role and task, format (the signature), notes on
//! fields, conventions, the case without data. Instructions are the system message and the
//! document is the user's, so that a document cannot pass for an instruction.

use serde_json::Value;

use crate::signature::{SignatureLimits, signature};

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
    format: "Answer only with JSON of this form:",
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
    format: "Responde solo con un JSON con esta forma:",
    no_data: "Lo que el documento no dice es null; no lo inventes.",
};

impl Language {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Spanish => &SPANISH,
        }
    }
}

/// The parts of a system message; what is `None` has a default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prompt {
    pub(crate) language: Language,
    pub(crate) instructions: Option<String>,
    pub(crate) conventions: Option<String>,
    pub(crate) no_data: Option<String>,
    pub(crate) limits: SignatureLimits,
}

impl Prompt {
    /// The system message for `schema`.
    pub(crate) fn system_message(&self, schema: &Value) -> String {
        let words = self.language.words();
        let task = self
            .instructions
            .as_deref()
            .or_else(|| schema.get("description").and_then(Value::as_str))
            .map(str::trim)
            .filter(|task| !task.is_empty())
            .unwrap_or(words.task);
        let mut message =
            format!("{task}\n{}\n{}", words.format, signature(schema, self.language, &self.limits));
        for (name, description) in described_fields(schema) {
            message.extend(["\n", name, ": ", description.as_str()]);
        }
        if let Some(conventions) =
            self.conventions.as_deref().map(str::trim).filter(|text| !text.is_empty())
        {
            message.push('\n');
            message.push_str(conventions);
        }
        let no_data = match self.no_data.as_deref() {
            Some(text) => text.trim(),
            // Where nothing may be null the sentence would ask for what the mask forbids.
            None if admits_null(schema) => words.no_data,
            None => "",
        };
        if !no_data.is_empty() {
            message.push('\n');
            message.push_str(no_data);
        }
        message
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
