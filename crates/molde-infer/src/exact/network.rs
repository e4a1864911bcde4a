//! Qwen2 in `f32`, one tensor operation after the other.

use candle_core::{CpuStorage, Device, Storage, Tensor};
use candle_nn::ops::{rms_norm, silu};
use candle_nn::rotary_emb::rope_thd;

use super::attention::attend;
use super::linear::{Linear, Table};
use crate::checkpoint::{Checkpoint, LayerRole, Role};
use crate::feed::{Feed, Logits, Want};
use crate::kv_cache::ExactLayer;
use crate::network::{Network, Scratch, check_caches};
use crate::{InferError, ModelConfig};

/// A Qwen2 whose weights are `f32` tensors.
#[derive(Debug)]
pub(crate) struct ExactNetwork {
    config: ModelConfig,
    embedding: Table,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    tied_head: bool,
    inverse_frequencies: Vec<f32>,
}

#[derive(Debug)]
struct Layer {
    input_norm: Tensor,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    post_attention_norm: Tensor,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

impl ExactNetwork {
    /// Reads the weights: of the embedding table and the head the first `vocabulary_len` rows.
    pub(crate) fn load(
        config: &ModelConfig,
        vocabulary_len: usize,
        tied_head: bool,
        checkpoint: &dyn Checkpoint,
    ) -> Result<Self, InferError> {
        let hidden = config.hidden_size;
        let shape = (checkpoint.rows(Role::Embedding, hidden)?, hidden);
        let (embedding, head) = if tied_head {
            let table = checkpoint.matrix(Role::Embedding, shape, vocabulary_len)?;
            (Table::Full(table.clone()), table)
        } else {
            let table = checkpoint.table(Role::Embedding, shape, vocabulary_len)?;
            (table, checkpoint.matrix(Role::Head, shape, vocabulary_len)?)
        };
        let layers = (0..config.layers)
            .map(|index| Layer::load(config, index, checkpoint))
            .collect::<Result<_, _>>()?;
        let head_size = config.head_size();
        let theta = config.rope_theta as f32;
        let inverse_frequencies = (0..head_size)
            .step_by(2)
            .map(|i| 1.0 / theta.powf(i as f32 / head_size as f32))
            .collect();
        Ok(Self {
            config: config.clone(),
            embedding,
            layers,
            norm: vector(checkpoint, Role::OutputNorm, hidden)?,
            head: Linear::new(head, None),
            tied_head,
            inverse_frequencies,
        })
    }

    /// Cosines and sines of the positions from `first` on: `[count, head_size / 2]` each.
    fn rotations(&self, first: usize, count: usize) -> Result<(Tensor, Tensor), InferError> {
        let shape = (count, self.inverse_frequencies.len());
        let angles = |f: fn(f32) -> f32| {
            let values: Vec<f32> = (first..first + count)
                .flat_map(|position| {
                    self.inverse_frequencies.iter().map(move |&freq| f(position as f32 * freq))
                })
                .collect();
            Tensor::from_vec(values, shape, &Device::Cpu)
        };
        Ok((angles(f32::cos)?, angles(f32::sin)?))
    }
}

/// The final hidden states of the feeds read last, `[tokens, hidden]` each.
#[derive(Debug, Default)]
pub(crate) struct ExactScratch {
    hidden: Vec<Option<Tensor>>,
}

impl Network for ExactNetwork {
    fn new_scratch(&self, _capacity_tokens: usize) -> Scratch {
        Scratch::Exact(ExactScratch::default())
    }

    fn read(&self, feeds: &mut [Feed], scratch: &mut Scratch) -> Result<(), InferError> {
        check_caches(&self.config, feeds)?;
        let mut hidden = Vec::with_capacity(feeds.len());
        for feed in feeds {
            hidden.push(if feed.is_empty() { None } else { Some(self.read_one(feed)?) });
        }
        *scratch = Scratch::Exact(ExactScratch { hidden });
        Ok(())
    }

    fn logits(
        &self,
        feeds: &[Feed],
        scratch: &mut Scratch,
        to: &mut Logits,
    ) -> Result<(), InferError> {
        let Scratch::Exact(scratch) = scratch else { return Err(InferError::EmptyPrompt) };
        to.arrange(feeds, self.head.rows()?);
        for (index, (feed, hidden)) in feeds.iter().zip(&scratch.hidden).enumerate() {
            let Some(hidden) = hidden else { continue };
            let Some(first) = feed.wants.iter().position(|want| *want != Want::Nothing) else {
                continue;
            };
            let logits = self.logits_of(hidden, feed.token_of(first))?;
            for (after, want) in feed.wants[first..].iter().enumerate() {
                let all = &logits[after];
                let to = to.get_mut(index, first + after);
                match want {
                    Want::Nothing => {}
                    Want::All => to.copy_from_slice(all),
                    Want::Rows(range) => {
                        for (to, &row) in to.iter_mut().zip(feed.rows(range)) {
                            *to = all[row as usize];
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let layers = self.layer_bytes();
        let head = if self.tied_head { 0 } else { self.head.bytes() };
        let norm = self.norm.elem_count() * size_of::<f32>();
        self.embedding.bytes() + layers + norm + head
    }

    fn layer_bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }

    fn head_bytes(&self) -> usize {
        self.head.bytes()
    }
}

impl ExactNetwork {
    fn read_one(&self, feed: &mut Feed) -> Result<Tensor, InferError> {
        let (tokens, cache) = (&feed.tokens, &mut feed.cache);
        let (cos, sin) = self.rotations(cache.len(), tokens.len())?;
        let mut x = self.embedding.select_rows(tokens)?;
        for (layer, cache) in self.layers.iter().zip(cache.exact_layers(&self.config)?) {
            x = layer.forward(&self.config, &x, (&cos, &sin), cache)?;
        }
        Ok(x)
    }

    /// All logits after each token from `first` on.
    fn logits_of(&self, hidden: &Tensor, first: usize) -> Result<Vec<Vec<f32>>, InferError> {
        let count = hidden.dim(0)?.saturating_sub(first);
        let hidden = hidden.narrow(0, first, count)?.contiguous()?;
        let x = rms_norm(&hidden, &self.norm, self.config.rms_norm_eps as f32)?;
        let damaged = with_slice(&x, |x| {
            x.chunks(self.config.hidden_size).position(|token| !token.iter().all(|v| v.is_finite()))
        })?;
        if let Some(position) = damaged {
            return Err(InferError::NotFinite { position: first + position });
        }
        Ok(self.head.forward(&x)?.to_vec2()?)
    }
}

impl Layer {
    fn load(
        config: &ModelConfig,
        index: usize,
        checkpoint: &dyn Checkpoint,
    ) -> Result<Self, InferError> {
        use LayerRole as L;
        let hidden = config.hidden_size;
        let key_value = config.key_value_size();
        let inner = config.intermediate_size;
        let vector = |role, length| vector(checkpoint, Role::Layer(index, role), length);
        let matrix = |role, rows, columns, bias| {
            let weight = checkpoint.matrix(Role::Layer(index, role), (rows, columns), rows)?;
            Ok::<_, InferError>(Linear::new(weight, bias))
        };
        Ok(Self {
            input_norm: vector(L::InputNorm, hidden)?,
            q_proj: matrix(L::QProj, hidden, hidden, Some(vector(L::QBias, hidden)?))?,
            k_proj: matrix(L::KProj, key_value, hidden, Some(vector(L::KBias, key_value)?))?,
            v_proj: matrix(L::VProj, key_value, hidden, Some(vector(L::VBias, key_value)?))?,
            o_proj: matrix(L::OProj, hidden, hidden, None)?,
            post_attention_norm: vector(L::PostAttentionNorm, hidden)?,
            gate_proj: matrix(L::GateProj, inner, hidden, None)?,
            up_proj: matrix(L::UpProj, inner, hidden, None)?,
            down_proj: matrix(L::DownProj, hidden, inner, None)?,
        })
    }

    /// `x` and the result are `[tokens, hidden]`.
    fn forward(
        &self,
        config: &ModelConfig,
        x: &Tensor,
        (cos, sin): (&Tensor, &Tensor),
        cache: &mut ExactLayer,
    ) -> Result<Tensor, InferError> {
        let tokens = x.dim(0)?;
        let eps = config.rms_norm_eps as f32;
        let heads = |x: &Tensor, heads| x.reshape((1, tokens, heads, config.head_size()));

        let h = rms_norm(x, &self.input_norm, eps)?;
        let q = rope_thd(&heads(&self.q_proj.forward(&h)?, config.attention_heads)?, cos, sin)?;
        let k = rope_thd(&heads(&self.k_proj.forward(&h)?, config.key_value_heads)?, cos, sin)?;
        let v = self.v_proj.forward(&h)?;
        with_slice(&k, |k| cache.keys.extend_from_slice(k))?;
        with_slice(&v, |v| cache.values.extend_from_slice(v))?;
        let attended = with_slice(&q, |q| attend(config, q, cache))?;
        let attended = Tensor::from_vec(attended, (tokens, config.hidden_size), &Device::Cpu)?;
        let x = (x + self.o_proj.forward(&attended)?)?;

        let h = rms_norm(&x, &self.post_attention_norm, eps)?;
        let h = (silu(&self.gate_proj.forward(&h)?)? * self.up_proj.forward(&h)?)?;
        Ok((x + self.down_proj.forward(&h)?)?)
    }

    fn bytes(&self) -> usize {
        let Self { q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, .. } = self;
        let norms = self.input_norm.elem_count() + self.post_attention_norm.elem_count();
        [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]
            .into_iter()
            .map(Linear::bytes)
            .sum::<usize>()
            + norms * size_of::<f32>()
    }
}

fn vector(checkpoint: &dyn Checkpoint, role: Role, length: usize) -> Result<Tensor, InferError> {
    Ok(Tensor::from_vec(checkpoint.vector(role, length)?, length, &Device::Cpu)?)
}

/// Lends the values of a contiguous `f32` tensor.
fn with_slice<T>(tensor: &Tensor, work: impl FnOnce(&[f32]) -> T) -> Result<T, InferError> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(CpuStorage::F32(values)) = &*storage else {
        let got = tensor.dtype();
        let expected = candle_core::DType::F32;
        let error = candle_core::Error::UnexpectedDType { msg: "activations", expected, got };
        return Err(error.into());
    };
    let start = layout.start_offset();
    Ok(work(&values[start..start + layout.shape().elem_count()]))
}
