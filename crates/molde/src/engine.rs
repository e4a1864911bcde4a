//! A loaded model, ready to extract and to write.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use molde_hub::{CancelFlag, Catalog, Hub, ModelFiles, ModelLayout, ModelRef, NetworkPolicy};
use molde_infer::{CancelHandle, Interrupt, Message, ModelOptions, Precision};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::backend::{Backend, Job};
use crate::contract::Contract;
use crate::control::{Control, Event};
use crate::extractor::{DEFAULT_MAX_TOKENS, ExtractorBuilder};
use crate::local::LocalModel;
use crate::outcome::{Generation, RawJson};
use crate::writing::{Answer, Transcript};
use crate::{ClassifierBuilder, MoldeError, TransferEvent, close_objects};

/// Where an engine's model comes from.
#[derive(Debug, Clone)]
enum Source {
    Catalog(Option<String>),
    Path(PathBuf),
    Files(ModelFiles),
}

/// The settings of an [`Engine`].
#[must_use]
pub struct EngineBuilder {
    source: Source,
    offline: bool,
    options: ModelOptions,
    context_tokens: Option<usize>,
    cancel: CancelHandle,
    on_transfer: Box<dyn FnMut(TransferEvent<'_>)>,
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EngineBuilder")
            .field("source", &self.source)
            .field("offline", &self.offline)
            .field("options", &self.options)
            .field("context_tokens", &self.context_tokens)
            .finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// A model of the catalogue by its id. Default: the catalogue's default model.
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.source = Source::Catalog(Some(id.into()));
        self
    }

    /// A GGUF file, or a folder with `config.json`, `tokenizer.json` and safetensors.
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.source = Source::Path(path.as_ref().to_owned());
        self
    }

    /// Files that have been found already.
    pub fn files(mut self, files: ModelFiles) -> Self {
        self.source = Source::Files(files);
        self
    }

    /// Never touch the network: a model that is not cached is an error. Default: `false`, or what
    /// `HF_HUB_OFFLINE` says.
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// How weights are held. Default: [`Precision::Native`].
    pub fn precision(mut self, precision: Precision) -> Self {
        self.options.precision = precision;
        self
    }

    /// Threads of the model, in a pool of its own. 0 is the default: the processor's cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = NonZeroUsize::new(threads);
        self
    }

    /// Tokens that prompt and answer may take together. Default, and upper limit: the context
    /// that the model was made for.
    pub fn context_tokens(mut self, tokens: usize) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Stops [`build`](Self::build) when `handle` is cancelled: a download at once, loading
    /// between two matrices.
    pub fn cancel(mut self, handle: &CancelHandle) -> Self {
        self.cancel = handle.clone();
        self
    }

    /// Hears of downloads. Default: nobody does.
    pub fn on_transfer(mut self, listener: impl FnMut(TransferEvent<'_>) + 'static) -> Self {
        self.on_transfer = Box::new(listener);
        self
    }

    /// Finds the model's files, fetches them if they are missing and the network may be used, and
    /// loads them. A model that cannot be had is an error: another one is never taken instead.
    ///
    /// # Errors
    /// [`MoldeError::Hub`], [`MoldeError::Inference`] and [`MoldeError::Cancelled`].
    pub fn build(mut self) -> Result<Engine, MoldeError> {
        let files = match std::mem::replace(&mut self.source, Source::Catalog(None)) {
            Source::Files(files) => files,
            Source::Path(path) => self.resolve(|_| ModelRef::Path(path))?,
            Source::Catalog(id) => self.resolve(|catalog| {
                ModelRef::Catalog(id.unwrap_or_else(|| catalog.default_id().to_owned()))
            })?,
        };
        let path = match files.files {
            ModelLayout::Gguf { path } => path,
            ModelLayout::Safetensors { folder, .. } => folder,
            _ => return Err(MoldeError::UnknownLayout { id: files.id }),
        };
        let interrupt = Interrupt { cancel: Some(self.cancel), deadline: None };
        let model = LocalModel::load(&path, &self.options, self.context_tokens, &interrupt)?;
        Ok(Engine::new(Arc::new(model)))
    }

    fn resolve(
        &mut self,
        model: impl FnOnce(&Catalog) -> ModelRef,
    ) -> Result<ModelFiles, MoldeError> {
        let hub = Hub::from_env()?;
        let model = model(hub.catalog());
        let policy = if self.offline { NetworkPolicy::Offline } else { NetworkPolicy::Online };
        let stop = CancelFlag::from(self.cancel.flag());
        Ok(hub.resolve(&model, policy, &mut self.on_transfer, &stop)?)
    }
}

/// A model in memory. Cheap to clone and to share between threads: the weights are never copied.
#[derive(Debug, Clone)]
pub struct Engine {
    backend: Arc<dyn Backend>,
}

impl Engine {
    /// The settings of an engine: the default model, fetched on first use.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            source: Source::Catalog(None),
            offline: false,
            options: ModelOptions::default(),
            context_tokens: None,
            cancel: CancelHandle::new(),
            on_transfer: Box::new(|_| {}),
        }
    }

    /// The instruction set that the model's kernels use on this processor, such as `avx2`.
    pub fn instruction_set() -> &'static str {
        molde_infer::Model::instruction_set()
    }

    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Tokens that prompt and answer may take together.
    pub fn context_tokens(&self) -> usize {
        self.backend.context_tokens()
    }

    /// An extractor whose answers are instances of a JSON Schema, kept as text. A schema that
    /// cannot be enforced is reported by [`ExtractorBuilder::build`].
    ///
    /// Objects that do not say whether they have other members have none: see
    /// [`close_objects`](crate::close_objects). For the schema as it stands use
    /// [`extractor_with`](Self::extractor_with).
    pub fn extractor(&self, schema_text: &str) -> ExtractorBuilder<RawJson> {
        let closed = close_objects(schema_text);
        ExtractorBuilder::new(self.clone(), Contract::from_schema(&closed.text))
    }

    /// An extractor whose answers are read into a Rust type; see [`Contract::from_type`].
    ///
    /// ```no_run
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Invoice {
    ///     number: Option<String>,
    ///     total: Option<f64>,
    /// }
    ///
    /// let engine = molde::Engine::builder().path("model.gguf").build()?;
    /// let extractor = engine.extractor_for::<Invoice>().build()?;
    /// let invoice: Invoice = extractor.extract("Invoice 17, total 99.50 EUR")?.into_value()?;
    /// # Ok::<(), molde::MoldeError>(())
    /// ```
    pub fn extractor_for<T: JsonSchema + DeserializeOwned + Send>(&self) -> ExtractorBuilder<T> {
        ExtractorBuilder::new(self.clone(), Contract::from_type())
    }

    /// An extractor for a contract that was compiled before.
    pub fn extractor_with<T>(&self, contract: Contract<T>) -> ExtractorBuilder<T> {
        ExtractorBuilder::new(self.clone(), Ok(contract))
    }

    /// A classifier of texts into `labels`.
    ///
    /// ```no_run
    /// let engine = molde::Engine::builder().path("model.gguf").build()?;
    /// let classifier = engine.classifier(["book", "cancel"]).fallback("default", 0.5).build()?;
    /// let found = classifier.classify("I'd like a table", &molde::Control::new())?;
    /// println!("{} ({:.2})", found.intent, found.probability());
    /// # Ok::<(), molde::MoldeError>(())
    /// ```
    pub fn classifier<L: Into<String>>(
        &self,
        labels: impl IntoIterator<Item = L>,
    ) -> ClassifierBuilder {
        ClassifierBuilder::new(self.clone(), labels.into_iter().map(Into::into).collect())
    }

    /// Writes free text: nothing is masked.
    ///
    /// # Errors
    /// [`MoldeError::ContextOverflow`], [`MoldeError::NoChatTemplate`] and
    /// [`MoldeError::Inference`].
    pub fn generate(&self, request: &GenerationRequest) -> Result<Generation, MoldeError> {
        self.generate_with(request, &Control::new(), |_| {})
    }

    /// [`generate`](Self::generate) that can be stopped, and reports tokens as they are written.
    /// Being stopped is no error: see [`Generation::end`].
    ///
    /// # Errors
    /// As [`generate`](Self::generate).
    pub fn generate_with(
        &self,
        request: &GenerationRequest,
        control: &Control,
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<Generation, MoldeError> {
        let start = Instant::now();
        let mut messages: Vec<Message> = request.system.iter().map(Message::system).collect();
        messages.push(Message::user(&request.user));
        let prompt = self.backend.encode_chat(&messages)?;
        let context_tokens = self.context_tokens();
        if prompt.len().saturating_add(request.max_tokens) > context_tokens {
            return Err(MoldeError::ContextOverflow {
                prompt_tokens: prompt.len(),
                max_tokens: request.max_tokens,
                context_tokens,
            });
        }
        let mut transcript = Transcript::free(&mut on_event);
        let written = self.backend.prefill(&[], control)?.generate(Job {
            prompt: &prompt,
            max_tokens: request.max_tokens,
            constraint: None,
            control,
            on_token: &mut |token| transcript.push(token),
        })?;
        let Answer { text, end, usage, mut timings, .. } = transcript.finish(&written, 0)?;
        timings.total = start.elapsed();
        Ok(Generation { text, end, usage, timings })
    }
}

/// What to write freely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationRequest {
    /// The system message. Default: what the model's template puts there.
    pub system: Option<String>,
    /// The user's message.
    pub user: String,
    /// Tokens that the answer may take; it is cut there. Default: [`DEFAULT_MAX_TOKENS`].
    pub max_tokens: usize,
}

impl GenerationRequest {
    /// A request with the defaults.
    pub fn new(user: impl Into<String>) -> Self {
        Self { system: None, user: user.into(), max_tokens: DEFAULT_MAX_TOKENS }
    }
}
