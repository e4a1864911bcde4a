//! Causal grouped-query attention over an [`ExactLayer`].

use rayon::prelude::*;

use crate::ModelConfig;
use crate::kv_cache::ExactLayer;

/// Partial sums of one dot product. Fixed, so that every machine adds in the same order, and a
/// whole number of vector registers.
const LANES: usize = 16;

/// For `queries` of shape `[tokens, attention_head, head_size]`, the last `tokens` positions of
/// the cache, returns the attended values in the same shape.
///
/// Softmax is exact, in `f32`, with the maximum subtracted. Each output value is computed by one
/// fixed order of operations, whatever the number of tokens and threads. Keys and values of a
/// group of query heads are read where they are, not repeated.
pub(crate) fn attend(config: &ModelConfig, queries: &[f32], cache: &ExactLayer) -> Vec<f32> {
    let head_size = config.head_size();
    let width = config.key_value_size();
    let group = config.attention_heads / config.key_value_heads;
    let scale = 1.0 / (head_size as f32).sqrt();
    let tokens = queries.len() / config.hidden_size;
    let positions = cache.keys.len() / width;
    let before = positions - tokens;

    let mut output = vec![0.0; queries.len()];
    output.par_chunks_mut(head_size).zip(queries.par_chunks(head_size)).enumerate().for_each_init(
        Vec::new,
        |weights: &mut Vec<f32>, (index, (output, query))| {
            let (token, head) = (index / config.attention_heads, index % config.attention_heads);
            let visible = before + token + 1;
            let offset = head / group * head_size;
            let row = |position: usize| {
                let start = position * width + offset;
                start..start + head_size
            };
            weights.clear();
            weights.extend(
                (0..visible).map(|position| dot(query, &cache.keys[row(position)]) * scale),
            );
            let sum = exponentiate(weights);
            for (position, &weight) in weights.iter().enumerate() {
                let weight = weight / sum;
                let value = &cache.values[row(position)];
                for (out, &v) in output.iter_mut().zip(value) {
                    *out += weight * v;
                }
            }
        },
    );
    output
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Replaces each score by `exp(score - max)` and returns the sum of these, which is at least 1.
fn exponentiate(scores: &mut [f32]) -> f32 {
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores {
        *score = (*score - max).exp();
        sum += *score;
    }
    sum
}
