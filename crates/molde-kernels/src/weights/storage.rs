//! Memory for weights: large mappings that many matrices share.
#![allow(unsafe_code, reason = "disjoint parts of a mapping, seen as cache lines and numbers")]

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapMut, MmapRaw};

use crate::KernelError;
use crate::arch::{LANES, Line};

/// Lines of a mapping that several matrices share: 32 MB.
const REGION_LINES: usize = (32 << 20) / size_of::<Line>();
/// What is larger than this gets a mapping of its own.
const LARGE_LINES: usize = REGION_LINES / 4;

/// Where the weights of a model lie.
///
/// Decoding streams hundreds of megabytes per token. In pages of 2 MB, which the mappings ask for on
/// Linux, the processor's address caches and prefetchers stop at far fewer boundaries: reading goes
/// a fifth to a third faster. A matrix of a small model is smaller than such a page, so
/// matrices that are made in one `WeightMemory` lie next to each other. A region is given back when
/// the last of them is dropped.
#[derive(Debug)]
pub struct WeightMemory {
    /// The largest part that shares a region with others.
    shared_lines: usize,
    open: Mutex<Option<Open>>,
}

/// A region with room at its end.
#[derive(Debug)]
struct Open {
    region: Arc<MmapRaw>,
    used: usize,
}

impl WeightMemory {
    /// Nothing is mapped yet.
    pub const fn new() -> Self {
        Self { shared_lines: LARGE_LINES, open: Mutex::new(None) }
    }

    /// Memory in which every part gets a mapping of its own: for a matrix that has no neighbours.
    pub(crate) const fn unshared() -> Self {
        Self { shared_lines: 0, open: Mutex::new(None) }
    }

    /// Zeros for a number of lines.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] if the system refuses.
    pub(crate) fn lines(&self, len: usize) -> Result<Lines, KernelError> {
        if len > self.shared_lines {
            return Lines::alone(len);
        }
        // A panic while it was held has left no half-made region.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *open {
            Some(open) if open.used + len <= REGION_LINES => open,
            full => full.insert(Open { region: map(REGION_LINES)?, used: 0 }),
        };
        let first = open.used;
        open.used += len;
        Ok(Lines { region: Arc::clone(&open.region), first, len })
    }

    /// Zeros for a number of elements.
    ///
    /// # Errors
    /// As [`lines`](Self::lines).
    pub(crate) fn array<T: Plain>(&self, len: usize) -> Result<Array<T>, KernelError> {
        let bytes = len.saturating_mul(size_of::<T>());
        let lines = self.lines(bytes.div_ceil(size_of::<Line>()))?;
        Ok(Array { lines, len, element: PhantomData })
    }
}

impl Default for WeightMemory {
    fn default() -> Self {
        Self::new()
    }
}

/// Maps a number of lines, zeros at first.
fn map(lines: usize) -> Result<Arc<MmapRaw>, KernelError> {
    let bytes = lines.saturating_mul(size_of::<Line>()).max(1);
    let map = MmapMut::map_anon(bytes).map_err(|_| KernelError::OutOfMemory { bytes })?;
    #[cfg(target_os = "linux")]
    if let Err(_refused) = map.advise(memmap2::Advice::HugePage) {
        // Advice is a wish: the memory is as good without.
    }
    Ok(Arc::new(MmapRaw::from(map)))
}

/// A part of a region that belongs to one owner.
#[derive(Debug)]
pub(crate) struct Lines {
    region: Arc<MmapRaw>,
    first: usize,
    len: usize,
}

impl Lines {
    /// Lines in a mapping of their own.
    fn alone(len: usize) -> Result<Self, KernelError> {
        Ok(Self { region: map(len)?, first: 0, len })
    }

    #[allow(clippy::cast_ptr_alignment, reason = "a mapping starts at a page")]
    fn start(&self) -> *mut Line {
        // In range: parts are made inside their region.
        self.region.as_mut_ptr().cast::<Line>().wrapping_add(self.first)
    }
}

impl std::ops::Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the mapping holds lines `first .. first + len` of plain bytes, starts at a page,
        // which is aligned to more than 64 bytes, and lives as long as `self`. No other `Lines`
        // has any of them, since a region's lines are handed out once.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl std::ops::DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

/// Numbers of which every pattern of bits is one.
///
/// # Safety
/// The type has no padding, no invalid patterns, no pointers, and an alignment of at most 64.
pub(crate) unsafe trait Plain: Send + Sync {}

// SAFETY: arrays of integers.
unsafe impl Plain for [u16; LANES] {}
// SAFETY: as above.
unsafe impl Plain for [[u16; LANES]; 2] {}
// SAFETY: as above.
unsafe impl Plain for [[u8; LANES]; 2] {}
// SAFETY: as above.
unsafe impl Plain for [[i8; LANES]; 2] {}

/// Lines seen as an array.
#[derive(Debug)]
pub(crate) struct Array<T> {
    lines: Lines,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Plain> std::ops::Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `len` elements, aligned to 64 bytes, and any bytes are
        // valid elements. The lifetime is that of the borrowed lines.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> std::ops::DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_shared_regions_are_disjoint_zeros() {
        let memory = WeightMemory::new();
        let sizes = [3, LARGE_LINES, LARGE_LINES, LARGE_LINES, LARGE_LINES, LARGE_LINES + 1, 0, 7];
        let mut parts: Vec<Lines> = sizes.iter().map(|&len| memory.lines(len).unwrap()).collect();
        for (number, (part, &len)) in parts.iter_mut().zip(&sizes).enumerate() {
            assert_eq!(part.len(), len);
            assert!(part.iter().all(|line| line.0 == [0; 64]), "part {number}");
            part.fill(Line([number as u8 + 1; 64]));
        }
        drop(memory);
        for (number, part) in parts.iter().enumerate() {
            assert!(part.iter().all(|line| line.0 == [number as u8 + 1; 64]), "part {number}");
        }
    }

    #[test]
    fn an_array_is_aligned_and_as_long_as_asked_for() {
        let memory = WeightMemory::new();
        let mut first = memory.array::<[[u8; LANES]; 2]>(3).unwrap();
        let second = memory.array::<[u16; LANES]>(5).unwrap();
        first.fill([[7; LANES]; 2]);
        assert_eq!((first.len(), second.len()), (3, 5));
        assert!(second.iter().all(|lanes| *lanes == [0; LANES]));
        assert_eq!(first.as_ptr() as usize % size_of::<Line>(), 0);
        assert_eq!(second.as_ptr() as usize % size_of::<Line>(), 0);
    }
}
