//! A journal of results: work that is killed goes on where it stopped.
//!
//! One JSON object a line, written with one call and synced before the next document is begun. A line
//! is whole or absent: an end without a line end, which a crash may leave, is cut off when the journal
//! is opened. So `kill -9` loses the document in flight and nothing else.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::MoldeError;

/// How long a journal is waited for that another process has open: one that was killed a moment ago
/// may not be gone yet.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Results by document, on disk. Locked while it is open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Of each id the hash of what the result was made from, and the line.
    done: BTreeMap<String, (String, String)>,
}

/// A name of what a result is made from: the document's text and everything that the answer depends
/// on, such as schema, instructions and model. SHA-256, hexadecimal.
pub fn content_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    use std::fmt::Write as _;
    let mut hasher = Sha256::new();
    for part in parts {
        // The length first: no two lists of parts run together to the same bytes.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes any text");
        text
    })
}

impl Journal {
    /// Opens a journal, and makes an empty one where there is none. Waits up to ten seconds for another
    /// process that has it open.
    ///
    /// # Errors
    /// [`MoldeError::Journal`] if it cannot be read or written, if another process has it open, or if
    /// a whole line in it is no result, with the line's number.
    pub fn open(path: &Path) -> Result<Self, MoldeError> {
        Self::open_within(path, LOCK_WAIT)
    }

    fn open_within(path: &Path, wait: Duration) -> Result<Self, MoldeError> {
        let failed = |source| MoldeError::Journal { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if start.elapsed() < wait => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = "another process is writing to it";
                    return Err(failed(std::io::Error::new(
                        std::io::ErrorKind::WouldBlock,
                        message,
                    )));
                }
            }
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(whole as u64)).map_err(failed)?;
        let mut done = BTreeMap::new();
        for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let (id, hash, line) = read_line(line).ok_or_else(|| {
                let message = format!("line {} is no result", number + 1);
                failed(std::io::Error::new(std::io::ErrorKind::InvalidData, message))
            })?;
            // Of a document that was done again the last result counts.
            done.insert(id, (hash, line));
        }
        Ok(Self { path: path.to_owned(), file, done })
    }

    /// The result of a document, as its line, if there is one that was made from the same content.
    pub fn result(&self, id: &str, hash: &str) -> Option<&str> {
        self.done.get(id).filter(|(known, _)| known == hash).map(|(_, line)| line.as_str())
    }

    /// Writes the result of a document. `members` are those of the line besides `id` and `hash`, each
    /// a name and a JSON text, which may have line ends between its parts.
    ///
    /// # Errors
    /// [`MoldeError::Journal`] if it cannot be written.
    pub fn append(
        &mut self,
        id: &str,
        hash: &str,
        members: &[(&str, &str)],
    ) -> Result<(), MoldeError> {
        let mut line = format!("{{\"id\":{},\"hash\":{}", json!(id), json!(hash));
        for (name, text) in members {
            let text = text.replace(['\n', '\r'], " ");
            line.extend([",", &json!(name).to_string(), ":", &text]);
        }
        line.push_str("}\n");
        let failed = |source| MoldeError::Journal { path: self.path.clone(), source };
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        line.pop();
        self.done.insert(id.to_owned(), (hash.to_owned(), line));
        Ok(())
    }

    /// Number of documents that have a result.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether no document has a result.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }
}

fn read_line(line: &[u8]) -> Option<(String, String, String)> {
    let text = std::str::from_utf8(line).ok()?;
    let value: Value = serde_json::from_str(text).ok()?;
    let member = |name: &str| value.get(name)?.as_str().map(ToOwned::to_owned);
    Some((member("id")?, member("hash")?, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn results_are_found_again_by_id_and_content() {
        let folder = folder();
        let path = folder.path().join("j.jsonl");
        let hash = content_hash(["text", "schema"]);
        {
            let mut journal = Journal::open(&path).expect("new");
            assert!(journal.is_empty());
            journal.append("a \"1\"", &hash, &[("value", "{\n\"x\": 1.50}")]).expect("written");
        }
        let journal = Journal::open(&path).expect("there");
        assert_eq!(journal.len(), 1);
        let line = journal.result("a \"1\"", &hash).expect("done");
        assert!(line.contains("\"value\":{ \"x\": 1.50}"), "{line}");
        assert_eq!(journal.result("a \"1\"", &content_hash(["text", "other"])), None);
        assert_eq!(journal.result("b", &hash), None);
    }

    #[test]
    fn a_line_that_a_crash_left_is_cut_off_and_written_again() {
        let folder = folder();
        let path = folder.path().join("j.jsonl");
        {
            let mut journal = Journal::open(&path).expect("new");
            for id in ["a", "b", "c"] {
                journal.append(id, "h", &[("value", "1")]).expect("written");
            }
        }
        let whole = std::fs::read(&path).expect("there");
        let line = whole.len() / 3;
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("writable");
            let mut journal = Journal::open(&path).expect("a cut journal is a journal");
            assert_eq!(journal.len(), length / line, "cut at {length}");
            for id in ["a", "b", "c"] {
                if journal.result(id, "h").is_none() {
                    journal.append(id, "h", &[("value", "1")]).expect("written");
                }
            }
            drop(journal);
            assert_eq!(std::fs::read(&path).expect("there"), whole, "cut at {length}");
        }
    }

    #[test]
    fn what_is_no_journal_and_what_is_in_use_are_errors() {
        let folder = folder();
        let path = folder.path().join("j.jsonl");
        std::fs::write(&path, "{\"id\":\"a\",\"hash\":\"h\"}\nnot a result\n").expect("writable");
        let error = Journal::open(&path).expect_err("no journal").to_string();
        assert!(error.contains("line 2"), "{error}");
        std::fs::write(&path, "").expect("writable");
        let first = Journal::open(&path).expect("empty");
        let error = Journal::open_within(&path, Duration::ZERO).expect_err("in use");
        assert_eq!(error.kind(), "journal");
        drop(first);
        assert!(Journal::open(&path).is_ok());
        assert!(Journal::open(folder.path()).is_err(), "a folder is no file");
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(content_hash(["ab", "c"]), content_hash(["a", "bc"]));
        assert_eq!(content_hash(["a"]).len(), 64);
    }
}
