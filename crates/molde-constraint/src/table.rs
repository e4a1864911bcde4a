//! What is known of each state of the automaton: its mask, its forced token, its completion.
//!
//! Everything here is a function of the state alone, so that it does not matter in which order
//! states are met, whether forced tokens are skipped, or when caches are dropped.

use std::sync::Arc;

use molde_vocab::{
    ByteAutomaton, ByteSet, GuidedVisitor, StateId, TokenId, TokenMask, TrieVisitor, Vocabulary,
};
use rustc_hash::FxHashMap;

use crate::MatcherOptions;
use crate::canonical::{Canonical, SegmentCache};
use crate::completion::Completion;
use crate::masks::{QuotedCache, StateMask};
use crate::quoted::QuotedTokens;
use crate::token_set::TokenSet;

/// An automaton, a vocabulary, and what has been found out about the two.
#[derive(Clone, Debug)]
pub(crate) struct StateTable<A> {
    pub(crate) automaton: A,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) options: MatcherOptions,
    pub(crate) facts: FxHashMap<StateId, Facts>,
    /// The mask of all tokens that fit, by state.
    pub(crate) masks: FxHashMap<StateId, StateMask>,
    /// How quoted texts are read, if the automaton has any.
    pub(crate) quoted_tokens: Option<Arc<QuotedTokens>>,
    pub(crate) quoted: QuotedCache,
    pub(crate) segments: SegmentCache,
    /// Estimate of the heap bytes of `facts`, `masks`, `quoted` and `segments`.
    pub(crate) cache_bytes: usize,
    /// Above this the automaton is cleared: its limit, or more if live states need it.
    automaton_threshold: usize,
    pub(crate) guided_stack: Vec<(StateId, ByteSet)>,
    pub(crate) content_stack: Vec<(u32, u32)>,
}

/// What is known of one state; `None` is not known yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The mask, where canonical segmentation makes it another than that of all tokens that fit.
    mask: Option<StateMask>,
    can_go_on: Option<bool>,
    pub(crate) canonical: Option<Canonical>,
    pub(crate) continuations: Option<Arc<[String]>>,
    pub(crate) completion: Option<Completion>,
    pub(crate) completion_start: Option<Arc<[u8]>>,
}

/// Where a token leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To this live state.
    To(StateId),
    /// Nowhere: the byte at this offset has no continuation.
    Dead { byte_offset: usize },
    /// Not decided at the byte at this offset.
    Undecided { byte_offset: usize },
}

impl<A: ByteAutomaton> StateTable<A> {
    pub(crate) fn new(automaton: A, vocabulary: Arc<Vocabulary>, options: MatcherOptions) -> Self {
        let quoted_tokens =
            automaton.quoted_rules().map(|rules| QuotedTokens::of(&vocabulary, rules));
        Self {
            automaton,
            vocabulary,
            options,
            facts: FxHashMap::default(),
            masks: FxHashMap::default(),
            quoted_tokens,
            quoted: QuotedCache::default(),
            segments: SegmentCache::default(),
            cache_bytes: 0,
            automaton_threshold: options.limits.max_automaton_bytes,
            guided_stack: Vec::new(),
            content_stack: Vec::new(),
        }
    }

    /// The mask of a live state to which `text` leads.
    pub(crate) fn mask(&mut self, state: StateId, text: &[u8]) -> StateMask {
        let mut found = self.state_mask(state);
        if found.ask.is_empty() {
            return found;
        }
        let mut words = vec![0; self.vocabulary.len().div_ceil(64)];
        found.mask.write_into(&mut words);
        let mut len = found.mask.len();
        for &token in &*found.ask {
            match self.step_text(state, text, token) {
                Some(Step::To(_)) => len += usize::from(set_bit(&mut words, token)),
                Some(Step::Undecided { .. }) => found.undecided += 1,
                Some(Step::Dead { .. }) | None => {}
            }
        }
        let few = len <= molde_vocab::FEW_TOKENS;
        let mask = TokenMask::from_counted_words(self.vocabulary.len(), words, len);
        let mask =
            if few { TokenMask::from_tokens(mask.vocabulary_len(), mask.iter()) } else { mask };
        StateMask { mask: Arc::new(mask), ..found }
    }

    /// The mask of a live state, as far as it tells by itself.
    fn state_mask(&mut self, state: StateId) -> StateMask {
        let Some(token) = self.canonical_token(state) else { return self.plain_mask(state) };
        if let Some(Facts { mask: Some(known), .. }) = self.facts.get(&state) {
            return known.clone();
        }
        let mask = TokenMask::from_tokens(self.vocabulary.len(), [token]);
        self.cache_bytes += size_of::<TokenMask>() + mask.memory_usage();
        let mask = StateMask::new(Arc::new(mask), Vec::new());
        self.facts_mut(state).mask = Some(mask.clone());
        mask
    }

    /// The tokens of the mask with which the text can be completed in `remaining` tokens, end of
    /// turn not counted. `text` is what was read so far.
    pub(crate) fn mask_within(
        &mut self,
        state: StateId,
        text: &[u8],
        remaining: usize,
    ) -> TokenMask {
        let mut set = TokenSet::new(self.vocabulary.len());
        if let Some(token) = self.canonical_token(state) {
            if matches!(self.step_token(state, token), Some(Step::To(end))
                if self.completes_within(end, text, token, remaining))
            {
                set.insert(token);
            }
            return set.into_mask();
        }
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut walk = EndsWalk { automaton: &mut self.automaton, ends: Vec::new() };
        vocabulary.trie().walk_guided(&mut walk, state, &mut self.guided_stack);
        // Many tokens lead to the same state, and what completes it mostly depends on nothing else.
        let mut known: FxHashMap<StateId, Option<bool>> = FxHashMap::default();
        for (token, end) in walk.ends {
            let fits = if let Some(&fits) = known.get(&end) {
                fits
            } else {
                let fits = self.completion_tokens(end).map(|tokens| tokens < remaining);
                known.insert(end, fits);
                fits
            };
            if fits.unwrap_or_else(|| self.completes_text_within(end, text, token, remaining)) {
                set.insert(token);
            }
        }
        for &token in &*self.state_mask(state).ask {
            if matches!(self.step_text(state, text, token), Some(Step::To(end))
                if self.completes_within(end, text, token, remaining))
            {
                set.insert(token);
            }
        }
        if self.automaton.is_accepting(state) {
            vocabulary.end_of_turn().iter().for_each(|&token| set.insert(token));
        }
        set.into_mask()
    }

    /// Whether `token`, which leads from `text` to `end`, and a completion from there fit into
    /// `remaining`.
    pub(crate) fn completes_within(
        &mut self,
        end: StateId,
        text: &[u8],
        token: TokenId,
        remaining: usize,
    ) -> bool {
        match self.completion_tokens(end) {
            Some(tokens) => tokens < remaining,
            None => self.completes_text_within(end, text, token, remaining),
        }
    }

    /// The same where the state alone does not tell.
    fn completes_text_within(
        &mut self,
        end: StateId,
        text: &[u8],
        token: TokenId,
        remaining: usize,
    ) -> bool {
        let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
        let text = [text, bytes].concat();
        let end = self.automaton.settle(end, &text);
        end.is_live() && self.completion_with(end, &text).is_some_and(|tokens| tokens < remaining)
    }

    /// The number of tokens that complete `text`, which leads to a live state; `None` if the
    /// vocabulary cannot spell it.
    pub(crate) fn completion_with(&mut self, state: StateId, text: &[u8]) -> Option<usize> {
        self.completion_tokens(state).or_else(|| self.completion_by_text(state, text))
    }

    /// Where a text token leads from a live state to which `text` leads, what it ends being
    /// recorded byte by byte; `None` for a token without text.
    pub(crate) fn step_text(
        &mut self,
        state: StateId,
        text: &[u8],
        token: TokenId,
    ) -> Option<Step> {
        let vocabulary = Arc::clone(&self.vocabulary);
        let bytes = vocabulary.token_bytes(token).filter(|bytes| !bytes.is_empty())?;
        let mut state = state;
        for (byte_offset, &byte) in bytes.iter().enumerate() {
            state = self.automaton.step(state, byte);
            if state.is_live() && self.automaton.needs_settling(state) {
                state = self.automaton.settle(state, &[text, &bytes[..=byte_offset]].concat());
            }
            match state {
                StateId::DEAD => return Some(Step::Dead { byte_offset }),
                StateId::UNDECIDED => return Some(Step::Undecided { byte_offset }),
                _ => {}
            }
        }
        Some(Step::To(state))
    }

    /// Where a text token leads from a live state; `None` for a token without text.
    pub(crate) fn step_token(&mut self, state: StateId, token: TokenId) -> Option<Step> {
        let bytes = self.vocabulary.token_bytes(token).filter(|bytes| !bytes.is_empty())?;
        let mut state = state;
        for (byte_offset, &byte) in bytes.iter().enumerate() {
            state = self.automaton.step(state, byte);
            match state {
                StateId::DEAD => return Some(Step::Dead { byte_offset }),
                StateId::UNDECIDED => return Some(Step::Undecided { byte_offset }),
                _ => {}
            }
        }
        Some(Step::To(state))
    }

    /// Whether some byte leads from `state` to a live state.
    pub(crate) fn can_go_on(&mut self, state: StateId) -> bool {
        if let Some(Facts { can_go_on: Some(known), .. }) = self.facts.get(&state) {
            return *known;
        }
        let answer = (0..=u8::MAX).any(|byte| self.automaton.step(state, byte).is_live());
        self.facts_mut(state).can_go_on = Some(answer);
        answer
    }

    /// The facts of a state, to be added to.
    pub(crate) fn facts_mut(&mut self, state: StateId) -> &mut Facts {
        self.facts.entry(state).or_insert_with(|| {
            self.cache_bytes += size_of::<(StateId, Facts)>();
            Facts::default()
        })
    }

    /// Drops what exceeds the limits. `history` are the states that must survive; they are
    /// replaced by their new ids if the automaton was cleared.
    pub(crate) fn enforce_limits(&mut self, history: &mut [StateId]) {
        if self.automaton.memory_usage() > self.automaton_threshold {
            // What was promised about completions stays, whatever the automaton answers later.
            let plans: Vec<_> = history.iter().map(|&state| self.completion_plan(state)).collect();
            let renewed = self.automaton.clear_cache(history);
            debug_assert_eq!(renewed.len(), history.len(), "an automaton keeps what it is told to");
            history.iter_mut().zip(renewed).for_each(|(state, new)| *state = new);
            self.clear_facts();
            for (&state, plan) in history.iter().zip(&plans) {
                self.restore_completion_plan(state, plan);
            }
            self.automaton_threshold =
                self.options.limits.max_automaton_bytes.max(2 * self.automaton.memory_usage());
        } else if self.cache_bytes > self.options.limits.max_cache_bytes {
            self.clear_facts();
        }
    }

    fn clear_facts(&mut self) {
        self.facts = FxHashMap::default();
        self.masks = FxHashMap::default();
        self.quoted = QuotedCache::default();
        self.segments = SegmentCache::default();
        self.cache_bytes = 0;
    }
}

/// Lists every token that leads to a live state, with that state.
struct EndsWalk<'a, A> {
    automaton: &'a mut A,
    ends: Vec<(TokenId, StateId)>,
}

impl<A: ByteAutomaton> GuidedVisitor for EndsWalk<'_, A> {
    fn successors(&mut self, state: StateId) -> ByteSet {
        self.automaton.successors(state)
    }
}

impl<A: ByteAutomaton> TrieVisitor for EndsWalk<'_, A> {
    type State = StateId;

    fn enter(&mut self, state: StateId, byte: u8) -> Option<StateId> {
        let next = self.automaton.step(state, byte);
        next.is_live().then_some(next)
    }

    fn token(&mut self, token: TokenId, state: StateId) {
        self.ends.push((token, state));
    }
}

/// Sets a bit; whether it was not set.
#[inline]
pub(crate) fn set_bit(words: &mut [u64], token: TokenId) -> bool {
    let word = &mut words[(token / u64::BITS) as usize];
    let before = *word;
    *word |= 1 << (token % u64::BITS);
    *word != before
}

/// Clears a bit; whether it was set.
#[inline]
pub(crate) fn clear_bit(words: &mut [u64], token: TokenId) -> bool {
    let word = &mut words[(token / u64::BITS) as usize];
    let before = *word;
    *word &= !(1 << (token % u64::BITS));
    *word != before
}
