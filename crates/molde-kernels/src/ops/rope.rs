//! Rotary position embedding, in the layout that Qwen2 and Llama checkpoints of Hugging Face use:
//! dimension `i` of the first half of a head turns with dimension `i` of the second half.

use super::{load_part, store_part};
use crate::arch::{Kernel, LANES, Simd};
use crate::error::{check_len, check_multiple};
use crate::{KernelError, Kernels};

/// The frequencies of a model's rotary embedding.
#[derive(Debug, Clone)]
pub struct RotaryEmbedding {
    frequencies: Vec<f64>,
}

impl RotaryEmbedding {
    /// Frequencies `base^(-2 i / head_dim)`.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `head_dim` is no positive multiple of 2.
    pub fn new(head_dim: usize, base: f64) -> Result<Self, KernelError> {
        check_multiple("head_dim", 2, head_dim)?;
        let frequency = |i: usize| base.powf(-2.0 * i as f64 / head_dim as f64);
        Ok(Self { frequencies: (0..head_dim / 2).map(frequency).collect() })
    }

    /// Computes the rotations of some positions, in double precision, into a buffer that is reused.
    pub fn rotations(&self, positions: impl IntoIterator<Item = usize>, to: &mut Rotations) {
        to.half = self.frequencies.len();
        to.cos.clear();
        to.sin.clear();
        for position in positions {
            for frequency in &self.frequencies {
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                to.cos.push(cos as f32);
                to.sin.push(sin as f32);
            }
        }
    }
}

/// Cosines and sines for some tokens, shared by all layers and heads.
#[derive(Debug, Clone, Default)]
pub struct Rotations {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Kernels {
    /// Turns every head of `values`, `[tokens, heads, head_dim]`, in place.
    ///
    /// # Errors
    /// [`KernelError::Length`] if `values` does not hold `heads` heads for each token of `rotations`.
    pub fn rope(
        &self,
        rotations: &Rotations,
        heads: usize,
        values: &mut [f32],
    ) -> Result<(), KernelError> {
        check_len("values", rotations.cos.len() * 2 * heads, values.len())?;
        if !values.is_empty() {
            self.run(Rope { rotations, heads, values });
        }
        Ok(())
    }
}

struct Rope<'a> {
    rotations: &'a Rotations,
    heads: usize,
    values: &'a mut [f32],
}

impl Kernel for Rope<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let half = self.rotations.half;
        let tokens =
            self.rotations.cos.chunks_exact(half).zip(self.rotations.sin.chunks_exact(half));
        for ((cos, sin), token) in tokens.zip(self.values.chunks_exact_mut(self.heads * half * 2)) {
            let ((cos, cos_rest), (sin, sin_rest)) =
                (cos.as_chunks::<LANES>(), sin.as_chunks::<LANES>());
            for head in token.chunks_exact_mut(half * 2) {
                let (first, second) = head.split_at_mut(half);
                let (first, first_rest) = first.as_chunks_mut::<LANES>();
                let (second, second_rest) = second.as_chunks_mut::<LANES>();
                for i in 0..half / LANES {
                    let (x, y) = turn(
                        simd,
                        (simd.load(&first[i]), simd.load(&second[i])),
                        (simd.load(&cos[i]), simd.load(&sin[i])),
                    );
                    simd.store(x, &mut first[i]);
                    simd.store(y, &mut second[i]);
                }
                if !first_rest.is_empty() {
                    let part = |from: &[f32]| load_part(simd, from, 0.0);
                    let (x, y) = turn(
                        simd,
                        (part(first_rest), part(second_rest)),
                        (part(cos_rest), part(sin_rest)),
                    );
                    store_part(simd, x, first_rest);
                    store_part(simd, y, second_rest);
                }
            }
        }
    }
}

#[inline(always)]
fn turn<S: Simd>(
    simd: S,
    (x, y): (S::Floats, S::Floats),
    (cos, sin): (S::Floats, S::Floats),
) -> (S::Floats, S::Floats) {
    (simd.sub(simd.mul(x, cos), simd.mul(y, sin)), simd.add(simd.mul(y, cos), simd.mul(x, sin)))
}
