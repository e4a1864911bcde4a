//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 a document failed, or the model could not be had; 2 bad usage or a bad \
schema; 130 interrupted.";

const LINT_EXIT_CODES: &str = "\
Exit codes: 0 every keyword is enforced or an annotation; 2 bad usage, or a schema that cannot be \
enforced or that no value satisfies.";

const TRACE_HELP: &str = "\
One line for each token: its id, the kind of the mask that it met (forced, few, many) and how many \
tokens it allows, `forced` if no other was possible, and the token's text. Then what became of the \
text and, if it was not accepted, which keywords forbid it.

Exit codes: 0 the text is accepted and complete; 1 there is no tokenizer; 2 bad usage or a schema \
that cannot be used; 3 the text is rejected, or not complete.";

const SERVE_HELP: &str = "\
The address is printed to the standard output as soon as requests are answered. RUST_LOG chooses \
what is logged to the standard error, such as `molde_server=info`.

Exit codes: 0 stopped by Ctrl-C or SIGTERM; 1 the model could not be had, or the address is taken; \
2 bad usage.";

/// Local extraction: a document and a JSON Schema in, a valid value out.
#[derive(Debug, Parser)]
#[command(name = "molde", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch a model into the cache
    Pull(Pull),
    /// List the models that can be used by name, and whether they are cached
    Models,
    /// Read documents into values of a JSON Schema
    Extract(Extract),
    /// Write free text
    Generate(Generate),
    /// List what becomes of every keyword of a schema
    Lint(Lint),
    /// Sort texts into labels, with the probability of every label
    Classify(Classify),
    /// Compare writing freely, with a retry, with repair and under the mask, on documents with truth
    Compare(Compare),
    /// Show the most likely next tokens of an answer, and which the mask lets through
    Explain(Explain),
    /// Print what the model is shown of a schema, and its tokens; needs no weights
    Signature(Signature),
    /// Feed a text through the mask, token by token; needs no weights
    Trace(Trace),
    /// Serve the model to the SDKs of OpenAI, Anthropic and Ollama
    Serve(Serve),
    /// Read three bundled press releases, freely and constrained, side by side
    Demo(Demo),
    /// Say what this machine, the cache and the network offer
    Doctor(Doctor),
}

/// Which model, and how it runs.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// A name from `molde models`, a GGUF file, or a folder with safetensors
    ///
    /// Default: the default model if it is cached or the hub answers, else the one that the
    /// package mirror has.
    #[arg(long, value_name = "ID|PATH")]
    pub(crate) model: Option<String>,
    /// Never touch the network
    #[arg(long)]
    pub(crate) offline: bool,
    /// Threads of the model [default: one for each processor core]
    #[arg(long, value_name = "N", value_parser = thread_count)]
    pub(crate) threads: Option<usize>,
    /// Hold all weights as 32-bit floats and calculate exactly: slow, for comparison
    #[arg(long)]
    pub(crate) exact: bool,
    /// Tokens that prompt and answer may take together [default: what the model was made for]
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub(crate) context: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// A name from `molde models` [default: as for the other commands]
    pub(crate) model: Option<String>,
    /// Read the cached files again and compare their checksums; fetches nothing
    #[arg(long)]
    pub(crate) verify: bool,
    /// Never touch the network: succeeds if the model is cached
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags that have nothing to do with each other")]
pub(crate) struct Extract {
    /// File with the JSON Schema of the answers
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// What to extract; `@FILE` reads it from a file [default: the schema's description]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Conventions such as units; `@FILE` reads them from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) conventions: Option<String>,
    /// Language of the fixed parts of the prompt
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub(crate) language: PromptLanguage,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Tokens that one answer may take; it is closed, validly, before they run out
    #[arg(long, value_name = "N", default_value_t = molde::DEFAULT_MAX_TOKENS, value_parser = at_least_one)]
    pub(crate) max_tokens: usize,
    /// Count answers that had to be closed early as success
    #[arg(long)]
    pub(crate) accept_closed: bool,
    /// Fields whose number must be one that the document contains, between commas
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) grounded_numbers: Option<Vec<String>>,
    /// The first field is at most the second, where both are numbers; may be repeated
    #[arg(long, value_name = "LOW,HIGH", value_parser = pair)]
    pub(crate) less_or_equal: Option<Vec<String>>,
    /// All of these fields are null, or none is; may be repeated
    #[arg(long, value_name = "A,B")]
    pub(crate) all_or_none: Option<Vec<String>>,
    /// Say how sure the model was of each field
    #[arg(long)]
    pub(crate) confidence: bool,
    /// Say how long each document took
    #[arg(long)]
    pub(crate) timings: bool,
    /// Keep results in this file, and go on from it: documents that have one are not read again
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Read documents again whose result in the journal is an error
    #[arg(long, requires = "journal")]
    pub(crate) retry_failed: bool,
    /// Write all results to this file at the end: CSV if it ends in `.csv`, else JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The files are JSON lines, whatever they are called
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// The member of JSON lines, and column of CSV files, that has the text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub(crate) text_column: String,
    /// The one that has the id
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(crate) id_column: String,
    /// Leave objects open that do not say whether they have other members
    #[arg(long)]
    pub(crate) keep_open: bool,
    /// Seconds that one document may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Read documents that do not fit in windows that share this many tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) windows: Option<usize>,
    /// Documents in UTF-8: each line of a `.jsonl` file, each row of a `.csv` file, another file as a
    /// whole; `-` is the standard input, which is also read if none is named
    #[arg(value_name = "FILES")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// The user's message; `@FILE` reads it from a file, `-` from the standard input
    #[arg(value_name = "TEXT|@FILE|-")]
    pub(crate) prompt: String,
    /// The system message; `@FILE` reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Tokens that the answer may take; it is cut there
    #[arg(long, value_name = "N", default_value_t = molde::DEFAULT_MAX_TOKENS, value_parser = at_least_one)]
    pub(crate) max_tokens: usize,
    /// Seconds that the answer may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
}

/// Serve the model over HTTP
///
/// Point an SDK of OpenAI at http://HOST:PORT/v1, one of Anthropic or Ollama at http://HOST:PORT,
/// or open that address in a browser.
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Address to listen on; one beyond this machine needs an API key
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) port: u16,
    /// Key that every request must bring [default: the environment variable MOLDE_API_KEY]
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Listen beyond this machine without a key
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Another name that the model answers to; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) alias: Vec<String>,
    /// A value of the Host header to serve beside localhost and addresses; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// A web origin that may call from a browser, or `*`; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Do not tell the model the form of its answer: the mask enforces it anyway
    #[arg(long)]
    pub(crate) hide_schema: bool,
    /// Do not read bounds back from the descriptions that the Anthropic SDKs write
    #[arg(long)]
    pub(crate) no_recover_bounds: bool,
    /// Log prompts
    #[arg(long)]
    pub(crate) log_content: bool,
    /// Answers that are written at the same time
    #[arg(long, value_name = "N", default_value = "16")]
    pub(crate) parallel: NonZeroUsize,
    /// Requests that may wait for the model
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub(crate) queue: usize,
    /// Tokens that an answer may take where the request says nothing
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one)]
    pub(crate) max_tokens: usize,
    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) deadline: Duration,
    /// Seconds that running requests have after Ctrl-C or SIGTERM
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) drain: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Never touch the network
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LINT_EXIT_CODES)]
pub(crate) struct Lint {
    /// File with the JSON Schema; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    #[command(flatten)]
    pub(crate) meaning: SchemaArgs,
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Classify {
    /// File with the labels: one a line, or a JSON array of strings
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// The label of texts whose most probable label is below --min-probability, or that fail
    #[arg(long, value_name = "LABEL")]
    pub(crate) fallback: Option<String>,
    /// Probability below which the fallback stands
    #[arg(long, value_name = "P", default_value_t = 0.5, value_parser = probability, requires = "fallback")]
    pub(crate) min_probability: f64,
    /// Do not ask the model for its own confidence and reasoning
    #[arg(long)]
    pub(crate) no_confidence: bool,
    /// What is classified, and by what; `@FILE` reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Language of the fixed parts of the prompt
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub(crate) language: PromptLanguage,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The files are JSON lines, `{"id","text"}` each, whatever they are called
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Texts: a `.jsonl` file has one in each line, another file is one; `-` is the standard input,
    /// which is also read if none is named
    #[arg(value_name = "FILES")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// File with the JSON Schema of the answers
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Documents with the right values, one JSON object a line: `{"id","text","truth"}`
    #[arg(long, value_name = "FILE")]
    pub(crate) documents: PathBuf,
    /// Share by which a number may differ from the right one
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = probability)]
    pub(crate) tolerance: f64,
    /// What to extract; `@FILE` reads it from a file [default: the schema's description]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Conventions such as units; `@FILE` reads them from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) conventions: Option<String>,
    /// Language of the fixed parts of the prompt
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub(crate) language: PromptLanguage,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Tokens that one answer may take
    #[arg(long, value_name = "N", default_value_t = molde::DEFAULT_MAX_TOKENS, value_parser = at_least_one)]
    pub(crate) max_tokens: usize,
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// File with the JSON Schema of the answers
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// The document, in UTF-8; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) document: PathBuf,
    /// What the answer begins with
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub(crate) prefix: String,
    /// Tokens to show
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub(crate) count: usize,
    /// What to extract; `@FILE` reads it from a file [default: the schema's description]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Conventions such as units; `@FILE` reads them from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) conventions: Option<String>,
    /// Language of the fixed parts of the prompt
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub(crate) language: PromptLanguage,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// One JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags that have nothing to do with each other")]
pub(crate) struct Signature {
    /// File with the JSON Schema; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// The whole schema on one line, without its titles, instead of the signature
    #[arg(long)]
    pub(crate) full: bool,
    /// Count the tokens of the signature, of the whole schema and of the system message
    #[arg(long)]
    pub(crate) count: bool,
    /// Descriptions of fields in the signature
    #[arg(long)]
    pub(crate) descriptions: bool,
    /// No descriptions of fields below the signature in the system message
    #[arg(long)]
    pub(crate) no_notes: bool,
    /// What to extract; `@FILE` reads it from a file [default: the schema's description]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Conventions such as units; `@FILE` reads them from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) conventions: Option<String>,
    /// What to write where the document says nothing; `@FILE` reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) no_data: Option<String>,
    /// Language of the fixed parts
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub(crate) language: PromptLanguage,
    /// A `tokenizer.json`, a GGUF file, or a folder with a `tokenizer.json` [default: of the model]
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// The model whose tokenizer is used, which must be there: nothing is fetched
    #[arg(long, value_name = "ID|PATH")]
    pub(crate) model: Option<String>,
    /// One JSON object with all of it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = TRACE_HELP)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) source: ConstraintArgs,
    #[command(flatten)]
    pub(crate) meaning: SchemaArgs,
    /// Whitespace between the parts of a JSON text
    #[arg(long, value_enum, default_value_t = StyleArg::Spaced)]
    pub(crate) style: StyleArg,
    /// Order of the members of an object
    #[arg(long, value_enum, default_value_t = OrderArg::Schema)]
    pub(crate) order: OrderArg,
    /// Which token sequences a text may be written with
    #[arg(long, value_enum, default_value_t = SegmentationArg::Any)]
    pub(crate) segmentation: SegmentationArg,
    /// How numbers may be written
    #[arg(long, value_enum, default_value_t = NumbersArg::Any)]
    pub(crate) numbers: NumbersArg,
    /// Which escape sequences strings may have
    #[arg(long, value_enum, default_value_t = EscapesArg::Any)]
    pub(crate) escapes: EscapesArg,
    /// A `tokenizer.json`, a GGUF file, or a folder with a `tokenizer.json` [default: of the model]
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// The model whose tokenizer is used, which must be there: nothing is fetched [default: as for
    /// the other commands]
    #[arg(long, value_name = "ID|PATH")]
    pub(crate) model: Option<String>,
    /// Print nothing: the exit code is the answer
    #[arg(long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// One JSON object for each line
    #[arg(long)]
    pub(crate) json: bool,
    /// The text; `-` is the standard input, which is also read if none is given. One line end at
    /// the end of the standard input is left out. Write `--` before a text that begins with `-`
    #[arg(value_name = "TEXT|-", allow_negative_numbers = true)]
    pub(crate) text: Option<String>,
}

/// What a text is held to: exactly one of these.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ConstraintArgs {
    /// File with a JSON Schema; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// An ECMA-262 regular expression that the whole text matches
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) regex: Option<String>,
    /// Texts to choose from, between commas; may be repeated
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) choices: Option<Vec<String>>,
    /// One text to choose from, commas included; to be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) choice: Option<Vec<String>>,
    /// Any JSON object
    #[arg(long)]
    pub(crate) any_object: bool,
}

/// An option of the command line that stands for one of the library.
macro_rules! mirror {
    ($name:ident as $of:ty { $($(#[$doc:meta])+ $variant:ident),+ $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name { $($(#[$doc])+ $variant),+ }

        impl From<$name> for $of {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }
    };
}

mirror!(StyleArg as molde::Style {
    /// One space after commas and colons
    Spaced,
    /// None
    Compact,
    /// Any that JSON allows, within limits
    Flexible,
});

mirror!(OrderArg as molde::Order {
    /// As the schema declares them
    Schema,
    /// Any
    Any,
});

mirror!(SegmentationArg as molde::Segmentation {
    /// Every sequence with the right bytes
    Any,
    /// Where text is forced, only the tokenizer's own
    Canonical,
});

mirror!(NumbersArg as molde::NumberStyle {
    /// As JSON has them
    Any,
    /// No exponents, no fractions on integers, at most 15 digits on others
    Plain,
});

mirror!(EscapesArg as molde::Escapes {
    /// Those that JSON allows
    Any,
    /// Those that JSON demands
    Needed,
});

mirror!(FormatsArg as molde::Formats {
    /// Known formats are enforced
    Assert,
    /// Every format is an annotation
    Annotate,
});

/// What a schema means.
#[derive(Debug, Clone, Args)]
pub(crate) struct SchemaArgs {
    /// Whether known formats are enforced
    #[arg(long, value_enum, default_value_t = FormatsArg::Assert)]
    pub(crate) formats: FormatsArg,
    /// A document that the schema may refer to, by its `$id` or its name, or a folder of such;
    /// may be repeated. Nothing is ever fetched
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) registry: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptLanguage {
    /// English
    En,
    /// Spanish
    Es,
}

impl From<PromptLanguage> for molde::Language {
    fn from(language: PromptLanguage) -> Self {
        match language {
            PromptLanguage::En => Self::English,
            PromptLanguage::Es => Self::Spanish,
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("must be a whole number, at least 1".to_owned()),
    }
}

/// Threads that one processor core may get: more only wait for each other and take memory.
const THREADS_PER_CORE: usize = 4;

fn thread_count(text: &str) -> Result<usize, String> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = cores * THREADS_PER_CORE;
    match at_least_one(text)? {
        threads if threads <= most => Ok(threads),
        _ => Err(format!(
            "must be at most {most}: {THREADS_PER_CORE} for each processor core that this process \
             may use ({cores})"
        )),
    }
}

fn pair(text: &str) -> Result<String, String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [low, high] if !low.is_empty() && !high.is_empty() => Ok(text.to_owned()),
        _ => Err("must be two names with a comma between them".to_owned()),
    }
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds: &f64| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "must be a number of seconds above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_command_takes_its_arguments() {
        for line in [
            "molde pull",
            "molde pull qwen2.5-0.5b-instruct --verify --offline",
            "molde models",
            "molde extract --schema s.json",
            "molde extract --schema s.json -",
            "molde extract --schema s.json --instructions @task.txt --model m.gguf --offline \
             --max-tokens 60 --threads 2 --deadline 0.5 --windows 50 --language es a.txt b.txt",
            "molde generate hello --system @s.txt --max-tokens 5 --deadline 3",
            "molde demo --offline --exact",
            "molde doctor --offline",
            "molde serve",
            "molde serve --host 0.0.0.0 --port 0 --api-key k --alias a --alias b --allow-host h \
             --allow-origin http://localhost:3000 --hide-schema --no-recover-bounds --queue 4 \
             --max-tokens 64 --deadline 5 --drain 0.5 --model m.gguf --offline",
            "molde lint --schema s.json --formats annotate --registry a.json --registry b --json",
            "molde signature --schema s.json --full --count --language es --tokenizer t.json",
            "molde signature --schema - --descriptions --no-notes --no-data x --json --model m",
            "molde extract --schema s.json --keep-open --journal j.jsonl --retry-failed --output o.csv a.csv",
            "molde extract --schema s.json --grounded-numbers a,b --less-or-equal a,b --all-or-none a,b,c \
             --confidence --timings --jsonl --text-column body --id-column key -",
            "molde classify --labels l.txt --fallback default --min-probability 0.6 --no-confidence a.jsonl",
            "molde classify --labels l.txt --jsonl -",
            "molde compare --schema s.json --documents d.jsonl --tolerance 0.005 --json --max-tokens 60",
            "molde explain --schema s.json --document d.txt --prefix {\"a\": --count 3 --json",
            "molde trace --schema s.json",
            "molde trace --schema s.json -",
            "molde trace --schema s.json --style flexible --order any --formats annotate \
             --segmentation canonical --numbers plain --escapes needed --tokenizer t.json --quiet -5",
            "molde trace --regex -a+ --json -- -a",
            "molde trace --choices a,b --choices c a",
            "molde trace --any-object --model m.gguf {}",
        ] {
            let words: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(parse(&words).is_ok(), "{line}");
        }
    }

    #[test]
    fn wrong_arguments_are_bad_usage() {
        for line in [
            "molde",
            "molde frobnicate",
            "molde extract a.txt",
            "molde extract --schema s.json --max-tokens 0",
            "molde extract --schema s.json --threads -1",
            "molde extract --schema s.json --threads 1000000",
            "molde extract --schema s.json --deadline 0",
            "molde extract --schema s.json --deadline nan",
            "molde extract --schema s.json --deadline inf",
            "molde extract --schema s.json --language fr",
            "molde generate",
            "molde extract --schema s.json --less-or-equal a",
            "molde extract --schema s.json --retry-failed",
            "molde classify a.jsonl",
            "molde classify --labels l --fallback d --min-probability 1.5",
            "molde explain --schema s.json",
            "molde signature",
            "molde serve --port 70000",
            "molde serve --queue 0",
            "molde trace x",
            "molde trace --schema s.json --regex a x",
            "molde trace --schema s.json --style tight x",
            "molde trace --any-object --model m --tokenizer t x",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn an_extraction_has_the_documented_defaults() {
        let Ok(Cli { command: Command::Extract(extract) }) = parse("molde extract --schema s.json")
        else {
            panic!("the line is valid")
        };
        assert_eq!(extract.max_tokens, 512);
        assert_eq!(extract.language, PromptLanguage::En);
        assert!(
            extract.files.is_empty() && extract.deadline.is_none() && extract.windows.is_none()
        );
        assert!(!extract.accept_closed && !extract.model.offline);
    }
}
