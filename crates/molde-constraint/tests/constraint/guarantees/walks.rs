//! Sound, no dead ends, the same as naive: what walks over the corpus meet and write.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema};
use molde_vocab::{ByteAutomaton, ByteSet, TokenConstraint, TokenId, Vocabulary};
use serde_json::Value;

use super::corpus::{Case, corpus};
use super::toy::json_vocabulary;
use super::work::in_parallel;
use crate::schemas::naive;
use crate::walk::Random;

/// Arrays of distinct items are walked by molde-schema's own tests: where few tokens are left, every
/// text of an item is tried.
const LEFT_OUT: &str = "\"uniqueItems\"";

/// Walks of each walker over each schema.
const WALKS: usize = 3;
/// Tokens of a walk, more where the shortest text needs more.
const BUDGET: usize = 48;
/// States of each schema whose mask is compared with trying every token.
const NAIVE_STATES: usize = 12;

/// What a walk prefers among the tokens that are allowed.
#[derive(Clone, Copy, Debug)]
enum Walker {
    Uniform,
    /// Tokens with a byte of JSON's structure.
    Structural,
    /// The longest of some.
    Longest,
}

impl Walker {
    fn choose(self, allowed: &[TokenId], vocabulary: &Vocabulary, random: &mut Random) -> TokenId {
        let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
        match self {
            // Now and then anything, or strings would have no content.
            Self::Structural if random.below(4) > 0 => {
                let structural: Vec<TokenId> = allowed
                    .iter()
                    .copied()
                    .filter(|&token| bytes(token).iter().any(|byte| b"{}[],:\"".contains(byte)))
                    .collect();
                random.choose(if structural.is_empty() { allowed } else { &structural })
            }
            Self::Longest => {
                let some: [TokenId; 8] = std::array::from_fn(|_| random.choose(allowed));
                some.into_iter().max_by_key(|&token| bytes(token).len()).unwrap()
            }
            _ => random.choose(allowed),
        }
    }
}

/// Walks to the end of a text within a budget; an error says how it got stuck.
fn walk(
    matcher: &mut Matcher<SchemaConstraint>,
    walker: Walker,
    random: &mut Random,
) -> Result<Vec<TokenId>, String> {
    let vocabulary = Arc::clone(matcher.vocabulary());
    let needed = matcher.completion_tokens();
    if needed == usize::MAX {
        return Err("cannot be completed from the start".to_owned());
    }
    // Half of the walks have no token more than they need.
    let mut remaining = if random.below(2) == 0 { needed } else { BUDGET.max(needed + 8) };
    let mut tokens = Vec::new();
    loop {
        let stuck = |matcher: &Matcher<_>, what: &str| {
            Err(format!("{what} after {:?}", String::from_utf8_lossy(matcher.text())))
        };
        let complete = matcher.is_complete();
        if matcher.is_finished() || complete && (remaining == 0 || random.below(3) == 0) {
            return Ok(tokens);
        }
        let Ok(mask) = matcher.mask().cloned() else { return stuck(matcher, "a dead end") };
        let text = |token: &TokenId| !vocabulary.is_end_of_turn(*token);
        let allowed: Vec<TokenId> = mask.iter().filter(text).collect();
        if allowed.is_empty() {
            return if complete { Ok(tokens) } else { stuck(matcher, "only the end of the turn") };
        }
        let mut token = walker.choose(&allowed, &vocabulary, random);
        if !matcher.fits(token, remaining) {
            let Ok(within) = matcher.mask_within(remaining) else {
                return stuck(matcher, "over the budget");
            };
            let fitting: Vec<TokenId> = within.iter().filter(text).collect();
            if fitting.is_empty() {
                return if complete { Ok(tokens) } else { stuck(matcher, "over the budget") };
            }
            token = walker.choose(&fitting, &vocabulary, random);
            if !mask.contains(token) {
                return stuck(matcher, "a token within the budget that is not in the mask");
            }
        }
        if let Err(error) = matcher.accept(token) {
            return stuck(matcher, &format!("token {token} is in the mask, but {error}"));
        }
        tokens.push(token);
        remaining -= 1;
    }
}

/// Whether the oracle can judge the numbers of a value, which it reads as binary64.
fn is_exact(text: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_digit()).all(|digits| digits.len() <= 15)
}

/// The constraint of a case under the default options, if it is within the limits.
fn constraint(case: &Case) -> Option<SchemaConstraint> {
    let schema = CompiledSchema::compile(&case.schema, &CompileOptions::default()).ok()?;
    Some(SchemaConstraint::new(&Arc::new(schema)))
}

fn matcher(
    constraint: SchemaConstraint,
    vocabulary: &Arc<Vocabulary>,
    segmentation: Segmentation,
) -> Matcher<SchemaConstraint> {
    let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
    Matcher::new(constraint, Arc::clone(vocabulary), options)
}

#[test]
fn walks_over_the_corpus_end_in_valid_texts_and_meet_no_dead_end() {
    let vocabulary = json_vocabulary();
    let cases = corpus();
    let results = in_parallel(&cases, |case| {
        let mut failures = Vec::new();
        let Some(constraint) = constraint(case).filter(|_| !case.schema.contains(LEFT_OUT)) else {
            return (0, failures);
        };
        let schema: Value = serde_json::from_str(&case.schema).unwrap();
        let validator = jsonschema::options().should_validate_formats(true).build(&schema);
        let mut judged = 0;
        for segmentation in [Segmentation::Any, Segmentation::Canonical] {
            let mut matcher = matcher(constraint.clone(), &vocabulary, segmentation);
            let mut random = Random(case.schema.len() as u64);
            for walker in [Walker::Uniform, Walker::Structural, Walker::Longest] {
                for _ in 0..WALKS {
                    matcher.reset();
                    if let Err(stuck) = walk(&mut matcher, walker, &mut random) {
                        failures.push(format!("{}: {walker:?}: {stuck}", case.name));
                        continue;
                    }
                    let text = String::from_utf8(matcher.text().to_vec()).unwrap();
                    let Ok(value) = serde_json::from_str::<Value>(&text) else {
                        failures.push(format!("{}: not JSON: {text}", case.name));
                        continue;
                    };
                    if let Ok(validator) = &validator
                        && is_exact(text.as_bytes())
                    {
                        judged += 1;
                        if !validator.is_valid(&value) {
                            failures.push(format!("{}: invalid: {text}", case.name));
                        }
                    }
                }
            }
        }
        (judged, failures)
    });
    let judged: usize = results.iter().map(|(judged, _)| judged).sum();
    let failures: Vec<String> = results.into_iter().flat_map(|(_, failures)| failures).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(judged > 8_000, "only {judged} texts were judged");
}

#[test]
fn masks_on_walks_over_the_corpus_equal_trying_every_token_and_come_back_after_a_rollback() {
    let vocabulary = json_vocabulary();
    let cases = corpus();
    let results = in_parallel(&cases, |case| {
        let Some(constraint) = constraint(case) else { return 0 };
        let mut any = matcher(constraint.clone(), &vocabulary, Segmentation::Any);
        let mut random = Random(case.name.len() as u64);
        let Ok(tokens) = walk(&mut any, Walker::Structural, &mut random) else { return 0 };
        any.reset();
        let mut canonical = matcher(constraint, &vocabulary, Segmentation::Canonical);
        let mut masks = Vec::new();
        let stride = tokens.len().div_ceil(NAIVE_STATES).max(1);
        let mut states = 0;
        for (index, &token) in tokens.iter().enumerate() {
            let mask: Vec<TokenId> = any.mask().unwrap().iter().collect();
            if index % stride == 0 {
                states += 1;
                let mut automaton = any.automaton().clone();
                let (expected, _) = naive(&mut automaton, any.state(), any.text(), &vocabulary);
                assert_eq!(mask, expected, "{}: after {:?}", case.name, any.text());
                let only = (mask.len() == 1 && !any.is_complete()).then(|| mask[0]);
                assert_eq!(any.forced(), only);
                let bytes: ByteSet =
                    (0..=255).filter(|&byte| automaton.step(any.state(), byte).is_live()).collect();
                let state = any.state();
                assert_eq!(any.live_bytes(state), bytes);
            }
            masks.push(mask);
            any.accept(token).unwrap();
        }
        // Back in leaps, and on again.
        for _ in 0..tokens.len().min(4) {
            let back = random.below(any.accepted_tokens() + 1);
            any.rollback(back).unwrap();
            let at = any.accepted_tokens();
            if let Some(expected) = masks.get(at) {
                let mask: Vec<TokenId> = any.mask().unwrap().iter().collect();
                assert_eq!(&mask, expected, "{}: rolled back to {at}", case.name);
            }
            for &token in &tokens[at..] {
                any.accept(token).unwrap();
            }
            assert!(any.is_complete());
        }
        // Canonical masks hold one token, or are those of every segmentation.
        for _ in 0..tokens.len().min(24) {
            if canonical.is_finished() {
                break;
            }
            let mask: Vec<TokenId> = canonical.mask().unwrap().iter().collect();
            let mut automaton = canonical.automaton().clone();
            let (expected, _) =
                naive(&mut automaton, canonical.state(), canonical.text(), &vocabulary);
            if mask != expected {
                assert!(mask.len() == 1 && expected.contains(&mask[0]), "{}", case.name);
                assert_eq!(canonical.forced(), Some(mask[0]));
            }
            canonical.accept(random.choose(&mask)).unwrap();
        }
        states
    });
    let states: usize = results.iter().sum();
    assert!(states >= 2000, "only {states} states were compared");
}

#[test]
fn skipping_forced_tokens_changes_no_text_of_the_corpus() {
    let vocabulary = json_vocabulary();
    let cases = corpus();
    let results = in_parallel(&cases, |case| {
        let Some(constraint) = constraint(case) else { return 0 };
        let mut forced = 0;
        let mut write = |skip: bool| {
            let mut random = Random(case.schema.len() as u64);
            let mut matcher = matcher(constraint.clone(), &vocabulary, Segmentation::Canonical);
            let mut tokens: Vec<TokenId> = Vec::new();
            while tokens.len() < BUDGET && !matcher.is_finished() {
                let token = if let Some(token) = matcher.forced().filter(|_| skip) {
                    forced += 1;
                    token
                } else {
                    let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                    // One choice draws no number, so that both draw the same ones.
                    if mask.len() == 1 { mask[0] } else { random.choose(&mask) }
                };
                matcher.accept(token).unwrap();
                tokens.push(token);
            }
            tokens
        };
        assert_eq!(write(true), write(false), "{}", case.name);
        forced
    });
    let forced: usize = results.iter().sum();
    assert!(forced > 1000, "only {forced} tokens were forced");
}
