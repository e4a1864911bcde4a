//! The inner loops: a panel of sixteen outputs times a few tokens.
//!
//! Order of operations of one output element, the same on every path: for each block of 32
//! inputs, in order, an exact integer dot product; times `weight scale * activation scale`, fused
//! into one running sum; then, for formats with a minimum, `minimum * (activation scale * sum of
//! the activations)`, fused into the same sum.

use std::marker::PhantomData;
use std::ops::Range;

use super::format::{Codes, Kind, ScaleSource};
use super::output::Output;
use crate::activations::{ActivationBlock, QuantizedRows, offset};
use crate::arch::{Kernel, LANES, Line, Simd};

/// Up to this many tokens weights are unpacked in registers, right where they are used.
pub(super) const DIRECT_ROWS: usize = 8;
/// Blocks unpacked at a time otherwise: 26 KB, which stay in the first-level cache.
const CHUNK_BLOCKS: usize = 40;
/// Tiles that an unpacked chunk meets before the next: their activations, about 0.6 MB, stay in
/// the second-level cache.
const CHUNK_TILES: usize = 20;

/// How far ahead codes are asked for while they stream from memory: 8 KB, past the page at which
/// the processor's own prefetcher stops. Decoding a Q4_K_M model gains 10 to 20 % (November 2026, Ice
/// Lake server under load, processor time of one thread, `cargo bench -p molde-kernels -- threads=1`).
const PREFETCH_LINES: usize = 128;

/// Where the eight groups of a block come from.
trait Groups<S: Simd>: Copy {
    fn group(&self, simd: S, group: usize) -> S::Bytes;
}

#[derive(Clone, Copy)]
struct InRegisters<S: Simd>([S::Bytes; 8]);

impl<S: Simd> Groups<S> for InRegisters<S> {
    #[inline(always)]
    fn group(&self, _simd: S, group: usize) -> S::Bytes {
        self.0[group]
    }
}

#[derive(Clone, Copy)]
struct InMemory<'a>(&'a [Line; 8]);

impl<S: Simd> Groups<S> for InMemory<'_> {
    #[inline(always)]
    fn group(&self, simd: S, group: usize) -> S::Bytes {
        simd.load_bytes(&self.0[group])
    }
}

/// Adds one group of four columns to the integer sums of `T` tokens.
#[inline(always)]
fn dot_group<S: Simd, K: Kind, const T: usize>(
    simd: S,
    codes: S::Bytes,
    group: usize,
    rows: &[ActivationBlock; T],
    dots: &mut [S::Ints; T],
) {
    for t in 0..T {
        let word = rows[t].words[group];
        dots[t] = if K::WIDE {
            simd.dot_wide(dots[t], codes, word)
        } else {
            simd.dot_narrow(dots[t], codes, word)
        };
    }
}

#[inline(always)]
fn start<S: Simd, K: Kind, const T: usize>(
    simd: S,
    offset: Option<usize>,
    rows: &[ActivationBlock; T],
) -> [S::Ints; T] {
    let mut dots = [simd.splat_int(0); T];
    if let Some(offset) = offset {
        for t in 0..T {
            let value = rows[t].offsets[offset];
            dots[t] = if K::WIDE { simd.start_wide(value) } else { simd.splat_int(value) };
        }
    }
    dots
}

#[inline(always)]
fn add_scaled<S: Simd, const T: usize>(
    simd: S,
    dots: &[S::Ints; T],
    scale: S::Floats,
    rows: &[ActivationBlock; T],
    sums: &mut [S::Floats; T],
) {
    for t in 0..T {
        let scale = simd.mul(scale, simd.splat(rows[t].scale));
        sums[t] = simd.fma(simd.to_floats(dots[t]), scale, sums[t]);
    }
}

/// Adds one block of 32 columns to the sums of `T` tokens.
#[inline(always)]
fn add_block<S: Simd, K: Kind, G: Groups<S>, const T: usize>(
    simd: S,
    groups: G,
    scales: [S::Floats; 2],
    rows: &[ActivationBlock; T],
    sums: &mut [S::Floats; T],
) {
    // Written out: the groups are registers, which a loop could not index.
    let mut dots = start::<S, K, T>(simd, K::OFFSET, rows);
    dot_group::<S, K, T>(simd, groups.group(simd, 0), 0, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 1), 1, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 2), 2, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 3), 3, rows, &mut dots);
    if K::HALVES {
        add_scaled(simd, &dots, scales[0], rows, sums);
        dots = start::<S, K, T>(simd, Some(offset::ZERO_32_SECOND), rows);
    }
    dot_group::<S, K, T>(simd, groups.group(simd, 4), 4, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 5), 5, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 6), 6, rows, &mut dots);
    dot_group::<S, K, T>(simd, groups.group(simd, 7), 7, rows, &mut dots);
    add_scaled(simd, &dots, if K::HALVES { scales[1] } else { scales[0] }, rows, sums);
    if K::MINIMUM {
        for t in 0..T {
            sums[t] = simd.fma(scales[1], simd.splat(rows[t].scaled_sum), sums[t]);
        }
    }
}

/// Multiplies a range of panels with all tokens.
pub(super) struct Multiply<'a, C, K, Q> {
    pub(super) format: PhantomData<(C, K)>,
    pub(super) codes: &'a [Line],
    pub(super) scales: Q,
    pub(super) blocks: usize,
    pub(super) panels: Range<usize>,
    /// The panel whose results go to the first columns of `output`.
    pub(super) first_panel: usize,
    pub(super) activations: &'a QuantizedRows,
    pub(super) output: Output<'a>,
}

impl<C: Codes, K: Kind, Q: ScaleSource> Kernel for Multiply<'_, C, K, Q> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if self.activations.rows() <= DIRECT_ROWS && self.activations.rows() <= S::TILE {
            match self.activations.rows() {
                1 => self.direct::<S, 1>(simd),
                2 => self.direct::<S, 2>(simd),
                3 => self.direct::<S, 3>(simd),
                4 => self.direct::<S, 4>(simd),
                5 => self.direct::<S, 5>(simd),
                6 => self.direct::<S, 6>(simd),
                7 => self.direct::<S, 7>(simd),
                8 => self.direct::<S, 8>(simd),
                _ => {}
            }
        } else {
            self.unpacked(simd);
        }
    }
}

impl<C: Codes, K: Kind, Q: ScaleSource> Multiply<'_, C, K, Q> {
    /// All tokens in registers at once: weights are read and unpacked exactly once.
    #[inline(always)]
    fn direct<S: Simd, const T: usize>(&self, simd: S) {
        // Lets the compiler drop the sizes that this instruction set never asks for.
        if T > S::TILE {
            return;
        }
        let (rows, _) = self.activations.tile(0);
        let rows = rows.as_chunks::<T>().0;
        for panel in self.panels.clone() {
            let codes = &self.codes[panel * self.blocks * C::LINES..][..self.blocks * C::LINES];
            let mut sums = [simd.splat(0.0); T];
            for (block, (lines, rows)) in codes.chunks_exact(C::LINES).zip(rows).enumerate() {
                self.prefetch(simd, panel, block);
                let groups = InRegisters::<S>(C::unpack(simd, lines));
                let scales = self.scales.scales(simd, panel, block);
                add_block::<S, K, _, T>(simd, groups, scales, rows, &mut sums);
            }
            for t in 0..T {
                let mut values = [0.0; LANES];
                simd.store(sums[t], &mut values);
                store(self.output, t, panel - self.first_panel, &values);
            }
        }
    }

    /// Asks for the codes that come [`PREFETCH_LINES`] after those of a block.
    #[inline(always)]
    fn prefetch<S: Simd>(&self, simd: S, panel: usize, block: usize) {
        let next = (panel * self.blocks + block) * C::LINES + PREFETCH_LINES;
        for line in self.codes.get(next..next + C::LINES).unwrap_or(&[]) {
            simd.prefetch(line);
        }
    }

    /// Unpacks a part of a panel, then runs it against many tiles of tokens.
    #[inline(always)]
    fn unpacked<S: Simd>(&self, simd: S) {
        let mut scratch = Scratch::new();
        let tiles = self.activations.tiles().count();
        let chunk = self.blocks.div_ceil(self.blocks.div_ceil(CHUNK_BLOCKS));
        for first_tile in (0..tiles).step_by(CHUNK_TILES) {
            for first_block in (0..self.blocks).step_by(chunk) {
                let blocks = first_block..self.blocks.min(first_block + chunk);
                for panel in self.panels.clone() {
                    self.unpack(simd, panel, blocks.clone(), &mut scratch);
                    simd.enter(MultiplyUnpacked {
                        kind: PhantomData::<K>,
                        scratch: &scratch,
                        panel: panel - self.first_panel,
                        blocks: blocks.clone(),
                        tiles: first_tile..tiles.min(first_tile + CHUNK_TILES),
                        activations: self.activations,
                        output: self.output,
                    });
                }
            }
        }
    }

    #[inline(always)]
    fn unpack<S: Simd>(&self, simd: S, panel: usize, blocks: Range<usize>, scratch: &mut Scratch) {
        let codes = &self.codes[(panel * self.blocks + blocks.start) * C::LINES..]
            [..blocks.len() * C::LINES];
        for ((lines, block), to) in codes.chunks_exact(C::LINES).zip(blocks).zip(&mut scratch.0) {
            self.prefetch(simd, panel, block);
            let groups = C::unpack(simd, lines);
            for (bytes, line) in groups.into_iter().zip(&mut to.codes) {
                simd.store_bytes(bytes, line);
            }
            let scales = self.scales.scales(simd, panel, block);
            simd.store(scales[0], &mut to.scales[0]);
            simd.store(scales[1], &mut to.scales[1]);
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct UnpackedBlock {
    codes: [Line; 8],
    scales: [[f32; LANES]; 2],
}

struct Scratch([UnpackedBlock; CHUNK_BLOCKS]);

#[allow(clippy::large_stack_arrays, reason = "26 KB, once per task, instead of an allocation")]
impl Scratch {
    const fn new() -> Self {
        Self([UnpackedBlock { codes: [Line::ZERO; 8], scales: [[0.0; LANES]; 2] }; CHUNK_BLOCKS])
    }
}

/// Multiplies an unpacked part of one panel with some tiles.
struct MultiplyUnpacked<'a, K> {
    kind: PhantomData<K>,
    scratch: &'a Scratch,
    /// Where the panel lies in the output.
    panel: usize,
    blocks: Range<usize>,
    tiles: Range<usize>,
    activations: &'a QuantizedRows,
    output: Output<'a>,
}

impl<K: Kind> Kernel for MultiplyUnpacked<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for tile in self.tiles.clone() {
            let (rows, tokens) = self.activations.tile(tile);
            let rows = &rows[self.blocks.start * tokens..self.blocks.end * tokens];
            let first_row = self.activations.tiles().start(tile);
            let mut done = 0;
            while done < tokens {
                let count = S::TILE.min(tokens - done);
                let part = TilePart { rows, tokens, done, first_row };
                match count {
                    1 => self.tile::<S, 1>(simd, part),
                    2 => self.tile::<S, 2>(simd, part),
                    3 => self.tile::<S, 3>(simd, part),
                    4 => self.tile::<S, 4>(simd, part),
                    5 => self.tile::<S, 5>(simd, part),
                    6 => self.tile::<S, 6>(simd, part),
                    7 => self.tile::<S, 7>(simd, part),
                    8 => self.tile::<S, 8>(simd, part),
                    9 => self.tile::<S, 9>(simd, part),
                    10 => self.tile::<S, 10>(simd, part),
                    11 => self.tile::<S, 11>(simd, part),
                    _ => self.tile::<S, 12>(simd, part),
                }
                done += count;
            }
        }
    }
}

/// Some tokens of a tile.
#[derive(Clone, Copy)]
struct TilePart<'a> {
    rows: &'a [ActivationBlock],
    tokens: usize,
    done: usize,
    first_row: usize,
}

impl<K: Kind> MultiplyUnpacked<'_, K> {
    #[inline(always)]
    fn tile<S: Simd, const T: usize>(&self, simd: S, part: TilePart<'_>) {
        if T > S::TILE {
            return;
        }
        let mut sums = [simd.splat(0.0); T];
        if self.blocks.start > 0 {
            for t in 0..T {
                sums[t] = simd.load(&load(self.output, part.first_row + part.done + t, self.panel));
            }
        }
        for (block, rows) in self.scratch.0.iter().zip(part.rows.chunks_exact(part.tokens)) {
            let Some(rows) = rows[part.done..].first_chunk::<T>() else { break };
            let scales = [simd.load(&block.scales[0]), simd.load(&block.scales[1])];
            add_block::<S, K, _, T>(simd, InMemory(&block.codes), scales, rows, &mut sums);
        }
        for t in 0..T {
            let mut values = [0.0; LANES];
            simd.store(sums[t], &mut values);
            store(self.output, part.first_row + part.done + t, self.panel, &values);
        }
    }
}

/// See [`Output::load`].
#[inline(always)]
#[allow(unsafe_code, reason = "each task owns its panels")]
fn load(output: Output<'_>, row: usize, panel: usize) -> [f32; LANES] {
    // SAFETY: a task is given a range of panels that no other task is given, and calls this for
    // those only.
    unsafe { output.load(row, panel) }
}

/// See [`Output::store`].
#[inline(always)]
#[allow(unsafe_code, reason = "each task owns its panels")]
fn store(output: Output<'_>, row: usize, panel: usize, values: &[f32; LANES]) {
    // SAFETY: as in `load`.
    unsafe { output.store(row, panel, values) }
}
