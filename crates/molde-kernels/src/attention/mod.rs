//! Attention: the cache of keys and values, and the causal product over it.

mod cache;
mod kernel;

pub use cache::{CacheElement, KvLayer};
pub use kernel::QueryPlace;
