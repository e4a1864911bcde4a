//! Hostile schemas: each ends in a result or a named limit, in bounded time and memory.

mod cases;

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint};
use molde_schema::{CompileOptions, CompiledSchema, SchemaError};
use molde_vocab::{TokenConstraint, TokenId};

use self::cases::{Hostile, cases};
use crate::fuzz::vocabulary;
use crate::memory;
use crate::random::Random;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cases whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Prints every case, not only those beyond a bound.
    #[arg(long)]
    verbose: bool,
    /// The most time of one case, in milliseconds of a processor. More is for slower builds.
    #[arg(long, default_value_t = 1000)]
    millis: u128,
    /// Runs the cases too that are known to be beyond the bounds.
    #[arg(long)]
    all: bool,
}

/// Cases that are beyond the bounds: they may only get fewer. The time of most grows with the square
/// of their size, or up to the limit `expansion_steps`.
const BEYOND: [&str; 10] = [
    "oneOf of itself doubled 60 times",
    "pattern: 1 MB of optional letters",
    "1,000 patternProperties",
    "40 patterns at once",
    "2,000 dependent names",
    "a constant of 100,000 items",
    "anyOf of 5,000 objects",
    "oneOf of 5,000 objects",
    "200 exclusive choices of names",
    "oneOf in oneOf, 12 deep",
];
/// The most memory that a case adds, in MiB.
const MOST_MIB: u64 = 256;
/// Tokens of the text that is begun under each schema.
const WALK_TOKENS: usize = 40;
/// Stack that a caller's thread has by default, in bytes.
const STACK_BYTES: usize = 2 << 20;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let vocabulary = vocabulary()?;
    let mut beyond = 0;
    let mut count = 0;
    for case in cases() {
        if arguments.only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        if !arguments.all && BEYOND.contains(&case.name.as_str()) {
            continue;
        }
        count += 1;
        let before = memory::reset_peak();
        let vocabulary = Arc::clone(&vocabulary);
        let Hostile { name, schema } = case;
        let work = move || {
            let begin = Instant::now();
            let cpu = processor_millis();
            let result = attempt(&schema, vocabulary);
            let elapsed = begin.elapsed().as_millis();
            let millis = match (cpu, processor_millis()) {
                (Some(before), Some(after)) => after - before,
                _ => elapsed,
            };
            (result, millis)
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
        let (result, millis) = thread.join().map_err(|_| anyhow::anyhow!("{name}: a panic"))?;
        let mib = match (before, memory::peak_bytes()) {
            (Some(before), Some(after)) => after.saturating_sub(before) >> 20,
            _ => 0,
        };
        let is_beyond = millis > arguments.millis || mib > MOST_MIB || result.starts_with("FAULT");
        beyond += usize::from(is_beyond);
        if is_beyond || arguments.verbose {
            println!("{millis:>6} ms {mib:>5} MiB  {name}: {result}");
        }
    }
    let millis = arguments.millis;
    println!("{count} hostile schemas, {beyond} beyond {millis} ms or {MOST_MIB} MiB");
    if !arguments.all {
        println!("{} more are known to be beyond: --all", BEYOND.len());
    }
    anyhow::ensure!(beyond == 0, "a hostile schema costs too much");
    Ok(())
}

/// Compiles, and begins a text; says what came of it.
fn attempt(schema: &str, vocabulary: Arc<molde_vocab::Vocabulary>) -> String {
    let compiled = match CompiledSchema::compile(schema, &CompileOptions::default()) {
        Ok(compiled) => Arc::new(compiled),
        Err(SchemaError::Limit { name, .. }) => return format!("limit {name}"),
        Err(SchemaError::Unsatisfiable { .. }) => return "unsatisfiable".to_owned(),
        Err(SchemaError::Refused(list)) => return format!("{} offenders", list.0.len()),
        Err(SchemaError::Malformed(list)) => return format!("{} faults", list.0.len()),
        Err(_) => return "no JSON".to_owned(),
    };
    let constraint = SchemaConstraint::new(&compiled);
    let mut matcher = Matcher::new(constraint, vocabulary, MatcherOptions::default());
    let mut random = Random(1);
    for _ in 0..WALK_TOKENS {
        let Ok(mask) = matcher.mask() else {
            let text = String::from_utf8_lossy(matcher.text()).into_owned();
            return format!("FAULT: a dead end after {text}");
        };
        let tokens: Vec<TokenId> = mask.iter().collect();
        let Some(&token) = tokens.get(random.below(tokens.len())) else { break };
        // As a caller with a budget does.
        matcher.fits(token, WALK_TOKENS);
        if let Err(error) = matcher.accept(token) {
            return format!("FAULT: {error}");
        }
    }
    format!("enforced, {} undecided", matcher.undecided())
}

/// Time that the calling thread has run, in milliseconds; `None` where the system does not tell.
fn processor_millis() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u128 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1_000_000)
}
