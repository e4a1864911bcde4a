//! Exhaustive on a small world: the texts that the masks reach are the texts that an independent
//! validator accepts.

use std::collections::BTreeSet;
use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema, NumberStyle, Order, SchemaError, Style};
use molde_vocab::{StateId, TokenConstraint, TokenId, Vocabulary};
use serde_json::Value;

use super::schemas::small_schemas;
use super::texts::{Prefixes, Spacing, texts};
use super::toy::vocabulary;
use super::work::in_parallel;

/// The longest texts of the small world, in bytes.
const MOST_BYTES: usize = 14;

/// Limits that some schemas of the small world exceed, all with `uniqueItems`, and how many schemas:
/// they may only get fewer.
const BEYOND_LIMITS: ([&str; 2], usize) = (["negated_unique_items", "distinct_choices"], 4);

/// The most tokens of which all sequences are tried.
const MOST_TOKENS: usize = 5;

/// The texts of a style with their values.
struct World {
    style: Style,
    texts: Vec<String>,
    values: Vec<Value>,
    prefixes: Prefixes,
}

impl World {
    fn new(spacing: Spacing) -> Self {
        let texts: Vec<String> = texts(spacing, MOST_BYTES).into_iter().collect();
        let values = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let prefixes = Prefixes::new(texts.iter().map(String::as_str));
        let style = match spacing {
            Spacing::Compact => Style::Compact,
            Spacing::Spaced => Style::Spaced,
        };
        Self { style, texts, values, prefixes }
    }
}

/// What a walk over all tokens finds.
#[derive(Default)]
struct Reached {
    texts: BTreeSet<usize>,
    seen: BTreeSet<(usize, StateId)>,
    faults: Vec<String>,
}

/// Follows every token of every mask that leads to a prefix of a text of the world.
fn reach(
    matcher: &mut Matcher<SchemaConstraint>,
    world: &World,
    node: usize,
    vocabulary: &Vocabulary,
    reached: &mut Reached,
) {
    if !reached.seen.insert((node, matcher.state())) {
        return;
    }
    let complete = matcher.is_complete();
    if complete && let Some(text) = world.prefixes.text(node) {
        reached.texts.insert(text);
    }
    let tokens: Vec<TokenId> = match matcher.mask() {
        Ok(mask) => mask.iter().collect(),
        Err(error) => {
            reached.faults.push(format!("{error} after {:?}", text_of(matcher)));
            return;
        }
    };
    if matcher.completion_tokens() == usize::MAX {
        reached.faults.push(format!("no completion after {:?}", text_of(matcher)));
    }
    for token in tokens {
        let Some(bytes) = vocabulary.token_bytes(token) else { continue };
        let Some(after) = world.prefixes.after(node, bytes) else { continue };
        match matcher.accept(token) {
            Ok(()) => {
                reach(matcher, world, after, vocabulary, reached);
                matcher.rollback(1).unwrap();
            }
            Err(error) => reached.faults.push(format!(
                "the mask allows {:?} after {:?}, which is not accepted: {error}",
                bytes.escape_ascii().to_string(),
                text_of(matcher)
            )),
        }
    }
}

fn text_of(matcher: &Matcher<SchemaConstraint>) -> String {
    String::from_utf8_lossy(matcher.text()).into_owned()
}

/// Compares the two sets for one schema; returns what differs.
fn compare(schema: &Value, order: Order, world: &World, vocabulary: &Arc<Vocabulary>) -> Outcome {
    let options = CompileOptions {
        style: world.style,
        order,
        number_style: NumberStyle::Any,
        ..CompileOptions::default()
    };
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    let (compiled, mut reached) = match CompiledSchema::compile(&schema.to_string(), &options) {
        Ok(compiled) => {
            let compiled = Arc::new(compiled);
            let constraint = SchemaConstraint::new(&compiled);
            let options =
                MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
            let mut matcher = Matcher::new(constraint, Arc::clone(vocabulary), options);
            let mut reached = Reached::default();
            reach(&mut matcher, world, Prefixes::START, vocabulary, &mut reached);
            if matcher.undecided() > 0 {
                let limit = matcher.automaton().last_limit().unwrap_or_default();
                reached.faults.push(format!("{} undecided: {limit}", matcher.undecided()));
            }
            (Some(compiled), reached)
        }
        Err(SchemaError::Unsatisfiable { .. }) => (None, Reached::default()),
        Err(error) => return Outcome::Refused(error),
    };
    for (index, (text, value)) in world.texts.iter().zip(&world.values).enumerate() {
        let is_valid = validator.is_valid(value);
        match (reached.texts.contains(&index), is_valid) {
            (true, false) => reached.faults.push(format!("invalid but reached: {text}")),
            (false, true) => {
                // In schema order some orders of the members are not written.
                let written = match (&compiled, order) {
                    (Some(compiled), Order::Schema) => compiled.canonical_order(text).unwrap(),
                    _ => text.clone(),
                };
                if *text == written {
                    reached.faults.push(format!("valid but not reached: {text}"));
                }
            }
            _ => {}
        }
    }
    Outcome::Compared { faults: reached.faults, texts: reached.texts.len() }
}

enum Outcome {
    Refused(SchemaError),
    Compared { faults: Vec<String>, texts: usize },
}

/// What is wrong with a schema, how many texts were reached, and whether it is within the limits.
fn check(index: usize, schema: &Value, worlds: &[World; 2]) -> (Vec<String>, usize, bool) {
    let vocabulary = vocabulary();
    let mut failures = Vec::new();
    let mut reached = 0;
    let mut is_within = true;
    for (world, order) in [(&worlds[0], Order::Any), (&worlds[1], Order::Schema)] {
        match compare(schema, order, world, &vocabulary) {
            Outcome::Refused(SchemaError::Limit { name, .. })
                if BEYOND_LIMITS.0.contains(&name) =>
            {
                is_within = false;
            }
            Outcome::Refused(error) => failures.push(format!("{index} {schema}: {error}")),
            Outcome::Compared { faults, texts } => {
                reached += texts;
                if !faults.is_empty() {
                    let (count, first) = (faults.len(), &faults[..faults.len().min(4)]);
                    failures.push(format!("{index} {order:?} {schema}: {count}: {first:?}"));
                }
            }
        }
    }
    (failures, reached, is_within)
}

#[test]
fn the_texts_that_masks_reach_are_the_texts_that_a_validator_accepts() {
    let worlds = [World::new(Spacing::Compact), World::new(Spacing::Spaced)];
    let schemas: Vec<(usize, Value)> = small_schemas(1).into_iter().enumerate().collect();
    let results = in_parallel(&schemas, |(index, schema)| check(*index, schema, &worlds));
    let reached: usize = results.iter().map(|(_, reached, _)| reached).sum();
    let beyond = results.iter().filter(|(.., is_within)| !is_within).count();
    let failures: Vec<String> = results.into_iter().flat_map(|(failures, ..)| failures).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(beyond <= BEYOND_LIMITS.1, "{beyond} schemas exceed a limit");
    assert!(reached > 500_000, "only {reached} texts were reached");
}

/// The fewest tokens that lead to a complete text, by looking at all states that so many tokens
/// reach; `None` if no text is complete within `most`.
fn fewest_tokens(
    matcher: &mut Matcher<SchemaConstraint>,
    vocabulary: &Vocabulary,
    most: usize,
) -> Option<usize> {
    let mut seen = BTreeSet::new();
    let mut reached: Vec<Vec<TokenId>> = vec![Vec::new()];
    for tokens in 0..=most {
        let mut next = Vec::new();
        for path in reached {
            matcher.reset();
            for &token in &path {
                matcher.accept(token).unwrap();
            }
            if matcher.is_complete() {
                return Some(tokens);
            }
            let allowed: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            for token in allowed.into_iter().filter(|&token| !vocabulary.is_end_of_turn(token)) {
                matcher.accept(token).unwrap();
                if seen.insert(matcher.state()) {
                    next.push([path.as_slice(), &[token]].concat());
                }
                matcher.rollback(1).unwrap();
            }
        }
        reached = next;
    }
    None
}

/// Schemas whose promise is above the least: the count is that of a shortest text, and a longer text
/// may have fewer tokens. They may only get fewer.
const ABOVE_LEAST: usize = 17;

#[test]
fn the_promise_is_enough_and_nearly_always_what_trying_all_token_sequences_finds() {
    let vocabulary = vocabulary();
    let schemas: Vec<(usize, Value)> = small_schemas(1).into_iter().enumerate().collect();
    let results = in_parallel(&schemas, |(_, schema)| {
        let text = schema.to_string();
        let Ok(compiled) = CompiledSchema::compile(&text, &CompileOptions::default()) else {
            return None;
        };
        let constraint = SchemaConstraint::new(&Arc::new(compiled));
        let options =
            MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
        let mut matcher = Matcher::new(constraint, Arc::clone(&vocabulary), options);
        let promised = matcher.completion_tokens();
        (promised <= MOST_TOKENS).then(|| {
            let least = fewest_tokens(&mut matcher, &vocabulary, promised);
            assert!(least.is_some(), "{text}: {promised} tokens are not enough");
            least == Some(promised)
        })
    });
    let compared: Vec<bool> = results.into_iter().flatten().collect();
    assert!(compared.len() > 400, "only {} schemas were compared", compared.len());
    let above = compared.iter().filter(|is_least| !**is_least).count();
    assert!(above <= ABOVE_LEAST, "{above} promises are above the least");
}
