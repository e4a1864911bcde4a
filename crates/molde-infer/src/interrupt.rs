//! How long work may go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::InferError;

/// A flag that one thread sets and the working thread looks at. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to stop; it does between two tokens, two chunks of a prompt, or two matrices
    /// of a file that is being loaded.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, to stop other work with it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// When to stop before the work is done. Default: never.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// Stop when this is cancelled.
    pub cancel: Option<CancelHandle>,
    /// Stop at this time.
    pub deadline: Option<Instant>,
}

impl Interrupt {
    /// Whether work may go on.
    ///
    /// # Errors
    /// [`InferError::Cancelled`] or, if not cancelled, [`InferError::DeadlineExceeded`].
    pub fn check(&self) -> Result<(), InferError> {
        if self.cancel.as_ref().is_some_and(CancelHandle::is_cancelled) {
            return Err(InferError::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(InferError::DeadlineExceeded);
        }
        Ok(())
    }
}
