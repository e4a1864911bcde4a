//! Schemas out of random bytes: each compiles or is refused by name, walks through its masks end,
//! and what they write is valid. A failure prints the number of the case, which repeats it.

mod schema;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{
    CompileOptions, CompiledSchema, Escapes, Formats, NumberStyle, Order, SchemaError, Style,
};
use molde_vocab::{TokenConstraint, TokenEntry, TokenId, Vocabulary};

use self::schema::Bytes;
use crate::oracle::{Deviations, Oracle, Verdict};
use crate::random::Random;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Begins no further case after so many seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first case; a case's number is the seed of its bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// At most so many cases.
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// Goes on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Prints each case before it runs, to find one that ends the process or does not end.
    #[arg(long)]
    trace: bool,
}

/// A case that takes longer is a failure.
const MOST_TIME: Duration = Duration::from_secs(10);
/// Bytes that a schema is made of.
const MOST_BYTES: usize = 160;
/// Tokens of a walk, more where the shortest text needs more.
const BUDGET: usize = 40;
/// Walks through each schema.
const WALKS: usize = 3;
/// A shortest text of more tokens is not written out.
const MOST_TOKENS: usize = 300;

/// What became of the cases.
#[derive(Debug, Default)]
struct Counts {
    cases: usize,
    malformed: usize,
    refused: usize,
    limits: usize,
    unsatisfiable: usize,
    texts: usize,
    unjudged: usize,
    undecided: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let deviations = Deviations::load()?;
    let vocabulary = vocabulary()?;
    let begin = Instant::now();
    let mut counts = Counts::default();
    let mut failures = 0;
    let mut slowest = (Duration::ZERO, 0);
    for case in 0..arguments.cases {
        if begin.elapsed() >= Duration::from_secs(arguments.seconds) {
            break;
        }
        let seed = arguments.seed.wrapping_add(case);
        let mut random = Random(seed);
        let schema = schema_text(&mut random);
        if arguments.trace {
            eprintln!("--seed {seed}: {schema}");
        }
        let start = Instant::now();
        let mut check = || check(&schema, &mut random, &vocabulary, &deviations, &mut counts);
        let outcome = catch_unwind(AssertUnwindSafe(&mut check));
        let time = start.elapsed();
        slowest = slowest.max((time, seed));
        let failure = match outcome {
            Ok(Ok(())) if time > MOST_TIME => Some(format!("takes {} s", time.as_secs())),
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some("a panic".to_owned()),
        };
        if let Some(failure) = failure {
            failures += 1;
            println!("--seed {seed} --cases 1: {failure}\n  schema {schema}");
            anyhow::ensure!(arguments.keep_going, "a case fails");
        }
    }
    println!("{counts:?}");
    println!("slowest: --seed {} in {} ms", slowest.1, slowest.0.as_millis());
    anyhow::ensure!(failures == 0, "{failures} cases fail");
    Ok(())
}

/// A schema out of random bytes; one in eight has its text spoiled.
fn schema_text(random: &mut Random) -> String {
    let bytes: Vec<u8> = (0..=random.below(MOST_BYTES)).map(|_| random.below(256) as u8).collect();
    let text = Bytes::new(&bytes).schema();
    if random.below(8) > 0 {
        return text;
    }
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(characters.len());
        match random.below(4) {
            0 => drop(characters.remove(at)),
            1 => characters.truncate(at.max(1)),
            2 => characters.insert(at, ['"', '{', '[', ',', '\\', '1', '\u{0}'][random.below(7)]),
            _ => {
                let other = random.below(characters.len());
                characters.swap(at, other);
            }
        }
        if characters.is_empty() {
            break;
        }
    }
    characters.into_iter().collect()
}

/// The options that a walk is drawn for.
fn options(random: &mut Random) -> (CompileOptions, MatcherOptions) {
    let compile = CompileOptions {
        style: [Style::Spaced, Style::Compact, Style::Flexible][random.below(3)],
        order: [Order::Schema, Order::Any][random.below(2)],
        number_style: [NumberStyle::Plain, NumberStyle::Any][usize::from(random.below(4) == 0)],
        escapes: [Escapes::Needed, Escapes::Any][usize::from(random.below(4) == 0)],
        formats: [Formats::Assert, Formats::Annotate][usize::from(random.below(4) == 0)],
        ..CompileOptions::default()
    };
    let matcher = MatcherOptions {
        segmentation: [Segmentation::Any, Segmentation::Canonical][random.below(2)],
        ..MatcherOptions::default()
    };
    (compile, matcher)
}

/// Compiles, walks, validates.
fn check(
    schema: &str,
    random: &mut Random,
    vocabulary: &Arc<Vocabulary>,
    deviations: &Deviations,
    counts: &mut Counts,
) -> Result<(), String> {
    counts.cases += 1;
    let (options, matcher_options) = options(random);
    let compiled = match CompiledSchema::compile(schema, &options) {
        Ok(compiled) => compiled,
        Err(error) => {
            match error {
                SchemaError::Refused(_) => counts.refused += 1,
                SchemaError::Limit { .. } => counts.limits += 1,
                SchemaError::Unsatisfiable { .. } => counts.unsatisfiable += 1,
                _ => counts.malformed += 1,
            }
            return Ok(());
        }
    };
    let parsed = serde_json::from_str::<serde_json::Value>(schema);
    if let Err(error) = parsed
        && !error.to_string().starts_with("number out of range")
    {
        return Err(format!("compiled, and is no JSON: {error}"));
    }
    let oracle = Oracle::new(schema, options.formats == Formats::Assert, deviations);
    let constraint = SchemaConstraint::new(&Arc::new(compiled));
    let mut matcher = Matcher::new(constraint, Arc::clone(vocabulary), matcher_options);
    for _ in 0..WALKS {
        matcher.reset();
        let how = format!("{options:?} {:?}", matcher_options.segmentation);
        if !walk(&mut matcher, random).map_err(|failure| format!("{failure}\n  {how}"))? {
            break;
        }
        counts.undecided += matcher.undecided();
        counts.texts += 1;
        match oracle.judge(matcher.text()) {
            Verdict::Valid => {}
            Verdict::Unjudged => counts.unjudged += 1,
            Verdict::Invalid => {
                let text = String::from_utf8_lossy(matcher.text()).into_owned();
                return Err(format!("an invalid text: {text}\n  {how}"));
            }
        }
    }
    Ok(())
}

/// Writes a text within a budget; `false` if the shortest is too long to be written.
fn walk(matcher: &mut Matcher<SchemaConstraint>, random: &mut Random) -> Result<bool, String> {
    let vocabulary = Arc::clone(matcher.vocabulary());
    let needed = matcher.completion_tokens();
    if needed > MOST_TOKENS {
        return if needed == usize::MAX { Err("no completion".to_owned()) } else { Ok(false) };
    }
    let mut remaining = if random.below(3) == 0 { needed } else { BUDGET.max(needed + 4) };
    loop {
        let after = |matcher: &Matcher<_>, what: &str| {
            format!("{what} after {}", String::from_utf8_lossy(matcher.text()))
        };
        let complete = matcher.is_complete();
        if matcher.is_finished() || complete && (remaining == 0 || random.below(4) == 0) {
            return Ok(true);
        }
        // Masks within a budget ask for the completion behind every token.
        let tight = remaining < 12 || random.below(8) == 0;
        let mask = if tight { matcher.mask_within(remaining) } else { matcher.mask() };
        let Ok(mask) = mask.cloned() else { return Err(after(matcher, "a dead end")) };
        let text = |token: &TokenId| !vocabulary.is_end_of_turn(*token);
        let allowed: Vec<TokenId> = mask.iter().filter(text).collect();
        if allowed.is_empty() {
            return if complete { Ok(true) } else { Err(after(matcher, "no token")) };
        }
        let mut token = allowed[random.below(allowed.len())];
        if !matcher.fits(token, remaining) {
            let Ok(within) = matcher.mask_within(remaining) else {
                return Err(after(matcher, "over the budget"));
            };
            let fitting: Vec<TokenId> = within.iter().filter(text).collect();
            if fitting.is_empty() {
                return if complete { Ok(true) } else { Err(after(matcher, "over the budget")) };
            }
            token = fitting[random.below(fitting.len())];
        }
        matcher.accept(token).map_err(|error| after(matcher, &error.to_string()))?;
        remaining -= 1;
    }
}

/// All bytes, what JSON is made of, and a segmenter that takes the longest token.
pub(crate) fn vocabulary() -> anyhow::Result<Arc<Vocabulary>> {
    const PIECES: [&str; 60] = [
        "{\"", "\": ", "\":", "\", \"", ", \"", ",\"", "\"}", "\"]", "[\"", "[]", "{}", "}}", "]]",
        "\"\"", "null", "true", "false", "ab", "aa", "abc", "type", "10", "00", "0.", ".5", ".0",
        "-1", "e1", "1e", "12", "2024-", "-01", "T00", ":00", "Z", "://", ".com", "@a", "::", "1.",
        ", ", ": ", "\\\"", "\\n", "\\u00", "\\u", "é", "日本", "😀", "  ", "\n", "\n  ", "a\"",
        "b\"", "1,", "0]", "\"a", "\\\\", "%20", "/a",
    ];
    let single = (0..=255u8).map(|byte| vec![byte]);
    let texts: Vec<Vec<u8>> =
        single.chain(PIECES.iter().map(|piece| piece.as_bytes().to_vec())).collect();
    let mut by_length: Vec<(usize, TokenId)> =
        texts.iter().zip(0..).map(|(text, token)| (text.len(), token)).collect();
    by_length.sort_by_key(|&(len, token)| (std::cmp::Reverse(len), token));
    let known = texts.clone();
    let segmenter = move |text: &str| {
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while let Some(&(len, token)) =
            by_length.iter().find(|&&(_, token)| rest.starts_with(&known[token as usize]))
        {
            tokens.push(token);
            rest = &rest[len..];
            if rest.is_empty() {
                break;
            }
        }
        tokens
    };
    let entries = texts.into_iter().map(TokenEntry::Text).chain([TokenEntry::Control]);
    let entries: Vec<TokenEntry> = entries.collect();
    let end = entries.len() as TokenId - 1;
    let segmenter: Arc<dyn molde_vocab::Segmenter> = Arc::new(segmenter);
    Ok(Arc::new(Vocabulary::new(entries, [end], Some(segmenter))?))
}
