//! Beginnings of prompts that many requests share, read once.

use std::collections::VecDeque;

use molde_vocab::TokenId;

use crate::KvCache;

/// Keys and values of prompt beginnings, the ones used last in front, within a limit of bytes.
#[derive(Debug)]
pub(crate) struct PrefixCache {
    entries: VecDeque<KvCache>,
    bytes: usize,
    limit_bytes: usize,
}

impl PrefixCache {
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// A copy of the longest beginning of `tokens` that is kept, with room for
    /// `capacity_tokens`, if any is.
    pub(crate) fn find(&mut self, tokens: &[TokenId], capacity_tokens: usize) -> Option<KvCache> {
        let common = self.entries.iter().map(|entry| entry.common_prefix(tokens));
        // Of equal ones the first, which was used last.
        let (index, len) =
            common.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        if len == 0 {
            return None;
        }
        let entry = self.entries.remove(index)?;
        let copy = entry.prefix(len, capacity_tokens);
        self.entries.push_front(entry);
        Some(copy)
    }

    /// Whether all of `tokens` are the beginning of something kept.
    pub(crate) fn holds(&self, tokens: &[TokenId]) -> bool {
        self.entries.iter().any(|entry| entry.tokens().starts_with(tokens))
    }

    /// Keeps a copy of the first `len` tokens of `cache`, unless they are kept already or exceed
    /// the limit alone. What they extend goes, and then what was not used for longest.
    pub(crate) fn keep(&mut self, cache: &KvCache, len: usize) {
        let tokens = &cache.tokens()[..len.min(cache.len())];
        if tokens.is_empty() || self.holds(tokens) {
            return;
        }
        let copy = cache.prefix(len, 0);
        let bytes = copy.memory_usage();
        if bytes > self.limit_bytes {
            return;
        }
        self.entries.retain(|entry| !tokens.starts_with(entry.tokens()));
        self.entries.push_front(copy);
        self.bytes = self.entries.iter().map(KvCache::memory_usage).sum();
        while self.bytes > self.limit_bytes
            && let Some(oldest) = self.entries.pop_back()
        {
            self.bytes -= oldest.memory_usage();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiny::{TinyDtype, TinyModel};
    use crate::{LoadedModel, Model, ModelOptions};
    use std::sync::Arc;

    fn model() -> Arc<Model> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        TinyModel::default().write_gguf(&path, TinyDtype::Q8_0).unwrap();
        LoadedModel::load(&path, &ModelOptions::default()).unwrap().model
    }

    fn read(model: &Model, tokens: &[TokenId]) -> KvCache {
        let mut cache = model.new_cache(tokens.len());
        model.forward(tokens, &mut cache).unwrap();
        cache
    }

    #[test]
    fn finds_the_longest_common_beginning_and_what_follows_has_the_same_bits() {
        let model = model();
        let mut cache = PrefixCache::new(1 << 20);
        assert!(cache.find(&[1, 2, 3], 10).is_none());
        let tokens: Vec<TokenId> = (5..45).collect();
        cache.keep(&read(&model, &tokens), 30);
        cache.keep(&read(&model, &[5, 6, 99, 98]), 4);
        let mut found = cache.find(&(5..60).collect::<Vec<_>>(), 60).unwrap();
        assert_eq!(found.tokens(), &tokens[..30]);
        assert_eq!(
            model.forward(&[50, 51], &mut found).unwrap(),
            model.forward(&[50, 51], &mut read(&model, &tokens[..30])).unwrap()
        );
        assert_eq!(cache.find(&[5, 6, 99, 1], 4).unwrap().tokens(), [5, 6, 99]);
        assert!(cache.find(&[77], 4).is_none());
    }

    #[test]
    fn forgets_what_was_not_used_for_longest_beyond_its_limit() {
        let model = model();
        let one = read(&model, &[1; 16]).prefix(16, 0).memory_usage();
        let mut cache = PrefixCache::new(2 * one);
        for token in [1, 2] {
            cache.keep(&read(&model, &[token; 16]), 16);
        }
        assert!(cache.find(&[1; 16], 16).is_some());
        cache.keep(&read(&model, &[3; 16]), 16);
        let held = |cache: &PrefixCache| [1, 2, 3].map(|token| cache.holds(&[token; 16]));
        assert_eq!(held(&cache), [true, false, true]);
        // Too large alone: nothing changes.
        cache.keep(&read(&model, &[4; 48]), 48);
        assert_eq!(held(&cache), [true, false, true]);
        // A longer beginning replaces the shorter one that it extends.
        let mut longer = vec![3; 16];
        longer.push(9);
        let mut small = PrefixCache::new(8 * one);
        small.keep(&read(&model, &[3; 16]), 16);
        small.keep(&read(&model, &longer), 17);
        assert_eq!(small.entries.len(), 1);
        assert!(small.holds(&[3; 16]) && small.holds(&longer));
    }
}
