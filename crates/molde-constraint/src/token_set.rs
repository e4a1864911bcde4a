//! A set of tokens under construction: a list while they are few, a bitset from then on.

use molde_vocab::{FEW_TOKENS, TokenId, TokenMask};

use crate::table::{clear_bit, set_bit};

/// A set of tokens. In the list a token may come twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenSet {
    vocabulary_len: usize,
    few: Vec<TokenId>,
    /// Empty while the list is used.
    words: Vec<u64>,
}

impl TokenSet {
    pub(crate) fn new(vocabulary_len: usize) -> Self {
        Self { vocabulary_len, few: Vec::new(), words: Vec::new() }
    }

    /// The set of the bits of `words`.
    pub(crate) fn from_words(vocabulary_len: usize, words: Vec<u64>) -> Self {
        Self { vocabulary_len, few: Vec::new(), words }
    }

    #[inline]
    pub(crate) fn insert(&mut self, token: TokenId) {
        if self.words.is_empty() {
            self.few.push(token);
            if self.few.len() > FEW_TOKENS {
                self.spill();
            }
        } else {
            set_bit(&mut self.words, token);
        }
    }

    pub(crate) fn remove(&mut self, token: TokenId) {
        if self.words.is_empty() {
            self.few.retain(|&other| other != token);
        } else {
            clear_bit(&mut self.words, token);
        }
    }

    pub(crate) fn union(&mut self, mask: &TokenMask) {
        if self.words.is_empty() && mask.len() > FEW_TOKENS {
            self.spill();
        }
        if self.words.is_empty() {
            mask.iter().for_each(|token| self.insert(token));
        } else {
            mask.write_into(&mut self.words);
        }
    }

    #[cold]
    fn spill(&mut self) {
        self.words.resize(self.vocabulary_len.div_ceil(64), 0);
        for token in std::mem::take(&mut self.few) {
            set_bit(&mut self.words, token);
        }
    }

    pub(crate) fn into_mask(self) -> TokenMask {
        if self.words.is_empty() {
            return TokenMask::from_tokens(self.vocabulary_len, self.few);
        }
        let len = self.words.iter().map(|word| word.count_ones() as usize).sum();
        TokenMask::from_counted_words(self.vocabulary_len, self.words, len)
    }

    pub(crate) fn memory_usage(&self) -> usize {
        self.few.capacity() * size_of::<TokenId>() + self.words.capacity() * size_of::<u64>()
    }
}
