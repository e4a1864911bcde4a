//! What a caller asks for, and the files that it gets.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::catalog::{Catalog, CatalogModel, WeightFormat};
use crate::error::ModelPathProblem;
use crate::{HubError, cache::RepoCache};

/// A model, by the catalogue's name or by its place on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelRef {
    /// An id of the catalogue.
    Catalog(String),
    /// A GGUF file, or a folder with `config.json`, `tokenizer.json` and safetensors.
    Path(PathBuf),
}

impl ModelRef {
    /// What a person means by one word: an id of the catalogue if there is such a one, else a path
    /// if it looks like one or something is there, else an id, which [`Hub::resolve`] will not
    /// find.
    ///
    /// [`Hub::resolve`]: crate::Hub::resolve
    pub fn from_text(text: &str, catalog: &Catalog) -> Self {
        let path = Path::new(text);
        let looks_like_path = text.contains(['/', '\\'])
            || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        if catalog.find(text).is_err() && (looks_like_path || path.exists()) {
            Self::Path(path.to_owned())
        } else {
            Self::Catalog(text.to_owned())
        }
    }
}

/// Where the files of a model came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// They were all in the cache.
    Cached,
    /// At least one was fetched from the hub.
    Hub,
    /// At least one was fetched from the package mirror.
    Mirror,
    /// The caller named a path.
    Path,
}

/// The files of a model, all on disk and whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFiles {
    /// The catalogue's id, or the name of the file or folder.
    pub id: String,
    /// The files, by how the weights are stored.
    pub files: ModelLayout,
    /// Where they came from.
    pub origin: Origin,
}

/// The files of a model, by how the weights are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelLayout {
    /// One file with weights, tokenizer and chat template.
    Gguf {
        /// The file.
        path: PathBuf,
    },
    /// Weights with configuration and tokenizer beside them.
    Safetensors {
        /// The folder that has them all.
        folder: PathBuf,
        /// `config.json`.
        config: PathBuf,
        /// `tokenizer.json`.
        tokenizer: PathBuf,
        /// `tokenizer_config.json` (the chat template), if there.
        tokenizer_config: Option<PathBuf>,
        /// `generation_config.json` (the end-of-turn ids), if there.
        generation_config: Option<PathBuf>,
        /// The weights: one file, or the shards in the order of their names.
        weights: Vec<PathBuf>,
    },
}

/// The layout of a model of the catalogue, if all of its files are whole in the cache.
pub(crate) fn cached_layout(model: &CatalogModel, cache: &RepoCache) -> Option<ModelLayout> {
    let paths: Vec<PathBuf> =
        model.files.iter().map(|file| cache.whole_file(file)).collect::<Option<_>>()?;
    match model.format {
        WeightFormat::Gguf => Some(ModelLayout::Gguf { path: paths.into_iter().next()? }),
        WeightFormat::Safetensors => safetensors_folder(cache.snapshot()).ok(),
    }
}

/// The model at a path.
pub(crate) fn at_path(path: &Path) -> Result<ModelFiles, HubError> {
    let metadata = fs::metadata(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            not_a_model(path, ModelPathProblem::Missing)
        } else {
            HubError::io("read", path, error)
        }
    })?;
    let files = if metadata.is_dir() {
        folder(path)?
    } else if has_extension(path, "gguf") || starts_with_magic(path) {
        ModelLayout::Gguf { path: path.to_owned() }
    } else {
        return Err(not_a_model(path, ModelPathProblem::NotGguf));
    };
    let name = match path.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.to_string_lossy().into_owned(),
    };
    Ok(ModelFiles { id: name, files, origin: Origin::Path })
}

/// A folder is a safetensors model, or holds exactly one GGUF file.
fn folder(path: &Path) -> Result<ModelLayout, HubError> {
    if path.join("config.json").exists() {
        return safetensors_folder(path);
    }
    let mut gguf = files_with_extension(path, "gguf")?.into_iter();
    match (gguf.next(), gguf.next()) {
        (Some(path), None) => Ok(ModelLayout::Gguf { path }),
        (Some(_), Some(_)) => Err(not_a_model(path, ModelPathProblem::SeveralGguf)),
        (None, _) => safetensors_folder(path),
    }
}

fn safetensors_folder(folder: &Path) -> Result<ModelLayout, HubError> {
    let optional = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    let needed = |name: &'static str| {
        optional(name).ok_or_else(|| not_a_model(folder, ModelPathProblem::FolderLacks(name)))
    };
    Ok(ModelLayout::Safetensors {
        folder: folder.to_owned(),
        config: needed("config.json")?,
        tokenizer: needed("tokenizer.json")?,
        tokenizer_config: optional("tokenizer_config.json"),
        generation_config: optional("generation_config.json"),
        weights: weights(folder)?,
    })
}

/// `model.safetensors`, or the shards that the index names, or every safetensors file.
fn weights(folder: &Path) -> Result<Vec<PathBuf>, HubError> {
    let single = folder.join("model.safetensors");
    if single.is_file() {
        return Ok(vec![single]);
    }
    let index = folder.join("model.safetensors.index.json");
    if index.is_file() {
        return shards(folder, &index);
    }
    let all = files_with_extension(folder, "safetensors")?;
    if all.is_empty() {
        let lacks = ModelPathProblem::FolderLacks("model.safetensors (or its index and shards)");
        return Err(not_a_model(folder, lacks));
    }
    Ok(all)
}

fn shards(folder: &Path, index: &Path) -> Result<Vec<PathBuf>, HubError> {
    let bad = |problem| Err(not_a_model(folder, ModelPathProblem::BadIndex(problem)));
    let text = fs::read(index).map_err(|source| HubError::io("read", index, source))?;
    let Ok(index) = serde_json::from_slice::<serde_json::Value>(&text) else {
        return bad("is no JSON");
    };
    let Some(map) = index.get("weight_map").and_then(serde_json::Value::as_object) else {
        return bad("has no weight_map");
    };
    let mut names = BTreeSet::new();
    for name in map.values() {
        match name.as_str() {
            // A name with a separator could lead out of the folder.
            Some(name) if !name.is_empty() && !name.contains(['/', '\\']) && name != ".." => {
                names.insert(name);
            }
            _ => return bad("names a shard that is no plain file name"),
        }
    }
    let shards: Vec<PathBuf> = names.into_iter().map(|name| folder.join(name)).collect();
    if shards.is_empty() {
        return bad("names no shard");
    }
    match shards.iter().find(|shard| !shard.is_file()) {
        Some(shard) => Err(not_a_model(shard, ModelPathProblem::Missing)),
        None => Ok(shards),
    }
}

fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, HubError> {
    let entries = fs::read_dir(folder).map_err(|source| HubError::io("read", folder, source))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| has_extension(path, extension) && path.is_file())
        .collect();
    paths.sort();
    Ok(paths)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn starts_with_magic(path: &Path) -> bool {
    let mut magic = [0; 4];
    fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *b"GGUF"
}

fn not_a_model(path: &Path, problem: ModelPathProblem) -> HubError {
    HubError::NotAModel { path: path.to_owned(), problem }
}
