//! Keys and values of the tokens that a model has read.

use molde_vocab::TokenId;

use crate::{InferError, ModelConfig};

/// The keys and values of one sequence, and the tokens they belong to.
///
/// A value outside the model: clone it at the end of a shared prefix, [truncate](Self::truncate)
/// it to take tokens back, keep as many as there are sequences. Memory grows with the number of
/// tokens: `layers * 2 * key_value_size * 4` bytes each, 24,576 for the 0.5B models. Appending
/// never moves what is there, unless the reserved capacity is exceeded.
#[derive(Debug, Clone)]
pub struct KvCache {
    tokens: Vec<TokenId>,
    layers: Vec<LayerCache>,
    key_value_size: usize,
}

/// Keys and values of one layer, each `[position, key_value_head, head_size]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerCache {
    pub(crate) keys: Vec<f32>,
    pub(crate) values: Vec<f32>,
}

impl KvCache {
    /// An empty cache with memory reserved for `capacity_tokens` tokens, at most the model's
    /// context.
    pub fn new(config: &ModelConfig, capacity_tokens: usize) -> Self {
        let key_value_size = config.key_value_size();
        let values = capacity_tokens.min(config.context_tokens) * key_value_size;
        let layer =
            || LayerCache { keys: Vec::with_capacity(values), values: Vec::with_capacity(values) };
        Self {
            tokens: Vec::new(),
            layers: (0..config.layers).map(|_| layer()).collect(),
            key_value_size,
        }
    }

    /// Number of tokens read.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether no token has been read.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens read, in order.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Forgets all but the first `tokens` tokens. Keeps the memory.
    pub fn truncate(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        let values = self.tokens.len() * self.key_value_size;
        for layer in &mut self.layers {
            layer.keys.truncate(values);
            layer.values.truncate(values);
        }
    }

    /// Number of leading tokens that `tokens` and this cache have in common.
    pub fn common_prefix(&self, tokens: &[TokenId]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count()
    }

    /// Heap bytes reserved.
    pub fn memory_usage(&self) -> usize {
        let values: usize =
            self.layers.iter().map(|layer| layer.keys.capacity() + layer.values.capacity()).sum();
        values * size_of::<f32>() + self.tokens.capacity() * size_of::<TokenId>()
    }

    pub(crate) fn check(&self, config: &ModelConfig) -> Result<(), InferError> {
        let got = (self.layers.len(), self.key_value_size);
        let expected = (config.layers, config.key_value_size());
        if got == expected {
            return Ok(());
        }
        let describe = |(layers, values)| format!("{layers} x {values}");
        Err(InferError::CacheMismatch { expected: describe(expected), got: describe(got) })
    }

    pub(crate) fn layer_mut(&mut self, layer: usize) -> &mut LayerCache {
        &mut self.layers[layer]
    }

    /// Marks tokens as read, once every layer has their keys and values.
    pub(crate) fn commit(&mut self, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
    }
}
