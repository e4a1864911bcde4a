//! A small hub on loopback, a fake pip, and catalogues for both.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod pip;
pub mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use molde_hub::{
    CancelFlag, Catalog, Hub, HubConfig, HubError, ModelFiles, ModelRef, NetworkPolicy,
};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub const REPO: &str = "owner/tiny-gguf";
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub const FILE: &str = "tiny.gguf";

/// Bytes that do not repeat and do not compress.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2) + 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

pub fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

pub fn git_sha1(content: &[u8]) -> String {
    let mut sha1 = Sha1::new();
    sha1.update(format!("blob {}\0", content.len()));
    sha1.update(content);
    hex(&sha1.finalize())
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A catalogue with one GGUF model, `tiny`, at the hub.
pub fn gguf_catalog(content: &[u8]) -> String {
    format!(
        r#"
version = 1
default = "tiny"
fallback = "tiny"
[[model]]
id = "tiny"
family = "test"
architecture = "qwen2"
format = "gguf"
quantization = "q8_0"
context_tokens = 64
licence = "CC0-1.0"
[[model.files]]
name = "{FILE}"
size_bytes = {}
sha256 = "{}"
[[model.sources]]
kind = "hub"
repo = "{REPO}"
revision = "{COMMIT}"
"#,
        content.len(),
        sha256(content)
    )
}

/// A cache folder and the settings of a hub client that is quick to give up.
pub struct Bench {
    pub folder: TempDir,
    pub config: HubConfig,
    pub catalog: String,
}

impl Bench {
    pub fn new(endpoint: &str, catalog: String) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = HubConfig::new(folder.path().join("hub"));
        endpoint.clone_into(&mut config.endpoint);
        config.retries = 3;
        config.retry_pause = Duration::from_millis(10);
        config.stall_timeout = Duration::from_millis(600);
        config.answer_timeout = Duration::from_secs(5);
        Self { folder, config, catalog }
    }

    pub fn hub(&self) -> Hub {
        let catalog = Catalog::parse(&self.catalog).expect("a valid catalogue");
        Hub::new(catalog, self.config.clone()).expect("valid settings")
    }

    pub fn pull(&self) -> Result<ModelFiles, HubError> {
        self.pull_with(&mut |_| {})
    }

    /// Fetches `tiny`, with events as text.
    pub fn pull_with(&self, on_event: &mut dyn FnMut(&str)) -> Result<ModelFiles, HubError> {
        let mut on_event = |event: molde_hub::Event<'_>| on_event(&format!("{event:?}"));
        let model = ModelRef::Catalog("tiny".to_owned());
        self.hub().resolve(&model, NetworkPolicy::Online, &mut on_event, &CancelFlag::new())
    }

    pub fn repo_folder(&self) -> PathBuf {
        self.config.cache.join("models--owner--tiny-gguf")
    }

    pub fn blob(&self, name: &str) -> PathBuf {
        self.repo_folder().join("blobs").join(name)
    }

    pub fn snapshot(&self) -> PathBuf {
        self.repo_folder().join("snapshots").join(COMMIT)
    }

    /// Leaves what an interrupted transfer would have left.
    pub fn leave_partial(&self, etag: &str, bytes: &[u8]) {
        let path = self.blob(&format!("{etag}.incomplete"));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, bytes).expect("a partial file");
    }

    /// Nothing that looks whole is in the cache.
    pub fn assert_nothing_whole(&self) {
        assert_eq!(files_in(&self.snapshot()), Vec::<String>::new(), "in snapshots");
        let blobs = files_in(&self.repo_folder().join("blobs"));
        let whole: Vec<&String> = blobs
            .iter()
            .filter(|name| !name.ends_with(".incomplete") && !name.ends_with(".wheels"))
            .collect();
        assert!(whole.is_empty(), "in blobs: {whole:?}");
    }
}

/// Sorted names in a folder; none if it is not there.
pub fn files_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| {
            entries
                .filter_map(Result::ok)
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}
