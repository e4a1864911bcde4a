//! Complete: every valid instance can be written, in each style and order, however it is cut into
//! tokens.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{
    CompileOptions, CompiledSchema, Escapes, NumberStyle, Order, SchemaError, Style,
};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use super::corpus::{Case, Layout, corpus, lay_out};
use super::toy::json_vocabulary;
use super::work::in_parallel;
use crate::walk::Random;

/// Random segmentations of each text in the default style.
const SEGMENTATIONS: usize = 50;
/// In the others.
const FEW_SEGMENTATIONS: usize = 3;
/// Schemas of the corpus that exceed a limit: they may only get fewer.
const BEYOND_LIMITS: usize = 4;

/// The style of a layout.
const LAYOUTS: [(Style, Layout); 4] = [
    (Style::Spaced, Layout::Spaced),
    (Style::Compact, Layout::Compact),
    (Style::Flexible, Layout::Pretty(2)),
    (Style::Flexible, Layout::Pretty(4)),
];

/// A way to write with every token sequence, each token drawn from all that fit.
fn random_segmentation(text: &str, vocabulary: &Vocabulary, random: &mut Random) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let fitting: Vec<(usize, TokenId)> = vocabulary.trie().prefixes(rest).collect();
        let (len, token) = random.choose(&fitting);
        tokens.push(token);
        rest = &rest[len..];
    }
    tokens
}

fn own_segmentation(text: &str, vocabulary: &Vocabulary) -> Vec<TokenId> {
    vocabulary.segmenter().unwrap().segment(text)
}

/// What keeps the tokens from being written, if anything does.
fn obstacle(matcher: &mut Matcher<SchemaConstraint>, tokens: &[TokenId]) -> Option<String> {
    matcher.reset();
    for &token in tokens {
        if !matcher.mask().is_ok_and(|mask| mask.contains(token)) {
            let explanation = matcher.explain(token);
            let limit = matcher.automaton().last_limit().unwrap_or_default();
            let text = String::from_utf8_lossy(matcher.text());
            return Some(format!("after {text:?}: {explanation:?} {limit}"));
        }
        if let Err(error) = matcher.accept(token) {
            let text = String::from_utf8_lossy(matcher.text());
            return Some(format!("after {text:?}: in the mask, but {error}"));
        }
    }
    (!matcher.is_complete()).then(|| "not complete at its end".to_owned())
}

fn matcher(
    schema: &Arc<CompiledSchema>,
    vocabulary: &Arc<Vocabulary>,
    segmentation: Segmentation,
) -> Matcher<SchemaConstraint> {
    let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
    Matcher::new(SchemaConstraint::new(schema), Arc::clone(vocabulary), options)
}

/// Compiles; `None` where a limit is exceeded.
fn compile(case: &Case, options: &CompileOptions) -> Option<Arc<CompiledSchema>> {
    match CompiledSchema::compile(&case.schema, options) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(SchemaError::Limit { .. }) => None,
        Err(error) => panic!("{}: {error}", case.name),
    }
}

/// Runs `check` on every case, and asserts that few are beyond a limit and none fails.
fn for_each_case(check: impl Fn(&Case, &mut Vec<String>) -> Option<()> + Sync) {
    let cases = corpus();
    let results = in_parallel(&cases, |case| {
        let mut failures = Vec::new();
        let within = check(case, &mut failures).is_some();
        (within, failures)
    });
    let beyond = results.iter().filter(|(within, _)| !within).count();
    let failures: Vec<String> = results.into_iter().flat_map(|(_, failures)| failures).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(beyond <= BEYOND_LIMITS, "{beyond} schemas exceed a limit");
}

#[test]
fn every_instance_of_the_corpus_can_be_written_in_each_style_and_order_and_segmentation() {
    let vocabulary = json_vocabulary();
    for_each_case(|case, failures| {
        let mut random = Random(case.schema.len() as u64);
        for (style, layout) in LAYOUTS {
            for order in [Order::Schema, Order::Any] {
                let options = CompileOptions {
                    style,
                    order,
                    number_style: NumberStyle::Any,
                    escapes: Escapes::Any,
                    ..CompileOptions::default()
                };
                let schema = compile(case, &options)?;
                let mut matcher = matcher(&schema, &vocabulary, Segmentation::Any);
                let many = style == Style::Spaced && order == Order::Schema;
                let count = if many { SEGMENTATIONS } else { FEW_SEGMENTATIONS };
                for text in &case.valid {
                    let text = match order {
                        Order::Schema => schema.canonical_order(text).unwrap(),
                        Order::Any => text.clone(),
                    };
                    let text = lay_out(&text, layout);
                    let own = own_segmentation(&text, &vocabulary);
                    let mut found = obstacle(&mut matcher, &own);
                    for _ in 0..count {
                        let tokens = random_segmentation(&text, &vocabulary, &mut random);
                        found = found.or_else(|| obstacle(&mut matcher, &tokens));
                    }
                    let found = found
                        .map(|found| format!("{}: {style:?} {order:?}: {text} {found}", case.name));
                    failures.extend(found);
                }
            }
        }
        Some(())
    });
}

#[test]
fn every_instance_of_the_corpus_can_be_written_as_the_tokenizer_cuts_it() {
    let vocabulary = json_vocabulary();
    for_each_case(|case, failures| {
        for (style, layout) in LAYOUTS {
            let options = CompileOptions {
                style,
                number_style: NumberStyle::Any,
                ..CompileOptions::default()
            };
            let schema = compile(case, &options)?;
            let mut matcher = matcher(&schema, &vocabulary, Segmentation::Canonical);
            for text in &case.valid {
                let text = lay_out(&schema.canonical_order(text).unwrap(), layout);
                let found = obstacle(&mut matcher, &own_segmentation(&text, &vocabulary));
                failures.extend(found.map(|found| format!("{}: {text} {found}", case.name)));
            }
        }
        Some(())
    });
}
