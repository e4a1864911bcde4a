//! From a model's name to its files: the cache first, then the sources in order.

mod deliver;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cache::{RepoCache, expected_checksum};
use crate::catalog::{Catalog, CatalogModel, Source};
use crate::client::{Client, Failure, RemoteFile};
use crate::digest::hash_file;
use crate::model::{ModelFiles, ModelRef, Origin, at_path, cached_layout};
use crate::progress::{CancelFlag, Event, Observer};
use crate::{HubConfig, HubError};

/// For how long a hub that did not answer is not asked again: probing and then fetching costs one
/// answer timeout, not two.
const UNREACHABLE_FOR: Duration = Duration::from_secs(30);

/// Whether the network may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Fetch what is missing.
    Online,
    /// Never: what is missing is an error.
    Offline,
}

/// Whether a model can be had from the hub now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reachability {
    /// The hub answered and has the model.
    Reachable,
    /// It did not answer in time, or does not have the model.
    Unreachable {
        /// Why, for people.
        reason: String,
    },
}

impl Reachability {
    /// Not reachable, for this reason.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Self::Unreachable { reason: reason.into() }
    }
}

/// State of a model of the catalogue on this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelStatus<'a> {
    /// The model.
    pub model: &'a CatalogModel,
    /// Its files, if all are in the cache.
    pub cached: Option<ModelFiles>,
    /// Bytes of files that have begun to arrive, 0 if the model is complete or not begun.
    pub partial_bytes: u64,
}

/// Finds models in the cache and fetches them into it.
///
/// `Send + Sync`; several threads and processes may use the same cache at once.
pub struct Hub {
    catalog: Catalog,
    config: HubConfig,
    client: Client,
    unreachable: Mutex<Option<(Instant, String)>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Hub").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub with its own catalogue and settings. Touches neither disk nor network.
    ///
    /// # Errors
    /// [`HubError::Setting`] for an endpoint that is no address.
    pub fn new(catalog: Catalog, config: HubConfig) -> Result<Self, HubError> {
        let client = Client::new(&config)?;
        Ok(Self { catalog, config, client, unreachable: Mutex::new(None) })
    }

    /// The embedded catalogue with the settings of the environment.
    ///
    /// # Errors
    /// As [`HubConfig::from_env`] and [`Hub::new`].
    pub fn from_env() -> Result<Self, HubError> {
        Self::new(Catalog::embedded(), HubConfig::from_env()?)
    }

    /// The catalogue.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings.
    pub fn config(&self) -> &HubConfig {
        &self.config
    }

    /// The files of a model: from the path that was named, from the cache, or, if `policy` and the
    /// settings allow it, fetched from its sources in order. Never another model than the one
    /// asked for.
    ///
    /// A source that does not answer or does not have the file is skipped
    /// ([`Event::SourceFailed`]); wrong content is an error at once. What arrived before an error
    /// is kept, and the next call goes on from there.
    ///
    /// # Errors
    /// Any [`HubError`].
    pub fn resolve(
        &self,
        model: &ModelRef,
        policy: NetworkPolicy,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &CancelFlag,
    ) -> Result<ModelFiles, HubError> {
        let mut observer = Observer { on_event, cancel };
        let id = match model {
            ModelRef::Path(path) => return at_path(path),
            ModelRef::Catalog(id) => id,
        };
        let model = self.catalog.find(id)?;
        if let Some(files) = self.cached_files(model, Origin::Cached) {
            return Ok(files);
        }
        if self.is_offline(policy) {
            return Err(self.offline(model));
        }
        self.fetch(model, &mut observer)
    }

    /// The files of a model of the catalogue if all are in the cache. Looks at sizes, not at
    /// contents (see [`Hub::verify`]): a file gets its name only after its checksum was right.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`].
    pub fn cached(&self, id: &str) -> Result<Option<ModelFiles>, HubError> {
        Ok(self.cached_files(self.catalog.find(id)?, Origin::Cached))
    }

    /// Every model of the catalogue and its state, in the catalogue's order.
    pub fn status(&self) -> Vec<ModelStatus<'_>> {
        self.catalog
            .models()
            .iter()
            .map(|model| {
                let cached = self.cached_files(model, Origin::Cached);
                let partial_bytes = if cached.is_some() { 0 } else { self.partial_bytes(model) };
                ModelStatus { model, cached, partial_bytes }
            })
            .collect()
    }

    /// Reads every file of a cached model again and compares its checksum. Costs one pass over the
    /// files: about a second a gigabyte.
    ///
    /// # Errors
    /// [`HubError::NotCached`] if the model is not in the cache, [`HubError::CacheDamaged`] for the
    /// first file whose content is wrong, [`HubError::NoChecksum`] for one that nothing is known
    /// about.
    pub fn verify(
        &self,
        id: &str,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &CancelFlag,
    ) -> Result<(), HubError> {
        let mut observer = Observer { on_event, cancel };
        let model = self.catalog.find(id)?;
        let cache = self.repo_cache(model);
        for file in &model.files {
            let path = cache.whole_file(file).ok_or_else(|| self.not_cached(model))?;
            let Some(expected) = expected_checksum(file, &path) else {
                return Err(HubError::NoChecksum { file: file.name.clone(), etag: String::new() });
            };
            let total_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            let got = hash_file(&path, expected.kind, |done_bytes| {
                observer.check()?;
                observer.event(Event::Verify { file: &file.name, done_bytes, total_bytes });
                Ok(())
            })?;
            if got != expected.hex {
                let (kind, expected) = (expected.kind, expected.hex);
                return Err(HubError::CacheDamaged { path, kind, expected, got });
            }
        }
        Ok(())
    }

    /// Whether the hub answers and has this model. Takes at most
    /// [`answer_timeout`](HubConfig::answer_timeout), and nothing if the settings say offline. Every
    /// failure to ask is a reason.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`].
    pub fn probe(&self, id: &str) -> Result<Reachability, HubError> {
        let model = self.catalog.find(id)?;
        if self.config.offline {
            return Ok(Reachability::unreachable("offline mode is on"));
        }
        let (repo, revision) = model.repository();
        let Some(file) = model.files.first() else {
            return Ok(Reachability::Reachable);
        };
        let answer = self.metadata(RemoteFile { repo, revision, file }, true);
        Ok(match answer {
            Ok(_) => Reachability::Reachable,
            Err(failure) => Reachability::unreachable(failure.into_error().to_string()),
        })
    }

    /// Asks the hub, unless it has just not answered.
    fn metadata(
        &self,
        remote: RemoteFile<'_>,
        persistent: bool,
    ) -> Result<crate::client::FileMetadata, Failure> {
        let mut unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, reason)) = &*unreachable
            && since.elapsed() < UNREACHABLE_FOR
        {
            let (host, reason) = (self.client.host(), reason.clone());
            return Err(Failure::Stop(HubError::Unreachable { host, reason }));
        }
        // The lock is not held while waiting: two threads may ask at once.
        drop(unreachable);
        let answer = self.client.metadata(remote, persistent);
        unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        *unreachable = match &answer {
            Err(Failure::Stop(HubError::Unreachable { reason, .. })) => {
                Some((Instant::now(), reason.clone()))
            }
            _ => None,
        };
        answer
    }

    fn fetch(
        &self,
        model: &CatalogModel,
        observer: &mut Observer<'_>,
    ) -> Result<ModelFiles, HubError> {
        let mut failures = Vec::new();
        for source in &model.sources {
            let (name, origin, delivered) = match source {
                Source::Hub { repo, revision } => {
                    ("hub", Origin::Hub, self.pull_from_hub(model, repo, revision, observer))
                }
                Source::Mirror { file, pieces } => {
                    ("mirror", Origin::Mirror, self.pull_from_mirror(model, file, pieces, observer))
                }
            };
            match delivered {
                Ok(()) => {
                    if let Some(files) = self.cached_files(model, origin) {
                        return Ok(files);
                    }
                }
                Err(reason) if reason.is_unavailability() => {
                    let event =
                        Event::SourceFailed { model: &model.id, source: name, reason: &reason };
                    observer.event(event);
                    failures.push(reason);
                }
                Err(error) => return Err(error),
            }
        }
        match failures.len() {
            // Every source delivered, and yet something is missing: it was removed meanwhile.
            0 => Err(self.not_cached(model)),
            1 => Err(failures.remove(0)),
            _ => Err(HubError::AllSourcesFailed { id: model.id.clone(), failures }),
        }
    }

    fn cached_files(&self, model: &CatalogModel, origin: Origin) -> Option<ModelFiles> {
        let files = cached_layout(model, &self.repo_cache(model))?;
        Some(ModelFiles { id: model.id.clone(), files, origin })
    }

    fn partial_bytes(&self, model: &CatalogModel) -> u64 {
        let cache = self.repo_cache(model);
        let sizes = model.files.iter().filter_map(|file| {
            let partial = cache.incomplete(file.sha256.as_deref()?);
            std::fs::metadata(partial).ok().map(|metadata| metadata.len())
        });
        sizes.sum()
    }

    fn not_cached(&self, model: &CatalogModel) -> HubError {
        let (id, missing, cache) = self.missing(model);
        HubError::NotCached { id, missing, cache }
    }

    fn offline(&self, model: &CatalogModel) -> HubError {
        let (id, missing, cache) = self.missing(model);
        HubError::Offline { id, missing, cache }
    }

    fn missing(&self, model: &CatalogModel) -> (String, Vec<String>, PathBuf) {
        let cache = self.repo_cache(model);
        let missing = model.files.iter().filter(|file| cache.whole_file(file).is_none());
        let names = missing.map(|file| file.name.clone()).collect();
        (model.id.clone(), names, self.config.cache.clone())
    }

    fn is_offline(&self, policy: NetworkPolicy) -> bool {
        policy == NetworkPolicy::Offline || self.config.offline
    }

    fn repo_cache(&self, model: &CatalogModel) -> RepoCache {
        RepoCache::new(&self.config.cache, model)
    }
}
