//! What a transfer tells its caller while it runs, and how the caller stops it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::HubError;

/// Something that happened during a transfer. Sizes are bytes of the final file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A transfer begins, or goes on after `resumed_bytes` that were already on disk.
    Start {
        /// Name of the file in its repository.
        file: &'a str,
        /// Size of the whole file.
        total_bytes: u64,
        /// Bytes that need not be fetched again.
        resumed_bytes: u64,
    },
    /// Bytes arrived. From a package mirror this is an estimate while a wheel is downloaded.
    Bytes {
        /// Name of the file in its repository.
        file: &'a str,
        /// Bytes so far; never less than before within one attempt.
        done_bytes: u64,
        /// Size of the whole file.
        total_bytes: u64,
    },
    /// Bytes on disk are being read again, to check them or to go on after them.
    Verify {
        /// Name of the file in its repository.
        file: &'a str,
        /// Bytes read so far.
        done_bytes: u64,
        /// Bytes to read.
        total_bytes: u64,
    },
    /// Another process is fetching the same file; this one waits for it. Said once a file.
    Waiting {
        /// Name of the file in its repository.
        file: &'a str,
        /// The lock that the other process holds.
        lock: &'a Path,
    },
    /// An attempt failed and another one follows.
    Retry {
        /// Name of the file in its repository.
        file: &'a str,
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Pause before the next one.
        wait: Duration,
        /// Why it failed.
        reason: &'a HubError,
    },
    /// A source failed and the next one is tried.
    SourceFailed {
        /// The model.
        model: &'a str,
        /// `hub` or `mirror`.
        source: &'a str,
        /// Why it failed.
        reason: &'a HubError,
    },
    /// A package of the mirror is being downloaded.
    Package {
        /// Package and version, `name==version`.
        package: &'a str,
        /// Number of the piece, from 1.
        piece: usize,
        /// Number of pieces.
        pieces: usize,
    },
    /// The file is whole, checked, and in the cache.
    Done {
        /// Name of the file in its repository.
        file: &'a str,
        /// Where it is.
        path: &'a Path,
    },
}

/// A flag that stops transfers from another thread or a signal handler. Clones share it.
///
/// Made from an `Arc<AtomicBool>`, it is one flag with whatever else looks at that: this crate has
/// a type of its own so that it need not know the crates whose work is stopped with it.
///
/// It is looked at between chunks and ten times a second while waiting; a read from a silent
/// connection ends at the stall timeout at the latest.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops everything that looks at this flag. Cannot be undone.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for CancelFlag {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// The caller's side of one transfer: where events go, and the flag that stops it.
pub(crate) struct Observer<'a> {
    pub(crate) on_event: &'a mut dyn FnMut(Event<'_>),
    pub(crate) cancel: &'a CancelFlag,
}

impl Observer<'_> {
    pub(crate) fn event(&mut self, event: Event<'_>) {
        (self.on_event)(event);
    }

    pub(crate) fn check(&self) -> Result<(), HubError> {
        if self.cancel.is_cancelled() { Err(HubError::Cancelled) } else { Ok(()) }
    }

    /// Sleeps, and wakes up early if cancelled.
    pub(crate) fn pause(&self, wait: Duration) -> Result<(), HubError> {
        const SLICE: Duration = Duration::from_millis(100);
        let until = Instant::now() + wait;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}
