//! The mask of a state: all tokens whose bytes fit.
//!
//! A state is taken apart where it can be. Inside quoted texts, where most of a vocabulary fits, the
//! tables of [`QuotedTokens`] say which tokens stay inside, and only what follows the closing quote
//! is read with the automaton: it is the same for all strings after which the same may come, so
//! such strings share their masks. Everything else is a walk of the vocabulary along the bytes that
//! the automaton says may follow.

use std::sync::Arc;

use indexmap::IndexSet;
use molde_vocab::{
    ByteAutomaton, ByteSet, FEW_TOKENS, GuidedVisitor, QuotedContent, QuotedPosition, StateId,
    TokenId, TokenMask, TrieVisitor,
};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::quoted::QuotedTokens;
use crate::table::{StateTable, Step, set_bit};

/// The mask of a state.
#[derive(Clone, Debug)]
pub(crate) struct StateMask {
    pub(crate) mask: Arc<TokenMask>,
    /// Tokens left out because their successor was not decided.
    pub(crate) undecided: u32,
}

/// Index of a set of rests.
type RestsId = u32;

/// No rest at all: what follows a text that cannot end.
const NO_RESTS: RestsId = 0;

/// What was found out about quoted texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotedCache {
    /// Sets of rests that may follow the end of a text. Set 0 is empty.
    rest_sets: IndexSet<Box<[u32]>, FxBuildHasher>,
    /// The rests that may follow a state; `None` if some could not be decided.
    rests: FxHashMap<StateId, Option<RestsId>>,
    /// Masks of texts with any content.
    any: FxHashMap<AnyKey, Arc<TokenMask>>,
    /// What a state of a language of contents allows.
    languages: FxHashMap<QuotedContent, Option<Arc<LanguageTokens>>>,
    /// Masks by state of a language and rests.
    language_masks: FxHashMap<(QuotedContent, RestsId), Arc<TokenMask>>,
    /// Successors of the states of each language of contents.
    rows: FxHashMap<u32, ContentRows>,
}

/// Successors of the states of a language of contents, as far as they were needed.
#[derive(Clone, Debug, Default)]
struct ContentRows(Vec<Option<ContentRow>>);

/// The successors of one state.
#[derive(Clone, Debug)]
struct ContentRow {
    successors: ByteSet,
    /// By byte, where there are many.
    dense: Option<Box<[u32; 256]>>,
}

/// With more successors than this, a state of a language of contents gets a table.
const SPARSE_SUCCESSORS: u32 = 8;

/// What the mask of a text with any content depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AnyKey {
    /// Index of [`QuotedTokens::up_to`].
    inside: usize,
    /// Fewest and most characters before the end.
    least: u64,
    most: u64,
    /// What may follow the end after no content, and after some.
    empty: RestsId,
    other: RestsId,
}

/// The tokens that a state of a language of contents allows.
#[derive(Debug)]
struct LanguageTokens {
    /// Those that stay inside.
    words: Vec<u64>,
    len: usize,
    /// Whether the text may end, for each of [`QuotedTokens::closer_contents`].
    complete: Box<[bool]>,
}

impl<A: ByteAutomaton> StateTable<A> {
    /// The mask of all tokens whose bytes fit.
    pub(crate) fn plain_mask(&mut self, state: StateId) -> StateMask {
        if let Some(known) = self.masks.get(&state) {
            return known.clone();
        }
        let mask = self.find_mask(state);
        self.cache_bytes += size_of::<(StateId, StateMask)>();
        self.masks.insert(state, mask.clone());
        mask
    }

    fn find_mask(&mut self, state: StateId) -> StateMask {
        if let Some(mask) = self.mask_of_parts(state) {
            return StateMask { mask, undecided: 0 };
        }
        if let Some(position) = self.automaton.quoted(state)
            && let Some(mask) = self.quoted_mask(state, &position)
        {
            return StateMask { mask, undecided: 0 };
        }
        self.walked_mask(state)
    }

    /// The union of the masks of a state's parts. `None` if it has none, or something about them is
    /// undecided, which the whole state may see differently.
    fn mask_of_parts(&mut self, state: StateId) -> Option<Arc<TokenMask>> {
        let parts = self.automaton.parts(state);
        let (&first, rest) = parts.split_first()?;
        let mut masks = vec![self.plain_mask(first)];
        for &part in rest {
            let mask = self.plain_mask(part);
            if !masks.iter().any(|known| Arc::ptr_eq(&known.mask, &mask.mask)) {
                masks.push(mask);
            }
        }
        // What was seen on the way may have shown that taking it apart is not safe.
        if masks.iter().any(|mask| mask.undecided > 0) || self.automaton.parts(state).is_empty() {
            return None;
        }
        if let [only] = &masks[..] {
            return Some(Arc::clone(&only.mask));
        }
        let total: usize = masks.iter().map(|mask| mask.mask.len()).sum();
        let union = if total <= FEW_TOKENS {
            let tokens = masks.iter().flat_map(|mask| mask.mask.iter());
            TokenMask::from_tokens(self.vocabulary.len(), tokens)
        } else {
            let mut words = vec![0; self.vocabulary.len().div_ceil(64)];
            masks.iter().for_each(|mask| mask.mask.write_into(&mut words));
            let len = words.iter().map(|word| word.count_ones() as usize).sum();
            TokenMask::from_counted_words(self.vocabulary.len(), words, len)
        };
        Some(self.kept(union))
    }

    fn kept(&mut self, mask: TokenMask) -> Arc<TokenMask> {
        self.cache_bytes += size_of::<TokenMask>() + mask.memory_usage();
        Arc::new(mask)
    }

    /// The mask by walking the vocabulary.
    fn walked_mask(&mut self, state: StateId) -> StateMask {
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut walk = MaskWalk {
            automaton: &mut self.automaton,
            few: std::mem::take(&mut self.few),
            words: Vec::new(),
            word_count: vocabulary.len().div_ceil(64),
            undecided: 0,
        };
        vocabulary.trie().walk_guided(&mut walk, state, &mut self.guided_stack);
        let undecided = walk.undecided;
        let (mut few, mut words) = (walk.few, walk.words);
        if self.automaton.is_accepting(state) {
            for &token in vocabulary.end_of_turn() {
                if words.is_empty() {
                    few.push(token);
                } else {
                    set_bit(&mut words, token);
                }
            }
        }
        let mask = if words.is_empty() {
            TokenMask::from_tokens(vocabulary.len(), few.iter().copied())
        } else {
            let len = words.iter().map(|word| word.count_ones() as usize).sum();
            TokenMask::from_counted_words(vocabulary.len(), words, len)
        };
        few.clear();
        self.few = few;
        StateMask { mask: self.kept(mask), undecided }
    }

    /// The mask inside a quoted text; `None` if something could not be decided.
    fn quoted_mask(&mut self, state: StateId, position: &QuotedPosition) -> Option<Arc<TokenMask>> {
        let tokens = Arc::clone(self.quoted_tokens.as_ref()?);
        let closed = self.rests_after(&tokens, position.closed)?;
        match position.content {
            QuotedContent::Any { least, most } => {
                self.any_mask(&tokens, state, position, least, most, closed)
            }
            QuotedContent::Language { .. } => {
                self.language_mask(&tokens, state, position.content, closed)
            }
        }
    }

    fn any_mask(
        &mut self,
        tokens: &QuotedTokens,
        state: StateId,
        position: &QuotedPosition,
        least: u64,
        most: u64,
        other: RestsId,
    ) -> Option<Arc<TokenMask>> {
        let mut empty = other;
        let mut apart: Vec<u32> = Vec::new();
        if !position.apart.is_empty() {
            // The empty content is a beginning of each of them.
            let closed =
                tokens.quote.iter().fold(state, |state, &byte| self.automaton.step(state, byte));
            empty = self.rests_after(tokens, closed)?;
            for content in &position.apart {
                apart.extend(tokens.closer_trie.prefixes(content).map(|(_, content)| content));
            }
            apart.sort_unstable();
            apart.dedup();
        }
        let longest = tokens.up_to.len() as u64;
        let key = AnyKey {
            inside: tokens.inside_index(most),
            least: least.min(longest),
            most: most.min(longest),
            empty,
            other,
        };
        if apart.is_empty()
            && let Some(known) = self.quoted.any.get(&key)
        {
            return Some(Arc::clone(known));
        }
        let (inside, inside_len) = tokens.inside(most);
        let mut words = inside.to_vec();
        let mut len = *inside_len;
        for (rests, is_empty) in [(empty, true), (other, false)] {
            let rests = self.quoted.rest_sets.get_index(rests as usize)?;
            for closer in rests.iter().flat_map(|&rest| tokens.closers(rest)) {
                let characters = tokens.closer_contents[closer.content as usize].1;
                if (closer.content == 0) == is_empty
                    && (key.least..=key.most).contains(&characters)
                    && (apart.is_empty() || apart.binary_search(&closer.content).is_err())
                {
                    set_bit(&mut words, closer.token);
                    len += 1;
                }
            }
        }
        if !apart.is_empty() {
            for rest in 0..tokens.rests_len() {
                for closer in tokens.closers(rest) {
                    if apart.binary_search(&closer.content).is_ok() {
                        match self.step_token(state, closer.token)? {
                            Step::To(_) => {
                                set_bit(&mut words, closer.token);
                                len += 1;
                            }
                            Step::Dead { .. } => {}
                            Step::Undecided { .. } => return None,
                        }
                    }
                }
            }
        }
        let mask = self.kept(TokenMask::from_counted_words(self.vocabulary.len(), words, len));
        if apart.is_empty() {
            self.quoted.any.insert(key, Arc::clone(&mask));
        }
        Some(mask)
    }

    fn language_mask(
        &mut self,
        tokens: &QuotedTokens,
        state: StateId,
        content: QuotedContent,
        closed: RestsId,
    ) -> Option<Arc<TokenMask>> {
        if let Some(known) = self.quoted.language_masks.get(&(content, closed)) {
            return Some(Arc::clone(known));
        }
        let allowed = match self.quoted.languages.get(&content) {
            Some(known) => known.clone(),
            None => {
                let found = self.language_tokens(tokens, state, content).map(Arc::new);
                self.cache_bytes += found.as_ref().map_or(0, |found| found.words.len() * 8);
                self.quoted.languages.insert(content, found.clone());
                found
            }
        }?;
        let mut words = allowed.words.clone();
        let mut len = allowed.len;
        let rests = self.quoted.rest_sets.get_index(closed as usize)?;
        for closer in rests.iter().flat_map(|&rest| tokens.closers(rest)) {
            if allowed.complete[closer.content as usize] {
                set_bit(&mut words, closer.token);
                len += 1;
            }
        }
        let mask = self.kept(TokenMask::from_counted_words(self.vocabulary.len(), words, len));
        self.quoted.language_masks.insert((content, closed), Arc::clone(&mask));
        Some(mask)
    }

    /// What a state of a language allows, whatever follows the text.
    fn language_tokens(
        &mut self,
        tokens: &QuotedTokens,
        position: StateId,
        content: QuotedContent,
    ) -> Option<LanguageTokens> {
        let QuotedContent::Language { language, state, characters } = content else { return None };
        let mut walk = ContentWalk {
            automaton: &mut self.automaton,
            rows: self.quoted.rows.remove(&language).unwrap_or_default(),
            language,
            read: characters,
            words: Vec::new(),
            len: 0,
            complete: None,
        };
        if walk.automaton.content_is_total(language, state) {
            let (words, len) = tokens.inside(u64::MAX);
            walk.words = words.to_vec();
            walk.len = *len;
        } else {
            walk.words.resize(self.vocabulary.len().div_ceil(64), 0);
            tokens.contents.walk_guided(&mut walk, (state, 0), &mut self.content_stack);
            for escape in tokens.escapes.iter().filter(|escape| escape.begun) {
                let end = escape.content.iter().try_fold((state, 0), |at, &b| walk.enter(at, b));
                if let Some((end, more)) = end
                    && walk.automaton.content_can_escape(
                        language,
                        end,
                        characters + u64::from(more),
                    )
                {
                    set_bit(&mut walk.words, escape.token);
                    walk.len += 1;
                }
            }
        }
        let is_total = walk.automaton.content_is_total(language, state);
        let mut complete = vec![false; tokens.closer_contents.len()];
        complete[0] = walk.automaton.content_is_complete(language, state, characters);
        walk.complete = Some(complete);
        tokens.closer_trie.walk_guided(&mut walk, (state, 0), &mut self.content_stack);
        let (mut words, mut len, rows) = (walk.words, walk.len, walk.rows);
        let complete = walk.complete.unwrap_or_default();
        self.quoted.rows.insert(language, rows);
        if !is_total {
            for escape in tokens.escapes.iter().filter(|escape| !escape.begun) {
                match self.step_token(position, escape.token)? {
                    Step::To(_) => {
                        set_bit(&mut words, escape.token);
                        len += 1;
                    }
                    Step::Dead { .. } => {}
                    Step::Undecided { .. } => return None,
                }
            }
        }
        Some(LanguageTokens { words, len, complete: complete.into() })
    }

    /// The rests that may follow a state; `None` if some could not be decided.
    fn rests_after(&mut self, tokens: &QuotedTokens, state: StateId) -> Option<RestsId> {
        if self.quoted.rest_sets.is_empty() {
            self.quoted.rest_sets.insert(Box::default());
        }
        match state {
            StateId::DEAD => return Some(NO_RESTS),
            StateId::UNDECIDED => return None,
            _ => {}
        }
        if let Some(&known) = self.quoted.rests.get(&state) {
            return known;
        }
        let mut walk =
            RestWalk { automaton: &mut self.automaton, rests: vec![0], is_undecided: false };
        tokens.rests.walk_guided(&mut walk, state, &mut self.guided_stack);
        let (mut rests, is_undecided) = (walk.rests, walk.is_undecided);
        rests.sort_unstable();
        let found =
            (!is_undecided).then(|| self.quoted.rest_sets.insert_full(rests.into()).0 as RestsId);
        self.quoted.rests.insert(state, found);
        found
    }
}

/// Collects every token that leads to a live state: a few in a list, more in a bitset.
struct MaskWalk<'a, A> {
    automaton: &'a mut A,
    few: Vec<TokenId>,
    words: Vec<u64>,
    word_count: usize,
    undecided: u32,
}

impl<A: ByteAutomaton> TrieVisitor for MaskWalk<'_, A> {
    type State = StateId;

    #[inline]
    fn enter(&mut self, state: StateId, byte: u8) -> Option<StateId> {
        // Undecided states are gone through, so that their tokens are counted.
        if state == StateId::UNDECIDED {
            return Some(state);
        }
        let next = self.automaton.step(state, byte);
        (next != StateId::DEAD).then_some(next)
    }

    #[inline]
    fn token(&mut self, token: TokenId, state: StateId) {
        if state == StateId::UNDECIDED {
            self.undecided += 1;
        } else if !self.words.is_empty() {
            set_bit(&mut self.words, token);
        } else {
            self.few.push(token);
            if self.few.len() > FEW_TOKENS {
                self.words.resize(self.word_count, 0);
                for &token in &self.few {
                    set_bit(&mut self.words, token);
                }
                self.few.clear();
            }
        }
    }
}

impl<A: ByteAutomaton> GuidedVisitor for MaskWalk<'_, A> {
    fn successors(&mut self, state: StateId) -> ByteSet {
        self.automaton.successors(state)
    }
}

/// Collects the rests that lead to a live state.
struct RestWalk<'a, A> {
    automaton: &'a mut A,
    rests: Vec<u32>,
    is_undecided: bool,
}

impl<A: ByteAutomaton> TrieVisitor for RestWalk<'_, A> {
    type State = StateId;

    fn enter(&mut self, state: StateId, byte: u8) -> Option<StateId> {
        let next = self.automaton.step(state, byte);
        self.is_undecided |= next == StateId::UNDECIDED;
        next.is_live().then_some(next)
    }

    fn token(&mut self, rest: u32, _state: StateId) {
        self.rests.push(rest);
    }
}

impl<A: ByteAutomaton> GuidedVisitor for RestWalk<'_, A> {
    fn successors(&mut self, state: StateId) -> ByteSet {
        self.automaton.successors(state)
    }
}

/// Runs contents through their language: which stay alive, or which are complete.
struct ContentWalk<'a, A> {
    automaton: &'a mut A,
    rows: ContentRows,
    language: u32,
    /// Characters before the position.
    read: u64,
    words: Vec<u64>,
    len: usize,
    /// If given, the tokens are contents, and it is written which are complete.
    complete: Option<Vec<bool>>,
}

impl<A: ByteAutomaton> ContentWalk<'_, A> {
    #[inline]
    fn row(&mut self, state: u32) -> &ContentRow {
        let index = state as usize;
        if self.rows.0.len() <= index {
            self.rows.0.resize_with(index + 1, || None);
        }
        let (automaton, language) = (&mut *self.automaton, self.language);
        self.rows.0[index].get_or_insert_with(|| {
            let successors = automaton.content_successors(language, state);
            let dense = (successors.len() > SPARSE_SUCCESSORS).then(|| {
                let mut row = Box::new([0; 256]);
                for byte in successors.iter() {
                    row[byte as usize] = automaton.content_step(language, state, byte);
                }
                row
            });
            ContentRow { successors, dense }
        })
    }
}

impl<A: ByteAutomaton> TrieVisitor for ContentWalk<'_, A> {
    /// State of the language, and characters since the position.
    type State = (u32, u32);

    #[inline]
    fn enter(&mut self, (state, characters): (u32, u32), byte: u8) -> Option<(u32, u32)> {
        let next = match &self.row(state).dense {
            Some(row) => row[byte as usize],
            None => self.automaton.content_step(self.language, state, byte),
        };
        (next != 0).then(|| (next, characters + u32::from(byte & 0xC0 != 0x80)))
    }

    #[inline]
    fn token(&mut self, token: TokenId, (state, characters): (u32, u32)) {
        let characters = self.read + u64::from(characters);
        if let Some(complete) = &mut self.complete {
            complete[token as usize] =
                self.automaton.content_is_complete(self.language, state, characters);
        } else if self.automaton.content_is_live(self.language, state, characters) {
            set_bit(&mut self.words, token);
            self.len += 1;
        }
    }
}

impl<A: ByteAutomaton> GuidedVisitor for ContentWalk<'_, A> {
    #[inline]
    fn successors(&mut self, (state, _): (u32, u32)) -> ByteSet {
        self.row(state).successors
    }
}
