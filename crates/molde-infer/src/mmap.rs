//! Read-only memory maps: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::InferError;

/// The bytes of a file, mapped for reading.
///
/// Maps live only while a model is loaded: weights are copied out of them.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    map: Option<memmap2::Mmap>,
}

impl MappedFile {
    pub(crate) fn open(path: &Path) -> Result<Self, InferError> {
        let io = |source| InferError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
        }
        // An empty range cannot be mapped on every system.
        let map = if metadata.len() == 0 {
            None
        } else {
            // SAFETY: the map is read-only and private to this value. The contract of `Mmap` asks
            // that nobody truncates or rewrites the file meanwhile; model files are put in place
            // by an atomic rename and never written again, and every view below is bounds-checked
            // against the length of the map.
            Some(unsafe { memmap2::Mmap::map(&file) }.map_err(io)?)
        };
        Ok(Self { path: path.to_owned(), map })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Gives the memory of some of this map's bytes back to the system, where it can: they were
    /// copied out and are not needed again. Reading them again reads the file again.
    pub(crate) fn release(&self, bytes: &[u8]) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            let start = (bytes.as_ptr() as usize).wrapping_sub(map.as_ptr() as usize);
            if start <= map.len() && bytes.len() <= map.len() - start {
                // SAFETY: the range lies in the map. The map is shared with a file that nobody
                // changes, so pages that are dropped come back with the same bytes.
                let outcome = unsafe {
                    map.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        start,
                        bytes.len(),
                    )
                };
                // A refusal costs memory only.
                drop(outcome);
            }
        }
    }
}
