//! Products of quantized activations and packed weights.

mod format;
mod kernel;
mod output;

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use crate::activations::QuantizedRows;
use crate::arch::{LANES, Line};
use crate::error::{check_dimension, check_len};
use crate::weights::{PackedMatrix, Scales};
use crate::{KernelError, Kernels};
use format::{
    Codes, Eight, Five, Four, HalfScales, Halves, Kind, Minimum, OneScale, ScaleAndMinimum,
    ScaleSource, Six, TwoLevels, Zero8, Zero16, Zero128,
};
use kernel::Multiply;
use output::Output;

/// Tasks per thread: enough to even out a core that is busy elsewhere, few enough to cost nothing.
const TASKS_PER_THREAD: usize = 4;

/// One matrix of a joint multiplication, and where its result goes.
#[derive(Debug)]
pub struct Product<'a> {
    /// The weights, `[outputs, inputs]`.
    pub weights: &'a PackedMatrix,
    /// The result, `[tokens, outputs]` row by row.
    pub output: &'a mut [f32],
}

impl Kernels {
    /// Multiplies activations `[tokens, inputs]` with the transpose of weights `[outputs, inputs]` and
    /// writes `[tokens, outputs]` to `output`.
    ///
    /// Each element is computed by one fixed order of operations: it does not depend on the
    /// other tokens, on the number of threads, or on the instruction set.
    ///
    /// Call it from inside `pool` (`pool.install`) where several calls follow each other: entering
    /// a pool costs two thread switches.
    ///
    /// # Errors
    /// [`KernelError::Dimension`] if the numbers of inputs differ, [`KernelError::Length`] if `output` has the
    /// wrong length.
    ///
    /// # Complexity
    /// `tokens * outputs * inputs` integer multiply-adds; the weights are read once per 240 tokens.
    /// Nothing is allocated.
    pub fn matmul(
        &self,
        pool: &rayon::ThreadPool,
        activations: &QuantizedRows,
        weights: &PackedMatrix,
        output: &mut [f32],
    ) -> Result<(), KernelError> {
        self.matmul_all(pool, activations, &mut [Product { weights, output }])
    }

    /// Multiplies the same activations with several matrices as one parallel job: the three
    /// projections of attention, or the two of a gated MLP.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul), before anything is written.
    pub fn matmul_all(
        &self,
        pool: &rayon::ThreadPool,
        activations: &QuantizedRows,
        products: &mut [Product<'_>],
    ) -> Result<(), KernelError> {
        let tokens = activations.rows();
        for product in products.iter() {
            check_inputs(activations, product.weights)?;
            check_len(
                "output",
                tokens.saturating_mul(product.weights.rows()),
                product.output.len(),
            )?;
        }
        if tokens == 0 {
            return Ok(());
        }
        for products in products.chunks_mut(JOINT_PRODUCTS) {
            let mut jobs = [const { None }; JOINT_PRODUCTS];
            for (job, product) in jobs.iter_mut().zip(products) {
                let output = Output::new(product.output, tokens, product.weights.rows());
                *job = Some((product.weights, output));
            }
            multiply_jointly(*self, pool, activations, &jobs);
        }
        Ok(())
    }

    /// Multiplies activations with some rows of the weights only, and writes `[tokens, rows.len()]`
    /// to `output`: the output head where a mask leaves few tokens.
    ///
    /// Each element is bit-equal to the one that [`matmul`](Self::matmul) computes. `rows` may come in any order
    /// and repeat; ascending is fastest, since sixteen neighbours are computed together.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul), and [`KernelError::OutOfRange`] if there is no such row.
    ///
    /// # Complexity
    /// That of `matmul` over the panels of sixteen rows in which a listed row lies.
    pub fn matmul_rows(
        &self,
        pool: &rayon::ThreadPool,
        activations: &QuantizedRows,
        weights: &PackedMatrix,
        rows: &[u32],
        output: &mut [f32],
    ) -> Result<(), KernelError> {
        let tokens = activations.rows();
        check_inputs(activations, weights)?;
        check_len("output", tokens.saturating_mul(rows.len()), output.len())?;
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= weights.rows()) {
            return Err(KernelError::OutOfRange {
                argument: "rows",
                got: row as usize,
                len: weights.rows(),
            });
        }
        if tokens == 0 || rows.is_empty() {
            return Ok(());
        }
        let output = Output::new(output, tokens, rows.len());
        let task_rows = rows.len().div_ceil(pool.current_num_threads() * TASKS_PER_THREAD);
        let run = |(task, rows): (usize, &[u32])| {
            multiply_rows(*self, activations, weights, rows, task * task_rows, output);
        };
        pool.install(|| rows.par_chunks(task_rows).enumerate().for_each(run));
        Ok(())
    }
}

fn check_inputs(activations: &QuantizedRows, weights: &PackedMatrix) -> Result<(), KernelError> {
    check_dimension("activations", "weights", "columns", weights.columns(), activations.columns())
}

/// Matrices that share a parallel job; more are done in several jobs.
const JOINT_PRODUCTS: usize = 4;

/// Runs up to [`JOINT_PRODUCTS`] products, their panels numbered through and cut into tasks.
fn multiply_jointly(
    kernels: Kernels,
    pool: &rayon::ThreadPool,
    activations: &QuantizedRows,
    jobs: &[Option<(&PackedMatrix, Output<'_>)>; JOINT_PRODUCTS],
) {
    let panels: usize =
        jobs.iter().flatten().map(|(weights, _)| weights.rows().div_ceil(LANES)).sum();
    let threads = pool.current_num_threads();
    let tasks = if threads == 1 { 1 } else { (threads * TASKS_PER_THREAD).min(panels) };
    let run = |task: usize| {
        let wanted = panels * task / tasks..panels * (task + 1) / tasks;
        let mut first = 0;
        for &(weights, output) in jobs.iter().flatten() {
            let end = first + weights.rows().div_ceil(LANES);
            let own = wanted.start.clamp(first, end) - first..wanted.end.clamp(first, end) - first;
            if !own.is_empty() {
                multiply_panels(kernels, activations, weights, own, 0, output);
            }
            first = end;
        }
    };
    pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(run));
}

/// Tokens whose results for one panel fit a buffer on the stack.
const ROWS_AT_ONCE: usize = 16;

/// Computes the panels in which the listed rows lie and copies their results to consecutive
/// columns of `output` from `first_column` on.
#[allow(unsafe_code, reason = "each task owns its columns")]
fn multiply_rows(
    kernels: Kernels,
    activations: &QuantizedRows,
    weights: &PackedMatrix,
    rows: &[u32],
    first_column: usize,
    output: Output<'_>,
) {
    let tokens = activations.rows();
    let mut on_stack = [0.0; ROWS_AT_ONCE * LANES];
    let mut on_heap = vec![0.0; if tokens > ROWS_AT_ONCE { tokens * LANES } else { 0 }];
    let values = if tokens > ROWS_AT_ONCE {
        on_heap.as_mut_slice()
    } else {
        &mut on_stack[..tokens * LANES]
    };
    let mut computed = None;
    for (i, &row) in rows.iter().enumerate() {
        let (panel, lane) = (row as usize / LANES, row as usize % LANES);
        if computed != Some(panel) {
            let one_panel = Output::new(values, tokens, LANES);
            multiply_panels(kernels, activations, weights, panel..panel + 1, panel, one_panel);
            computed = Some(panel);
        }
        for token in 0..tokens {
            // SAFETY: each task has its own range of `rows`, hence of columns.
            unsafe { output.set(token, first_column + i, values[token * LANES + lane]) };
        }
    }
}

/// Multiplies a range of panels; the results of panel `first_panel` go to the first columns of `output`.
fn multiply_panels(
    kernels: Kernels,
    activations: &QuantizedRows,
    weights: &PackedMatrix,
    panels: Range<usize>,
    first_panel: usize,
    output: Output<'_>,
) {
    let parts = weights.panels();
    let (blocks, coarse_blocks) = (parts.blocks, parts.coarse_blocks);
    let job = Job { kernels, codes: parts.codes, blocks, panels, first_panel, activations, output };
    match parts.scales {
        Scales::Symmetric(scales) => {
            let scales = OneScale { scales, blocks };
            match parts.zero {
                8 => job.run(Four, Zero8, scales),
                16 => job.run(Five, Zero16, scales),
                _ => job.run(Eight, Zero128, scales),
            }
        }
        Scales::Affine(scales) => {
            let scales = ScaleAndMinimum { scales, blocks };
            match parts.lines_per_block {
                4 => job.run(Four, Minimum, scales),
                _ => job.run(Five, Minimum, scales),
            }
        }
        Scales::TwoLevel { fine, coarse } => {
            let scales = TwoLevels { fine, coarse, blocks, coarse_blocks };
            match parts.lines_per_block {
                4 => job.run(Four, Minimum, scales),
                _ => job.run(Five, Minimum, scales),
            }
        }
        Scales::Halves { fine, coarse } => {
            job.run(Six, Halves, HalfScales { fine, coarse, blocks, coarse_blocks });
        }
    }
}

/// What a multiplication of some panels needs, whatever the format.
struct Job<'a> {
    kernels: Kernels,
    codes: &'a [Line],
    blocks: usize,
    panels: Range<usize>,
    first_panel: usize,
    activations: &'a QuantizedRows,
    output: Output<'a>,
}

impl Job<'_> {
    fn run<C: Codes, K: Kind, Q: ScaleSource>(self, _codes: C, _kind: K, scales: Q) {
        self.kernels.run(Multiply {
            format: PhantomData::<(C, K)>,
            codes: self.codes,
            scales,
            blocks: self.blocks,
            panels: self.panels,
            first_panel: self.first_panel,
            activations: self.activations,
            output: self.output,
        });
    }
}
