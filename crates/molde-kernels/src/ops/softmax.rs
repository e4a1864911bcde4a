//! Softmax of one row.

use super::{exp, load_part, store_part};
use crate::Kernels;
use crate::arch::{Kernel, LANES, Simd};

impl Kernels {
    /// Replaces logits by probabilities. Elements of minus infinity become 0; a row of nothing else
    /// becomes undefined (NaN).
    pub fn softmax(&self, values: &mut [f32]) {
        self.run(Softmax { values });
    }
}

struct Softmax<'a> {
    values: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (vectors, rest) = self.values.as_chunks_mut::<LANES>();
        let mut largest = load_part(simd, rest, f32::NEG_INFINITY);
        for values in vectors.iter() {
            largest = simd.max(simd.load(values), largest);
        }
        let largest = simd.splat(simd.max_lane(largest));
        let mut sums = simd.splat(0.0);
        for values in vectors.iter_mut() {
            let value = exp(simd, simd.sub(simd.load(values), largest));
            sums = simd.add(sums, value);
            simd.store(value, values);
        }
        let last = exp(simd, simd.sub(load_part(simd, rest, f32::NEG_INFINITY), largest));
        let sum = simd.splat(simd.sum(simd.add(sums, last)));
        for values in vectors.iter_mut() {
            simd.store(simd.div(simd.load(values), sum), values);
        }
        store_part(simd, simd.div(last, sum), rest);
    }
}
