//! Qwen2 over slices of `f32` and packed matrices.

use std::sync::Arc;

use molde_kernels::{Kernels, KvLayer, PackedMatrix, RotaryEmbedding};
use molde_vocab::TokenId;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::layer::Layer;
use super::workspace::Workspace;
use crate::checkpoint::{Checkpoint, Role};
use crate::network::{Network, Pass};
use crate::{InferError, KvCache, ModelConfig};

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
        let table = |role| checkpoint.packed(role, shape, vocabulary_len, &pool);
        let embedding = table(Role::Embedding)?;
        let head = if tied_head { None } else { Some(table(Role::Head)?) };
        let layers = (0..config.layers)
            .map(|index| Layer::load(config, index, checkpoint, &pool))
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

impl Network for NativeNetwork {
    fn pass(&self, chunk_tokens: usize) -> Box<dyn Pass + '_> {
        Box::new(NativePass { network: self, work: Workspace::new(&self.config, chunk_tokens) })
    }

    fn bytes(&self) -> usize {
        self.embedding.memory_bytes()
            + self.layers.iter().map(Layer::bytes).sum::<usize>()
            + size_of_val(self.norm.as_slice())
            + self.head.as_ref().map_or(0, PackedMatrix::memory_bytes)
    }
}

struct NativePass<'m> {
    network: &'m NativeNetwork,
    work: Workspace,
}

impl Pass for NativePass<'_> {
    fn read(&mut self, tokens: &[TokenId], cache: &mut KvCache) -> Result<(), InferError> {
        let NativeNetwork { config, kernels, pool, embedding, layers, rotary, .. } = self.network;
        let work = &mut self.work;
        work.resize(config, tokens.len());
        rotary.rotations(cache.len(), tokens.len(), &mut work.rotations);
        work.hidden
            .par_chunks_exact_mut(config.hidden_size)
            .zip(tokens)
            .try_for_each(|(row, &token)| embedding.dequantize_row(token as usize, row))?;
        for (layer, cache) in layers.iter().zip(cache.native_layers(config)?) {
            layer.forward(config, *kernels, pool, work, cache)?;
        }
        Ok(())
    }

    fn logits(&mut self, count: usize) -> Result<Vec<f32>, InferError> {
        let NativeNetwork { config, kernels, pool, embedding, norm, head, .. } = self.network;
        let Workspace { tokens, hidden, scratch, quantized, .. } = &mut self.work;
        let width = config.hidden_size;
        let count = count.min(*tokens);
        let hidden = &hidden[(*tokens - count) * width..];
        let normal = &mut scratch[..count * width];
        kernels.rms_norm(pool, hidden, norm, config.rms_norm_eps as f32, normal)?;
        let is_damaged = |token: &[f32]| !token.iter().all(|value| value.is_finite());
        if let Some(position) = normal.chunks_exact(width).position(is_damaged) {
            return Err(InferError::NotFinite { position });
        }
        quantized.quantize(*kernels, pool, normal, count, width)?;
        let head = head.as_ref().unwrap_or(embedding);
        let mut logits = vec![0.0; count * head.rows()];
        kernels.matmul(pool, quantized, head, &mut logits)?;
        Ok(logits)
    }
}
