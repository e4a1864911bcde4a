//! Counters in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use molde_infer::Generation;

use crate::app::App;

/// Upper bounds of the buckets of times, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 120.0];

/// How often a time fell into which bucket.
#[derive(Debug, Default)]
struct Times {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Times {
    fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(at) = BUCKETS.iter().position(|&bound| seconds <= bound) {
            self.buckets[at].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.microseconds.fetch_add(time.as_micros() as u64, Relaxed);
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut sum = 0;
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS) {
            sum += bucket.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let count = self.count.load(Relaxed);
        let seconds = self.microseconds.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {count}");
    }
}

/// What happened since the server started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by route, status and kind of fault.
    responses: Mutex<BTreeMap<(String, u16, &'static str), u64>>,
    queue_wait: Times,
    first_token: Times,
    prefill: Times,
    decode: Times,
    mask: Times,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    output_tokens: AtomicU64,
    forced_tokens: AtomicU64,
    undecided: AtomicU64,
    closed: AtomicU64,
}

impl Metrics {
    /// A response was sent. `route` is one of the server's own, so that there are few.
    pub(crate) fn responded(&self, route: &str, status: u16, fault: &'static str) {
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        *responses.entry((route.to_owned(), status, fault)).or_insert(0) += 1;
    }

    pub(crate) fn queued(&self, time: Duration) {
        self.queue_wait.add(time);
    }

    pub(crate) fn first_token(&self, time: Duration) {
        self.first_token.add(time);
    }

    pub(crate) fn generated(&self, generation: &Generation) {
        let usage = &generation.usage;
        self.prefill.add(generation.timings.prefill);
        self.decode.add(generation.timings.decode);
        self.mask.add(generation.timings.mask);
        self.prompt_tokens.fetch_add(usage.prompt_tokens as u64, Relaxed);
        self.cached_tokens.fetch_add(usage.cached_prompt_tokens as u64, Relaxed);
        self.output_tokens.fetch_add(usage.generated_tokens as u64, Relaxed);
        self.forced_tokens.fetch_add(usage.forced_tokens as u64, Relaxed);
        self.undecided.fetch_add(generation.undecided, Relaxed);
        self.closed.fetch_add(u64::from(!generation.closed_by_budget.is_empty()), Relaxed);
    }

    /// All of them.
    pub(crate) fn write(&self, app: &App) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let (hits, misses) = app.forms.hits_and_misses();
        let queue_length = app.generator.waiting() as u64;
        metric("molde_queue_length", "gauge", "Sequences that wait for the model.", queue_length);
        let running = app.generator.running() as u64;
        metric("molde_running_sequences", "gauge", "Sequences that are being written.", running);
        for (name, help, value) in [
            ("molde_prompt_tokens_total", "Tokens of prompts.", &self.prompt_tokens),
            (
                "molde_cached_prompt_tokens_total",
                "Tokens of prompts that were read before.",
                &self.cached_tokens,
            ),
            ("molde_output_tokens_total", "Tokens written.", &self.output_tokens),
            (
                "molde_forced_tokens_total",
                "Tokens written without asking the model.",
                &self.forced_tokens,
            ),
            ("molde_undecided_tokens_total", "Tokens masked out undecided.", &self.undecided),
            ("molde_closed_answers_total", "Answers that the token limit closed.", &self.closed),
        ] {
            metric(name, "counter", help, value.load(Relaxed));
        }
        metric("molde_form_cache_hits_total", "counter", "Forms found compiled.", hits);
        metric("molde_form_cache_misses_total", "counter", "Forms compiled.", misses);
        for (name, help, times) in [
            ("molde_queue_wait_seconds", "Time until the model begins.", &self.queue_wait),
            ("molde_time_to_first_token_seconds", "Time until the first token.", &self.first_token),
            ("molde_prefill_seconds", "Time for reading a prompt.", &self.prefill),
            ("molde_decode_seconds", "Time for writing an answer.", &self.decode),
            ("molde_mask_seconds", "Time for the masks of an answer.", &self.mask),
        ] {
            times.write(name, help, &mut out);
        }
        let decoding = self.decode.microseconds.load(Relaxed) as f64 / 1e6;
        let written = self.output_tokens.load(Relaxed) as f64;
        let rate = if decoding > 0.0 { written / decoding } else { 0.0 };
        let name = "molde_output_tokens_per_second";
        let _ = writeln!(
            out,
            "# HELP {name} Tokens written, by time spent writing.\n# TYPE {name} gauge\n{name} {rate}"
        );
        let name = "molde_responses_total";
        let _ = writeln!(out, "# HELP {name} Responses.\n# TYPE {name} counter");
        let responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        for ((route, status, fault), count) in &*responses {
            let _ = writeln!(
                out,
                "{name}{{route=\"{route}\",status=\"{status}\",error=\"{fault}\"}} {count}"
            );
        }
        out
    }
}
