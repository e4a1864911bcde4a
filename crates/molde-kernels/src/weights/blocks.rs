//! Reading 32 weights of a row out of any file format, as integer codes and their scales.
//!
//! The layouts are those of ggml (`ggml-quants`): they are a public file format, described in the
//! GGUF specification and by the reference implementation in the `gguf` Python package.

use half::{bf16, f16};

use super::WeightType;

/// Weights that share scales in memory.
pub(crate) const BLOCK: usize = 32;
/// Blocks under one coarse scale in the formats with two levels.
pub(crate) const BLOCKS_PER_SUPER: usize = 8;

/// 32 consecutive weights of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The stored integers, without an offset taken away.
    pub(crate) codes: [u8; BLOCK],
    /// Scales of this block: half-precision bits, or small integers in the two-level formats.
    pub(crate) fine: [u16; 2],
    /// Half-precision bits of the scales that [`BLOCKS_PER_SUPER`] blocks share.
    pub(crate) coarse: [u16; 2],
}

impl Block {
    /// A block of zeros.
    const EMPTY: Self = Self { codes: [0; BLOCK], fine: [0; 2], coarse: [0; 2] };
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Splits 16 bytes: low nibbles are weights 0 to 15, high nibbles 16 to 31.
fn nibbles(bytes: &[u8]) -> [u8; BLOCK] {
    let mut codes = [0; BLOCK];
    for (i, &byte) in bytes.iter().take(16).enumerate() {
        codes[i] = byte & 0x0f;
        codes[i + 16] = byte >> 4;
    }
    codes
}

/// Adds a fifth bit to each code.
fn add_fifth_bits(codes: &mut [u8; BLOCK], bits: u32) {
    for (i, code) in codes.iter_mut().enumerate() {
        *code |= ((bits >> i & 1) as u8) << 4;
    }
}

/// The 6-bit scale and minimum of sub-block `j` out of the 12 bytes of `Q4_K` and `Q5_K`.
fn scale_and_min(packed: &[u8], j: usize) -> [u16; 2] {
    let (scale, min) = if j < 4 {
        (packed[j] & 63, packed[j + 4] & 63)
    } else {
        let low = packed[j + 4];
        ((low & 0x0f) | (packed[j - 4] >> 6) << 4, (low >> 4) | (packed[j] >> 6) << 4)
    };
    [u16::from(scale), u16::from(min)]
}

/// Reads block `index` of a row whose length was checked: `row` is exactly
/// `weight_type.row_bytes(columns)` long and `index * 32 < columns`.
///
/// # Errors
/// The offset within the block of a float weight that is not a finite number in range.
pub(crate) fn read(weight_type: WeightType, row: &[u8], index: usize) -> Result<Block, usize> {
    let bytes_per = weight_type.block_bytes();
    let mut block = Block::EMPTY;
    match weight_type {
        WeightType::F32 => {
            return from_floats(row, index, 4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        }
        WeightType::F16 => {
            return from_floats(row, index, 2, |b| f16::from_le_bytes([b[0], b[1]]).to_f32());
        }
        WeightType::BF16 => {
            return from_floats(row, index, 2, |b| bf16::from_le_bytes([b[0], b[1]]).to_f32());
        }
        WeightType::Q4_0 => {
            let bytes = &row[index * bytes_per..][..bytes_per];
            block.fine = [u16_at(bytes, 0), 0];
            block.codes = nibbles(&bytes[2..]);
        }
        WeightType::Q4_1 => {
            let bytes = &row[index * bytes_per..][..bytes_per];
            block.fine = [u16_at(bytes, 0), u16_at(bytes, 2)];
            block.codes = nibbles(&bytes[4..]);
        }
        WeightType::Q5_0 => {
            let bytes = &row[index * bytes_per..][..bytes_per];
            block.fine = [u16_at(bytes, 0), 0];
            block.codes = nibbles(&bytes[6..]);
            add_fifth_bits(
                &mut block.codes,
                u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]),
            );
        }
        WeightType::Q5_1 => {
            let bytes = &row[index * bytes_per..][..bytes_per];
            block.fine = [u16_at(bytes, 0), u16_at(bytes, 2)];
            block.codes = nibbles(&bytes[8..]);
            add_fifth_bits(
                &mut block.codes,
                u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            );
        }
        WeightType::Q8_0 => {
            let bytes = &row[index * bytes_per..][..bytes_per];
            block.fine = [u16_at(bytes, 0), 0];
            for (code, &byte) in block.codes.iter_mut().zip(&bytes[2..]) {
                *code = byte ^ 0x80;
            }
        }
        WeightType::Q4_K | WeightType::Q5_K => {
            let bytes = &row[index / BLOCKS_PER_SUPER * bytes_per..][..bytes_per];
            let sub = index % BLOCKS_PER_SUPER;
            block.coarse = [u16_at(bytes, 0), u16_at(bytes, 2)];
            block.fine = scale_and_min(&bytes[4..16], sub);
            let (high, low) = if weight_type == WeightType::Q5_K {
                (Some(&bytes[16..48]), &bytes[48..])
            } else {
                (None, &bytes[16..])
            };
            let shift = sub % 2 * 4;
            for (code, &byte) in block.codes.iter_mut().zip(&low[sub / 2 * 32..]) {
                *code = byte >> shift & 0x0f;
            }
            for (code, &byte) in block.codes.iter_mut().zip(high.unwrap_or(&[])) {
                *code |= (byte >> sub & 1) << 4;
            }
        }
        WeightType::Q6_K => {
            let bytes = &row[index / BLOCKS_PER_SUPER * bytes_per..][..bytes_per];
            let sub = index % BLOCKS_PER_SUPER;
            let (half, quarter) = (sub / 4, sub % 4);
            let low = &bytes[half * 64 + quarter % 2 * 32..][..32];
            let high = &bytes[128 + half * 32..][..32];
            for (i, code) in block.codes.iter_mut().enumerate() {
                *code = (low[i] >> (quarter / 2 * 4) & 0x0f) | (high[i] >> (quarter * 2) & 3) << 4;
            }
            block.fine = [u16::from(bytes[192 + sub * 2]), u16::from(bytes[193 + sub * 2])];
            block.coarse = [u16_at(bytes, 208), 0];
        }
    }
    Ok(block)
}

/// Quantizes 32 floats (fewer at a row's end, padded with zeros) to `Q8_0`: symmetric, scale
/// `max |w| / 127` rounded to half precision, each weight to the nearest step of the rounded scale.
fn from_floats(
    row: &[u8],
    index: usize,
    bytes_per: usize,
    read: impl Fn(&[u8]) -> f32,
) -> Result<Block, usize> {
    let mut weights = [0_f32; BLOCK];
    let mut largest = 0_f32;
    for (i, bytes) in
        row[index * BLOCK * bytes_per..].chunks_exact(bytes_per).take(BLOCK).enumerate()
    {
        let weight = read(bytes);
        // Above this the scale is no finite half-precision number.
        if weight.is_nan() || weight.abs() > 65_504.0 * 127.0 {
            return Err(i);
        }
        weights[i] = weight;
        largest = largest.max(weight.abs());
    }
    let scale = f16::from_f32(largest / 127.0);
    let step = scale.to_f32();
    let mut block = Block { codes: [128; BLOCK], fine: [scale.to_bits(), 0], coarse: [0; 2] };
    if step > 0.0 {
        for (code, weight) in block.codes.iter_mut().zip(weights) {
            *code = ((weight / step).round_ties_even().clamp(-127.0, 127.0) as i16 + 128) as u8;
        }
    }
    Ok(block)
}
