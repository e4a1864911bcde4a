//! The result of a multiplication, written by several threads at once, each its own columns.
#![allow(
    unsafe_code,
    reason = "threads write disjoint columns of one row-major matrix, which no safe split can express"
)]

use std::marker::PhantomData;

use crate::arch::LANES;

/// A row-major matrix of results whose columns are owned by different threads.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pointer: *mut f32,
    rows: usize,
    columns: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: the pointer comes from an exclusive borrow that outlives the `Output`, and `load` and
// `store` are unsafe functions whose callers keep to different columns on different threads.
unsafe impl Send for Output<'_> {}
// SAFETY: as above.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    /// # Panics
    /// If the matrix does not hold `rows * columns` elements; callers have checked it.
    pub(super) fn new(matrix: &'a mut [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(matrix.len(), rows * columns, "the length was checked against the shapes");
        Self { pointer: matrix.as_mut_ptr(), rows, columns, matrix: PhantomData }
    }

    /// Reads the results of one token for sixteen outputs; those past the last column are zeros.
    ///
    /// # Safety
    /// No other thread accesses the columns of this panel meanwhile.
    #[inline(always)]
    pub(super) unsafe fn load(self, row: usize, panel: usize) -> [f32; LANES] {
        let mut values = [0.0; LANES];
        let (at, width) = self.place(row, panel);
        // SAFETY: `place` keeps `at .. at + width` inside the matrix, `width` is at most LANES, and
        // the caller vouches that nobody writes there.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer.add(at), values.as_mut_ptr(), width) };
        values
    }

    /// Writes the results of one token for sixteen outputs; those past the last column are dropped.
    ///
    /// # Safety
    /// No other thread accesses the columns of this panel meanwhile.
    #[inline(always)]
    pub(super) unsafe fn store(self, row: usize, panel: usize, values: &[f32; LANES]) {
        let (at, width) = self.place(row, panel);
        if width == LANES {
            // SAFETY: as below, with a constant width, which compiles to one vector store.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.pointer.add(at), LANES) };
            return;
        }
        // SAFETY: `place` keeps `at .. at + width` inside the matrix, `width` is at most LANES, and
        // the caller vouches that nobody else accesses it.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.pointer.add(at), width) };
    }

    /// Writes one element.
    ///
    /// # Safety
    /// No other thread accesses it meanwhile.
    pub(super) unsafe fn set(self, row: usize, column: usize, value: f32) {
        assert!(row < self.rows && column < self.columns, "tasks lie inside the result");
        // SAFETY: just checked, and the caller vouches that nobody else accesses the element.
        unsafe { *self.pointer.add(row * self.columns + column) = value };
    }

    #[inline(always)]
    fn place(self, row: usize, panel: usize) -> (usize, usize) {
        let column = panel * LANES;
        assert!(row < self.rows && column < self.columns, "tiles and panels lie inside the result");
        (row * self.columns + column, LANES.min(self.columns - column))
    }
}
