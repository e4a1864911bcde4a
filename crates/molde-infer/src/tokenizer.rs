//! Text to token ids and back.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use molde_vocab::{Segmenter, TokenEntry, TokenId, TokenMask, Vocabulary};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, TokenizerBuilder, TokenizerImpl};

use crate::InferError;
use crate::byte_level::{ByteAlphabet, char_of};
use crate::gguf::shorten;
use crate::tokenizer_parts::{TokenKind, TokenizerParts};

/// How Qwen2 cuts a text into words before merging. From its tokenizer.json.
pub(crate) const QWEN2_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A byte-level BPE tokenizer with the Qwen2 rules: NFC, the Qwen2 word pattern, byte-level
/// merges. Immutable and cheap to share.
///
/// There are two ways in. [`encode_text`](Self::encode_text) is for everything that users write:
/// it cannot yield a control token, whatever the text says.
/// [`encode_with_control`](Self::encode_with_control) is for the model's own markers.
pub struct Tokenizer {
    text: Arc<TextEncoder>,
    /// Spelling to id of every control token.
    control: BTreeMap<String, TokenId>,
    vocabulary: Arc<Vocabulary>,
    used: TokenMask,
}

impl Tokenizer {
    /// Checks the parts and builds the tokenizer. `path` is where they come from, for messages.
    pub(crate) fn new(path: &Path, parts: TokenizerParts) -> Result<Self, InferError> {
        let duplicate = |text: &str| InferError::Duplicate {
            path: path.to_owned(),
            name: format!("the token \"{}\"", shorten(text)),
        };
        let alphabet = ByteAlphabet::new();
        let mut entries = Vec::with_capacity(parts.tokens.len());
        let mut control = BTreeMap::new();
        let mut vocab = Vocab::default();
        for (id, token) in parts.tokens.iter().enumerate() {
            let id = id as TokenId;
            entries.push(match token.kind {
                TokenKind::Text => {
                    if vocab.insert(token.text.clone(), id).is_some() {
                        return Err(duplicate(&token.text));
                    }
                    TokenEntry::Text(alphabet.decode(&token.text).ok_or_else(|| {
                        InferError::TokenizerBytes { path: path.to_owned(), token: id }
                    })?)
                }
                TokenKind::Control => {
                    if token.text.is_empty() || control.insert(token.text.clone(), id).is_some() {
                        return Err(duplicate(&token.text));
                    }
                    TokenEntry::Control
                }
                TokenKind::Unused => TokenEntry::Unused,
            });
        }
        // The library panics, or drops text, where these do not hold.
        if let Some(byte) = (0..=u8::MAX).find(|&b| !vocab.contains_key(&char_of(b).to_string())) {
            return Err(InferError::TokenizerByteMissing { path: path.to_owned(), byte });
        }
        let known = |(a, b): &(String, String)| {
            vocab.contains_key(a) && vocab.contains_key(b) && vocab.contains_key(&format!("{a}{b}"))
        };
        if let Some(rule) = parts.merges.iter().position(|merge| !known(merge)) {
            return Err(InferError::TokenizerMerge { path: path.to_owned(), rule });
        }
        let end_of_turn = parts.end_of_turn(&control);
        let text = Arc::new(TextEncoder::new(vocab, parts.merges)?);
        let segmenter: Arc<dyn Segmenter> = text.clone();
        let vocabulary = Vocabulary::new(entries, end_of_turn, Some(segmenter))
            .map_err(|source| InferError::Vocabulary { path: path.to_owned(), source })?;
        let is_used = |&token: &TokenId| {
            vocabulary.token_bytes(token).is_some() || vocabulary.is_control(token)
        };
        let ids = (0..vocabulary.len() as TokenId).filter(is_used);
        let used = TokenMask::from_tokens(vocabulary.len(), ids);
        Ok(Self { text, control, vocabulary: Arc::new(vocabulary), used })
    }

    /// The tokens that there are, text and control: ids in gaps of the vocabulary are left out.
    pub(crate) const fn used_tokens(&self) -> &TokenMask {
        &self.used
    }

    /// The tokens of a text, none of them a control token: `<|im_end|>` in `text` is read as the
    /// ten characters that it is.
    ///
    /// # Errors
    /// [`InferError::Tokenizer`] if the library fails.
    pub fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, InferError> {
        self.text.encode(text)
    }

    /// The tokens of a text in which control tokens are spelled out, the leftmost and longest
    /// first. Only for text that the program itself wrote.
    ///
    /// # Errors
    /// [`InferError::Tokenizer`] if the library fails.
    pub fn encode_with_control(&self, text: &str) -> Result<Vec<TokenId>, InferError> {
        let mut ids = Vec::new();
        for piece in self.split_control(text) {
            match piece {
                Piece::Control(id) => ids.push(id),
                Piece::Text(text) => ids.extend(self.encode_text(text)?),
            }
        }
        Ok(ids)
    }

    /// The text of tokens. Control tokens and unknown ids have none; bytes that are not UTF-8
    /// become U+FFFD.
    pub fn decode(&self, tokens: &[TokenId]) -> String {
        String::from_utf8_lossy(&self.decode_bytes(tokens)).into_owned()
    }

    /// The bytes of tokens. Control tokens and unknown ids have none.
    pub fn decode_bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens
            .iter()
            .filter_map(|&token| self.vocabulary.token_bytes(token))
            .flatten()
            .copied()
            .collect()
    }

    /// The tokens as a constraint sees them. End-of-turn tokens are those that the model's files
    /// name, and `<|im_end|>` and `<|endoftext|>` where they exist.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The id of a control token by its spelling.
    pub fn control_token(&self, spelling: &str) -> Option<TokenId> {
        self.control.get(spelling).copied()
    }

    /// Cuts a text at the control tokens spelled in it.
    pub(crate) fn split_control<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let longest = self
                .control
                .iter()
                .filter(|(spelling, _)| rest.starts_with(spelling.as_str()))
                .max_by_key(|(spelling, _)| spelling.len());
            if let Some((spelling, &id)) = longest {
                if start < at {
                    pieces.push(Piece::Text(&text[start..at]));
                }
                pieces.push(Piece::Control(id));
                at += spelling.len();
                start = at;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        if start < text.len() {
            pieces.push(Piece::Text(&text[start..]));
        }
        pieces
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("tokens", &self.vocabulary.len())
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}

/// A part of a text with control tokens in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Control(TokenId),
    Text(&'t str),
}

type ByteLevelBpe = TokenizerImpl<BPE, NFC, Sequence, ByteLevel, ByteLevel>;

/// The library's tokenizer, built without a single added token: there is no text from which it
/// could make one.
struct TextEncoder(ByteLevelBpe);

impl TextEncoder {
    fn new(vocab: Vocab, merges: Vec<(String, String)>) -> Result<Self, InferError> {
        let failed = |source| InferError::Tokenizer { source };
        let byte_level = ByteLevel::new(false, false, false);
        let pattern = SplitPattern::Regex(QWEN2_PATTERN.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(failed)?;
        // Without the cache: it lives in thread-locals and outlives the tokenizer.
        let bpe = BPE::builder().vocab_and_merges(vocab, merges).cache_capacity(0).build();
        let tokenizer = TokenizerBuilder::new()
            .with_model(bpe.map_err(failed)?)
            .with_normalizer(Some(NFC))
            .with_pre_tokenizer(Some(Sequence::new(vec![split.into(), byte_level.into()])))
            .with_post_processor(Some(byte_level))
            .with_decoder(Some(byte_level))
            .build()
            .map_err(failed)?;
        Ok(Self(tokenizer))
    }

    fn encode(&self, text: &str) -> Result<Vec<TokenId>, InferError> {
        let encoding =
            self.0.encode_fast(text, false).map_err(|source| InferError::Tokenizer { source })?;
        Ok(encoding.get_ids().to_vec())
    }
}

impl Segmenter for TextEncoder {
    fn segment(&self, text: &str) -> Vec<TokenId> {
        self.encode(text).unwrap_or_default()
    }
}
