//! Sixteen lanes in one 512-bit register; four byte products and their sum in one instruction.
#![allow(
    unsafe_code,
    reason = "intrinsics; each method's safety rests on the token, see `Avx512Vnni`"
)]
#![allow(clippy::wildcard_imports, reason = "nearly every name is an intrinsic")]

use core::arch::x86_64::*;

use crate::arch::{Kernel, LANES, Line, Simd};

/// Proof that the processor has AVX-512 F, BW, DQ, VL and VNNI, and all of AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512Vnni(());

/// Calls intrinsics that touch no memory.
macro_rules! lanes {
    ($value:expr) => {
        // SAFETY: a value of `Avx512Vnni`, which every method here takes, exists only if the
        // processor has the instructions; the intrinsics used inside work on values alone.
        unsafe { $value }
    };
}

impl Avx512Vnni {
    pub(crate) fn detect() -> Option<Self> {
        let available = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && super::Avx2::detect().is_some();
        available.then_some(Self(()))
    }
}

impl Simd for Avx512Vnni {
    type Bytes = __m512i;
    type Ints = __m512i;
    type Floats = __m512;

    const TILE: usize = 6;
    const PANELS: usize = 2;

    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        fn entry<K: Kernel>(simd: Avx512Vnni, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has these features.
        unsafe { entry(self, kernel) }
    }

    #[inline(always)]
    fn prefetch(self, line: &Line) {
        // SAFETY: the token proves the feature; a prefetch of readable memory changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.0.as_ptr().cast()) };
    }
    #[inline(always)]
    fn prefetch_far(self, line: &Line) {
        // SAFETY: as in `prefetch`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.0.as_ptr().cast()) };
    }
    #[inline(always)]
    fn load_bytes(self, line: &Line) -> Self::Bytes {
        // SAFETY: the token proves the feature; a line is 64 readable bytes, aligned to 64.
        unsafe { _mm512_load_si512(std::ptr::from_ref(line).cast()) }
    }
    #[inline(always)]
    fn store_bytes(self, bytes: Self::Bytes, line: &mut Line) {
        // SAFETY: the token proves the feature; a line is 64 writable bytes, aligned to 64.
        unsafe { _mm512_store_si512(std::ptr::from_mut(line).cast(), bytes) }
    }
    #[inline(always)]
    fn and(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes {
        lanes!(_mm512_and_si512(bytes, _mm512_set1_epi8(mask.cast_signed())))
    }
    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        lanes!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        lanes!(_mm512_slli_epi16::<BITS>(bytes))
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        lanes!(_mm512_srli_epi16::<BITS>(bytes))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> Self::Ints {
        lanes!(_mm512_set1_epi32(value))
    }
    #[inline(always)]
    fn start_wide(self, offset: i32) -> Self::Ints {
        self.splat_int(offset)
    }
    #[inline(always)]
    fn dot_narrow(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        lanes!(_mm512_dpbusd_epi32(sums, codes, _mm512_set1_epi32(word.cast_signed())))
    }
    #[inline(always)]
    fn dot_wide(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        self.dot_narrow(sums, codes, word)
    }
    #[inline(always)]
    fn to_floats(self, ints: Self::Ints) -> Self::Floats {
        lanes!(_mm512_cvtepi32_ps(ints))
    }
    #[inline(always)]
    fn max_int(self, ints: Self::Ints) -> i32 {
        lanes!(_mm512_reduce_max_epi32(ints))
    }
    #[inline(always)]
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        lanes!(_mm512_max_epi32(a, b))
    }
    #[inline(always)]
    fn magnitude_bits(self, floats: Self::Floats) -> Self::Ints {
        lanes!(_mm512_and_si512(_mm512_castps_si512(floats), _mm512_set1_epi32(i32::MAX)))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        lanes!(_mm512_set1_ps(value))
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        // SAFETY: the token proves the feature; `from` is 64 readable bytes, no alignment needed.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, floats: Self::Floats, to: &mut [f32; LANES]) {
        // SAFETY: the token proves the feature; `to` is 64 writable bytes, no alignment needed.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), floats) }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::Floats {
        // SAFETY: the token proves the features; `from` is 32 readable bytes, no alignment needed.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the features; `from` is 16 readable bytes, no alignment needed.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the features; `from` is 16 readable bytes, no alignment needed.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
    }
    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        lanes!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn round(self, a: Self::Floats) -> Self::Floats {
        lanes!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::Floats) -> Self::Floats {
        lanes!({
            let exponent = _mm512_add_epi32(_mm512_cvttps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponent))
        })
    }
    #[inline(always)]
    fn zero_where_less(
        self,
        a: Self::Floats,
        b: Self::Floats,
        value: Self::Floats,
    ) -> Self::Floats {
        lanes!(_mm512_mask_mov_ps(
            value,
            _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b),
            _mm512_setzero_ps()
        ))
    }
    #[inline(always)]
    fn select(self, bits: u16, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        lanes!(_mm512_mask_mov_ps(b, bits, a))
    }
    #[inline(always)]
    fn sum(self, floats: Self::Floats) -> f32 {
        lanes!({
            let eight =
                _mm256_add_ps(_mm512_castps512_ps256(floats), _mm512_extractf32x8_ps::<1>(floats));
            super::avx2::sum_eight(eight)
        })
    }
    #[inline(always)]
    fn max_lane(self, floats: Self::Floats) -> f32 {
        lanes!({
            let eight =
                _mm256_max_ps(_mm512_castps512_ps256(floats), _mm512_extractf32x8_ps::<1>(floats));
            super::avx2::max_eight(eight)
        })
    }
    #[inline(always)]
    fn store_i8(self, floats: Self::Floats, to: &mut [i8; LANES]) {
        // SAFETY: the token proves the features; `to` is 16 writable bytes, no alignment needed.
        unsafe {
            _mm_storeu_si128(
                to.as_mut_ptr().cast(),
                _mm512_cvtsepi32_epi8(_mm512_cvttps_epi32(floats)),
            );
        }
    }
}
