//! Qwen2: token ids in, logits out.

use std::num::NonZeroUsize;
use std::sync::Arc;

use molde_vocab::TokenId;
use rayon::ThreadPool;

use crate::checkpoint::Checkpoint;
use crate::exact::ExactNetwork;
use crate::native::NativeNetwork;
use crate::network::{Network, Pass};
use crate::{InferError, Interrupt, KvCache, ModelConfig, Precision};

/// How a model is loaded and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOptions {
    /// How weights are held. Default: [`Precision::Native`].
    pub precision: Precision,
    /// Threads of this model's own pool, on which all its work runs; calls from several threads
    /// share it. Default: `None`, one for each processor that this process may use. The number
    /// changes speed only. Under [`Precision::Exact`] the library's `f32` product asks for as
    /// many parts as `RAYON_NUM_THREADS`, else the number of physical cores, says.
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
    network: Box<dyn Network>,
    prefill_chunk_tokens: usize,
    pool: Arc<ThreadPool>,
}

impl Model {
    /// The instruction set that the kernels of [`Precision::Native`](crate::Precision::Native) use
    /// on this processor, such as `avx2`.
    pub fn instruction_set() -> &'static str {
        molde_kernels::Kernels::detect().isa().name()
    }

    /// Reads the weights. Only the first `vocabulary_len` rows of the embedding table and the
    /// head are kept: the rest is padding that no token uses.
    pub(crate) fn load(
        config: ModelConfig,
        vocabulary_len: usize,
        tied_head: bool,
        checkpoint: &dyn Checkpoint,
        options: &ModelOptions,
    ) -> Result<Self, InferError> {
        let threads = match options.threads {
            Some(threads) => threads.get(),
            None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("model-{index}"))
            .build()
            .map_err(|source| InferError::Threads { threads, source })?;
        let pool = Arc::new(pool);
        let network: Box<dyn Network> = match options.precision {
            Precision::Native => Box::new(NativeNetwork::load(
                &config,
                vocabulary_len,
                tied_head,
                checkpoint,
                Arc::clone(&pool),
            )?),
            Precision::Exact => {
                Box::new(ExactNetwork::load(&config, vocabulary_len, tied_head, checkpoint)?)
            }
        };
        Ok(Self {
            vocabulary_len,
            network,
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

    /// An empty cache for this model, with room for `capacity_tokens` tokens.
    pub fn new_cache(&self, capacity_tokens: usize) -> KvCache {
        KvCache::new(&self.config, capacity_tokens)
    }

    /// Heap bytes of the weights.
    pub fn memory_usage(&self) -> usize {
        self.network.bytes()
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
        let last = tokens.len().saturating_sub(1);
        self.pool.install(|| {
            let mut pass = self.pass(tokens);
            self.read(tokens, cache, interrupt, &mut *pass, |_, _| Ok(()))?;
            pass.logits(1).map_err(|error| from_token(last, error))
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
        self.pool.install(|| {
            let mut all = Vec::with_capacity(tokens.len());
            let mut pass = self.pass(tokens);
            self.read(tokens, cache, &Interrupt::default(), &mut *pass, |pass, count| {
                let logits = pass.logits(count).map_err(|error| from_token(all.len(), error))?;
                all.extend(logits.chunks_exact(self.vocabulary_len).map(<[f32]>::to_vec));
                Ok(())
            })?;
            Ok(all)
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
        self.pool
            .install(|| self.read(tokens, cache, interrupt, &mut *self.pass(tokens), |_, _| Ok(())))
    }

    fn pass(&self, tokens: &[TokenId]) -> Box<dyn Pass + '_> {
        self.network.pass(self.prefill_chunk_tokens.min(tokens.len()))
    }

    /// Passes the tokens through `pass` in chunks; after each `emit` is called with its length.
    fn read(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
        pass: &mut dyn Pass,
        mut emit: impl FnMut(&mut dyn Pass, usize) -> Result<(), InferError>,
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
            if let Err(error) = pass.read(chunk, cache) {
                // Layers that already have the chunk lose it again.
                cache.truncate(cache.len());
                return Err(error);
            }
            cache.commit(chunk);
            emit(pass, chunk.len())?;
        }
        Ok(())
    }
}

/// The same error, with its position counted from the beginning of the call.
fn from_token(first: usize, error: InferError) -> InferError {
    match error {
        InferError::NotFinite { position } => InferError::NotFinite { position: first + position },
        error => error,
    }
}
