//! Masks of real schemas over a whole vocabulary, against what the bytes say.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_infer::Tokenizer;
use molde_schema::{CompileOptions, CompiledSchema, SchemaAutomaton};
use molde_tests::{Random, fixture, real_model, untrained_model};
use molde_vocab::{TokenConstraint, Vocabulary};
use serde_json::Value;

/// The vocabularies at hand: the tiny model's, and the real one where there is one.
fn vocabularies() -> Vec<Arc<Vocabulary>> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut models = vec![untrained_model(folder.path(), 1)];
    models.extend(real_model());
    models
        .iter()
        .map(|path| Arc::clone(Tokenizer::load(path).expect("a tokenizer").vocabulary()))
        .collect()
}

fn schemas() -> Vec<(String, Arc<CompiledSchema>)> {
    let mut texts = vec![fixture("forecast.schema.json")];
    let list: Vec<Value> = serde_json::from_str(&fixture("schemas.json")).expect("JSON");
    texts.extend(list.iter().map(Value::to_string));
    texts
        .into_iter()
        .map(|text| {
            let schema = CompiledSchema::compile(&text, &CompileOptions::default());
            (text.clone(), Arc::new(schema.unwrap_or_else(|error| panic!("{text}: {error}"))))
        })
        .collect()
}

fn matcher(
    schema: &Arc<CompiledSchema>,
    vocabulary: &Arc<Vocabulary>,
    segmentation: Segmentation,
) -> Matcher<SchemaConstraint> {
    let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
    Matcher::new(SchemaConstraint::new(schema), Arc::clone(vocabulary), options)
}

#[test]
fn a_mask_is_what_testing_each_token_byte_by_byte_says() {
    let mut random = Random(5);
    for vocabulary in vocabularies() {
        for (text, schema) in schemas() {
            let mut matcher = matcher(&schema, &vocabulary, Segmentation::Any);
            let mut automaton = SchemaAutomaton::new(&schema);
            let mut state = automaton.start();
            let mut read = Vec::new();
            let steps = 12;
            for _ in 0..steps {
                let mask = matcher.mask().expect("no dead end").clone();
                for token in 0..vocabulary.len() as u32 {
                    let allowed = match vocabulary.token_bytes(token) {
                        Some(bytes) if !bytes.is_empty() => {
                            let mut end = state;
                            let mut read = read.clone();
                            for &byte in bytes {
                                read.push(byte);
                                end = automaton.step(end, byte);
                                // Nothing follows a dead state: the other bytes need no trial.
                                if end == molde_schema::DEAD {
                                    break;
                                }
                                end = automaton.settle(end, &read);
                            }
                            end > molde_schema::UNDECIDED
                        }
                        _ => vocabulary.is_end_of_turn(token) && automaton.is_accepting(state),
                    };
                    assert_eq!(mask.contains(token), allowed, "{text}: token {token}");
                }
                let tokens: Vec<u32> =
                    mask.iter().filter(|&token| !vocabulary.is_end_of_turn(token)).collect();
                if tokens.is_empty() {
                    break;
                }
                let token = tokens[random.below(tokens.len())];
                matcher.accept(token).expect("a token of the mask");
                for &byte in vocabulary.token_bytes(token).expect("a text token") {
                    state = automaton.step(state, byte);
                    read.push(byte);
                    state = automaton.settle(state, &read);
                }
            }
        }
    }
}

#[test]
fn walks_within_a_budget_end_in_valid_texts_and_meet_no_dead_end() {
    let mut random = Random(11);
    for vocabulary in vocabularies() {
        for (text, schema) in schemas() {
            let oracle: Value = serde_json::from_str(&text).expect("JSON");
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&oracle)
                .expect("a schema");
            for segmentation in [Segmentation::Any, Segmentation::Canonical] {
                let mut matcher = matcher(&schema, &vocabulary, segmentation);
                // A budget asks for the completion behind every token of a mask.
                let walks = if vocabulary.len() <= 10_000 { 6 } else { 2 };
                for walk in 0..walks {
                    matcher.reset();
                    let least = matcher.completion_tokens();
                    let budget = least + walk * 7;
                    let mut written = Vec::new();
                    for used in 0..budget {
                        let mask = matcher.mask_within(budget - used).expect("no dead end");
                        let tokens: Vec<u32> = mask
                            .iter()
                            .filter(|&token| !vocabulary.is_end_of_turn(token))
                            .collect();
                        if tokens.is_empty() || matcher.is_finished() {
                            break;
                        }
                        let token = tokens[random.below(tokens.len())];
                        assert!(matcher.fits(token, budget - used), "{text}");
                        matcher.accept(token).expect("a token of the mask");
                        written.extend(vocabulary.token_bytes(token).expect("a text token"));
                    }
                    let written = String::from_utf8(written).expect("UTF-8");
                    assert!(matcher.is_complete(), "{text}: {written}");
                    let value: Value = serde_json::from_str(&written).expect("JSON");
                    assert!(validator.is_valid(&value), "{text}: {written}");
                }
            }
        }
    }
}

#[test]
fn skipping_forced_tokens_changes_no_text() {
    for vocabulary in vocabularies() {
        for (text, schema) in schemas() {
            let most = 40;
            let run = |skip: bool| {
                let mut random = Random(23);
                let mut matcher = matcher(&schema, &vocabulary, Segmentation::Canonical);
                let mut tokens = Vec::new();
                while tokens.len() < most && !matcher.is_finished() {
                    if let Some(token) = matcher.forced().filter(|_| skip) {
                        matcher.accept(token).expect("forced");
                        tokens.push(token);
                        continue;
                    }
                    let mask = matcher.mask().expect("no dead end");
                    let choices: Vec<u32> =
                        mask.iter().filter(|&token| !vocabulary.is_end_of_turn(token)).collect();
                    if choices.is_empty() {
                        break;
                    }
                    // One choice draws no number, so that both runs draw the same ones.
                    let at = if choices.len() == 1 { 0 } else { random.below(choices.len()) };
                    matcher.accept(choices[at]).expect("a token of the mask");
                    tokens.push(choices[at]);
                }
                tokens
            };
            assert_eq!(run(true), run(false), "{text}");
        }
    }
}
