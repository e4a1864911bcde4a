//! Qwen2 on the CPU: model files in, tokens out.
//!
//! ```text
//! GGUF file ──────────▶ ┐                 ┌─▶ Model ─────────┐
//! safetensors folder ─▶ ┴─ LoadedModel ───┼─▶ Tokenizer ─────┼─▶ generate(…, &mut KvCache,
//!                                         └─▶ ChatTemplate ──┘       Option<TokenConstraint>)
//! ```
//!
//! # Invariants
//! - [`Model`], [`Tokenizer`] and [`ChatTemplate`] are immutable and shared behind `Arc`; all
//!   state of a sequence is in its [`KvCache`] and its constraint, both explicit `&mut`.
//! - Everything in a file is checked before it is used: a damaged or hostile file is an
//!   [`InferError`], never a panic, and never costs more memory than a small multiple of its size.
//! - User text never becomes a control token ([`Tokenizer::encode_text`], [`ChatTemplate`]).
//! - Nothing is ever cut silently: what does not fit the context is an error with both numbers.
//! - A token outside the constraint's mask is never written.
//! - Under [`Precision::Native`] logits are the same to the bit however the tokens are cut into
//!   calls and chunks, and for any number of threads. [`Precision::Exact`] runs on other code, as
//!   the reference.
//! - No global state: each [`Model`] has its own threads.
//!
//! # What it does not know
//! JSON, schemas, prompts, downloads. A constraint is only a
//! [`TokenConstraint`](molde_vocab::TokenConstraint).

mod batch;
mod byte_level;
mod chat;
mod checkpoint;
mod config;
mod draft;
mod error;
mod exact;
mod feed;
mod generate;
mod gguf;
mod gguf_checkpoint;
mod interrupt;
mod kv_cache;
mod load;
mod mmap;
mod model;
mod native;
mod network;
mod prefix_cache;
mod safetensors_checkpoint;
mod sampler;
mod scheduler;
mod sequence;
mod shared_steps;
mod text_stream;
#[cfg(any(test, feature = "test-models"))]
pub mod tiny;
mod tokenizer;
mod tokenizer_parts;

pub use batch::{Batch, BatchOptions, SequenceEvent, SequenceListener};
pub use chat::{ChatTemplate, Message, Role, SpecialTokens, ToolCall};
pub use checkpoint::Precision;
pub use config::ModelConfig;
pub use error::InferError;
pub use feed::{Feed, Workspace};
pub use generate::{End, GenerateRequest, Generation, Timings, TokenEvent, Usage, generate};
pub use interrupt::{CancelHandle, Interrupt};
pub use kv_cache::KvCache;
pub use load::LoadedModel;
pub use model::{Model, ModelOptions};
pub use sampler::{Candidate, Sampler, Sampling, TokenScores};
pub use scheduler::Scheduler;
pub use shared_steps::SharedSteps;
pub use text_stream::TextStream;
pub use tokenizer::Tokenizer;
