//! The `molde` command: local extraction with constrained decoding.
//!
//! Results go to the standard output and everything else to the standard error, so that a pipe
//! sees values only.

mod args;
mod commands;
mod documents;
mod failure;
mod interrupt;
mod labels;
mod model;
mod output;
mod progress;
mod records;
mod registry;
mod table;
mod tokenizer;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::progress::say;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let interrupts = Interrupts::listen();
    match run(&cli.command, &interrupts) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                say(&failure.to_string());
            }
            failure.exit().into()
        }
    }
}

fn run(command: &Command, interrupts: &Interrupts) -> Result<Exit, Failure> {
    match command {
        Command::Pull(args) => commands::pull::run(args, interrupts),
        Command::Models => commands::models::run(),
        Command::Extract(args) => commands::extract::run(args, interrupts),
        Command::Generate(args) => commands::generate::run(args, interrupts),
        Command::Lint(args) => commands::lint::run(args),
        Command::Classify(args) => commands::classify::run(args, interrupts),
        Command::Compare(args) => commands::compare::run(args, interrupts),
        Command::Explain(args) => commands::explain::run(args, interrupts),
        Command::Signature(args) => commands::signature::run(args, interrupts),
        Command::Trace(args) => commands::trace::run(args, interrupts),
        Command::Serve(args) => commands::serve::run(args, interrupts),
        Command::Demo(args) => commands::demo::run(args, interrupts),
        Command::Doctor(args) => commands::doctor::run(args),
    }
}
