//! Keys and values of the tokens that a model has read.

use molde_kernels::KvLayer;
use molde_vocab::TokenId;

use crate::{InferError, ModelConfig};

/// The keys and values of one sequence, and the tokens they belong to.
///
/// A value outside the model: clone it at the end of a shared prefix, [truncate](Self::truncate)
/// it to take tokens back, keep as many as there are sequences. Memory grows with the number of
/// tokens: `layers * 2 * key_value_size * 4` bytes each, 24,576 for the 0.5B models. Appending
/// never moves what is there, unless the reserved capacity is exceeded.
///
/// While it is empty, a model of either precision can use it; once it holds tokens, only models
/// of the precision that read them.
#[derive(Debug, Clone)]
pub struct KvCache {
    tokens: Vec<TokenId>,
    shape: Shape,
    capacity_tokens: usize,
    layers: Layers,
}

/// Layers, key-value heads a layer, values a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    layers: usize,
    key_value_heads: usize,
    head_size: usize,
}

impl Shape {
    fn of(config: &ModelConfig) -> Self {
        Self {
            layers: config.layers,
            key_value_heads: config.key_value_heads,
            head_size: config.head_size(),
        }
    }
}

/// Each precision has the layout that its attention reads.
#[derive(Debug, Clone)]
enum Layers {
    /// Nothing was read yet.
    Unused,
    Exact(Vec<ExactLayer>),
    Native(Vec<KvLayer<f32>>),
}

/// Keys and values of one layer, each `[position, key_value_head, head_size]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactLayer {
    pub(crate) keys: Vec<f32>,
    pub(crate) values: Vec<f32>,
}

impl KvCache {
    /// An empty cache with room for `capacity_tokens` tokens, at most the model's context. The
    /// memory is reserved when the first token is read.
    pub fn new(config: &ModelConfig, capacity_tokens: usize) -> Self {
        Self {
            tokens: Vec::with_capacity(capacity_tokens.min(config.context_tokens)),
            shape: Shape::of(config),
            capacity_tokens: capacity_tokens.min(config.context_tokens),
            layers: Layers::Unused,
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

    /// A copy of the first `tokens` tokens, or of all if there are fewer, with room for
    /// `capacity_tokens` in total. Copies 24,576 bytes a token for the 0.5B models.
    #[must_use]
    pub fn prefix(&self, tokens: usize, capacity_tokens: usize) -> Self {
        let tokens = tokens.min(self.len());
        let values = tokens * self.shape.key_value_heads * self.shape.head_size;
        let layers = match &self.layers {
            _ if tokens == 0 => Layers::Unused,
            Layers::Unused => Layers::Unused,
            Layers::Exact(layers) => {
                let copy = |layer: &ExactLayer| ExactLayer {
                    keys: layer.keys[..values].to_vec(),
                    values: layer.values[..values].to_vec(),
                };
                Layers::Exact(layers.iter().map(copy).collect())
            }
            Layers::Native(layers) => {
                let copy = |layer: &KvLayer<f32>| layer.prefix(tokens, capacity_tokens);
                Layers::Native(layers.iter().map(copy).collect())
            }
        };
        let mut copied = Vec::with_capacity(capacity_tokens.max(tokens));
        copied.extend_from_slice(&self.tokens[..tokens]);
        Self { tokens: copied, shape: self.shape, capacity_tokens, layers }
    }

    /// Forgets all but the first `tokens` tokens. Keeps the memory.
    pub fn truncate(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        let tokens = self.tokens.len();
        let values = tokens * self.shape.key_value_heads * self.shape.head_size;
        match &mut self.layers {
            Layers::Unused => {}
            Layers::Exact(layers) => {
                for layer in layers {
                    layer.keys.truncate(values);
                    layer.values.truncate(values);
                }
            }
            Layers::Native(layers) => layers.iter_mut().for_each(|layer| layer.truncate(tokens)),
        }
    }

    /// Number of leading tokens that `tokens` and this cache have in common.
    pub fn common_prefix(&self, tokens: &[TokenId]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count()
    }

    /// Heap bytes reserved.
    pub fn memory_usage(&self) -> usize {
        let layers: usize = match &self.layers {
            Layers::Unused => 0,
            Layers::Exact(layers) => layers
                .iter()
                .map(|layer| (layer.keys.capacity() + layer.values.capacity()) * size_of::<f32>())
                .sum(),
            Layers::Native(layers) => layers.iter().map(KvLayer::memory_bytes).sum(),
        };
        layers + self.tokens.capacity() * size_of::<TokenId>()
    }

    pub(crate) fn check(&self, config: &ModelConfig) -> Result<(), InferError> {
        let expected = Shape::of(config);
        if self.shape == expected { Ok(()) } else { Err(self.mismatch(expected, None)) }
    }

    /// The layers of a model in `f32` arithmetic.
    pub(crate) fn exact_layers(
        &mut self,
        config: &ModelConfig,
    ) -> Result<&mut [ExactLayer], InferError> {
        self.check(config)?;
        if self.is_empty() && !matches!(self.layers, Layers::Exact(_)) {
            let values = self.capacity_tokens * config.key_value_size();
            let layer = || ExactLayer {
                keys: Vec::with_capacity(values),
                values: Vec::with_capacity(values),
            };
            self.layers = Layers::Exact((0..config.layers).map(|_| layer()).collect());
        }
        match self.layers {
            Layers::Exact(ref mut layers) => Ok(layers),
            _ => Err(self.mismatch(Shape::of(config), Some("exact"))),
        }
    }

    /// The layers of a model in native arithmetic.
    pub(crate) fn native_layers(
        &mut self,
        config: &ModelConfig,
    ) -> Result<&mut [KvLayer<f32>], InferError> {
        self.check(config)?;
        if self.is_empty() && !matches!(self.layers, Layers::Native(_)) {
            let layer = || {
                let mut layer = KvLayer::new(config.key_value_heads, config.head_size())?;
                layer.reserve(self.capacity_tokens);
                Ok(layer)
            };
            let layers = (0..config.layers).map(|_| layer()).collect::<Result<_, InferError>>()?;
            self.layers = Layers::Native(layers);
        }
        match self.layers {
            Layers::Native(ref mut layers) => Ok(layers),
            _ => Err(self.mismatch(Shape::of(config), Some("native"))),
        }
    }

    /// One layer of a cache that a model in native arithmetic has read.
    pub(crate) fn native_layer(&self, index: usize) -> Option<&KvLayer<f32>> {
        match &self.layers {
            Layers::Native(layers) => layers.get(index),
            _ => None,
        }
    }

    /// `precision` is named where it is what differs.
    fn mismatch(&self, expected: Shape, precision: Option<&'static str>) -> InferError {
        let describe = |shape: Shape, precision: Option<&str>| {
            let Shape { layers, key_value_heads, head_size } = shape;
            let precision = precision.map_or(String::new(), |name| format!(", {name}"));
            format!("{layers} x {key_value_heads} x {head_size}{precision}")
        };
        let own = match &self.layers {
            Layers::Unused => "unused",
            Layers::Exact(_) => "exact",
            Layers::Native(_) => "native",
        };
        InferError::CacheMismatch {
            expected: describe(expected, precision),
            got: describe(self.shape, precision.map(|_| own)),
        }
    }

    /// Marks tokens as read, once every layer has their keys and values.
    pub(crate) fn commit(&mut self, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
    }
}
