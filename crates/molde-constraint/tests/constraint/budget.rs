//! The number of tokens that complete a text, and masks within it.

use std::sync::Arc;

use molde_constraint::{Choices, Matcher, MatcherOptions, Segmentation};
use molde_vocab::{ByteAutomaton, ConstraintError, TokenConstraint, TokenId, Vocabulary};

use crate::automata::{Brackets, JsonString, Language, Number, record};
use crate::vocabularies::{synthetic, toy};
use crate::walk::{Random, matcher, tokens_of};

/// Walks on which, at every position, the promise of `completion_tokens` is checked for every token
/// of the mask, and `fits` and `mask_within` against their definition; from a random position on
/// only as many tokens are left as are promised to be enough.
fn check_budgets<L: Language>(language: &L, vocabulary: &Arc<Vocabulary>, walks: usize, seed: u64) {
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let mut random = Random(seed);
        let mut matcher = matcher(language, vocabulary, segmentation);
        for _ in 0..walks {
            matcher.reset();
            let free_tokens = random.below(12);
            let mut remaining = usize::MAX;
            for position in 0.. {
                check_position(&mut matcher, &mut random);
                let needed = matcher.completion_tokens();
                if position == free_tokens {
                    remaining = needed;
                }
                if needed == 0 && (remaining == 0 || matcher.is_finished()) {
                    break;
                }
                assert!(needed <= remaining, "{remaining} tokens are left, {needed} are needed");
                let within: Vec<TokenId> = if remaining == usize::MAX {
                    tokens_of(&mut matcher)
                } else {
                    matcher.mask_within(remaining).unwrap().iter().collect()
                };
                let token = random.choose(&within);
                matcher.accept(token).unwrap();
                if vocabulary.is_end_of_turn(token) {
                    break;
                }
                remaining = if remaining == usize::MAX { remaining } else { remaining - 1 };
            }
            assert!(matcher.is_complete());
        }
    }
}

pub(crate) fn check_position<C: TokenConstraint>(matcher: &mut C, random: &mut Random) {
    let needed = matcher.completion_tokens();
    assert_eq!(needed == 0, matcher.is_complete());
    let mask = tokens_of(matcher);
    let mut after: Vec<(TokenId, Option<usize>)> = Vec::new();
    for &token in &mask {
        matcher.accept(token).unwrap();
        // The end of the turn needs no room.
        let ends = matcher.is_finished() && matcher.completion_tokens() == 0 && needed == 0;
        let count = if ends { None } else { Some(matcher.completion_tokens()) };
        matcher.rollback(1).unwrap();
        after.push((token, count));
    }
    let best = after.iter().filter_map(|&(_, count)| count).min();
    assert!(needed == 0 || best.is_some_and(|best| best < needed), "{needed}, {after:?}");

    for remaining in [0, needed.saturating_sub(1), needed, needed + random.below(4), 1000] {
        let expected: Vec<TokenId> = after
            .iter()
            .filter(|(_, count)| count.is_none_or(|count| count < remaining))
            .map(|&(token, _)| token)
            .collect();
        match matcher.mask_within(remaining) {
            Ok(within) => assert_eq!(within.iter().collect::<Vec<_>>(), expected),
            Err(error) => {
                assert_eq!(error, ConstraintError::NoTokenAllowed);
                assert!(expected.is_empty() && remaining < needed);
            }
        }
        for &token in &mask {
            assert_eq!(matcher.fits(token, remaining), expected.contains(&token));
        }
    }
}

#[test]
fn a_number_keeps_its_promises_and_completes_within_them() {
    check_budgets(&Number, &toy(), 100, 1);
}

#[test]
fn nested_brackets_keep_their_promises_and_complete_within_them() {
    check_budgets(&Brackets { max_depth: 9, decided: 9 }, &toy(), 60, 2);
    check_budgets(&Brackets { max_depth: 9, decided: 5 }, &toy(), 60, 3);
}

#[test]
fn a_record_keeps_its_promises_and_completes_within_them() {
    check_budgets(&record(), &toy(), 60, 4);
    check_budgets(&record(), &synthetic(700, 5), 3, 5);
}

#[test]
fn a_string_keeps_its_promises_and_completes_within_them() {
    check_budgets(&JsonString { max_chars: 5 }, &synthetic(700, 6), 2, 6);
}

/// The least number of tokens that spell `text`, by trying every token at every offset.
fn fewest_tokens(vocabulary: &Vocabulary, text: &[u8]) -> usize {
    let mut fewest = vec![usize::MAX; text.len() + 1];
    fewest[0] = 0;
    for offset in 0..text.len() {
        for token in 0..vocabulary.len() as TokenId {
            if let Some(bytes) = vocabulary.token_bytes(token).filter(|bytes| !bytes.is_empty())
                && fewest[offset] < usize::MAX
                && text[offset..].starts_with(bytes)
            {
                let end = offset + bytes.len();
                fewest[end] = fewest[end].min(fewest[offset] + 1);
            }
        }
    }
    fewest[text.len()]
}

#[test]
fn the_count_is_the_least_number_of_tokens_that_spell_the_shortest_completion() {
    let vocabulary = toy();
    let mut random = Random(7);
    let letters = ["na", "m", "e", "tr", "ue", "[]", "[", "]", "10", "0", "\"", ": ", "é"];
    for _ in 0..100 {
        let text: String = (0..=random.below(9)).map(|_| random.choose(&letters)).collect();
        // A longer alternative, so that there is a choice on the way.
        let texts = [text.clone(), format!("{text}{text}"), format!("{text}na")];
        let mut choices = Choices::new(&texts).unwrap();
        let start = choices.start();
        assert_eq!(choices.completion(start), text.as_bytes());
        let options =
            MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
        let mut matcher = Matcher::new(choices, Arc::clone(&vocabulary), options);
        assert_eq!(matcher.completion_tokens(), fewest_tokens(&vocabulary, text.as_bytes()));
    }
}

#[test]
fn a_long_completion_is_counted_without_recursion() {
    let vocabulary = toy();
    let text = "[]".repeat(20_000);
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
        let choices = Choices::new([&text]).unwrap();
        let mut matcher = Matcher::new(choices, Arc::clone(&vocabulary), options);
        // `[][]` is a token, and the toy's merges make it too.
        assert_eq!(matcher.completion_tokens(), 10_000);
    }
}
