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

/// Where a query stands: which sequence it belongs to, and how much of it the query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryPlace {
    /// Number of the sequence, as its cache is asked for.
    pub sequence: usize,
    /// Positions that the query sees, its own included: at least 1, at most the cache's length.
    pub positions: usize,
}

impl Kernels {
    /// Attention of queries of any number of sequences, each over the beginning of its sequence's
    /// cache. The keys and values of the queries' own tokens were appended before.
    ///
    /// `queries` and `output` are `[places.len(), heads, head_dim]`, where `heads` is a multiple of the
    /// caches' heads: query head `h` reads key-value head `h / (heads / kv_heads)`. Scores are multiplied
    /// with `scale`, usually `1 / sqrt(head_dim)`. A result depends on its own query and
    /// sequence only.
    ///
    /// # Errors
    /// [`KernelError::OutOfRange`] if there is no cache for a place's sequence or a place sees nothing or more than
    /// the cache holds, [`KernelError::Multiple`] if `heads` is no multiple of the caches',
    /// [`KernelError::Dimension`] if caches differ in shape, [`KernelError::Length`] if `queries` or `output` has another size.
    ///
    /// # Complexity
    /// `2 * heads * head_dim` multiply-adds for each position seen by a query; nothing is allocated.
    #[allow(clippy::too_many_arguments, reason = "the parts of one formula")]
    pub fn attention<'c, E: CacheElement>(
        &self,
        pool: &rayon::ThreadPool,
        queries: &[f32],
        heads: usize,
        places: &[QueryPlace],
        cache_of: impl Fn(usize) -> Option<&'c KvLayer<E>> + Sync,
        scale: f32,
        output: &mut [f32],
    ) -> Result<(), KernelError> {
        let mut shape = None;
        for place in places {
            let missing = |got, len| KernelError::OutOfRange { argument: "places", got, len };
            let cache = cache_of(place.sequence).ok_or(missing(place.sequence, 0))?;
            if place.positions == 0 || place.positions > cache.len() {
                return Err(missing(place.positions, cache.len()));
            }
            let (kv_heads, head_dim) = *shape.get_or_insert((cache.kv_heads(), cache.head_dim()));
            check_dimension("cache", "first cache", "kv_heads", kv_heads, cache.kv_heads())?;
            check_dimension("cache", "first cache", "head_dim", head_dim, cache.head_dim())?;
        }
        let Some((kv_heads, head_dim)) = shape else {
            check_len("queries", 0, queries.len())?;
            return check_len("output", 0, output.len());
        };
        check_multiple("heads", kv_heads, heads)?;
        check_len("queries", places.len() * heads * head_dim, queries.len())?;
        check_len("output", queries.len(), output.len())?;
        let group = heads / kv_heads * head_dim;
        let run = |(i, (queries, output)): (usize, (&[f32], &mut [f32]))| {
            let (place, kv_head) = (places[i / kv_heads], i % kv_heads);
            let Some(cache) = cache_of(place.sequence) else { return };
            let part = MAX_HEADS * head_dim;
            for (queries, output) in queries.chunks(part).zip(output.chunks_mut(part)) {
                self.run(Attention {
                    queries,
                    cache,
                    kv_head,
                    positions: place.positions,
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
        let mut panel = 0;
        while panel < BLOCK_PANELS {
            // Two panels share each broadcast value of a query.
            if S::PANELS > 1 && here > (panel + 1) * LANES {
                self.panel_scores::<S, H, 2>(simd, start, here, panel, to);
                panel += 2;
            } else {
                self.panel_scores::<S, H, 1>(simd, start, here, panel, to);
                panel += 1;
            }
        }
    }

    /// The scores of `P` panels of a block from `panel` on, of which at least the last position of
    /// all but the last panel is seen.
    #[inline(always)]
    fn panel_scores<S: Simd, const H: usize, const P: usize>(
        &self,
        simd: S,
        start: usize,
        here: usize,
        panel: usize,
        to: &mut [[[f32; LANES]; BLOCK_PANELS]; H],
    ) {
        let head_dim = self.cache.head_dim();
        let none = simd.splat(f32::NEG_INFINITY);
        let mut dots = [[simd.splat(0.0); H]; P];
        if here > panel * LANES {
            let first = self.cache.key_panel(self.kv_head, start / LANES + panel);
            let mut keys = [first; P];
            for p in 1..P {
                keys[p] = self.cache.key_panel(self.kv_head, start / LANES + panel + p);
            }
            for dimension in 0..head_dim {
                let mut lanes = [simd.splat(0.0); P];
                for p in 0..P {
                    lanes[p] = load(simd, &keys[p][dimension]);
                }
                for head in 0..H {
                    let query = simd.splat(self.queries[head * head_dim + dimension]);
                    for p in 0..P {
                        dots[p][head] = simd.fma(lanes[p], query, dots[p][head]);
                    }
                }
            }
        }
        for p in 0..P {
            let left = here.saturating_sub((panel + p) * LANES).min(LANES);
            let seen = ((1_u32 << left) - 1) as u16;
            for head in 0..H {
                let score = simd.mul(dots[p][head], simd.splat(self.scale));
                simd.store(simd.select(seen, score, none), &mut to[head][panel + p]);
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
        let mut vector = 0;
        while vector < head_vectors {
            // Two vectors of dimensions share each broadcast weight.
            if S::PANELS > 1 && vector + 1 < head_vectors {
                self.add_vectors::<S, H, 2>(simd, start, here, vector, weights, corrections);
                vector += 2;
            } else {
                self.add_vectors::<S, H, 1>(simd, start, here, vector, weights, corrections);
                vector += 1;
            }
        }
    }

    /// The same for `V` vectors of a head's dimensions from `vector` on.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the parts of one formula")]
    fn add_vectors<S: Simd, const H: usize, const V: usize>(
        &mut self,
        simd: S,
        start: usize,
        here: usize,
        vector: usize,
        weights: &[[[f32; LANES]; BLOCK_PANELS]; H],
        corrections: &[f32; H],
    ) {
        let head_vectors = self.cache.head_dim() / LANES;
        let output = self.output.as_chunks_mut::<LANES>().0;
        let mut sums = [[simd.splat(0.0); H]; V];
        for head in 0..H {
            let correction = simd.splat(corrections[head]);
            for v in 0..V {
                let so_far = simd.load(&output[head * head_vectors + vector + v]);
                sums[v][head] = simd.mul(so_far, correction);
            }
        }
        for first in (0..here).step_by(LANES) {
            let values = self.cache.value_panel(self.kv_head, (start + first) / LANES);
            let panel = first / LANES;
            for position in 0..LANES.min(here - first) {
                let mut lanes = [simd.splat(0.0); V];
                for v in 0..V {
                    lanes[v] = load(simd, &values[position * head_vectors + vector + v]);
                }
                for head in 0..H {
                    let weight = simd.splat(weights[head][panel][position]);
                    for v in 0..V {
                        sums[v][head] = simd.fma(lanes[v], weight, sums[v][head]);
                    }
                }
            }
        }
        for head in 0..H {
            for v in 0..V {
                simd.store(sums[v][head], &mut output[head * head_vectors + vector + v]);
            }
        }
    }
}
