//! The dialect of OpenAI, and what vLLM adds to it.

pub(crate) mod chat;
mod chat_stream;
pub(crate) mod common;
pub(crate) mod completions;
pub(crate) mod models;
pub(crate) mod responses;
mod responses_items;
mod responses_stream;
