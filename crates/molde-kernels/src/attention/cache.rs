//! Keys and values of one layer, in the layout that the attention kernel reads.
//!
//! Positions come in panels of sixteen. The keys of a panel are transposed, `[kv_head][dimension][position]`,
//! so that the scores of sixteen positions come out in sixteen lanes and nothing is summed across
//! lanes; the values are `[kv_head][position][dimension]`.

use half::f16;

use crate::KernelError;
use crate::arch::{LANES, Simd};
use crate::error::{check_len, check_multiple};

/// An element of the cache: `f32`, exact, or [`half::f16`], half the memory and bandwidth, which pays
/// beyond some thousand tokens.
pub trait CacheElement:
    CacheElementKernels + Copy + Send + Sync + std::fmt::Debug + 'static
{
}

impl CacheElement for f32 {}
impl CacheElement for f16 {}

/// What the kernels need of an element. Sealed: it cannot be named outside this crate.
#[allow(unreachable_pub, reason = "the supertrait of a public trait is public")]
pub trait CacheElementKernels: Sized {
    /// Zero.
    const ZERO: Self;
    /// Whether elements are half-precision numbers.
    const HALF: bool;
    /// The nearest element to a float.
    fn from_f32(value: f32) -> Self;
    /// The bits of half-precision elements.
    fn half_bits(from: &[Self; LANES]) -> [u16; LANES];
    /// The values of single-precision elements.
    fn floats(from: &[Self; LANES]) -> [f32; LANES];
}

impl CacheElementKernels for f32 {
    const ZERO: Self = 0.0;
    const HALF: bool = false;

    fn from_f32(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn half_bits(_from: &[Self; LANES]) -> [u16; LANES] {
        [0; LANES]
    }
    #[inline(always)]
    fn floats(from: &[Self; LANES]) -> [f32; LANES] {
        *from
    }
}

impl CacheElementKernels for f16 {
    const ZERO: Self = Self::ZERO;
    const HALF: bool = true;

    fn from_f32(value: f32) -> Self {
        Self::from_f32(value)
    }
    #[inline(always)]
    fn half_bits(from: &[Self; LANES]) -> [u16; LANES] {
        let mut bits = [0; LANES];
        for i in 0..LANES {
            bits[i] = from[i].to_bits();
        }
        bits
    }
    #[inline(always)]
    fn floats(_from: &[Self; LANES]) -> [f32; LANES] {
        [0.0; LANES]
    }
}

/// Sixteen elements as floats.
#[inline(always)]
pub(super) fn load<S: Simd, E: CacheElement>(simd: S, from: &[E; LANES]) -> S::Floats {
    if E::HALF { simd.load_f16(&E::half_bits(from)) } else { simd.load(&E::floats(from)) }
}

/// The keys and values of one layer and one sequence. A plain value: it can be cloned at the end
/// of a shared prefix and cut back.
#[derive(Debug, Clone)]
pub struct KvLayer<E> {
    kv_heads: usize,
    head_dim: usize,
    len: usize,
    /// `[panel][kv_head][dimension]`, sixteen positions each.
    keys: Vec<[E; LANES]>,
    /// `[panel][kv_head][position][dimension / 16]`, sixteen dimensions each.
    values: Vec<[E; LANES]>,
}

impl<E: CacheElement> KvLayer<E> {
    /// An empty cache for `kv_heads` heads of `head_dim` dimensions.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `kv_heads` is zero or `head_dim` is no multiple of 16.
    pub fn new(kv_heads: usize, head_dim: usize) -> Result<Self, KernelError> {
        check_multiple("kv_heads", 1, kv_heads)?;
        check_multiple("head_dim", LANES, head_dim)?;
        Ok(Self { kv_heads, head_dim, len: 0, keys: Vec::new(), values: Vec::new() })
    }

    /// Number of positions held.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is held.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of key-value heads.
    pub const fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Dimensions of a head.
    pub const fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Heap bytes held, spare capacity included.
    pub fn memory_bytes(&self) -> usize {
        (self.keys.capacity() + self.values.capacity()) * size_of::<[E; LANES]>()
    }

    /// Makes room for `positions` in total, so that appending up to there allocates nothing.
    pub fn reserve(&mut self, positions: usize) {
        let vectors = positions.div_ceil(LANES) * self.kv_heads * self.head_dim;
        self.keys.reserve(vectors.saturating_sub(self.keys.len()));
        self.values.reserve(vectors.saturating_sub(self.values.len()));
    }

    /// A copy of the first `len` positions, or of all if there are fewer, with room for `positions`
    /// in total.
    #[must_use]
    pub fn prefix(&self, len: usize, positions: usize) -> Self {
        let len = self.len.min(len);
        let vectors = len.div_ceil(LANES) * self.kv_heads * self.head_dim;
        let mut copy = Self { len, keys: Vec::new(), values: Vec::new(), ..*self };
        copy.reserve(positions.max(len));
        copy.keys.extend_from_slice(&self.keys[..vectors]);
        copy.values.extend_from_slice(&self.values[..vectors]);
        copy
    }

    /// Drops all positions from `len` on; does nothing if there are no more.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        let vectors = self.len.div_ceil(LANES) * self.kv_heads * self.head_dim;
        self.keys.truncate(vectors);
        self.values.truncate(vectors);
    }

    /// Appends the keys and values of some tokens, `[tokens, kv_heads, head_dim]` each.
    ///
    /// # Errors
    /// [`KernelError::Length`] if the two differ in length, or hold no whole number of tokens.
    pub fn append(&mut self, keys: &[f32], values: &[f32]) -> Result<(), KernelError> {
        let token = self.kv_heads * self.head_dim;
        let tokens = keys.len() / token;
        check_len("keys", tokens * token, keys.len())?;
        check_len("values", keys.len(), values.len())?;
        let end = self.len + tokens;
        let vectors = end.div_ceil(LANES) * token;
        self.keys.resize(vectors, [E::ZERO; LANES]);
        self.values.resize(vectors, [E::ZERO; LANES]);
        for (position, (keys, values)) in
            (self.len..end).zip(keys.chunks_exact(token).zip(values.chunks_exact(token)))
        {
            let (panel, lane) = (position / LANES * token, position % LANES);
            for (vector, &key) in self.keys[panel..panel + token].iter_mut().zip(keys) {
                vector[lane] = E::from_f32(key);
            }
            let head_vectors = self.head_dim / LANES;
            for (head, values) in values.chunks_exact(self.head_dim).enumerate() {
                let at = panel + head * self.head_dim + lane * head_vectors;
                let vectors = &mut self.values[at..at + head_vectors];
                for (vector, values) in vectors.iter_mut().zip(values.as_chunks::<LANES>().0) {
                    *vector = values.map(E::from_f32);
                }
            }
        }
        self.len = end;
        Ok(())
    }

    /// The transposed keys of sixteen positions: one vector per dimension.
    #[inline(always)]
    pub(crate) fn key_panel(&self, head: usize, panel: usize) -> &[[E; LANES]] {
        &self.keys[(panel * self.kv_heads + head) * self.head_dim..][..self.head_dim]
    }

    /// The values of sixteen positions: `head_dim / 16` vectors per position.
    #[inline(always)]
    pub(crate) fn value_panel(&self, head: usize, panel: usize) -> &[[E; LANES]] {
        &self.values[(panel * self.kv_heads + head) * self.head_dim..][..self.head_dim]
    }
}
