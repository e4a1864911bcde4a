//! The two checksums by which a file of the hub is known.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::HubError;

/// Bytes read and hashed at a time.
pub(crate) const CHUNK_BYTES: usize = 1 << 18;

/// Which checksum identifies a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChecksumKind {
    /// SHA-256 of the content: large files, and everything the catalogue pins.
    Sha256,
    /// SHA-1 of `blob <size>\0` and the content, as git names it: the hub's small files.
    GitBlobSha1,
}

impl fmt::Display for ChecksumKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sha256 => "SHA-256",
            Self::GitBlobSha1 => "git blob SHA-1",
        })
    }
}

/// The checksum that a file must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) kind: ChecksumKind,
    /// Hexadecimal, lower case.
    pub(crate) hex: String,
}

impl Checksum {
    pub(crate) fn sha256(hex: &str) -> Self {
        Self { kind: ChecksumKind::Sha256, hex: hex.to_ascii_lowercase() }
    }

    /// The checksum that an ETag of the hub is: 64 digits for large files, 40 for small ones.
    pub(crate) fn from_etag(etag: &str) -> Option<Self> {
        let kind = match etag.len() {
            64 => ChecksumKind::Sha256,
            40 => ChecksumKind::GitBlobSha1,
            _ => return None,
        };
        is_hex(etag).then(|| Self { kind, hex: etag.to_ascii_lowercase() })
    }
}

pub(crate) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A running checksum.
#[derive(Clone)]
pub(crate) enum Hasher {
    Sha256(Sha256),
    GitBlob(Sha1),
}

impl Hasher {
    /// `size_bytes` is the size of the whole file: git hashes it before the content.
    pub(crate) fn new(kind: ChecksumKind, size_bytes: u64) -> Self {
        match kind {
            ChecksumKind::Sha256 => Self::Sha256(Sha256::new()),
            ChecksumKind::GitBlobSha1 => {
                let mut sha1 = Sha1::new();
                sha1.update(format!("blob {size_bytes}\0"));
                Self::GitBlob(sha1)
            }
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::GitBlob(hasher) => hasher.update(bytes),
        }
    }

    /// Hexadecimal, lower case.
    pub(crate) fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::GitBlob(hasher) => hex(&hasher.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

/// The checksum of a file on disk; `on_progress` gets the bytes read so far, and may stop it.
pub(crate) fn hash_file(
    path: &Path,
    kind: ChecksumKind,
    mut on_progress: impl FnMut(u64) -> Result<(), HubError>,
) -> Result<String, HubError> {
    let failed = |source| HubError::io("read", path, source);
    let file = File::open(path).map_err(failed)?;
    let size_bytes = file.metadata().map_err(failed)?.len();
    let mut hasher = Hasher::new(kind, size_bytes);
    hash_prefix(&file, size_bytes, &mut hasher, &mut on_progress).map_err(|error| match error {
        PrefixError::Read(source) => failed(source),
        PrefixError::Stopped(error) => error,
    })?;
    Ok(hasher.finish())
}

pub(crate) enum PrefixError {
    Read(std::io::Error),
    Stopped(HubError),
}

/// Feeds the next `len_bytes` of `reader` to `hasher`; returns how many there were.
pub(crate) fn hash_prefix(
    reader: impl Read,
    len_bytes: u64,
    hasher: &mut Hasher,
    on_progress: &mut dyn FnMut(u64) -> Result<(), HubError>,
) -> Result<u64, PrefixError> {
    let mut reader = reader.take(len_bytes);
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done_bytes = 0;
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok(done_bytes),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(PrefixError::Read(error)),
        };
        hasher.update(&buffer[..count]);
        done_bytes += count as u64;
        on_progress(done_bytes).map_err(PrefixError::Stopped)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(kind: ChecksumKind, content: &[u8]) -> String {
        let mut hasher = Hasher::new(kind, content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }

    #[test]
    fn checksums_match_sha256sum_and_git_hash_object() {
        // Oracles: `printf 'hello\n' | sha256sum` and `printf 'hello\n' | git hash-object --stdin`.
        assert_eq!(
            digest(ChecksumKind::Sha256, b"hello\n"),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        );
        assert_eq!(
            digest(ChecksumKind::GitBlobSha1, b"hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        // git's well-known name of the empty blob.
        assert_eq!(
            digest(ChecksumKind::GitBlobSha1, b""),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
    }

    #[test]
    fn an_etag_is_a_checksum_only_if_it_is_hexadecimal_of_the_right_length() {
        let sha1 = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(Checksum::from_etag(sha1).map(|sum| sum.kind), Some(ChecksumKind::GitBlobSha1));
        assert_eq!(Checksum::from_etag(&sha1[1..]), None);
        assert_eq!(Checksum::from_etag(&"g".repeat(40)), None);
        assert_eq!(
            Checksum::from_etag(&"a".repeat(64)).map(|sum| sum.kind),
            Some(ChecksumKind::Sha256)
        );
    }
}
