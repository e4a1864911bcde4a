//! Walking a matcher beside its language.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, Segmentation};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use crate::automata::{Language, Lazy, Next};

/// A seeded generator (SplitMix64), so that a failure is the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub(crate) fn matcher<L: Language>(
    language: &L,
    vocabulary: &Arc<Vocabulary>,
    segmentation: Segmentation,
) -> Matcher<Lazy<L>> {
    let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
    Matcher::new(Lazy::new(language.clone()), Arc::clone(vocabulary), options)
}

/// The mask by definition, and the number of undecided tokens: every token, byte by byte.
pub(crate) fn naive_mask<L: Language>(
    language: &L,
    state: L::State,
    vocabulary: &Vocabulary,
) -> (Vec<TokenId>, u64) {
    let mut undecided = 0;
    let mut allowed = Vec::new();
    for token in 0..vocabulary.len() as TokenId {
        match vocabulary.token_bytes(token) {
            Some([]) => {}
            Some(bytes) => match language.read(state, bytes) {
                Next::Dead => {}
                Next::Undecided => undecided += 1,
                Next::To(_) => allowed.push(token),
            },
            None => {
                if vocabulary.is_end_of_turn(token) && language.accepts(state) {
                    allowed.push(token);
                }
            }
        }
    }
    (allowed, undecided)
}

/// The mask as a list.
pub(crate) fn tokens_of<C: TokenConstraint>(matcher: &mut C) -> Vec<TokenId> {
    matcher.mask().map(|mask| mask.iter().collect()).unwrap_or_default()
}

/// The text that tokens spell; those that end the turn spell nothing.
pub(crate) fn text_of(vocabulary: &Vocabulary, tokens: &[TokenId]) -> Vec<u8> {
    let bytes = |&token: &TokenId| vocabulary.token_bytes(token).unwrap_or_default().to_vec();
    tokens.iter().flat_map(bytes).collect()
}

/// The first token with this text.
pub(crate) fn token_of(vocabulary: &Vocabulary, text: &str) -> TokenId {
    let ids = 0..vocabulary.len() as TokenId;
    ids.into_iter().find(|&t| vocabulary.token_bytes(t) == Some(text.as_bytes())).unwrap()
}

/// The state of the language after tokens that are known to fit.
pub(crate) fn read_tokens<L: Language>(
    language: &L,
    vocabulary: &Vocabulary,
    tokens: &[TokenId],
) -> L::State {
    match language.read(language.start(), &text_of(vocabulary, tokens)) {
        Next::To(state) => state,
        _ => panic!("tokens {tokens:?} are not in the language"),
    }
}
