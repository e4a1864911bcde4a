//! The set of tokens that may come next.

use crate::TokenId;

/// Masks of at most this many tokens are kept as an ascending list of ids
/// ([`MaskKind::Few`]), larger ones as a bitset ([`MaskKind::Many`]).
///
/// A list of 1,024 ids takes 4 KiB where the bitset of a 150,000-token vocabulary takes 19, and
/// so few rows of an output head are cheaper gathered than multiplied whole.
pub const FEW_TOKENS: usize = 1024;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of token ids below [`vocabulary_len`](Self::vocabulary_len), normalised: equal sets over
/// equal vocabularies compare equal, and their [`kind`](Self::kind) depends only on their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMask {
    vocabulary_len: usize,
    tokens: Tokens,
}

/// `List` holds at most [`FEW_TOKENS`] ids in ascending order, `Bits` always more.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tokens {
    List(Vec<TokenId>),
    Bits { words: Vec<u64>, len: usize },
}

/// What a mask looks like to whoever applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskKind<'a> {
    /// No token: nothing may come next.
    Empty,
    /// Exactly one token: no logits are needed to choose it.
    Forced(TokenId),
    /// 2 to [`FEW_TOKENS`] tokens in ascending order: only these rows of the head are needed.
    Few(&'a [TokenId]),
    /// More tokens than [`FEW_TOKENS`]: see [`TokenMask::words`].
    Many,
}

impl TokenMask {
    /// The empty set over a vocabulary of `vocabulary_len` tokens.
    pub const fn new(vocabulary_len: usize) -> Self {
        Self { vocabulary_len, tokens: Tokens::List(Vec::new()) }
    }

    /// The set of `tokens`, in any order, repetitions allowed. Ids that are not below
    /// `vocabulary_len` are left out.
    pub fn from_tokens(vocabulary_len: usize, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        let mut list: Vec<TokenId> =
            tokens.into_iter().filter(|&token| (token as usize) < vocabulary_len).collect();
        list.sort_unstable();
        list.dedup();
        if list.len() <= FEW_TOKENS {
            return Self { vocabulary_len, tokens: Tokens::List(list) };
        }
        let mut words = vec![0; vocabulary_len.div_ceil(WORD_BITS)];
        for &token in &list {
            set_bit(&mut words, token);
        }
        Self { vocabulary_len, tokens: Tokens::Bits { words, len: list.len() } }
    }

    /// The set whose bit `id % 64` of word `id / 64` is set, copied from `words`. Missing words
    /// count as zero, bits at or above `vocabulary_len` are left out.
    ///
    /// # Complexity
    /// `O(vocabulary_len / 64)`.
    pub fn from_words(vocabulary_len: usize, words: &[u64]) -> Self {
        let word_count = vocabulary_len.div_ceil(WORD_BITS);
        let mut words = words[..word_count.min(words.len())].to_vec();
        words.resize(word_count, 0);
        if let Some(last) = words.last_mut()
            && !vocabulary_len.is_multiple_of(WORD_BITS)
        {
            *last &= (1 << (vocabulary_len % WORD_BITS)) - 1;
        }
        let len = count(&words);
        let mut mask = Self { vocabulary_len, tokens: Tokens::Bits { words, len } };
        mask.normalise();
        mask
    }

    /// As [`from_words`](Self::from_words), without a copy. All bits must be below
    /// `vocabulary_len`, and `len` their number; missing words count as zero.
    ///
    /// # Complexity
    /// O(1) for more than [`FEW_TOKENS`] tokens, else that of `from_words`.
    pub fn from_counted_words(vocabulary_len: usize, mut words: Vec<u64>, len: usize) -> Self {
        debug_assert_eq!(len, count(&words));
        words.resize(vocabulary_len.div_ceil(WORD_BITS), 0);
        let mut mask = Self { vocabulary_len, tokens: Tokens::Bits { words, len } };
        mask.normalise();
        mask
    }

    /// Number of ids the vocabulary has, hence an exclusive upper bound of the ids in the set.
    pub const fn vocabulary_len(&self) -> usize {
        self.vocabulary_len
    }

    /// Number of tokens in the set. Constant time.
    pub fn len(&self) -> usize {
        match &self.tokens {
            Tokens::List(list) => list.len(),
            Tokens::Bits { len, .. } => *len,
        }
    }

    /// Whether no token is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The set as whoever applies it needs it. Constant time.
    pub fn kind(&self) -> MaskKind<'_> {
        match &self.tokens {
            Tokens::List(list) => match list.as_slice() {
                [] => MaskKind::Empty,
                &[token] => MaskKind::Forced(token),
                few => MaskKind::Few(few),
            },
            Tokens::Bits { .. } => MaskKind::Many,
        }
    }

    /// The only token in the set, if there is exactly one.
    pub fn forced(&self) -> Option<TokenId> {
        match self.kind() {
            MaskKind::Forced(token) => Some(token),
            _ => None,
        }
    }

    /// Whether `token` is in the set.
    #[inline]
    pub fn contains(&self, token: TokenId) -> bool {
        match &self.tokens {
            Tokens::List(list) => list.binary_search(&token).is_ok(),
            Tokens::Bits { words, .. } => words
                .get(token as usize / WORD_BITS)
                .is_some_and(|word| word >> (token as usize % WORD_BITS) & 1 == 1),
        }
    }

    /// The bitset of a [`MaskKind::Many`] mask (token `id` is bit `id % 64` of word `id / 64`),
    /// `None` for the other kinds.
    pub fn words(&self) -> Option<&[u64]> {
        match &self.tokens {
            Tokens::List(_) => None,
            Tokens::Bits { words, .. } => Some(words),
        }
    }

    /// The tokens in ascending order.
    pub fn iter(&self) -> MaskIter<'_> {
        match &self.tokens {
            Tokens::List(list) => MaskIter(MaskIterState::List(list.iter())),
            Tokens::Bits { words, .. } => {
                MaskIter(MaskIterState::Bits { words, base: 0, current: words.first().copied() })
            }
        }
    }

    /// Adds `token`; returns whether it was absent. An id that is not below
    /// [`vocabulary_len`](Self::vocabulary_len) is not added.
    ///
    /// # Complexity
    /// `O(FEW_TOKENS)` for small sets: build large ones with [`from_tokens`](Self::from_tokens) or
    /// [`from_words`](Self::from_words).
    pub fn insert(&mut self, token: TokenId) -> bool {
        if token as usize >= self.vocabulary_len || self.contains(token) {
            return false;
        }
        match &mut self.tokens {
            Tokens::List(list) => {
                let at = list.partition_point(|&other| other < token);
                list.insert(at, token);
            }
            Tokens::Bits { words, len } => {
                set_bit(words, token);
                *len += 1;
            }
        }
        self.normalise();
        true
    }

    /// Removes `token`; returns whether it was there.
    pub fn remove(&mut self, token: TokenId) -> bool {
        if !self.contains(token) {
            return false;
        }
        match &mut self.tokens {
            Tokens::List(list) => list.retain(|&other| other != token),
            Tokens::Bits { words, len } => {
                words[token as usize / WORD_BITS] &= !(1 << (token as usize % WORD_BITS));
                *len -= 1;
            }
        }
        self.normalise();
        true
    }

    /// Adds every token of `other` that this mask's vocabulary has.
    ///
    /// # Complexity
    /// `O(vocabulary_len / 64)`, less where both are small.
    pub fn union(&mut self, other: &Self) {
        let total = self.len() + other.len();
        if total <= FEW_TOKENS {
            *self = Self::from_tokens(self.vocabulary_len, self.iter().chain(other.iter()));
            return;
        }
        let mut words = vec![0; self.vocabulary_len.max(other.vocabulary_len).div_ceil(WORD_BITS)];
        self.write_into(&mut words);
        other.write_into(&mut words);
        *self = Self::from_words(self.vocabulary_len, &words);
    }

    /// Sets the bit of every token of the set in `words`, leaving the others as they are. Tokens
    /// beyond the end of `words` are left out.
    pub fn write_into(&self, words: &mut [u64]) {
        match &self.tokens {
            Tokens::List(list) => {
                for &token in list {
                    if let Some(word) = words.get_mut(token as usize / WORD_BITS) {
                        *word |= 1 << (token as usize % WORD_BITS);
                    }
                }
            }
            Tokens::Bits { words: own, .. } => {
                for (word, own) in words.iter_mut().zip(own) {
                    *word |= own;
                }
            }
        }
    }

    /// Sets the logit of every token that is not in the set to negative infinity; logits beyond
    /// the vocabulary (padding rows of a head) are not in the set. The others keep their bits.
    pub fn apply(&self, logits: &mut [f32]) {
        match &self.tokens {
            Tokens::List(list) => {
                let mut from = 0;
                for &token in list {
                    let to = (token as usize).min(logits.len());
                    logits[from..to].fill(f32::NEG_INFINITY);
                    from = (to + 1).min(logits.len());
                }
                logits[from..].fill(f32::NEG_INFINITY);
            }
            Tokens::Bits { words, .. } => {
                let covered = (words.len() * WORD_BITS).min(logits.len());
                let (inside, outside) = logits.split_at_mut(covered);
                for (chunk, &word) in inside.chunks_mut(WORD_BITS).zip(words) {
                    if word == u64::MAX {
                        continue;
                    }
                    for (bit, logit) in chunk.iter_mut().enumerate() {
                        if word >> bit & 1 == 0 {
                            *logit = f32::NEG_INFINITY;
                        }
                    }
                }
                outside.fill(f32::NEG_INFINITY);
            }
        }
    }

    /// The heap bytes held by this mask.
    pub fn memory_usage(&self) -> usize {
        match &self.tokens {
            Tokens::List(list) => list.capacity() * size_of::<TokenId>(),
            Tokens::Bits { words, .. } => words.capacity() * size_of::<u64>(),
        }
    }

    /// Restores the invariant of [`Tokens`] after the size has changed.
    fn normalise(&mut self) {
        match &self.tokens {
            Tokens::List(list) if list.len() > FEW_TOKENS => {
                *self = Self::from_tokens(self.vocabulary_len, list.iter().copied());
            }
            Tokens::Bits { len, .. } if *len <= FEW_TOKENS => {
                let mut list = Vec::with_capacity(*len);
                list.extend(self.iter());
                self.tokens = Tokens::List(list);
            }
            _ => {}
        }
    }
}

impl<'a> IntoIterator for &'a TokenMask {
    type Item = TokenId;
    type IntoIter = MaskIter<'a>;

    fn into_iter(self) -> MaskIter<'a> {
        self.iter()
    }
}

/// The tokens of a [`TokenMask`] in ascending order.
#[derive(Clone, Debug)]
pub struct MaskIter<'a>(MaskIterState<'a>);

/// `Bits`: `current` is what is left of `words[0]`, whose lowest bit is token `base`.
#[derive(Clone, Debug)]
enum MaskIterState<'a> {
    List(std::slice::Iter<'a, TokenId>),
    Bits { words: &'a [u64], base: TokenId, current: Option<u64> },
}

impl Iterator for MaskIter<'_> {
    type Item = TokenId;

    fn next(&mut self) -> Option<TokenId> {
        match &mut self.0 {
            MaskIterState::List(list) => list.next().copied(),
            MaskIterState::Bits { words, base, current } => loop {
                let word = (*current)?;
                if word != 0 {
                    *current = Some(word & (word - 1));
                    return Some(*base + word.trailing_zeros());
                }
                *words = &words[1..];
                *base += u64::BITS;
                *current = words.first().copied();
            },
        }
    }
}

fn set_bit(words: &mut [u64], token: TokenId) {
    words[token as usize / WORD_BITS] |= 1 << (token as usize % WORD_BITS);
}

fn count(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}
