//! The dialect of Anthropic.

pub(crate) mod complete;
pub(crate) mod messages;
mod messages_stream;
mod read;
