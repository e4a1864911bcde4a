//! The documents of the command line, and other texts that it names.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A document that was named and not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("cannot read it: {0}")]
    Io(std::io::Error),
    #[error("it is not UTF-8: the first bad byte is at offset {offset}; convert it first")]
    NotUtf8 { offset: usize },
}

impl DocumentError {
    /// A stable name, as [`molde::MoldeError::kind`] gives one.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Io(error) if error.kind() == std::io::ErrorKind::NotFound => "not_found",
            Self::Io(_) => "unreadable",
            Self::NotUtf8 { .. } => "not_utf8",
        }
    }
}

impl Source {
    /// The documents that `files` names; none is the standard input.
    pub(crate) fn all(files: &[PathBuf]) -> Vec<Self> {
        if files.is_empty() {
            return vec![Self::Stdin];
        }
        files
            .iter()
            .map(
                |path| if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path.clone()) },
            )
            .collect()
    }

    /// The document's name in the output: its path as it was given.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// The text, without the byte-order mark that some editors put before it.
    pub(crate) fn read(&self) -> Result<String, DocumentError> {
        let bytes = match self {
            Self::Stdin => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
            Self::File(path) => std::fs::read(path),
        };
        text_of(bytes.map_err(DocumentError::Io)?)
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, DocumentError> {
    let mut text = String::from_utf8(bytes)
        .map_err(|error| DocumentError::NotUtf8 { offset: error.utf8_error().valid_up_to() })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// The text of a file that an option names.
pub(crate) fn read_argument(path: &Path) -> Result<String, Failure> {
    let source = if path.as_os_str() == OsStr::new("-") {
        Source::Stdin
    } else {
        Source::File(path.to_owned())
    };
    source.read().map_err(|error| match error {
        DocumentError::Io(source) => Failure::Argument { path: path.to_owned(), source },
        DocumentError::NotUtf8 { offset } => {
            Failure::ArgumentNotUtf8 { path: path.to_owned(), offset }
        }
    })
}

/// The value of an option that is a text, or the name of a file after `@`.
pub(crate) fn text_or_file(argument: &str) -> Result<String, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => read_argument(Path::new(path)),
        None => Ok(argument.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_and_a_dash_are_the_standard_input() {
        assert_eq!(Source::all(&[]), [Source::Stdin]);
        let named = Source::all(&["a.txt".into(), "-".into(), "./-".into()]);
        assert_eq!(
            named,
            [Source::File("a.txt".into()), Source::Stdin, Source::File("./-".into())]
        );
        assert_eq!(named.iter().map(Source::id).collect::<Vec<_>>(), ["a.txt", "-", "./-"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_named_by_offset() {
        for (bytes, offset) in [(&b"abc\xff"[..], 3), (b"\xed\xa0\x80", 0), (b"ok \xc3", 3)] {
            let error = text_of(bytes.to_vec()).expect_err("the bytes are not UTF-8");
            assert!(
                matches!(error, DocumentError::NotUtf8 { offset: at } if at == offset),
                "{error}"
            );
            assert_eq!(error.kind(), "not_utf8");
        }
    }

    #[test]
    fn control_characters_stay_and_a_byte_order_mark_goes() {
        assert_eq!(text_of(b"a\0b\x1b[0m".to_vec()).expect("UTF-8"), "a\0b\u{1b}[0m");
        assert_eq!(text_of("\u{feff}x\u{feff}".into()).expect("UTF-8"), "x\u{feff}");
    }
}
