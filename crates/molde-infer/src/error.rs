use std::path::PathBuf;

use molde_kernels::KernelError;
use molde_vocab::{ConstraintError, TokenId};

/// Everything that can go wrong between a model file and a finished generation.
///
/// Each variant says where, what was expected, what was found, and what to do. Document text
/// never appears in a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// A file could not be opened, read or mapped.
    #[error("{path}: cannot read: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path is neither a GGUF file nor a folder with a model in it.
    #[error(
        "{path}: not a model: expected a GGUF file (first bytes \"GGUF\", got {got:02x?}) or a \
         folder with config.json, tokenizer.json and model.safetensors"
    )]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// Its first bytes, at most four.
        got: Vec<u8>,
    },
    /// A folder lacks a file that a model needs.
    #[error("{folder}: missing {expected}; download the model again, or point to another folder")]
    MissingFile {
        /// The folder.
        folder: PathBuf,
        /// The file, or the alternatives.
        expected: &'static str,
    },
    /// The GGUF version is not supported.
    #[error("{path}: GGUF version {got}, expected 2 or 3; convert the file with a current tool")]
    GgufVersion {
        /// The file.
        path: PathBuf,
        /// Version in the header.
        got: u32,
    },
    /// A length in the file points beyond its end: cut off, or damaged.
    #[error(
        "{path}: {what} at byte {offset} needs {needed} bytes, {available} are left; the file is \
         cut off or damaged, download it again"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The part of the header that was being read.
        what: &'static str,
        /// Position in the file, in bytes.
        offset: u64,
        /// Bytes that the part needs at least.
        needed: u64,
        /// Bytes between `offset` and the end of the file.
        available: u64,
    },
    /// A metadata entry or configuration field is absent.
    #[error("{path}: {key} is missing; the file is not a complete {expected} model")]
    KeyMissing {
        /// The file.
        path: PathBuf,
        /// The metadata key or JSON field.
        key: String,
        /// The architecture that demands it.
        expected: &'static str,
    },
    /// A metadata entry or configuration field has a value that cannot be used.
    #[error("{path}: {key} is {got}, expected {expected}")]
    KeyValue {
        /// The file.
        path: PathBuf,
        /// The metadata key or JSON field.
        key: String,
        /// What would be valid.
        expected: &'static str,
        /// What is there, shortened.
        got: String,
    },
    /// The file holds another kind of model, or a variant of it that is not implemented.
    #[error("{path}: {key} is \"{got}\", which is not supported; supported: {supported}")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The metadata key or JSON field that decides.
        key: &'static str,
        /// Its value, shortened.
        got: String,
        /// The supported values.
        supported: &'static str,
    },
    /// The model needs a tensor that the file does not have.
    #[error("{path}: tensor {tensor} is missing; the file is not a complete model")]
    TensorMissing {
        /// The file.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
    },
    /// A tensor has another shape than the configuration says.
    #[error("{path}: tensor {tensor} has shape {got:?}, the configuration demands {expected:?}")]
    TensorShape {
        /// The file.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
        /// Shape by the configuration, row-major.
        expected: Vec<usize>,
        /// Shape in the file, row-major.
        got: Vec<u64>,
    },
    /// A tensor is stored in a format that is not read.
    #[error("{path}: tensor {tensor} has type {got}; supported: {supported}")]
    TensorType {
        /// The file.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
        /// Type in the file.
        got: String,
        /// The types that are read.
        supported: &'static str,
    },
    /// A row of a quantized tensor is not a whole number of blocks.
    #[error("{path}: tensor {tensor} has rows of {row} values, its type has blocks of {block}")]
    TensorBlocks {
        /// The file.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
        /// Values a row.
        row: u64,
        /// Values a block.
        block: usize,
    },
    /// The bytes of a tensor lie outside the file, or not on the file's alignment.
    #[error(
        "{path}: tensor {tensor} needs {bytes} bytes at byte {offset} of a file of {file_bytes} \
         bytes aligned to {alignment}; the file is cut off or damaged, download it again"
    )]
    TensorRange {
        /// The file.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
        /// Position in the file, in bytes.
        offset: u64,
        /// Size of the tensor, in bytes.
        bytes: u64,
        /// Size of the file, in bytes.
        file_bytes: u64,
        /// Alignment that the offset must have, in bytes.
        alignment: u64,
    },
    /// A matrix cannot be packed for the kernels.
    #[error("{path}: tensor {tensor}: {source}")]
    Weights {
        /// The file or folder.
        path: PathBuf,
        /// Name in the checkpoint.
        tensor: String,
        /// What is wrong with it.
        source: Box<KernelError>,
    },
    /// The same name appears twice in a file.
    #[error("{path}: {name} appears twice; the file is damaged")]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// Metadata key, tensor name or token.
        name: String,
    },
    /// A JSON file of the model folder does not have the expected form.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Position and problem.
        source: serde_json::Error,
    },
    /// The header of a safetensors file is invalid.
    #[error("{path}: {source}; the file is cut off or damaged, download it again")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What the reader found.
        source: safetensors::SafeTensorError,
    },
    /// A merge rule of the tokenizer names a token that does not exist.
    #[error("{path}: merge rule {rule} joins tokens that are not in the vocabulary")]
    TokenizerMerge {
        /// The file.
        path: PathBuf,
        /// Index of the rule.
        rule: usize,
    },
    /// A text token is not written in the byte-level alphabet.
    #[error("{path}: token {token} is not written in the byte-level alphabet")]
    TokenizerBytes {
        /// The file.
        path: PathBuf,
        /// The token.
        token: TokenId,
    },
    /// A byte has no token, so there are texts that cannot be encoded.
    #[error("{path}: byte {byte:#04x} has no token; expected a byte-level tokenizer")]
    TokenizerByteMissing {
        /// The file.
        path: PathBuf,
        /// The byte.
        byte: u8,
    },
    /// The tokens do not make a vocabulary.
    #[error("{path}: {source}")]
    Vocabulary {
        /// The file.
        path: PathBuf,
        /// What is wrong with the tokens.
        source: molde_vocab::VocabularyError,
    },
    /// The tokenizer library refused its parts, or failed on a text.
    #[error("the tokenizer failed: {source}")]
    Tokenizer {
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The tokenizer and the output head disagree.
    #[error("{path}: the tokenizer has {tokens} tokens, the embedding table only {rows} rows")]
    VocabularySize {
        /// The file.
        path: PathBuf,
        /// Tokens in use.
        tokens: usize,
        /// Rows of the embedding table.
        rows: usize,
    },
    /// The chat template cannot be parsed or rendered.
    #[error("the model's chat template failed: {source}")]
    Template {
        /// Position and problem.
        source: minijinja::Error,
    },
    /// The chat template does not write every message exactly once and unchanged.
    #[error(
        "the model's chat template writes message {message} {got} times unchanged, expected once; \
         it cannot be used safely, pass another template"
    )]
    TemplateContent {
        /// Index of the message.
        message: usize,
        /// How often it appears.
        got: usize,
    },
    /// The chat template does not write tools, or calls of tools, exactly once and unchanged.
    #[error(
        "the model's chat template writes {what} {index} {got} times unchanged, expected once: the \
         model was not made for tools"
    )]
    TemplateTool {
        /// `tool`, `the name of tool call` or `the arguments of tool call`.
        what: &'static str,
        /// Which one, counted from 0.
        index: usize,
        /// How often it appears.
        got: usize,
    },
    /// There is no message, or nothing to read.
    #[error("the prompt has no tokens; give at least one message or token")]
    EmptyPrompt,
    /// A token id is not in the vocabulary.
    #[error("token {token} is not in the vocabulary of {vocabulary} tokens")]
    TokenOutOfRange {
        /// The id.
        token: TokenId,
        /// Number of tokens.
        vocabulary: usize,
    },
    /// Prompt and answer do not fit the context. Nothing is ever cut silently.
    #[error(
        "{prompt_tokens} prompt tokens and {max_tokens} tokens of output do not fit the context \
         of {context_tokens} tokens; shorten the document, or lower the token limit"
    )]
    ContextOverflow {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens asked for.
        max_tokens: usize,
        /// Tokens of the model's context.
        context_tokens: usize,
    },
    /// The shortest text of the constraint is longer than the token limit.
    #[error("the shortest complete answer has {needed_tokens} tokens, the limit is {max_tokens}")]
    BudgetTooSmall {
        /// Tokens of the shortest completion.
        needed_tokens: usize,
        /// Tokens allowed.
        max_tokens: usize,
    },
    /// A cache belongs to a model of another shape, or holds tokens of another precision.
    #[error(
        "the KV cache has {got} layers x heads x values, the model {expected}; use Model::new_cache"
    )]
    CacheMismatch {
        /// Layers, key-value heads and values a head of the model, and its precision where that
        /// is what differs.
        expected: String,
        /// The same of the cache.
        got: String,
    },
    /// The model computed something that is not a number: the weights are damaged.
    #[error("the logit of token {token} is not a number; the weights are damaged")]
    NotANumber {
        /// First such token.
        token: TokenId,
    },
    /// The model computed activations that are not finite: the weights are damaged.
    #[error("the activations after token {position} are not finite; the weights are damaged")]
    NotFinite {
        /// Index of the first such token in the call.
        position: usize,
    },
    /// A step that several sequences shared failed; which of them it was cannot be told.
    #[error("a step of the model failed: {source}")]
    StepFailed {
        /// What the step said.
        source: std::sync::Arc<InferError>,
    },
    /// Code that worked for the sequence panicked: its constraint, its listener, or the step that
    /// it shared.
    #[error("a panic ended the sequence: this is a fault of the program, please report it")]
    Panicked,
    /// The thread that runs the model has stopped.
    #[error("what runs the model has stopped; load it, or start a scheduler, again")]
    Stopped,
    /// The thread that runs the model could not be started.
    #[error("cannot start the thread that runs the model: {source}")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
    /// The constraint could not go on.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The work was cancelled before it was done.
    #[error("cancelled")]
    Cancelled,
    /// The deadline passed before the work was done.
    #[error("the deadline has passed")]
    DeadlineExceeded,
    /// The thread pool could not be started.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the pool said.
        source: rayon::ThreadPoolBuildError,
    },
    /// A kernel refused its arguments: the model has a shape that native precision does not run.
    #[error("native precision cannot run this model: {0}; use Precision::Exact")]
    Kernel(#[from] KernelError),
    /// A tensor operation failed.
    #[error("tensor operation failed: {0}")]
    Compute(#[from] candle_core::Error),
}
