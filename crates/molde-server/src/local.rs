//! The generator that this crate comes with: one thread, one sequence at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use molde_infer::{InferError, KvCache, LoadedModel, generate};

use crate::generator::{GenerateError, Generator, Job, QueueFull, SequenceEvent};

/// A thread that owns the caches of one model.
#[derive(Debug)]
pub(crate) struct LocalGenerator {
    jobs: Sender<Job>,
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    weight_bytes: usize,
}

impl LocalGenerator {
    /// Starts the thread. It ends when the generator is dropped and the queue is empty.
    pub(crate) fn start(
        loaded: LoadedModel,
        max_waiting: usize,
        max_caches: usize,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let weight_bytes = loaded.model.memory_usage();
        let worker = Worker { loaded, caches: Vec::new(), max_caches: max_caches.max(1) };
        let count = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("generator".to_owned())
            .spawn(move || worker.run(&queue, &count))?;
        Ok(Self { jobs, waiting, max_waiting, weight_bytes })
    }
}

impl Generator for LocalGenerator {
    fn submit(&self, job: Job) -> Result<(), QueueFull> {
        let taken = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < self.max_waiting).then_some(waiting + 1)
        });
        if taken.is_err() {
            return Err(QueueFull);
        }
        if let Err(unsent) = self.jobs.send(job) {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let mut job = unsent.0;
            (job.listener)(SequenceEvent::End(Err(GenerateError::Stopped)));
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }
}

struct Worker {
    loaded: LoadedModel,
    /// What was read before, the most recently used last.
    caches: Vec<KvCache>,
    max_caches: usize,
}

impl Worker {
    fn run(mut self, queue: &Receiver<Job>, waiting: &AtomicUsize) {
        while let Ok(job) = queue.recv() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            self.work(job);
        }
    }

    fn work(&mut self, job: Job) {
        let Job { request, mut constraint, mut listener } = job;
        let mut cache = self.take_cache(&request.prompt);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            request.interrupt.check()?;
            listener(SequenceEvent::Started);
            let constraint = constraint
                .as_mut()
                .map(|constraint| &mut **constraint as &mut dyn molde_vocab::TokenConstraint);
            generate(
                &self.loaded.model,
                &self.loaded.tokenizer,
                &request,
                &mut cache,
                constraint,
                &mut |token| listener(SequenceEvent::Token(token)),
            )
        }));
        let outcome = if let Ok(outcome) = outcome {
            self.caches.push(cache);
            // Kept for the next request before this one is told of its end.
            drop(constraint);
            outcome.map_err(GenerateError::Infer)
        } else {
            // Neither the cache nor the constraint is known to be whole.
            std::mem::forget(constraint);
            Err(GenerateError::Panic)
        };
        let told = catch_unwind(AssertUnwindSafe(|| listener(SequenceEvent::End(outcome))));
        if told.is_err() {
            tracing::error!("the listener of a sequence panicked");
        }
    }

    /// The cache that holds the most of a prompt; an empty one if there is room and none helps.
    fn take_cache(&mut self, prompt: &[molde_vocab::TokenId]) -> KvCache {
        let best = (0..self.caches.len())
            .map(|index| (self.caches[index].common_prefix(prompt), index))
            .max();
        match best {
            // A quarter of what it holds: the rest is a document that was read. Less is the
            // beginning that all prompts share, and the cache is better kept for its conversation.
            Some((shared, index)) if shared * 4 >= self.caches[index].len() => {
                self.caches.remove(index)
            }
            Some(_) if self.caches.len() >= self.max_caches => self.caches.remove(0),
            _ => self.loaded.model.new_cache(prompt.len()),
        }
    }
}

impl From<InferError> for GenerateError {
    fn from(error: InferError) -> Self {
        Self::Infer(error)
    }
}
