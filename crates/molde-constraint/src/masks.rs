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
    TokenId, TokenMask, TrieVisitor, Vocabulary,
};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::quoted::QuotedTokens;
use crate::table::{StateTable, Step, clear_bit, set_bit};
use crate::token_set::TokenSet;

/// The mask of a state.
#[derive(Clone, Debug)]
pub(crate) struct StateMask {
    pub(crate) mask: Arc<TokenMask>,
    /// Tokens left out because their successor was not decided.
    pub(crate) undecided: u32,
    /// Tokens left out of which the text so far tells whether they are allowed.
    pub(crate) ask: Arc<[TokenId]>,
}

impl StateMask {
    pub(crate) fn new(mask: Arc<TokenMask>, mut ask: Vec<TokenId>) -> Self {
        ask.sort_unstable();
        ask.dedup();
        Self { mask, undecided: 0, ask: ask.into() }
    }
}

/// Stands, in walks, for a state of which only the text can tell what it is.
const UNSETTLED: StateId = StateId(u32::MAX);

/// What is known of a token without the text.
enum Trial {
    Live,
    Dead,
    /// The text tells.
    Ask,
    Undecided,
}

/// Texts after the end of a quoted one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RestSet {
    /// Those that may follow.
    live: Box<[u32]>,
    /// Those of which the text before tells.
    ask: Box<[u32]>,
}

/// Index of a set of rests.
type RestsId = u32;

/// No rest at all: what follows a text that cannot end.
const NO_RESTS: RestsId = 0;

/// What was found out about quoted texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotedCache {
    /// Sets of rests that may follow the end of a text. Set 0 is empty.
    rest_sets: IndexSet<RestSet, FxBuildHasher>,
    /// The rests that may follow a state; `None` if some could not be decided.
    rests: FxHashMap<StateId, Option<RestsId>>,
    /// Masks of texts with any content.
    any: FxHashMap<AnyKey, StateMask>,
    /// What a state of a language of contents allows.
    languages: FxHashMap<QuotedContent, Option<Arc<LanguageTokens>>>,
    /// Masks by state of a language and rests.
    language_masks: FxHashMap<(QuotedContent, Box<[RestsId]>), StateMask>,
    /// Successors of the states of each language of contents.
    rows: FxHashMap<u32, ContentRows>,
}

/// The states of a language of contents as far as they were needed, numbered anew.
#[derive(Clone, Debug, Default)]
struct ContentRows {
    /// By state, its number here, or `NO_ROW`.
    ids: Vec<u32>,
    rows: Vec<ContentRow>,
}

/// The successors of one state.
#[derive(Clone, Debug)]
struct ContentRow {
    state: u32,
    /// The first and last number of characters with which the content is live.
    live: Option<(u64, u64)>,
    /// By byte, the number of the successor; `NO_ROW` where it is dead. Empty until it is needed.
    next: Option<Box<[u32; 256]>>,
}

const NO_ROW: u32 = u32::MAX;

/// More tokens than this are not read one by one.
const MAX_READ_TOKENS: u32 = 12_000;

/// A state that fewer bytes do not change is not treated as one that most do not.
const MIN_LOOPING_BYTES: u32 = 24;

/// Where more bytes than this are sure to go on, only the longer tokens are read.
const SURE_BYTES: u32 = 16;

impl ContentRows {
    /// The number of a state.
    fn id<A: ByteAutomaton>(&mut self, state: u32, automaton: &mut A, language: u32) -> u32 {
        let index = state as usize;
        if self.ids.len() <= index {
            self.ids.resize(index + 1, NO_ROW);
        }
        if self.ids[index] == NO_ROW {
            self.ids[index] = self.rows.len() as u32;
            let live = automaton.content_live_range(language, state);
            self.rows.push(ContentRow { state, live, next: None });
        }
        self.ids[index]
    }

    #[cold]
    fn fill<A: ByteAutomaton>(&mut self, row: u32, automaton: &mut A, language: u32) {
        let state = self.rows[row as usize].state;
        let mut next = Box::new([NO_ROW; 256]);
        for byte in automaton.content_successors(language, state).iter() {
            let target = automaton.content_step(language, state, byte);
            if target != 0 {
                next[byte as usize] = self.id(target, automaton, language);
            }
        }
        self.rows[row as usize].next = Some(next);
    }
}

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
    inside: TokenSet,
    /// The kind of each of [`QuotedTokens::closer_contents`] after which the text may end.
    kinds: Box<[Option<u32>]>,
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
            return mask;
        }
        if let Some(position) = self.automaton.quoted(state)
            && let Some(mask) = self.quoted_mask(state, &position)
        {
            return mask;
        }
        self.walked_mask(state)
    }

    /// The union of the masks of a state's parts. `None` if it has none, or something about them is
    /// undecided, which the whole state may see differently.
    fn mask_of_parts(&mut self, state: StateId) -> Option<StateMask> {
        let parts = self.automaton.parts(state);
        let (&first, rest) = parts.split_first()?;
        let mut masks = vec![self.plain_mask(first)];
        let mut ask = masks[0].ask.to_vec();
        for &part in rest {
            let mask = self.plain_mask(part);
            ask.extend(&*mask.ask);
            if !masks.iter().any(|known| Arc::ptr_eq(&known.mask, &mask.mask)) {
                masks.push(mask);
            }
        }
        // What was seen on the way may have shown that taking it apart is not safe.
        if masks.iter().any(|mask| mask.undecided > 0) || self.automaton.parts(state).is_empty() {
            return None;
        }
        if let [only] = &masks[..] {
            return Some(StateMask::new(Arc::clone(&only.mask), ask));
        }
        let total: usize = masks.iter().map(|mask| mask.mask.len()).sum();
        let union = if total <= FEW_TOKENS {
            let tokens = masks.iter().flat_map(|mask| mask.mask.iter());
            TokenMask::from_tokens(self.vocabulary.len(), tokens)
        } else {
            let mut words = vec![0; self.vocabulary.len().div_ceil(64)];
            for mask in &masks {
                mask.mask.write_into(&mut words);
            }
            let len = words.iter().map(|word| word.count_ones() as usize).sum();
            TokenMask::from_counted_words(self.vocabulary.len(), words, len)
        };
        ask.retain(|&token| !union.contains(token));
        Some(StateMask::new(self.kept(union), ask))
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
            set: TokenSet::new(vocabulary.len()),
            undecided: 0,
            ask: Vec::new(),
        };
        vocabulary.trie().walk_guided(&mut walk, state, &mut self.guided_stack);
        let (mut set, undecided, ask) = (walk.set, walk.undecided, walk.ask);
        if self.automaton.is_accepting(state) {
            vocabulary.end_of_turn().iter().for_each(|&token| set.insert(token));
        }
        StateMask { undecided, ..StateMask::new(self.kept(set.into_mask()), ask) }
    }

    /// The mask inside a quoted text; `None` if something could not be decided.
    fn quoted_mask(&mut self, state: StateId, position: &QuotedPosition) -> Option<StateMask> {
        let tokens = Arc::clone(self.quoted_tokens.as_ref()?);
        let mut closed = Vec::with_capacity(position.closed.len());
        for &state in &position.closed {
            closed.push(self.rests_after(&tokens, state)?);
        }
        match (position.content, &closed[..]) {
            (QuotedContent::Any { least, most }, &[closed]) => {
                self.any_mask(&tokens, state, position, least, most, closed)
            }
            (QuotedContent::Any { .. }, _) => None,
            (QuotedContent::Language { .. }, _) => {
                self.language_mask(&tokens, state, position, closed.into())
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
    ) -> Option<StateMask> {
        let mut empty = other;
        let mut apart: Vec<u32> = Vec::new();
        if !position.apart.is_empty() {
            // The empty content is a beginning of each of them.
            empty = self.rests_after_quote(tokens, state)?;
            apart = tokens.contents_apart(&position.apart);
            // The empty content was asked about just now, for all its tokens.
            apart.remove(0);
        }
        let longest = tokens.up_to.len() as u64;
        let key = AnyKey {
            inside: tokens.inside_index(most),
            least: least.min(longest),
            most: most.min(longest),
            empty,
            other,
        };
        // Beginnings need no look where there is no most: they can all go on differently.
        let is_bounded = most < longest && !position.apart.is_empty();
        let is_shared = apart.is_empty() && !is_bounded;
        if is_shared && let Some(known) = self.quoted.any.get(&key) {
            return Some(known.clone());
        }
        let (inside, inside_len) = tokens.inside(most);
        let mut words = inside.to_vec();
        let mut len = *inside_len;
        let mut ask = Vec::new();
        for (rests, is_empty) in [(empty, true), (other, false)] {
            let rests = self.quoted.rest_sets.get_index(rests as usize)?;
            for (list, is_live) in [(&rests.live, true), (&rests.ask, false)] {
                for closer in list.iter().flat_map(|&rest| tokens.closers(rest)) {
                    let characters = tokens.closer_contents[closer.content as usize].1;
                    if (closer.content == 0) == is_empty
                        && (key.least..=key.most).contains(&characters)
                        && (apart.is_empty() || apart.binary_search(&closer.content).is_err())
                    {
                        if is_live {
                            set_bit(&mut words, closer.token);
                            len += 1;
                        } else {
                            ask.push(closer.token);
                        }
                    }
                }
            }
        }
        if !position.apart.is_empty() {
            let mut alone: Vec<TokenId> = Vec::new();
            for rest in 0..tokens.rests_len() {
                let closers = tokens.closers(rest).iter();
                alone.extend(
                    closers
                        .filter(|closer| apart.binary_search(&closer.content).is_ok())
                        .map(|closer| closer.token),
                );
            }
            if is_bounded {
                // What is left of them may be too little to become another content.
                alone.extend(tokens.beginnings_of(&position.apart));
            }
            for token in alone {
                match self.try_token(state, token) {
                    Trial::Live => len += usize::from(set_bit(&mut words, token)),
                    Trial::Dead => len -= usize::from(clear_bit(&mut words, token)),
                    Trial::Ask => {
                        len -= usize::from(clear_bit(&mut words, token));
                        ask.push(token);
                    }
                    Trial::Undecided => return None,
                }
            }
        }
        let mask = self.kept(TokenMask::from_counted_words(self.vocabulary.len(), words, len));
        let mask = StateMask::new(mask, ask);
        if is_shared {
            self.quoted.any.insert(key, mask.clone());
        }
        Some(mask)
    }

    /// What is known of a text token without the text.
    fn try_token(&mut self, state: StateId, token: TokenId) -> Trial {
        let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
        let mut state = state;
        for &byte in bytes {
            let next = self.automaton.step(state, byte);
            match next {
                StateId::DEAD => return Trial::Dead,
                StateId::UNDECIDED if self.automaton.needs_settling(state) => return Trial::Ask,
                StateId::UNDECIDED => return Trial::Undecided,
                _ => state = next,
            }
        }
        Trial::Live
    }

    fn language_mask(
        &mut self,
        tokens: &QuotedTokens,
        state: StateId,
        position: &QuotedPosition,
        closed: Box<[RestsId]>,
    ) -> Option<StateMask> {
        let content = position.content;
        let is_shared = position.apart.is_empty() && position.beside.is_none();
        let key = (content, closed);
        if is_shared && let Some(known) = self.quoted.language_masks.get(&key) {
            return Some(known.clone());
        }
        let allowed = if let Some(known) = self.quoted.languages.get(&content) {
            known.clone()
        } else {
            let found = self.language_tokens(tokens, state, content).map(Arc::new);
            self.cache_bytes += found.as_ref().map_or(0, |found| found.inside.memory_usage());
            self.quoted.languages.insert(content, found.clone());
            found
        }?;
        let apart = tokens.contents_apart(&position.apart);
        let empty =
            if apart.is_empty() { NO_RESTS } else { self.rests_after_quote(tokens, state)? };
        let mut set = allowed.inside.clone();
        let mut ask: Vec<TokenId> = Vec::new();
        for (kind, &rests) in key.1.iter().enumerate() {
            let rests = self.quoted.rest_sets.get_index(rests as usize)?;
            for (list, is_live) in [(&rests.live, true), (&rests.ask, false)] {
                for closer in list.iter().flat_map(|&rest| tokens.closers(rest)) {
                    if allowed.kinds[closer.content as usize] == Some(kind as u32)
                        && apart.binary_search(&closer.content).is_err()
                    {
                        if is_live {
                            set.insert(closer.token);
                        } else {
                            ask.push(closer.token);
                        }
                    }
                }
            }
        }
        if let Some(beside) = position.beside {
            let beside = self.plain_mask(beside);
            if beside.undecided > 0 {
                return None;
            }
            set.union(&beside.mask);
            ask.extend(&*beside.ask);
        }
        if !position.apart.is_empty() {
            let rests = self.quoted.rest_sets.get_index(empty as usize)?;
            for (list, is_live) in [(&rests.live, true), (&rests.ask, false)] {
                for closer in list.iter().flat_map(|&rest| tokens.closers(rest)) {
                    if closer.content == 0 {
                        if is_live {
                            set.insert(closer.token);
                        } else {
                            ask.push(closer.token);
                        }
                    }
                }
            }
            let mut alone: Vec<TokenId> = tokens.beginnings_of(&position.apart);
            for rest in 0..tokens.rests_len() {
                let closers = tokens.closers(rest).iter();
                alone.extend(
                    closers
                        .filter(|closer| apart[1..].binary_search(&closer.content).is_ok())
                        .map(|closer| closer.token),
                );
            }
            for token in alone {
                match self.try_token(state, token) {
                    Trial::Live => set.insert(token),
                    Trial::Dead => set.remove(token),
                    Trial::Ask => {
                        set.remove(token);
                        ask.push(token);
                    }
                    Trial::Undecided => return None,
                }
            }
        }
        let mask = StateMask::new(self.kept(set.into_mask()), ask);
        if is_shared {
            self.quoted.language_masks.insert(key, mask.clone());
        }
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
        let vocabulary_len = self.vocabulary.len();
        let mut rows = self.quoted.rows.remove(&language).unwrap_or_default();
        let mut walk = ContentWalk {
            automaton: &mut self.automaton,
            rows: &mut rows,
            language,
            read: characters,
            set: TokenSet::new(vocabulary_len),
            kinds: None,
        };
        let sure = walk.automaton.content_sure_bytes(language, state);
        let is_total = sure == u32::MAX;
        let start = walk.rows.id(state, walk.automaton, language);
        if sure > SURE_BYTES {
            walk.set = TokenSet::from_words(vocabulary_len, tokens.inside(u64::MAX).0.to_vec());
            if !is_total {
                for &token in tokens.longer_than(sure as usize - 1) {
                    let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
                    if bytes.iter().try_fold((start, 0), |at, &b| walk.enter(at, b)).is_none() {
                        walk.set.remove(token);
                    }
                }
                for &token in &tokens.with_escapes {
                    walk.set.remove(token);
                }
            }
        } else if let Some(words) = walk.looping(tokens, start, &self.vocabulary) {
            walk.set = TokenSet::from_words(vocabulary_len, words);
        } else {
            tokens.contents.walk(&mut walk, (start, 0), &mut self.content_stack);
        }
        if !is_total {
            tokens.escaped_contents.walk(&mut walk, (start, 0), &mut self.content_stack);
            for escape in tokens.escapes.iter().filter(|escape| escape.begun) {
                let end = escape.content.iter().try_fold((start, 0), |at, &b| walk.enter(at, b));
                if let Some((end, more)) = end {
                    let end = walk.rows.rows[end as usize].state;
                    let read = characters + u64::from(more);
                    if walk.automaton.content_can_escape(language, end, read) {
                        walk.set.insert(escape.token);
                    }
                }
            }
        }
        let mut kinds = vec![None; tokens.closer_contents.len()];
        kinds[0] = walk.automaton.content_kind(language, state, characters);
        walk.kinds = Some(kinds);
        tokens.closer_trie.walk(&mut walk, (start, 0), &mut self.content_stack);
        let (mut inside, kinds) = (walk.set, walk.kinds.unwrap_or_default());
        self.quoted.rows.insert(language, rows);
        if !is_total {
            for escape in tokens.escapes.iter().filter(|escape| !escape.begun) {
                match self.step_token(position, escape.token)? {
                    Step::To(_) => inside.insert(escape.token),
                    Step::Dead { .. } => {}
                    Step::Undecided { .. } => return None,
                }
            }
        }
        Some(LanguageTokens { inside, kinds: kinds.into() })
    }

    /// The rests that may follow if the text ends here.
    fn rests_after_quote(&mut self, tokens: &QuotedTokens, state: StateId) -> Option<RestsId> {
        let quote = tokens.quote.iter();
        let closed = quote.fold(state, |state, &byte| self.automaton.step(state, byte));
        self.rests_after(tokens, closed)
    }

    /// The rests that may follow a state; `None` if some could not be decided.
    fn rests_after(&mut self, tokens: &QuotedTokens, state: StateId) -> Option<RestsId> {
        if self.quoted.rest_sets.is_empty() {
            self.quoted.rest_sets.insert(RestSet::default());
        }
        match state {
            StateId::DEAD => return Some(NO_RESTS),
            StateId::UNDECIDED => return None,
            _ => {}
        }
        if let Some(&known) = self.quoted.rests.get(&state) {
            return known;
        }
        let mut walk = RestWalk {
            automaton: &mut self.automaton,
            rests: vec![0],
            ask: Vec::new(),
            is_undecided: false,
        };
        tokens.rests.walk_guided(&mut walk, state, &mut self.guided_stack);
        let (mut rests, mut ask, is_undecided) = (walk.rests, walk.ask, walk.is_undecided);
        rests.sort_unstable();
        ask.sort_unstable();
        let set = RestSet { live: rests.into(), ask: ask.into() };
        let found = (!is_undecided).then(|| self.quoted.rest_sets.insert_full(set).0 as RestsId);
        self.quoted.rests.insert(state, found);
        found
    }
}

/// Collects every token that leads to a live state: a few in a list, more in a bitset.
struct MaskWalk<'a, A> {
    automaton: &'a mut A,
    set: TokenSet,
    undecided: u32,
    /// Tokens of which only the text tells.
    ask: Vec<TokenId>,
}

impl<A: ByteAutomaton> TrieVisitor for MaskWalk<'_, A> {
    type State = StateId;

    #[inline]
    fn enter(&mut self, state: StateId, byte: u8) -> Option<StateId> {
        // Undecided states are gone through, so that their tokens are counted.
        if state == StateId::UNDECIDED || state == UNSETTLED {
            return Some(state);
        }
        let next = self.automaton.step(state, byte);
        if next == StateId::UNDECIDED && self.automaton.needs_settling(state) {
            return Some(UNSETTLED);
        }
        (next != StateId::DEAD).then_some(next)
    }

    #[inline]
    fn token(&mut self, token: TokenId, state: StateId) {
        match state {
            StateId::UNDECIDED => self.undecided += 1,
            UNSETTLED => self.ask.push(token),
            _ => self.set.insert(token),
        }
    }
}

impl<A: ByteAutomaton> GuidedVisitor for MaskWalk<'_, A> {
    fn successors(&mut self, state: StateId) -> ByteSet {
        if state == UNSETTLED {
            return ByteSet::ALL;
        }
        self.automaton.successors(state)
    }
}

/// Collects the rests that lead to a live state.
struct RestWalk<'a, A> {
    automaton: &'a mut A,
    rests: Vec<u32>,
    /// Rests of which only the text before tells.
    ask: Vec<u32>,
    is_undecided: bool,
}

impl<A: ByteAutomaton> TrieVisitor for RestWalk<'_, A> {
    type State = StateId;

    fn enter(&mut self, state: StateId, byte: u8) -> Option<StateId> {
        if state == UNSETTLED {
            return Some(state);
        }
        let next = self.automaton.step(state, byte);
        if next == StateId::UNDECIDED && self.automaton.needs_settling(state) {
            return Some(UNSETTLED);
        }
        self.is_undecided |= next == StateId::UNDECIDED;
        next.is_live().then_some(next)
    }

    fn token(&mut self, rest: u32, state: StateId) {
        let list = if state == UNSETTLED { &mut self.ask } else { &mut self.rests };
        list.push(rest);
    }
}

impl<A: ByteAutomaton> GuidedVisitor for RestWalk<'_, A> {
    fn successors(&mut self, state: StateId) -> ByteSet {
        if state == UNSETTLED {
            return ByteSet::ALL;
        }
        self.automaton.successors(state)
    }
}

/// Runs contents through their language: which stay alive, or of which kind they are.
struct ContentWalk<'a, A> {
    automaton: &'a mut A,
    rows: &'a mut ContentRows,
    language: u32,
    /// Characters before the position.
    read: u64,
    set: TokenSet,
    /// If given, the tokens are contents, and it is written of which kind they are.
    kinds: Option<Vec<Option<u32>>>,
}

impl<A: ByteAutomaton> ContentWalk<'_, A> {
    /// The tokens without escape sequences that stay inside, from a state that most bytes which may
    /// follow do not change: tokens of such bytes alone are allowed, tokens with a byte that may not
    /// follow are not, and the others are read. `None` if those are too many.
    fn looping(
        &mut self,
        tokens: &QuotedTokens,
        start: u32,
        vocabulary: &Vocabulary,
    ) -> Option<Vec<u64>> {
        let state = self.rows.rows[start as usize].state;
        let (first, last) = self.rows.rows[start as usize].live?;
        if first > self.read || last < self.read {
            return None;
        }
        let next = self.next(start);
        let looping = self.automaton.content_looping_bytes(self.language, state);
        if looping.len() < MIN_LOOPING_BYTES {
            return None;
        }
        let leading_elsewhere =
            |byte: &u8| !looping.contains(*byte) && next[*byte as usize] != NO_ROW;
        let most: u32 =
            (0..=u8::MAX).filter(leading_elsewhere).map(|byte| tokens.having_len(byte)).sum();
        if most > MAX_READ_TOKENS {
            return None;
        }
        // Tokens with a byte that may not follow, and with one that leads elsewhere. Bytes inside a
        // character say nothing that its first does not.
        let mut read = vec![0u64; tokens.plain.len()];
        let mut out = read.clone();
        for byte in (0..=u8::MAX).filter(|byte| byte & 0xC0 != 0x80 && !looping.contains(*byte)) {
            let set = if next[byte as usize] == NO_ROW { &mut out } else { &mut read };
            let having = &tokens.having[byte as usize];
            set.iter_mut().zip(having).for_each(|(word, having)| *word |= having);
        }
        // A token of bytes that loop ends where it began, and only its length matters.
        let (short, _) = tokens.inside(last - self.read);
        let mut words: Vec<u64> = tokens
            .plain
            .iter()
            .zip(short)
            .zip(out.iter().zip(&read))
            .map(|((plain, short), (out, read))| plain & short & !out & !read)
            .collect();
        for (index, mut word) in read.into_iter().enumerate() {
            while word != 0 {
                let token = index as u32 * 64 + word.trailing_zeros();
                word &= word - 1;
                let bytes = vocabulary.token_bytes(token).unwrap_or_default();
                let end = bytes.iter().try_fold((start, 0), |at, &byte| self.enter(at, byte));
                if let Some((row, characters)) = end {
                    let row = &self.rows.rows[row as usize];
                    let total = self.read + u64::from(characters);
                    let live = match row.live {
                        Some((first, last)) => (first..=last).contains(&total),
                        None => self.automaton.content_is_live(self.language, row.state, total),
                    };
                    if live {
                        set_bit(&mut words, token);
                    }
                }
            }
        }
        Some(words)
    }

    /// The successors of a row by byte.
    fn next(&mut self, row: u32) -> [u32; 256] {
        if self.rows.rows[row as usize].next.is_none() {
            self.rows.fill(row, self.automaton, self.language);
        }
        self.rows.rows[row as usize].next.as_deref().copied().unwrap_or([NO_ROW; 256])
    }
}

impl<A: ByteAutomaton> TrieVisitor for ContentWalk<'_, A> {
    /// Number of a row, and characters since the position.
    type State = (u32, u32);

    #[inline]
    fn enter(&mut self, (row, characters): (u32, u32), byte: u8) -> Option<(u32, u32)> {
        let next = if let Some(next) = &self.rows.rows[row as usize].next {
            next[byte as usize]
        } else {
            self.rows.fill(row, self.automaton, self.language);
            self.rows.rows[row as usize].next.as_ref()?[byte as usize]
        };
        (next != NO_ROW).then(|| (next, characters + u32::from(byte & 0xC0 != 0x80)))
    }

    #[inline]
    fn token(&mut self, token: TokenId, (row, characters): (u32, u32)) {
        let characters = self.read + u64::from(characters);
        let row = &self.rows.rows[row as usize];
        if let Some(kinds) = &mut self.kinds {
            kinds[token as usize] =
                self.automaton.content_kind(self.language, row.state, characters);
            return;
        }
        let live = match row.live {
            Some((first, last)) => (first..=last).contains(&characters),
            None => self.automaton.content_is_live(self.language, row.state, characters),
        };
        if live {
            self.set.insert(token);
        }
    }
}
