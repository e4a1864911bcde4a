//! The cache folder, in the layout that the hub's own tools use.
//!
//! ```text
//! <cache>/models--OWNER--NAME/blobs/<etag>                 content, named by the hub's ETag
//!                             blobs/<etag>.incomplete      what has arrived so far
//!                             snapshots/<commit>/<file> -> ../../blobs/<etag>
//! <cache>/.locks/models--OWNER--NAME/<etag>.lock           held while a blob is written
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hf_hub::{Repo, RepoType};

use crate::catalog::CatalogFile;
use crate::digest::{Checksum, hash_file};
use crate::{CatalogModel, HubError};

/// Files without a pinned size are configuration: anything larger is not looked into.
const SMALL_FILE_BYTES: u64 = 16 << 20;

/// The part of the cache that belongs to one revision of one repository.
#[derive(Clone, Debug)]
pub(crate) struct RepoCache {
    folder: PathBuf,
    snapshot: PathBuf,
    locks: PathBuf,
}

impl RepoCache {
    pub(crate) fn new(cache: &Path, model: &CatalogModel) -> Self {
        let (name, revision) = model.repository();
        let repo = Repo::with_revision(name.to_owned(), RepoType::Model, revision.to_owned());
        let folder_name = repo.folder_name();
        Self {
            folder: cache.join(&folder_name),
            snapshot: hf_hub::Cache::new(cache.to_owned()).repo(repo).pointer_path(revision),
            locks: cache.join(".locks").join(folder_name),
        }
    }

    /// The folder with all files of the revision.
    pub(crate) fn snapshot(&self) -> &Path {
        &self.snapshot
    }

    /// Where a file of the revision is, or will be.
    pub(crate) fn path(&self, file: &CatalogFile) -> PathBuf {
        file.name.split('/').fold(self.snapshot.clone(), |path, part| path.join(part))
    }

    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.folder.join("blobs").join(etag)
    }

    pub(crate) fn incomplete(&self, etag: &str) -> PathBuf {
        self.folder.join("blobs").join(format!("{etag}.incomplete"))
    }

    pub(crate) fn lock(&self, etag: &str) -> PathBuf {
        self.locks.join(format!("{etag}.lock"))
    }

    /// Scratch space for wheels, on the same file system as the blobs.
    pub(crate) fn wheels(&self, etag: &str) -> PathBuf {
        self.folder.join("blobs").join(format!("{etag}.wheels"))
    }

    /// The file, if it is whole: files get here by an atomic rename after their checksum was
    /// compared, so its size says the same thing about what another tool left, at no cost. A file
    /// without a pinned size is small and is hashed.
    pub(crate) fn whole_file(&self, file: &CatalogFile) -> Option<PathBuf> {
        let path = self.path(file);
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let whole = match file.size_bytes {
            Some(size_bytes) => metadata.len() == size_bytes,
            None => metadata.len() > 0 && matches_blob_name(&path, metadata.len()),
        };
        whole.then_some(path)
    }

    /// Makes the folders that a transfer writes to.
    pub(crate) fn create_folders(&self) -> Result<(), HubError> {
        for folder in [&self.folder.join("blobs"), &self.snapshot, &self.locks] {
            fs::create_dir_all(folder)
                .map_err(|source| HubError::io("create", folder.clone(), source))?;
        }
        Ok(())
    }

    /// Makes the file of the revision point at a blob, atomically: whoever looks sees the old
    /// state or the new one.
    pub(crate) fn link(&self, file: &CatalogFile, etag: &str) -> Result<PathBuf, HubError> {
        let path = self.path(file);
        let folder = path.parent().unwrap_or(&self.snapshot).to_owned();
        fs::create_dir_all(&folder)
            .map_err(|source| HubError::io("create", folder.clone(), source))?;
        let depth = file.name.split('/').count() + 1;
        let target =
            (0..depth).fold(PathBuf::new(), |path, _| path.join("..")).join("blobs").join(etag);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.{}.link", std::process::id()));
        let made = remove_if_there(&temporary)
            .and_then(|()| place(&target, &self.blob(etag), &temporary))
            .and_then(|()| fs::rename(&temporary, &path));
        made.map_err(|source| HubError::io("link", path.clone(), source))?;
        sync_folder(&folder);
        Ok(path)
    }
}

/// A relative symbolic link where the system allows it, so that the cache can be moved; otherwise
/// a second name of the same content, or a copy.
fn place(target: &Path, blob: &Path, at: &Path) -> io::Result<()> {
    symlink(target, at)
        .or_else(|_| fs::hard_link(blob, at))
        .or_else(|_| fs::copy(blob, at).map(|_| ()))
}

#[cfg(unix)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, at)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a rename in the folder survive a power cut. Systems that cannot do so order renames
/// themselves, hence the result is not looked at.
pub(crate) fn sync_folder(folder: &Path) {
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Whether a small file's content is what the blob that it links to is named after. A file that is
/// no link, or whose name is no checksum, cannot be judged and counts as whole.
fn matches_blob_name(path: &Path, len_bytes: u64) -> bool {
    let Some(checksum) = blob_checksum(path).filter(|_| len_bytes <= SMALL_FILE_BYTES) else {
        return true;
    };
    hash_file(path, checksum.kind, |_| Ok(())).is_ok_and(|hex| hex == checksum.hex)
}

/// The checksum that a cached file's blob is named after.
pub(crate) fn blob_checksum(path: &Path) -> Option<Checksum> {
    let target = fs::read_link(path).ok()?;
    Checksum::from_etag(target.file_name()?.to_str()?)
}

/// The checksum that a cached file must have: the catalogue's, else its blob's name.
pub(crate) fn expected_checksum(file: &CatalogFile, path: &Path) -> Option<Checksum> {
    file.sha256.as_deref().map(Checksum::sha256).or_else(|| blob_checksum(path))
}

/// Whether the bytes of a blob are what its name, or the catalogue, says; `on_progress` as in
/// [`hash_file`].
pub(crate) fn blob_is_whole(
    blob: &Path,
    size_bytes: u64,
    checksum: &Checksum,
    on_progress: impl FnMut(u64) -> Result<(), HubError>,
) -> Result<bool, HubError> {
    match fs::metadata(blob) {
        Ok(metadata) if metadata.is_file() && metadata.len() == size_bytes => {
            Ok(hash_file(blob, checksum.kind, on_progress)? == checksum.hex)
        }
        _ => Ok(false),
    }
}

/// Whether a text from a server may name a blob.
pub(crate) fn is_blob_name(etag: &str) -> bool {
    (1..=128).contains(&etag.len())
        && etag.starts_with(|first: char| first.is_ascii_alphanumeric())
        && etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
