//! `cargo xtask check`: everything CI runs, in the order in which it fails fastest.
//!
//! Needs Rust and Python 3.11 or newer. Everything else is fetched: crates, the Python packages of
//! `tests/reference/requirements-ci.txt` (into `target/`) and the weights of one model (by `molde
//! pull`, into the usual cache).
//!
//! `cargo xtask check sdk` runs the official SDKs against the `molde` that was built last. It takes
//! the packages of `tests/sdk/requirements-*.txt` and the npm packages of `tests/sdk/package.json`;
//! without them its checks are skipped, with `CI=true` they fail.
#![allow(clippy::print_stderr, reason = "a command line tool")]

mod python;
mod sdk;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The model that tests run: the one the package mirror carries.
const TEST_MODEL: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m";

/// Random strings on which two tokenizers are compared.
const TOKENIZER_STRINGS: &str = "10000";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check"] => check(),
        // With the programs that were built last.
        ["check", "sdk"] => {
            beside("molde").and_then(|molde| sdk::check(&workspace(), &molde, TEST_MODEL))
        }
        _ => Err(anyhow::anyhow!("usage: cargo xtask check [sdk]")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<()> {
    let root = workspace();
    let begin = Instant::now();
    step("format", cargo(&root).args(["fmt", "--all", "--check"]))?;
    step(
        "lints",
        cargo(&root).args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]),
    )?;
    step(
        "documentation",
        cargo(&root)
            .args(["doc", "--workspace", "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    step("build", cargo(&root).args(["build", "--workspace", "--all-targets"]))?;
    let python = python::environment(&root, "tests/reference/requirements-ci.txt", "check-venv")?;
    let pull = ["pull", TEST_MODEL];
    let weights = output("weights", Command::new(beside("molde")?).current_dir(&root).args(pull))?;
    step(
        "tests",
        cargo(&root)
            .args(["test", "--workspace"])
            .env("MOLDE_TEST_PYTHON", &python)
            .env("MOLDE_TEST_MODEL", &weights),
    )?;
    step(
        "reference tools",
        Command::new(&python).current_dir(&root).args([
            "-m",
            "unittest",
            "discover",
            "-s",
            "tests/reference",
        ]),
    )?;
    let tokenize = format!("'{}' '{weights}'", beside("examples/tokenize")?.display());
    step(
        "tokenizer against an independent one",
        Command::new(&python)
            .current_dir(&root)
            .arg("tests/reference/check_tokenizer.py")
            .arg("--command")
            .arg(tokenize)
            .args(["--count", TOKENIZER_STRINGS]),
    )?;
    eprintln!("check: everything passed in {} s", begin.elapsed().as_secs());
    Ok(())
}

/// A program that was just built beside this one: `cargo run` of one package would build its
/// dependencies again, with the features that this package alone asks for.
fn beside(name: &str) -> Result<PathBuf> {
    let own = env::current_exe().context("cannot find the folder of this program")?;
    Ok(own.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn step(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("check: {name}");
    let begin = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("{name}: starting {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{name} failed after {} s ({status})", begin.elapsed().as_secs());
    }
    eprintln!("check: {name} passed in {} s", begin.elapsed().as_secs());
    Ok(())
}

/// Runs a step and returns what it prints, without the final line break.
fn output(name: &str, command: &mut Command) -> Result<String> {
    eprintln!("check: {name}");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{name}: starting {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{name} failed ({})", output.status);
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("{name}: its output"))?;
    Ok(text.trim_end().to_owned())
}

fn workspace() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).unwrap_or(folder).to_owned()
}
