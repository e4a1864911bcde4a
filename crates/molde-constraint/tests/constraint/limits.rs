//! Dropping caches changes nothing but the time.

use std::sync::Arc;

use molde_constraint::{Limits, Matcher, MatcherOptions, Segmentation};
use molde_vocab::{TokenConstraint, Vocabulary};

use crate::automata::{Brackets, JsonString, Language, Lazy, record};
use crate::vocabularies::{synthetic, toy};
use crate::walk::{Random, tokens_of};

/// Two matchers in step, one of which must drop its caches all the time.
fn check_tiny_limits<L: Language + Send>(language: &L, vocabulary: &Arc<Vocabulary>, limits: Limits)
where
    L::State: Send,
{
    let mut random = Random(1);
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let roomy = MatcherOptions { segmentation, ..MatcherOptions::default() };
        let tiny = MatcherOptions { segmentation, limits };
        let mut roomy = Matcher::new(Lazy::new(language.clone()), Arc::clone(vocabulary), roomy);
        let mut tiny = Matcher::new(Lazy::new(language.clone()), Arc::clone(vocabulary), tiny);
        for _ in 0..4 {
            roomy.reset();
            tiny.reset();
            let mut steps = 0;
            while !roomy.is_finished() {
                let mask = tokens_of(&mut roomy);
                assert_eq!(tokens_of(&mut tiny), mask);
                assert_eq!(tiny.completion_tokens(), roomy.completion_tokens());
                assert_eq!(tiny.forced(), roomy.forced());
                assert_eq!(tiny.is_finished(), roomy.is_finished());
                let remaining = roomy.completion_tokens() + random.below(3);
                assert_eq!(tiny.mask_within(remaining), roomy.mask_within(remaining));
                let token = random.choose(&mask);
                roomy.accept(token).unwrap();
                tiny.accept(token).unwrap();
                steps += 1;
                if random.below(6) == 0 {
                    let back = random.below(steps);
                    roomy.rollback(back).unwrap();
                    tiny.rollback(back).unwrap();
                    steps -= back;
                }
            }
            assert!(tiny.is_finished());
            assert_eq!(tiny.undecided(), roomy.undecided());
        }
        assert_eq!(roomy.automaton().clears, 0);
        assert_eq!(tiny.automaton().clears > 0, limits.max_automaton_bytes == 0);
    }
}

#[test]
fn with_no_room_for_masks_everything_stays_the_same() {
    let limits = Limits { max_cache_bytes: 0, ..Limits::default() };
    check_tiny_limits(&record(), &toy(), limits);
    check_tiny_limits(&Brackets { max_depth: 6, decided: 3 }, &toy(), limits);
}

#[test]
fn with_no_room_for_the_automaton_everything_stays_the_same() {
    let limits = Limits { max_automaton_bytes: 0, ..Limits::default() };
    check_tiny_limits(&record(), &toy(), limits);
    check_tiny_limits(&JsonString { max_chars: 4 }, &synthetic(700, 2), limits);
}

#[test]
fn caches_stay_within_their_limit_between_tokens() {
    let vocabulary = synthetic(700, 3);
    let limits = Limits { max_cache_bytes: 20_000, ..Limits::default() };
    let options = MatcherOptions { limits, ..MatcherOptions::default() };
    let mut matcher =
        Matcher::new(Lazy::new(JsonString { max_chars: 5000 }), Arc::clone(&vocabulary), options);
    let mut random = Random(4);
    let mut dropped = false;
    let mut before = 0;
    for _ in 0..200 {
        let mask = tokens_of(&mut matcher);
        // Tokens that go on: a quote would end the walk.
        let inside: Vec<_> = mask
            .into_iter()
            .filter(|&t| {
                matcher.accepted_tokens() == 0
                    || !vocabulary.token_bytes(t).unwrap_or(b"\"").contains(&b'"')
            })
            .collect();
        matcher.accept(random.choose(&inside)).unwrap();
        let held = matcher.memory_usage() - 100 * matcher.automaton().states();
        dropped |= held < before;
        before = held;
        // One mask, at most, beyond the limit.
        assert!(held <= 20_000 + 8_000, "{held} bytes");
    }
    assert!(dropped);
}
