//! What a tokenizer is made of, out of a GGUF file's metadata or a folder's JSON files.

use std::collections::BTreeMap;
use std::path::Path;

use molde_vocab::TokenId;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::InferError;
use crate::gguf::{Gguf, Value, shorten};
use crate::tokenizer::QWEN2_PATTERN;

/// End-of-turn tokens of the Qwen family that a file may leave unmentioned.
const USUAL_END_OF_TURN: [&str; 2] = ["<|im_end|>", "<|endoftext|>"];

/// One more than the largest id that is accepted: larger than any vocabulary, small enough that a
/// table of that many tokens is no danger.
const MAX_TOKENS: u32 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Text,
    Control,
    Unused,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// In the byte-level alphabet if it is a text token, else as it is spelled.
    pub(crate) text: String,
    pub(crate) kind: TokenKind,
}

#[derive(Debug, Clone)]
pub(crate) struct TokenizerParts {
    /// By id. The last one is in use.
    pub(crate) tokens: Vec<Token>,
    pub(crate) merges: Vec<(String, String)>,
    /// End-of-turn ids that the files name.
    named_end_of_turn: Vec<TokenId>,
}

impl TokenizerParts {
    fn new(
        mut tokens: Vec<Token>,
        merges: Vec<(String, String)>,
        named_end_of_turn: Vec<TokenId>,
    ) -> Self {
        // Padding up to the size of the output head is no part of the vocabulary.
        while tokens.last().is_some_and(|token| token.kind == TokenKind::Unused) {
            tokens.pop();
        }
        Self { tokens, merges, named_end_of_turn }
    }

    pub(crate) fn end_of_turn(&self, control: &BTreeMap<String, TokenId>) -> Vec<TokenId> {
        let usual = USUAL_END_OF_TURN.iter().filter_map(|&name| control.get(name));
        self.named_end_of_turn.iter().chain(usual).copied().collect()
    }

    pub(crate) fn from_gguf(gguf: &Gguf<'_>) -> Result<Self, InferError> {
        const TYPES: &str = "tokenizer.ggml.token_type";
        let path = gguf.path();
        for (key, supported) in [("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "qwen2")]
        {
            let got = gguf.text(key)?;
            if got != supported {
                let (path, got) = (path.to_owned(), shorten(got));
                return Err(InferError::Unsupported { path, key, got, supported });
            }
        }
        let texts = gguf.texts("tokenizer.ggml.tokens")?;
        let types = match gguf.metadata.get(TYPES) {
            Some(Value::Numbers(types)) if types.len() == texts.len() => types,
            Some(other) => return Err(gguf.wrong(TYPES, "one number for each token", other)),
            None => {
                return Err(InferError::KeyMissing {
                    path: path.to_owned(),
                    key: TYPES.to_owned(),
                    expected: "qwen2",
                });
            }
        };
        let mut tokens = Vec::with_capacity(texts.len());
        for (id, (&text, kind)) in texts.iter().zip(types.iter()).enumerate() {
            // The numbers of llama.cpp's token types.
            let kind = match kind.as_unsigned() {
                // Converters mark padding in more than one way, but always spell it so.
                _ if text == format!("[PAD{id}]") => TokenKind::Unused,
                Some(1) => TokenKind::Text,
                Some(2..=4) => TokenKind::Control,
                Some(5) => TokenKind::Unused,
                _ => return Err(gguf.wrong(TYPES, "a token type from 1 to 5", &kind)),
            };
            tokens.push(Token { text: text.to_owned(), kind });
        }
        let merges = gguf.texts("tokenizer.ggml.merges")?;
        let merges = merges
            .iter()
            .enumerate()
            .map(|(rule, merge)| split_merge(path, rule, merge))
            .collect::<Result<_, _>>()?;
        let mut end_of_turn = Vec::new();
        for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"] {
            if let Some(id) = gguf.optional_unsigned(key)? {
                let id = TokenId::try_from(id)
                    .map_err(|_| gguf.wrong(key, "a token id", &Value::Unsigned(id)))?;
                end_of_turn.push(id);
            }
        }
        Ok(Self::new(tokens, merges, end_of_turn))
    }

    /// `path` is the tokenizer.json with the content `text`; `end_of_turn` comes from the other
    /// files of the folder.
    pub(crate) fn from_json(
        path: &Path,
        text: &str,
        end_of_turn: Vec<TokenId>,
    ) -> Result<Self, InferError> {
        let json: TokenizerJson = serde_json::from_str(text)
            .map_err(|source| InferError::Json { path: path.to_owned(), source })?;
        json.check(path)?;
        let mut by_id: BTreeMap<TokenId, Token> = BTreeMap::new();
        let text_tokens =
            json.model.vocab.into_iter().map(|(text, id)| (id, text, TokenKind::Text));
        // All added tokens are markers; `special` only says whether decoding hides them.
        let added = json.added_tokens.into_iter().map(|t| (t.id, t.content, TokenKind::Control));
        for (id, text, kind) in text_tokens.chain(added) {
            if id >= MAX_TOKENS {
                return Err(InferError::KeyValue {
                    path: path.to_owned(),
                    key: "a token id".to_owned(),
                    expected: "a number below 1048576",
                    got: id.to_string(),
                });
            }
            // An added token may be listed in the model's table as well.
            if let Some(other) = by_id.insert(id, Token { text: text.clone(), kind })
                && other.text != text
            {
                let name = format!("token id {id}");
                return Err(InferError::Duplicate { path: path.to_owned(), name });
            }
        }
        let length = by_id.keys().next_back().map_or(0, |&last| last as usize + 1);
        let unused = Token { text: String::new(), kind: TokenKind::Unused };
        let mut tokens = vec![unused; length];
        for (id, token) in by_id {
            tokens[id as usize] = token;
        }
        let merges = json
            .model
            .merges
            .into_iter()
            .enumerate()
            .map(|(rule, merge)| match merge {
                MergeJson::Pair(a, b) => Ok((a, b)),
                MergeJson::Text(text) => split_merge(path, rule, &text),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self::new(tokens, merges, end_of_turn))
    }
}

fn split_merge(path: &Path, rule: usize, merge: &str) -> Result<(String, String), InferError> {
    // A space cannot be part of a token: the alphabet writes it as another character.
    let pair = merge.split_once(' ').filter(|(a, b)| !a.is_empty() && !b.is_empty());
    let (a, b) = pair.ok_or_else(|| InferError::TokenizerMerge { path: path.to_owned(), rule })?;
    Ok((a.to_owned(), b.to_owned()))
}

/// The parts of a tokenizer.json that decide.
#[derive(Deserialize)]
struct TokenizerJson {
    #[serde(default)]
    added_tokens: Vec<AddedTokenJson>,
    #[serde(default)]
    normalizer: Json,
    #[serde(default)]
    pre_tokenizer: Json,
    model: BpeJson,
}

#[derive(Deserialize)]
struct AddedTokenJson {
    id: TokenId,
    content: String,
}

#[derive(Deserialize)]
struct BpeJson {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: BTreeMap<String, TokenId>,
    merges: Vec<MergeJson>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MergeJson {
    Text(String),
    Pair(String, String),
}

impl TokenizerJson {
    /// Refuses every tokenizer that would not cut text as this crate does.
    fn check(&self, path: &Path) -> Result<(), InferError> {
        let unsupported = |key, got: &str, supported| {
            let (path, got) = (path.to_owned(), shorten(got));
            Err(InferError::Unsupported { path, key, got, supported })
        };
        let kind = self.model.kind.as_deref().unwrap_or("BPE");
        if kind != "BPE" {
            return unsupported("model.type", kind, "BPE");
        }
        let affixes = [&self.model.continuing_subword_prefix, &self.model.end_of_word_suffix];
        if let Some(affix) = affixes.into_iter().flatten().find(|affix| !affix.is_empty()) {
            return unsupported("model.continuing_subword_prefix", affix, "none");
        }
        if self.model.byte_fallback || self.model.ignore_merges {
            return unsupported("model.byte_fallback or model.ignore_merges", "true", "false");
        }
        let normalizer = self.normalizer["type"].as_str().unwrap_or("none");
        if normalizer != "NFC" {
            return unsupported("normalizer", normalizer, "NFC");
        }
        let steps = &self.pre_tokenizer["pretokenizers"];
        let pattern = steps[0]["pattern"]["Regex"].as_str().unwrap_or("none");
        if pattern != QWEN2_PATTERN {
            return unsupported("pre_tokenizer", pattern, "the pattern of Qwen2");
        }
        let expected = serde_json::json!([
            {"type": "Split", "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
        ]);
        let agrees = |step: &Json, expected: &Json| {
            expected.as_object().is_some_and(|fields| fields.iter().all(|(k, v)| step[k] == *v))
        };
        let matches = self.pre_tokenizer["type"] == "Sequence"
            && steps.as_array().is_some_and(|steps| steps.len() == 2)
            && agrees(&steps[0], &expected[0])
            && agrees(&steps[1], &expected[1]);
        if !matches {
            return unsupported(
                "pre_tokenizer",
                "another sequence",
                "Split and ByteLevel of Qwen2",
            );
        }
        Ok(())
    }
}
