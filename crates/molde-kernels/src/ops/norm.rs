//! Root-mean-square normalisation.

use rayon::prelude::*;

use super::{PARALLEL_ELEMENTS, load_part, store_part};
use crate::arch::{Kernel, LANES, Simd};
use crate::error::{check_len, check_multiple};
use crate::{KernelError, Kernels};

impl Kernels {
    /// Divides each row of `values`, `[rows, weight.len()]`, by its root mean square, multiplies it
    /// with `weight`, and writes it to `output` of the same shape.
    ///
    /// `epsilon` is added to the mean square.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `values` is empty or no whole number of rows, [`KernelError::Length`] if `output`
    /// differs in length.
    pub fn rms_norm(
        &self,
        pool: &rayon::ThreadPool,
        values: &[f32],
        weight: &[f32],
        epsilon: f32,
        output: &mut [f32],
    ) -> Result<(), KernelError> {
        check_multiple("columns", 1, weight.len())?;
        check_multiple("values", weight.len(), values.len())?;
        check_len("output", values.len(), output.len())?;
        if values.len() < PARALLEL_ELEMENTS {
            self.run(RmsNorm { values, weight, epsilon, output });
            return Ok(());
        }
        let part = (PARALLEL_ELEMENTS / 4).div_ceil(weight.len()) * weight.len();
        pool.install(|| {
            output
                .par_chunks_mut(part)
                .zip(values.par_chunks(part))
                .for_each(|(output, values)| self.run(RmsNorm { values, weight, epsilon, output }));
        });
        Ok(())
    }
}

struct RmsNorm<'a> {
    values: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    output: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let columns = self.weight.len();
        let (weights, weight_rest) = self.weight.as_chunks::<LANES>();
        for (row, output) in
            self.values.chunks_exact(columns).zip(self.output.chunks_exact_mut(columns))
        {
            let (values, rest) = row.as_chunks::<LANES>();
            let mut squares = simd.splat(0.0);
            for lanes in values {
                let lanes = simd.load(lanes);
                squares = simd.fma(lanes, lanes, squares);
            }
            let lanes = load_part(simd, rest, 0.0);
            squares = simd.fma(lanes, lanes, squares);
            let scale =
                simd.splat(1.0 / (simd.sum(squares) / columns as f32 + self.epsilon).sqrt());
            let (outputs, output_rest) = output.as_chunks_mut::<LANES>();
            for ((values, weights), output) in values.iter().zip(weights).zip(outputs) {
                simd.store(
                    simd.mul(simd.mul(simd.load(values), scale), simd.load(weights)),
                    output,
                );
            }
            let value = simd.mul(simd.mul(lanes, scale), load_part(simd, weight_rest, 0.0));
            store_part(simd, value, output_rest);
        }
    }
}
