//! The buffers of a step, allocated once for the largest.

use molde_kernels::{QuantizedRows, QueryPlace, Rotations};

use crate::ModelConfig;
use crate::feed::Feed;

/// Activations of the tokens of a step, one feed after the other, `[tokens, width]` each.
#[derive(Debug)]
pub(crate) struct NativeScratch {
    /// Tokens in use.
    pub(super) tokens: usize,
    /// The residual stream.
    pub(super) hidden: Vec<f32>,
    /// What is added to it, or goes into a product: `hidden_size` wide.
    pub(super) scratch: Vec<f32>,
    pub(super) queries: Vec<f32>,
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
    pub(super) gate: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) quantized: QuantizedRows,
    pub(super) rotations: Rotations,
    /// The feed and the position of each token.
    pub(super) places: Vec<QueryPlace>,
}

impl NativeScratch {
    pub(super) fn new(config: &ModelConfig, capacity: usize) -> Self {
        let buffer = |width: usize| Vec::with_capacity(capacity * width);
        Self {
            tokens: 0,
            hidden: buffer(config.hidden_size),
            scratch: buffer(config.hidden_size),
            queries: buffer(config.hidden_size),
            keys: buffer(config.key_value_size()),
            values: buffer(config.key_value_size()),
            gate: buffer(config.intermediate_size),
            up: buffer(config.intermediate_size),
            quantized: QuantizedRows::new(),
            rotations: Rotations::default(),
            places: Vec::with_capacity(capacity),
        }
    }

    /// Makes every buffer as long as the tokens of `feeds` need, and says where each stands. What
    /// the buffers hold is arbitrary.
    pub(super) fn arrange(&mut self, config: &ModelConfig, feeds: &[Feed]) {
        self.places.clear();
        for (sequence, feed) in feeds.iter().enumerate() {
            let first = feed.cache.len();
            self.places.extend(
                (first..first + feed.tokens.len())
                    .map(|position| QueryPlace { sequence, positions: position + 1 }),
            );
        }
        let tokens = self.places.len();
        self.tokens = tokens;
        let (hidden, key_value) = (config.hidden_size, config.key_value_size());
        for (buffer, width) in [
            (&mut self.hidden, hidden),
            (&mut self.scratch, hidden),
            (&mut self.queries, hidden),
            (&mut self.keys, key_value),
            (&mut self.values, key_value),
            (&mut self.gate, config.intermediate_size),
            (&mut self.up, config.intermediate_size),
        ] {
            buffer.resize(tokens * width, 0.0);
        }
    }
}
