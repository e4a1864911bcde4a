//! A file that is arriving: bytes on disk, and the checksum of exactly these bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::HubError;
use crate::cache::{remove_if_there, sync_folder};
use crate::digest::{Checksum, Hasher, PrefixError, hash_prefix};
use crate::progress::{Event, Observer};

/// What a file must be when it is whole.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Name in the repository, for messages.
    pub(crate) file: String,
    pub(crate) size_bytes: u64,
    pub(crate) checksum: Checksum,
}

/// An `.incomplete` file. Whoever has one holds its lock.
pub(crate) struct Partial {
    path: PathBuf,
    file: File,
    hasher: Hasher,
    len_bytes: u64,
    target: Target,
}

/// An end of a partial file.
pub(crate) struct Mark {
    len_bytes: u64,
    hasher: Hasher,
}

impl Partial {
    /// Opens what an earlier attempt left, reads it again for the checksum, and makes sure that
    /// the rest has room. Bytes that an attempt left are a prefix of the file even if the process
    /// was killed, since they are only ever appended.
    pub(crate) fn open(
        path: PathBuf,
        target: Target,
        observer: &mut Observer<'_>,
    ) -> Result<Self, HubError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| HubError::io("open", &path, source))?;
        let hasher = Hasher::new(target.checksum.kind, target.size_bytes);
        let mut partial = Self { path, file, hasher, len_bytes: 0, target };
        let on_disk =
            partial.file.metadata().map_err(|source| partial.failed("read", source))?.len();
        if on_disk > partial.target.size_bytes {
            partial.restart()?;
        } else if on_disk > 0 {
            partial.read_again(on_disk, observer)?;
        }
        partial.check_space(0)?;
        Ok(partial)
    }

    fn read_again(&mut self, on_disk: u64, observer: &mut Observer<'_>) -> Result<(), HubError> {
        let file = &self.target.file;
        let mut on_progress = |done_bytes| {
            observer.check()?;
            observer.event(Event::Verify { file, done_bytes, total_bytes: on_disk });
            Ok(())
        };
        match hash_prefix(&self.file, on_disk, &mut self.hasher, &mut on_progress) {
            Ok(read) => self.len_bytes = read,
            Err(PrefixError::Stopped(error)) => return Err(error),
            Err(PrefixError::Read(source)) => return Err(self.failed("read", source)),
        }
        self.seek_to_end()
    }

    fn seek_to_end(&mut self) -> Result<(), HubError> {
        let end = SeekFrom::Start(self.len_bytes);
        self.file.seek(end).map(|_| ()).map_err(|source| self.failed("write", source))
    }

    /// Bytes that are here.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Bytes that are still to come.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.target.size_bytes - self.len_bytes
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Fails if the file system has no room for the rest and `extra_bytes` beside it.
    pub(crate) fn check_space(&self, extra_bytes: u64) -> Result<(), HubError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let needed_bytes = self.missing_bytes().saturating_add(extra_bytes);
        // A file system that cannot say how much is left may have room: writing decides.
        match fs4::available_space(folder) {
            Ok(available) if available < needed_bytes => Err(HubError::DiskFull {
                path: folder.to_owned(),
                needed_bytes,
                available_bytes: Some(available),
            }),
            _ => Ok(()),
        }
    }

    /// Appends bytes. More than the file has are refused, and nothing of them is written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), HubError> {
        if bytes.len() as u64 > self.missing_bytes() {
            return Err(HubError::SizeMismatch {
                file: self.target.file.clone(),
                expected_bytes: self.target.size_bytes,
                got_bytes: self.len_bytes + bytes.len() as u64,
            });
        }
        // After a failed write some of the bytes may be on disk: the next one goes over them.
        if let Err(source) = self.file.write_all(bytes) {
            let error = self.failed("write", source).with_needed_bytes(self.missing_bytes());
            self.seek_to_end()?;
            return Err(error);
        }
        self.hasher.update(bytes);
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Throws away what is here.
    pub(crate) fn restart(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(|source| self.failed("write", source))?;
        self.len_bytes = 0;
        self.hasher = Hasher::new(self.target.checksum.kind, self.target.size_bytes);
        self.seek_to_end()
    }

    /// Where the file ends now, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark { len_bytes: self.len_bytes, hasher: self.hasher.clone() }
    }

    /// Throws away what was appended since the mark.
    pub(crate) fn rewind(&mut self, mark: Mark) -> Result<(), HubError> {
        self.file.set_len(mark.len_bytes).map_err(|source| self.failed("write", source))?;
        self.len_bytes = mark.len_bytes;
        self.hasher = mark.hasher;
        self.seek_to_end()
    }

    /// Compares size and checksum and moves the file to `blob`, so that a file with that name is
    /// always whole. Wrong content is removed.
    pub(crate) fn finish(self, blob: &Path) -> Result<(), HubError> {
        let Self { path, file, hasher, len_bytes, target } = self;
        if len_bytes != target.size_bytes {
            return Err(HubError::SizeMismatch {
                file: target.file,
                expected_bytes: target.size_bytes,
                got_bytes: len_bytes,
            });
        }
        let got = hasher.finish();
        if got != target.checksum.hex {
            drop(file);
            remove_if_there(&path).map_err(|source| HubError::io("remove", &path, source))?;
            return Err(HubError::ChecksumMismatch {
                file: target.file,
                kind: target.checksum.kind,
                expected: target.checksum.hex,
                got,
            });
        }
        file.sync_all().map_err(|source| HubError::io("write", &path, source))?;
        drop(file);
        fs::rename(&path, blob).map_err(|source| HubError::io("rename", &path, source))?;
        if let Some(folder) = blob.parent() {
            sync_folder(folder);
        }
        Ok(())
    }

    fn failed(&self, operation: &'static str, source: std::io::Error) -> HubError {
        HubError::io(operation, &self.path, source)
    }
}
