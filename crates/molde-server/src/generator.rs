//! The seam between the server and whatever runs the model.

use molde_infer::{GenerateRequest, SequenceListener};
use molde_vocab::TokenConstraint;

/// One sequence to write.
pub(crate) struct Job {
    pub(crate) request: GenerateRequest,
    pub(crate) constraint: Option<Box<dyn TokenConstraint>>,
    /// Called on the generator's thread, in order. It must not wait for anything.
    pub(crate) listener: SequenceListener,
}

/// Runs sequences, in whatever way.
pub(crate) trait Generator: Send + Sync + std::fmt::Debug {
    /// Queues a sequence. A failure later on is told to its listener.
    ///
    /// # Errors
    /// [`QueueFull`]: as many sequences are waiting as may.
    fn submit(&self, job: Job) -> Result<(), QueueFull>;

    /// Sequences that wait for their turn.
    fn waiting(&self) -> usize;

    /// Sequences that are being written.
    fn running(&self) -> usize;

    /// Bytes of the weights.
    fn weight_bytes(&self) -> usize;
}

/// A sequence that was not queued.
#[derive(Debug)]
pub(crate) struct QueueFull;
