//! How a caller stops work that has begun, and hears of its progress.

use std::time::{Duration, Instant};

use molde_infer::{CancelHandle, Interrupt};

/// When to stop before an answer is complete. The default never does.
#[derive(Debug, Clone, Default)]
pub struct Control {
    pub(crate) interrupt: Interrupt,
}

impl Control {
    /// Never stops early.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops when `handle` is cancelled: between two tokens of the answer, or two chunks of the
    /// prompt.
    #[must_use]
    pub fn cancel(mut self, handle: &CancelHandle) -> Self {
        self.interrupt.cancel = Some(handle.clone());
        self
    }

    /// Stops at `deadline`.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.interrupt.deadline = Some(deadline);
        self
    }

    /// Stops `timeout` from now.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // A timeout beyond what the clock can express is no deadline.
        self.interrupt.deadline = Instant::now().checked_add(timeout);
        self
    }
}

/// What happens while an answer is written, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A window of a document that did not fit is read next. Comes before its tokens.
    Window {
        /// Index of the window, from 0.
        index: usize,
        /// Number of windows, as planned so far.
        count: usize,
    },
    /// A token was written.
    Token {
        /// The text that it adds: empty while a character is still incomplete.
        text: &'a str,
        /// Whether the constraint allowed this token only.
        forced: bool,
    },
    /// A member of an object, or an element of an array, is complete. Inner ones come first.
    Field {
        /// JSON Pointer (RFC 6901) to the value.
        pointer: &'a str,
        /// The value as the model wrote it.
        json: &'a str,
    },
}
