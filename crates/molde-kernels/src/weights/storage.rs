//! Memory for codes: whole pages, as large as the system gives.
#![allow(unsafe_code, reason = "a mapping of bytes seen as cache lines")]

use memmap2::MmapMut;

use crate::KernelError;
use crate::arch::Line;

/// Lines in anonymous memory, zeros at first.
///
/// Decoding streams hundreds of megabytes per token; with pages of 2 MB the processor's
/// prefetchers and address caches stop at far fewer boundaries. On Linux the mapping asks for
/// them; a refusal costs speed only.
#[derive(Debug)]
pub(crate) struct Lines {
    map: MmapMut,
    len: usize,
}

impl Lines {
    /// Maps `len` lines, at least one.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] if the system refuses.
    pub(crate) fn zeroed(len: usize) -> Result<Self, KernelError> {
        let bytes = len.saturating_mul(size_of::<Line>());
        let map = MmapMut::map_anon(bytes).map_err(|_| KernelError::OutOfMemory { bytes })?;
        #[cfg(target_os = "linux")]
        if let Err(_refused) = map.advise(memmap2::Advice::HugePage) {
            // Advice is a wish: the memory is as good without.
        }
        Ok(Self { map, len })
    }
}

impl std::ops::Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the mapping holds `len` lines of plain bytes, starts at a page, which is aligned
        // to more than 64 bytes, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}
