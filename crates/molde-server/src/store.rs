//! Answers of the Responses API, kept for a while.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// An answer that can be fetched again and continued.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: String,
    /// The answer as it was sent.
    pub(crate) body: String,
    /// The conversation that led to it, with the answer, as items of the Responses API.
    pub(crate) items: Vec<String>,
}

impl Stored {
    fn bytes(&self) -> usize {
        self.id.len() + self.body.len() + self.items.iter().map(String::len).sum::<usize>()
    }
}

/// A bounded store: the oldest answers go first.
#[derive(Debug)]
pub(crate) struct Store {
    max_count: usize,
    max_bytes: usize,
    kept: Mutex<(VecDeque<Stored>, usize)>,
}

impl Store {
    pub(crate) fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { max_count, max_bytes, kept: Mutex::default() }
    }

    /// Keeps an answer; one that is larger than the whole store is not kept.
    pub(crate) fn put(&self, stored: Stored) {
        let bytes = stored.bytes();
        if bytes > self.max_bytes || self.max_count == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.1 += bytes;
        kept.0.push_back(stored);
        while kept.1 > self.max_bytes || kept.0.len() > self.max_count {
            let Some(oldest) = kept.0.pop_front() else { break };
            kept.1 -= oldest.bytes();
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Stored> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.iter().find(|stored| stored.id == id).cloned()
    }

    /// Forgets an answer. Whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = kept.0.iter().position(|stored| stored.id == id) else { return false };
        if let Some(removed) = kept.0.remove(at) {
            kept.1 -= removed.bytes();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_go_first_by_count_and_by_size() {
        let stored = |id: &str, size: usize| Stored {
            id: id.to_owned(),
            body: "x".repeat(size),
            items: Vec::new(),
        };
        let store = Store::new(2, 100);
        for id in ["a", "b", "c"] {
            store.put(stored(id, 10));
        }
        assert!(store.get("a").is_none() && store.get("b").is_some() && store.get("c").is_some());
        store.put(stored("d", 85));
        assert!(store.get("b").is_none() && store.get("c").is_some() && store.get("d").is_some());
        store.put(stored("e", 1000));
        assert!(store.get("e").is_none() && store.get("d").is_some());
        assert!(store.remove("d") && !store.remove("d"));
        store.put(stored("f", 60));
        assert!(store.get("c").is_some() && store.get("f").is_some());
    }
}
