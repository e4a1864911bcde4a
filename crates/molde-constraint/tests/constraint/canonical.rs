//! Forced text in the tokenizer's own segmentation.

use std::collections::BTreeMap;
use std::sync::Arc;

use molde_constraint::{Choices, Matcher, MatcherOptions, Segmentation};
use molde_vocab::TokenEntry::{Control, Text};
use molde_vocab::{Segmenter, TokenConstraint, TokenId, Vocabulary};

use crate::automata::{JsonString, Language, Next, Number, Piece, Sequence, record};
use crate::vocabularies::{synthetic, toy};
use crate::walk::{Random, matcher, naive_mask, read_tokens, text_of, token_of, tokens_of};

/// A stand-in for a model: a fixed preference among tokens after a sequence of tokens.
fn preferred(seed: u64, before: &[TokenId], mask: &[TokenId]) -> TokenId {
    let score = |token: TokenId| {
        let mut random = Random(seed);
        for &token in before {
            random.0 ^= u64::from(token);
            random.next();
        }
        random.0 ^= u64::from(token) << 32;
        random.next()
    };
    *mask.iter().max_by_key(|&&token| score(token)).unwrap()
}

/// The tokens that the stand-in writes, at most `budget`; forced tokens are taken at once or are
/// left to the stand-in.
fn write<C: TokenConstraint>(
    matcher: &mut C,
    seed: u64,
    fast_forward: bool,
    budget: usize,
) -> Vec<TokenId> {
    let mut written = Vec::new();
    while !matcher.is_finished() {
        let remaining = budget - written.len();
        let token = match matcher.forced() {
            Some(token) if fast_forward => token,
            _ => {
                let mask = tokens_of(matcher);
                let token = preferred(seed, &written, &mask);
                if matcher.fits(token, remaining) {
                    token
                } else {
                    let within: Vec<_> = matcher.mask_within(remaining).unwrap().iter().collect();
                    preferred(seed, &written, &within)
                }
            }
        };
        written.push(token);
        matcher.accept(token).unwrap();
    }
    written
}

#[test]
fn with_and_without_fast_forward_the_same_tokens_are_written() {
    for vocabulary in [toy(), synthetic(900, 3)] {
        let mut forced_tokens = 0;
        for seed in 0..60 {
            let language = record();
            let mut plain = matcher(&language, &vocabulary, Segmentation::Canonical);
            let budget = plain.completion_tokens() + seed as usize % 20;
            let expected = write(&mut plain, seed, false, budget);
            let mut fast = matcher(&language, &vocabulary, Segmentation::Canonical);
            assert_eq!(write(&mut fast, seed, true, budget), expected);
            fast.reset();
            for &token in &expected {
                forced_tokens += usize::from(fast.forced().is_some());
                fast.accept(token).unwrap();
            }
        }
        assert!(forced_tokens > 300, "only {forced_tokens} tokens were forced");
    }
}

#[test]
fn forced_text_is_written_as_the_tokenizer_segments_it() {
    let vocabulary = toy();
    let spell = |tokens: &[TokenId]| {
        let text = |&token| String::from_utf8(text_of(&vocabulary, &[token])).unwrap();
        tokens.iter().map(text).collect::<Vec<_>>().join("|")
    };
    let mut matcher = matcher(&record(), &vocabulary, Segmentation::Canonical);
    let mut written = Vec::new();
    while let Some(token) = matcher.forced() {
        written.push(token);
        matcher.accept(token).unwrap();
    }
    // By the ranks of the toy: `":` before `": ` before ` "`. The last quote stands alone, since
    // no letter that may follow merges with it.
    assert_eq!(spell(&written), "{\"|name|\": |\"");
    assert!(matcher.mask().unwrap().len() > 10);
}

#[test]
fn a_token_that_could_merge_with_what_follows_is_left_to_the_model() {
    // The tokenizer writes `x=` and `x=1` differently.
    let texts = ["x", "=", "1", "2", "=1", ";", "x="];
    let entries = texts.iter().map(|text| Text(text.as_bytes())).chain([Control]);
    let segmenter = move |text: &str| {
        let mut tokens: Vec<TokenId> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let token = match rest {
                rest if rest.starts_with("x=1") => 0,
                rest if rest.starts_with("x=") => 6,
                rest if rest.starts_with("=1") => 4,
                rest => match texts.iter().position(|text| rest.starts_with(text)) {
                    Some(token) => token as TokenId,
                    None => break,
                },
            };
            rest = &rest[texts[token as usize].len()..];
            tokens.push(token);
        }
        tokens
    };
    let segmenter: Arc<dyn Segmenter> = Arc::new(segmenter);
    let vocabulary = Arc::new(Vocabulary::new(entries, [7], Some(segmenter)).unwrap());
    let mask = |ends: &[&'static str]| {
        let language = Sequence(vec![Piece::OneOf(vec!["x="]), Piece::OneOf(ends.to_vec())]);
        tokens_of(&mut matcher(&language, &vocabulary, Segmentation::Canonical))
    };
    // Only what cannot be `1` leaves `x=` alone; only `1` forces `x`.
    assert_eq!(mask(&["2", ";"]), [6]);
    assert_eq!(mask(&["1"]), [0]);
    assert_eq!(mask(&["1", "2"]), [0, 6]);
}

#[test]
fn a_token_that_depends_on_what_is_before_it_is_left_to_the_model() {
    // Like a pre-tokenizer that takes a mark together with the word after it, but not after
    // another mark.
    let texts = ["_", "id", "_id", "{\"", "a", "1"];
    let entries = texts.iter().map(|text| Text(text.as_bytes())).chain([Control]);
    let segmenter = |text: &str| match text {
        "_id" => vec![2],
        "{\"_id" => vec![3, 0, 1],
        "a_id" => vec![4, 2],
        "id" => vec![1],
        _ => vec![],
    };
    let segmenter: Arc<dyn Segmenter> = Arc::new(segmenter);
    let vocabulary = Arc::new(Vocabulary::new(entries, [6], Some(segmenter)).unwrap());
    let mask = |text: &str| {
        let choices = Choices::new([text]).unwrap();
        let vocabulary = Arc::clone(&vocabulary);
        tokens_of(&mut Matcher::new(choices, vocabulary, MatcherOptions::default()))
    };
    assert_eq!(mask("_id"), [0, 2]);
    assert_eq!(mask("id"), [1]);
}

#[test]
fn a_segmenter_that_does_not_spell_the_text_is_not_followed() {
    let entries = || ["a", "b", "ab", "▁ab"].map(Text).into_iter().chain([Control, Text("")]);
    for answer in [vec![3], vec![4], vec![5], vec![99], vec![], vec![1]] {
        let segmenter: Arc<dyn Segmenter> = Arc::new(move |_: &str| answer.clone());
        let vocabulary = Arc::new(Vocabulary::new(entries(), [4], Some(segmenter)).unwrap());
        let choices = Choices::new(["ab"]).unwrap();
        let mut matcher = Matcher::new(choices, vocabulary, MatcherOptions::default());
        assert_eq!(tokens_of(&mut matcher), [0, 2]);
    }
}

#[test]
fn the_tokenizers_own_segmentation_of_a_whole_text_is_accepted() {
    let vocabulary = toy();
    let segmenter = vocabulary.segmenter().unwrap();
    let language = record();
    let mut random = Random(8);
    let mut matcher = matcher(&language, &vocabulary, Segmentation::Canonical);
    for _ in 0..300 {
        let letters = ["na", "me", "é", " ", "ok", "t", ""];
        let name: String = (0..random.below(5)).map(|_| random.choose(&letters)).collect();
        let ok = random.choose(&["true", "false", "\"true\"", "null"]);
        let count = random.below(4) * 10 + random.below(4);
        let text = format!("{{\"name\": \"{name}\", \"ok\": {ok}, \"count\": {count}}}");
        matcher.reset();
        for token in segmenter.segment(&text) {
            matcher.accept(token).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        assert!(matcher.is_finished());
    }
}

/// The only token by definition: the text that must follow, cut by the segmenter, if nothing of a
/// thousand one or two characters that may follow changes its first token.
fn naive_forced<L: Language>(
    language: &L,
    state: L::State,
    vocabulary: &Vocabulary,
) -> Option<TokenId> {
    let mut run = Vec::new();
    let mut end = state;
    loop {
        let next: Vec<_> = (0..=255u8)
            .filter_map(|byte| match language.step(end, byte) {
                Next::To(next) => Some((byte, next)),
                _ => None,
            })
            .collect();
        match next.as_slice() {
            &[(byte, next)] if !language.accepts(end) => {
                run.push(byte);
                end = next;
            }
            _ => break,
        }
    }
    let run = String::from_utf8(run).ok()?;
    let first = *vocabulary.segmenter()?.segment(&run).first()?;
    for a in (' '..='~').chain(['é']) {
        for b in ["", " ", "\"", "a", "e", "n", "t", ":", "}", "1", "é"] {
            let follow = format!("{a}{b}");
            if matches!(language.read(end, follow.as_bytes()), Next::To(_))
                && vocabulary.segmenter()?.segment(&(run.clone() + &follow))[0] != first
            {
                return None;
            }
        }
    }
    Some(first)
}

#[test]
fn what_is_forced_is_what_no_legal_continuation_changes() {
    let vocabulary = toy();
    let languages = [
        record(),
        Sequence(vec![
            Piece::OneOf(vec!["[\"true\", "]),
            Piece::OneOf(vec!["\"name\"", "true", "null"]),
            Piece::OneOf(vec!["]"]),
        ]),
    ];
    let mut random = Random(9);
    let mut forced = 0;
    for language in &languages {
        let mut matcher = matcher(language, &vocabulary, Segmentation::Canonical);
        let mut known = BTreeMap::new();
        for _ in 0..40 {
            matcher.reset();
            let mut accepted = Vec::new();
            while !matcher.is_finished() {
                let state = read_tokens(language, &vocabulary, &accepted);
                let mask = tokens_of(&mut matcher);
                let only = *known
                    .entry(state)
                    .or_insert_with(|| naive_forced(language, state, &vocabulary));
                let expected = match only {
                    Some(token) => vec![token],
                    None => naive_mask(language, state, &vocabulary).0,
                };
                assert_eq!(mask, expected, "after {accepted:?}");
                forced += usize::from(mask.len() == 1);
                accepted.push(random.choose(&mask));
                matcher.accept(accepted[accepted.len() - 1]).unwrap();
            }
        }
    }
    assert!(forced > 300);
}

#[test]
fn where_nothing_is_forced_canonical_masks_equal_any() {
    for (i, vocabulary) in [toy(), synthetic(700, 4)].iter().enumerate() {
        let mut canonical = matcher(&Number, vocabulary, Segmentation::Canonical);
        let mut any = matcher(&Number, vocabulary, Segmentation::Any);
        assert_eq!(canonical.mask(), any.mask());
        let language = JsonString { max_chars: 3 };
        let mut canonical = matcher(&language, vocabulary, Segmentation::Canonical);
        let mut any = matcher(&language, vocabulary, Segmentation::Any);
        // The first quote is forced, and many tokens begin with one.
        assert!(canonical.mask().unwrap().len() <= any.mask().unwrap().len());
        let quote = token_of(vocabulary, "\"");
        canonical.accept(quote).unwrap();
        any.accept(quote).unwrap();
        assert_eq!(canonical.mask(), any.mask(), "vocabulary {i}");
    }
}
