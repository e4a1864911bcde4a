//! What several tests need.
// Test code; each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{LoadedModel, ModelOptions, Precision};

const VARIABLE: &str = "MOLDE_TEST_MODEL";
const REPOSITORY: &str = "models--Qwen--Qwen2.5-Coder-0.5B-Instruct-GGUF";
const FILE: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";

/// The real model file of the tests: `MOLDE_TEST_MODEL`, else the hub cache.
///
/// Without it a test is skipped, with a message; in CI it fails.
pub(crate) fn real_model() -> Option<PathBuf> {
    let found = std::env::var_os(VARIABLE).map(PathBuf::from).or_else(cached);
    if found.is_none() {
        let message = format!("no weights: set {VARIABLE}, or run `molde pull` for {FILE}");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
        println!("skipped: {message}");
    }
    found
}

fn cached() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let hub = std::env::var_os("HF_HUB_CACHE").map(PathBuf::from).or_else(|| {
        let hugging_face = std::env::var_os("HF_HOME").map(PathBuf::from);
        Some(hugging_face.or_else(|| home().map(|cache| cache.join("huggingface")))?.join("hub"))
    })?;
    let snapshots = std::fs::read_dir(hub.join(REPOSITORY).join("snapshots")).ok()?;
    let mut files: Vec<_> =
        snapshots.flatten().map(|entry| entry.path().join(FILE)).filter(|f| f.exists()).collect();
    files.sort();
    files.into_iter().next()
}

/// A file beside the project that is not part of it, if it is there.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// A tiny model in a GGUF file, loaded.
pub(crate) fn tiny(shape: &TinyModel, dtype: TinyDtype, options: &ModelOptions) -> LoadedModel {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    shape.write_gguf(&path, dtype).unwrap();
    LoadedModel::load(&path, options).unwrap()
}

pub(crate) fn options(precision: Precision) -> ModelOptions {
    ModelOptions { precision, ..ModelOptions::default() }
}

/// Numbers that look random and are the same everywhere: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    pub(crate) fn tokens(&mut self, count: usize, limit: usize) -> Vec<u32> {
        (0..count).map(|_| self.below(limit) as u32).collect()
    }

    /// A text of `pieces` pieces: words, spaces, digits, other scripts, and the spellings of
    /// control tokens.
    pub(crate) fn text(&mut self, pieces: usize) -> String {
        const PIECES: &[&str] = &[
            "precio",
            " the",
            " bank",
            "\n",
            "\n\n",
            "  ",
            "\t",
            " ",
            "é",
            "ñandú",
            "e\u{301}",
            "2.5",
            "1234",
            "{\"",
            "\": ",
            "',",
            "'s",
            "'LL",
            "日本語",
            "한국",
            "🎉",
            "👩‍👩‍👧",
            "\u{0}",
            "\r\n",
            "ß",
            "İ",
            "ﬁ",
            "\u{200b}",
            "…",
            "--",
            "<",
            "|",
            ">",
            "im_end",
            "\u{E000}",
        ];
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    /// The same, with spellings of control tokens in it.
    pub(crate) fn hostile_text(&mut self, pieces: usize) -> String {
        const MARKERS: &[&str] = &[
            "<|im_end|>",
            "<|im_start|>",
            "<|im_start|>system\n",
            "<|endoftext|>",
            "<tool_call>",
            "</tool_call>",
            "<|im_",
            "end|>",
            "<|im_end|>\n<|im_start|>assistant\n",
            "<|im_<|im_end|>end|>",
        ];
        (0..pieces)
            .map(|_| match self.below(3) {
                0 => MARKERS[self.below(MARKERS.len())].to_owned(),
                _ => self.text(1),
            })
            .collect()
    }
}

/// The Kullback-Leibler divergence of two distributions given by logits, in nats.
pub(crate) fn divergence(reference: &[f32], other: &[f32]) -> f64 {
    let log_sum_exp = |logits: &[f32]| {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&l| f64::from(l - max).exp()).sum();
        sum.ln() + f64::from(max)
    };
    let (a, b) = (log_sum_exp(reference), log_sum_exp(other));
    reference
        .iter()
        .zip(other)
        .map(|(&x, &y)| {
            let (log_p, log_q) = (f64::from(x) - a, f64::from(y) - b);
            log_p.exp() * (log_p - log_q)
        })
        .sum()
}

/// The largest difference of two vectors, in units of the first one's standard deviation.
pub(crate) fn relative_difference(reference: &[f32], other: &[f32]) -> f32 {
    assert_eq!(reference.len(), other.len());
    let count = reference.len() as f32;
    let mean = reference.iter().sum::<f32>() / count;
    let variance = reference.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / count;
    let largest = reference.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    largest / variance.sqrt()
}
