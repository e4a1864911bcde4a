//! The benchmarks, which are also tools to work with.
//!
//! `classify` measures the classifier; `decode` times the model; `extract-speed` times extractions,
//! beside a server if one is named; `lesson` extracts by every method and
//! compares validity, correctness and time; `maskbench` times masks beside llguidance and checks
//! every instance; `soundness` walks at random and has an independent validator judge the texts;
//! `complete` writes every valid instance in each style; `fuzz` walks through schemas made of random
//! bytes; `hostile` compiles schemas that are made to hurt; `suite` runs the official test suite
//! against a committed baseline.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "results go to the terminal")]

mod candle;
mod classify;
mod clock;
mod complete;
mod data;
mod decode;
mod distribution;
mod engine;
mod extract_speed;
mod fuzz;
mod hostile;
mod lesson;
mod machine;
mod maskbench;
mod memory;
mod model;
mod molde;
mod oracle;
mod peer;
mod random;
mod soundness;
mod suite;
mod tokenizer;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Benchmarks of molde")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Classifies texts with gold labels: accuracy and calibration.
    Classify(classify::Arguments),
    /// Extracts by every method, freely and constrained, and compares what comes out.
    Lesson(lesson::Arguments),
    /// Times the model: prompts, tokens, batches, beside the machine's limits and a baseline.
    Decode(decode::Arguments),
    /// Times extractions, freely and under the mask, beside a server of OpenAI's interface.
    ExtractSpeed(extract_speed::Arguments),
    /// Times masks over MaskBench files, beside llguidance, and checks every instance.
    Maskbench(maskbench::Arguments),
    /// Walks at random through the masks and validates what comes out.
    Soundness(soundness::Arguments),
    /// Writes every valid instance in each style and order, in many segmentations.
    Complete(complete::Arguments),
    /// Makes schemas of random bytes, walks through their masks and validates what comes out.
    Fuzz(fuzz::Arguments),
    /// Compiles schemas made to hurt, and watches time and memory.
    Hostile(hostile::Arguments),
    /// Runs the official JSON Schema test suite against the committed baseline.
    Suite(suite::Arguments),
}

/// Stack of the thread that does the work: a peer may recurse into deep schemas.
const STACK_BYTES: usize = 256 << 20;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let work = move || match arguments.command {
        Command::Classify(arguments) => classify::run(&arguments),
        Command::Lesson(arguments) => lesson::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::ExtractSpeed(arguments) => extract_speed::run(&arguments),
        Command::Maskbench(arguments) => maskbench::run(&arguments),
        Command::Soundness(arguments) => soundness::run(&arguments),
        Command::Complete(arguments) => complete::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Hostile(arguments) => hostile::run(&arguments),
        Command::Suite(arguments) => suite::run(&arguments),
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    thread.join().map_err(|_| anyhow::anyhow!("the benchmark panicked"))?
}
