//! The dialect of Ollama.

pub(crate) mod generate;
pub(crate) mod models;
mod read;
mod write;
