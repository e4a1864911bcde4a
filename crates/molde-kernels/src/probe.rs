//! How fast this processor multiplies bytes at best: what a benchmark compares kernels with.

use crate::Kernels;
use crate::arch::{Kernel, LANES, Line, Simd};

/// Sums kept in registers: enough to hide the latency of an instruction everywhere.
const SUMS: usize = 12;

impl Kernels {
    /// Adds up dot products of bytes that are in registers already, `rounds` times
    /// [`PROBE_MULTIPLY_ADDS`](Self::PROBE_MULTIPLY_ADDS) multiply-adds on the calling thread. The
    /// result is of no use but to keep the work from being left out.
    pub fn probe_multiply_adds(&self, rounds: usize) -> i32 {
        self.run(Probe { rounds })
    }

    /// Multiply-adds of one round of [`probe_multiply_adds`](Self::probe_multiply_adds).
    pub const PROBE_MULTIPLY_ADDS: usize = SUMS * LANES * 4;
}

struct Probe {
    rounds: usize,
}

impl Kernel for Probe {
    type Output = i32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> i32 {
        let mut line = Line::ZERO;
        for (i, byte) in line.0.iter_mut().enumerate() {
            *byte = i as u8 & 1;
        }
        let codes = simd.load_bytes(&line);
        let mut sums = [simd.splat_int(0); SUMS];
        for round in 0..self.rounds {
            let word = (round as u32 & 1) * 0x0100_ff00;
            for sum in &mut sums {
                *sum = simd.dot_narrow(*sum, codes, word);
            }
        }
        let sums = sums.into_iter().reduce(|a, b| simd.max_ints(a, b));
        sums.map_or(0, |largest| simd.max_int(largest))
    }
}
