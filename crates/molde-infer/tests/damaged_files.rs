//! Damaged and hostile files: an error that says what, never a panic.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{InferError, LoadedModel, ModelOptions};
use support::Random;

fn load(path: &Path) -> Result<LoadedModel, InferError> {
    LoadedModel::load(path, &ModelOptions::default())
}

fn expect_error(path: &Path, what: &str) -> InferError {
    match load(path) {
        Ok(_) => panic!("{what}: accepted"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error
        }
    }
}

/// A tiny GGUF file whose parts a test can change before it is written.
struct Parts {
    metadata: BTreeMap<String, Value>,
    tensors: BTreeMap<String, QTensor>,
}

impl Parts {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        TinyModel::default().write_gguf(&path, TinyDtype::Q8_0).unwrap();
        let mut file = File::open(&path).unwrap();
        let content = Content::read(&mut file).unwrap();
        let tensors = content
            .tensor_infos
            .keys()
            .map(|name| (name.clone(), content.tensor(&mut file, name, &Device::Cpu).unwrap()))
            .collect();
        Self { metadata: content.metadata.into_iter().collect(), tensors }
    }

    fn write(&self, path: &Path) {
        let metadata: Vec<_> = self.metadata.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let tensors: Vec<_> = self.tensors.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let mut file = BufWriter::new(File::create(path).unwrap());
        gguf_file::write(&mut file, &metadata, &tensors).unwrap();
    }

    fn zeros(&mut self, name: &str, shape: &[usize], dtype: GgmlDType) {
        let zeros = Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu).unwrap();
        self.tensors.insert(name.to_owned(), QTensor::quantize(&zeros, dtype).unwrap());
    }
}

/// One change, and what the message must name.
type Case = (&'static str, fn(&mut Parts), &'static [&'static str]);

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

const CASES: &[Case] = &[
    (
        "another architecture",
        |p| drop(p.metadata.insert("general.architecture".into(), text("llama"))),
        &["general.architecture", "llama", "qwen2"],
    ),
    (
        "no architecture",
        |p| drop(p.metadata.remove("general.architecture")),
        &["general.architecture", "missing"],
    ),
    (
        "an architecture that is a number",
        |p| drop(p.metadata.insert("general.architecture".into(), Value::U32(7))),
        &["general.architecture", "7", "a text"],
    ),
    (
        "another pre-tokenizer",
        |p| drop(p.metadata.insert("tokenizer.ggml.pre".into(), text("llama-bpe"))),
        &["tokenizer.ggml.pre", "llama-bpe", "qwen2"],
    ),
    (
        "another tokenizer",
        |p| drop(p.metadata.insert("tokenizer.ggml.model".into(), text("llama"))),
        &["tokenizer.ggml.model", "gpt2"],
    ),
    (
        "heads that do not divide the hidden size",
        |p| drop(p.metadata.insert("qwen2.attention.head_count".into(), Value::U32(3))),
        &["attention heads", "divisor", "3"],
    ),
    (
        "key-value heads that do not divide the heads",
        |p| drop(p.metadata.insert("qwen2.attention.head_count_kv".into(), Value::U32(3))),
        &["key-value heads", "divisor"],
    ),
    (
        "no heads",
        |p| drop(p.metadata.insert("qwen2.attention.head_count".into(), Value::U32(0))),
        &["attention heads", "0"],
    ),
    (
        "more layers than the file has",
        |p| drop(p.metadata.insert("qwen2.block_count".into(), Value::U32(3))),
        &["blk.2.", "missing"],
    ),
    (
        "four billion layers",
        |p| drop(p.metadata.insert("qwen2.block_count".into(), Value::U32(u32::MAX))),
        &["layers", "4294967295"],
    ),
    (
        "another hidden size than the tensors",
        |p| drop(p.metadata.insert("qwen2.embedding_length".into(), Value::U32(128))),
        &["token_embd.weight", "128", "64"],
    ),
    (
        "rotary scaling",
        |p| drop(p.metadata.insert("qwen2.rope.scaling.type".into(), text("yarn"))),
        &["rope.scaling", "yarn"],
    ),
    (
        "a rotary base that is not a number",
        |p| drop(p.metadata.insert("qwen2.rope.freq_base".into(), Value::F32(f32::NAN))),
        &["rope.freq_base", "NaN"],
    ),
    (
        "rotary positions on a part of the head",
        |p| drop(p.metadata.insert("qwen2.rope.dimension_count".into(), Value::U32(8))),
        &["rope.dimension_count", "8"],
    ),
    (
        "fewer token types than tokens",
        |p| {
            let types = Value::Array(vec![Value::I32(1); 3]);
            p.metadata.insert("tokenizer.ggml.token_type".into(), types);
        },
        &["token_type", "3"],
    ),
    (
        "merges that join nothing",
        |p| {
            let merges = Value::Array(vec![text("a b c"), text("zzz yyy")]);
            p.metadata.insert("tokenizer.ggml.merges".into(), merges);
        },
        &["merge rule 0"],
    ),
    (
        "a chat template that does not parse",
        |p| drop(p.metadata.insert("tokenizer.chat_template".into(), text("{% for"))),
        &["template"],
    ),
    (
        "an end-of-turn token that is a text token",
        |p| drop(p.metadata.insert("tokenizer.ggml.eos_token_id".into(), Value::U32(65))),
        &["65"],
    ),
    (
        "an end-of-turn token that does not exist",
        |p| drop(p.metadata.insert("tokenizer.ggml.eos_token_id".into(), Value::U32(1 << 31))),
        &["2147483648"],
    ),
    (
        "a missing tensor",
        |p| drop(p.tensors.remove("blk.1.ffn_up.weight")),
        &["blk.1.ffn_up.weight", "missing"],
    ),
    (
        "a tensor of another shape",
        |p| p.zeros("blk.0.attn_k.weight", &[64, 64], GgmlDType::Q8_0),
        &["blk.0.attn_k.weight", "[64, 64]", "[32, 64]"],
    ),
    (
        "a vector with two dimensions",
        |p| p.zeros("output_norm.weight", &[1, 64], GgmlDType::F32),
        &["output_norm.weight", "[1, 64]", "[64]"],
    ),
    (
        "an embedding table with fewer rows than tokens",
        |p| p.zeros("token_embd.weight", &[96, 64], GgmlDType::Q8_0),
        &["96"],
    ),
    (
        "a type of weights that is not read",
        |p| p.zeros("token_embd.weight", &[512, 256], GgmlDType::Q2K),
        &["token_embd.weight", "number 10"],
    ),
    (
        "an alignment of zero",
        |p| drop(p.metadata.insert("general.alignment".into(), Value::U32(0))),
        &["general.alignment", "0"],
    ),
    (
        "an alignment that is no power of two",
        |p| drop(p.metadata.insert("general.alignment".into(), Value::U32(24))),
        &["general.alignment", "24"],
    ),
];

#[test]
fn every_contradiction_in_a_gguf_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.gguf");
    Parts::new().write(&path);
    load(&path).unwrap();
    for (what, change, mentions) in CASES {
        let mut parts = Parts::new();
        change(&mut parts);
        parts.write(&path);
        let message = expect_error(&path, what).to_string();
        assert!(mentions.iter().all(|m| message.contains(m)), "{what}: {message}");
    }
}

#[test]
fn weights_that_are_not_numbers_are_an_error_while_decoding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nan.gguf");
    let mut parts = Parts::new();
    let values = Tensor::full(f32::NAN, 64, &Device::Cpu).unwrap();
    let norm = QTensor::quantize(&values, GgmlDType::F32).unwrap();
    parts.tensors.insert("output_norm.weight".into(), norm);
    parts.write(&path);
    let loaded = load(&path).unwrap();
    let request = molde_infer::GenerateRequest::new(vec![1, 2, 3], 5);
    let mut cache = loaded.model.new_cache(0);
    let (model, tokenizer) = (&loaded.model, &loaded.tokenizer);
    let result = molde_infer::generate(model, tokenizer, &request, &mut cache, None, &mut |_| {});
    assert!(matches!(result, Err(InferError::NotFinite { .. })), "{result:?}");
}

#[test]
fn a_matrix_with_a_weight_that_is_not_a_number_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nan.gguf");
    let mut parts = Parts::new();
    let mut values = vec![0.5_f32; 64 * 64];
    values[64 * 3 + 5] = f32::NAN;
    let values = Tensor::from_vec(values, (64, 64), &Device::Cpu).unwrap();
    let matrix = QTensor::quantize(&values, GgmlDType::F32).unwrap();
    parts.tensors.insert("blk.0.attn_q.weight".into(), matrix);
    parts.write(&path);
    let error = expect_error(&path, "a weight that is not a number");
    assert!(matches!(error, InferError::Weights { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("blk.0.attn_q.weight") && message.contains("[3, 5]"), "{message}");
}

#[test]
fn a_gguf_file_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.gguf");
    TinyModel::default().write_gguf(&path, TinyDtype::Q8_0).unwrap();
    let whole = fs::read(&path).unwrap();
    let cut = folder.path().join("cut.gguf");
    let lengths =
        (0..20).map(|part| whole.len() * part / 20).chain(0..40).chain([whole.len() - 40]);
    for length in lengths {
        fs::write(&cut, &whole[..length]).unwrap();
        let error = expect_error(&cut, &format!("{length} bytes"));
        assert!(error.to_string().contains("cut.gguf"), "{error}");
    }
}

#[test]
fn lengths_that_overflow_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.gguf");
    for length in [1_u64 << 60, u64::MAX, 1 << 32, 1 << 63] {
        let number = |number: u64| number.to_le_bytes().to_vec();
        let header = |tensors: u64, metadata: u64| {
            [b"GGUF".to_vec(), 3_u32.to_le_bytes().to_vec(), number(tensors), number(metadata)]
                .concat()
        };
        let key = [number(1), b"k".to_vec()].concat();
        let kind = |kind: u32| kind.to_le_bytes().to_vec();
        let dims = |dims: &[u64]| {
            let mut bytes = kind(dims.len() as u32);
            bytes.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
            bytes
        };
        let files = [
            header(length, 0),
            header(0, length),
            [header(0, 1), number(length)].concat(),
            [header(0, 1), key.clone(), kind(8), number(length)].concat(),
            [header(0, 1), key.clone(), kind(9), kind(0), number(length)].concat(),
            [header(0, 1), key.clone(), kind(9), kind(8), number(length)].concat(),
            [header(0, 1), key.clone(), kind(9), kind(9), number(length)].concat(),
            [header(0, 1), key.clone(), kind(99)].concat(),
            [header(1, 0), key.clone(), dims(&[length, length, length]), kind(0), number(0)]
                .concat(),
            [header(1, 0), key.clone(), dims(&[length]), kind(8), number(0)].concat(),
            [header(1, 0), key.clone(), dims(&[32]), kind(8), number(length)].concat(),
            [header(1, 0), key.clone(), kind(u32::MAX)].concat(),
            [header(1, 0), key.clone(), dims(&[0]), kind(0), number(0)].concat(),
        ];
        for (index, bytes) in files.iter().enumerate() {
            fs::write(&path, bytes).unwrap();
            expect_error(&path, &format!("file {index}, length {length}"));
        }
    }
}

#[test]
fn what_is_no_model_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for bytes in [&b""[..], b"GG", b"PK\x03\x04 and more", b"FUGG\x03\0\0\0"] {
        fs::write(&path, bytes).unwrap();
        let error = expect_error(&path, "no magic");
        assert!(matches!(error, InferError::NotAModel { .. }), "{error}");
    }
    for version in [0_u32, 1, 4, 1 << 24] {
        fs::write(&path, [b"GGUF".to_vec(), version.to_le_bytes().to_vec()].concat()).unwrap();
        let error = expect_error(&path, "version");
        assert!(matches!(error, InferError::GgufVersion { got, .. } if got == version), "{error}");
    }
    let error = expect_error(&folder.path().join("nowhere"), "no file");
    assert!(matches!(error, InferError::Io { .. }), "{error}");
    let error = expect_error(folder.path(), "an empty folder");
    assert!(error.to_string().contains("config.json"), "{error}");
}

#[test]
fn a_thousand_flipped_bytes_never_make_it_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.gguf");
    // Few tensors, so that most of the file is header.
    let shape = TinyModel {
        layers: 1,
        hidden_size: 32,
        intermediate_size: 32,
        attention_heads: 2,
        ..TinyModel::default()
    };
    shape.write_gguf(&path, TinyDtype::Q4_0).unwrap();
    let whole = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.gguf");
    let mut random = Random(11);
    let (mut refused, mut loaded) = (0, 0);
    for round in 0..1000 {
        let mut bytes = whole.clone();
        // Half of them in the first kilobyte, where a byte decides most.
        let limit = if round % 2 == 0 { 1024 } else { bytes.len() };
        for _ in 0..=round % 3 {
            let at = random.below(limit);
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&damaged, &bytes).unwrap();
        match load(&damaged) {
            Err(_) => refused += 1,
            Ok(model) => {
                loaded += 1;
                let mut cache = model.model.new_cache(0);
                // Damaged weights give other numbers, or an error.
                let _ = model.model.forward(&[1, 2, 3], &mut cache);
                let _ = model.tokenizer.encode_text("a text, 12 años");
            }
        }
    }
    assert!(refused > 100 && loaded > 100, "both must occur: {refused}, {loaded}");
}

#[test]
fn damaged_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let reset = || TinyModel::default().write_folder(folder.path(), TinyDtype::BF16, 1).unwrap();
    reset();
    load(folder.path()).unwrap();

    let weights = fs::read(folder.path().join("model.safetensors")).unwrap();
    for part in 0..20 {
        write("model.safetensors", &weights[..weights.len() * part / 20]);
        expect_error(folder.path(), "a cut file");
    }
    for length in [1_u64 << 60, u64::MAX, 1 << 32] {
        let mut bytes = weights.clone();
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        write("model.safetensors", &bytes);
        expect_error(folder.path(), "a header length that overflows");
    }
    let mut random = Random(12);
    let mut refused = 0;
    for _ in 0..200 {
        let mut bytes = weights.clone();
        let at = random.below(4096);
        bytes[at] = random.below(256) as u8;
        write("model.safetensors", &bytes);
        match load(folder.path()) {
            Err(_) => refused += 1,
            Ok(model) => drop(model.model.forward(&[1], &mut model.model.new_cache(0))),
        }
    }
    assert!(refused > 20, "{refused}");

    for name in ["config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json"]
    {
        reset();
        let whole = fs::read(folder.path().join(name)).unwrap();
        for part in 0..10 {
            write(name, &whole[..whole.len() * part / 10]);
            let message = expect_error(folder.path(), name).to_string();
            assert!(message.contains(name), "{name}: {message}");
        }
        write(name, &[0xFF, 0xFE]);
        expect_error(folder.path(), name);
    }
}

#[test]
fn every_contradiction_in_a_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            "config.json",
            "\"model_type\":\"qwen2\"",
            "\"model_type\":\"llama\"",
            &["model_type", "llama", "qwen2"],
        ),
        (
            "config.json",
            "\"hidden_act\":\"silu\"",
            "\"hidden_act\":\"gelu\"",
            &["hidden_act", "gelu"],
        ),
        (
            "config.json",
            "\"use_sliding_window\":false",
            "\"use_sliding_window\":true",
            &["use_sliding_window"],
        ),
        ("config.json", "\"hidden_size\":64", "\"hidden_size\":128", &["embed_tokens", "128"]),
        ("config.json", "\"hidden_size\":64", "\"hidden_size\":-64", &["config.json"]),
        (
            "config.json",
            "\"rope_theta\":1000000.0",
            "\"rope_scaling\":{\"rope_type\":\"yarn\"}",
            &["rope_scaling", "yarn"],
        ),
        (
            "config.json",
            "\"tie_word_embeddings\":true",
            "\"tie_word_embeddings\":false",
            &["lm_head.weight", "missing"],
        ),
        ("tokenizer.json", "\"type\":\"BPE\"", "\"type\":\"Unigram\"", &["model.type", "Unigram"]),
        ("tokenizer.json", "\"type\":\"NFC\"", "\"type\":\"NFKC\"", &["normalizer", "NFKC", "NFC"]),
        ("tokenizer.json", "|\\\\p{N}|", "|\\\\p{N}{1,3}|", &["pre_tokenizer", "Qwen2"]),
        ("tokenizer.json", "\"byte_fallback\":false", "\"byte_fallback\":true", &["byte_fallback"]),
        ("tokenizer.json", "\"!\":33,", "\"!\":4000000000,", &["token id", "4000000000"]),
        ("tokenizer.json", "\"!\":33,", "\"!!!\":33,", &["0x21"]),
        ("tokenizer.json", "\"!\":33,", "\"!\":34,", &["token id 34"]),
    ];
    for (name, from, to, mentions) in cases {
        TinyModel::default().write_folder(folder.path(), TinyDtype::F32, 1).unwrap();
        let path = folder.path().join(name);
        let content = fs::read_to_string(&path).unwrap();
        let changed = content.replacen(from, to, 1);
        assert_ne!(content, changed, "{from} is not in {name}");
        fs::write(&path, changed).unwrap();
        let message = expect_error(folder.path(), to).to_string();
        assert!(mentions.iter().all(|m| message.contains(m)), "{to}: {message}");
    }
    // An index cannot name a file outside of the folder, or one that is not there.
    let other = tempfile::tempdir().unwrap();
    TinyModel::default().write_folder(other.path(), TinyDtype::F32, 2).unwrap();
    load(other.path()).unwrap();
    let index = other.path().join("model.safetensors.index.json");
    let content = fs::read_to_string(&index).unwrap();
    let shard = "model-00001-of-00002.safetensors";
    for name in ["../model.safetensors", "/model.safetensors", "..", "nothing.safetensors"] {
        fs::write(&index, content.replace(shard, name)).unwrap();
        expect_error(other.path(), name);
    }
}
