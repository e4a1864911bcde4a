//! Tests over a model that is no model: it writes what a test tells it, or chooses at random.

mod confidence;
mod extraction;
pub(crate) mod fake;
mod grounding;
mod judging;
mod methods;
mod prompt;
mod rust_types;
