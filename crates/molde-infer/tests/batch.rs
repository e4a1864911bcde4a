//! Sequences that share the steps of a model, on the tiny one: each writes what it writes alone.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;
#[path = "support/choices.rs"]
mod support_choices;

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{
    Batch, BatchOptions, CancelHandle, End, Feed, GenerateRequest, Generation, InferError,
    LoadedModel, ModelOptions, Sampling, Scheduler, SequenceEvent, SequenceListener, SharedSteps,
    generate,
};
use molde_vocab::{ConstraintError, TokenConstraint, TokenId, TokenMask};
use support::{Random, tiny};
use support_choices::Choices;

fn model() -> &'static LoadedModel {
    static MODEL: OnceLock<LoadedModel> = OnceLock::new();
    MODEL.get_or_init(|| {
        let shape = TinyModel { tied_head: false, ..TinyModel::default() };
        let options = ModelOptions {
            prefill_chunk_tokens: NonZeroUsize::new(16).unwrap(),
            ..ModelOptions::default()
        };
        tiny(&shape, TinyDtype::Q8_0, &options)
    })
}

fn batch(max_sequences: usize) -> Batch {
    let max_sequences = NonZeroUsize::new(max_sequences).unwrap();
    let options = BatchOptions { max_sequences, ..BatchOptions::default() };
    Batch::new(Arc::clone(&model().model), Arc::clone(&model().tokenizer), &options)
}

/// A sequence of a kind that depends on `seed`: free, drawn, or one of some texts.
fn work(seed: u64) -> (GenerateRequest, Option<Choices>) {
    let mut random = Random(seed);
    let prompt = random.tokens(1 + (seed as usize * 13) % 50, 400);
    let mut request = GenerateRequest::new(prompt, 24);
    request.speculate = seed.is_multiple_of(2);
    if seed % 3 == 1 {
        request.sampling = Sampling { temperature: 0.8, seed, ..Sampling::default() };
    }
    let texts = ["[\"a long common beginning\", 1]", "[\"a long common beginning\", null]", "7"];
    let texts = texts.map(|text| model().tokenizer.encode_text(text).unwrap());
    let constraint = || Choices::new(model().tokenizer.vocabulary(), texts.to_vec());
    (request, (seed % 3 == 2).then(constraint))
}

fn alone(seed: u64) -> Generation {
    let (mut request, mut constraint) = work(seed);
    request.speculate = false;
    let constraint = constraint.as_mut().map(|constraint| constraint as &mut dyn TokenConstraint);
    let mut cache = model().model.new_cache(0);
    let (model, tokenizer) = (&model().model, &model().tokenizer);
    generate(model, tokenizer, &request, &mut cache, constraint, &mut |_| {}).unwrap()
}

/// Listens to a sequence: the tokens as they come, then the end.
fn listener() -> (SequenceListener, Receiver<Heard>) {
    let (sender, receiver) = channel();
    let listener = move |event: SequenceEvent<'_>| {
        let heard = match event {
            SequenceEvent::Started => Heard::Started,
            SequenceEvent::Token(token) => Heard::Token(token.index, token.token),
            SequenceEvent::End(outcome) => Heard::End(Box::new(outcome)),
        };
        sender.send(heard).unwrap();
    };
    (Box::new(listener), receiver)
}

enum Heard {
    Started,
    Token(usize, TokenId),
    End(Box<Result<Generation, InferError>>),
}

/// The outcome, after checking that the events told the same.
fn outcome(receiver: &Receiver<Heard>) -> Result<Generation, InferError> {
    let mut tokens = Vec::new();
    let mut has_started = false;
    let outcome = loop {
        match receiver.try_recv().unwrap() {
            Heard::Started => assert!(!std::mem::replace(&mut has_started, true)),
            Heard::Token(index, token) => {
                assert!(has_started);
                assert_eq!(index, tokens.len());
                tokens.push(token);
            }
            Heard::End(outcome) => break *outcome,
        }
    };
    assert!(receiver.try_recv().is_err(), "the end is the last event");
    if let Ok(generation) = &outcome {
        assert_eq!(generation.tokens, tokens);
    }
    outcome
}

fn boxed(constraint: Option<Choices>) -> Option<Box<dyn TokenConstraint>> {
    constraint.map(|constraint| Box::new(constraint) as Box<dyn TokenConstraint>)
}

#[test]
fn sequences_that_join_and_leave_at_any_time_write_what_they_write_alone() {
    let mut batch = batch(5);
    let mut heard = Vec::new();
    for seed in 0..30 {
        let (request, constraint) = work(seed);
        let (listener, receiver) = listener();
        batch.add(request, boxed(constraint), listener);
        heard.push(receiver);
        (0..seed % 4).for_each(|_| batch.step());
    }
    while !batch.is_empty() {
        batch.step();
    }
    for (seed, receiver) in heard.iter().enumerate() {
        let (got, expected) = (outcome(receiver).unwrap(), alone(seed as u64));
        assert_eq!(got.tokens, expected.tokens, "seed {seed}");
        assert_eq!((got.text, got.end), (expected.text, expected.end), "seed {seed}");
        assert_eq!(got.closed_by_budget, expected.closed_by_budget);
        assert_eq!(got.usage.forced_tokens, expected.usage.forced_tokens, "seed {seed}");
        assert_eq!(got.undecided, expected.undecided);
    }
}

#[test]
fn logits_have_the_same_bits_alone_and_together_whole_and_in_rows() {
    let model = &model().model;
    let rows: Vec<TokenId> = vec![0, 3, 17, 18, 200, 399];
    let prompts: Vec<Vec<TokenId>> =
        (0..9).map(|seed| Random(seed).tokens(1 + 7 * seed as usize, 400)).collect();
    let expected: Vec<Vec<Vec<f32>>> = prompts
        .iter()
        .map(|prompt| model.forward_all(prompt, &mut model.new_cache(0)).unwrap())
        .collect();
    let mut feeds: Vec<Feed> = Vec::new();
    for (index, prompt) in prompts.iter().enumerate() {
        let mut feed = Feed::new(model.new_cache(prompt.len()));
        feed.push(prompt);
        match index % 4 {
            0 => feed.want_all(),
            1 => feed.want_rows(&rows),
            2 => {
                feed.want_rows(&rows);
                feed.want_nothing();
                feed.want_all();
            }
            _ => {}
        }
        feeds.push(feed);
    }
    feeds.insert(4, Feed::new(model.new_cache(0)));
    let mut expected = expected;
    expected.insert(4, Vec::new());
    let mut work = model.new_workspace();
    model.step(&mut feeds, &mut work).unwrap();
    let some = |logits: &[f32]| rows.iter().map(|&row| logits[row as usize]).collect::<Vec<_>>();
    let mut compared = 0;
    for (index, (feed, expected)) in feeds.iter().zip(&expected).enumerate() {
        assert_eq!(feed.cache.tokens(), feed.tokens());
        for want in 0..feed.wants() {
            let after = &expected[feed.tokens().len() - feed.wants() + want];
            let got = work.logits(index, want);
            match got.len() {
                0 => {}
                6 => assert_eq!(got, some(after)),
                _ => assert_eq!(got, after),
            }
            compared += usize::from(!got.is_empty());
        }
        assert!(work.logits(index, feed.wants()).is_empty());
    }
    assert_eq!(compared, 3 + 2 + 2 * 2);
    // A step without wishes leaves nothing of the last one.
    feeds.iter_mut().for_each(Feed::clear);
    feeds[0].push(&[1]);
    model.step(&mut feeds, &mut work).unwrap();
    assert!(work.logits(0, 0).is_empty());
}

#[test]
fn a_beginning_that_requests_share_is_read_once() {
    let prefix = Random(1).tokens(40, 400);
    let mut batch = batch(8);
    let mut run = |count: u64| {
        let mut heard = Vec::new();
        for seed in 0..count {
            let prompt = [&prefix[..], &Random(100 + seed).tokens(5, 400)].concat();
            let mut request = GenerateRequest::new(prompt.clone(), 6);
            request.shared_prefix_tokens = prefix.len();
            let (listener, receiver) = listener();
            batch.add(request, None, listener);
            heard.push((prompt, receiver));
        }
        while !batch.is_empty() {
            batch.step();
        }
        let mut cached = Vec::new();
        for (prompt, receiver) in heard {
            let got = outcome(&receiver).unwrap();
            let request = GenerateRequest::new(prompt, 6);
            let mut cache = model().model.new_cache(0);
            let (model, tokenizer) = (&model().model, &model().tokenizer);
            let alone = generate(model, tokenizer, &request, &mut cache, None, &mut |_| {});
            assert_eq!(got.tokens, alone.unwrap().tokens);
            cached.push(got.usage.cached_prompt_tokens);
        }
        cached
    };
    let first = run(6);
    assert_eq!(first.iter().filter(|&&cached| cached == 0).count(), 1, "{first:?}");
    assert_eq!(first.iter().filter(|&&cached| cached == 40).count(), 5, "{first:?}");
    assert_eq!(run(3), [40; 3]);
}

#[test]
fn a_cancelled_sequence_leaves_within_a_step_and_the_others_go_on() {
    let mut batch = batch(2);
    let start = |batch: &mut Batch, seed: u64| {
        let cancel = CancelHandle::new();
        let mut request = GenerateRequest::new(Random(seed).tokens(4, 400), 60);
        request.interrupt.cancel = Some(cancel.clone());
        let (listener, receiver) = listener();
        batch.add(request, None, listener);
        (cancel, receiver)
    };
    let (cancel, first) = start(&mut batch, 1);
    let (_, second) = start(&mut batch, 2);
    let (waiting_cancel, third) = start(&mut batch, 3);
    batch.step();
    batch.step();
    assert_eq!(batch.len(), 3);
    cancel.cancel();
    waiting_cancel.cancel();
    batch.step();
    assert!(matches!(outcome(&third), Err(InferError::Cancelled)), "it never began");
    let stopped = outcome(&first).unwrap();
    assert_eq!(stopped.end, End::Cancelled);
    assert!(!stopped.tokens.is_empty() && stopped.tokens.len() < 60);
    while !batch.is_empty() {
        batch.step();
    }
    assert_ne!(outcome(&second).unwrap().end, End::Cancelled);
}

/// Panics when it is asked for a mask for the `after`-th time.
struct Panicking {
    inner: Choices,
    after: usize,
}

impl TokenConstraint for Panicking {
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError> {
        assert!(self.after > 0, "a panic that the test wants");
        self.after -= 1;
        self.inner.mask()
    }

    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError> {
        self.inner.mask_within(remaining_tokens)
    }

    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool {
        self.inner.fits(token, remaining_tokens)
    }

    fn completion_tokens(&mut self) -> usize {
        self.inner.completion_tokens()
    }

    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        self.inner.accept(token)
    }

    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError> {
        self.inner.rollback(tokens)
    }

    fn forced(&mut self) -> Option<TokenId> {
        None
    }

    fn is_complete(&mut self) -> bool {
        self.inner.is_complete()
    }

    fn is_finished(&mut self) -> bool {
        self.inner.is_finished()
    }

    fn undecided(&self) -> u64 {
        0
    }
}

#[test]
fn a_panic_ends_the_sequence_that_it_comes_from_and_no_other() {
    let mut batch = batch(8);
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for seed in 0..6 {
        let (request, constraint) = work(seed);
        let (listener, receiver) = listener();
        batch.add(request, boxed(constraint), listener);
        good.push(receiver);
        let (mut request, _) = work(seed);
        request.speculate = false;
        let texts = ["[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 6]"]
            .map(|text| model().tokenizer.encode_text(text).unwrap());
        let inner = Choices::new(model().tokenizer.vocabulary(), texts.to_vec());
        let constraint = Panicking { inner, after: seed as usize };
        let (listener, receiver) = self::listener();
        batch.add(request, Some(Box::new(constraint)), listener);
        bad.push(receiver);
    }
    // One whose listener panics.
    let (sender, heard) = channel();
    let listener: SequenceListener = Box::new(move |event| match event {
        SequenceEvent::Token(_) => panic!("another panic that the test wants"),
        SequenceEvent::End(outcome) => sender.send(outcome).unwrap(),
        SequenceEvent::Started => {}
    });
    batch.add(work(0).0, None, listener);
    while !batch.is_empty() {
        batch.step();
    }
    for (seed, receiver) in good.iter().enumerate() {
        assert_eq!(outcome(receiver).unwrap().tokens, alone(seed as u64).tokens, "seed {seed}");
    }
    for receiver in &bad {
        assert!(matches!(outcome(receiver), Err(InferError::Panicked)));
    }
    assert!(matches!(heard.recv().unwrap(), Err(InferError::Panicked)));
}

#[test]
fn what_is_wrong_with_a_request_its_end_says_and_no_other() {
    let mut batch = batch(4);
    let mut add = |request: GenerateRequest| {
        let (listener, receiver) = listener();
        batch.add(request, None, listener);
        receiver
    };
    let empty = add(GenerateRequest::new(Vec::new(), 3));
    let good = add(GenerateRequest::new(vec![1, 2], 3));
    let long = add(GenerateRequest::new(vec![1, 2], 5000));
    while !batch.is_empty() {
        batch.step();
    }
    assert!(matches!(outcome(&empty), Err(InferError::EmptyPrompt)));
    assert!(matches!(outcome(&long), Err(InferError::ContextOverflow { .. })));
    assert!(outcome(&good).unwrap().tokens.len() <= 3);
}

#[test]
fn guessed_tokens_save_steps_and_change_nothing() {
    let (model, tokenizer) = (&model().model, &model().tokenizer);
    let mut saved = 0;
    for seed in 0..12 {
        let mut request = GenerateRequest::new(Random(seed).tokens(12, 400), 120);
        let mut run = |speculate, constraint: Option<&mut dyn TokenConstraint>| {
            request.speculate = speculate;
            let mut cache = model.new_cache(0);
            let outcome =
                generate(model, tokenizer, &request, &mut cache, constraint, &mut |_| {}).unwrap();
            // What was guessed wrong is forgotten.
            let read = [&request.prompt[..], &outcome.tokens].concat();
            assert!(read.starts_with(cache.tokens()));
            outcome
        };
        let (with, without) = (run(true, None), run(false, None));
        assert_eq!((&with.tokens, with.end), (&without.tokens, without.end), "seed {seed}");
        assert_eq!(without.usage.guessed_tokens, 0);
        saved += with.usage.guessed_tokens;

        // Under a constraint: one of some texts that repeat themselves.
        let texts: Vec<Vec<TokenId>> = ["7, 7, 7, 7, 7, 7, 7, 8", "7, 7, 7, 7, 7, 7, 7, 7, 9"]
            .map(|text| tokenizer.encode_text(text).unwrap())
            .to_vec();
        let constraint = || {
            let mut constraint = Choices::new(tokenizer.vocabulary(), texts.clone());
            constraint.tells_forced = false;
            constraint
        };
        let with = run(true, Some(&mut constraint()));
        let without = run(false, Some(&mut constraint()));
        assert_eq!((&with.tokens, with.end), (&without.tokens, without.end), "seed {seed}");
        saved += with.usage.guessed_tokens;
    }
    assert!(saved > 50, "only {saved} tokens were guessed right");
}

#[test]
fn threads_that_ask_at_the_same_time_get_what_they_would_get_alone() {
    let loaded = model();
    let scheduler = Scheduler::start(
        Arc::clone(&loaded.model),
        Arc::clone(&loaded.tokenizer),
        &BatchOptions::default(),
    )
    .unwrap();
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let scheduler = &scheduler;
            scope.spawn(move || {
                let (request, constraint) = work(seed);
                let mut events = Vec::new();
                let outcome = scheduler
                    .generate(request, boxed(constraint), &mut |event| events.push(event.token))
                    .unwrap();
                assert_eq!(outcome.tokens, events);
                assert_eq!(outcome.tokens, alone(seed).tokens, "seed {seed}");
            });
        }
    });
    // What still runs when it is dropped ends as cancelled.
    let (listener, receiver) = listener();
    let request = GenerateRequest::new(Random(5).tokens(300, 400), 3000);
    scheduler.submit(request, None, listener).unwrap();
    drop(scheduler);
    match outcome(&receiver) {
        Ok(generation) => assert_eq!(generation.end, End::Cancelled),
        Err(error) => assert!(matches!(error, InferError::Cancelled), "{error}"),
    }
}

/// What a seed's sequence writes on a thread of its own among others.
fn shared(steps: &SharedSteps, seed: u64, pause: std::time::Duration) -> Generation {
    let (request, mut constraint) = work(seed);
    let constraint = constraint.as_mut().map(|constraint| constraint as &mut dyn TokenConstraint);
    let mut cache = model().model.new_cache(0);
    let on_token = &mut |_: molde_infer::TokenEvent<'_>| std::thread::sleep(pause);
    steps.generate(&model().tokenizer, &request, &mut cache, constraint, on_token).unwrap()
}

#[test]
fn threads_that_share_steps_write_what_each_writes_alone() {
    let steps = SharedSteps::new(Arc::clone(&model().model));
    let seeds = 0..24;
    let expected: Vec<Generation> = seeds.clone().map(alone).collect();
    std::thread::scope(|scope| {
        let steps = &steps;
        // One listener takes longer than a step waits for it.
        let pause = |seed| std::time::Duration::from_millis(if seed == 5 { 12 } else { 0 });
        let threads: Vec<_> = seeds
            .map(|seed| (seed, scope.spawn(move || shared(steps, seed, pause(seed)))))
            .collect();
        for (seed, thread) in threads {
            let (got, expected) = (thread.join().unwrap(), &expected[seed as usize]);
            assert_eq!(
                (&got.tokens, &got.text, got.end, &got.closed_by_budget),
                (&expected.tokens, &expected.text, expected.end, &expected.closed_by_budget),
                "seed {seed}"
            );
        }
    });
}

#[test]
fn a_listener_may_generate_with_the_same_shared_steps() {
    let steps = SharedSteps::new(Arc::clone(&model().model));
    let (request, _) = work(0);
    let mut inner = Vec::new();
    let on_token = &mut |event: molde_infer::TokenEvent<'_>| {
        if event.index < 2 {
            inner.push(shared(&steps, 3, std::time::Duration::ZERO).tokens);
        }
    };
    let mut cache = model().model.new_cache(0);
    let got = steps.generate(&model().tokenizer, &request, &mut cache, None, on_token).unwrap();
    assert_eq!(got.tokens, alone(0).tokens);
    assert_eq!(inner, vec![alone(3).tokens; inner.len()]);
    assert!(!inner.is_empty());
}

#[test]
fn a_request_that_is_wrong_fails_alone_among_threads_that_share_steps() {
    let steps = SharedSteps::new(Arc::clone(&model().model));
    std::thread::scope(|scope| {
        let good = scope.spawn(|| shared(&steps, 3, std::time::Duration::ZERO));
        let request = GenerateRequest::new(vec![u32::MAX], 4);
        let mut cache = model().model.new_cache(0);
        let outcome = steps.generate(&model().tokenizer, &request, &mut cache, None, &mut |_| {});
        assert!(matches!(outcome, Err(InferError::TokenOutOfRange { .. })), "{outcome:?}");
        assert_eq!(good.join().unwrap().tokens, alone(3).tokens);
    });
}
