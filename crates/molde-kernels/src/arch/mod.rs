//! The sixteen-lane machine that every kernel is written for, and its implementations.
//!
//! A kernel is one generic function over [`Simd`]; each instruction set only says how sixteen
//! `f32` lanes, sixteen `i32` lanes and 64 bytes are loaded, combined and stored. Integer
//! operations are exact, every float operation is the IEEE one on each lane, `fma` is fused
//! everywhere and horizontal sums fold by halves in one fixed tree, so all instruction sets agree
//! bit for bit by construction.
//!
//! A value of an implementing type is a proof that the processor has the instructions: it can only
//! be made by detection. That is what makes the methods safe.

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

pub(crate) use scalar::Scalar;

/// Lanes of the machine: floats or `i32` in a vector, and rows in a panel of weights.
pub(crate) const LANES: usize = 16;

/// 64 bytes, one cache line: the unit in which weight codes are loaded.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

impl Line {
    pub(crate) const ZERO: Self = Self([0; 64]);
}

/// A computation that is compiled once per instruction set.
///
/// `run` and everything generic that it calls must be `#[inline(always)]`: only code inlined into
/// the implementation's entry point is compiled with its instructions.
pub(crate) trait Kernel {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Sixteen lanes of arithmetic. See the module documentation.
pub(crate) trait Simd: Copy + Send + Sync {
    /// 64 unsigned bytes: for lane `i`, bytes `4 i .. 4 i + 4`.
    type Bytes: Copy;
    /// Sixteen `i32`.
    type Ints: Copy;
    /// Sixteen `f32`.
    type Floats: Copy;

    /// Tokens for which a matrix kernel keeps its accumulators in registers.
    const TILE: usize;
    /// Panels of weights that it multiplies together with a tile, one or two.
    const PANELS: usize;

    /// Runs a kernel compiled for this instruction set, as a function of its own.
    fn enter<K: Kernel>(self, kernel: K) -> K::Output;

    /// Asks for a line that will be loaded soon.
    fn prefetch(self, line: &Line);
    /// Asks for a line that will be loaded later, not to displace what is in use now.
    fn prefetch_far(self, line: &Line);
    fn load_bytes(self, line: &Line) -> Self::Bytes;
    fn store_bytes(self, bytes: Self::Bytes, line: &mut Line);
    /// Each byte ANDed with `mask`.
    fn and(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes;
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Each byte shifted left by `BITS` below 8; bits that would enter from the next byte are unspecified.
    fn shift_left<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes;
    /// Each byte shifted right by `BITS` below 8; bits that would enter from the next byte are unspecified.
    fn shift_right<const BITS: u32>(self, bytes: Self::Bytes) -> Self::Bytes;

    fn splat_int(self, value: i32) -> Self::Ints;
    /// Start of a dot product by [`dot_wide`](Self::dot_wide); `offset` is -128 times the sum of the activations.
    fn start_wide(self, offset: i32) -> Self::Ints;
    /// Adds to lane `i` the dot product of its four codes, each below 64, and the four signed bytes
    /// of `word`, each at least -127, lowest byte first.
    fn dot_narrow(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints;
    /// The same for codes of 8 bits. Together with [`start_wide`](Self::start_wide) it gives the dot product of
    /// `code - 128`.
    fn dot_wide(self, sums: Self::Ints, codes: Self::Bytes, word: u32) -> Self::Ints;
    fn to_floats(self, ints: Self::Ints) -> Self::Floats;
    /// The largest lane.
    fn max_int(self, ints: Self::Ints) -> i32;
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The bit patterns without the sign: ordered as the magnitudes, infinity and NaN last.
    fn magnitude_bits(self, floats: Self::Floats) -> Self::Ints;

    fn splat(self, value: f32) -> Self::Floats;
    fn load(self, from: &[f32; LANES]) -> Self::Floats;
    fn store(self, floats: Self::Floats, to: &mut [f32; LANES]);
    /// IEEE half precision, exactly.
    fn load_f16(self, from: &[u16; LANES]) -> Self::Floats;
    fn load_u8(self, from: &[u8; LANES]) -> Self::Floats;
    fn load_i8(self, from: &[i8; LANES]) -> Self::Floats;
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// `if a > b { a } else { b }` per lane.
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `if a < b { a } else { b }` per lane.
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// To the nearest integer, ties to even.
    fn round(self, a: Self::Floats) -> Self::Floats;
    /// `2^n` for lanes that hold integers from -126 to 127.
    fn power_of_two(self, n: Self::Floats) -> Self::Floats;
    /// `if a < b { 0 } else { value }` per lane.
    fn zero_where_less(self, a: Self::Floats, b: Self::Floats, value: Self::Floats)
    -> Self::Floats;
    /// Lane `i` of `a` where bit `i` of `bits` is set, else of `b`.
    fn select(self, bits: u16, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// Sum of the lanes: lane `i` with `i + 8`, then `i + 4`, `i + 2`, `i + 1`.
    fn sum(self, floats: Self::Floats) -> f32;
    /// The largest lane, folded in the same tree by [`max`](Self::max).
    fn max_lane(self, floats: Self::Floats) -> f32;
    /// Lanes that hold integers from -127 to 127, as bytes.
    fn store_i8(self, floats: Self::Floats, to: &mut [i8; LANES]);
}
