//! What a transformer computes between its matrix products, on slices of `f32`.
//!
//! Sums run in sixteen lanes, lane `i` over the elements `i`, `i + 16`, …, and fold by halves at the
//! end: one order for every instruction set.

mod argmax;
mod exp;
mod gate;
mod norm;
mod rope;
mod softmax;
mod vector;

pub(crate) use exp::exp;
pub use rope::{RotaryEmbedding, Rotations};

use crate::arch::{LANES, Simd};

/// Elements below which splitting over threads costs more than it gains.
const PARALLEL_ELEMENTS: usize = 32 * 1024;

/// Loads up to sixteen elements, the missing ones as `fill`.
#[inline(always)]
fn load_part<S: Simd>(simd: S, from: &[f32], fill: f32) -> S::Floats {
    let mut lanes = [fill; LANES];
    lanes[..from.len()].copy_from_slice(from);
    simd.load(&lanes)
}

/// Stores the first lanes, as many as `to` holds, up to sixteen.
#[inline(always)]
fn store_part<S: Simd>(simd: S, floats: S::Floats, to: &mut [f32]) {
    let mut lanes = [0.0; LANES];
    simd.store(floats, &mut lanes);
    let len = to.len();
    to.copy_from_slice(&lanes[..len]);
}
