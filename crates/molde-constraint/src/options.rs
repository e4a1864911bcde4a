//! How a matcher chooses among segmentations, and what it may hold.

/// Which token sequences a text may be written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Segmentation {
    /// Every token sequence whose bytes fit.
    Any,
    /// Where the text is forced, only the tokenizer's own segmentation of it, so that the model
    /// reads what it was trained on; elsewhere as `Any`. Always a subset of `Any`, empty only
    /// where `Any` is. Without a segmenter in the vocabulary it equals `Any`.
    #[default]
    Canonical,
}

/// What a matcher may hold. Exceeding a limit drops caches between two tokens and never changes a
/// mask: it costs the time to compute again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Heap bytes of the masks and other facts kept for each state. Default: 64 MiB.
    pub max_cache_bytes: usize,
    /// Heap bytes of the automaton's tables, as it estimates them. Default: 128 MiB. If the states
    /// of the current sequence alone take more than half of it, twice what they take.
    pub max_automaton_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_cache_bytes: 64 << 20, max_automaton_bytes: 128 << 20 }
    }
}

/// All options of a matcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherOptions {
    /// Which token sequences a text may be written with. Default: canonical.
    pub segmentation: Segmentation,
    /// What the matcher may hold.
    pub limits: Limits,
}
