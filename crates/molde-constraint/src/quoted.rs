//! What each token is inside a quoted text: tables that depend on the vocabulary alone.
//!
//! ```text
//! token        stays inside                     ends it
//! abc          3 characters
//! é\n          2 characters, content  é LF
//! a\           2 characters, in an escape
//! a",                                           content  a   rest  ,
//! "}                                            content      rest  }
//! ```

use std::sync::Arc;

use molde_vocab::{QuotedEnd, QuotedRules, TokenId, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::table::set_bit;

/// The tokens of a vocabulary, read from inside a quoted text between two characters.
#[derive(Debug)]
pub(crate) struct QuotedTokens {
    /// At `n`, the tokens that stay inside and have at most `n` characters (an unfinished one
    /// counts), as words of a bitset, and how many there are. The last one has them all.
    pub(crate) up_to: Box<[(Box<[u64]>, usize)]>,
    /// The contents of the tokens that stay inside and have no escape sequence; its tokens are
    /// theirs.
    pub(crate) contents: TokenTrie,
    /// The contents of the tokens that stay inside and have whole escape sequences.
    pub(crate) escaped_contents: TokenTrie,
    /// The tokens of `contents`, as words of a bitset.
    pub(crate) plain: Box<[u64]>,
    /// For each byte, those of `plain` that have it; empty for bytes inside characters.
    pub(crate) having: Box<[Box<[u64]>]>,
    having_lens: Box<[u32]>,
    /// The tokens of `contents`, the longest first.
    by_length: Box<[TokenId]>,
    /// Of the tokens of `by_length`, how many are longer than each number of bytes.
    longer: Box<[u32]>,
    /// The tokens that stay inside and are not in `contents`.
    pub(crate) with_escapes: Box<[TokenId]>,
    /// Tokens that end inside an escape sequence.
    pub(crate) escapes: Box<[EscapeToken]>,
    /// The tokens that end the text, by rest, then by content.
    closers: Box<[Closer]>,
    /// `closers[rest_ends[r - 1]..rest_ends[r]]` have the rest `r`.
    rest_ends: Box<[u32]>,
    /// The texts after the closing quote: its tokens are rests. Rest 0 is empty and not in it.
    pub(crate) rests: TokenTrie,
    /// The contents of the tokens that end the text, and their numbers of characters. Content 0 is
    /// empty.
    pub(crate) closer_contents: Box<[(Box<[u8]>, u64)]>,
    /// The same contents but the empty one: its tokens are indices of `closer_contents`.
    pub(crate) closer_trie: TokenTrie,
    /// The bytes of a token that end a text at once, without the rest.
    pub(crate) quote: Box<[u8]>,
}

/// A token that stays inside the text and ends inside an escape sequence.
#[derive(Debug)]
pub(crate) struct EscapeToken {
    pub(crate) token: TokenId,
    /// What is before the escape sequence.
    pub(crate) content: Box<[u8]>,
    /// Whether only the first byte of the escape sequence is there.
    pub(crate) begun: bool,
}

/// A token that ends the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Closer {
    rest: u32,
    /// Index of `closer_contents`.
    pub(crate) content: u32,
    pub(crate) token: TokenId,
}

impl QuotedTokens {
    /// The tables of a vocabulary, made at first use.
    pub(crate) fn of(vocabulary: &Vocabulary, rules: QuotedRules) -> Arc<Self> {
        vocabulary.derived(rules.key, |vocabulary| Self::new(vocabulary, rules))
    }

    fn new(vocabulary: &Vocabulary, rules: QuotedRules) -> Self {
        let mut inside: Vec<(u64, TokenId)> = Vec::new();
        let mut contents: Vec<(Vec<u8>, TokenId)> = Vec::new();
        let mut escaped: Vec<(Vec<u8>, TokenId)> = Vec::new();
        let mut escapes: Vec<EscapeToken> = Vec::new();
        let mut closers = Vec::new();
        let mut rests: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut closer_ids: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
        rests.insert(b"", 0);
        closer_ids.insert(Vec::new(), 0);
        let mut quote: Box<[u8]> = Box::default();
        for token in 0..vocabulary.len() as TokenId {
            let Some(bytes) = vocabulary.token_bytes(token).filter(|bytes| !bytes.is_empty())
            else {
                continue;
            };
            let Some(reading) = (rules.read)(bytes) else { continue };
            match reading.end {
                QuotedEnd::Inside => {
                    inside.push((characters(&reading.content), token));
                    let is_plain = reading.content == bytes;
                    let list = if is_plain { &mut contents } else { &mut escaped };
                    list.push((reading.content, token));
                }
                QuotedEnd::Escape { begun } => {
                    inside.push((characters(&reading.content) + 1, token));
                    let content = reading.content.into_boxed_slice();
                    escapes.push(EscapeToken { token, content, begun });
                }
                QuotedEnd::Closed { rest } => {
                    if reading.content.is_empty() {
                        quote = bytes[..rest].into();
                    }
                    let new = rests.len() as u32;
                    let rest = *rests.entry(&bytes[rest..]).or_insert(new);
                    let new = closer_ids.len() as u32;
                    let content = *closer_ids.entry(reading.content).or_insert(new);
                    closers.push(Closer { rest, content, token });
                }
            }
        }
        closers.sort_unstable();
        let rest_ends = (0..rests.len() as u32)
            .map(|rest| closers.partition_point(|closer| closer.rest <= rest) as u32)
            .collect();
        let mut closer_contents: Vec<(Box<[u8]>, u64)> = vec![Default::default(); closer_ids.len()];
        let mut by_id: Vec<(Vec<u8>, u32)> = closer_ids.into_iter().collect();
        by_id.sort_unstable_by_key(|&(_, id)| id);
        for (content, id) in by_id {
            closer_contents[id as usize] = (content.as_slice().into(), characters(&content));
        }
        let closer_texts = closer_contents.iter().enumerate().skip(1);
        let closer_trie =
            small_trie(closer_texts.map(|(id, (content, _))| (&**content, id as u32)).collect());
        let mut rest_texts: Vec<(&[u8], u32)> =
            rests.into_iter().filter(|&(_, rest)| rest > 0).collect();
        rest_texts.sort_unstable();
        let trie = |texts: &[(Vec<u8>, TokenId)]| {
            small_trie(texts.iter().map(|(content, token)| (&**content, *token)).collect())
        };
        let word_count = vocabulary.len().div_ceil(64);
        let mut plain = vec![0; word_count];
        let having_byte = |byte: u8| if byte & 0xC0 == 0x80 { 0 } else { word_count };
        let mut having: Vec<Box<[u64]>> =
            (0..=u8::MAX).map(|byte| vec![0; having_byte(byte)].into()).collect();
        for (content, token) in &contents {
            set_bit(&mut plain, *token);
            for &byte in content.iter().filter(|&&byte| byte & 0xC0 != 0x80) {
                set_bit(&mut having[byte as usize], *token);
            }
        }
        let having_lens = having
            .iter()
            .map(|set| set.iter().map(|word| word.count_ones()).sum::<u32>())
            .collect();
        let mut by_length: Vec<(usize, TokenId)> =
            contents.iter().map(|(content, token)| (content.len(), *token)).collect();
        by_length.sort_unstable_by_key(|&(length, token)| (std::cmp::Reverse(length), token));
        let longest = by_length.first().map_or(0, |&(length, _)| length);
        let longer = (0..=longest)
            .map(|bytes| by_length.partition_point(|&(length, _)| length > bytes) as u32)
            .collect();
        let with_escapes = escaped.iter().map(|&(_, token)| token);
        let with_escapes = with_escapes.chain(escapes.iter().map(|escape| escape.token)).collect();
        Self {
            plain: plain.into(),
            having: having.into(),
            having_lens,
            by_length: by_length.into_iter().map(|(_, token)| token).collect(),
            longer,
            with_escapes,
            up_to: up_to(vocabulary.len(), inside),
            contents: trie(&contents),
            escaped_contents: trie(&escaped),
            escapes: escapes.into(),
            closers: closers.into(),
            rest_ends,
            rests: small_trie(rest_texts),
            closer_contents: closer_contents.into(),
            closer_trie,
            quote,
        }
    }

    /// The tokens that stay inside, have no escape sequence, and are longer than so many bytes.
    pub(crate) fn longer_than(&self, bytes: usize) -> &[TokenId] {
        &self.by_length[..self.longer.get(bytes).copied().unwrap_or(0) as usize]
    }

    /// Number of tokens that stay inside, have no escape sequence, and have a byte.
    pub(crate) fn having_len(&self, byte: u8) -> u32 {
        self.having_lens[byte as usize]
    }

    /// Number of rests.
    pub(crate) fn rests_len(&self) -> u32 {
        self.rest_ends.len() as u32
    }

    /// The tokens that end the text and go on with a rest.
    pub(crate) fn closers(&self, rest: u32) -> &[Closer] {
        let rest = rest as usize;
        let start = if rest == 0 { 0 } else { self.rest_ends[rest - 1] };
        &self.closers[start as usize..self.rest_ends[rest] as usize]
    }

    /// The contents, as indices in ascending order, of tokens that end the text which are one of
    /// `names` or a beginning of one: the empty one first, if there is a name.
    pub(crate) fn contents_apart(&self, names: &[Box<[u8]>]) -> Vec<u32> {
        let mut apart = Vec::new();
        if !names.is_empty() {
            apart.push(0);
        }
        for name in names {
            apart.extend(self.closer_trie.prefixes(name).map(|(_, content)| content));
        }
        apart.sort_unstable();
        apart.dedup();
        apart
    }

    /// The tokens that stay inside, and whose content is one of `names` or a beginning of one.
    pub(crate) fn beginnings_of(&self, names: &[Box<[u8]>]) -> Vec<TokenId> {
        let mut tokens: Vec<TokenId> = Vec::new();
        for name in names {
            for trie in [&self.contents, &self.escaped_contents] {
                for (_, token) in trie.prefixes(name) {
                    tokens.push(token);
                    tokens.extend(trie.equal_texts(token));
                }
            }
            let escapes = self.escapes.iter().filter(|escape| name.starts_with(&escape.content));
            tokens.extend(escapes.map(|escape| escape.token));
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// The tokens that stay inside and have at most so many characters.
    pub(crate) fn inside(&self, most: u64) -> &(Box<[u64]>, usize) {
        &self.up_to[self.inside_index(most)]
    }

    /// Which of `up_to` has the tokens with at most so many characters.
    pub(crate) fn inside_index(&self, most: u64) -> usize {
        usize::try_from(most).unwrap_or(usize::MAX).min(self.up_to.len() - 1)
    }
}

/// Number of characters of which the beginning is in `content`.
pub(crate) fn characters(content: &[u8]) -> u64 {
    content.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}

/// A trie of parts of the texts of a vocabulary, which are no longer and no more than those.
fn small_trie(texts: Vec<(&[u8], u32)>) -> TokenTrie {
    TokenTrie::new(texts).expect("parts of tokens make no larger trie than the tokens")
}

/// For each number of characters, the tokens that have at most so many.
fn up_to(vocabulary_len: usize, mut tokens: Vec<(u64, TokenId)>) -> Box<[(Box<[u64]>, usize)]> {
    tokens.sort_unstable();
    let mut words = vec![0u64; vocabulary_len.div_ceil(64)];
    let mut sets: Vec<(Box<[u64]>, usize)> = Vec::new();
    let mut len = 0;
    for (characters, token) in tokens {
        while (sets.len() as u64) < characters {
            sets.push((words.as_slice().into(), len));
        }
        set_bit(&mut words, token);
        len += 1;
    }
    sets.push((words.into(), len));
    sets.into()
}
