//! Logits against candle-transformers' own Qwen2 models, on the tiny model.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;

use std::fs::File;
use std::num::NonZeroUsize;

use candle_core::quantized::gguf_file::Content;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{quantized_qwen2, qwen2};
use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{InferError, LoadedModel, ModelOptions, Precision};
use support::{Random, divergence, options, relative_difference, tiny};

/// A largest difference in standard deviations, and divergence in nats.
type Deviation = (f32, f64);

/// What the rounding of activations makes: the largest deviation of native logits from exact ones,
/// and from candle's, which rounds in other blocks. Measured on 2026-11-30 on x86-64 with
/// AVX-512 by this test, which allows [`MARGIN`] times as much.
///
/// Untrained weights make sharp distributions, for which a rounding counts more than in a trained
/// model: `real_model.rs` has the bound that matters.
fn rounding(dtype: TinyDtype) -> (Deviation, Deviation) {
    match dtype {
        TinyDtype::F32 => ((0.136, 0.0233), (0.136, 0.0233)),
        TinyDtype::F16 => ((0.168, 0.0388), (0.168, 0.0388)),
        TinyDtype::BF16 => ((0.120, 0.0093), (0.120, 0.0093)),
        TinyDtype::Q8_0 => ((0.068, 0.0055), (0.076, 0.0051)),
        TinyDtype::Q4_0 => ((0.154, 0.0102), (0.085, 0.0031)),
        TinyDtype::Q4_1 => ((0.082, 0.0049), (0.087, 0.0107)),
        TinyDtype::Q5_0 => ((0.147, 0.0100), (0.099, 0.0037)),
        TinyDtype::Q5_1 => ((0.106, 0.0110), (0.115, 0.0045)),
        TinyDtype::Q4K => ((0.141, 0.0250), (0.180, 0.0963)),
        TinyDtype::Q5K => ((0.163, 0.0435), (0.186, 0.1085)),
        TinyDtype::Q6K => ((0.111, 0.0151), (0.206, 0.0233)),
    }
}

/// Native logits are the same to the bit on every machine, the others but for the order in which
/// `f32` products are added up: a quarter more is plenty.
const MARGIN: f32 = 1.25;

fn within((difference, kl): Deviation) -> Deviation {
    (difference * MARGIN, kl * f64::from(MARGIN))
}

/// More than one chunk of 64, then steps.
const PROMPT: usize = 70;
const STEPS: usize = 5;

fn shape_for(dtype: TinyDtype) -> TinyModel {
    match dtype {
        TinyDtype::Q4K | TinyDtype::Q5K | TinyDtype::Q6K => TinyModel::wide(),
        _ => TinyModel::default(),
    }
}

/// The logits after the prompt and after each step, by `forward(new_tokens, position)`.
fn run(mut forward: impl FnMut(&[u32], usize) -> Vec<f32>, tokens: &[u32]) -> Vec<Vec<f32>> {
    let mut all = vec![forward(&tokens[..PROMPT], 0)];
    for at in PROMPT..PROMPT + STEPS {
        all.push(forward(&tokens[at..=at], at));
    }
    all
}

fn ours(loaded: &LoadedModel, tokens: &[u32]) -> Vec<Vec<f32>> {
    let mut cache = loaded.model.new_cache(0);
    run(|new, _| loaded.model.forward(new, &mut cache).unwrap(), tokens)
}

fn input(tokens: &[u32]) -> Tensor {
    Tensor::new(tokens, &Device::Cpu).unwrap().unsqueeze(0).unwrap()
}

fn compare(what: &str, oracle: &[Vec<f32>], ours: &[Vec<f32>], (difference, kl): (f32, f64)) {
    for (step, (oracle, ours)) in oracle.iter().zip(ours).enumerate() {
        // The oracle has logits for padding as well.
        let oracle = &oracle[..ours.len()];
        let found = relative_difference(oracle, ours);
        assert!(found <= difference, "{what}, step {step}: {found} standard deviations");
        let found = divergence(oracle, ours);
        assert!(found <= kl, "{what}, step {step}: {found} nats");
    }
}

#[test]
fn gguf_logits_agree_for_every_type_of_weights() {
    let folder = tempfile::tempdir().unwrap();
    for (index, dtype) in TinyDtype::ALL.into_iter().enumerate() {
        for tied_head in [true, false] {
            let shape = TinyModel { tied_head, ..shape_for(dtype) };
            let path = folder.path().join("tiny.gguf");
            shape.write_gguf(&path, dtype).unwrap();
            let loaded = LoadedModel::load(&path, &ModelOptions::default()).unwrap();
            let limit = loaded.model.vocabulary_len();
            let tokens = Random(index as u64).tokens(PROMPT + STEPS, limit);

            let mut file = File::open(&path).unwrap();
            let content = Content::read(&mut file).unwrap();
            let mut oracle =
                quantized_qwen2::ModelWeights::from_gguf(content, &mut file, &Device::Cpu).unwrap();
            let expected = run(
                |new, at| {
                    let logits = oracle.forward(&input(new), at).unwrap();
                    logits.flatten_all().unwrap().to_vec1().unwrap()
                },
                &tokens,
            );
            let what = format!("{dtype:?}, tied head: {tied_head}");
            let native = ours(&loaded, &tokens);
            let exact = LoadedModel::load(&path, &options(Precision::Exact)).unwrap();
            let exact = ours(&exact, &tokens);
            let (from_exact, from_candle) = rounding(dtype);
            compare(&what, &exact, &native, within(from_exact));
            compare(&what, &expected, &native, within(from_candle));
            if TinyDtype::FLOATS.contains(&dtype) {
                // Measured: 3.7e-6 standard deviations, 9.3e-10 nats.
                compare(&what, &expected, &exact, (1e-5, 4e-9));
            }
        }
    }
}

#[test]
fn safetensors_logits_agree_for_every_float_type_and_number_of_shards() {
    for (index, dtype) in TinyDtype::FLOATS.into_iter().enumerate() {
        for (tied_head, shards) in [(true, 1), (false, 3)] {
            let shape = TinyModel { tied_head, ..TinyModel::default() };
            let folder = tempfile::tempdir().unwrap();
            shape.write_folder(folder.path(), dtype, shards).unwrap();
            let exact = LoadedModel::load(folder.path(), &options(Precision::Exact)).unwrap();
            let limit = exact.model.vocabulary_len();
            let tokens = Random(100 + index as u64).tokens(PROMPT + STEPS, limit);

            let mut files: Vec<_> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|e| e == "safetensors"))
                .collect();
            files.sort();
            assert_eq!(files.len(), shards);
            let buffers: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
            let mut tensors = std::collections::HashMap::new();
            for buffer in &buffers {
                tensors.extend(
                    candle_core::safetensors::load_buffer(buffer, &Device::Cpu)
                        .unwrap()
                        .into_iter()
                        .map(|(name, tensor)| (name, tensor.to_dtype(DType::F32).unwrap())),
                );
            }
            let config = std::fs::read(folder.path().join("config.json")).unwrap();
            let config: qwen2::Config = serde_json::from_slice(&config).unwrap();
            let builder = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
            let mut oracle = qwen2::ModelForCausalLM::new(&config, builder).unwrap();
            let expected = run(
                |new, at| {
                    let logits = oracle.forward(&input(new), at).unwrap();
                    logits.flatten_all().unwrap().to_vec1().unwrap()
                },
                &tokens,
            );
            let what = format!("{dtype:?}, {shards} shards");
            // Measured: 4.4e-6 standard deviations, 3.7e-10 nats.
            compare(&what, &expected, &ours(&exact, &tokens), (1e-5, 4e-9));
        }
    }
}

#[test]
fn floats_are_quantized_alike_from_both_containers_and_much_as_a_q8_0_file_is() {
    for dtype in TinyDtype::FLOATS {
        let shape = TinyModel::default();
        let folder = tempfile::tempdir().unwrap();
        // In a folder of another type the vectors are rounded as well, in a GGUF file they are not.
        shape.write_folder(folder.path(), TinyDtype::F32, 2).unwrap();
        let folder = LoadedModel::load(folder.path(), &options(Precision::Native)).unwrap();
        let floats = tiny(&shape, dtype, &options(Precision::Native));
        let file = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Native));
        let tokens = Random(9).tokens(PROMPT + STEPS, file.model.vocabulary_len());
        let (folder_logits, float_logits) = (ours(&folder, &tokens), ours(&floats, &tokens));
        if dtype == TinyDtype::F32 {
            assert!(folder_logits == float_logits);
        }
        // Another quantizer rounds the weights of the file. Measured as in `rounding`.
        let limits = within((0.284, 0.0409));
        compare("Q8_0 file", &ours(&file, &tokens), &float_logits, limits);
        assert_eq!(floats.model.memory_usage(), file.model.memory_usage());
        assert_eq!(folder.model.memory_usage(), file.model.memory_usage());
    }
}

#[test]
fn exact_precision_is_close_to_native_but_not_the_same() {
    let shape = TinyModel::default();
    let exact = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Exact));
    let native = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Native));
    let tokens = Random(7).tokens(PROMPT + STEPS, exact.model.vocabulary_len());
    let (exact, native) = (ours(&exact, &tokens), ours(&native, &tokens));
    // Measured as in `rounding`, on other tokens.
    compare("exact against native", &exact, &native, within((0.107, 0.0091)));
    assert_ne!(exact, native);
}

#[test]
fn native_logits_are_the_same_to_the_bit_for_any_chunks_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    for dtype in TinyDtype::ALL {
        shape_for(dtype).write_gguf(&path, dtype).unwrap();
        let all_logits = |tokens: Option<&[u32]>, chunk, threads| {
            let options = ModelOptions {
                prefill_chunk_tokens: NonZeroUsize::new(chunk).unwrap(),
                threads: NonZeroUsize::new(threads),
                ..ModelOptions::default()
            };
            let model = LoadedModel::load(&path, &options).unwrap().model;
            let random = Random(3).tokens(70, model.vocabulary_len());
            let tokens = tokens.unwrap_or(&random);
            let mut cache = model.new_cache(0);
            let logits = model.forward_all(tokens, &mut cache).unwrap();
            assert_eq!(cache.tokens(), tokens);
            assert_eq!(logits.len(), tokens.len());
            (random, logits)
        };
        let (tokens, expected) = all_logits(None, 1, 1);
        // Every size of a chunk for one type, some for the others.
        let step = if dtype == TinyDtype::Q5_0 { 1 } else { 13 };
        for chunk in (1..=64).step_by(step).chain([1000]) {
            let threads = [2, 1, 4][chunk % 3];
            let (_, logits) = all_logits(Some(&tokens), chunk, threads);
            assert!(logits == expected, "{dtype:?}, chunks of {chunk}, {threads} threads");
        }
    }
}

#[test]
fn exact_logits_depend_on_chunks_by_rounding_only() {
    let with = |chunk| ModelOptions {
        prefill_chunk_tokens: NonZeroUsize::new(chunk).unwrap(),
        ..options(Precision::Exact)
    };
    let all_logits = |chunk| {
        let model = tiny(&TinyModel::default(), TinyDtype::F32, &with(chunk)).model;
        let tokens = Random(3).tokens(70, model.vocabulary_len());
        model.forward_all(&tokens, &mut model.new_cache(0)).unwrap()
    };
    let expected = all_logits(1);
    for chunk in [7, 64] {
        for (expected, logits) in expected.iter().zip(&all_logits(chunk)) {
            // The library's f32 product adds in another order for one row than for many.
            assert!(relative_difference(expected, logits) < 1e-4, "chunks of {chunk}");
        }
    }
}

#[test]
fn a_run_of_tokens_in_one_call_gives_the_logits_of_one_call_a_token() {
    for dtype in [TinyDtype::Q8_0, TinyDtype::Q4K] {
        let model = tiny(&shape_for(dtype), dtype, &ModelOptions::default()).model;
        let tokens = Random(4).tokens(60, model.vocabulary_len());
        let mut cache = model.new_cache(0);
        let one_by_one: Vec<_> =
            tokens.iter().map(|&token| model.forward(&[token], &mut cache).unwrap()).collect();
        // Each run goes from a position that is no multiple of anything to another.
        for (first, end) in [(0, 60), (1, 2), (17, 20), (31, 60), (59, 60)] {
            let mut cache = cache.clone();
            cache.truncate(first);
            let logits = model.forward(&tokens[first..end], &mut cache).unwrap();
            assert!(logits == one_by_one[end - 1], "{dtype:?}, tokens {first} to {end}");
        }
    }
}

#[test]
fn a_truncated_or_cloned_cache_goes_on_as_if_it_had_never_been_longer() {
    let loaded = tiny(&TinyModel::default(), TinyDtype::Q8_0, &ModelOptions::default());
    let model = &loaded.model;
    let tokens = Random(5).tokens(40, model.vocabulary_len());
    let mut straight = model.new_cache(40);
    let expected = model.forward(&tokens, &mut straight).unwrap();

    let mut cache = model.new_cache(0);
    model.prefill(&tokens[..20], &mut cache, &molde_infer::Interrupt::default()).unwrap();
    let mut copy = cache.clone();
    model.forward(&tokens[25..], &mut cache).unwrap();
    cache.truncate(20);
    assert_eq!(cache.len(), 20);
    assert_eq!(model.forward(&tokens[20..], &mut cache).unwrap(), expected);
    assert_eq!(model.forward(&tokens[20..], &mut copy).unwrap(), expected);
    assert_eq!(copy.tokens(), tokens);
}

#[test]
fn a_cache_with_tokens_of_one_precision_is_refused_by_the_other() {
    let load = |precision| tiny(&TinyModel::default(), TinyDtype::Q8_0, &options(precision)).model;
    let (exact, native) = (load(Precision::Exact), load(Precision::Native));
    for (own, other) in [(&exact, &native), (&native, &exact)] {
        let mut cache = other.new_cache(10);
        own.forward(&[1, 2], &mut cache).unwrap();
        let error = other.forward(&[3], &mut cache).unwrap_err();
        assert!(matches!(error, InferError::CacheMismatch { .. }), "{error:?}");
        assert!(error.to_string().contains("native") && error.to_string().contains("exact"));
        // Nothing was read, and it goes on where it was.
        assert_eq!(cache.tokens(), [1, 2]);
        let logits = own.forward(&[3], &mut cache).unwrap();
        let straight = own.forward(&[1, 2, 3], &mut own.new_cache(0)).unwrap();
        assert!(relative_difference(&straight, &logits) < 1e-4);
        // What is empty has no precision.
        cache.truncate(0);
        other.forward(&[3], &mut cache).unwrap();
    }
}

#[test]
fn native_precision_refuses_heads_that_its_kernels_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    let shape = TinyModel { attention_heads: 8, ..TinyModel::default() };
    shape.write_gguf(&path, TinyDtype::Q8_0).unwrap();
    let error = LoadedModel::load(&path, &options(Precision::Native)).unwrap_err();
    assert!(matches!(error, InferError::Kernel(_)), "{error:?}");
    assert!(error.to_string().contains("head_dim = 8"), "{error}");
    let exact = LoadedModel::load(&path, &options(Precision::Exact)).unwrap().model;
    exact.forward(&[1, 2, 3], &mut exact.new_cache(0)).unwrap();
}
