//! Seconds of a run: of the wall clock, or of the processor where one thread does the work.

use std::time::{Duration, Instant};

/// How runs are timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time to spend on a number.
    budget: Duration,
    /// Whether processor time is counted, which other processes disturb little.
    counts_processor: bool,
}

impl Clock {
    /// Processor time for one thread, where the system tells it; else the wall clock.
    pub(crate) fn new(seconds: f64, threads: usize) -> Self {
        Self {
            budget: Duration::from_secs_f64(seconds),
            counts_processor: threads == 1 && processor_seconds().is_some(),
        }
    }

    /// What is counted, for the reader.
    pub(crate) const fn name(self) -> &'static str {
        if self.counts_processor { "processor time" } else { "wall clock" }
    }

    /// Seconds of a run: of the wall clock the best run's, of the processor the mean, since the
    /// system counts in ticks of ten milliseconds.
    pub(crate) fn seconds(
        self,
        mut run: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        self.seconds_after(|| Ok(()), |()| run())
    }

    /// The same, each run after a preparation that is not counted.
    pub(crate) fn seconds_after<T>(
        self,
        mut prepare: impl FnMut() -> anyhow::Result<T>,
        mut run: impl FnMut(T) -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        let start = Instant::now();
        let (mut best, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
        while runs < 3 || start.elapsed() < self.budget {
            let prepared = prepare()?;
            let (one, processor) = (Instant::now(), processor_seconds());
            run(prepared)?;
            best = best.min(one.elapsed().as_secs_f64());
            total += processor_seconds().zip(processor).map_or(0.0, |(now, then)| now - then);
            runs += 1;
        }
        Ok(if self.counts_processor { total / f64::from(runs) } else { best })
    }
}

/// Ticks in a second in which the kernel tells times to programs, on every architecture here.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor seconds of this process so far, threads that have ended included, where the system
/// tells.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything; user and system time are the 12th and 13th after it.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}
