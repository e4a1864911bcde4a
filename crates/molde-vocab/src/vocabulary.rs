//! Token ids and their bytes.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::trie::{MAX_TOKEN_BYTES, MAX_TOKENS};
use crate::{Segmenter, TokenId, TokenTrie, VocabularyError};

/// What a token id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenEntry<B = Vec<u8>> {
    /// These bytes, exactly, not necessarily whole characters. Two ids may have the same bytes.
    Text(B),
    /// A marker of the conversation (end of turn, padding, tool call): never part of a text.
    Control,
    /// No token of the tokenizer: a padding row of the output head, or a hole in the numbering.
    Unused,
}

/// The tokens of one model: ids, bytes, and the trie over them. Immutable; share it as an `Arc`.
///
/// A text can be completed from everywhere if each byte is a token of its own, as in every
/// byte-level tokenizer ([`missing_bytes`](Self::missing_bytes) is empty then). Other vocabularies
/// work too, but a constraint may meet a text that no token continues.
#[derive(Clone)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// `offsets[id]..offsets[id + 1]` is the range of token `id` in `bytes`.
    offsets: Vec<u32>,
    kinds: Vec<Kind>,
    end_of_turn: Vec<TokenId>,
    trie: TokenTrie,
    segmenter: Option<Arc<dyn Segmenter>>,
    derived: Derived,
}

/// What [`Vocabulary::derived`] has made, by type and key.
type Derived = Arc<Mutex<Vec<(TypeId, u32, Arc<dyn Any + Send + Sync>)>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Control,
    Unused,
}

impl Vocabulary {
    /// Builds a vocabulary: the entry of token 0, 1, 2, …; the ids that end the model's turn
    /// (control tokens; with none, whoever drives the constraint must end the text by itself); and
    /// the tokenizer's own segmentation, if there is one.
    ///
    /// A token with an empty text is in no mask: it could be written forever.
    ///
    /// # Errors
    /// A [`VocabularyError`] for too many or too long tokens, or an end-of-turn id that is not a
    /// control token.
    ///
    /// # Complexity
    /// A sort of the texts, then linear in their bytes.
    pub fn new<B: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = TokenEntry<B>>,
        end_of_turn: impl IntoIterator<Item = TokenId>,
        segmenter: Option<Arc<dyn Segmenter>>,
    ) -> Result<Self, VocabularyError> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        let mut kinds = Vec::new();
        for entry in entries {
            if kinds.len() == MAX_TOKENS {
                return Err(VocabularyError::TooManyTokens { max: MAX_TOKENS });
            }
            kinds.push(match entry {
                TokenEntry::Text(text) => {
                    let text = text.as_ref();
                    if text.len() > MAX_TOKEN_BYTES {
                        return Err(VocabularyError::TokenTooLong {
                            token: kinds.len() as TokenId,
                            bytes: text.len(),
                            max: MAX_TOKEN_BYTES,
                        });
                    }
                    bytes.extend_from_slice(text);
                    Kind::Text
                }
                TokenEntry::Control => Kind::Control,
                TokenEntry::Unused => Kind::Unused,
            });
            offsets.push(u32::try_from(bytes.len()).map_err(|_| {
                VocabularyError::TextTooLarge { bytes: bytes.len(), max: u32::MAX as usize }
            })?);
        }

        let mut end_of_turn: Vec<TokenId> = end_of_turn.into_iter().collect();
        end_of_turn.sort_unstable();
        end_of_turn.dedup();
        for &token in &end_of_turn {
            match kinds.get(token as usize) {
                Some(Kind::Control) => {}
                Some(Kind::Text | Kind::Unused) => {
                    return Err(VocabularyError::EndOfTurnNotControl { token });
                }
                None => {
                    return Err(VocabularyError::EndOfTurnUnknown {
                        token,
                        vocabulary_len: kinds.len(),
                    });
                }
            }
        }

        let texts = offsets
            .windows(2)
            .enumerate()
            .map(|(token, ends)| (&bytes[ends[0] as usize..ends[1] as usize], token as TokenId))
            .filter(|(text, _)| !text.is_empty())
            .collect();
        let trie = TokenTrie::new(texts)?;
        let derived = Derived::default();
        Ok(Self { bytes, offsets, kinds, end_of_turn, trie, segmenter, derived })
    }

    /// Number of ids: an exclusive upper bound of them, unused ones included.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no id at all.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The bytes of a text token; `None` for a control token, an unused or an unknown id.
    pub fn token_bytes(&self, token: TokenId) -> Option<&[u8]> {
        let token = token as usize;
        match self.kinds.get(token)? {
            Kind::Text => {
                Some(&self.bytes[self.offsets[token] as usize..self.offsets[token + 1] as usize])
            }
            Kind::Control | Kind::Unused => None,
        }
    }

    /// Whether the id is a control token, end-of-turn tokens included.
    pub fn is_control(&self, token: TokenId) -> bool {
        self.kinds.get(token as usize) == Some(&Kind::Control)
    }

    /// The ids that end the model's turn, ascending.
    pub fn end_of_turn(&self) -> &[TokenId] {
        &self.end_of_turn
    }

    /// Whether the id ends the model's turn.
    pub fn is_end_of_turn(&self, token: TokenId) -> bool {
        self.end_of_turn.binary_search(&token).is_ok()
    }

    /// The trie over the texts of the tokens.
    pub const fn trie(&self) -> &TokenTrie {
        &self.trie
    }

    /// The tokenizer's own segmentation, if it was given.
    pub fn segmenter(&self) -> Option<&dyn Segmenter> {
        self.segmenter.as_deref()
    }

    /// Tables over all tokens that depend on nothing but the vocabulary: made by the first who asks
    /// for this type and key, and kept as long as the vocabulary.
    ///
    /// `make` must be a function of the vocabulary and `key`. It may be run twice if two threads
    /// ask at once; all get the same result.
    pub fn derived<T: Any + Send + Sync>(&self, key: u32, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        if let Some(known) = self.known::<T>(key) {
            return known;
        }
        let made = Arc::new(make(self));
        if let Some(known) = self.known::<T>(key) {
            return known;
        }
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        derived.push((TypeId::of::<T>(), key, Arc::clone(&made) as _));
        made
    }

    fn known<T: Any + Send + Sync>(&self, key: u32) -> Option<Arc<T>> {
        let derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let known = derived.iter().find(|known| (known.0, known.1) == (TypeId::of::<T>(), key))?;
        Arc::clone(&known.2).downcast().ok()
    }

    /// The bytes that are no token of their own, ascending: empty for a byte-level tokenizer.
    pub fn missing_bytes(&self) -> Vec<u8> {
        (0..=u8::MAX).filter(|&byte| self.trie.prefixes(&[byte]).next().is_none()).collect()
    }

    /// The heap bytes held, without the segmenter's.
    pub fn memory_usage(&self) -> usize {
        self.bytes.capacity()
            + self.offsets.capacity() * size_of::<u32>()
            + self.kinds.capacity() * size_of::<Kind>()
            + self.end_of_turn.capacity() * size_of::<TokenId>()
            + self.trie.memory_usage()
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.len())
            .field("trie_nodes", &self.trie.len())
            .field("end_of_turn", &self.end_of_turn)
            .field("segmenter", &self.segmenter.is_some())
            .finish_non_exhaustive()
    }
}
