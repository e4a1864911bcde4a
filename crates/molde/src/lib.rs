//! A document and a JSON Schema in, a valid value out: offline, on the CPU.
//!
//! ```no_run
//! use molde::Engine;
//!
//! /// The revenue forecast for the next quarter, in millions of USD.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Forecast {
//!     quarter: Option<u8>,
//!     low: Option<f64>,
//!     high: Option<f64>,
//! }
//!
//! let engine = Engine::builder().build()?;
//! let extractor = engine.extractor_for::<Forecast>().build()?;
//! let forecast: Forecast = extractor
//!     .extract("For the fourth quarter we expect revenue of 530 to 555 million USD.")?
//!     .into_value()?;
//! println!("{:?} to {:?}", forecast.low, forecast.high);
//! # Ok::<(), molde::MoldeError>(())
//! ```
//!
//! # Invariants
//! - A complete answer is an instance of the schema, whatever the weights of the model are: the
//!   mask is applied before every choice. With a Rust type it also deserialises.
//! - An answer is the text that the model wrote. It is read into values, never written anew.
//! - What is not done is said: a document that does not fit is an error, a choice that the token
//!   budget took away is named, and another model is never taken instead of the one asked for.
//! - The text of a document never appears in an error message.
//!
//! # What it does not know
//! HTTP and terminals. Everything here works without either; who shows progress listens to events.

mod backend;
mod classifier;
mod close;
mod confidence;
mod contract;
mod control;
mod deep;
mod engine;
mod error;
mod exact;
mod explain;
mod extractor;
mod fault;
mod fields;
mod grounding;
mod journal;
mod local;
mod many;
mod methods;
mod numbers;
mod outcome;
mod prompt;
mod recovery;
mod repair;
mod rules;
mod rust_type;
mod schema_edit;
mod schema_view;
mod scoring;
mod signature;
mod validate;
mod windows;
mod writing;

#[cfg(test)]
mod tests;

pub use classifier::{Classification, Classifier, ClassifierBuilder, MAX_LABELS};
pub use close::{Closed, close_objects};
pub use confidence::{Confidence, FieldReport};
pub use contract::{Contract, Verdict};
pub use control::{Control, Event};
pub use engine::{Engine, EngineBuilder, GenerationRequest};
pub use error::MoldeError;
pub use explain::{MaskView, ViewedToken};
pub use extractor::{DEFAULT_MAX_TOKENS, Extractor, ExtractorBuilder};
pub use fault::Fault;
pub use fields::{CompletedField, FieldScanner};
pub use grounding::{Evidence, MAX_GROUNDED_NUMBERS, MAX_PAIRED_NUMBERS};
pub use journal::{Journal, content_hash};
pub use methods::{
    AnswerModel, Attempt, Counts, Fallback, Form, Method, ModelAnswer, Report, Runner,
};
pub use molde_constraint::{MatcherOptions, Segmentation};
pub use molde_hub::{Event as TransferEvent, ModelFiles};
pub use molde_infer::{CancelHandle, Message, Precision, Role};
pub use molde_schema::{
    CompileOptions, Escapes, FormatProfile, Formats, Limits, NumberStyle, Offender, Offenders,
    Order, SchemaError, Style,
};
pub use numbers::contains_number;
pub use outcome::{End, Generation, Outcome, RawJson, Timings, Usage, WindowOutcome};
pub use prompt::{Language, PromptTemplate, Shown, form_instructions};
pub use recovery::{RecoveredNode, Recovery, RecoveryStatus, Spelling, recover_bounds};
pub use repair::{Repair, RepairKind, Repaired, repair};
pub use rules::{FieldRule, Rule};
pub use schema_edit::add_reasoning_field;
pub use signature::{SignatureLimits, schema_without_titles, signature};
pub use validate::Validator;
pub use windows::Overflow;
