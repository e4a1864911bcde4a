//! What the tests that cross crates share: the binary, models, documents, schemas.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "a package of tests")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use molde_infer::tiny::{TinyDtype, TinyModel};

/// The model file that `MOLDE_TEST_MODEL` names. Without it a test is skipped, with a message;
/// where `CI` is `true` it fails.
pub fn real_model() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MOLDE_TEST_MODEL") {
        return Some(PathBuf::from(path));
    }
    let message = "no weights: `cargo xtask check` fetches them, or set MOLDE_TEST_MODEL";
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
    println!("skipped: {message}");
    None
}

/// The Python interpreter with `tests/reference/requirements-ci.txt`, likewise.
pub fn python() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MOLDE_TEST_PYTHON") {
        return Some(PathBuf::from(path));
    }
    let message = "no Python packages: `cargo xtask check` installs them, or set MOLDE_TEST_PYTHON";
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
    println!("skipped: {message}");
    None
}

/// Writes a tiny model with untrained weights into `folder`.
pub fn untrained_model(folder: &Path, seed: u64) -> PathBuf {
    let path = folder.join(format!("untrained-{seed}.gguf"));
    let shape = TinyModel { seed, ..TinyModel::default() };
    shape.write_gguf(&path, TinyDtype::Q8_0).expect("the folder is writable");
    path
}

/// What a run of the `molde` binary left.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the `molde` binary that was built beside this test, with `stdin` as its standard input.
pub fn molde(arguments: &[&str], stdin: &str) -> Run {
    let test = std::env::current_exe().expect("a running test has a path");
    let binary = test
        .ancestors()
        .map(|folder| folder.join("molde"))
        .find(|path| path.is_file())
        .expect("the molde binary is built with the workspace");
    let mut child = Command::new(binary)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    // A command that does not read its input closes the pipe: no failure of the test.
    let feeder = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let output = child.wait_with_output().expect("the binary ends");
    feeder.join().expect("writing does not panic");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// A fixture of this package.
pub fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The twenty press releases of `data/releases.jsonl`, as files in `folder`.
pub fn releases(folder: &Path) -> Vec<PathBuf> {
    let lines = fixture("releases.jsonl");
    let mut paths = Vec::new();
    for line in lines.lines() {
        let release: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let path = folder.join(format!("{}.txt", release["id"].as_str().expect("an id")));
        std::fs::write(&path, release["text"].as_str().expect("a text")).expect("writable");
        paths.push(path);
    }
    assert_eq!(paths.len(), 20);
    paths
}

/// A small deterministic generator (splitmix64).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }
}
