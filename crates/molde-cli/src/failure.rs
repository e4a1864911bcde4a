//! What goes wrong for a whole command, and the exit code that says so.

use std::path::PathBuf;

use molde::MoldeError;
use molde_hub::HubError;
use molde_server::ServerError;

/// The exit codes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// A document failed, or the model could not be had.
    Failed,
    /// Bad usage or a bad schema. `clap` uses the same code.
    Usage,
    /// A text was rejected, or not complete.
    Rejected,
    /// Ended by Ctrl-C: 128 + SIGINT, as shells have it.
    Interrupted,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Rejected => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command stopped before it was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file that the command line names cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Argument { path: PathBuf, source: std::io::Error },
    /// A file that the command line names is not text.
    #[error("{} is not UTF-8: the first bad byte is at offset {offset}", path.display())]
    ArgumentNotUtf8 { path: PathBuf, offset: usize },
    /// The schema cannot be used.
    #[error("the schema {} cannot be used:\n{source}", path.display())]
    Schema { path: PathBuf, source: Box<MoldeError> },
    /// Two documents of a journal have the same id.
    #[error("two documents have the id {id:?}: a journal needs one for each")]
    RepeatedId { id: String },
    /// The file for the results cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    OutputFile { path: PathBuf, source: std::io::Error },
    /// The documents and their truth cannot be used.
    #[error("{}, line {line}: {reason}", path.display())]
    Truth { path: PathBuf, line: usize, reason: String },
    /// The labels cannot be used.
    #[error("the labels {} cannot be used: {source}", path.display())]
    Labels { path: PathBuf, source: serde_json::Error },
    /// The regular expression cannot be used.
    #[error(transparent)]
    Regex(#[from] molde_schema::RegexError),
    /// The choices cannot be used.
    #[error(transparent)]
    Choices(#[from] molde_constraint::ChoicesError),
    /// The tokenizer that the command line names cannot be used.
    #[error("the tokenizer cannot be used: {0}")]
    Tokenizer(Box<molde_infer::InferError>),
    /// The standard input cannot be used as a prompt.
    #[error("the prompt on the standard input cannot be used: {0}")]
    Prompt(crate::documents::DocumentError),
    /// The model's files.
    #[error(transparent)]
    Hub(Box<HubError>),
    /// The engine.
    #[error(transparent)]
    Molde(Box<MoldeError>),
    /// The model cannot be loaded.
    #[error(transparent)]
    Load(Box<molde_infer::InferError>),
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The operating system does not give what a server needs.
    #[error("the server cannot be started: {0}")]
    Runtime(std::io::Error),
    /// Writing the output failed, for another reason than that nobody reads it.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    /// Nobody reads the output any more: what was asked for has been delivered.
    #[error("the output was closed")]
    OutputClosed,
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::OutputClosed => Exit::Success,
            Self::Interrupted => Exit::Interrupted,
            Self::Argument { .. }
            | Self::ArgumentNotUtf8 { .. }
            | Self::Schema { .. }
            | Self::Labels { .. }
            | Self::Truth { .. }
            | Self::RepeatedId { .. }
            | Self::Regex(_)
            | Self::Choices(_)
            | Self::Tokenizer(_)
            | Self::Server(ServerError::KeyNeeded { .. } | ServerError::Origin { .. }) => {
                Exit::Usage
            }
            Self::Hub(error) => exit_of_hub(error),
            Self::Molde(error) => match &**error {
                MoldeError::Hub(error) => exit_of_hub(error),
                MoldeError::BudgetTooSmall { .. }
                | MoldeError::Labels { .. }
                | MoldeError::UnknownField { .. }
                | MoldeError::Journal { .. }
                | MoldeError::PrefixRejected { .. } => Exit::Usage,
                _ => Exit::Failed,
            },
            Self::Load(error) => match **error {
                molde_infer::InferError::Cancelled => Exit::Interrupted,
                _ => Exit::Failed,
            },
            Self::Server(_)
            | Self::Runtime(_)
            | Self::Prompt(_)
            | Self::Output(_)
            | Self::OutputFile { .. } => Exit::Failed,
        }
    }
}

fn exit_of_hub(error: &HubError) -> Exit {
    match error {
        HubError::Cancelled => Exit::Interrupted,
        HubError::UnknownModel { .. } => Exit::Usage,
        _ => Exit::Failed,
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        Self::Hub(Box::new(error))
    }
}

impl From<MoldeError> for Failure {
    fn from(error: MoldeError) -> Self {
        match error {
            MoldeError::Cancelled => Self::Interrupted,
            other => Self::Molde(Box::new(other)),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Output(error)
        }
    }
}
