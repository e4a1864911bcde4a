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
}
