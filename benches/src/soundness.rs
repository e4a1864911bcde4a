//! Random walks through the masks, judged by an independent validator.
//!
//! Three walkers take turns: one picks uniformly among the allowed tokens, one prefers tokens that
//! hold a structural byte, one prefers long tokens. Every text is validated by the `jsonschema`
//! crate with formats asserted; where that is known to be wrong a text is counted as unjudged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use molde_constraint::{Matcher, SchemaConstraint};
use molde_schema::{NumberStyle, Order, Style};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};
use serde::Serialize;
use serde_json::json;

use crate::data::for_each_case;
use crate::engine::Engine;
use crate::molde::Molde;
use crate::oracle::{Deviations, Oracle, Verdict};
use crate::random::Random;
use crate::tokenizer::BenchTokenizer;

/// Digits at the end of a text after which walkers with a preference go on otherwise if they can:
/// no validator at hand reads longer numbers exactly.
const MOST_DIGITS: usize = 12;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The `tokenizer.json`, gzipped or not.
    #[arg(long)]
    tokenizer: PathBuf,
    /// MaskBench files (`.jsonl` or `.jsonl.gz`).
    #[arg(long, required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// Walks for each schema.
    #[arg(long, default_value_t = 20)]
    walks: usize,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tokens of a walk, or more where the shortest completion needs more.
    #[arg(long, default_value_t = 128)]
    budget: usize,
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
    walks: usize,
    completed: usize,
    invalid: usize,
    dead_ends: usize,
    over_budget: usize,
    /// Texts that the validator rejects where it is known to be wrong, and all texts of a schema that
    /// it does not take.
    unjudged: usize,
}

#[derive(Clone, Copy)]
enum Walker {
    Uniform,
    Structural,
    Longest,
}

enum End {
    Complete(Vec<u8>),
    Stuck(Vec<u8>),
    OverBudget,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let tokenizer = BenchTokenizer::load(&arguments.tokenizer)?;
    let mut engine = Molde::new(&tokenizer.vocabulary, Style::Spaced, Order::Schema);
    // The validator reads numbers as binary64: exponents without end are beyond it.
    engine.options.number_style = NumberStyle::Plain;
    let deviations = Deviations::load()?;
    let begin = Instant::now();
    let limit = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    let mut left_out = 0;
    let mut counts = Counts::default();
    for_each_case(&arguments.data, |case| {
        if arguments.only.as_ref().is_some_and(|only| !case.id.contains(only.as_str())) {
            return Ok(());
        }
        if begin.elapsed() > limit {
            left_out += 1;
            return Ok(());
        }
        let Ok(mut session) = engine.compile(case.schema.get()) else { return Ok(()) };
        counts.schemas += 1;
        let oracle = Oracle::new(case.schema.get(), true, &deviations);
        let mut random = Random(arguments.seed ^ hash(&case.id));
        for walk in 0..arguments.walks {
            let walker = [Walker::Uniform, Walker::Structural, Walker::Longest][walk % 3];
            counts.walks += 1;
            session.matcher.reset();
            match take_walk(&mut session.matcher, walker, arguments.budget, &mut random) {
                End::OverBudget => {
                    counts.over_budget += 1;
                    println!("over budget {}", case.id);
                }
                End::Stuck(text) => {
                    counts.dead_ends += 1;
                    println!("dead end {}: {}", case.id, String::from_utf8_lossy(&text));
                }
                End::Complete(text) => {
                    counts.completed += 1;
                    match oracle.judge(&text) {
                        Verdict::Valid => {}
                        Verdict::Unjudged => counts.unjudged += 1,
                        Verdict::Invalid => {
                            counts.invalid += 1;
                            println!("invalid {}: {}", case.id, String::from_utf8_lossy(&text));
                        }
                    }
                }
            }
        }
        Ok(())
    })?;
    if left_out > 0 {
        println!("{left_out} schemas were left out after {} s", limit.as_secs());
    }
    println!("{}", json!(counts));
    if let Some(path) = &arguments.json {
        std::fs::write(path, format!("{:#}\n", json!(counts)))?;
    }
    anyhow::ensure!(
        counts.invalid == 0 && counts.dead_ends == 0 && counts.over_budget == 0,
        "the masks are not sound"
    );
    Ok(())
}

fn take_walk(
    matcher: &mut Matcher<SchemaConstraint>,
    walker: Walker,
    budget: usize,
    random: &mut Random,
) -> End {
    let vocabulary = Arc::clone(matcher.vocabulary());
    let mut text = Vec::new();
    let needed = matcher.completion_tokens();
    if needed == usize::MAX {
        return End::Stuck(text);
    }
    let mut remaining = budget.max(needed.saturating_add(8));
    loop {
        if matcher.is_finished() || (matcher.is_complete() && random.below(4) == 0) {
            return End::Complete(text);
        }
        if remaining == 0 {
            return if matcher.is_complete() { End::Complete(text) } else { End::OverBudget };
        }
        let Ok(mask) = matcher.mask() else { return End::Stuck(text) };
        let allowed: Vec<TokenId> =
            mask.iter().filter(|&token| !vocabulary.is_end_of_turn(token)).collect();
        if allowed.is_empty() {
            return if matcher.is_complete() { End::Complete(text) } else { End::Stuck(text) };
        }
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let mut allowed = allowed;
        if digits > MOST_DIGITS && !matches!(walker, Walker::Uniform) {
            let goes_on = |&token: &TokenId| {
                let bytes = vocabulary.token_bytes(token).unwrap_or_default();
                bytes.first().is_some_and(u8::is_ascii_digit)
            };
            let ends: Vec<TokenId> = allowed.iter().copied().filter(|t| !goes_on(t)).collect();
            allowed = if ends.is_empty() { allowed } else { ends };
        }
        let mut token = choose(&allowed, walker, &vocabulary, random);
        if !matcher.fits(token, remaining) {
            let Ok(within) = matcher.mask_within(remaining) else { return End::OverBudget };
            let fitting: Vec<TokenId> =
                within.iter().filter(|&token| !vocabulary.is_end_of_turn(token)).collect();
            if fitting.is_empty() {
                let complete = matcher.is_complete();
                return if complete { End::Complete(text) } else { End::OverBudget };
            }
            token = choose(&fitting, walker, &vocabulary, random);
        }
        if matcher.accept(token).is_err() {
            return End::Stuck(text);
        }
        text.extend(vocabulary.token_bytes(token).unwrap_or_default());
        remaining -= 1;
    }
}

fn choose(
    allowed: &[TokenId],
    walker: Walker,
    vocabulary: &Vocabulary,
    random: &mut Random,
) -> TokenId {
    let pick = |random: &mut Random| allowed[random.below(allowed.len())];
    let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
    match walker {
        Walker::Uniform => pick(random),
        Walker::Structural => {
            let structural: Vec<TokenId> = allowed
                .iter()
                .copied()
                .filter(|&token| bytes(token).iter().any(|byte| b"{}[],:\"".contains(byte)))
                .collect();
            // Now and then anything, or strings would never have a content.
            if structural.is_empty() || random.below(4) == 0 {
                pick(random)
            } else {
                structural[random.below(structural.len())]
            }
        }
        Walker::Longest => {
            let sample: Vec<TokenId> = (0..16).map(|_| pick(random)).collect();
            sample.into_iter().max_by_key(|&token| bytes(token).len()).unwrap_or(allowed[0])
        }
    }
}

/// FNV-1a: the walks of a schema do not depend on which others run.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
