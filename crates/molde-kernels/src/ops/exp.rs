//! The exponential function.

use crate::arch::Simd;

/// `e^x`, within 2 units in the last place; 0 below -87, saturated at `e^88` above 88.
///
/// Range reduction by multiples of ln 2 in two parts and a polynomial of degree 7 (coefficients of
/// the Cephes library's `expf`, S. L. Moshier).
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::Floats) -> S::Floats {
    let lowest = simd.splat(-87.0);
    // In this order of arguments an undefined `x` stays undefined.
    let clamped = simd.min(simd.splat(88.0), simd.max(lowest, x));
    let n = simd.round(simd.mul(clamped, simd.splat(std::f32::consts::LOG2_E)));
    let r = simd.fma(n, simd.splat(-0.693_359_4), clamped);
    let r = simd.fma(n, simd.splat(2.121_944_4e-4), r);
    let mut p = simd.splat(1.987_569_1e-4);
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = simd.fma(p, r, simd.splat(coefficient));
    }
    let one = simd.splat(1.0);
    let p = simd.fma(simd.mul(r, r), p, simd.add(r, one));
    simd.zero_where_less(x, lowest, simd.mul(p, simd.power_of_two(n)))
}
