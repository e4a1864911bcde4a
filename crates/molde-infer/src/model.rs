//! Qwen2: token ids in, logits out.

use std::num::NonZeroUsize;

use candle_core::{CpuStorage, Device, Storage, Tensor};
use candle_nn::ops::{rms_norm, silu};
use candle_nn::rotary_emb::rope_thd;
use molde_vocab::TokenId;

use crate::attention::attend;
use crate::checkpoint::{Checkpoint, LayerRole, Role};
use crate::kv_cache::LayerCache;
use crate::linear::{Linear, Weight};
use crate::{InferError, Interrupt, KvCache, ModelConfig, Precision};

/// How a model is loaded and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOptions {
    /// How weights are held. Default: [`Precision::Native`].
    pub precision: Precision,
    /// Threads of this model's own pool, for attention and for `f32` products. Default: `None`,
    /// the process-wide rayon pool. Products with quantized weights run on candle's own
    /// process-wide pool, whose size is `CANDLE_NUM_THREADS`, else `RAYON_NUM_THREADS`, else the
    /// number of physical cores; they are computed one call at a time.
    pub threads: Option<NonZeroUsize>,
    /// Tokens read at once while a prompt is read; cancellation is noticed between such chunks.
    /// Default: 64. Larger chunks read the weights less often and need more scratch memory.
    pub prefill_chunk_tokens: NonZeroUsize,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            precision: Precision::default(),
            threads: None,
            prefill_chunk_tokens: NonZeroUsize::new(64).expect("64 is not zero"),
        }
    }
}

/// The weights of a Qwen2 model. Immutable; share it as an `Arc` between threads.
///
/// All state of a sequence is in its [`KvCache`].
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    vocabulary_len: usize,
    embedding: Weight,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    inverse_frequencies: Vec<f32>,
    prefill_chunk_tokens: usize,
    pool: Option<rayon::ThreadPool>,
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

impl Model {
    /// Reads the weights. Only the first `vocabulary_len` rows of the embedding table and the
    /// head are kept: the rest is padding that no token uses.
    pub(crate) fn load(
        config: ModelConfig,
        vocabulary_len: usize,
        tied_head: bool,
        checkpoint: &dyn Checkpoint,
        options: &ModelOptions,
    ) -> Result<Self, InferError> {
        let pool = match options.threads {
            None => None,
            Some(threads) => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads.get())
                    .build()
                    .map_err(|source| InferError::Threads { threads: threads.get(), source })?,
            ),
        };
        let hidden = config.hidden_size;
        let precision = options.precision;
        let rows = checkpoint.rows(Role::Embedding, hidden)?;
        let table = |role| checkpoint.matrix(role, (rows, hidden), vocabulary_len, precision);
        let embedding = table(Role::Embedding)?;
        let head = if tied_head { embedding.clone() } else { table(Role::Head)? };
        let layers = (0..config.layers)
            .map(|index| Layer::load(&config, index, checkpoint, precision))
            .collect::<Result<_, _>>()?;
        let norm = checkpoint.vector(Role::OutputNorm, hidden)?;
        let head_size = config.head_size();
        let theta = config.rope_theta as f32;
        let inverse_frequencies = (0..head_size)
            .step_by(2)
            .map(|i| 1.0 / theta.powf(i as f32 / head_size as f32))
            .collect();
        Ok(Self {
            vocabulary_len,
            embedding,
            layers,
            norm,
            head: Linear::new(head, None),
            inverse_frequencies,
            prefill_chunk_tokens: options.prefill_chunk_tokens.get(),
            pool,
            config,
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Number of logits: the tokens of the tokenizer, without the padding rows of the head.
    pub fn vocabulary_len(&self) -> usize {
        self.vocabulary_len
    }

    /// An empty cache for this model, with memory reserved for `capacity_tokens` tokens.
    pub fn new_cache(&self, capacity_tokens: usize) -> KvCache {
        KvCache::new(&self.config, capacity_tokens)
    }

    /// Heap bytes of the weights.
    pub fn memory_usage(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::bytes).sum();
        // A tied head shares the table: the same storage, counted once.
        self.embedding.bytes() + layers + if self.is_tied() { 0 } else { self.head.bytes() }
    }

    fn is_tied(&self) -> bool {
        self.head.shares(&self.embedding)
    }

    /// Reads `tokens` after those in the cache and returns the logits that follow the last one:
    /// [`vocabulary_len`](Self::vocabulary_len) of them.
    ///
    /// # Errors
    /// [`InferError::EmptyPrompt`], [`InferError::TokenOutOfRange`],
    /// [`InferError::ContextOverflow`], [`InferError::CacheMismatch`] before anything is read;
    /// [`InferError::NotFinite`] for damaged weights.
    ///
    /// # Complexity
    /// One pass over the weights for every
    /// [`prefill_chunk_tokens`](ModelOptions::prefill_chunk_tokens) tokens; attention grows with
    /// the product of new and visible tokens.
    pub fn forward(&self, tokens: &[TokenId], cache: &mut KvCache) -> Result<Vec<f32>, InferError> {
        self.forward_unless(tokens, cache, &Interrupt::default())
    }

    /// Like [`forward`](Self::forward), and stops between chunks if `interrupt` says so. The
    /// cache then holds the chunks that were read, and nothing of the others.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward), [`InferError::Cancelled`] and
    /// [`InferError::DeadlineExceeded`].
    pub fn forward_unless(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, InferError> {
        self.install(|| {
            let mut last = None;
            self.read(tokens, cache, interrupt, |hidden| {
                last = Some(hidden);
                Ok(())
            })?;
            let hidden = last.ok_or(InferError::EmptyPrompt)?;
            let rows = hidden.dim(0)?;
            let logits = self.logits(&hidden.narrow(0, rows - 1, 1)?)?;
            Ok(logits.flatten_all()?.to_vec1()?)
        })
    }

    /// Like [`forward`](Self::forward), and returns the logits after every token: one vector a
    /// token. Needs four bytes a logit; meant for tests and for scoring.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward).
    pub fn forward_all(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
    ) -> Result<Vec<Vec<f32>>, InferError> {
        self.install(|| {
            let mut logits = Vec::with_capacity(tokens.len());
            self.read(tokens, cache, &Interrupt::default(), |hidden| {
                logits.extend(self.logits(&hidden)?.to_vec2()?);
                Ok(())
            })?;
            Ok(logits)
        })
    }

    /// Reads `tokens` after those in the cache, without computing logits: to prepare a prefix
    /// that several sequences share.
    ///
    /// # Errors
    /// Those of [`forward_unless`](Self::forward_unless).
    pub fn prefill(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
    ) -> Result<(), InferError> {
        self.install(|| self.read(tokens, cache, interrupt, |_| Ok(())))
    }

    fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Passes the final hidden states `[chunk, hidden]` of one chunk after the other to `emit`.
    fn read(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
        mut emit: impl FnMut(Tensor) -> Result<(), InferError>,
    ) -> Result<(), InferError> {
        if tokens.is_empty() {
            return Err(InferError::EmptyPrompt);
        }
        cache.check(&self.config)?;
        let vocabulary = self.vocabulary_len;
        if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(InferError::TokenOutOfRange { token, vocabulary });
        }
        let total = cache.len().saturating_add(tokens.len());
        if total > self.config.context_tokens {
            return Err(InferError::ContextOverflow {
                prompt_tokens: total,
                max_tokens: 0,
                context_tokens: self.config.context_tokens,
            });
        }
        for chunk in tokens.chunks(self.prefill_chunk_tokens) {
            interrupt.check()?;
            match self.read_chunk(chunk, cache) {
                Ok(hidden) => {
                    cache.commit(chunk);
                    emit(hidden)?;
                }
                Err(error) => {
                    // Layers that already have the chunk lose it again.
                    cache.truncate(cache.len());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn read_chunk(&self, tokens: &[TokenId], cache: &mut KvCache) -> Result<Tensor, InferError> {
        let (cos, sin) = self.rotations(cache.len(), tokens.len())?;
        let mut x = self.embedding.select_rows(tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&self.config, &x, (&cos, &sin), cache.layer_mut(index))?;
        }
        Ok(x)
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

    fn logits(&self, hidden: &Tensor) -> Result<Tensor, InferError> {
        let x = rms_norm(&hidden.contiguous()?, &self.norm, self.config.rms_norm_eps as f32)?;
        // A quantized product takes what is not a number for zero, so it has to be found here.
        let damaged = with_slice(&x, |x| {
            x.chunks(self.config.hidden_size).position(|token| !token.iter().all(|v| v.is_finite()))
        })?;
        match damaged {
            Some(position) => Err(InferError::NotFinite { position }),
            None => self.head.forward(&x),
        }
    }
}

impl Layer {
    fn load(
        config: &ModelConfig,
        index: usize,
        checkpoint: &dyn Checkpoint,
        precision: Precision,
    ) -> Result<Self, InferError> {
        use LayerRole as L;
        let hidden = config.hidden_size;
        let key_value = config.key_value_size();
        let inner = config.intermediate_size;
        let vector = |role, length| checkpoint.vector(Role::Layer(index, role), length);
        let matrix = |role, rows, columns, bias| {
            let role = Role::Layer(index, role);
            let weight = checkpoint.matrix(role, (rows, columns), rows, precision)?;
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
        cache: &mut LayerCache,
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
