//! Many documents at the same time.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{Extractor, MoldeError, Outcome};

/// Stack of each thread: constraints may recurse into deep schemas.
const STACK_BYTES: usize = 16 << 20;

impl<T: Send + Sync> Extractor<T> {
    /// Reads some documents, up to `concurrency` at the same time, and returns what
    /// [`extract`](Self::extract) returns for each, in their order.
    ///
    /// The model reads its weights once for a token of every document that is being written, so
    /// eight at a time are done much sooner than one after the other; each waits longer for its own
    /// answer. The answers are those of one at a time, to the bit.
    ///
    /// # Panics
    /// If an extraction does.
    pub fn extract_many<D: AsRef<str> + Sync>(
        &self,
        documents: &[D],
        concurrency: NonZeroUsize,
    ) -> Vec<Result<Outcome<T>, MoldeError>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut own = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(document) = documents.get(index) else { return own };
                own.push((index, self.extract(document.as_ref())));
            }
        };
        let mut outcomes = thread::scope(|scope| {
            let others = concurrency.get().min(documents.len()).saturating_sub(1);
            // With fewer threads than wanted, the others do more.
            let threads: Vec<_> = (0..others)
                .map_while(|_| {
                    thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()
                })
                .collect();
            let mut outcomes = work();
            for thread in threads {
                match thread.join() {
                    Ok(others) => outcomes.extend(others),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            outcomes
        });
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}
