//! A local HTTP server that the official SDKs of OpenAI, Anthropic and Ollama use unmodified, and
//! that enforces the schema they send.
//!
//! ```text
//!  openai/  anthropic/  ollama/      wire types of one dialect ─▶ Request        Answer ─▶ wire types
//!                                                                   │               ▲
//!  prepare   Request ─▶ prompt tokens, constraint, budget           ▼               │ Delta
//!            (blocking threads; every 400 comes from here)       Prepared ───▶ Run ─┘
//!                                                                   │   ▲
//!  generator bounded queue, one thread that owns the model          ▼   │ SequenceEvent
//!                                                              Job ─▶ Reader (text, calls, stops)
//! ```
//!
//! # Invariants
//! - A dialect only translates. What a request means is in `request`, and is the same for all.
//! - What cannot be enforced is a 400 before anything is generated; nothing is enforced less than
//!   it was asked for.
//! - There is one error type, `fault::Fault`, and one file that writes it in each dialect.
//! - A client that is gone stops its generation: `run::Run` cancels when it is dropped.
//! - A panic while a request is prepared or generated ends that request with 500.
//! - Neither prompts nor answers are logged, unless the configuration asks for it.
//!
//! # What it does not know
//! JSON Schema (that is `molde` and `molde-constraint`), tensors, terminals.

mod answer;
mod anthropic;
mod app;
mod body;
mod config;
mod connection;
mod error;
mod fault;
mod form;
mod generator;
mod guard;
mod ids;
mod lint;
mod local;
mod metrics;
mod ollama;
mod openai;
mod prepare;
mod reader;
mod request;
mod routes;
mod run;
mod store;
mod stream;
mod wire;

pub use config::{Config, Limits};
pub use connection::Server;
pub use error::ServerError;
