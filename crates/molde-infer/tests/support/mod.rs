//! What several tests need.

use std::path::{Path, PathBuf};

const VARIABLE: &str = "MOLDE_TEST_MODEL";
const REPOSITORY: &str = "models--Qwen--Qwen2.5-Coder-0.5B-Instruct-GGUF";
const FILE: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";

/// The real model file of the tests: `MOLDE_TEST_MODEL`, else the hub cache.
///
/// Without it a test is skipped, with a message; in CI it fails.
pub fn real_model() -> Option<PathBuf> {
    let found = std::env::var_os(VARIABLE).map(PathBuf::from).or_else(cached);
    if found.is_none() {
        let message = format!("no weights: set {VARIABLE}, or run `molde pull` for {FILE}");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
        println!("skipped: {message}");
    }
    found
}

fn cached() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let hub = std::env::var_os("HF_HUB_CACHE").map(PathBuf::from).or_else(|| {
        let hugging_face = std::env::var_os("HF_HOME").map(PathBuf::from);
        Some(hugging_face.or_else(|| home().map(|cache| cache.join("huggingface")))?.join("hub"))
    })?;
    let snapshots = std::fs::read_dir(hub.join(REPOSITORY).join("snapshots")).ok()?;
    let mut files: Vec<_> =
        snapshots.flatten().map(|entry| entry.path().join(FILE)).filter(|f| f.exists()).collect();
    files.sort();
    files.into_iter().next()
}

/// A file beside the project that is not part of it, if it is there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}
