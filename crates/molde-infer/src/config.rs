//! The shape of a Qwen2 model, from either container, checked before a tensor is read.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::InferError;
use crate::gguf::{Gguf, Value, shorten};

const ARCHITECTURE: &str = "qwen2";

/// The shape of a Qwen2 model. All sizes are numbers of values unless they say otherwise.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward block.
    pub intermediate_size: usize,
    /// Number of transformer layers.
    pub layers: usize,
    /// Query heads of each layer. Divides `hidden_size`.
    pub attention_heads: usize,
    /// Key and value heads of each layer. Divides `attention_heads`.
    pub key_value_heads: usize,
    /// Longest sequence the model was made for, in tokens.
    pub context_tokens: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
}

impl ModelConfig {
    /// Values a head: `hidden_size / attention_heads`. Even.
    pub fn head_size(&self) -> usize {
        self.hidden_size / self.attention_heads
    }

    /// Values of all keys (or all values) of one position in one layer.
    pub fn key_value_size(&self) -> usize {
        self.head_size() * self.key_value_heads
    }

    pub(crate) fn from_gguf(gguf: &Gguf<'_>) -> Result<Self, InferError> {
        let path = gguf.path();
        let architecture = gguf.text("general.architecture")?;
        if architecture != ARCHITECTURE {
            return Err(unsupported(path, "general.architecture", architecture, ARCHITECTURE));
        }
        if let Some(scaling) = gguf.optional_text("qwen2.rope.scaling.type")?
            && scaling != "none"
        {
            return Err(unsupported(path, "qwen2.rope.scaling.type", scaling, "none"));
        }
        let checks = Checks { path };
        let heads = gguf.unsigned("qwen2.attention.head_count")?;
        let config = checks.config(&Raw {
            hidden_size: gguf.unsigned("qwen2.embedding_length")?,
            intermediate_size: gguf.unsigned("qwen2.feed_forward_length")?,
            layers: gguf.unsigned("qwen2.block_count")?,
            attention_heads: heads,
            key_value_heads: gguf
                .optional_unsigned("qwen2.attention.head_count_kv")?
                .unwrap_or(heads),
            context_tokens: gguf.unsigned("qwen2.context_length")?,
            rms_norm_eps: gguf
                .optional_float("qwen2.attention.layer_norm_rms_epsilon")?
                .unwrap_or(1e-6),
            rope_theta: gguf.optional_float("qwen2.rope.freq_base")?.unwrap_or(10_000.0),
        })?;
        for key in [
            "qwen2.rope.dimension_count",
            "qwen2.attention.key_length",
            "qwen2.attention.value_length",
        ] {
            if let Some(size) = gguf.optional_unsigned(key)?
                && size != config.head_size() as u64
            {
                let expected = "embedding_length / attention.head_count";
                return Err(gguf.wrong(key, expected, &Value::Unsigned(size)));
            }
        }
        Ok(config)
    }

    /// The configuration, and whether the output head shares the embedding table.
    pub(crate) fn from_json(path: &Path, text: &str) -> Result<(Self, bool), InferError> {
        let json: ConfigJson = serde_json::from_str(text)
            .map_err(|source| InferError::Json { path: path.to_owned(), source })?;
        if json.model_type != ARCHITECTURE {
            return Err(unsupported(path, "model_type", &json.model_type, ARCHITECTURE));
        }
        if json.hidden_act != "silu" {
            return Err(unsupported(path, "hidden_act", &json.hidden_act, "silu"));
        }
        if json.use_sliding_window {
            return Err(unsupported(path, "use_sliding_window", "true", "false"));
        }
        let rope = json.rope_parameters.unwrap_or_default();
        let scaling = json.rope_scaling.unwrap_or_default();
        for kind in [&rope.rope_type, &scaling.rope_type, &scaling.kind].into_iter().flatten() {
            if kind != "default" {
                return Err(unsupported(path, "rope_scaling", kind, "default"));
            }
        }
        let config = Checks { path }.config(&Raw {
            hidden_size: json.hidden_size,
            intermediate_size: json.intermediate_size,
            layers: json.num_hidden_layers,
            attention_heads: json.num_attention_heads,
            key_value_heads: json.num_key_value_heads.unwrap_or(json.num_attention_heads),
            context_tokens: json.max_position_embeddings,
            rms_norm_eps: json.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: json.rope_theta.or(rope.rope_theta).unwrap_or(10_000.0),
        })?;
        Ok((config, json.tie_word_embeddings))
    }
}

fn unsupported(path: &Path, key: &'static str, got: &str, supported: &'static str) -> InferError {
    InferError::Unsupported { path: path.to_owned(), key, got: shorten(got), supported }
}

/// The fields of config.json that decide; others are ignored.
#[derive(Deserialize)]
struct ConfigJson {
    model_type: String,
    #[serde(default = "silu")]
    hidden_act: String,
    hidden_size: u64,
    intermediate_size: u64,
    num_hidden_layers: u64,
    num_attention_heads: u64,
    num_key_value_heads: Option<u64>,
    max_position_embeddings: u64,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RopeJson>,
    rope_parameters: Option<RopeJson>,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default)]
    tie_word_embeddings: bool,
}

#[derive(Deserialize, Default)]
struct RopeJson {
    rope_theta: Option<f64>,
    rope_type: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

fn silu() -> String {
    "silu".to_owned()
}

/// The numbers as found, under the names of [`ModelConfig`].
struct Raw {
    hidden_size: u64,
    intermediate_size: u64,
    layers: u64,
    attention_heads: u64,
    key_value_heads: u64,
    context_tokens: u64,
    rms_norm_eps: f64,
    rope_theta: f64,
}

struct Checks<'p> {
    path: &'p Path,
}

impl Checks<'_> {
    /// Larger than any model, small enough that no product of two sizes overflows.
    const LARGEST_SIZE: u64 = 1 << 24;

    fn config(&self, raw: &Raw) -> Result<ModelConfig, InferError> {
        let config = ModelConfig {
            hidden_size: self.size("hidden size", raw.hidden_size)?,
            intermediate_size: self.size("feed-forward size", raw.intermediate_size)?,
            layers: self.size("number of layers", raw.layers)?,
            attention_heads: self.size("number of attention heads", raw.attention_heads)?,
            key_value_heads: self.size("number of key-value heads", raw.key_value_heads)?,
            context_tokens: self.size("context length", raw.context_tokens)?,
            rms_norm_eps: self.positive("RMSNorm epsilon", raw.rms_norm_eps)?,
            rope_theta: self.positive("rotary base", raw.rope_theta)?,
        };
        if !config.hidden_size.is_multiple_of(config.attention_heads) {
            let expected = "a divisor of the hidden size";
            return Err(self.bad("number of attention heads", expected, &config.attention_heads));
        }
        if !config.attention_heads.is_multiple_of(config.key_value_heads) {
            let expected = "a divisor of the number of attention heads";
            return Err(self.bad("number of key-value heads", expected, &config.key_value_heads));
        }
        if !config.head_size().is_multiple_of(2) {
            let expected = "an even number, for rotary positions";
            return Err(self.bad("head size", expected, &config.head_size()));
        }
        Ok(config)
    }

    fn size(&self, key: &str, value: u64) -> Result<usize, InferError> {
        if (1..=Self::LARGEST_SIZE).contains(&value) {
            Ok(value as usize)
        } else {
            Err(self.bad(key, "a number from 1 to 16777216", &value))
        }
    }

    fn positive(&self, key: &str, value: f64) -> Result<f64, InferError> {
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(self.bad(key, "a finite number above 0", &value))
        }
    }

    fn bad(&self, key: &str, expected: &'static str, got: &impl ToString) -> InferError {
        let path: PathBuf = self.path.to_owned();
        InferError::KeyValue { path, key: key.to_owned(), expected, got: got.to_string() }
    }
}
