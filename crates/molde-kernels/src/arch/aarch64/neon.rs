//! Sixteen lanes in four 128-bit registers.
//!
//! Dot products use the multiplications of the base instruction set: the dedicated instruction
//! (`sdot`) has no stable intrinsic yet.
#![allow(unsafe_code, reason = "intrinsics; each method's safety rests on the token, see `Neon`")]
#![allow(clippy::wildcard_imports, reason = "nearly every name is an intrinsic")]

use core::arch::aarch64::*;

use crate::arch::{Kernel, LANES, Line, Simd};

/// Proof that the processor has Advanced SIMD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

/// Calls an intrinsic that touches no memory, on each of the four registers.
macro_rules! four {
    ($name:ident($a:expr)) => {{
        let a = $a;
        // SAFETY: a value of `Neon`, which every method here takes, exists only if the processor
        // has the instructions; the intrinsic works on values alone.
        unsafe { [$name(a[0]), $name(a[1]), $name(a[2]), $name(a[3])] }
    }};
    ($name:ident($a:expr, $b:expr)) => {{
        let (a, b) = ($a, $b);
        // SAFETY: as above.
        unsafe { [$name(a[0], b[0]), $name(a[1], b[1]), $name(a[2], b[2]), $name(a[3], b[3])] }
    }};
    ($name:ident($a:expr, $b:expr, $c:expr)) => {{
        let (a, b, c) = ($a, $b, $c);
        // SAFETY: as above.
        unsafe {
            [
                $name(a[0], b[0], c[0]),
                $name(a[1], b[1], c[1]),
                $name(a[2], b[2], c[2]),
                $name(a[3], b[3], c[3]),
            ]
        }
    }};
}

/// Calls intrinsics that touch no memory.
macro_rules! lanes {
    ($value:expr) => {
        // SAFETY: as in `four`.
        unsafe { $value }
    };
}

impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

/// Adds four signed products to each lane.
#[inline(always)]
fn dot(sums: [int32x4_t; 4], weights: [int8x16_t; 4], word: u32) -> [int32x4_t; 4] {
    let mut out = sums;
    for i in 0..4 {
        // SAFETY: only methods of `Neon` call this. Two products of at most 128 * 127 fit 16 bits.
        out[i] = unsafe {
            let activation = vreinterpretq_s8_u32(vdupq_n_u32(word));
            let low = vmull_s8(vget_low_s8(weights[i]), vget_low_s8(activation));
            let high = vmull_high_s8(weights[i], activation);
            vpadalq_s16(sums[i], vpaddq_s16(low, high))
        };
    }
    out
}

impl Simd for Neon {
    type Bytes = [uint8x16_t; 4];
    type Ints = [int32x4_t; 4];
    type Floats = [float32x4_t; 4];

    const TILE: usize = 2;
    const PANELS: usize = 1;

    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "neon")]
        fn entry<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { entry(self, kernel) }
    }

    #[inline(always)]
    fn prefetch(self, _line: &Line) {}
    #[inline(always)]
    fn prefetch_far(self, _line: &Line) {}
    #[inline(always)]
    fn load_bytes(self, line: &Line) -> Self::Bytes {
        let (parts, _) = line.0.as_chunks::<16>();
        // SAFETY: the token proves the feature; each part is 16 readable bytes.
        unsafe {
            [
                vld1q_u8(parts[0].as_ptr()),
                vld1q_u8(parts[1].as_ptr()),
                vld1q_u8(parts[2].as_ptr()),
                vld1q_u8(parts[3].as_ptr()),
            ]
        }
    }
    #[inline(always)]
    fn store_bytes(self, bytes: Self::Bytes, line: &mut Line) {
        for (bytes, part) in bytes.into_iter().zip(line.0.as_chunks_mut::<16>().0) {
            // SAFETY: the token proves the feature; each part is 16 writable bytes.
            unsafe { vst1q_u8(part.as_mut_ptr(), bytes) };
        }
    }
    #[inline(always)]
    fn and(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes {
        four!(vandq_u8(bytes, [lanes!(vdupq_n_u8(mask)); 4]))
    }
    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        four!(vorrq_u8(a, b))
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        four!(vshlq_u8(bytes, [lanes!(vdupq_n_s8(BITS as i8)); 4]))
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        four!(vshlq_u8(bytes, [lanes!(vdupq_n_s8(-(BITS as i8))); 4]))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> Self::Ints {
        [lanes!(vdupq_n_s32(value)); 4]
    }
    #[inline(always)]
    fn start_wide(self, _offset: i32) -> Self::Ints {
        self.splat_int(0)
    }
    #[inline(always)]
    fn dot_narrow(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        dot(sums, four!(vreinterpretq_s8_u8(codes)), word)
    }
    #[inline(always)]
    fn dot_wide(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        let weights = four!(veorq_u8(codes, [lanes!(vdupq_n_u8(0x80)); 4]));
        dot(sums, four!(vreinterpretq_s8_u8(weights)), word)
    }
    #[inline(always)]
    fn to_floats(self, ints: Self::Ints) -> Self::Floats {
        four!(vcvtq_f32_s32(ints))
    }
    #[inline(always)]
    fn max_int(self, ints: Self::Ints) -> i32 {
        lanes!(vmaxvq_s32(vmaxq_s32(vmaxq_s32(ints[0], ints[1]), vmaxq_s32(ints[2], ints[3]))))
    }
    #[inline(always)]
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        four!(vmaxq_s32(a, b))
    }
    #[inline(always)]
    fn magnitude_bits(self, floats: Self::Floats) -> Self::Ints {
        four!(vreinterpretq_s32_f32(four!(vabsq_f32(floats))))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        [lanes!(vdupq_n_f32(value)); 4]
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        let (parts, _) = from.as_chunks::<4>();
        // SAFETY: the token proves the feature; each part is four readable floats.
        unsafe {
            [
                vld1q_f32(parts[0].as_ptr()),
                vld1q_f32(parts[1].as_ptr()),
                vld1q_f32(parts[2].as_ptr()),
                vld1q_f32(parts[3].as_ptr()),
            ]
        }
    }
    #[inline(always)]
    fn store(self, floats: Self::Floats, to: &mut [f32; LANES]) {
        for (floats, part) in floats.into_iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: the token proves the feature; each part is four writable floats.
            unsafe { vst1q_f32(part.as_mut_ptr(), floats) };
        }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::Floats {
        // The conversion instruction has no stable intrinsic: shift exponent and mantissa into
        // place, and let a multiplication by 2^112, exact, correct the exponent, subnormals included.
        let (parts, _) = from.as_chunks::<4>();
        let mut out = self.splat(0.0);
        for i in 0..4 {
            // SAFETY: the token proves the feature; each part is four readable integers.
            out[i] = unsafe {
                let bits = vmovl_u16(vld1_u16(parts[i].as_ptr()));
                let magnitude = vandq_u32(bits, vdupq_n_u32(0x7fff));
                let scaled = vmulq_f32(
                    vreinterpretq_f32_u32(vshlq_n_u32::<13>(magnitude)),
                    vdupq_n_f32(f32::from_bits(0x7780_0000)),
                );
                // Infinities and NaN keep an exponent of all ones.
                let special = vcgeq_u32(magnitude, vdupq_n_u32(0x7c00));
                let ones = vandq_u32(special, vdupq_n_u32(0x7f80_0000));
                let sign = vshlq_n_u32::<16>(vbicq_u32(bits, vdupq_n_u32(0x7fff)));
                vreinterpretq_f32_u32(vorrq_u32(
                    vorrq_u32(vreinterpretq_u32_f32(scaled), ones),
                    sign,
                ))
            };
        }
        out
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the feature; `from` is 16 readable bytes.
        let bytes = unsafe { vld1q_u8(from.as_ptr()) };
        let halves = lanes!([vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)]);
        let words = lanes!([
            vmovl_u16(vget_low_u16(halves[0])),
            vmovl_high_u16(halves[0]),
            vmovl_u16(vget_low_u16(halves[1])),
            vmovl_high_u16(halves[1]),
        ]);
        four!(vcvtq_f32_u32(words))
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the feature; `from` is 16 readable bytes.
        let bytes = unsafe { vld1q_s8(from.as_ptr()) };
        let halves = lanes!([vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)]);
        let words = lanes!([
            vmovl_s16(vget_low_s16(halves[0])),
            vmovl_high_s16(halves[0]),
            vmovl_s16(vget_low_s16(halves[1])),
            vmovl_high_s16(halves[1]),
        ]);
        four!(vcvtq_f32_s32(words))
    }
    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vaddq_f32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vsubq_f32(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vmulq_f32(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vdivq_f32(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        four!(vfmaq_f32(c, a, b))
    }
    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vbslq_f32(four!(vcgtq_f32(a, b)), a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        four!(vbslq_f32(four!(vcltq_f32(a, b)), a, b))
    }
    #[inline(always)]
    fn round(self, a: Self::Floats) -> Self::Floats {
        four!(vrndnq_f32(a))
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::Floats) -> Self::Floats {
        let exponents = four!(vaddq_s32(four!(vcvtq_s32_f32(n)), self.splat_int(127)));
        four!(vreinterpretq_f32_s32(four!(vshlq_s32(exponents, self.splat_int(23)))))
    }
    #[inline(always)]
    fn zero_where_less(
        self,
        a: Self::Floats,
        b: Self::Floats,
        value: Self::Floats,
    ) -> Self::Floats {
        four!(vbslq_f32(four!(vcltq_f32(a, b)), self.splat(0.0), value))
    }
    #[inline(always)]
    fn select(self, bits: u16, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        const LANE_BITS: [[u32; 4]; 4] =
            [[1, 2, 4, 8], [16, 32, 64, 128], [256, 512, 1024, 2048], [4096, 8192, 16384, 32768]];
        let mut out = b;
        for i in 0..4 {
            // SAFETY: the token proves the feature; each row of the table is four readable integers.
            out[i] = unsafe {
                let set = vtstq_u32(vdupq_n_u32(u32::from(bits)), vld1q_u32(LANE_BITS[i].as_ptr()));
                vbslq_f32(set, a[i], b[i])
            };
        }
        out
    }
    #[inline(always)]
    fn sum(self, floats: Self::Floats) -> f32 {
        lanes!({
            let four = vaddq_f32(vaddq_f32(floats[0], floats[2]), vaddq_f32(floats[1], floats[3]));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        })
    }
    #[inline(always)]
    fn max_lane(self, floats: Self::Floats) -> f32 {
        let first = self.max(
            [floats[0], floats[1], floats[0], floats[1]],
            [floats[2], floats[3], floats[2], floats[3]],
        );
        let four = lanes!(vbslq_f32(vcgtq_f32(first[0], first[1]), first[0], first[1]));
        let mut lanes = [0.0; 4];
        // SAFETY: the token proves the feature; `lanes` is four writable floats.
        unsafe { vst1q_f32(lanes.as_mut_ptr(), four) };
        let pick = |a: f32, b: f32| if a > b { a } else { b };
        pick(pick(lanes[0], lanes[2]), pick(lanes[1], lanes[3]))
    }
    #[inline(always)]
    fn store_i8(self, floats: Self::Floats, to: &mut [i8; LANES]) {
        let ints = four!(vcvtq_s32_f32(floats));
        let bytes = lanes!({
            let low = vcombine_s16(vqmovn_s32(ints[0]), vqmovn_s32(ints[1]));
            let high = vcombine_s16(vqmovn_s32(ints[2]), vqmovn_s32(ints[3]));
            vcombine_s8(vqmovn_s16(low), vqmovn_s16(high))
        });
        // SAFETY: the token proves the feature; `to` is 16 writable bytes.
        unsafe { vst1q_s8(to.as_mut_ptr(), bytes) };
    }
}
