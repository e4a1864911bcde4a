//! Sixteen lanes in two 256-bit registers.
#![allow(unsafe_code, reason = "intrinsics; each method's safety rests on the token, see `Avx2`")]
#![allow(clippy::wildcard_imports, reason = "nearly every name is an intrinsic")]

use core::arch::x86_64::*;

use crate::arch::{Kernel, LANES, Line, Simd};

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Calls intrinsics that touch no memory.
macro_rules! lanes {
    ($value:expr) => {
        // SAFETY: a value of `Avx2`, which every method here takes, exists only if the processor
        // has the instructions; the intrinsics used inside work on values alone.
        unsafe { $value }
    };
}

/// The same intrinsic on both halves.
macro_rules! both {
    ($name:ident($a:expr)) => {{
        let a = $a;
        lanes!([$name(a[0]), $name(a[1])])
    }};
    ($name:ident($a:expr, $b:expr)) => {{
        let (a, b) = ($a, $b);
        lanes!([$name(a[0], b[0]), $name(a[1], b[1])])
    }};
    ($name:ident($a:expr, $b:expr, $c:expr)) => {{
        let (a, b, c) = ($a, $b, $c);
        lanes!([$name(a[0], b[0], c[0]), $name(a[1], b[1], c[1])])
    }};
}

/// Sum of eight lanes, folded by halves.
///
/// # Safety
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum_eight(eight: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// Largest of eight lanes, folded by halves.
///
/// # Safety
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn max_eight(eight: __m256) -> f32 {
    let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let available = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        available.then_some(Self(()))
    }
}

impl Simd for Avx2 {
    type Bytes = [__m256i; 2];
    type Ints = [__m256i; 2];
    type Floats = [__m256; 2];

    const TILE: usize = 2;
    const PANELS: usize = 1;

    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn entry<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
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
        let halves = std::ptr::from_ref(line).cast::<__m256i>();
        // SAFETY: the token proves the feature; a line is twice 32 readable bytes, aligned to 64.
        unsafe { [_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))] }
    }
    #[inline(always)]
    fn store_bytes(self, bytes: Self::Bytes, line: &mut Line) {
        let halves = std::ptr::from_mut(line).cast::<__m256i>();
        // SAFETY: the token proves the feature; a line is twice 32 writable bytes, aligned to 64.
        unsafe {
            _mm256_store_si256(halves, bytes[0]);
            _mm256_store_si256(halves.add(1), bytes[1]);
        }
    }
    #[inline(always)]
    fn and(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes {
        let mask = [lanes!(_mm256_set1_epi8(mask.cast_signed())); 2];
        both!(_mm256_and_si256(bytes, mask))
    }
    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        both!(_mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        let count = lanes!(_mm_cvtsi32_si128(BITS.cast_signed()));
        both!(_mm256_sll_epi16(bytes, [count; 2]))
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        let count = lanes!(_mm_cvtsi32_si128(BITS.cast_signed()));
        both!(_mm256_srl_epi16(bytes, [count; 2]))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> Self::Ints {
        [lanes!(_mm256_set1_epi32(value)); 2]
    }
    #[inline(always)]
    fn start_wide(self, _offset: i32) -> Self::Ints {
        self.splat_int(0)
    }
    #[inline(always)]
    fn dot_narrow(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        let activation = self.splat_int(word.cast_signed());
        let ones = [lanes!(_mm256_set1_epi16(1)); 2];
        // Two products of at most 63 * 127 stay far below the saturation at 32,767.
        let pairs = both!(_mm256_maddubs_epi16(codes, activation));
        both!(_mm256_add_epi32(sums, both!(_mm256_madd_epi16(pairs, ones))))
    }
    #[inline(always)]
    fn dot_wide(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        let activation = self.splat_int(word.cast_signed());
        let flip = [lanes!(_mm256_set1_epi8(-128)); 2];
        // |code - 128| * (activation * sign(code - 128)): two products of at most 128 * 127 do not
        // saturate, and no activation is -128, whose sign could not be changed.
        let weights = both!(_mm256_xor_si256(codes, flip));
        let magnitudes = both!(_mm256_abs_epi8(weights));
        let signed = both!(_mm256_sign_epi8(activation, weights));
        let ones = [lanes!(_mm256_set1_epi16(1)); 2];
        let pairs = both!(_mm256_maddubs_epi16(magnitudes, signed));
        both!(_mm256_add_epi32(sums, both!(_mm256_madd_epi16(pairs, ones))))
    }
    #[inline(always)]
    fn to_floats(self, ints: Self::Ints) -> Self::Floats {
        both!(_mm256_cvtepi32_ps(ints))
    }
    #[inline(always)]
    fn max_int(self, ints: Self::Ints) -> i32 {
        lanes!({
            let eight = _mm256_max_epi32(ints[0], ints[1]);
            let four =
                _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
            let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b1110>(four));
            _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32::<0b01>(two)))
        })
    }
    #[inline(always)]
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        both!(_mm256_max_epi32(a, b))
    }
    #[inline(always)]
    fn magnitude_bits(self, floats: Self::Floats) -> Self::Ints {
        both!(_mm256_and_si256(both!(_mm256_castps_si256(floats)), self.splat_int(i32::MAX)))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        [lanes!(_mm256_set1_ps(value)); 2]
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        let from = from.as_ptr();
        // SAFETY: the token proves the feature; `from` is twice 32 readable bytes, no alignment needed.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }
    #[inline(always)]
    fn store(self, floats: Self::Floats, to: &mut [f32; LANES]) {
        let to = to.as_mut_ptr();
        // SAFETY: the token proves the feature; `to` is twice 32 writable bytes, no alignment needed.
        unsafe {
            _mm256_storeu_ps(to, floats[0]);
            _mm256_storeu_ps(to.add(8), floats[1]);
        }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::Floats {
        // SAFETY: the token proves F16C; `from` is twice 16 readable bytes, no alignment needed.
        unsafe {
            let halves = [
                _mm_loadu_si128(from.as_ptr().cast()),
                _mm_loadu_si128(from.as_ptr().add(8).cast()),
            ];
            [_mm256_cvtph_ps(halves[0]), _mm256_cvtph_ps(halves[1])]
        }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the feature; `from` is 16 readable bytes, no alignment needed.
        let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        let halves = [bytes, lanes!(_mm_unpackhi_epi64(bytes, bytes))];
        both!(_mm256_cvtepi32_ps(both!(_mm256_cvtepu8_epi32(halves))))
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> Self::Floats {
        // SAFETY: the token proves the feature; `from` is 16 readable bytes, no alignment needed.
        let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        let halves = [bytes, lanes!(_mm_unpackhi_epi64(bytes, bytes))];
        both!(_mm256_cvtepi32_ps(both!(_mm256_cvtepi8_epi32(halves))))
    }
    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        both!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        both!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn round(self, a: Self::Floats) -> Self::Floats {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        lanes!([_mm256_round_ps::<NEAREST>(a[0]), _mm256_round_ps::<NEAREST>(a[1])])
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::Floats) -> Self::Floats {
        let exponents = both!(_mm256_add_epi32(both!(_mm256_cvttps_epi32(n)), self.splat_int(127)));
        lanes!([
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponents[0])),
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponents[1])),
        ])
    }
    #[inline(always)]
    fn zero_where_less(
        self,
        a: Self::Floats,
        b: Self::Floats,
        value: Self::Floats,
    ) -> Self::Floats {
        let less = lanes!([
            _mm256_cmp_ps::<_CMP_LT_OQ>(a[0], b[0]),
            _mm256_cmp_ps::<_CMP_LT_OQ>(a[1], b[1])
        ]);
        both!(_mm256_andnot_ps(less, value))
    }
    #[inline(always)]
    fn select(self, bits: u16, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        let bits = self.splat_int(i32::from(bits));
        let lane_bits = lanes!([
            _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128),
            _mm256_setr_epi32(256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
        ]);
        let set = both!(_mm256_cmpeq_epi32(both!(_mm256_and_si256(bits, lane_bits)), lane_bits));
        both!(_mm256_blendv_ps(b, a, both!(_mm256_castsi256_ps(set))))
    }
    #[inline(always)]
    fn sum(self, floats: Self::Floats) -> f32 {
        lanes!(sum_eight(_mm256_add_ps(floats[0], floats[1])))
    }
    #[inline(always)]
    fn max_lane(self, floats: Self::Floats) -> f32 {
        lanes!(max_eight(_mm256_max_ps(floats[0], floats[1])))
    }
    #[inline(always)]
    fn store_i8(self, floats: Self::Floats, to: &mut [i8; LANES]) {
        let ints = both!(_mm256_cvttps_epi32(floats));
        let bytes = lanes!({
            let words =
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(ints[0], ints[1]));
            _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words))
        });
        // SAFETY: the token proves the feature; `to` is 16 writable bytes, no alignment needed.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bytes) }
    }
}
