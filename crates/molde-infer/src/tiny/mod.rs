//! A tiny Qwen2 with untrained weights, written to disk as a real model: for tests that need no
//! download. Only with the feature `test-models`.
//!
//! Everything is deterministic: the same [`TinyModel`] is the same bytes on every machine. The
//! tokenizer is byte-level BPE with the Qwen2 rules, a few hundred merges, the control tokens of
//! the Qwen family and a chat template that writes what Qwen's does for plain conversations.

mod tokenizer;
mod weights;

use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use serde_json::json;

use crate::InferError;
use crate::tokenizer::QWEN2_PATTERN;
use tokenizer::{Kind, TinyTokenizer};
use weights::TinyTensor;

/// How the matrices of a tiny model are stored. Norms and biases are `f32` in GGUF, else as the
/// matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TinyDtype {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q4K,
    Q5K,
    Q6K,
}

impl TinyDtype {
    /// All of them, for GGUF. Those that end in `K` need [`TinyModel::wide`].
    pub const ALL: [Self; 11] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];
    /// Those that safetensors can hold.
    pub const FLOATS: [Self; 3] = [Self::F32, Self::F16, Self::BF16];
}

/// The shape and the seed of a tiny model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TinyModel {
    /// Width of the residual stream. Default: 64.
    pub hidden_size: usize,
    /// Width of the feed-forward block. Default: 128.
    pub intermediate_size: usize,
    /// Transformer layers. Default: 2.
    pub layers: usize,
    /// Query heads. Default: 4.
    pub attention_heads: usize,
    /// Key and value heads. Default: 2.
    pub key_value_heads: usize,
    /// Context length in tokens. Default: 4,096.
    pub context_tokens: usize,
    /// Whether the head is the embedding table. Default: true.
    pub tied_head: bool,
    /// Seed of the weights. Default: 1.
    pub seed: u64,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self {
            hidden_size: 64,
            intermediate_size: 128,
            layers: 2,
            attention_heads: 4,
            key_value_heads: 2,
            context_tokens: 4096,
            tied_head: true,
            seed: 1,
        }
    }
}

impl TinyModel {
    /// A model whose rows are whole blocks of 256, as the `K` types need.
    pub fn wide() -> Self {
        Self { hidden_size: 256, intermediate_size: 512, ..Self::default() }
    }

    /// Writes the model as a GGUF file.
    ///
    /// # Errors
    /// [`InferError::Io`], or [`InferError::Compute`] if a row is not a whole number of blocks.
    pub fn write_gguf(&self, path: &Path, dtype: TinyDtype) -> Result<(), InferError> {
        let io = |source| InferError::Io { path: path.to_owned(), source };
        let tokenizer = TinyTokenizer::new();
        let metadata = self.gguf_metadata(&tokenizer);
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (*key, value)).collect();
        let tensors = self.tensors(&tokenizer);
        let quantized = tensors
            .iter()
            .map(|tensor| Ok((tensor.role.gguf_name(), tensor.quantize(dtype)?)))
            .collect::<Result<Vec<_>, InferError>>()?;
        let quantized: Vec<_> =
            quantized.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(io)?);
        gguf_file::write(&mut file, &metadata, &quantized)?;
        std::io::Write::flush(&mut file).map_err(io)
    }

    /// Writes the model as a folder with config.json, tokenizer.json, tokenizer_config.json,
    /// generation_config.json and one safetensors file, or `shards` of them with an index.
    /// Quantized types are written as `F32`.
    ///
    /// # Errors
    /// [`InferError::Io`] or [`InferError::Safetensors`].
    pub fn write_folder(
        &self,
        folder: &Path,
        dtype: TinyDtype,
        shards: usize,
    ) -> Result<(), InferError> {
        let tokenizer = TinyTokenizer::new();
        for (name, content) in self.folder_json(&tokenizer) {
            write(&folder.join(name), content.to_string().as_bytes())?;
        }
        let tensors = self.tensors(&tokenizer);
        let shards = shards.clamp(1, tensors.len());
        let mut weight_map = serde_json::Map::new();
        for (index, part) in tensors.chunks(tensors.len().div_ceil(shards)).enumerate() {
            let name = match shards {
                1 => "model.safetensors".to_owned(),
                _ => format!("model-{:05}-of-{shards:05}.safetensors", index + 1),
            };
            let path = folder.join(&name);
            write(&path, &weights::to_safetensors(&path, part, dtype)?)?;
            for tensor in part {
                weight_map.insert(tensor.role.safetensors_name(), json!(name));
            }
        }
        if shards > 1 {
            let index = json!({"metadata": {}, "weight_map": weight_map});
            write(&folder.join("model.safetensors.index.json"), index.to_string().as_bytes())?;
        }
        Ok(())
    }

    fn tensors(&self, tokenizer: &TinyTokenizer) -> Vec<TinyTensor> {
        weights::tensors(self, tokenizer.rows())
    }

    fn gguf_metadata(&self, tokenizer: &TinyTokenizer) -> Vec<(&'static str, Value)> {
        let number = |number: usize| Value::U32(number as u32);
        let text = |text: &str| Value::String(text.to_owned());
        let texts =
            |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::String).collect());
        let kinds = tokenizer.tokens().iter().map(|(_, kind)| {
            Value::I32(match kind {
                Kind::Text => 1,
                Kind::Special => 3,
                Kind::Marker => 4,
                Kind::Padding => 5,
            })
        });
        vec![
            ("general.architecture", text("qwen2")),
            ("qwen2.block_count", number(self.layers)),
            ("qwen2.context_length", number(self.context_tokens)),
            ("qwen2.embedding_length", number(self.hidden_size)),
            ("qwen2.feed_forward_length", number(self.intermediate_size)),
            ("qwen2.attention.head_count", number(self.attention_heads)),
            ("qwen2.attention.head_count_kv", number(self.key_value_heads)),
            ("qwen2.rope.freq_base", Value::F32(weights::ROPE_THETA)),
            ("qwen2.attention.layer_norm_rms_epsilon", Value::F32(weights::RMS_NORM_EPS)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("qwen2")),
            (
                "tokenizer.ggml.tokens",
                texts(tokenizer.tokens().iter().map(|t| t.0.clone()).collect()),
            ),
            ("tokenizer.ggml.token_type", Value::Array(kinds.collect())),
            ("tokenizer.ggml.merges", texts(tokenizer.merges())),
            ("tokenizer.ggml.eos_token_id", Value::U32(tokenizer.id("<|im_end|>"))),
            ("tokenizer.ggml.bos_token_id", Value::U32(tokenizer.id("<|endoftext|>"))),
            ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
            ("tokenizer.chat_template", text(tokenizer::CHAT_TEMPLATE)),
        ]
    }

    fn folder_json(&self, tokenizer: &TinyTokenizer) -> Vec<(&'static str, serde_json::Value)> {
        let ids = tokenizer.tokens().iter().zip(0_u32..);
        let vocab: serde_json::Map<_, _> = ids
            .clone()
            .filter(|((_, kind), _)| *kind == Kind::Text)
            .map(|((text, _), id)| (text.clone(), json!(id)))
            .collect();
        let added: Vec<_> = ids
            .filter(|((_, kind), _)| matches!(kind, Kind::Special | Kind::Marker))
            .map(|((text, kind), id)| {
                json!({
                    "id": id, "content": text, "special": *kind == Kind::Special,
                    "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                })
            })
            .collect();
        let byte_level = json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
            "use_regex": false,
        });
        let split = json!({
            "type": "Split", "pattern": {"Regex": QWEN2_PATTERN}, "behavior": "Isolated",
            "invert": false,
        });
        let end_of_turn = [tokenizer.id("<|im_end|>"), tokenizer.id("<|endoftext|>")];
        vec![
            (
                "config.json",
                json!({
                    "architectures": ["Qwen2ForCausalLM"],
                    "model_type": "qwen2",
                    "hidden_act": "silu",
                    "hidden_size": self.hidden_size,
                    "intermediate_size": self.intermediate_size,
                    "num_hidden_layers": self.layers,
                    "num_attention_heads": self.attention_heads,
                    "num_key_value_heads": self.key_value_heads,
                    "max_position_embeddings": self.context_tokens,
                    "max_window_layers": self.layers,
                    "sliding_window": self.context_tokens,
                    "use_sliding_window": false,
                    "rms_norm_eps": f64::from(weights::RMS_NORM_EPS),
                    "rope_theta": f64::from(weights::ROPE_THETA),
                    "tie_word_embeddings": self.tied_head,
                    "vocab_size": tokenizer.rows(),
                    "eos_token_id": end_of_turn[0],
                }),
            ),
            (
                "tokenizer.json",
                json!({
                    "version": "1.0", "truncation": null, "padding": null,
                    "added_tokens": added,
                    "normalizer": {"type": "NFC"},
                    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
                    "post_processor": byte_level,
                    "decoder": byte_level,
                    "model": {
                        "type": "BPE", "dropout": null, "unk_token": null,
                        "continuing_subword_prefix": "", "end_of_word_suffix": "",
                        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                        "vocab": vocab, "merges": tokenizer.merges(),
                    },
                }),
            ),
            (
                "tokenizer_config.json",
                json!({
                    "chat_template": tokenizer::CHAT_TEMPLATE,
                    "bos_token": null,
                    "eos_token": "<|im_end|>",
                }),
            ),
            ("generation_config.json", json!({"eos_token_id": end_of_turn})),
        ]
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), InferError> {
    std::fs::write(path, bytes).map_err(|source| InferError::Io { path: path.to_owned(), source })
}
