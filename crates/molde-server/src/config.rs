//! What a server is told when it starts.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The settings of a server.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct Config {
    /// Address to listen on. Default: `127.0.0.1`.
    pub host: String,
    /// Port to listen on; 0 takes a free one. Default: 8080.
    pub port: u16,
    /// The name under which the model is offered.
    pub model_id: String,
    /// Other names that the model answers to. Default: none; any other name is a 404.
    pub aliases: Vec<String>,
    /// The key that requests must bring. Default: none.
    pub api_key: Option<String>,
    /// Listen beyond loopback without a key. Default: false.
    pub insecure: bool,
    /// Values of the `Host` header that are served beside loopback names and the address itself,
    /// without port. Default: none.
    pub hosts: Vec<String>,
    /// Web origins that may call from a browser; `*` is any. Default: none.
    pub origins: Vec<String>,
    /// Whether the model is told the form of the answer in its instructions, beside being held to
    /// it. A request can say otherwise. Default: true.
    pub show_schema: bool,
    /// Whether bounds that the Anthropic SDKs move into descriptions are read back. A request can
    /// say otherwise. Default: true.
    pub recover_bounds: bool,
    /// Log prompts and answers. Default: false.
    pub log_content: bool,
    /// What requests may cost.
    pub limits: Limits,
}

impl Config {
    /// The defaults, for a model of this name.
    pub fn new(model_id: impl Into<String>) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            model_id: model_id.into(),
            aliases: Vec::new(),
            api_key: None,
            insecure: false,
            hosts: Vec::new(),
            origins: Vec::new(),
            show_schema: true,
            recover_bounds: true,
            log_content: false,
            limits: Limits::default(),
        }
    }
}

/// What requests may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body; more is a 413. Default: 4 MiB.
    pub body_bytes: usize,
    /// Bytes of one schema; more is a 400. Default: 1 MiB.
    pub schema_bytes: usize,
    /// Tools of one request; more is a 400. Default: 128.
    pub tools: usize,
    /// Answers to one request (`n`); more is a 400. Default: 8.
    pub choices: usize,
    /// Messages of one request; more is a 400. Default: 4,096.
    pub messages: usize,
    /// Calls of tools in one answer. Default: 16.
    pub calls: usize,
    /// Answers that are written at the same time; more wait. Default: 16.
    pub sequences: NonZeroUsize,
    /// Sequences that wait for the model; one more is a 429, or 529. Default: 64.
    pub queue: usize,
    /// Requests that are read and compiled at the same time. Default: 2.
    pub preparing: usize,
    /// Tokens of an answer where the request says nothing. Default: 1,024.
    pub default_max_tokens: usize,
    /// Time for a request from its last byte to the end of its answer; then it fails with 504.
    /// Default: 10 minutes.
    pub request: Duration,
    /// Time for a request's headers, and for its body; then the connection ends, or 408. Default:
    /// 30 seconds each.
    pub reading: Duration,
    /// Time that a client may let the server wait before it takes more bytes; then the connection
    /// ends and the generation with it. Default: 30 seconds.
    pub writing: Duration,
    /// Time between two comments in a stream that has nothing to say. Default: 10 seconds.
    pub keep_alive: Duration,
    /// Connections at the same time; more wait to be accepted. Default: 512.
    pub connections: usize,
    /// Time that running requests have after the server was asked to stop. Default: 30 seconds.
    pub drain: Duration,
    /// Answers of the Responses API that are kept, and their bytes; older ones are forgotten.
    /// Default: 256 and 64 MiB.
    pub stored_responses: (usize, usize),
    /// Compiled forms that are kept. Default: 256.
    pub compiled_forms: usize,
    /// Bytes of the texts of the schemas whose compiled forms are kept; a form takes up to some
    /// hundred times as much. Default: 1 MiB.
    pub compiled_text_bytes: usize,
    /// Bytes of masks and tables that are kept between requests. Default: 256 MiB.
    pub mask_bytes: usize,
    /// Bytes of what was read of prompts, kept for others that begin alike. Default: 256 MiB.
    pub prompt_cache_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            schema_bytes: 1 << 20,
            tools: 128,
            choices: 8,
            messages: 4096,
            calls: 16,
            sequences: NonZeroUsize::new(16).expect("16 is not zero"),
            queue: 64,
            preparing: 2,
            default_max_tokens: 1024,
            request: Duration::from_mins(10),
            reading: Duration::from_secs(30),
            writing: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            connections: 512,
            drain: Duration::from_secs(30),
            stored_responses: (256, 64 << 20),
            compiled_forms: 256,
            compiled_text_bytes: 1 << 20,
            mask_bytes: 256 << 20,
            prompt_cache_bytes: 256 << 20,
        }
    }
}
