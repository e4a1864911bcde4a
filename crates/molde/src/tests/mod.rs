//! Tests over a model that is no model: it writes what a test tells it, or chooses at random.

mod extraction;
mod fake;
mod prompt;
mod rust_types;
