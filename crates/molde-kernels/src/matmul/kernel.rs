//! The inner loops: a panel of sixteen outputs times a few tokens.
//!
//! Order of operations of one output element, the same on every path: for each block of 32
//! inputs, in order, an exact integer dot product; times `weight scale * activation scale`, fused
//! into one running sum; then, for formats with a minimum, `minimum * (activation scale * sum of
//! the activations)`, fused into the same sum. Where each half of a block has a scale, the second
//! half's product with its scale is fused onto the first's, and the result times the activation
//! scale into the running sum.

use std::marker::PhantomData;
use std::ops::Range;

use super::format::{Codes, Kind, ScaleSource};
use super::output::Output;
use crate::activations::{ActivationBlock, MAX_TILE, QuantizedRows, offset};
use crate::arch::{Kernel, LANES, Line, Simd};

/// Blocks of a panel that are unpacked at a time otherwise: two panels of them are 35 KB, which
/// just fit the first-level cache. 28 blocks are a whole row of 896 columns.
const CHUNK_BLOCKS: usize = 28;
/// The same for up to [`FEW_TILES`] tiles: storing what is unpacked is then a larger part of the
/// work, and sums that are put away and fetched again a smaller one.
const SMALL_CHUNK_BLOCKS: usize = 14;
/// Tiles that use an unpacked panel so little that the next ones are fetched meanwhile.
const FEW_TILES: usize = 4;
/// Most panels that are multiplied together.
const MAX_PANELS: usize = 2;
/// Tiles that unpacked panels meet before the next: their activations, about 0.4 MB, stay in the
/// second-level cache.
const CHUNK_TILES: usize = 40;

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

/// Adds one group of four columns to the integer sums of `T` tokens for `P` panels: an activation
/// is broadcast once for all of them.
#[inline(always)]
fn dot_group<S: Simd, K: Kind, G: Groups<S>, const T: usize, const P: usize>(
    simd: S,
    panels: &[G; P],
    group: usize,
    rows: &[ActivationBlock; T],
    dots: &mut [[S::Ints; T]; P],
) {
    let mut codes = [panels[0].group(simd, group); P];
    for p in 1..P {
        codes[p] = panels[p].group(simd, group);
    }
    for t in 0..T {
        let word = rows[t].words[group];
        for p in 0..P {
            dots[p][t] = if K::WIDE {
                simd.dot_wide(dots[p][t], codes[p], word)
            } else {
                simd.dot_narrow(dots[p][t], codes[p], word)
            };
        }
    }
}

#[inline(always)]
fn start<S: Simd, K: Kind, const T: usize, const P: usize>(
    simd: S,
    offset: Option<usize>,
    rows: &[ActivationBlock; T],
) -> [[S::Ints; T]; P] {
    let mut dots = [simd.splat_int(0); T];
    if let Some(offset) = offset {
        for t in 0..T {
            let value = rows[t].offsets[offset];
            dots[t] = if K::WIDE { simd.start_wide(value) } else { simd.splat_int(value) };
        }
    }
    [dots; P]
}

/// Adds one block of 32 columns to the sums of `T` tokens for `P` panels.
#[inline(always)]
fn add_block<S: Simd, K: Kind, G: Groups<S>, const T: usize, const P: usize>(
    simd: S,
    panels: &[G; P],
    scales: &[[S::Floats; 2]; P],
    rows: &[ActivationBlock; T],
    sums: &mut [[S::Floats; T]; P],
) {
    // Written out: the groups are registers, which a loop could not index.
    let mut dots = start::<S, K, T, P>(simd, K::OFFSET, rows);
    dot_group::<S, K, G, T, P>(simd, panels, 0, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 1, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 2, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 3, rows, &mut dots);
    let mut halves = [[simd.splat(0.0); T]; P];
    if K::HALVES {
        for p in 0..P {
            for t in 0..T {
                halves[p][t] = simd.mul(simd.to_floats(dots[p][t]), scales[p][0]);
            }
        }
        dots = start::<S, K, T, P>(simd, Some(offset::ZERO_32_SECOND), rows);
    }
    dot_group::<S, K, G, T, P>(simd, panels, 4, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 5, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 6, rows, &mut dots);
    dot_group::<S, K, G, T, P>(simd, panels, 7, rows, &mut dots);
    for t in 0..T {
        let activation = simd.splat(rows[t].scale);
        for p in 0..P {
            let dot = simd.to_floats(dots[p][t]);
            sums[p][t] = if K::HALVES {
                simd.fma(simd.fma(dot, scales[p][1], halves[p][t]), activation, sums[p][t])
            } else {
                simd.fma(dot, simd.mul(scales[p][0], activation), sums[p][t])
            };
        }
    }
    if K::MINIMUM {
        for t in 0..T {
            let sum = simd.splat(rows[t].scaled_sum);
            for p in 0..P {
                sums[p][t] = simd.fma(scales[p][1], sum, sums[p][t]);
            }
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
        match self.activations.rows() {
            rows if rows > S::TILE => self.unpacked(simd),
            1 => self.direct::<S, 1>(simd),
            2 => self.direct::<S, 2>(simd),
            3 => self.direct::<S, 3>(simd),
            4 => self.direct::<S, 4>(simd),
            5 => self.direct::<S, 5>(simd),
            MAX_TILE => self.direct::<S, MAX_TILE>(simd),
            _ => {}
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
            let mut sums = [[simd.splat(0.0); T]; 1];
            for (block, (lines, rows)) in codes.chunks_exact(C::LINES).zip(rows).enumerate() {
                self.prefetch(simd, panel, block);
                let groups = [InRegisters::<S>(C::unpack(simd, lines))];
                let scales = [self.scales.scales(simd, panel, block)];
                add_block::<S, K, _, T, 1>(simd, &groups, &scales, rows, &mut sums);
            }
            for t in 0..T {
                let mut values = [0.0; LANES];
                simd.store(sums[0][t], &mut values);
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

    /// Unpacks a part of one or two panels, then runs it against many tiles of tokens.
    #[inline(always)]
    fn unpacked<S: Simd>(&self, simd: S) {
        let mut scratch = Scratch::new();
        let tiles = self.activations.tiles().count();
        let most = if tiles > FEW_TILES { CHUNK_BLOCKS } else { SMALL_CHUNK_BLOCKS };
        let chunk = self.blocks.div_ceil(self.blocks.div_ceil(most));
        for first_tile in (0..tiles).step_by(CHUNK_TILES) {
            let tiles = first_tile..tiles.min(first_tile + CHUNK_TILES);
            for first_block in (0..self.blocks).step_by(chunk) {
                let blocks = first_block..self.blocks.min(first_block + chunk);
                let mut panels = self.panels.clone();
                while !panels.is_empty() {
                    let together = panels.start..panels.end.min(panels.start + S::PANELS);
                    panels.start = together.end;
                    for (panel, scratch) in together.clone().zip(&mut scratch.0) {
                        self.unpack(simd, panel, blocks.clone(), scratch);
                    }
                    let mut next = [&self.codes[..0]; MAX_PANELS];
                    if tiles.len() <= FEW_TILES {
                        for (next, panel) in next.iter_mut().zip(panels.clone()).take(S::PANELS) {
                            *next = self.part(panel, blocks.clone());
                        }
                    }
                    simd.enter(MultiplyUnpacked {
                        kind: PhantomData::<K>,
                        scratch: &scratch,
                        next,
                        lines_per_block: C::LINES,
                        panels: together.start - self.first_panel..together.end - self.first_panel,
                        blocks: blocks.clone(),
                        tiles: tiles.clone(),
                        activations: self.activations,
                        output: self.output,
                    });
                }
            }
        }
    }

    /// The codes of some blocks of a panel.
    #[inline(always)]
    fn part(&self, panel: usize, blocks: Range<usize>) -> &[Line] {
        &self.codes[(panel * self.blocks + blocks.start) * C::LINES..][..blocks.len() * C::LINES]
    }

    #[inline(always)]
    fn unpack<S: Simd>(
        &self,
        simd: S,
        panel: usize,
        blocks: Range<usize>,
        to: &mut [UnpackedBlock; CHUNK_BLOCKS],
    ) {
        let codes = self.part(panel, blocks.clone());
        for ((lines, block), to) in codes.chunks_exact(C::LINES).zip(blocks).zip(to) {
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

struct Scratch([[UnpackedBlock; CHUNK_BLOCKS]; MAX_PANELS]);

#[allow(clippy::large_stack_arrays, reason = "35 KB, once per task, instead of an allocation")]
impl Scratch {
    const fn new() -> Self {
        let empty = UnpackedBlock { codes: [Line::ZERO; 8], scales: [[0.0; LANES]; 2] };
        Self([[empty; CHUNK_BLOCKS]; MAX_PANELS])
    }
}

/// Multiplies an unpacked part of one or two panels with some tiles.
struct MultiplyUnpacked<'a, K> {
    kind: PhantomData<K>,
    scratch: &'a Scratch,
    /// The codes that are unpacked next: they are fetched meanwhile, a part with each tile.
    next: [&'a [Line]; MAX_PANELS],
    lines_per_block: usize,
    /// Where the panels lie in the output.
    panels: Range<usize>,
    blocks: Range<usize>,
    tiles: Range<usize>,
    activations: &'a QuantizedRows,
    output: Output<'a>,
}

impl<K: Kind> Kernel for MultiplyUnpacked<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if S::PANELS > 1 && self.panels.len() > 1 {
            self.panels::<S, MAX_PANELS>(simd);
        } else {
            self.panels::<S, 1>(simd);
        }
    }
}

/// Some tokens of a tile.
#[derive(Clone, Copy)]
struct TilePart<'a> {
    tile: usize,
    rows: &'a [ActivationBlock],
    tokens: usize,
    done: usize,
    first_row: usize,
}

impl<K: Kind> MultiplyUnpacked<'_, K> {
    #[inline(always)]
    fn panels<S: Simd, const P: usize>(&self, simd: S) {
        for tile in self.tiles.clone() {
            let (rows, tokens) = self.activations.tile(tile);
            let rows = &rows[self.blocks.start * tokens..self.blocks.end * tokens];
            let first_row = self.activations.tiles().start(tile);
            let mut done = 0;
            while done < tokens {
                let count = S::TILE.min(tokens - done);
                let part = TilePart { tile, rows, tokens, done, first_row };
                match count {
                    1 => self.tile::<S, 1, P>(simd, part),
                    2 => self.tile::<S, 2, P>(simd, part),
                    3 => self.tile::<S, 3, P>(simd, part),
                    4 => self.tile::<S, 4, P>(simd, part),
                    5 => self.tile::<S, 5, P>(simd, part),
                    _ => self.tile::<S, MAX_TILE, P>(simd, part),
                }
                done += count;
            }
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const T: usize, const P: usize>(&self, simd: S, part: TilePart<'_>) {
        // Lets the compiler drop the sizes that this instruction set never asks for.
        if T > S::TILE {
            return;
        }
        let row = part.first_row + part.done;
        let mut sums = [[simd.splat(0.0); T]; P];
        if self.blocks.start > 0 {
            for p in 0..P {
                for t in 0..T {
                    let values = load(self.output, row + t, self.panels.start + p);
                    sums[p][t] = simd.load(&values);
                }
            }
        }
        let (tile, tiles) = (part.tile - self.tiles.start, self.tiles.len());
        let fetched = tile * self.lines_per_block / tiles;
        let to_fetch = (tile + 1) * self.lines_per_block / tiles;
        for (block, rows) in part.rows.chunks_exact(part.tokens).enumerate() {
            for next in self.next {
                let first = block * self.lines_per_block;
                for line in next.get(first + fetched..first + to_fetch).unwrap_or(&[]) {
                    simd.prefetch_far(line);
                }
            }
            let Some(rows) = rows[part.done..].first_chunk::<T>() else { break };
            let mut panels = [InMemory(&self.scratch.0[0][block].codes); P];
            let mut scales = [[simd.splat(0.0); 2]; P];
            for p in 0..P {
                let unpacked = &self.scratch.0[p][block];
                panels[p] = InMemory(&unpacked.codes);
                scales[p] = [simd.load(&unpacked.scales[0]), simd.load(&unpacked.scales[1])];
            }
            add_block::<S, K, _, T, P>(simd, &panels, &scales, rows, &mut sums);
        }
        for p in 0..P {
            for t in 0..T {
                let mut values = [0.0; LANES];
                simd.store(sums[p][t], &mut values);
                store(self.output, row + t, self.panels.start + p, &values);
            }
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
