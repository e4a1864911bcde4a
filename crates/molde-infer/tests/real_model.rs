//! The real model file against an independent implementation: logits that Hugging Face
//! transformers computed from the same weights, in `tests/reference` of the workspace.
//!
//! Skipped, with a message, where the weights are missing.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use molde_infer::{GenerateRequest, LoadedModel, Message, ModelOptions, Precision, Role, generate};
use serde::Deserialize;
use support::options;

/// One model in memory at a time.
static MEMORY: Mutex<()> = Mutex::new(());

#[derive(Deserialize)]
struct Reference {
    model: String,
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Prompt {
    name: String,
    /// Control tokens spelled out.
    text: String,
    /// The conversation that `text` is, if it is one.
    messages: Option<Vec<MessageJson>>,
    token_ids: Vec<u32>,
    /// The 20 largest logits after the last token.
    top: Vec<(u32, f32)>,
    log_sum_exp: f64,
    greedy: Greedy,
    positions: Positions,
}

#[derive(Deserialize)]
struct MessageJson {
    role: String,
    content: String,
}

/// The continuation, and by how much each token was better than the next.
#[derive(Deserialize)]
struct Greedy {
    token_ids: Vec<u32>,
    margin: Vec<f64>,
}

/// After every token of the prompt: the largest logit, and by how much.
#[derive(Deserialize)]
struct Positions {
    top_id: Vec<u32>,
    margin: Vec<f64>,
}

/// The model and what is expected of it; `None` if one of them is not there.
fn reference(precision: Precision) -> Option<(LoadedModel, Vec<Prompt>)> {
    let path = support::real_model()?;
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reference/coder-0.5b-q4_k_m.json");
    let reference: Reference =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    if path.file_name().is_none_or(|name| *name != *reference.model) {
        println!("skipped: the reference is for {}", reference.model);
        return None;
    }
    Some((LoadedModel::load(&path, &options(precision)).unwrap(), reference.prompts))
}

fn messages(messages: &[MessageJson]) -> Vec<Message> {
    let role = |name: &str| {
        [Role::System, Role::User, Role::Assistant].into_iter().find(|r| r.name() == name).unwrap()
    };
    let message = |m: &MessageJson| Message::new(role(&m.role), &m.content);
    messages.iter().map(message).collect()
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().map(|&l| f64::from(l - max).exp()).sum::<f64>().ln() + f64::from(max)
}

fn argmax(logits: &[f32]) -> u32 {
    (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
}

/// The divergence over 21 buckets: the reference's 20 most probable tokens, and the rest.
fn divergence(prompt: &Prompt, logits: &[f32]) -> f64 {
    let total = log_sum_exp(logits);
    let (mut divergence, mut p_rest, mut q_rest) = (0.0, 1.0, 1.0);
    for &(id, logit) in &prompt.top {
        let log_p = f64::from(logit) - prompt.log_sum_exp;
        let log_q = f64::from(logits[id as usize]) - total;
        divergence += log_p.exp() * (log_p - log_q);
        p_rest -= log_p.exp();
        q_rest -= log_q.exp();
    }
    if p_rest > 1e-9 {
        divergence += p_rest * (p_rest / q_rest.max(1e-12)).ln();
    }
    divergence
}

#[test]
fn exact_logits_agree_with_the_reference_after_every_token() {
    let _one_at_a_time = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((loaded, prompts)) = reference(Precision::Exact) else { return };
    let mut largest: f64 = 0.0;
    for prompt in &prompts {
        let mut cache = loaded.model.new_cache(prompt.token_ids.len());
        let logits = loaded.model.forward_all(&prompt.token_ids, &mut cache).unwrap();
        for (position, logits) in logits.iter().enumerate() {
            let (expected, margin) =
                (prompt.positions.top_id[position], prompt.positions.margin[position]);
            let found = argmax(logits);
            assert!(
                found == expected || margin <= 0.1,
                "{}, position {position}: {found}, expected {expected} by {margin}",
                prompt.name
            );
        }
        let divergence = divergence(prompt, logits.last().unwrap());
        assert!(divergence < 0.001, "{}: {divergence} nats", prompt.name);
        largest = largest.max(divergence);
    }
    println!("largest divergence in exact arithmetic: {largest:e} nats");
}

#[test]
fn native_logits_are_close_to_the_reference_and_decoding_follows_it() {
    let _one_at_a_time = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((loaded, prompts)) = reference(Precision::Native) else { return };
    let (model, tokenizer) = (&loaded.model, &loaded.tokenizer);
    let template = loaded.chat_template.as_ref().unwrap();
    let mut largest: f64 = 0.0;
    for prompt in &prompts {
        let ids = match &prompt.messages {
            Some(conversation) => template.encode(tokenizer, &messages(conversation)),
            None => tokenizer.encode_with_control(&prompt.text),
        };
        let ids = ids.unwrap();
        assert_eq!(ids, prompt.token_ids, "{}", prompt.name);
        let mut cache = model.new_cache(ids.len());
        let logits = model.forward(&ids, &mut cache).unwrap();
        let divergence = divergence(prompt, &logits);
        assert!(divergence < 0.005, "{}: {divergence} nats", prompt.name);
        largest = largest.max(divergence);
        let margin = f64::from(prompt.top[0].1 - prompt.top[1].1);
        assert!(margin <= 0.3 || argmax(&logits) == prompt.top[0].0, "{}", prompt.name);

        // The prompt is in the cache: only the answer is computed.
        let request = GenerateRequest::new(ids, 8);
        let outcome = generate(model, tokenizer, &request, &mut cache, None, &mut |_| {}).unwrap();
        assert_eq!(outcome.usage.cached_prompt_tokens, prompt.token_ids.len() - 1);
        // Both go the same way up to the first token that the reference is not sure of.
        let sure = prompt.greedy.margin.iter().take_while(|&&margin| margin > 0.5).count();
        let sure = sure.min(outcome.tokens.len());
        assert_eq!(outcome.tokens[..sure], prompt.greedy.token_ids[..sure], "{}", prompt.name);
    }
    println!("largest divergence in native arithmetic: {largest:e} nats");
}

#[test]
fn native_logits_are_the_same_to_the_bit_however_the_tokens_are_read() {
    let _one_at_a_time = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = support::real_model() else { return };
    let with = |chunk, threads| {
        let options = ModelOptions {
            prefill_chunk_tokens: NonZeroUsize::new(chunk).unwrap(),
            threads: NonZeroUsize::new(threads),
            ..ModelOptions::default()
        };
        LoadedModel::load(&path, &options).unwrap()
    };
    let text = "El Banco de España prevé una inflación del 2,4 % en 2025. {\"trimestre\": 3}";
    let all_logits = |loaded: &LoadedModel| {
        let tokens = loaded.tokenizer.encode_text(text).unwrap();
        assert!(tokens.len() > 24, "{}", tokens.len());
        loaded.model.forward_all(&tokens, &mut loaded.model.new_cache(0)).unwrap()
    };
    let expected = all_logits(&with(1, 1));
    for (chunk, threads) in [(7, 2), (64, 4)] {
        let logits = all_logits(&with(chunk, threads));
        assert!(logits == expected, "chunks of {chunk}, {threads} threads");
    }
}

#[test]
fn the_end_of_the_turn_ends_an_answer() {
    let _one_at_a_time = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = support::real_model() else { return };
    let loaded = LoadedModel::load(&path, &ModelOptions::default()).unwrap();
    let messages = [Message::user("What is the capital of France? Answer in one word.")];
    let template = loaded.chat_template.as_ref().unwrap();
    let prompt = template.encode(&loaded.tokenizer, &messages).unwrap();
    let mut cache = loaded.model.new_cache(prompt.len());
    let request = GenerateRequest::new(prompt, 16);
    let (model, tokenizer) = (&loaded.model, &loaded.tokenizer);
    let outcome = generate(model, tokenizer, &request, &mut cache, None, &mut |_| {}).unwrap();
    assert_eq!(outcome.text.trim_end_matches('.'), "Paris");
    assert_eq!(outcome.end, molde_infer::End::EndOfTurn);
}
