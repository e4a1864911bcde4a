//! Forced text in the tokenizer's own segmentation.
//!
//! From a state that forces the bytes `": ` the tokenizer may write `":` and a space, or `": "` in
//! one token if a quote follows. So the first token of a forced run is taken only if it is
//! *stable*: whatever may legally follow the run, segmenting the run with it begins with the same
//! token. What may follow is tried on samples ([`StateTable::continuations`]): if few bytes can
//! follow, on each of them and what they force in turn; if many, on one of each kind of text.
//! Where the token is not stable, all tokens that fit stay allowed, and the model chooses. A token
//! that is followed, within the run, by two changes of the kind of character is stable without
//! trying: a pre-tokenizer has parted it from the end of the run by then, and trying costs thirty
//! segmentations.
//!
//! What was written before the run matters too, though byte-pair merges never cross a boundary that
//! is kept: a pre-tokenizer takes `_id` alone for one word, and after `{"` for a mark and a word. A
//! state does not know how it was reached, so texts that may stand before ([`BEFORE`]) are tried as
//! well, and where they disagree nothing is forced.

use std::sync::Arc;

use molde_vocab::{ByteAutomaton, StateId, TokenId, Vocabulary};
use rustc_hash::FxHashMap;

use crate::Segmentation;
use crate::table::StateTable;

/// The longest forced run that is segmented at once, in bytes. What is forced beyond it is one
/// more continuation.
const MAX_RUN_BYTES: usize = 48;
/// The longest continuation that is tried, in bytes.
const MAX_CONTINUATION_BYTES: usize = 16;
/// Up to so many bytes that can follow, each is tried; above, the samples stand for them.
const FEW_BYTES: usize = 16;

/// A token with so many changes of the kind of character after it does not depend on what follows.
const SETTLED_CHANGES: usize = 2;

/// One of each kind of text that can merge with what is before it: letters, words, digits, spaces,
/// line ends, quotes, escapes, punctuation, a combining mark, other scripts.
const SAMPLES: [&str; 32] = [
    "a", "s", "ing", "the", "The", "A", "0", "12", " ", " a", " The", " 1", " \"", "  ", "\n",
    "\n\n", "\t", "\"", "\"\"", "\",", "'", "'s", "\\n", ".", ", ", ":", "-", "_", "{", "é",
    "\u{301}", "日本",
];

/// Texts before a run that ends in each kind of character. Only those after which the tokenizer
/// begins a new token count.
const BEFORE: [&str; 5] = ["{\"", ", \"", "\": ", "a", "12"];

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

/// What the segmenter has been asked: its answers depend on the texts alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentCache {
    /// By forced run.
    beginnings: FxHashMap<Box<str>, Beginning>,
    /// By forced run and continuations, each after a byte that no UTF-8 text has.
    stable: FxHashMap<Box<[u8]>, bool>,
}

/// How the segmentation of a forced run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// With this token, whatever comes after the run.
    Settled(TokenId),
    /// With this token if what comes after the run does not change it.
    Open(TokenId),
    /// With no token that spells a part of the run, or not always with the same.
    Unusable,
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
        let (run, end) = self.forced_run(state, MAX_RUN_BYTES);
        let text = valid_prefix(&run);
        match self.beginning(text) {
            Beginning::Unusable => Canonical::Free,
            Beginning::Settled(token) => Canonical::Only(token),
            Beginning::Open(token) => {
                let rest = &run[text.len()..];
                let continuations = if rest.is_empty() {
                    self.continuations(end)
                } else {
                    // The run ends inside a character: what is left of it begins every
                    // continuation.
                    completed_character(rest).into_iter().collect()
                };
                let open = continuations.is_empty() && self.can_go_on(end);
                if !open && self.is_stable(text, token, &continuations) {
                    Canonical::Only(token)
                } else {
                    Canonical::Free
                }
            }
        }
    }

    /// How the tokenizer's segmentation of `run` begins.
    fn beginning(&mut self, run: &str) -> Beginning {
        if let Some(&known) = self.segments.beginnings.get(run) {
            return known;
        }
        let found = self.segment_beginning(run);
        self.cache_bytes += size_of::<(Box<str>, Beginning)>() + run.len();
        self.segments.beginnings.insert(run.into(), found);
        found
    }

    fn segment_beginning(&self, run: &str) -> Beginning {
        let Some(token) = token_after(&self.vocabulary, "", run) else {
            return Beginning::Unusable;
        };
        let Some(rest) =
            self.vocabulary.token_bytes(token).and_then(|text| run.as_bytes().strip_prefix(text))
        else {
            return Beginning::Unusable;
        };
        // A word begins anew after anything that does not go on with it.
        let begins_word = run.starts_with(|first: char| first.is_alphanumeric());
        let disagrees = |before: &str| {
            token_after(&self.vocabulary, before, run).is_some_and(|other| other != token)
        };
        if !begins_word && BEFORE.iter().any(|before| disagrees(before)) {
            Beginning::Unusable
        } else if class_changes(rest) >= SETTLED_CHANGES {
            Beginning::Settled(token)
        } else {
            Beginning::Open(token)
        }
    }

    /// Whether `run` begins with `token` whatever follows it.
    fn is_stable(&mut self, run: &str, token: TokenId, continuations: &[String]) -> bool {
        let mut key = run.as_bytes().to_vec();
        for continuation in continuations {
            key.push(u8::MAX);
            key.extend_from_slice(continuation.as_bytes());
        }
        if let Some(&known) = self.segments.stable.get(key.as_slice()) {
            return known;
        }
        let mut text = String::with_capacity(run.len() + MAX_CONTINUATION_BYTES);
        let stable = continuations.iter().all(|continuation| {
            text.clear();
            text.push_str(run);
            text.push_str(continuation);
            token_after(&self.vocabulary, "", &text) == Some(token)
        });
        self.cache_bytes += size_of::<(Box<[u8]>, bool)>() + key.len();
        self.segments.stable.insert(key.into_boxed_slice(), stable);
        stable
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
            // What only the text can tell may follow too.
            possible[usize::from(byte)] = self.automaton.step(state, byte) != StateId::DEAD;
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

/// The first token of `text` where it follows `before`, if a token begins there; never one without
/// text.
fn token_after(vocabulary: &Vocabulary, before: &str, text: &str) -> Option<TokenId> {
    let tokens = vocabulary.segmenter()?.segment(&[before, text].concat());
    let mut read = 0;
    for token in tokens {
        let len = vocabulary.token_bytes(token)?.len();
        if read == before.len() && len > 0 {
            return Some(token);
        }
        read += len;
    }
    None
}

/// How often the kind of character changes: letter, digit, space, punctuation, beyond ASCII.
fn class_changes(text: &[u8]) -> usize {
    let class = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => 0,
        b'0'..=b'9' => 1,
        b' ' | b'\t' | b'\r' | b'\n' => 2,
        0x80.. => 3,
        _ => 4,
    };
    text.windows(2).filter(|pair| class(&pair[0]) != class(&pair[1])).count()
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
