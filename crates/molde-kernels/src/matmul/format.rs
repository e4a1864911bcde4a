//! How the blocks of each packed format are unpacked: codes to bytes, scales to floats.

use crate::activations::offset;
use crate::arch::{LANES, Line, Simd};

/// The codes of a block, as eight vectors of unsigned bytes.
pub(super) trait Codes: Copy {
    /// Lines of 64 bytes per block.
    const LINES: usize;
    fn unpack<S: Simd>(simd: S, lines: &[Line]) -> [S::Bytes; 8];
}

/// Codes of 4 bits.
#[derive(Clone, Copy)]
pub(super) struct Four;
/// Codes of 5 bits.
#[derive(Clone, Copy)]
pub(super) struct Five;
/// Codes of 6 bits.
#[derive(Clone, Copy)]
pub(super) struct Six;
/// Codes of 8 bits.
#[derive(Clone, Copy)]
pub(super) struct Eight;

impl Codes for Four {
    const LINES: usize = 4;

    #[inline(always)]
    fn unpack<S: Simd>(simd: S, lines: &[Line]) -> [S::Bytes; 8] {
        let load = [&lines[0], &lines[1], &lines[2], &lines[3]];
        let bytes = [
            simd.load_bytes(load[0]),
            simd.load_bytes(load[1]),
            simd.load_bytes(load[2]),
            simd.load_bytes(load[3]),
        ];
        [
            simd.and(bytes[0], 0x0f),
            simd.and(bytes[1], 0x0f),
            simd.and(bytes[2], 0x0f),
            simd.and(bytes[3], 0x0f),
            simd.and(simd.shift_right::<4>(bytes[0]), 0x0f),
            simd.and(simd.shift_right::<4>(bytes[1]), 0x0f),
            simd.and(simd.shift_right::<4>(bytes[2]), 0x0f),
            simd.and(simd.shift_right::<4>(bytes[3]), 0x0f),
        ]
    }
}

impl Codes for Five {
    const LINES: usize = 5;

    #[inline(always)]
    fn unpack<S: Simd>(simd: S, lines: &[Line]) -> [S::Bytes; 8] {
        let low = Four::unpack(simd, lines);
        let high = simd.load_bytes(&lines[4]);
        // Bit `g` of a byte is the fifth bit of group `g`.
        [
            simd.or(low[0], simd.and(simd.shift_left::<4>(high), 0x10)),
            simd.or(low[1], simd.and(simd.shift_left::<3>(high), 0x10)),
            simd.or(low[2], simd.and(simd.shift_left::<2>(high), 0x10)),
            simd.or(low[3], simd.and(simd.shift_left::<1>(high), 0x10)),
            simd.or(low[4], simd.and(high, 0x10)),
            simd.or(low[5], simd.and(simd.shift_right::<1>(high), 0x10)),
            simd.or(low[6], simd.and(simd.shift_right::<2>(high), 0x10)),
            simd.or(low[7], simd.and(simd.shift_right::<3>(high), 0x10)),
        ]
    }
}

impl Codes for Six {
    const LINES: usize = 6;

    #[inline(always)]
    fn unpack<S: Simd>(simd: S, lines: &[Line]) -> [S::Bytes; 8] {
        let low = Four::unpack(simd, lines);
        let high = [simd.load_bytes(&lines[4]), simd.load_bytes(&lines[5])];
        [
            simd.or(low[0], simd.and(simd.shift_left::<4>(high[0]), 0x30)),
            simd.or(low[1], simd.and(simd.shift_left::<2>(high[0]), 0x30)),
            simd.or(low[2], simd.and(high[0], 0x30)),
            simd.or(low[3], simd.and(simd.shift_right::<2>(high[0]), 0x30)),
            simd.or(low[4], simd.and(simd.shift_left::<4>(high[1]), 0x30)),
            simd.or(low[5], simd.and(simd.shift_left::<2>(high[1]), 0x30)),
            simd.or(low[6], simd.and(high[1], 0x30)),
            simd.or(low[7], simd.and(simd.shift_right::<2>(high[1]), 0x30)),
        ]
    }
}

impl Codes for Eight {
    const LINES: usize = 8;

    #[inline(always)]
    fn unpack<S: Simd>(simd: S, lines: &[Line]) -> [S::Bytes; 8] {
        [
            simd.load_bytes(&lines[0]),
            simd.load_bytes(&lines[1]),
            simd.load_bytes(&lines[2]),
            simd.load_bytes(&lines[3]),
            simd.load_bytes(&lines[4]),
            simd.load_bytes(&lines[5]),
            simd.load_bytes(&lines[6]),
            simd.load_bytes(&lines[7]),
        ]
    }
}

/// What is done with the integer sum of a block.
pub(super) trait Kind: Copy {
    /// Whether codes use 8 bits.
    const WIDE: bool = false;
    /// The offset that the sum starts from, if the codes have a zero point.
    const OFFSET: Option<usize>;
    /// Whether the second scale is a minimum, multiplied with the sum of the activations.
    const MINIMUM: bool = false;
    /// Whether each half of the block has a scale of its own.
    const HALVES: bool = false;
}

/// `scale * (code - 8)`
#[derive(Clone, Copy)]
pub(super) struct Zero8;
/// `scale * (code - 16)`
#[derive(Clone, Copy)]
pub(super) struct Zero16;
/// `scale * (code - 128)`
#[derive(Clone, Copy)]
pub(super) struct Zero128;
/// `scale * code + minimum`
#[derive(Clone, Copy)]
pub(super) struct Minimum;
/// `scale of the half * (code - 32)`
#[derive(Clone, Copy)]
pub(super) struct Halves;

impl Kind for Zero8 {
    const OFFSET: Option<usize> = Some(offset::ZERO_8);
}
impl Kind for Zero16 {
    const OFFSET: Option<usize> = Some(offset::ZERO_16);
}
impl Kind for Zero128 {
    const WIDE: bool = true;
    const OFFSET: Option<usize> = Some(offset::ZERO_128);
}
impl Kind for Minimum {
    const OFFSET: Option<usize> = None;
    const MINIMUM: bool = true;
}
impl Kind for Halves {
    const OFFSET: Option<usize> = Some(offset::ZERO_32_FIRST);
    const HALVES: bool = true;
}

/// Where the scales of a block come from. The second is unused, a minimum, or the second half's.
pub(super) trait ScaleSource: Copy + Sync {
    fn scales<S: Simd>(self, simd: S, panel: usize, block: usize) -> [S::Floats; 2];
}

/// One half-precision scale per row and block.
#[derive(Clone, Copy)]
pub(super) struct OneScale<'a> {
    pub(super) scales: &'a [[u16; LANES]],
    pub(super) blocks: usize,
}

impl ScaleSource for OneScale<'_> {
    #[inline(always)]
    fn scales<S: Simd>(self, simd: S, panel: usize, block: usize) -> [S::Floats; 2] {
        let scale = simd.load_f16(&self.scales[panel * self.blocks + block]);
        [scale, scale]
    }
}

/// A half-precision scale and minimum per row and block.
#[derive(Clone, Copy)]
pub(super) struct ScaleAndMinimum<'a> {
    pub(super) scales: &'a [[[u16; LANES]; 2]],
    pub(super) blocks: usize,
}

impl ScaleSource for ScaleAndMinimum<'_> {
    #[inline(always)]
    fn scales<S: Simd>(self, simd: S, panel: usize, block: usize) -> [S::Floats; 2] {
        let [scale, minimum] = &self.scales[panel * self.blocks + block];
        [simd.load_f16(scale), simd.load_f16(minimum)]
    }
}

/// Small integers under coarse half-precision scales, with a minimum.
#[derive(Clone, Copy)]
pub(super) struct TwoLevels<'a> {
    pub(super) fine: &'a [[[u8; LANES]; 2]],
    pub(super) coarse: &'a [[[u16; LANES]; 2]],
    pub(super) blocks: usize,
    pub(super) coarse_blocks: usize,
}

impl ScaleSource for TwoLevels<'_> {
    #[inline(always)]
    fn scales<S: Simd>(self, simd: S, panel: usize, block: usize) -> [S::Floats; 2] {
        let [scale, minimum] = &self.fine[panel * self.blocks + block];
        let [coarse_scale, coarse_minimum] = &self.coarse[panel * self.coarse_blocks + block / 8];
        let minimum = simd.mul(simd.load_f16(coarse_minimum), simd.load_u8(minimum));
        [
            simd.mul(simd.load_f16(coarse_scale), simd.load_u8(scale)),
            simd.sub(simd.splat(0.0), minimum),
        ]
    }
}

/// Small integers, one per half of the block, under a coarse half-precision scale.
#[derive(Clone, Copy)]
pub(super) struct HalfScales<'a> {
    pub(super) fine: &'a [[[i8; LANES]; 2]],
    pub(super) coarse: &'a [[u16; LANES]],
    pub(super) blocks: usize,
    pub(super) coarse_blocks: usize,
}

impl ScaleSource for HalfScales<'_> {
    #[inline(always)]
    fn scales<S: Simd>(self, simd: S, panel: usize, block: usize) -> [S::Floats; 2] {
        let [first, second] = &self.fine[panel * self.blocks + block];
        let coarse = simd.load_f16(&self.coarse[panel * self.coarse_blocks + block / 8]);
        [simd.mul(coarse, simd.load_i8(first)), simd.mul(coarse, simd.load_i8(second))]
    }
}
