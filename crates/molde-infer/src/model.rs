//! Qwen2: token ids in, logits out.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use molde_vocab::TokenId;
use rayon::ThreadPool;

use crate::checkpoint::Checkpoint;
use crate::exact::ExactNetwork;
use crate::feed::{Feed, Logits, Want, Workspace};
use crate::native::NativeNetwork;
use crate::network::Network;
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

    /// Heap bytes of the layers: what every step reads, beside a row of the embedding table for
    /// each token.
    pub fn layer_memory_usage(&self) -> usize {
        self.network.layer_bytes()
    }

    /// Heap bytes of the output head, which may be the embedding table: what a step reads in
    /// addition if it wants all logits.
    pub fn head_memory_usage(&self) -> usize {
        self.network.head_bytes()
    }

    /// Tokens read at once while a prompt is read.
    pub fn prefill_chunk_tokens(&self) -> usize {
        self.prefill_chunk_tokens
    }

    /// Buffers for [`step`](Self::step), large enough for a chunk of a prompt.
    pub fn new_workspace(&self) -> Workspace {
        Workspace {
            scratch: self.network.new_scratch(self.prefill_chunk_tokens),
            logits: Logits::default(),
            head_time: Duration::ZERO,
        }
    }

    /// Reads the tokens of every feed after those in its cache, all in one pass over the weights,
    /// and computes the logits that the feeds want: see [`Workspace::logits`]. Feeds without
    /// tokens are left alone.
    ///
    /// Under [`Precision::Native`](crate::Precision::Native) what is computed for a feed does not
    /// depend on the others.
    ///
    /// # Errors
    /// [`InferError::TokenOutOfRange`], [`InferError::ContextOverflow`],
    /// [`InferError::CacheMismatch`], and [`InferError::EmptyPrompt`] for a feed that wants more
    /// logits than it has tokens: no cache has changed. [`InferError::NotFinite`] for damaged weights.
    ///
    /// # Complexity
    /// One pass over the weights of the layers, and over those of the head that are wanted.
    /// Nothing is allocated that the workspace and the caches have room for.
    pub fn step(&self, feeds: &mut [Feed], work: &mut Workspace) -> Result<(), InferError> {
        for feed in feeds.iter() {
            self.check(feed)?;
        }
        self.pool.install(|| {
            if let Err(error) = self.network.read(feeds, &mut work.scratch) {
                // Layers that already have the tokens lose them again.
                for feed in feeds.iter_mut() {
                    feed.cache.truncate(feed.cache.len());
                }
                return Err(error);
            }
            for feed in feeds.iter_mut() {
                feed.cache.commit(&feed.tokens);
            }
            work.logits.clear();
            let started = Instant::now();
            let is_wanted = |feed: &Feed| feed.wants.iter().any(|want| *want != Want::Nothing);
            let outcome = if feeds.iter().any(is_wanted) {
                self.network.logits(feeds, &mut work.scratch, &mut work.logits)
            } else {
                Ok(())
            };
            work.head_time = started.elapsed();
            outcome
        })
    }

    /// Whether a step could read the feed.
    pub(crate) fn check(&self, feed: &Feed) -> Result<(), InferError> {
        if feed.wants.len() > feed.tokens.len() {
            return Err(InferError::EmptyPrompt);
        }
        feed.cache.check(&self.config)?;
        let vocabulary = self.vocabulary_len;
        let wanted = feed.wants.iter().filter_map(|want| match want {
            Want::Rows(range) => Some(feed.rows(range)),
            Want::Nothing | Want::All => None,
        });
        let mut tokens = feed.tokens.iter().chain(wanted.flatten());
        if let Some(&token) = tokens.find(|&&token| token as usize >= vocabulary) {
            return Err(InferError::TokenOutOfRange { token, vocabulary });
        }
        self.check_context(feed.cache.len().saturating_add(feed.tokens.len()))
    }

    fn check_context(&self, total: usize) -> Result<(), InferError> {
        let context_tokens = self.config.context_tokens;
        if total > context_tokens {
            return Err(InferError::ContextOverflow {
                prompt_tokens: total,
                max_tokens: 0,
                context_tokens,
            });
        }
        Ok(())
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
    /// the product of new and visible tokens. Allocates buffers: see [`step`](Self::step).
    pub fn forward(&self, tokens: &[TokenId], cache: &mut KvCache) -> Result<Vec<f32>, InferError> {
        let mut logits = Vec::new();
        let last = tokens.len().saturating_sub(1);
        let wants = |index| index == last;
        self.read(tokens, cache, &Interrupt::default(), wants, |after| logits = after.to_vec())?;
        Ok(logits)
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
        let mut all = Vec::with_capacity(tokens.len());
        let emit = |after: &[f32]| all.push(after.to_vec());
        self.read(tokens, cache, &Interrupt::default(), |_| true, emit)?;
        Ok(all)
    }

    /// Reads `tokens` after those in the cache, without computing logits: to prepare a prefix
    /// that several sequences share. Stops between chunks if `interrupt` says so: the cache then
    /// holds the chunks that were read, and nothing of the others.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward), [`InferError::Cancelled`] and
    /// [`InferError::DeadlineExceeded`].
    pub fn prefill(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
    ) -> Result<(), InferError> {
        self.read(tokens, cache, interrupt, |_| false, |_| {})
    }

    /// Reads the tokens in chunks, and emits all logits after those whose index is wanted.
    fn read(
        &self,
        tokens: &[TokenId],
        cache: &mut KvCache,
        interrupt: &Interrupt,
        wants: impl Fn(usize) -> bool,
        mut emit: impl FnMut(&[f32]),
    ) -> Result<(), InferError> {
        if tokens.is_empty() {
            return Err(InferError::EmptyPrompt);
        }
        // Before anything is read: all of it fits, and all of it is tokens.
        cache.check(&self.config)?;
        self.check_context(cache.len().saturating_add(tokens.len()))?;
        let vocabulary = self.vocabulary_len;
        if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(InferError::TokenOutOfRange { token, vocabulary });
        }
        let chunk = self.prefill_chunk_tokens.min(tokens.len());
        let mut work = Workspace {
            scratch: self.network.new_scratch(chunk),
            logits: Logits::default(),
            head_time: Duration::ZERO,
        };
        let borrowed = std::mem::replace(cache, KvCache::new(&self.config, 0));
        let mut feed = [Feed::new(borrowed)];
        let mut chunks = tokens.chunks(chunk).enumerate();
        let outcome = chunks.try_for_each(|(index, tokens)| {
            interrupt.check()?;
            let first = index * chunk;
            let [one] = &mut feed;
            one.clear();
            one.push(tokens);
            // A step wants logits after its last tokens.
            if let Some(start) = (0..tokens.len()).find(|&token| wants(first + token)) {
                (start..tokens.len()).for_each(|_| one.want_all());
            }
            self.step(&mut feed, &mut work).map_err(|error| from_token(first, error))?;
            (0..feed[0].wants()).for_each(|want| emit(work.logits(0, want)));
            Ok(())
        });
        let [feed] = feed;
        *cache = feed.cache;
        outcome
    }
}

/// The same error, with its position counted from the beginning of the call.
fn from_token(first: usize, error: InferError) -> InferError {
    match error {
        InferError::NotFinite { position } => InferError::NotFinite { position: first + position },
        error => error,
    }
}
