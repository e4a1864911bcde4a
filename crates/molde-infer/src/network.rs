//! What [`Model`](crate::Model) asks of the two ways to run a network.

use molde_vocab::TokenId;

use crate::{InferError, KvCache};

/// The weights of a model with the arithmetic of one precision. Immutable.
pub(crate) trait Network: std::fmt::Debug + Send + Sync {
    /// Starts reading, in chunks of at most `chunk_tokens` tokens.
    fn pass(&self, chunk_tokens: usize) -> Box<dyn Pass + '_>;

    /// Heap bytes of the weights; what two matrices share is counted once.
    fn bytes(&self) -> usize;
}

/// The activations of one call.
pub(crate) trait Pass {
    /// Reads a chunk at the end of `cache`: every layer gets the keys and values. On an error
    /// some layers have them and others not.
    fn read(&mut self, tokens: &[TokenId], cache: &mut KvCache) -> Result<(), InferError>;

    /// The logits after each of the last `count` tokens of the chunk read last:
    /// `[count, vocabulary_len]`. A position in an error counts from the first of these tokens.
    fn logits(&mut self, count: usize) -> Result<Vec<f32>, InferError>;
}
