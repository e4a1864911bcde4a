//! Causal attention with a running softmax over blocks of 64 positions.
//!
//! The order is that of FlashAttention (Dao et al., 2022, arXiv:2205.14135, algorithm 1) for one
//! query: blocks start at multiples of 64 from position 0, so a result depends on the query and
//! on what is cached before it, and not on how many queries come at once.

use rayon::prelude::*;

use super::cache::load;
use super::{CacheElement, KvLayer};
use crate::arch::{Kernel, LANES, Simd};
use crate::error::{check_dimension, check_len, check_multiple};
use crate::ops::exp;
use crate::{KernelError, Kernels};

/// Panels per block of the running softmax.
const BLOCK_PANELS: usize = 4;
/// Positions per block.
const BLOCK: usize = BLOCK_PANELS * LANES;
/// Query heads computed together over one pass of keys and values.
const MAX_HEADS: usize = 8;

impl Kernels {
    /// Attention of the last tokens of `cache`, whose keys and values were appended before, over
    /// everything up to and including themselves.
    ///
    /// `queries` and `output` are `[tokens, heads, head_dim]`, where `heads` is a multiple of the cache's
    /// heads: query head `h` reads key-value head `h / (heads / kv_heads)`. Scores are multiplied with `scale`,
    /// usually `1 / sqrt(head_dim)`.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `heads` is no multiple of the cache's, [`KernelError::Length`] if `queries` holds
    /// no whole number of tokens or `output` differs in length, [`KernelError::Dimension`] if there are more queries than
    /// positions in the cache.
    ///
    /// # Complexity
    /// `2 * tokens * heads * head_dim * cache.len()` multiply-adds; nothing is allocated.
    pub fn attention<E: CacheElement>(
        &self,
        pool: &rayon::ThreadPool,
        queries: &[f32],
        heads: usize,
        cache: &KvLayer<E>,
        scale: f32,
        output: &mut [f32],
    ) -> Result<(), KernelError> {
        check_multiple("heads", cache.kv_heads(), heads)?;
        let head_dim = cache.head_dim();
        let tokens = queries.len() / (heads * head_dim);
        check_len("queries", tokens * heads * head_dim, queries.len())?;
        check_len("output", queries.len(), output.len())?;
        if tokens > cache.len() {
            check_dimension("cache", "queries", "tokens", tokens, cache.len())?;
        }
        let first = cache.len() - tokens;
        let kv_heads = cache.kv_heads();
        let group = heads / kv_heads * head_dim;
        let run = |(i, (queries, output)): (usize, (&[f32], &mut [f32]))| {
            let (token, kv_head) = (i / kv_heads, i % kv_heads);
            let part = MAX_HEADS * head_dim;
            for (queries, output) in queries.chunks(part).zip(output.chunks_mut(part)) {
                self.run(Attention {
                    queries,
                    cache,
                    kv_head,
                    positions: first + token + 1,
                    scale,
                    output,
                });
            }
        };
        pool.install(|| {
            queries.par_chunks(group).zip(output.par_chunks_mut(group)).enumerate().for_each(run);
        });
        Ok(())
    }
}

/// Some query heads of one token against one key-value head.
struct Attention<'a, E> {
    queries: &'a [f32],
    cache: &'a KvLayer<E>,
    kv_head: usize,
    /// Positions that the token sees.
    positions: usize,
    scale: f32,
    output: &'a mut [f32],
}

impl<E: CacheElement> Kernel for Attention<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.queries.len() / self.cache.head_dim() {
            1 => self.heads::<S, 1>(simd),
            2 => self.heads::<S, 2>(simd),
            3 => self.heads::<S, 3>(simd),
            4 => self.heads::<S, 4>(simd),
            5 => self.heads::<S, 5>(simd),
            6 => self.heads::<S, 6>(simd),
            7 => self.heads::<S, 7>(simd),
            _ => self.heads::<S, 8>(simd),
        }
    }
}

impl<E: CacheElement> Attention<'_, E> {
    #[inline(always)]
    fn heads<S: Simd, const H: usize>(mut self, simd: S) {
        let head_dim = self.cache.head_dim();
        let mut weights = [[[0.0_f32; LANES]; BLOCK_PANELS]; H];
        let mut largest = [f32::NEG_INFINITY; H];
        let mut totals = [simd.splat(0.0); H];
        self.output.fill(0.0);
        for start in (0..self.positions).step_by(BLOCK) {
            let here = BLOCK.min(self.positions - start);
            self.scores(simd, start, here, &mut weights);
            let mut corrections = [0.0; H];
            for head in 0..H {
                let mut block_largest = simd.splat(largest[head]);
                for panel in &weights[head] {
                    block_largest = simd.max(simd.load(panel), block_largest);
                }
                let new_largest = simd.max_lane(block_largest);
                let mut correction = [0.0; LANES];
                simd.store(exp(simd, simd.splat(largest[head] - new_largest)), &mut correction);
                corrections[head] = correction[0];
                largest[head] = new_largest;
                totals[head] = simd.mul(totals[head], simd.splat(corrections[head]));
                for panel in &mut weights[head] {
                    let weight = exp(simd, simd.sub(simd.load(panel), simd.splat(new_largest)));
                    totals[head] = simd.add(totals[head], weight);
                    simd.store(weight, panel);
                }
            }
            self.add_values(simd, start, here, &weights, &corrections);
        }
        for (total, output) in totals.into_iter().zip(self.output.chunks_exact_mut(head_dim)) {
            let total = simd.splat(simd.sum(total));
            for lanes in output.as_chunks_mut::<LANES>().0 {
                simd.store(simd.div(simd.load(lanes), total), lanes);
            }
        }
    }

    /// Scaled scores of a block, minus infinity past the last position.
    #[inline(always)]
    fn scores<S: Simd, const H: usize>(
        &self,
        simd: S,
        start: usize,
        here: usize,
        to: &mut [[[f32; LANES]; BLOCK_PANELS]; H],
    ) {
        let head_dim = self.cache.head_dim();
        let none = simd.splat(f32::NEG_INFINITY);
        for panel in 0..BLOCK_PANELS {
            let left = here.saturating_sub(panel * LANES).min(LANES);
            let mut dots = [simd.splat(0.0); H];
            if left > 0 {
                let keys = self.cache.key_panel(self.kv_head, start / LANES + panel);
                for (dimension, keys) in keys.iter().enumerate() {
                    let keys = load(simd, keys);
                    for head in 0..H {
                        let query = simd.splat(self.queries[head * head_dim + dimension]);
                        dots[head] = simd.fma(keys, query, dots[head]);
                    }
                }
            }
            let seen = ((1_u32 << left) - 1) as u16;
            for head in 0..H {
                let score = simd.mul(dots[head], simd.splat(self.scale));
                simd.store(simd.select(seen, score, none), &mut to[head][panel]);
            }
        }
    }

    /// Corrects the sums so far and adds the block's weighted values.
    #[inline(always)]
    fn add_values<S: Simd, const H: usize>(
        &mut self,
        simd: S,
        start: usize,
        here: usize,
        weights: &[[[f32; LANES]; BLOCK_PANELS]; H],
        corrections: &[f32; H],
    ) {
        let head_vectors = self.cache.head_dim() / LANES;
        let output = self.output.as_chunks_mut::<LANES>().0;
        for vector in 0..head_vectors {
            let mut sums = [simd.splat(0.0); H];
            for head in 0..H {
                sums[head] = simd.mul(
                    simd.load(&output[head * head_vectors + vector]),
                    simd.splat(corrections[head]),
                );
            }
            for first in (0..here).step_by(LANES) {
                let values = self.cache.value_panel(self.kv_head, (start + first) / LANES);
                let panel = first / LANES;
                for position in 0..LANES.min(here - first) {
                    let value = load(simd, &values[position * head_vectors + vector]);
                    for head in 0..H {
                        sums[head] =
                            simd.fma(value, simd.splat(weights[head][panel][position]), sums[head]);
                    }
                }
            }
            for head in 0..H {
                simd.store(sums[head], &mut output[head * head_vectors + vector]);
            }
        }
    }
}
