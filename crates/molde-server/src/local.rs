//! The generator that this crate comes with: a batch that sequences join and leave while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use molde_infer::{BatchOptions, InferError, LoadedModel, Scheduler, SequenceEvent};

use crate::config::Limits;
use crate::generator::{Generator, Job, QueueFull};

/// A scheduler behind a bounded queue.
#[derive(Debug)]
pub(crate) struct LocalGenerator {
    scheduler: Scheduler,
    load: Arc<Load>,
    max_waiting: usize,
    weight_bytes: usize,
}

/// How many sequences there are.
#[derive(Debug, Default)]
struct Load {
    waiting: AtomicUsize,
    running: AtomicUsize,
}

/// One sequence, counted where it is.
struct Counted {
    load: Arc<Load>,
    is_running: bool,
}

impl Counted {
    fn counter(&self) -> &AtomicUsize {
        if self.is_running { &self.load.running } else { &self.load.waiting }
    }

    fn start(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
        self.is_running = true;
        self.counter().fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
    }
}

impl LocalGenerator {
    /// Starts the thread. It ends when the generator is dropped.
    ///
    /// # Errors
    /// [`InferError::Thread`].
    pub(crate) fn start(loaded: LoadedModel, limits: &Limits) -> Result<Self, InferError> {
        let options = BatchOptions {
            max_sequences: limits.sequences,
            prefix_cache_bytes: limits.prompt_cache_bytes,
        };
        Ok(Self {
            weight_bytes: loaded.model.memory_usage(),
            scheduler: Scheduler::start(loaded.model, loaded.tokenizer, &options)?,
            load: Arc::default(),
            max_waiting: limits.queue,
        })
    }
}

impl Generator for LocalGenerator {
    fn submit(&self, job: Job) -> Result<(), QueueFull> {
        let taken = &self.load.waiting;
        let taken = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < self.max_waiting).then_some(waiting + 1)
        });
        if taken.is_err() {
            return Err(QueueFull);
        }
        let mut counted = Some(Counted { load: Arc::clone(&self.load), is_running: false });
        let Job { request, constraint, mut listener } = job;
        let listener = Box::new(move |event: SequenceEvent<'_>| {
            match (&event, &mut counted) {
                (SequenceEvent::Started, Some(counted)) => counted.start(),
                // Who hears of the end finds the place free.
                (SequenceEvent::End(_), counted) => *counted = None,
                _ => {}
            }
            listener(event);
        });
        // Where the thread is gone the listener is dropped, which tells its receiver.
        if let Err(error) = self.scheduler.submit(request, constraint, listener) {
            tracing::error!(%error, "a sequence was not taken");
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.load.waiting.load(Ordering::Relaxed)
    }

    fn running(&self) -> usize {
        self.load.running.load(Ordering::Relaxed)
    }

    fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }
}
