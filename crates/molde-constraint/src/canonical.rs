//! Forced text in the tokenizer's own segmentation.
//!
//! From a state that forces the bytes `": ` the tokenizer may write `":` and a space, or `": "` in
//! one token if a quote follows. So the first token of a forced run is taken only if it is
//! *stable*: whatever may legally follow the run, segmenting the run with it begins with the same
//! token. What may follow is tried on samples ([`StateTable::continuations`]): if few bytes can
//! follow, on each of them and what they force in turn; if many, on one of each kind of text.
//! Where the token is not stable, all tokens that fit stay allowed, and the model chooses.
//!
//! A segmentation starts at the token boundary, without the text before it: the answer is then a
//! function of the state. Byte-pair merges never cross a boundary that is kept, so what was
//! before matters to the pre-tokenizer at most.

use std::sync::Arc;

use molde_vocab::{ByteAutomaton, StateId, TokenId};

use crate::Segmentation;
use crate::table::StateTable;

/// The longest forced run that is segmented at once, in bytes. What is forced beyond it is one
/// more continuation.
const MAX_RUN_BYTES: usize = 96;
/// The longest continuation that is tried, in bytes.
const MAX_CONTINUATION_BYTES: usize = 16;
/// Up to so many bytes that can follow, each is tried; above, the samples stand for them.
const FEW_BYTES: usize = 16;

/// One of each kind of text that can merge with what is before it: letters, words, digits, spaces,
/// line ends, quotes, escapes, punctuation, a combining mark, other scripts.
const SAMPLES: [&str; 32] = [
    "a", "s", "ing", "the", "The", "A", "0", "12", " ", " a", " The", " 1", " \"", "  ", "\n",
    "\n\n", "\t", "\"", "\"\"", "\",", "'", "'s", "\\n", ".", ", ", ":", "-", "_", "{", "é",
    "\u{301}", "日本",
];

/// How forced text goes on from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canonical {
    /// With this token and no other.
    Only(TokenId),
    /// Nothing is forced, or not certainly in one segmentation: all tokens that fit are allowed.
    Free,
}

impl Canonical {
    const fn token(self) -> Option<TokenId> {
        match self {
            Self::Only(token) => Some(token),
            Self::Free => None,
        }
    }
}

impl<A: ByteAutomaton> StateTable<A> {
    /// The only token of the mask of a live state because the text is forced and the tokenizer
    /// writes it so; `None` if all tokens that fit are in the mask.
    pub(crate) fn canonical_token(&mut self, state: StateId) -> Option<TokenId> {
        if self.options.segmentation == Segmentation::Any || self.vocabulary.segmenter().is_none() {
            return None;
        }
        if let Some(known) = self.facts.get(&state).and_then(|facts| facts.canonical) {
            return known.token();
        }
        let found = self.find_canonical(state);
        self.facts_mut(state).canonical = Some(found);
        found.token()
    }

    fn find_canonical(&mut self, state: StateId) -> Canonical {
        let (mut run, end) = self.forced_run(state, MAX_RUN_BYTES);
        if run.is_empty() {
            return Canonical::Free;
        }
        let mut continuations = self.continuations(end);
        let whole = valid_prefix(&run).len();
        if whole < run.len() {
            // The run ends inside a character: what is left of it begins every continuation.
            let rest = run.split_off(whole);
            continuations = completed_character(&rest).into_iter().collect();
        }
        if whole == 0 || continuations.is_empty() && self.can_go_on(end) {
            return Canonical::Free;
        }

        let mut key = run;
        for continuation in continuations.iter() {
            // No UTF-8 text has this byte.
            key.push(u8::MAX);
            key.extend_from_slice(continuation.as_bytes());
        }
        if let Some(&known) = self.segmented.get(key.as_slice()) {
            return known;
        }
        let found = self.segment(&key[..whole], &continuations);
        self.cache_bytes += size_of::<(Box<[u8]>, Canonical)>() + key.len();
        self.segmented.insert(key.into_boxed_slice(), found);
        found
    }

    /// The first token of `run` if no continuation changes it.
    fn segment(&self, run: &[u8], continuations: &[String]) -> Canonical {
        let run = valid_prefix(run);
        let first_token = |text: &str| self.vocabulary.segmenter()?.segment(text).first().copied();
        let Some(first) = first_token(run) else { return Canonical::Free };
        let spells = self
            .vocabulary
            .token_bytes(first)
            .is_some_and(|bytes| !bytes.is_empty() && run.as_bytes().starts_with(bytes));
        let mut text = String::with_capacity(run.len() + MAX_CONTINUATION_BYTES);
        let mut is_stable = |continuation: &String| {
            text.clear();
            text.push_str(run);
            text.push_str(continuation);
            first_token(&text) == Some(first)
        };
        if spells && continuations.iter().all(&mut is_stable) {
            Canonical::Only(first)
        } else {
            Canonical::Free
        }
    }

    /// The bytes that must follow `state`, at most `max_bytes`, and the state after them.
    pub(crate) fn forced_run(&mut self, state: StateId, max_bytes: usize) -> (Vec<u8>, StateId) {
        let mut run = Vec::new();
        let mut end = state;
        while run.len() < max_bytes
            && let Some(byte) = self.automaton.forced_byte(end)
        {
            let next = self.automaton.step(end, byte);
            if !next.is_live() {
                break;
            }
            run.push(byte);
            end = next;
        }
        (run, end)
    }

    /// Texts that stand for all that can follow a live state; none if nothing can.
    fn continuations(&mut self, state: StateId) -> Arc<[String]> {
        if let Some(known) = self.facts.get(&state).and_then(|facts| facts.continuations.clone()) {
            return known;
        }
        let mut possible = [false; 256];
        for byte in 0..=u8::MAX {
            possible[usize::from(byte)] = self.automaton.step(state, byte).is_live();
        }
        let mut texts: Vec<String> = SAMPLES
            .iter()
            .filter(|sample| possible[usize::from(sample.as_bytes()[0])])
            .map(|&sample| sample.to_owned())
            .collect();
        if possible.iter().filter(|&&possible| possible).count() <= FEW_BYTES {
            for byte in (0..=u8::MAX).filter(|&byte| possible[usize::from(byte)]) {
                let next = self.automaton.step(state, byte);
                let (mut bytes, _) = self.forced_run(next, MAX_CONTINUATION_BYTES - 1);
                bytes.insert(0, byte);
                bytes.truncate(match valid_prefix(&bytes).len() {
                    0 => bytes.len(),
                    whole => whole,
                });
                texts
                    .extend(String::from_utf8(bytes).ok().or_else(|| completed_character(&[byte])));
            }
        }
        self.cache_bytes +=
            texts.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
        let texts: Arc<[String]> = texts.into();
        self.facts_mut(state).continuations = Some(Arc::clone(&texts));
        texts
    }
}

/// The longest prefix that is UTF-8.
fn valid_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()])
            .expect("the prefix before the first invalid byte is valid"),
    }
}

/// Some character whose UTF-8 begins with `start`, which is part of one; `None` if there is none.
fn completed_character(start: &[u8]) -> Option<String> {
    let first = *start.first()?;
    let len = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let mut bytes = start.to_vec();
    while bytes.len() < len {
        // The lowest continuation byte would make these two an overlong form.
        bytes.push(match bytes.as_slice() {
            [0xE0] => 0xA0,
            [0xF0] => 0x90,
            _ => 0x80,
        });
    }
    String::from_utf8(bytes).ok()
}
