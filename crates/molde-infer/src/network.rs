//! What [`Model`](crate::Model) asks of the two ways to run a network.

use crate::exact::ExactScratch;
use crate::feed::{Feed, Logits};
use crate::native::NativeScratch;
use crate::{InferError, ModelConfig};

/// The weights of a model with the arithmetic of one precision. Immutable.
pub(crate) trait Network: std::fmt::Debug + Send + Sync {
    /// Buffers for steps of up to `capacity_tokens` tokens; larger ones make them grow.
    fn new_scratch(&self, capacity_tokens: usize) -> Scratch;

    /// Reads the tokens of every feed at the end of its cache: every layer gets the keys and
    /// values. On an error some layers have them and others not.
    fn read(&self, feeds: &mut [Feed], scratch: &mut Scratch) -> Result<(), InferError>;

    /// Computes what the feeds that were read last want of the head. A position in an error
    /// counts from the first token of its feed.
    fn logits(
        &self,
        feeds: &[Feed],
        scratch: &mut Scratch,
        to: &mut Logits,
    ) -> Result<(), InferError>;

    /// Heap bytes of the weights; what two matrices share is counted once.
    fn bytes(&self) -> usize;

    /// Heap bytes of the matrices and vectors of the layers.
    fn layer_bytes(&self) -> usize;

    /// Heap bytes of the output head, which may be the embedding table.
    fn head_bytes(&self) -> usize;
}

/// The activations of a step.
#[derive(Debug)]
pub(crate) enum Scratch {
    Native(Box<NativeScratch>),
    Exact(ExactScratch),
}

/// The shape of a model as its caches must have it.
pub(crate) fn check_caches(config: &ModelConfig, feeds: &[Feed]) -> Result<(), InferError> {
    feeds.iter().filter(|feed| !feed.is_empty()).try_for_each(|feed| feed.cache.check(config))
}
