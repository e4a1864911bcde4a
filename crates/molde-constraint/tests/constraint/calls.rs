//! Answers that may be text, calls, or both.

use std::sync::Arc;

use molde_constraint::{CallMarkers, Calls, Choices, Content, Matcher, MatcherOptions};
use molde_vocab::{TokenConstraint, TokenEntry, TokenId, Vocabulary};

use crate::budget::check_position;
use crate::walk::Random;

const TEXTS: [&str; 10] = ["a", "b", "{", "}", "\n", "a}", "{b", "bb", "x", ""];
const OPEN: TokenId = 10;
const CLOSE: TokenId = 11;
const END: TokenId = 12;

fn vocabulary() -> Arc<Vocabulary> {
    let entries = TEXTS.map(TokenEntry::Text).into_iter();
    let entries = entries.chain([TokenEntry::Control, TokenEntry::Control, TokenEntry::Control]);
    Arc::new(Vocabulary::new(entries, [END], None).unwrap())
}

fn matcher(choices: &[&str]) -> Matcher<Choices> {
    Matcher::new(Choices::new(choices).unwrap(), vocabulary(), MatcherOptions::default())
}

fn calls(content: Content, gap: &[TokenId], most: usize) -> Calls<Choices> {
    let markers = CallMarkers { open: OPEN, close: CLOSE, gap: gap.to_vec() };
    Calls::new(content, matcher(&["{a}", "{bb}"]), markers, most)
}

/// The answer as text, `<` and `>` for the markers, without the end of the turn.
fn shown(tokens: &[TokenId]) -> String {
    let text = |&token: &TokenId| match token {
        OPEN => "<",
        CLOSE => ">",
        END => "",
        token => TEXTS[token as usize],
    };
    tokens.iter().map(text).collect()
}

/// Whether `answer` is what the documentation says: written anew, on whole texts.
fn is_answer(
    answer: &str,
    content: &dyn Fn(&str) -> bool,
    empty: bool,
    gap: &str,
    most: usize,
) -> bool {
    let (text, calls) = match answer.find('<') {
        Some(at) => answer.split_at(at),
        None => (answer, ""),
    };
    let call = |value: &str| format!("<{gap}{value}{gap}>");
    let mut rest = calls;
    let mut count = 0;
    while !rest.is_empty() {
        if count > 0 {
            let Some(after) = rest.strip_prefix(gap) else { return false };
            rest = after;
        }
        let Some(value) = ["{a}", "{bb}"].iter().find(|value| rest.starts_with(&call(value)))
        else {
            return false;
        };
        rest = &rest[call(value).len()..];
        count += 1;
    }
    let text_is_right = if text.is_empty() && count > 0 { empty } else { content(text) };
    text_is_right && count <= most
}

type Case<'a> = (fn() -> Content, &'a dyn Fn(&str) -> bool);

fn cases() -> [Case<'static>; 3] {
    [
        (|| Content::Nothing, &|_| false),
        (|| Content::Free, &|_| true),
        (|| Content::Constrained(Box::new(matcher(&["ab", "bb", "abba"]))), &|text| {
            ["ab", "bb", "abba"].contains(&text)
        }),
    ]
}

#[test]
fn masks_budgets_and_rollbacks_agree_and_every_end_is_an_answer() {
    let mut ended = 0;
    for (content, is_content) in cases() {
        for (gap, gap_text) in [(&[4][..], "\n"), (&[][..], ""), (&[4, 4][..], "\n\n")] {
            for most in [1, 3] {
                let mut random = Random(most as u64);
                for _ in 0..60 {
                    let mut calls = calls(content(), gap, most);
                    let mut tokens = Vec::new();
                    for _ in 0..40 {
                        check_position(&mut calls, &mut random);
                        let mask: Vec<TokenId> = calls.mask().unwrap().iter().collect();
                        let token = random.choose(&mask);
                        calls.accept(token).unwrap();
                        tokens.push(token);
                        let answer = shown(&tokens);
                        if calls.is_complete() {
                            let right = is_answer(&answer, is_content, true, gap_text, most);
                            assert!(right, "{answer:?}");
                        }
                        if token == END {
                            ended += 1;
                            break;
                        }
                    }
                }
            }
        }
    }
    assert!(ended > 300, "only {ended} walks came to an end");
}

/// Whether the constraint accepts the answer in single characters, and finds it complete.
fn accepts(calls: &mut Calls<Choices>, answer: &str) -> bool {
    let accepted = answer.chars().all(|character| {
        let token = match character {
            '<' => OPEN,
            '>' => CLOSE,
            other => TEXTS.iter().position(|text| *text == other.to_string()).unwrap() as TokenId,
        };
        calls.mask().is_ok_and(|mask| mask.contains(token)) && calls.accept(token).is_ok()
    });
    accepted && calls.is_complete()
}

#[test]
fn every_answer_is_reachable_and_nothing_else() {
    let answers = [
        "",
        "ab",
        "abba",
        "x",
        "<\n{a}\n>",
        "<\n{bb}\n>",
        "<\n{a}\n>\n<\n{bb}\n>",
        "ab<\n{a}\n>",
        "x<\n{a}\n>",
        "<\n{a}>",
        "<{a}\n>",
        "<\n{b}\n>",
        "<\n{a}\n>\n",
        "<\n{a}\n><\n{a}\n>",
        "<\n{a}\n>ab",
        "<\n{a}\n>\n<\n{a}\n>\n<\n{a}\n>",
        "<\n{a}",
        "<",
    ];
    for (index, (content, is_content)) in cases().into_iter().enumerate() {
        for answer in answers {
            // Text under a constraint is not followed by calls.
            let both = index == 2 && !answer.starts_with('<') && answer.contains('<');
            let expected = !both
                && is_answer(answer, is_content, true, "\n", 2)
                && !(answer.is_empty() && index != 1);
            let found = accepts(&mut calls(content(), &[4], 2), answer);
            assert_eq!(found, expected, "{answer:?} after content {index}");
        }
    }
}

#[test]
fn a_call_that_does_not_fit_is_not_begun() {
    let mut free = calls(Content::Free, &[4], 1);
    // The shortest call: a marker and a gap on either side of three or two tokens of the value.
    let needed = 1 + 1 + 2 + 1 + 1;
    assert!(free.fits(OPEN, needed) && !free.fits(OPEN, needed - 1));
    assert!(!free.mask_within(needed - 1).unwrap().contains(OPEN));
    assert!(free.mask_within(1).unwrap().contains(0));
    let mut forced = calls(Content::Nothing, &[4], 1);
    assert_eq!(forced.completion_tokens(), needed);
    assert_eq!(forced.forced(), Some(OPEN));
}
