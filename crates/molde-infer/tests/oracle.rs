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
use molde_infer::{LoadedModel, ModelOptions, Precision};
use support::{Random, divergence, options, relative_difference, tiny};

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

fn compare(what: &str, oracle: &[Vec<f32>], ours: &[Vec<f32>], difference: f32, kl: f64) {
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
            // Quantized products round activations: a difference in the last bit of an attention
            // output can become one step of 1/127. For rows of whole blocks of 256 the library has
            // a second product that rounds otherwise; it takes it for a head with padding rows, and
            // not for one without.
            let (difference, kl) = match shape.hidden_size {
                256 => (0.5, 5e-2),
                _ => (0.05, 2e-4),
            };
            compare(&what, &expected, &ours(&loaded, &tokens), difference, kl);
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
            compare(&what, &expected, &ours(&exact, &tokens), 1e-3, 1e-7);
        }
    }
}

#[test]
fn safetensors_are_quantized_as_a_q8_0_file_is() {
    let shape = TinyModel::default();
    let folder = tempfile::tempdir().unwrap();
    shape.write_folder(folder.path(), TinyDtype::F32, 2).unwrap();
    let quantized = LoadedModel::load(folder.path(), &options(Precision::Native)).unwrap();
    let file = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Native));
    let tokens = Random(9).tokens(PROMPT + STEPS, file.model.vocabulary_len());
    assert_eq!(ours(&quantized, &tokens), ours(&file, &tokens));
    assert_eq!(quantized.model.memory_usage(), file.model.memory_usage());
}

#[test]
fn exact_precision_is_close_to_native_but_not_the_same() {
    let shape = TinyModel::default();
    let exact = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Exact));
    let native = tiny(&shape, TinyDtype::Q8_0, &options(Precision::Native));
    let tokens = Random(7).tokens(PROMPT + STEPS, exact.model.vocabulary_len());
    let (exact, native) = (ours(&exact, &tokens), ours(&native, &tokens));
    compare("exact against native", &exact, &native, 0.3, 1e-2);
    assert_ne!(exact, native);
}

#[test]
fn q5_0_weights_are_held_without_loss() {
    let shape = TinyModel::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    shape.write_gguf(&path, TinyDtype::Q5_0).unwrap();
    // In f32 arithmetic the dequantized weights are the reference; in native arithmetic they
    // differ from it only by the rounding of activations, as Q8_0 weights do.
    let exact = LoadedModel::load(&path, &options(Precision::Exact)).unwrap();
    let native = LoadedModel::load(&path, &options(Precision::Native)).unwrap();
    let tokens = Random(8).tokens(PROMPT + STEPS, exact.model.vocabulary_len());
    compare("Q5_0", &ours(&exact, &tokens), &ours(&native, &tokens), 0.3, 1e-2);
}

#[test]
fn logits_do_not_depend_on_chunks_steps_or_threads() {
    for dtype in [TinyDtype::F32, TinyDtype::Q8_0, TinyDtype::Q5_0, TinyDtype::Q4_0] {
        let shape = TinyModel::default();
        let with = |chunk, threads| {
            let options = ModelOptions {
                prefill_chunk_tokens: NonZeroUsize::new(chunk).unwrap(),
                threads: NonZeroUsize::new(threads),
                ..ModelOptions::default()
            };
            tiny(&shape, dtype, &options)
        };
        let reference = with(1, 1);
        let tokens = Random(3).tokens(150, reference.model.vocabulary_len());
        let mut cache = reference.model.new_cache(150);
        let expected = reference.model.forward_all(&tokens, &mut cache).unwrap();
        assert_eq!(expected.len(), tokens.len());
        assert_eq!(cache.tokens(), tokens);
        for (chunk, threads) in [(1, 3), (7, 1), (64, 2), (1000, 2)] {
            let loaded = with(chunk, threads);
            let mut cache = loaded.model.new_cache(0);
            let logits = loaded.model.forward_all(&tokens, &mut cache).unwrap();
            for (position, (expected, logits)) in expected.iter().zip(&logits).enumerate() {
                let what = format!("{dtype:?}, chunks of {chunk}, position {position}");
                if dtype == TinyDtype::F32 {
                    // The library's f32 product adds in another order for one row than for many.
                    let difference = relative_difference(expected, logits);
                    assert!(difference < 1e-4, "{what}: {difference}");
                } else {
                    assert_eq!(expected, logits, "{what}");
                }
            }
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
