//! Every valid instance can be written: in each style and order, however it is cut into tokens.
//!
//! Under `Segmentation::Any` with the tokenizer's own tokens and with random ones, under
//! `Segmentation::Canonical` with the tokenizer's own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema, Escapes, NumberStyle, Order, Style};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};
use serde::Serialize;
use serde_json::json;

use crate::data::for_each_case;
use crate::random::Random;
use crate::tokenizer::BenchTokenizer;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The `tokenizer.json`, gzipped or not.
    #[arg(long)]
    tokenizer: PathBuf,
    /// MaskBench files (`.jsonl` or `.jsonl.gz`).
    #[arg(long, required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Random segmentations of each instance in the default style and order; 2 in the others.
    #[arg(long, default_value_t = 50)]
    segmentations: usize,
    /// Of the schemas, every so manieth.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Only schemas whose id contains this.
    #[arg(long)]
    only: Option<String>,
    /// Begins no further schema after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Writes the counts as one JSON object.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Counts {
    schemas: usize,
    instances: usize,
    /// Token sequences that were tried.
    sequences: usize,
    /// Of these, those that cannot be written.
    rejected: usize,
    /// Schemas whose reported minimum is above the tokens of their shortest valid instance.
    above_shortest: usize,
}

const STYLES: [Style; 3] = [Style::Spaced, Style::Compact, Style::Flexible];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let tokenizer = BenchTokenizer::load(&arguments.tokenizer)?;
    let begin = Instant::now();
    let limit = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    let mut counts = Counts::default();
    let mut number = 0;
    let mut left_out = 0;
    for_each_case(&arguments.data, |case| {
        number += 1;
        let valid: Vec<&str> =
            case.tests.iter().filter(|test| test.valid).map(|test| test.data.get()).collect();
        if arguments.only.as_ref().is_some_and(|only| !case.id.contains(only.as_str()))
            || number % arguments.every.max(1) != 0
            || valid.is_empty()
        {
            return Ok(());
        }
        if begin.elapsed() > limit {
            left_out += 1;
            return Ok(());
        }
        counts.schemas += 1;
        counts.instances += valid.len();
        let check = Check { id: &case.id, valid: &valid, tokenizer: &tokenizer, arguments };
        for style in STYLES {
            for order in [Order::Schema, Order::Any] {
                check.any_segmentation(case.schema.get(), style, order, &mut counts)?;
            }
        }
        check.canonical_segmentation(case.schema.get(), &mut counts)
    })?;
    if left_out > 0 {
        println!("{left_out} schemas were left out after {} s", limit.as_secs());
    }
    println!("{}", json!(counts));
    if let Some(path) = &arguments.json {
        std::fs::write(path, format!("{:#}\n", json!(counts)))?;
    }
    anyhow::ensure!(counts.rejected == 0, "the masks are not complete");
    anyhow::ensure!(counts.above_shortest == 0, "a minimum is none");
    Ok(())
}

/// One schema with its valid instances.
struct Check<'a> {
    id: &'a str,
    valid: &'a [&'a str],
    tokenizer: &'a BenchTokenizer,
    arguments: &'a Arguments,
}

impl Check<'_> {
    fn any_segmentation(
        &self,
        schema: &str,
        style: Style,
        order: Order,
        counts: &mut Counts,
    ) -> anyhow::Result<()> {
        let options = CompileOptions {
            style,
            order,
            number_style: NumberStyle::Any,
            escapes: Escapes::Any,
            ..CompileOptions::default()
        };
        let Ok(compiled) = CompiledSchema::compile(schema, &options) else { return Ok(()) };
        let mut random = Random(seed_of(self.id));
        let default = style == Style::Spaced && order == Order::Schema;
        let times = if default { self.arguments.segmentations } else { 2 };
        let compiled = Arc::new(compiled);
        let mut matcher = self.matcher(&compiled, Segmentation::Any);
        let what = format!("{style:?} {order:?}");
        let mut shortest = usize::MAX;
        for instance in self.valid {
            let text = compiled.canonical_order(instance)?;
            let text = if style == Style::Flexible { pretty(&text) } else { text };
            let own = self.tokenizer.encode(&text)?;
            shortest = shortest.min(own.len());
            self.feed(&mut matcher, &own, &what, counts);
            for _ in 0..times {
                let tokens = segmentation(&text, &self.tokenizer.vocabulary, &mut random);
                self.feed(&mut matcher, &tokens, &what, counts);
            }
        }
        if default {
            matcher.reset();
            let promised = matcher.completion_tokens();
            if promised > shortest {
                counts.above_shortest += 1;
                println!("minimum {}: {promised} tokens, an instance has {shortest}", self.id);
            }
        }
        Ok(())
    }

    fn canonical_segmentation(&self, schema: &str, counts: &mut Counts) -> anyhow::Result<()> {
        let options =
            CompileOptions { number_style: NumberStyle::Any, ..CompileOptions::default() };
        let Ok(compiled) = CompiledSchema::compile(schema, &options) else { return Ok(()) };
        let compiled = Arc::new(compiled);
        let mut matcher = self.matcher(&compiled, Segmentation::Canonical);
        for instance in self.valid {
            let text = compiled.canonical_order(instance)?;
            let own = self.tokenizer.encode(&text)?;
            self.feed(&mut matcher, &own, "canonical", counts);
        }
        Ok(())
    }

    fn matcher(
        &self,
        schema: &Arc<CompiledSchema>,
        segmentation: Segmentation,
    ) -> Matcher<SchemaConstraint> {
        let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
        let vocabulary = Arc::clone(&self.tokenizer.vocabulary);
        Matcher::new(SchemaConstraint::new(schema), vocabulary, options)
    }

    fn feed(
        &self,
        matcher: &mut Matcher<SchemaConstraint>,
        tokens: &[TokenId],
        what: &str,
        counts: &mut Counts,
    ) {
        counts.sequences += 1;
        matcher.reset();
        let goes_on = tokens.iter().all(|&token| {
            matcher.mask().is_ok_and(|mask| mask.contains(token)) && matcher.accept(token).is_ok()
        });
        if !goes_on || !matcher.is_complete() {
            counts.rejected += 1;
            let read = matcher.text().len().saturating_sub(60);
            let text = String::from_utf8_lossy(&matcher.text()[read..]).into_owned();
            let limit = matcher.automaton().last_limit().unwrap_or_default();
            println!("rejected {} {what}: after {text:?} {limit}", self.id);
        }
    }
}

/// A seed of its own for each schema, whichever others run.
fn seed_of(id: &str) -> u64 {
    id.bytes().fold(1, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// The text in tokens, each drawn from all that fit.
fn segmentation(text: &str, vocabulary: &Vocabulary, random: &mut Random) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let fitting: Vec<(usize, TokenId)> = vocabulary.trie().prefixes(rest).collect();
        let Some(&(len, token)) = fitting.get(random.below(fitting.len())) else { break };
        tokens.push(token);
        rest = &rest[len..];
    }
    tokens
}

/// A text without whitespace between its parts, with a line for each member and item.
fn pretty(compact: &str) -> String {
    let mut out = String::new();
    let mut depth: usize = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut characters = compact.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', 2 * depth));
    };
    while let Some(character) = characters.next() {
        if in_string {
            in_string = character != '"' || escaped;
            escaped = character == '\\' && !escaped;
            out.push(character);
            continue;
        }
        let closes = matches!(characters.peek(), Some(']' | '}'));
        match character {
            '{' | '[' => {
                out.push(character);
                if !closes {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                if !out.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    line(&mut out, depth);
                }
                out.push(character);
            }
            ',' => {
                out.push(character);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = character == '"';
                out.push(character);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_texts_have_a_line_for_each_member_and_item() {
        let text = pretty(r#"{"a":[1,{}],"b\"{":[],"c":"x, \\"}"#);
        let expected =
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\\\"{\": [],\n  \"c\": \"x, \\\\\"\n}";
        assert_eq!(text, expected);
    }
}
