//! The decoding loop, on the tiny model and a constraint that can be checked by eye.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;
#[path = "support/choices.rs"]
mod support_choices;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{
    CancelHandle, End, GenerateRequest, Generation, InferError, Interrupt, LoadedModel,
    ModelOptions, generate,
};
use molde_vocab::{TokenConstraint, TokenId};
use support::{Random, tiny};
use support_choices::Choices;

fn model() -> &'static LoadedModel {
    static MODEL: OnceLock<LoadedModel> = OnceLock::new();
    MODEL.get_or_init(|| {
        let shape = TinyModel { tied_head: false, ..TinyModel::default() };
        tiny(&shape, TinyDtype::Q8_0, &ModelOptions::default())
    })
}

fn decode(
    request: &GenerateRequest,
    constraint: Option<&mut dyn TokenConstraint>,
) -> Result<Generation, InferError> {
    let loaded = model();
    let mut cache = loaded.model.new_cache(0);
    generate(&loaded.model, &loaded.tokenizer, request, &mut cache, constraint, &mut |_| {})
}

fn prompt(seed: u64) -> Vec<TokenId> {
    Random(seed).tokens(20, 400)
}

fn text_tokens(text: &str) -> Vec<TokenId> {
    model().tokenizer.encode_text(text).unwrap()
}

fn argmax(logits: &[f32]) -> TokenId {
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = id;
        }
    }
    best as TokenId
}

#[test]
fn free_decoding_takes_the_largest_logit_until_the_turn_ends_or_the_limit() {
    let loaded = model();
    let vocabulary = loaded.tokenizer.vocabulary();
    let (mut ended, mut limited) = (0, 0);
    for seed in 0..60 {
        let limit = 25;
        let prompt = prompt(seed);
        let mut cache = loaded.model.new_cache(0);
        let mut expected = Vec::new();
        let mut logits = loaded.model.forward(&prompt, &mut cache).unwrap();
        let end = loop {
            if expected.len() == limit {
                break End::TokenLimit;
            }
            let token = argmax(&logits);
            if vocabulary.is_end_of_turn(token) {
                break End::EndOfTurn;
            }
            expected.push(token);
            logits = loaded.model.forward(&[token], &mut cache).unwrap();
        };
        let outcome = decode(&GenerateRequest::new(prompt, limit), None).unwrap();
        assert_eq!((&outcome.tokens, outcome.end), (&expected, end), "seed {seed}");
        assert_eq!(outcome.text, loaded.tokenizer.decode(&expected), "seed {seed}");
        assert!(expected.iter().all(|&token| (token as usize) < vocabulary.len()));
        match end {
            End::EndOfTurn => ended += 1,
            _ => limited += 1,
        }
    }
    assert!(ended > 0 && limited > 0, "both ends must occur: {ended}, {limited}");
}

#[test]
fn events_tell_every_token_and_all_of_the_text() {
    let loaded = model();
    let vocabulary = loaded.tokenizer.vocabulary();
    let request = GenerateRequest::new(prompt(4), 40);
    let (mut tokens, mut text) = (Vec::new(), String::new());
    let mut cache = loaded.model.new_cache(0);
    let outcome =
        generate(&loaded.model, &loaded.tokenizer, &request, &mut cache, None, &mut |event| {
            assert_eq!(event.index, tokens.len());
            assert!(!event.forced);
            assert_eq!(event.bytes, vocabulary.token_bytes(event.token).unwrap_or_default());
            tokens.push(event.token);
            text.push_str(event.text);
        })
        .unwrap();
    assert_eq!(tokens, outcome.tokens);
    assert!(outcome.text.starts_with(&text));
    assert_eq!(outcome.usage.generated_tokens, tokens.len());
    assert_eq!(outcome.usage.prompt_tokens, 20);
}

#[test]
fn a_constrained_answer_is_one_of_the_choices_and_the_most_probable_token_at_each_step() {
    let loaded = model();
    let vocabulary = loaded.tokenizer.vocabulary();
    let sequences: Vec<_> =
        ["{\"name\": \"Ana\"}", "{\"name\": \"Luis\", \"age\": 41}", "null", "[1, 2]"]
            .map(text_tokens)
            .to_vec();
    for seed in 0..20 {
        let prompt = prompt(100 + seed);
        let mut constraint = Choices::new(vocabulary, sequences.clone());
        let outcome =
            decode(&GenerateRequest::new(prompt.clone(), 64), Some(&mut constraint)).unwrap();
        assert!(sequences.contains(&outcome.tokens), "{:?}", outcome.text);
        assert_eq!(outcome.end, End::ConstraintComplete);
        assert_eq!(outcome.undecided, 3);
        assert!(outcome.closed_by_budget.is_empty());

        // The same by hand, one token after the other.
        let mut cache = loaded.model.new_cache(0);
        let mut logits = loaded.model.forward(&prompt, &mut cache).unwrap();
        let mut constraint = Choices::new(vocabulary, sequences.clone());
        for &token in &outcome.tokens {
            let allowed: Vec<_> = constraint.mask().unwrap().iter().collect();
            let best = allowed
                .iter()
                .copied()
                .max_by(|&a, &b| logits[a as usize].total_cmp(&logits[b as usize]))
                .unwrap();
            assert_eq!(token, best, "seed {seed}");
            constraint.accept(token).unwrap();
            logits = loaded.model.forward(&[token], &mut cache).unwrap();
        }
    }
}

#[test]
fn a_run_of_forced_tokens_in_one_batch_changes_nothing() {
    let vocabulary = model().tokenizer.vocabulary();
    let sequences: Vec<_> =
        ["[\"a long common beginning\", 1]", "[\"a long common beginning\", null]"]
            .map(text_tokens)
            .to_vec();
    for seed in 0..10 {
        let request = GenerateRequest::new(prompt(200 + seed), 100);
        let mut in_runs = Choices::new(vocabulary, sequences.clone());
        let in_runs = decode(&request, Some(&mut in_runs)).unwrap();
        let mut one_by_one = Choices::new(vocabulary, sequences.clone());
        one_by_one.tells_forced = false;
        let one_by_one = decode(&request, Some(&mut one_by_one)).unwrap();
        assert_eq!(in_runs.tokens, one_by_one.tokens);
        assert_eq!(one_by_one.usage.forced_tokens, 0);
        assert_eq!(in_runs.usage.forced_tokens, in_runs.tokens.len() - 1, "one token is a choice");
    }
}

#[test]
fn without_any_choice_the_model_is_not_asked() {
    let vocabulary = model().tokenizer.vocabulary();
    let only = text_tokens("{\"ok\": true}");
    let mut constraint = Choices::new(vocabulary, vec![only.clone()]);
    let outcome = decode(&GenerateRequest::new(prompt(1), 100), Some(&mut constraint)).unwrap();
    assert_eq!(outcome.tokens, only);
    assert_eq!(outcome.end, End::ConstraintComplete);
    assert_eq!(outcome.usage.forced_tokens, only.len());
    assert_eq!(outcome.timings.prefill, Duration::ZERO);
}

#[test]
fn the_token_limit_ends_the_text_in_time_and_says_where_it_did() {
    let vocabulary = model().tokenizer.vocabulary();
    let short = text_tokens("1");
    let long = text_tokens("[\"something long\", \"and more\"]");
    assert_ne!(short[0], long[0]);
    let mut replaced = 0;
    for seed in 0..30 {
        let prompt = prompt(300 + seed);
        let sequences = vec![short.clone(), long.clone()];
        let mut constraint = Choices::new(vocabulary, sequences.clone());
        let free = decode(&GenerateRequest::new(prompt.clone(), 100), Some(&mut constraint));
        let first_choice = free.unwrap().tokens;
        let mut constraint = Choices::new(vocabulary, sequences);
        let tight = GenerateRequest::new(prompt, long.len() - 1);
        let outcome = decode(&tight, Some(&mut constraint)).unwrap();
        assert_eq!(outcome.tokens, short);
        if first_choice == long {
            replaced += 1;
            assert_eq!(outcome.closed_by_budget, [0]);
        } else {
            assert!(outcome.closed_by_budget.is_empty());
        }
    }
    assert!((1..30).contains(&replaced), "both cases must occur: {replaced}");
}

#[test]
fn a_complete_text_that_could_go_on_is_ended_at_the_limit() {
    let vocabulary = model().tokenizer.vocabulary();
    let digits: Vec<TokenId> = text_tokens("7");
    // "7", "77", "777", …: always complete, never finished within the limit.
    let sequences: Vec<Vec<TokenId>> = (1..50).map(|count| digits.repeat(count)).collect();
    let (mut ended, mut closed) = (0, 0);
    for seed in 0..40 {
        let mut constraint = Choices::new(vocabulary, sequences.clone());
        let request = GenerateRequest::new(prompt(400 + seed), 2);
        let outcome = decode(&request, Some(&mut constraint)).unwrap();
        assert!((1..=2).contains(&outcome.tokens.len()));
        match outcome.end {
            End::EndOfTurn => {
                ended += 1;
                assert!(outcome.closed_by_budget.is_empty());
            }
            End::ConstraintComplete => {
                closed += 1;
                assert_eq!(outcome.closed_by_budget, [2]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(ended > 0 && closed > 0, "both ends must occur: {ended}, {closed}");
}

#[test]
fn impossible_requests_are_refused_with_their_numbers() {
    let loaded = model();
    let vocabulary = loaded.tokenizer.vocabulary();
    let long = text_tokens("[\"something long\", \"and more\"]");
    let mut constraint = Choices::new(vocabulary, vec![long.clone()]);
    let request = GenerateRequest::new(prompt(1), long.len() - 1);
    match decode(&request, Some(&mut constraint)) {
        Err(InferError::BudgetTooSmall { needed_tokens, max_tokens }) => {
            assert_eq!((needed_tokens, max_tokens), (long.len(), long.len() - 1));
        }
        other => panic!("{other:?}"),
    }
    match decode(&GenerateRequest::new(prompt(1), 4077), None) {
        Err(InferError::ContextOverflow { prompt_tokens, max_tokens, context_tokens }) => {
            assert_eq!((prompt_tokens, max_tokens, context_tokens), (20, 4077, 4096));
        }
        other => panic!("{other:?}"),
    }
    let empty = decode(&GenerateRequest::new(Vec::new(), 1), None);
    assert!(matches!(empty, Err(InferError::EmptyPrompt)), "{empty:?}");
    let padding = vocabulary.len() as TokenId;
    match decode(&GenerateRequest::new(vec![0, padding], 1), None) {
        Err(InferError::TokenOutOfRange { token, .. }) => assert_eq!(token, padding),
        other => panic!("{other:?}"),
    }
    let other_shape = TinyModel { layers: 1, ..TinyModel::default() };
    let other = tiny(&other_shape, TinyDtype::Q8_0, &ModelOptions::default());
    let error = loaded.model.forward(&[1], &mut other.model.new_cache(0));
    assert!(matches!(error, Err(InferError::CacheMismatch { .. })), "{error:?}");
}

#[test]
fn the_limit_of_zero_tokens_reads_nothing_and_the_whole_context_can_be_used() {
    let outcome = decode(&GenerateRequest::new(prompt(1), 0), None).unwrap();
    assert_eq!((outcome.end, outcome.tokens.len()), (End::TokenLimit, 0));
    let shape = TinyModel { context_tokens: 24, ..TinyModel::default() };
    let small = tiny(&shape, TinyDtype::Q8_0, &ModelOptions::default());
    let request = GenerateRequest::new(prompt(1), 4);
    let mut cache = small.model.new_cache(1_000_000);
    let outcome =
        generate(&small.model, &small.tokenizer, &request, &mut cache, None, &mut |_| {}).unwrap();
    assert!(outcome.tokens.len() <= 4);
    let refused = small.model.forward(&[1; 24], &mut cache);
    assert!(matches!(refused, Err(InferError::ContextOverflow { .. })), "{refused:?}");
}

#[test]
fn cancelling_stops_between_tokens_and_between_chunks_of_the_prompt() {
    let loaded = model();
    let cancel = CancelHandle::new();
    let mut request = GenerateRequest::new(prompt(9), 4000);
    request.interrupt.cancel = Some(cancel.clone());
    let mut seen = 0;
    let mut cache = loaded.model.new_cache(0);
    // A constraint without an end, so that only the handle can stop it.
    let forever = vec![text_tokens("7").repeat(3000), text_tokens("8")];
    let mut constraint = Choices::new(loaded.tokenizer.vocabulary(), forever);
    constraint.tells_forced = false;
    let outcome = generate(
        &loaded.model,
        &loaded.tokenizer,
        &request,
        &mut cache,
        Some(&mut constraint),
        &mut |_| {
            seen += 1;
            cancel.cancel();
        },
    )
    .unwrap();
    assert!(seen == 1 && (outcome.end == End::Cancelled || outcome.tokens == text_tokens("8")));

    let outcome = decode(&request, None).unwrap();
    assert_eq!((outcome.end, outcome.tokens.len()), (End::Cancelled, 0));
    let mut cache = loaded.model.new_cache(0);
    let interrupt = Interrupt { cancel: Some(cancel), deadline: None };
    let stopped = loaded.model.prefill(&prompt(1), &mut cache, &interrupt);
    assert!(matches!(stopped, Err(InferError::Cancelled)) && cache.is_empty());
}

#[test]
fn a_deadline_stops_the_work() {
    let mut request = GenerateRequest::new(prompt(9), 100);
    request.interrupt.deadline = Some(Instant::now());
    let outcome = decode(&request, None).unwrap();
    assert_eq!((outcome.end, outcome.tokens.len()), (End::DeadlineExceeded, 0));
    request.interrupt.deadline = Some(Instant::now() + Duration::from_hours(1));
    assert_ne!(decode(&request, None).unwrap().end, End::DeadlineExceeded);
}

#[test]
fn a_shared_prefix_is_read_once_and_does_not_change_the_answer() {
    let loaded = model();
    let prefix = prompt(50);
    let mut shared = loaded.model.new_cache(0);
    loaded.model.prefill(&prefix, &mut shared, &Interrupt::default()).unwrap();
    for seed in 0..5 {
        let document = Random(seed).tokens(10, 400);
        let whole = [&prefix[..], &document[..]].concat();
        let expected = decode(&GenerateRequest::new(whole.clone(), 12), None).unwrap();
        let mut cache = shared.clone();
        let request = GenerateRequest::new(whole, 12);
        let outcome =
            generate(&loaded.model, &loaded.tokenizer, &request, &mut cache, None, &mut |_| {})
                .unwrap();
        assert_eq!(outcome.tokens, expected.tokens);
        assert_eq!(outcome.usage.cached_prompt_tokens, prefix.len());
        assert_eq!(outcome.usage.prompt_tokens, prefix.len() + 10);
        // Once more from where it ended: all but one token of the prompt is there.
        let again =
            generate(&loaded.model, &loaded.tokenizer, &request, &mut cache, None, &mut |_| {})
                .unwrap();
        assert_eq!(again.tokens, expected.tokens);
        assert_eq!(again.usage.cached_prompt_tokens, prefix.len() + 9);
    }
}

#[test]
fn what_is_shared_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<LoadedModel>();
    check::<molde_infer::Model>();
    check::<molde_infer::Tokenizer>();
    check::<molde_infer::ChatTemplate>();
    check::<molde_infer::KvCache>();
    check::<InferError>();
}
