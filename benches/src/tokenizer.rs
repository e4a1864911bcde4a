//! A byte-level `tokenizer.json`: its vocabulary, and its own segmentation of texts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use molde_schema::Escapes;
use molde_vocab::{TokenEntry, TokenId, Vocabulary};
use serde::Deserialize;
use tokenizers::Tokenizer;
use tokenizers::normalizers::unicode::NFC;

/// Rows of the model's output head: ids above the tokenizer's own are unused.
const HEAD_ROWS: usize = 151_936;

/// The tokenizer of the benchmark.
pub(crate) struct BenchTokenizer {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// Time to build vocabulary, trie and classes from the entries.
    pub(crate) load: Duration,
}

#[derive(Deserialize)]
struct File {
    model: Model,
    added_tokens: Vec<Added>,
}

#[derive(Deserialize)]
struct Model {
    vocab: BTreeMap<String, TokenId>,
}

#[derive(Deserialize)]
struct Added {
    id: TokenId,
    content: String,
}

impl BenchTokenizer {
    /// Reads a `tokenizer.json`, gzipped or not.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Vec<u8>> {
            let bytes = std::fs::read(path)?;
            if bytes.starts_with(&[0x1F, 0x8B]) {
                let mut text = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*bytes), &mut text)?;
                return Ok(text);
            }
            Ok(bytes)
        };
        let bytes = read().with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is no tokenizer.json", path.display()))?;
        let mut tokenizer =
            Tokenizer::from_bytes(&bytes).map_err(|error| anyhow::anyhow!(error))?;
        // Tokens must spell the instances as they are, which normalized text does not.
        tokenizer
            .with_normalizer(None::<NFC>)
            .map_err(|error| anyhow::anyhow!("the tokenizer keeps its normalizer: {error}"))?;

        // Control tokens spelled in a text are text.
        tokenizer.set_encode_special_tokens(true);
        let tokenizer = Arc::new(tokenizer);
        let segmenting = Arc::clone(&tokenizer);
        let segmenter = move |text: &str| {
            let encoding = segmenting.encode_fast(text, false);
            encoding.map_or_else(|_| Vec::new(), |encoding| encoding.get_ids().to_vec())
        };
        let segmenter: Arc<dyn molde_vocab::Segmenter> = Arc::new(segmenter);

        let bytes_of = byte_alphabet();
        let mut entries: Vec<TokenEntry> = vec![TokenEntry::Unused; HEAD_ROWS];
        for (text, id) in &file.model.vocab {
            let text: Option<Vec<u8>> =
                text.chars().map(|character| bytes_of.get(&character).copied()).collect();
            let entry = entries.get_mut(*id as usize).context("a token id beyond the head")?;
            *entry = TokenEntry::Text(text.context("the tokenizer is not byte-level")?);
        }
        let mut end_of_turn = Vec::new();
        for token in &file.added_tokens {
            let entry = entries.get_mut(token.id as usize).context("a token id beyond the head")?;
            *entry = TokenEntry::Control;
            if token.content == "<|im_end|>" || token.content == "<|endoftext|>" {
                end_of_turn.push(token.id);
            }
        }
        let begin = Instant::now();
        let vocabulary = Vocabulary::new(entries, end_of_turn, Some(segmenter))?;
        molde_constraint::prepare(&vocabulary, Escapes::Any);
        let load = begin.elapsed();
        Ok(Self { tokenizer, vocabulary: Arc::new(vocabulary), load })
    }

    /// The tokens of a text.
    pub(crate) fn encode(&self, text: &str) -> anyhow::Result<Vec<TokenId>> {
        let encoding =
            self.tokenizer.encode_fast(text, false).map_err(|error| anyhow::anyhow!(error))?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The characters that stand for bytes: printable ones for themselves, the others from U+0100 on.
fn byte_alphabet() -> BTreeMap<char, u8> {
    let mut bytes = BTreeMap::new();
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..);
        let code = if printable { u32::from(byte) } else { next };
        next += u32::from(!printable);
        bytes.insert(char::from_u32(code).expect("below the surrogates"), byte);
    }
    bytes
}
