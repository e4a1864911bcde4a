//! The gate of the MLP.

use rayon::prelude::*;

use super::{PARALLEL_ELEMENTS, exp, load_part, store_part};
use crate::arch::{Kernel, LANES, Simd};
use crate::error::check_len;
use crate::{KernelError, Kernels};

impl Kernels {
    /// `gate = silu(gate) * up`, with `silu(x) = x / (1 + e^-x)`, element by element.
    ///
    /// # Errors
    /// [`KernelError::Length`] if the two differ in length.
    pub fn silu_mul(
        &self,
        pool: &rayon::ThreadPool,
        gate: &mut [f32],
        up: &[f32],
    ) -> Result<(), KernelError> {
        check_len("up", gate.len(), up.len())?;
        if gate.len() < PARALLEL_ELEMENTS {
            self.run(SiluMul { gate, up });
            return Ok(());
        }
        pool.install(|| {
            gate.par_chunks_mut(PARALLEL_ELEMENTS / 4)
                .zip(up.par_chunks(PARALLEL_ELEMENTS / 4))
                .for_each(|(gate, up)| self.run(SiluMul { gate, up }));
        });
        Ok(())
    }
}

struct SiluMul<'a> {
    gate: &'a mut [f32],
    up: &'a [f32],
}

#[inline(always)]
fn silu_mul<S: Simd>(simd: S, gate: S::Floats, up: S::Floats) -> S::Floats {
    let e = exp(simd, simd.sub(simd.splat(0.0), gate));
    simd.mul(simd.div(gate, simd.add(simd.splat(1.0), e)), up)
}

impl Kernel for SiluMul<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (gates, gate_rest) = self.gate.as_chunks_mut::<LANES>();
        let (ups, up_rest) = self.up.as_chunks::<LANES>();
        for (gate, up) in gates.iter_mut().zip(ups) {
            let value = silu_mul(simd, simd.load(gate), simd.load(up));
            simd.store(value, gate);
        }
        let value = silu_mul(simd, load_part(simd, gate_rest, 0.0), load_part(simd, up_rest, 0.0));
        store_part(simd, value, gate_rest);
    }
}
