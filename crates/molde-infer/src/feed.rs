//! What goes into a step of the model, and the logits that come out.

use std::ops::Range;
use std::time::Duration;

use molde_vocab::TokenId;

use crate::KvCache;
use crate::network::Scratch;

/// The tokens that one sequence reads in a step, and the logits it wants. Its buffers are reused.
///
/// ```text
///  tokens   t0  t1  t2  t3        the last two want logits:
///  wants            ──  ──        want_rows(&[5, 17]); want_all();
/// ```
#[derive(Debug)]
pub struct Feed {
    /// The sequence's keys and values. A step appends to them.
    pub cache: KvCache,
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) wants: Vec<Want>,
    rows: Vec<TokenId>,
}

/// What is wanted of the head after one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    Nothing,
    All,
    /// A range of [`Feed::rows`].
    Rows(Range<usize>),
}

impl Feed {
    /// A sequence that goes on after the tokens in `cache`, and reads nothing yet.
    pub const fn new(cache: KvCache) -> Self {
        Self { cache, tokens: Vec::new(), wants: Vec::new(), rows: Vec::new() }
    }

    /// Back to reading nothing. The cache stays.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.wants.clear();
        self.rows.clear();
    }

    /// Adds tokens to read.
    pub fn push(&mut self, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Wants the logits of every token of the vocabulary after the next of the last tokens.
    pub fn want_all(&mut self) {
        self.wants.push(Want::All);
    }

    /// Wants the logits of some tokens only, in their order: no other row of the head is
    /// multiplied, but those that share a panel of sixteen with one of them.
    pub fn want_rows(&mut self, tokens: &[TokenId]) {
        let start = self.rows.len();
        self.rows.extend_from_slice(tokens);
        self.wants.push(Want::Rows(start..self.rows.len()));
    }

    /// Wants no logits after the next of the last tokens: its successor is known.
    pub fn want_nothing(&mut self) {
        self.wants.push(Want::Nothing);
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Tokens to read.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Number of calls of the `want_` methods: they belong to that many last tokens.
    pub fn wants(&self) -> usize {
        self.wants.len()
    }

    pub(crate) fn rows(&self, range: &Range<usize>) -> &[TokenId] {
        &self.rows[range.clone()]
    }

    /// The index among the tokens after which want `index` looks.
    pub(crate) fn token_of(&self, index: usize) -> usize {
        self.tokens.len() - self.wants.len() + index
    }
}

/// The buffers of a step, and the logits of the last one. Made by
/// [`Model::new_workspace`](crate::Model::new_workspace) and used with that model; once the
/// largest step was made, steps allocate nothing.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) scratch: Scratch,
    pub(crate) logits: Logits,
    pub(crate) head_time: Duration,
}

impl Workspace {
    /// What want `want` of feed `feed` asked for in the last step: all logits, or those of its
    /// rows; empty if it wanted nothing, or there is no such want.
    pub fn logits(&self, feed: usize, want: usize) -> &[f32] {
        self.logits.get(feed, want)
    }

    /// Wall time that the last step spent in the head.
    pub const fn head_time(&self) -> Duration {
        self.head_time
    }
}

/// Logits of a step, one slice for each want.
#[derive(Debug, Default)]
pub(crate) struct Logits {
    values: Vec<f32>,
    /// For each feed, where its wants begin in `places`.
    firsts: Vec<usize>,
    places: Vec<Range<usize>>,
    full: usize,
}

impl Logits {
    /// Makes room: first the full vectors of `vocabulary_len` logits, then the rows.
    pub(crate) fn arrange(&mut self, feeds: &[Feed], vocabulary_len: usize) {
        let is_all = |feed: &&Feed| feed.wants.iter().filter(|&want| *want == Want::All).count();
        self.full = feeds.iter().map(|feed| is_all(&feed)).sum();
        self.firsts.clear();
        self.places.clear();
        let (mut full, mut rows) = (0, self.full * vocabulary_len);
        for feed in feeds {
            self.firsts.push(self.places.len());
            for want in &feed.wants {
                let (at, len) = match want {
                    Want::Nothing => (&mut rows, 0),
                    Want::All => (&mut full, vocabulary_len),
                    Want::Rows(range) => (&mut rows, range.len()),
                };
                self.places.push(*at..*at + len);
                *at += len;
            }
        }
        self.firsts.push(self.places.len());
        self.values.resize(rows, 0.0);
    }

    /// Nothing is wanted.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.firsts.clear();
        self.places.clear();
        self.full = 0;
    }

    /// Number of full vectors.
    pub(crate) const fn full(&self) -> usize {
        self.full
    }

    /// All full vectors, in the order of feeds and wants.
    pub(crate) fn full_mut(&mut self, vocabulary_len: usize) -> &mut [f32] {
        &mut self.values[..self.full * vocabulary_len]
    }

    pub(crate) fn get_mut(&mut self, feed: usize, want: usize) -> &mut [f32] {
        match self.place(feed, want) {
            Some(place) => &mut self.values[place],
            None => &mut [],
        }
    }

    fn get(&self, feed: usize, want: usize) -> &[f32] {
        self.place(feed, want).map_or(&[], |place| &self.values[place])
    }

    fn place(&self, feed: usize, want: usize) -> Option<Range<usize>> {
        let (first, end) = (*self.firsts.get(feed)?, *self.firsts.get(feed + 1)?);
        self.places.get(first..end)?.get(want).cloned()
    }
}
