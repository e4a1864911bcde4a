//! The one error type of this crate.

use std::fmt::{Display, Formatter, Write as _};

use molde_hub::HubError;
use molde_infer::InferError;
use molde_schema::{Offender, Offenders, SchemaError};

/// Why there is no answer, or why an engine or extractor could not be made.
///
/// The text of a document never appears in a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoldeError {
    /// The schema cannot be enforced.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The model's files could not be found or fetched.
    #[error(transparent)]
    Hub(HubError),
    /// The model's files are stored in a way that this version does not load.
    #[error(
        "the files of model {id} are stored in a way that this version does not load: use a GGUF file or a folder with safetensors"
    )]
    UnknownLayout {
        /// The model.
        id: String,
    },
    /// The model could not be loaded, or failed while running.
    #[error(transparent)]
    Inference(InferError),
    /// The model was not made for conversations: its files hold no chat template.
    #[error(
        "the model has no chat template, so it cannot be given instructions: use an instruct model"
    )]
    NoChatTemplate,
    /// A model that is not this crate's could not answer.
    #[error("the model could not answer: {0}")]
    Model(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A rule or an option speaks of a member that the schema's outermost object does not declare.
    #[error("there is no field `{field}`: the outermost object of the schema does not declare it")]
    UnknownField {
        /// The name.
        field: String,
    },
    /// A field was to become null where it is uncertain, and its schema does not allow null.
    #[error("the field `{field}` cannot be abstained from: the schema does not allow null there")]
    CannotAbstain {
        /// The field.
        field: String,
    },
    /// The journal of a batch cannot be used.
    #[error("the journal {} cannot be used: {source}", path.display())]
    Journal {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// A list of labels that cannot be told apart.
    #[error("the labels cannot be used: {reason}")]
    Labels {
        /// What is wrong with them.
        reason: &'static str,
    },
    /// A schema of an object with declared members was needed.
    #[error(
        "the outermost schema must be a JSON object that declares its members under `properties`, without a member of that name"
    )]
    NotAnObjectSchema,
    /// The document has no number that a grounded field may be, and the field may not be null.
    #[error("no number of the document can be the value of {}", Places(.fields))]
    NoGroundedValue {
        /// The fields that have no value, or that have none together.
        fields: Vec<String>,
    },
    /// The document has more numbers than fields can be grounded in.
    #[error(
        "the document has {numbers} different numbers, fields can be grounded in {limit}: read it in parts"
    )]
    TooManyNumbers {
        /// Different numbers, in all their readings.
        numbers: usize,
        /// Numbers that are possible.
        limit: usize,
    },
    /// A text that an answer was to begin with is not allowed by the schema.
    #[error(
        "no answer begins with this text: the schema allows only its first {offset} bytes, as tokens"
    )]
    PrefixRejected {
        /// Bytes of the tokens that are allowed.
        offset: usize,
    },
    /// A text that the caller gave as an answer is not valid.
    #[error("{what} is not valid: {fault}")]
    InvalidAnswer {
        /// What it was given as.
        what: &'static str,
        /// Its first fault.
        fault: crate::Fault,
    },
    /// The document holds nothing but white space.
    #[error("the document is empty: it holds nothing but white space")]
    EmptyDocument,
    /// Document, instructions and answer do not fit into the context together.
    #[error(
        "the prompt has {prompt_tokens} tokens and the answer may take {max_tokens}, the context \
         holds {context_tokens}: shorten the document, lower the token limit, or read it in windows"
    )]
    ContextOverflow {
        /// Tokens of instructions and document.
        prompt_tokens: usize,
        /// Tokens reserved for the answer.
        max_tokens: usize,
        /// Tokens that the context holds.
        context_tokens: usize,
    },
    /// Windows were asked for that would not move forward.
    #[error(
        "windows that share {overlap_tokens} tokens need more than that in each, but instructions \
         and answer leave {window_tokens} for the document: lower the overlap or the token limit"
    )]
    WindowTooSmall {
        /// Tokens that neighbours were to share.
        overlap_tokens: usize,
        /// Tokens of the document that fit into one window.
        window_tokens: usize,
    },
    /// The shortest valid answer is longer than the token limit.
    #[error(
        "the shortest valid answer has {needed_tokens} tokens, the limit is {max_tokens}: raise the token limit"
    )]
    BudgetTooSmall {
        /// Tokens of the shortest valid answer.
        needed_tokens: usize,
        /// The token limit.
        max_tokens: usize,
    },
    /// The answer is valid, but the token limit changed it.
    #[error(
        "the answer had to be closed to stay inside the token limit, at {}: raise the token limit, or accept closed answers",
        Places(.fields)
    )]
    ClosedByBudget {
        /// JSON Pointers of the values that were closed.
        fields: Vec<String>,
    },
    /// The caller cancelled before the answer was whole.
    #[error("cancelled before the answer was complete")]
    Cancelled,
    /// The deadline passed before the answer was whole.
    #[error("the deadline passed before the answer was complete")]
    DeadlineExceeded,
    /// A valid answer could not be read into the Rust type, whose `Deserialize` demands more than
    /// its JSON Schema says.
    #[error(
        "the answer is valid under the schema of `{type_name}`, but reading it failed at line {line}, \
         column {column} ({category}): state the type's rule in its schema"
    )]
    Deserialize {
        /// The Rust type.
        type_name: &'static str,
        /// Line in the answer, from 1.
        line: usize,
        /// Column in the answer, from 1.
        column: usize,
        /// The kind of problem: `data`, `syntax`, `eof` or `io`.
        category: &'static str,
    },
    /// The schema of a Rust type says less than its `Deserialize` demands, and what is missing is
    /// not known here.
    #[error(
        "the schema of `{type_name}` does not say enough to guarantee that every answer can be read:\n{offenders}"
    )]
    RustType {
        /// The Rust type.
        type_name: &'static str,
        /// The places, all of them.
        offenders: Offenders,
    },
    /// An answer is nested too deep to be read into a value.
    #[error(
        "the answer is nested {levels} levels deep, {max_levels} are read: lower the token limit, or keep the answer as text"
    )]
    TooDeep {
        /// Levels of the answer.
        levels: usize,
        /// Levels that are read.
        max_levels: usize,
    },
    /// There was no memory for the stack on which a deep answer is read.
    #[error("no thread with a stack of {bytes} bytes for reading a deep answer: {source}")]
    Stack {
        /// Bytes of the stack.
        bytes: usize,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// An answer that is complete by the constraint is not UTF-8: a defect of the tokenizer.
    #[error(
        "the answer is not UTF-8 from byte {offset} on: the tokenizer of this model is damaged"
    )]
    NotUtf8 {
        /// Offset of the first bad byte in the answer.
        offset: usize,
    },
}

impl MoldeError {
    /// A stable name of the kind of error, in `snake_case`, for logs and wire formats.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Schema(SchemaError::Syntax { .. }) => "schema_syntax",
            Self::Schema(SchemaError::Malformed(_)) => "schema_malformed",
            Self::Schema(SchemaError::Refused(_)) => "schema_refused",
            Self::Schema(SchemaError::Unsatisfiable { .. }) => "schema_unsatisfiable",
            Self::Schema(SchemaError::Limit { .. }) => "schema_limit",
            Self::Schema(_) => "schema",
            Self::Hub(_) => "model_files",
            Self::UnknownLayout { .. } => "unknown_layout",
            Self::Inference(_) => "inference",
            Self::NoChatTemplate => "no_chat_template",
            Self::Model(_) => "model",
            Self::UnknownField { .. } => "unknown_field",
            Self::PrefixRejected { .. } => "prefix_rejected",
            Self::CannotAbstain { .. } => "cannot_abstain",
            Self::Journal { .. } => "journal",
            Self::Labels { .. } => "labels",
            Self::NotAnObjectSchema => "not_an_object_schema",
            Self::NoGroundedValue { .. } => "no_grounded_value",
            Self::TooManyNumbers { .. } => "too_many_numbers",
            Self::InvalidAnswer { .. } => "invalid_answer",
            Self::EmptyDocument => "empty_document",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::BudgetTooSmall { .. } => "budget_too_small",
            Self::ClosedByBudget { .. } => "closed_by_budget",
            Self::Cancelled => "cancelled",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Deserialize { .. } => "deserialize",
            Self::RustType { .. } => "rust_type",
            Self::TooDeep { .. } => "too_deep",
            Self::Stack { .. } => "stack",
            Self::NotUtf8 { .. } => "not_utf8",
        }
    }

    /// The schema locations that stopped a compilation, all of them; empty for other errors.
    pub fn offenders(&self) -> &[Offender] {
        match self {
            Self::Schema(SchemaError::Malformed(offenders) | SchemaError::Refused(offenders))
            | Self::RustType { offenders, .. } => &offenders.0,
            _ => &[],
        }
    }

    /// What `serde_json` says, without its message: that can quote the document.
    pub(crate) fn deserialize<T>(error: &serde_json::Error) -> Self {
        Self::Deserialize {
            type_name: std::any::type_name::<T>(),
            line: error.line(),
            column: error.column(),
            category: match error.classify() {
                serde_json::error::Category::Io => "io",
                serde_json::error::Category::Syntax => "syntax",
                serde_json::error::Category::Data => "data",
                serde_json::error::Category::Eof => "eof",
            },
        }
    }
}

impl From<HubError> for MoldeError {
    /// A transfer that was stopped is work that was stopped; everything else is wrapped.
    fn from(error: HubError) -> Self {
        match error {
            HubError::Cancelled => Self::Cancelled,
            other => Self::Hub(other),
        }
    }
}

impl From<InferError> for MoldeError {
    /// Kinds that this crate has itself keep their name; everything else is wrapped.
    fn from(error: InferError) -> Self {
        match error {
            InferError::ContextOverflow { prompt_tokens, max_tokens, context_tokens } => {
                Self::ContextOverflow { prompt_tokens, max_tokens, context_tokens }
            }
            InferError::BudgetTooSmall { needed_tokens, max_tokens } => {
                Self::BudgetTooSmall { needed_tokens, max_tokens }
            }
            InferError::Cancelled => Self::Cancelled,
            InferError::DeadlineExceeded => Self::DeadlineExceeded,
            other => Self::Inference(other),
        }
    }
}

/// Places that a message lists; the others are counted.
const LISTED_PLACES: usize = 5;
/// Characters of a place that a message shows.
const PLACE_CHARACTERS: usize = 80;

/// Displays the innermost of some JSON Pointers in a row, a few of them, the empty one as "the
/// root". Names of members can be a document's: control characters are escaped, and length is cut.
struct Places<'a>(&'a [String]);

impl Display for Places<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let is_inside = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
        };
        let innermost: Vec<&String> = self
            .0
            .iter()
            .filter(|outer| !self.0.iter().any(|inner| is_inside(inner, outer)))
            .collect();
        for (index, pointer) in innermost.iter().take(LISTED_PLACES).enumerate() {
            if index > 0 {
                formatter.write_str(", ")?;
            }
            if pointer.is_empty() {
                formatter.write_str("the root")?;
            }
            for (count, character) in pointer.chars().enumerate() {
                if count == PLACE_CHARACTERS {
                    formatter.write_char('…')?;
                    break;
                }
                if character.is_control() {
                    write!(formatter, "{}", character.escape_default())?;
                } else {
                    formatter.write_char(character)?;
                }
            }
        }
        match innermost.len().saturating_sub(LISTED_PLACES) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_places_are_the_innermost_and_few_and_cannot_steer_a_terminal() {
        let shown = |places: &[&str]| {
            let fields: Vec<String> = places.iter().map(|&place| place.to_owned()).collect();
            Places(&fields).to_string()
        };
        assert_eq!(shown(&[""]), "the root");
        assert_eq!(shown(&["", "/a", "/a/0", "/a/0/b", "/ab"]), "/a/0/b, /ab");
        assert_eq!(
            shown(&["/1", "/2", "/3", "/4", "/5", "/6", "/7"]),
            "/1, /2, /3, /4, /5 and 2 more"
        );
        assert_eq!(shown(&["/a\u{1b}[2J\nb"]), r"/a\u{1b}[2J\nb");
        let long = "/x".repeat(100);
        assert_eq!(shown(&[long.as_str()]), format!("{}…", &long[..PLACE_CHARACTERS]));
    }
}
