//! What a request means, whichever dialect it came in.

use molde_infer::{Message, Sampling};

/// A request for answers.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) prompt: Prompt,
    pub(crate) tools: Vec<Tool>,
    pub(crate) tool_choice: ToolChoice,
    /// Whether an answer may hold more than one call.
    pub(crate) parallel_calls: bool,
    pub(crate) form: Form,
    pub(crate) sampling: Sampling,
    /// `None`: the server's default, within the context.
    pub(crate) max_tokens: Option<usize>,
    /// Tokens that prompt and answer may take, if fewer than the model's.
    pub(crate) context_tokens: Option<usize>,
    /// Texts that end free text.
    pub(crate) stop: Vec<String>,
    /// Number of answers.
    pub(crate) choices: usize,
    /// Rivals to score for each token; `None`: no scores at all.
    pub(crate) scores: Option<usize>,
    pub(crate) extension: Extension,
}

impl Request {
    /// A request with the defaults.
    pub(crate) fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            parallel_calls: true,
            form: Form::Text,
            sampling: Sampling::default(),
            max_tokens: None,
            context_tokens: None,
            stop: Vec::new(),
            choices: 1,
            scores: None,
            extension: Extension::default(),
        }
    }
}

/// What the model reads.
#[derive(Debug, Clone)]
pub(crate) enum Prompt {
    /// A conversation. A last message of the assistant is the beginning of the answer.
    Chat(Vec<Message>),
    /// A text as it is, without the model's template.
    Text(String),
}

/// Something that the model may call.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The JSON Schema of the arguments, as text.
    pub(crate) parameters: String,
}

/// Whether the model calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// It decides.
    Auto,
    /// It does not.
    None,
    /// It calls at least one.
    Required,
    /// It calls this one.
    Named(String),
}

/// What the text of an answer is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing.
    Text,
    /// Any JSON object.
    JsonObject,
    /// A JSON Schema, and the field of the request that it came in.
    Schema { text: String, field: &'static str },
    /// An ECMA-262 regular expression that the whole text matches.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
}

/// The `molde` field of a request, in any dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Extension {
    /// Accept an answer that was closed to stay inside the token limit as a whole one.
    pub(crate) close: bool,
    /// Report confidence and mask statistics with the answer.
    pub(crate) report: bool,
    /// Let objects that declare members have others too, where the schema does not say.
    pub(crate) open_objects: bool,
    /// Tell the model the form of the answer. Default: the server's.
    pub(crate) show_schema: Option<bool>,
    /// Read bounds back from descriptions. Default: the server's.
    pub(crate) recover_bounds: Option<bool>,
}
