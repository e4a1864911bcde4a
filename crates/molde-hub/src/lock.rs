//! One writer a blob, across processes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use fs4::{FileExt, TryLockError};

use crate::progress::{Event, Observer};
use crate::{HubConfig, HubError};

/// Time between two looks at a lock that another process holds.
const POLL: Duration = Duration::from_millis(200);

/// A lock that is released when this is dropped, or by the system when the process dies.
#[derive(Debug)]
pub(crate) struct BlobLock {
    _file: File,
}

impl BlobLock {
    /// Waits for the lock, saying so once.
    pub(crate) fn acquire(
        path: &Path,
        file_name: &str,
        config: &HubConfig,
        observer: &mut Observer<'_>,
    ) -> Result<Self, HubError> {
        let started = Instant::now();
        let mut said = false;
        loop {
            observer.check()?;
            let file = open(path).map_err(|source| HubError::io("open", path, source))?;
            match FileExt::try_lock(&file) {
                // Other tools delete the lock file when they are done: a lock on a deleted file
                // excludes nobody.
                Ok(()) if is_still_at(&file, path) => return Ok(Self { _file: file }),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(HubError::io("lock", path, source)),
            }
            let waited = started.elapsed();
            if config.lock_timeout.is_some_and(|limit| waited >= limit) {
                return Err(HubError::Locked { path: path.to_owned(), waited });
            }
            if !said {
                observer.event(Event::Waiting { file: file_name, lock: path });
                said = true;
            }
            observer.pause(POLL)?;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.ino() == named.ino() && held.dev() == named.dev(),
        _ => false,
    }
}

/// An open file cannot be deleted here.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}
