//! The machine in portable Rust: the twin that every other implementation is compared with.

use super::{Kernel, LANES, Line, Simd};

/// Portable lanes; exists everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

#[inline(always)]
fn zip<T: Copy>(a: [T; LANES], b: [T; LANES], f: impl Fn(T, T) -> T) -> [T; LANES] {
    let mut out = a;
    for i in 0..LANES {
        out[i] = f(a[i], b[i]);
    }
    out
}

/// Folds sixteen lanes by halves, the order that [`Simd::sum`] promises.
#[inline(always)]
fn fold<T: Copy>(mut lanes: [T; LANES], f: impl Fn(T, T) -> T) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = f(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn dot(sums: [i32; LANES], codes: &[u8; 64], word: u32, zero: i32) -> [i32; LANES] {
    let activation = word.to_le_bytes();
    let mut out = sums;
    for (sum, group) in out.iter_mut().zip(codes.as_chunks::<4>().0) {
        for j in 0..4 {
            *sum += (i32::from(group[j]) - zero) * i32::from(activation[j].cast_signed());
        }
    }
    out
}

impl Simd for Scalar {
    type Bytes = [u8; 64];
    type Ints = [i32; LANES];
    type Floats = [f32; LANES];

    const TILE: usize = 1;
    const PANELS: usize = 1;

    fn enter<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn prefetch(self, _line: &Line) {}
    #[inline(always)]
    fn prefetch_far(self, _line: &Line) {}
    #[inline(always)]
    fn load_bytes(self, line: &Line) -> Self::Bytes {
        line.0
    }
    #[inline(always)]
    fn store_bytes(self, bytes: Self::Bytes, line: &mut Line) {
        line.0 = bytes;
    }
    #[inline(always)]
    fn and(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes {
        bytes.map(|byte| byte & mask)
    }
    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        let mut out = a;
        for i in 0..64 {
            out[i] |= b[i];
        }
        out
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        bytes.map(|byte| byte << BITS)
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes {
        bytes.map(|byte| byte >> BITS)
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> Self::Ints {
        [value; LANES]
    }
    #[inline(always)]
    fn start_wide(self, _offset: i32) -> Self::Ints {
        [0; LANES]
    }
    #[inline(always)]
    fn dot_narrow(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        dot(sums, &codes, word, 0)
    }
    #[inline(always)]
    fn dot_wide(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints {
        dot(sums, &codes, word, 128)
    }
    #[inline(always)]
    fn to_floats(self, ints: Self::Ints) -> Self::Floats {
        ints.map(|int| int as f32)
    }
    #[inline(always)]
    fn max_int(self, ints: Self::Ints) -> i32 {
        fold(ints, i32::max)
    }
    #[inline(always)]
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        zip(a, b, i32::max)
    }
    #[inline(always)]
    fn magnitude_bits(self, floats: Self::Floats) -> Self::Ints {
        floats.map(|float| float.abs().to_bits().cast_signed())
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        *from
    }
    #[inline(always)]
    fn store(self, floats: Self::Floats, to: &mut [f32; LANES]) {
        *to = floats;
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::Floats {
        from.map(|bits| half::f16::from_bits(bits).to_f32())
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8; LANES]) -> Self::Floats {
        from.map(f32::from)
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> Self::Floats {
        from.map(f32::from)
    }
    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        let mut out = c;
        for i in 0..LANES {
            out[i] = a[i].mul_add(b[i], c[i]);
        }
        out
    }
    #[inline(always)]
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn round(self, a: Self::Floats) -> Self::Floats {
        a.map(f32::round_ties_even)
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::Floats) -> Self::Floats {
        n.map(|n| f32::from_bits((n as i32).wrapping_add(127).cast_unsigned() << 23))
    }
    #[inline(always)]
    fn zero_where_less(
        self,
        a: Self::Floats,
        b: Self::Floats,
        value: Self::Floats,
    ) -> Self::Floats {
        let mut out = value;
        for i in 0..LANES {
            if a[i] < b[i] {
                out[i] = 0.0;
            }
        }
        out
    }
    #[inline(always)]
    fn select(self, bits: u16, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        let mut out = b;
        for i in 0..LANES {
            if bits >> i & 1 == 1 {
                out[i] = a[i];
            }
        }
        out
    }
    #[inline(always)]
    fn sum(self, floats: Self::Floats) -> f32 {
        fold(floats, |a, b| a + b)
    }
    #[inline(always)]
    fn max_lane(self, floats: Self::Floats) -> f32 {
        fold(floats, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn store_i8(self, floats: Self::Floats, to: &mut [i8; LANES]) {
        *to = floats.map(|float| float as i8);
    }
}
