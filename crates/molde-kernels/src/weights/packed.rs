//! A weight matrix, repacked for the kernels: sixteen rows interleaved, codes kept at their size.
//!
//! ```text
//!  panel = 16 rows          block = 32 columns of a panel            line = 64 bytes
//!  ┌───────────────┐        ┌ codes: 4 lines (4 bits)      ┐          byte 4 r + j of the line of
//!  │ block 0 │ 1 │…│   =    │   + 1 line  (fifth bits)     │          group g = row r, column 4 g + j
//!  └───────────────┘        │   + 2 lines (bits 5 and 6)   │
//!                           │   or 8 lines (8 bits)        │          nibbles: groups 0 to 3 low,
//!                           └ scales: one vector of 16 rows┘          groups 4 to 7 high
//! ```
//!
//! One 64-byte load hence gives four columns of all sixteen rows, and four bytes of an activation,
//! broadcast, meet them in one dot-product instruction. Nothing is summed across lanes.
//!
//! # Why the codes keep their size
//! Decoding is bound by memory: a token of the Q4_K_M file reads 397 MB as stored, and would read
//! 525 MB with everything widened to 8 bits, which alone costs a quarter of the speed. Unpacking
//! in registers is free there, and for many tokens it is done once per panel. Every quantized
//! format is kept without any loss: two-level scales stay two-level, so `dequantize_row` returns
//! exactly what the reference does. Float weights are quantized to `Q8_0`.

use half::f16;
use rayon::prelude::*;

use super::WeightType;
use super::blocks::{self, BLOCK, BLOCKS_PER_SUPER, Block};
use super::storage::{Array, Lines, WeightMemory};
use crate::KernelError;
use crate::arch::{LANES, Line};
use crate::error::check_len;

/// The codes of all panels, and how a block spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Four,
    Five,
    Six,
    Eight,
}

impl Width {
    const fn lines(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Five => 5,
            Self::Six => 6,
            Self::Eight => 8,
        }
    }
}

/// Scales of the blocks, one vector entry per row of the panel, `[panel][block]`.
#[derive(Debug)]
pub(crate) enum Scales {
    /// `w = scale * (code - zero)`, half-precision bits.
    Symmetric(Array<[u16; LANES]>),
    /// `w = scale * code + minimum`, half-precision bits.
    Affine(Array<[[u16; LANES]; 2]>),
    /// `w = (coarse scale * scale) * code - coarse minimum * minimum`; the coarse ones are
    /// half-precision bits, `[panel][block / 8]`.
    TwoLevel { fine: Array<[[u8; LANES]; 2]>, coarse: Array<[[u16; LANES]; 2]> },
    /// `w = (coarse scale * scale of the block's half) * (code - 32)`.
    Halves { fine: Array<[[i8; LANES]; 2]>, coarse: Array<[u16; LANES]> },
}

/// What identifies a kernel: the width of the codes and the kind of scales, with the panels.
#[derive(Debug)]
pub(crate) struct Panels<'a> {
    pub(crate) codes: &'a [Line],
    pub(crate) scales: &'a Scales,
    pub(crate) lines_per_block: usize,
    pub(crate) blocks: usize,
    pub(crate) coarse_blocks: usize,
    pub(crate) zero: u8,
}

/// A matrix of weights `[rows, columns]`, `rows` outputs of `columns` inputs each, in the layout
/// that the kernels multiply with.
///
/// Quantized file formats are kept at their size and without loss; float formats become `Q8_0`
/// (8.5 bits a weight, relative error of a block at most 1/254 of its largest weight). Rows are padded to a multiple
/// of 16 and columns to a multiple of 32 with zeros that no result contains.
#[derive(Debug)]
pub struct PackedMatrix {
    rows: usize,
    columns: usize,
    weight_type: WeightType,
    width: Width,
    zero: u8,
    codes: Lines,
    scales: Scales,
}

impl PackedMatrix {
    /// Repacks a matrix from a file's bytes, into memory of its own: see
    /// [`from_bytes_in`](Self::from_bytes_in).
    ///
    /// # Errors
    /// Those of [`from_bytes_in`](Self::from_bytes_in).
    pub fn from_bytes(
        pool: &rayon::ThreadPool,
        weight_type: WeightType,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> Result<Self, KernelError> {
        Self::from_bytes_in(&WeightMemory::unshared(), pool, weight_type, rows, columns, bytes)
    }

    /// Repacks a matrix from a file's bytes, next to the others in `memory`.
    ///
    /// `bytes` holds `rows` rows of `columns` weights each, in file order, without gaps. The work
    /// is spread over `pool`; it takes about a nanosecond per weight and thread.
    ///
    /// # Errors
    /// [`KernelError::Multiple`] if a dimension is zero or `columns` is no multiple of the type's block,
    /// [`KernelError::Length`] if `bytes` has another size than the shape asks for,
    /// [`KernelError::TooLarge`] if that size does not fit the address space,
    /// [`KernelError::OutOfMemory`] if the system gives no memory for the packed codes,
    /// [`KernelError::WeightNotFinite`] if a float weight cannot be quantized.
    pub fn from_bytes_in(
        memory: &WeightMemory,
        pool: &rayon::ThreadPool,
        weight_type: WeightType,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> Result<Self, KernelError> {
        crate::error::check_multiple("columns", weight_type.block_weights(), columns)?;
        crate::error::check_multiple("rows", 1, rows)?;
        let too_large = KernelError::TooLarge { rows, columns };
        let row_bytes = weight_type.row_bytes(columns).ok_or_else(|| too_large.clone())?;
        check_len("bytes", row_bytes.checked_mul(rows).ok_or(too_large)?, bytes.len())?;

        let (width, zero) = match weight_type {
            WeightType::Q4_0 => (Width::Four, 8),
            WeightType::Q4_1 | WeightType::Q4_K => (Width::Four, 0),
            WeightType::Q5_0 => (Width::Five, 16),
            WeightType::Q5_1 | WeightType::Q5_K => (Width::Five, 0),
            WeightType::Q6_K => (Width::Six, 32),
            WeightType::F32 | WeightType::F16 | WeightType::BF16 | WeightType::Q8_0 => {
                (Width::Eight, 128)
            }
        };
        let (panels, blocks) = (rows.div_ceil(LANES), columns.div_ceil(BLOCK));
        let coarse = panels * blocks.div_ceil(BLOCKS_PER_SUPER);
        let scales = match weight_type {
            WeightType::Q4_1 | WeightType::Q5_1 => Scales::Affine(memory.array(panels * blocks)?),
            WeightType::Q4_K | WeightType::Q5_K => Scales::TwoLevel {
                fine: memory.array(panels * blocks)?,
                coarse: memory.array(coarse)?,
            },
            WeightType::Q6_K => Scales::Halves {
                fine: memory.array(panels * blocks)?,
                coarse: memory.array(coarse)?,
            },
            _ => Scales::Symmetric(memory.array(panels * blocks)?),
        };
        let codes = memory.lines(panels * blocks * width.lines())?;
        let mut matrix = Self { rows, columns, weight_type, width, zero, codes, scales };
        pool.install(|| matrix.fill(bytes, row_bytes))?;
        Ok(matrix)
    }

    /// Quantizes a matrix of floats, `[rows, columns]` row by row, to `Q8_0` and packs it.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes) with [`WeightType::F32`].
    pub fn from_f32(
        pool: &rayon::ThreadPool,
        rows: usize,
        columns: usize,
        weights: &[f32],
    ) -> Result<Self, KernelError> {
        check_len(
            "weights",
            rows.checked_mul(columns).ok_or(KernelError::TooLarge { rows, columns })?,
            weights.len(),
        )?;
        let bytes: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        Self::from_bytes(pool, WeightType::F32, rows, columns, &bytes)
    }

    /// Number of outputs.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of inputs.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// The type that the weights were read from.
    pub const fn weight_type(&self) -> WeightType {
        self.weight_type
    }

    /// Bytes held, which is also what one multiplication by a vector reads.
    pub fn memory_bytes(&self) -> usize {
        let scales = match &self.scales {
            Scales::Symmetric(scales) => size_of_val(&**scales),
            Scales::Affine(scales) => size_of_val(&**scales),
            Scales::TwoLevel { fine, coarse } => size_of_val(&**fine) + size_of_val(&**coarse),
            Scales::Halves { fine, coarse } => size_of_val(&**fine) + size_of_val(&**coarse),
        };
        size_of_val(&*self.codes) + scales
    }

    /// Writes the weights of one row, as the file's format defines them, to `to`.
    ///
    /// This is how a tied embedding is read: a model needs no second copy of its head.
    ///
    /// # Errors
    /// [`KernelError::OutOfRange`] if there is no such row, [`KernelError::Length`] if `to` does not hold
    /// [`columns`](Self::columns) elements.
    pub fn dequantize_row(&self, row: usize, to: &mut [f32]) -> Result<(), KernelError> {
        if row >= self.rows {
            return Err(KernelError::OutOfRange { argument: "row", got: row, len: self.rows });
        }
        check_len("to", self.columns, to.len())?;
        let (panel, lane) = (row / LANES, row % LANES);
        let blocks = self.columns.div_ceil(BLOCK);
        let half = |bits: u16| f16::from_bits(bits).to_f32();
        for (block, to) in to.chunks_mut(BLOCK).enumerate() {
            let at = panel * blocks + block;
            let coarse_at = panel * blocks.div_ceil(BLOCKS_PER_SUPER) + block / BLOCKS_PER_SUPER;
            // Scale of the first and second half of the block, and what is added to both.
            let (first, second, minimum) = match &self.scales {
                Scales::Symmetric(scales) => {
                    let scale = half(scales[at][lane]);
                    (scale, scale, None)
                }
                Scales::Affine(scales) => {
                    let scale = half(scales[at][0][lane]);
                    (scale, scale, Some(half(scales[at][1][lane])))
                }
                Scales::TwoLevel { fine, coarse } => {
                    let coarse = coarse[coarse_at].map(|lanes| half(lanes[lane]));
                    let fine = fine[at].map(|lanes| f32::from(lanes[lane]));
                    (coarse[0] * fine[0], coarse[0] * fine[0], Some(-(coarse[1] * fine[1])))
                }
                Scales::Halves { fine, coarse } => {
                    let coarse = half(coarse[coarse_at][lane]);
                    let fine = fine[at].map(|lanes| f32::from(lanes[lane]));
                    (coarse * fine[0], coarse * fine[1], None)
                }
            };
            let lines = &self.codes[at * self.width.lines()..][..self.width.lines()];
            for (i, to) in to.iter_mut().enumerate() {
                let code = unpack(self.width, lines, i / 4, lane * 4 + i % 4);
                let scaled = if i < BLOCK / 2 { first } else { second }
                    * f32::from(i16::from(code) - i16::from(self.zero));
                *to = minimum.map_or(scaled, |minimum| scaled + minimum);
            }
        }
        Ok(())
    }

    /// The parts, for the kernels.
    pub(crate) fn panels(&self) -> Panels<'_> {
        let blocks = self.columns.div_ceil(BLOCK);
        Panels {
            codes: &self.codes,
            scales: &self.scales,
            lines_per_block: self.width.lines(),
            blocks,
            coarse_blocks: blocks.div_ceil(BLOCKS_PER_SUPER),
            zero: self.zero,
        }
    }

    /// Packs all panels, in parallel.
    fn fill(&mut self, bytes: &[u8], row_bytes: usize) -> Result<(), KernelError> {
        let blocks = self.columns.div_ceil(BLOCK);
        let coarse_blocks = blocks.div_ceil(BLOCKS_PER_SUPER);
        let source = Source {
            bytes,
            row_bytes,
            rows: self.rows,
            weight_type: self.weight_type,
            width: self.width,
        };
        let codes = self.codes.par_chunks_mut(blocks * self.width.lines()).enumerate();
        match &mut self.scales {
            Scales::Symmetric(scales) => {
                codes.zip(scales.par_chunks_mut(blocks)).try_for_each(|((panel, codes), scales)| {
                    source.pack(panel, codes, |lane, block, read| {
                        scales[block][lane] = read.fine[0];
                    })
                })
            }
            Scales::Affine(scales) => {
                codes.zip(scales.par_chunks_mut(blocks)).try_for_each(|((panel, codes), scales)| {
                    source.pack(panel, codes, |lane, block, read| {
                        scales[block][0][lane] = read.fine[0];
                        scales[block][1][lane] = read.fine[1];
                    })
                })
            }
            Scales::TwoLevel { fine, coarse } => codes
                .zip(fine.par_chunks_mut(blocks).zip(coarse.par_chunks_mut(coarse_blocks)))
                .try_for_each(|((panel, codes), (fine, coarse))| {
                    source.pack(panel, codes, |lane, block, read| {
                        for part in 0..2 {
                            fine[block][part][lane] = read.fine[part] as u8;
                            coarse[block / BLOCKS_PER_SUPER][part][lane] = read.coarse[part];
                        }
                    })
                }),
            Scales::Halves { fine, coarse } => codes
                .zip(fine.par_chunks_mut(blocks).zip(coarse.par_chunks_mut(coarse_blocks)))
                .try_for_each(|((panel, codes), (fine, coarse))| {
                    source.pack(panel, codes, |lane, block, read| {
                        for part in 0..2 {
                            fine[block][part][lane] = (read.fine[part] as u8).cast_signed();
                        }
                        coarse[block / BLOCKS_PER_SUPER][lane] = read.coarse[0];
                    })
                }),
        }
    }
}

/// The matrix in its file.
struct Source<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    rows: usize,
    weight_type: WeightType,
    width: Width,
}

impl Source<'_> {
    /// Packs the codes of one panel and hands every block's scales to `scales(lane, block, read)`.
    fn pack(
        &self,
        panel: usize,
        codes: &mut [Line],
        mut scales: impl FnMut(usize, usize, &Block),
    ) -> Result<(), KernelError> {
        for (block, lines) in codes.chunks_exact_mut(self.width.lines()).enumerate() {
            for lane in 0..LANES.min(self.rows - panel * LANES) {
                let row = panel * LANES + lane;
                let bytes = &self.bytes[row * self.row_bytes..][..self.row_bytes];
                let read = blocks::read(self.weight_type, bytes, block).map_err(|offset| {
                    KernelError::WeightNotFinite {
                        row,
                        column: block * BLOCK + offset,
                        weight_type: self.weight_type,
                    }
                })?;
                pack_block(self.width, &read.codes, lane, lines);
                scales(lane, block, &read);
            }
        }
        Ok(())
    }
}

/// Adds the codes of one row to the lines of its block, which start as zeros.
fn pack_block(width: Width, codes: &[u8; BLOCK], lane: usize, lines: &mut [Line]) {
    for (group, codes) in codes.as_chunks::<4>().0.iter().enumerate() {
        for (j, &code) in codes.iter().enumerate() {
            let byte = lane * 4 + j;
            if width == Width::Eight {
                lines[group].0[byte] = code;
                continue;
            }
            lines[group % 4].0[byte] |= (code & 0x0f) << (group / 4 * 4);
            match width {
                Width::Five => lines[4].0[byte] |= (code >> 4) << group,
                Width::Six => lines[4 + group / 4].0[byte] |= (code >> 4) << (group % 4 * 2),
                Width::Four | Width::Eight => {}
            }
        }
    }
}

/// The code at one place of a block.
fn unpack(width: Width, lines: &[Line], group: usize, byte: usize) -> u8 {
    if width == Width::Eight {
        return lines[group].0[byte];
    }
    let low = lines[group % 4].0[byte] >> (group / 4 * 4) & 0x0f;
    low | match width {
        Width::Five => (lines[4].0[byte] >> group & 1) << 4,
        Width::Six => (lines[4 + group / 4].0[byte] >> (group % 4 * 2) & 3) << 4,
        Width::Four | Width::Eight => 0,
    }
}
