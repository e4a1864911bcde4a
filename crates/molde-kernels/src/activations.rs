//! Rows of activations, quantized to 8 bits in blocks of 32.

use rayon::prelude::*;

use crate::arch::{Kernel, LANES, Simd};
use crate::error::{check_len, check_multiple};
use crate::weights::BLOCK;
use crate::{KernelError, Kernels};

/// Most tokens in a tile: with two panels of weights their sums just fit 32 registers. Up to this
/// many in all, weights are unpacked in registers, right where they are used.
pub(crate) const MAX_TILE: usize = 6;

/// Which of a block's precomputed offsets a format starts its dot products from.
pub(crate) mod offset {
    /// -128 times the sum of the codes.
    pub(crate) const ZERO_128: usize = 0;
    /// -16 times the sum of the codes.
    pub(crate) const ZERO_16: usize = 1;
    /// -8 times the sum of the codes.
    pub(crate) const ZERO_8: usize = 2;
    /// -32 times the sum of the first 16 codes.
    pub(crate) const ZERO_32_FIRST: usize = 3;
    /// -32 times the sum of the last 16 codes.
    pub(crate) const ZERO_32_SECOND: usize = 4;
}

/// 32 activations of one token: one cache line.
///
/// Weight codes are unsigned, so a product with `code - zero` is the product with `code` plus
/// `-zero` times the sum of the activations: kept here, so that a kernel *starts* its integer sum
/// from it and the offset costs nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct ActivationBlock {
    /// Signed bytes, four to a word, lowest first.
    pub(crate) words: [u32; 8],
    pub(crate) scale: f32,
    /// The scale times the sum of the codes.
    pub(crate) scaled_sum: f32,
    /// See [`offset`].
    pub(crate) offsets: [i32; 5],
}

impl ActivationBlock {
    const ZERO: Self = Self { words: [0; 8], scale: 0.0, scaled_sum: 0.0, offsets: [0; 5] };
}

/// How `rows` tokens are cut into tiles of nearly equal size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiles {
    rows: usize,
    count: usize,
}

impl Tiles {
    pub(crate) const fn new(rows: usize) -> Self {
        Self { rows, count: rows.div_ceil(MAX_TILE) }
    }

    pub(crate) const fn count(self) -> usize {
        self.count
    }

    /// First token of a tile; the number of tokens for the tile past the last.
    pub(crate) fn start(self, tile: usize) -> usize {
        let count = self.count.max(1);
        tile * (self.rows / count) + tile.min(self.rows % count)
    }
}

/// Activations `[rows, columns]`, quantized for a multiplication with a [`PackedMatrix`](crate::PackedMatrix).
///
/// Each token's 32 consecutive values share a scale, `max |x| / 127`; a value is rounded to the
/// nearest step, ties to even. A row's codes depend on that row alone. A block with an infinite or
/// undefined value makes all results of its token undefined (NaN), never another token's.
///
/// The buffer is reused: after the largest shape was seen, quantizing allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct QuantizedRows {
    rows: usize,
    columns: usize,
    /// `[tile][block][token of the tile]`
    blocks: Vec<ActivationBlock>,
}

impl QuantizedRows {
    /// An empty buffer.
    pub const fn new() -> Self {
        Self { rows: 0, columns: 0, blocks: Vec::new() }
    }

    /// Number of tokens.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of values per token.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Replaces the content with `values`, `[rows, columns]` row by row.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if `columns` is zero, [`KernelError::Length`] if `values` does not hold
    /// `rows * columns` elements.
    pub fn quantize(
        &mut self,
        kernels: Kernels,
        pool: &rayon::ThreadPool,
        values: &[f32],
        rows: usize,
        columns: usize,
    ) -> Result<(), KernelError> {
        check_multiple("columns", 1, columns)?;
        check_len("values", rows.saturating_mul(columns), values.len())?;
        (self.rows, self.columns) = (rows, columns);
        let blocks = columns.div_ceil(BLOCK);
        self.blocks.resize(rows * blocks, ActivationBlock::ZERO);
        let tiles = Tiles::new(rows);
        if tiles.count() <= 1 {
            if rows > 0 {
                kernels.run(QuantizeTile { values, columns, to: &mut self.blocks });
            }
            return Ok(());
        }
        // Tiles come in two sizes, the larger first.
        let small = rows / tiles.count();
        let split = rows % tiles.count() * (small + 1);
        let (large_values, small_values) = values.split_at(split * columns);
        let (large_blocks, small_blocks) = self.blocks.split_at_mut(split * blocks);
        let quantize = |values: &[f32], to: &mut [ActivationBlock], tile: usize| {
            to.par_chunks_mut(tile * blocks)
                .zip(values.par_chunks(tile * columns))
                .for_each(|(to, values)| kernels.run(QuantizeTile { values, columns, to }));
        };
        pool.install(|| {
            quantize(large_values, large_blocks, small + 1);
            quantize(small_values, small_blocks, small);
        });
        Ok(())
    }

    pub(crate) const fn tiles(&self) -> Tiles {
        Tiles::new(self.rows)
    }

    /// The blocks of a tile, `[block][token]`, with its number of tokens.
    pub(crate) fn tile(&self, tile: usize) -> (&[ActivationBlock], usize) {
        let blocks = self.columns.div_ceil(BLOCK);
        let (start, end) = (self.tiles().start(tile), self.tiles().start(tile + 1));
        (&self.blocks[start * blocks..end * blocks], end - start)
    }
}

/// Quantizes the tokens of one tile.
struct QuantizeTile<'a> {
    values: &'a [f32],
    columns: usize,
    to: &'a mut [ActivationBlock],
}

impl Kernel for QuantizeTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let tokens = self.values.len() / self.columns;
        for (token, row) in self.values.chunks_exact(self.columns).enumerate() {
            let (whole, rest) = row.as_chunks::<BLOCK>();
            for (block, values) in whole.iter().enumerate() {
                self.to[block * tokens + token] = quantize_block(simd, values);
            }
            if !rest.is_empty() {
                let mut padded = [0.0; BLOCK];
                padded[..rest.len()].copy_from_slice(rest);
                self.to[whole.len() * tokens + token] = quantize_block(simd, &padded);
            }
        }
    }
}

/// Bit pattern of infinity: magnitudes from here on are not finite.
const INFINITY_BITS: i32 = 0x7f80_0000;

#[inline(always)]
fn quantize_block<S: Simd>(simd: S, values: &[f32; BLOCK]) -> ActivationBlock {
    let halves = values.as_chunks::<LANES>().0;
    let (first, second) = (simd.load(&halves[0]), simd.load(&halves[1]));
    let bits = simd.max_int(simd.max_ints(simd.magnitude_bits(first), simd.magnitude_bits(second)));
    let mut block = ActivationBlock::ZERO;
    if bits >= INFINITY_BITS {
        block.scale = f32::NAN;
        block.scaled_sum = f32::NAN;
        return block;
    }
    let largest = f32::from_bits(bits.cast_unsigned());
    let inverse = 127.0 / largest;
    // Below about 4e-37 the inverse overflows; such values are zeros next to anything else.
    if !inverse.is_finite() {
        return block;
    }
    let inverse = simd.splat(inverse);
    let first = simd.round(simd.mul(first, inverse));
    let second = simd.round(simd.mul(second, inverse));
    let mut codes = [[0_i8; LANES]; 2];
    simd.store_i8(first, &mut codes[0]);
    simd.store_i8(second, &mut codes[1]);
    for (word, bytes) in block.words.iter_mut().zip(codes.as_flattened().as_chunks::<4>().0) {
        *word = u32::from_le_bytes(bytes.map(i8::cast_unsigned));
    }
    // Sums of 16 integers up to 127 are exact in f32, in any order.
    let sums = [simd.sum(first) as i32, simd.sum(second) as i32];
    let sum = sums[0] + sums[1];
    block.scale = largest / 127.0;
    block.scaled_sum = block.scale * sum as f32;
    block.offsets[offset::ZERO_128] = -128 * sum;
    block.offsets[offset::ZERO_16] = -16 * sum;
    block.offsets[offset::ZERO_8] = -8 * sum;
    block.offsets[offset::ZERO_32_FIRST] = -32 * sums[0];
    block.offsets[offset::ZERO_32_SECOND] = -32 * sums[1];
    block
}
