//! Qwen2 over slices of `f32` and packed matrices.

use std::sync::Arc;

use molde_kernels::{Kernels, KvLayer, PackedMatrix, RotaryEmbedding, WeightMemory};
use rayon::ThreadPool;

use super::layer::Layer;
use super::workspace::NativeScratch;
use crate::checkpoint::{Checkpoint, Packing, Role};
use crate::feed::{Feed, Logits, Want};
use crate::network::{Network, Scratch, check_caches};
use crate::{InferError, ModelConfig};

/// A Qwen2 whose matrices are packed for the kernels.
#[derive(Debug)]
pub(crate) struct NativeNetwork {
    config: ModelConfig,
    kernels: Kernels,
    pool: Arc<ThreadPool>,
    embedding: PackedMatrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// `None` where the embedding table is the head as well.
    head: Option<PackedMatrix>,
    rotary: RotaryEmbedding,
}

impl NativeNetwork {
    /// Reads the weights: of the embedding table and the head the first `vocabulary_len` rows.
    pub(crate) fn load(
        config: &ModelConfig,
        vocabulary_len: usize,
        tied_head: bool,
        checkpoint: &dyn Checkpoint,
        pool: Arc<ThreadPool>,
    ) -> Result<Self, InferError> {
        // Both before any work, for their checks of the size of a head.
        let rotary = RotaryEmbedding::new(config.head_size(), config.rope_theta)?;
        KvLayer::<f32>::new(config.key_value_heads, config.head_size())?;
        let hidden = config.hidden_size;
        let shape = (checkpoint.rows(Role::Embedding, hidden)?, hidden);
        let packing = Packing { pool: &pool, memory: &WeightMemory::new() };
        let table = |role| checkpoint.packed(role, shape, vocabulary_len, packing);
        let embedding = table(Role::Embedding)?;
        let head = if tied_head { None } else { Some(table(Role::Head)?) };
        let layers = (0..config.layers)
            .map(|index| Layer::load(config, index, checkpoint, packing))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            config: config.clone(),
            kernels: Kernels::detect(),
            embedding,
            layers,
            norm: checkpoint.vector(Role::OutputNorm, hidden)?,
            head,
            rotary,
            pool,
        })
    }
}

impl NativeNetwork {
    fn head(&self) -> &PackedMatrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// Copies the hidden states of the tokens after which logits are wanted to `work.queries`, those
    /// that want all first, and checks them after the last norm, which goes to `work.scratch`.
    fn gather(&self, feeds: &[Feed], work: &mut NativeScratch) -> Result<usize, InferError> {
        let NativeScratch { hidden, queries, scratch, .. } = work;
        let width = self.config.hidden_size;
        let mut count = 0;
        for all in [true, false] {
            let mut first = 0;
            for feed in feeds {
                for (index, want) in feed.wants.iter().enumerate() {
                    if *want != Want::Nothing && (*want == Want::All) == all {
                        let row = first + feed.token_of(index);
                        queries[count * width..][..width]
                            .copy_from_slice(&hidden[row * width..][..width]);
                        count += 1;
                    }
                }
                first += feed.tokens.len();
            }
        }
        if count > 0 {
            let epsilon = self.config.rms_norm_eps as f32;
            let (from, to) = (&queries[..count * width], &mut scratch[..count * width]);
            self.kernels.rms_norm(&self.pool, from, &self.norm, epsilon, to)?;
        }
        Ok(count)
    }
}

impl Network for NativeNetwork {
    fn new_scratch(&self, capacity_tokens: usize) -> Scratch {
        Scratch::Native(Box::new(NativeScratch::new(&self.config, capacity_tokens)))
    }

    fn read(&self, feeds: &mut [Feed], scratch: &mut Scratch) -> Result<(), InferError> {
        let Self { config, kernels, pool, embedding, layers, rotary, .. } = self;
        check_caches(config, feeds)?;
        let work = native(self, scratch);
        work.arrange(config, feeds);
        let positions = work.places.iter().map(|place| place.positions - 1);
        rotary.rotations(positions, &mut work.rotations);
        let tokens = feeds.iter().flat_map(|feed| &feed.tokens);
        for (row, &token) in work.hidden.chunks_exact_mut(config.hidden_size).zip(tokens) {
            embedding.dequantize_row(token as usize, row)?;
        }
        layers.iter().try_for_each(|layer| layer.forward(config, *kernels, pool, work, feeds))
    }

    fn logits(
        &self,
        feeds: &[Feed],
        scratch: &mut Scratch,
        to: &mut Logits,
    ) -> Result<(), InferError> {
        let Self { config, kernels, pool, .. } = self;
        let work = native(self, scratch);
        let (width, head) = (config.hidden_size, self.head());
        to.arrange(feeds, head.rows());
        let count = self.gather(feeds, work)?;
        let NativeScratch { scratch, quantized, .. } = work;
        let normal = &scratch[..count * width];
        if let Some(damaged) = normal
            .chunks_exact(width)
            .position(|token| !token.iter().all(|value| value.is_finite()))
        {
            return Err(InferError::NotFinite { position: position_of(feeds, damaged) });
        }
        let (all, some) = normal.split_at(to.full() * width);
        if to.full() > 0 {
            quantized.quantize(*kernels, pool, all, to.full(), width)?;
            kernels.matmul(pool, quantized, head, to.full_mut(head.rows()))?;
        }
        let mut some = some.chunks_exact(width);
        for (index, feed) in feeds.iter().enumerate() {
            for (want_index, want) in feed.wants.iter().enumerate() {
                if let Want::Rows(range) = want
                    && let Some(token) = some.next()
                {
                    quantized.quantize(*kernels, pool, token, 1, width)?;
                    let (rows, to) = (feed.rows(range), to.get_mut(index, want_index));
                    kernels.matmul_rows(pool, quantized, head, rows, to)?;
                }
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.embedding.memory_bytes()
            + self.layer_bytes()
            + size_of_val(self.norm.as_slice())
            + self.head.as_ref().map_or(0, PackedMatrix::memory_bytes)
    }

    fn layer_bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }

    fn head_bytes(&self) -> usize {
        self.head().memory_bytes()
    }
}

/// The buffers of this network; those of another kind are replaced.
fn native<'s>(network: &NativeNetwork, scratch: &'s mut Scratch) -> &'s mut NativeScratch {
    if !matches!(scratch, Scratch::Native(_)) {
        *scratch = network.new_scratch(0);
    }
    match scratch {
        Scratch::Native(work) => work,
        Scratch::Exact(_) => unreachable!("replaced just now"),
    }
}

/// The token, within its feed, of row `row` of those that [`NativeNetwork::gather`] collected.
fn position_of(feeds: &[Feed], row: usize) -> usize {
    let wants = |all: bool| {
        feeds.iter().flat_map(move |feed| {
            let is_meant = move |want: &Want| *want != Want::Nothing && (*want == Want::All) == all;
            let wants = feed.wants.iter().enumerate();
            wants.filter(move |(_, want)| is_meant(want)).map(|(index, _)| feed.token_of(index))
        })
    };
    wants(true).chain(wants(false)).nth(row).unwrap_or(0)
}
