//! The best element, among all or under a mask.

use crate::arch::{Kernel, LANES, Simd};
use crate::error::check_len;
use crate::{KernelError, Kernels};

/// Vectors after which the best so far is compared.
const CHUNK: usize = 16 * LANES;

impl Kernels {
    /// The index of the largest element, the lowest one among equals; `None` if there is none that
    /// is a number.
    ///
    /// With `allowed`, only elements whose bit is set count: element `i` is bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// [`KernelError::Length`] if `allowed` does not hold one bit per element, rounded up to words.
    pub fn argmax(
        &self,
        values: &[f32],
        allowed: Option<&[u64]>,
    ) -> Result<Option<usize>, KernelError> {
        if let Some(allowed) = allowed {
            check_len("allowed", values.len().div_ceil(64), allowed.len())?;
        }
        Ok(self.run(Argmax { values, allowed }))
    }
}

struct Argmax<'a> {
    values: &'a [f32],
    allowed: Option<&'a [u64]>,
}

impl Argmax<'_> {
    #[inline(always)]
    fn bits(&self, vector: usize) -> u16 {
        self.allowed.map_or(u16::MAX, |words| (words[vector / 4] >> (vector % 4 * LANES)) as u16)
    }
}

#[allow(clippy::float_cmp, reason = "the element sought is one of those compared")]
impl Kernel for Argmax<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let none = simd.splat(f32::NEG_INFINITY);
        let mut best = f32::NEG_INFINITY;
        let mut place = 0;
        for (chunk, values) in self.values.chunks(CHUNK).enumerate() {
            let mut largest = none;
            for (i, values) in values.chunks(LANES).enumerate() {
                let lanes = match values.first_chunk::<LANES>() {
                    Some(values) => simd.load(values),
                    None => super::load_part(simd, values, f32::NEG_INFINITY),
                };
                let bits = self.bits(chunk * CHUNK / LANES + i);
                largest = simd.max(simd.select(bits, lanes, none), largest);
            }
            let largest = simd.max_lane(largest);
            if largest > best {
                (best, place) = (largest, chunk * CHUNK);
            }
        }
        (place..self.values.len())
            .find(|&i| self.values[i] == best && self.bits(i / LANES) >> (i % LANES) & 1 == 1)
    }
}
