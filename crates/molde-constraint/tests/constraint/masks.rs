//! Masks, forced tokens, rollback, and what is said about tokens that do not fit.

use std::sync::Arc;

use molde_constraint::{Explanation, Segmentation};
use molde_vocab::TokenEntry::{Control, Text};
use molde_vocab::{ConstraintError, TokenConstraint, TokenId, Vocabulary};

use crate::automata::{Brackets, JsonString, Language, Number, Piece, Sequence, record};
use crate::vocabularies::{synthetic, toy};
use crate::walk::{Random, matcher, naive_mask, read_tokens, text_of, token_of, tokens_of};

/// Random walks in which everything that is said at each position is compared with the
/// definitions; now and then some tokens are taken back.
fn check_walks<L: Language>(language: &L, vocabulary: &Arc<Vocabulary>, walks: usize, seed: u64) {
    let mut random = Random(seed);
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let mut matcher = matcher(language, vocabulary, segmentation);
        for _ in 0..walks {
            matcher.reset();
            // The tokens accepted, and what the masks were before each.
            let mut accepted: Vec<TokenId> = Vec::new();
            let mut masks: Vec<Vec<TokenId>> = Vec::new();
            for _ in 0..60 {
                let state = read_tokens(language, vocabulary, &accepted);
                let complete = language.accepts(state);
                let (expected, _) = naive_mask(language, state, vocabulary);
                let mask = tokens_of(&mut matcher);
                if segmentation == Segmentation::Any {
                    assert_eq!(mask, expected);
                } else if mask != expected {
                    // Canonical segmentation leaves one of them.
                    assert!(mask.len() == 1 && expected.contains(&mask[0]), "{mask:?}");
                    assert!(!complete);
                }
                assert!(!mask.is_empty(), "a dead end");
                assert_eq!(matcher.is_complete(), complete);
                let only = (mask.len() == 1 && !complete).then(|| mask[0]);
                assert_eq!(matcher.forced(), only);
                let goes_on = (0..=255)
                    .any(|b| matches!(language.step(state, b), crate::automata::Next::To(_)));
                assert_eq!(matcher.is_finished(), complete && !goes_on);
                assert_eq!(matcher.accepted_tokens(), accepted.len());
                check_explanations(&mut matcher, &mask, &mut random);
                masks.push(mask.clone());

                let token = random.choose(&mask);
                matcher.accept(token).unwrap();
                if vocabulary.is_end_of_turn(token) {
                    assert!(matcher.is_finished() && matcher.is_complete());
                    assert_eq!(matcher.mask().unwrap().len(), 0);
                    assert!(matcher.accept(token).is_err());
                    assert_eq!(matcher.completion_tokens(), 0);
                    matcher.rollback(1).unwrap();
                    assert_eq!(tokens_of(&mut matcher), mask);
                    break;
                }
                accepted.push(token);
                if random.below(8) == 0 {
                    let back = random.below(accepted.len() + 1);
                    matcher.rollback(back).unwrap();
                    accepted.truncate(accepted.len() - back);
                    masks.truncate(accepted.len() + 1);
                    if back > 0 {
                        assert_eq!(tokens_of(&mut matcher), masks[accepted.len()]);
                        masks.truncate(accepted.len());
                    }
                }
            }
        }
    }
}

/// What is said about some tokens agrees with the mask, and a token that is not in it changes
/// nothing.
fn check_explanations<L: Language>(
    matcher: &mut molde_constraint::Matcher<crate::automata::Lazy<L>>,
    mask: &[TokenId],
    random: &mut Random,
) where
    molde_constraint::Matcher<crate::automata::Lazy<L>>: TokenConstraint,
{
    let vocabulary = Arc::clone(matcher.vocabulary());
    let count = vocabulary.len().min(80);
    for _ in 0..count {
        let token = random.below(vocabulary.len() + 2) as TokenId;
        let allowed = mask.contains(&token);
        let explanation = matcher.explain(token);
        assert_eq!(explanation == Explanation::Allowed, allowed, "{token}: {explanation:?}");
        if allowed {
            continue;
        }
        let error = matcher.accept(token).unwrap_err();
        match explanation {
            Explanation::Rejected { byte_offset, .. }
            | Explanation::Undecided { byte_offset, .. } => {
                assert_eq!(error, ConstraintError::TokenNotAllowed { token, byte_offset });
            }
            Explanation::NotCanonical { expected } => {
                assert_eq!(error, ConstraintError::NotCanonical { token, expected });
                assert_eq!(mask, [expected]);
            }
            _ => assert_eq!(error, ConstraintError::NotText { token }),
        }
    }
    assert_eq!(tokens_of(matcher), mask);
}

#[test]
fn on_a_number_all_that_is_said_agrees_with_trying_every_token() {
    check_walks(&Number, &toy(), 200, 1);
    check_walks(&Number, &synthetic(1500, 5), 10, 2);
}

#[test]
fn on_nested_brackets_all_that_is_said_agrees_with_trying_every_token() {
    check_walks(&Brackets { max_depth: 5, decided: 5 }, &toy(), 200, 3);
}

#[test]
fn on_a_record_all_that_is_said_agrees_with_trying_every_token() {
    check_walks(&record(), &toy(), 200, 4);
    check_walks(&record(), &synthetic(1500, 6), 10, 5);
}

#[test]
fn on_a_string_all_that_is_said_agrees_with_trying_every_token() {
    check_walks(&JsonString { max_chars: 10 }, &synthetic(1500, 7), 20, 6);
}

#[test]
fn in_a_vocabulary_of_a_hundred_thousand_tokens_masks_equal_trying_every_token() {
    let vocabulary = synthetic(151_936, 8);
    let language = JsonString { max_chars: 6 };
    let mut matcher = matcher(&language, &vocabulary, Segmentation::Any);
    let mut random = Random(7);
    for _ in 0..6 {
        matcher.reset();
        let mut accepted = Vec::new();
        while !matcher.is_finished() {
            let state = read_tokens(&language, &vocabulary, &accepted);
            let mask = tokens_of(&mut matcher);
            assert_eq!(mask, naive_mask(&language, state, &vocabulary).0);
            accepted.push(random.choose(&mask));
            matcher.accept(accepted[accepted.len() - 1]).unwrap();
        }
    }
}

#[test]
fn the_masks_of_a_few_states_are_as_written_down_by_hand() {
    let vocabulary = toy();
    let texts = |tokens: Vec<TokenId>| {
        let mut texts: Vec<_> = tokens
            .iter()
            .map(|&t| String::from_utf8(text_of(&vocabulary, &[t])).unwrap())
            .collect();
        texts.sort();
        texts.join(" ")
    };
    let token = |text: &str| token_of(&vocabulary, text);

    let mut number = matcher(&Number, &vocabulary, Segmentation::Any);
    assert_eq!(texts(tokens_of(&mut number)), "- 0 0. 1 10 12 2 3 9");
    number.accept(token("-")).unwrap();
    number.accept(token("0")).unwrap();
    // Two ids end the turn, and have no text.
    assert_eq!(texts(tokens_of(&mut number)), "  .");
    number.accept(token(".")).unwrap();
    assert_eq!(texts(tokens_of(&mut number)), "0 1 10 12 2 3 9");

    let mut brackets =
        matcher(&Brackets { max_depth: 2, decided: 2 }, &vocabulary, Segmentation::Any);
    assert_eq!(texts(tokens_of(&mut brackets)), "[ [[ [] []");
    brackets.accept(token("[[")).unwrap();
    assert_eq!(texts(tokens_of(&mut brackets)), "] ][ ]]");
    brackets.accept(token("]")).unwrap();
    assert_eq!(texts(tokens_of(&mut brackets)), "[ [] [] [][] ]");
}

#[test]
fn undecided_successors_are_masked_out_and_counted_once_a_position() {
    let vocabulary = toy();
    let language = Brackets { max_depth: 4, decided: 2 };
    let mut random = Random(9);
    let mut matcher = matcher(&language, &vocabulary, Segmentation::Any);
    let mut seen_some = false;
    for _ in 0..50 {
        matcher.reset();
        let mut accepted = Vec::new();
        let mut expected_count = 0;
        while !matcher.is_finished() {
            let state = read_tokens(&language, &vocabulary, &accepted);
            let (expected, undecided) = naive_mask(&language, state, &vocabulary);
            expected_count += undecided;
            assert_eq!(tokens_of(&mut matcher), expected);
            matcher.forced();
            assert_eq!(matcher.undecided(), expected_count);
            // What was only tried does not count, and nothing counts twice.
            matcher.accept(expected[0]).unwrap();
            tokens_of(&mut matcher);
            matcher.rollback(1).unwrap();
            assert_eq!(tokens_of(&mut matcher), expected);
            assert_eq!(matcher.undecided(), expected_count);
            for token in 0..vocabulary.len() as TokenId {
                if let Explanation::Undecided { byte_offset, .. } = matcher.explain(token) {
                    assert_eq!(vocabulary.token_bytes(token).unwrap()[byte_offset], b'[');
                    assert!(!expected.contains(&token));
                }
            }
            accepted.push(random.choose(&expected));
            matcher.accept(accepted[accepted.len() - 1]).unwrap();
        }
        seen_some |= expected_count > 0;
    }
    assert!(seen_some);
}

#[test]
fn more_tokens_than_were_accepted_are_not_taken_back() {
    let mut matcher = matcher(&record(), &toy(), Segmentation::Any);
    let before = tokens_of(&mut matcher);
    matcher.accept(before[0]).unwrap();
    assert_eq!(
        matcher.rollback(2),
        Err(ConstraintError::RollbackTooFar { requested: 2, accepted: 1 })
    );
    assert_eq!(matcher.accepted_tokens(), 1);
    matcher.rollback(1).unwrap();
    assert_eq!(tokens_of(&mut matcher), before);
}

#[test]
fn a_text_that_no_token_continues_is_an_error_and_never_an_empty_mask() {
    let entries = [Text("a"), Text("b"), Control];
    let vocabulary = Arc::new(Vocabulary::new(entries, [2], None).unwrap());
    let language = Sequence(vec![Piece::OneOf(vec!["ax", "b"])]);
    for segmentation in [Segmentation::Any, Segmentation::Canonical] {
        let mut matcher = matcher(&language, &vocabulary, segmentation);
        assert_eq!(tokens_of(&mut matcher), [0, 1]);
        assert_eq!(matcher.completion_tokens(), 1);
        assert!(!matcher.fits(0, 100));
        assert_eq!(matcher.mask_within(100).unwrap().iter().collect::<Vec<_>>(), [1]);
        matcher.accept(0).unwrap();
        assert_eq!(matcher.completion_tokens(), usize::MAX);
        assert_eq!(matcher.mask(), Err(ConstraintError::NoTokenAllowed));
        assert_eq!(matcher.mask_within(9), Err(ConstraintError::NoTokenAllowed));
        assert_eq!(matcher.forced(), None);
    }
}
