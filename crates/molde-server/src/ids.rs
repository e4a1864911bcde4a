//! Names of requests and answers that nobody can guess.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes ids: SipHash of a counter under keys that the operating system made at random.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    keys: [RandomState; 2],
    count: AtomicU64,
}

impl Ids {
    /// `prefix` and 32 hexadecimal digits.
    pub(crate) fn make(&self, prefix: &str) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.keys.each_ref().map(|keys| keys.hash_one(count));
        format!("{prefix}{high:016x}{low:016x}")
    }

    /// A seed for a request that names none.
    pub(crate) fn seed(&self) -> u64 {
        self.keys[0].hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}
