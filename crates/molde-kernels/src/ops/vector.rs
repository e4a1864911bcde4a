//! Sums and products of vectors.

use super::{load_part, store_part};
use crate::arch::{Kernel, LANES, Simd};
use crate::error::{check_len, check_multiple};
use crate::{KernelError, Kernels};

impl Kernels {
    /// The dot product.
    ///
    /// # Errors
    /// [`KernelError::Length`] if the two differ in length.
    pub fn dot(&self, a: &[f32], b: &[f32]) -> Result<f32, KernelError> {
        check_len("b", a.len(), b.len())?;
        Ok(self.run(Dot { a, b }))
    }

    /// `y += factor * x`.
    ///
    /// # Errors
    /// [`KernelError::Length`] if the two differ in length.
    pub fn add_scaled(&self, factor: f32, x: &[f32], y: &mut [f32]) -> Result<(), KernelError> {
        check_len("x", y.len(), x.len())?;
        self.run(AddScaled { factor, x, y });
        Ok(())
    }

    /// Adds `bias` to each row of `values`, `[rows, bias.len()]`.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `values` is empty or no whole number of rows.
    pub fn add_bias(&self, bias: &[f32], values: &mut [f32]) -> Result<(), KernelError> {
        check_multiple("columns", 1, bias.len())?;
        check_multiple("values", bias.len(), values.len())?;
        for row in values.chunks_exact_mut(bias.len()) {
            self.run(AddScaled { factor: 1.0, x: bias, y: row });
        }
        Ok(())
    }
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let ((a, a_rest), (b, b_rest)) = (self.a.as_chunks::<LANES>(), self.b.as_chunks::<LANES>());
        let mut sums = simd.splat(0.0);
        for (a, b) in a.iter().zip(b) {
            sums = simd.fma(simd.load(a), simd.load(b), sums);
        }
        simd.sum(simd.fma(load_part(simd, a_rest, 0.0), load_part(simd, b_rest, 0.0), sums))
    }
}

struct AddScaled<'a> {
    factor: f32,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let factor = simd.splat(self.factor);
        let ((x, x_rest), (y, y_rest)) =
            (self.x.as_chunks::<LANES>(), self.y.as_chunks_mut::<LANES>());
        for (x, y) in x.iter().zip(y) {
            simd.store(simd.fma(factor, simd.load(x), simd.load(y)), y);
        }
        let value = simd.fma(factor, load_part(simd, x_rest, 0.0), load_part(simd, y_rest, 0.0));
        store_part(simd, value, y_rest);
    }
}
