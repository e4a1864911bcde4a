//! The seam between the server and whatever runs the model.

use molde_infer::{GenerateRequest, Generation, InferError, TokenEvent};
use molde_vocab::TokenConstraint;

/// One sequence to write.
pub(crate) struct Job {
    pub(crate) request: GenerateRequest,
    pub(crate) constraint: Option<Box<dyn TokenConstraint>>,
    /// Called on the generator's thread, in order. It must not wait for anything.
    pub(crate) listener: Box<dyn FnMut(SequenceEvent<'_>) + Send>,
}

/// What happens to a sequence.
#[derive(Debug)]
pub(crate) enum SequenceEvent<'a> {
    /// Its turn has come. At most once, first.
    Started,
    /// A token was decided.
    Token(TokenEvent<'a>),
    /// It is over. Exactly once, last.
    End(Result<Generation, GenerateError>),
}

/// Why a sequence came to no end of its own.
#[derive(Debug)]
pub(crate) enum GenerateError {
    /// The model or the constraint failed.
    Infer(InferError),
    /// Something panicked.
    Panic,
    /// The generator is gone.
    Stopped,
}

/// Runs sequences, in whatever way.
pub(crate) trait Generator: Send + Sync + std::fmt::Debug {
    /// Queues a sequence.
    ///
    /// # Errors
    /// [`QueueFull`]: as many sequences are waiting as may.
    fn submit(&self, job: Job) -> Result<(), QueueFull>;

    /// Sequences that wait for their turn.
    fn waiting(&self) -> usize;

    /// Bytes of the weights.
    fn weight_bytes(&self) -> usize;
}

/// A sequence that was not queued.
#[derive(Debug)]
pub(crate) struct QueueFull;
