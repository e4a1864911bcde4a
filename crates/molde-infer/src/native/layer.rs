//! One transformer layer.

use molde_kernels::{Kernels, PackedMatrix, Product};
use rayon::ThreadPool;

use super::workspace::NativeScratch;
use crate::checkpoint::{Checkpoint, LayerRole, Packing, Role};
use crate::feed::Feed;
use crate::{InferError, ModelConfig};

#[derive(Debug)]
pub(super) struct Layer {
    index: usize,
    input_norm: Vec<f32>,
    q_proj: PackedMatrix,
    q_bias: Vec<f32>,
    k_proj: PackedMatrix,
    k_bias: Vec<f32>,
    v_proj: PackedMatrix,
    v_bias: Vec<f32>,
    o_proj: PackedMatrix,
    post_attention_norm: Vec<f32>,
    gate_proj: PackedMatrix,
    up_proj: PackedMatrix,
    down_proj: PackedMatrix,
}

impl Layer {
    pub(super) fn load(
        config: &ModelConfig,
        index: usize,
        checkpoint: &dyn Checkpoint,
        packing: Packing<'_>,
    ) -> Result<Self, InferError> {
        use LayerRole as L;
        let hidden = config.hidden_size;
        let key_value = config.key_value_size();
        let inner = config.intermediate_size;
        let vector = |role, length| checkpoint.vector(Role::Layer(index, role), length);
        let matrix = |role, rows, columns| {
            checkpoint.packed(Role::Layer(index, role), (rows, columns), rows, packing)
        };
        Ok(Self {
            index,
            input_norm: vector(L::InputNorm, hidden)?,
            q_proj: matrix(L::QProj, hidden, hidden)?,
            q_bias: vector(L::QBias, hidden)?,
            k_proj: matrix(L::KProj, key_value, hidden)?,
            k_bias: vector(L::KBias, key_value)?,
            v_proj: matrix(L::VProj, key_value, hidden)?,
            v_bias: vector(L::VBias, key_value)?,
            o_proj: matrix(L::OProj, hidden, hidden)?,
            post_attention_norm: vector(L::PostAttentionNorm, hidden)?,
            gate_proj: matrix(L::GateProj, inner, hidden)?,
            up_proj: matrix(L::UpProj, inner, hidden)?,
            down_proj: matrix(L::DownProj, hidden, inner)?,
        })
    }

    /// Replaces `work.hidden` by what the layer makes of it, and appends keys and values to the
    /// caches of the feeds.
    pub(super) fn forward(
        &self,
        config: &ModelConfig,
        kernels: Kernels,
        pool: &ThreadPool,
        work: &mut NativeScratch,
        feeds: &mut [Feed],
    ) -> Result<(), InferError> {
        self.attend(config, kernels, pool, work, feeds)?;
        self.feed_forward(config, kernels, pool, work)
    }

    fn attend(
        &self,
        config: &ModelConfig,
        kernels: Kernels,
        pool: &ThreadPool,
        work: &mut NativeScratch,
        feeds: &mut [Feed],
    ) -> Result<(), InferError> {
        let NativeScratch {
            tokens,
            hidden,
            scratch,
            queries,
            keys,
            values,
            quantized,
            rotations,
            places,
            ..
        } = work;
        let width = config.hidden_size;
        let scale = 1.0 / (config.head_size() as f32).sqrt();

        kernels.rms_norm(pool, hidden, &self.input_norm, config.rms_norm_eps as f32, scratch)?;
        quantized.quantize(kernels, pool, scratch, *tokens, width)?;
        let mut products = [
            Product { weights: &self.q_proj, output: queries },
            Product { weights: &self.k_proj, output: keys },
            Product { weights: &self.v_proj, output: values },
        ];
        kernels.matmul_all(pool, quantized, &mut products)?;
        kernels.add_bias(&self.q_bias, queries)?;
        kernels.add_bias(&self.k_bias, keys)?;
        kernels.add_bias(&self.v_bias, values)?;
        kernels.rope(rotations, config.attention_heads, queries)?;
        kernels.rope(rotations, config.key_value_heads, keys)?;
        let (mut keys, mut values) = (&keys[..], &values[..]);
        for feed in feeds.iter_mut().filter(|feed| !feed.is_empty()) {
            let own = feed.tokens.len() * config.key_value_size();
            let (own_keys, rest_keys) = keys.split_at(own);
            let (own_values, rest_values) = values.split_at(own);
            feed.cache.native_layers(config)?[self.index].append(own_keys, own_values)?;
            (keys, values) = (rest_keys, rest_values);
        }
        let feeds = &*feeds;
        let layer = |sequence: usize| feeds.get(sequence)?.cache.native_layer(self.index);
        let heads = config.attention_heads;
        kernels.attention(pool, queries, heads, places, layer, scale, scratch)?;

        quantized.quantize(kernels, pool, scratch, *tokens, width)?;
        kernels.matmul(pool, quantized, &self.o_proj, scratch)?;
        Ok(kernels.add_scaled(1.0, scratch, hidden)?)
    }

    fn feed_forward(
        &self,
        config: &ModelConfig,
        kernels: Kernels,
        pool: &ThreadPool,
        work: &mut NativeScratch,
    ) -> Result<(), InferError> {
        let NativeScratch { tokens, hidden, scratch, gate, up, quantized, .. } = work;
        let eps = config.rms_norm_eps as f32;

        kernels.rms_norm(pool, hidden, &self.post_attention_norm, eps, scratch)?;
        quantized.quantize(kernels, pool, scratch, *tokens, config.hidden_size)?;
        let mut products = [
            Product { weights: &self.gate_proj, output: gate },
            Product { weights: &self.up_proj, output: up },
        ];
        kernels.matmul_all(pool, quantized, &mut products)?;
        kernels.silu_mul(pool, gate, up)?;

        quantized.quantize(kernels, pool, gate, *tokens, config.intermediate_size)?;
        kernels.matmul(pool, quantized, &self.down_proj, scratch)?;
        Ok(kernels.add_scaled(1.0, scratch, hidden)?)
    }

    pub(super) fn bytes(&self) -> usize {
        let matrices = [
            &self.q_proj,
            &self.k_proj,
            &self.v_proj,
            &self.o_proj,
            &self.gate_proj,
            &self.up_proj,
            &self.down_proj,
        ];
        let vectors =
            [&self.input_norm, &self.q_bias, &self.k_bias, &self.v_bias, &self.post_attention_norm];
        matrices.into_iter().map(PackedMatrix::memory_bytes).sum::<usize>()
            + vectors.into_iter().map(|vector| size_of_val(vector.as_slice())).sum::<usize>()
    }
}
