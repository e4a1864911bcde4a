//! What all requests share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use molde_constraint::CallMarkers;
use molde_infer::{CancelHandle, ChatTemplate, LoadedModel, Tokenizer};
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::error::ServerError;
use crate::fault::{Fault, Kind};
use crate::form::Forms;
use crate::generator::Generator;
use crate::ids::Ids;
use crate::local::LocalGenerator;
use crate::metrics::Metrics;
use crate::prepare::{Prepared, count, prepare};
use crate::request::Request;
use crate::run::Run;
use crate::store::Store;

/// How Qwen's template marks a call of a tool.
const CALL_OPEN: &str = "<tool_call>";
const CALL_CLOSE: &str = "</tool_call>";
const CALL_GAP: &str = "\n";
/// Cancel handles after which those of finished sequences are forgotten.
const HANDLES: usize = 256;

/// One model and everything around it.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) generator: Arc<dyn Generator>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Arc<ChatTemplate>,
    /// `None` for a model that knows no tools.
    pub(crate) markers: Option<CallMarkers>,
    pub(crate) context_tokens: usize,
    pub(crate) forms: Forms,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ids: Ids,
    pub(crate) store: Store,
    pub(crate) started: SystemTime,
    preparing: Semaphore,
    draining: AtomicBool,
    running: Mutex<Vec<Weak<AtomicBool>>>,
}

impl App {
    pub(crate) fn new(
        loaded: LoadedModel,
        context_tokens: Option<usize>,
        config: Config,
    ) -> Result<Self, ServerError> {
        let template = loaded.chat_template.clone().ok_or(ServerError::NoChatTemplate)?;
        let tokenizer = Arc::clone(&loaded.tokenizer);
        let own = loaded.model.config().context_tokens;
        let limits = &config.limits;
        let marker = |spelling| tokenizer.control_token(spelling);
        let markers = marker(CALL_OPEN).zip(marker(CALL_CLOSE)).and_then(|(open, close)| {
            let gap = tokenizer.encode_text(CALL_GAP).ok()?;
            Some(CallMarkers { open, close, gap })
        });
        let vocabulary = Arc::clone(tokenizer.vocabulary());
        molde_constraint::prepare(&vocabulary, molde::Escapes::Needed);
        let generator = LocalGenerator::start(loaded, limits)?;
        Ok(Self {
            generator: Arc::new(generator),
            template,
            markers,
            context_tokens: context_tokens.map_or(own, |tokens| tokens.min(own)),
            forms: Forms::new(vocabulary, limits),
            metrics: Arc::new(Metrics::default()),
            ids: Ids::default(),
            store: Store::new(limits.stored_responses.0, limits.stored_responses.1),
            started: SystemTime::now(),
            preparing: Semaphore::new(limits.preparing.max(1)),
            draining: AtomicBool::new(false),
            running: Mutex::default(),
            tokenizer,
            config,
        })
    }

    /// Whether the model has this name. `name:latest` is `name`, as for Ollama.
    ///
    /// # Errors
    /// [`Kind::UnknownModel`].
    pub(crate) fn check_model(&self, name: &str) -> Result<(), Fault> {
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        let known = plain == self.config.model_id || self.config.aliases.iter().any(|a| a == plain);
        if known {
            return Ok(());
        }
        Err(Fault::new(
            Kind::UnknownModel,
            format!(
                "model '{name}' not found: this server has '{}'; other names can be given with --alias",
                self.config.model_id
            ),
        )
        .at("model"))
    }

    /// Prepares a request and queues its answers.
    ///
    /// # Errors
    /// What is wrong with the request, or a full queue.
    pub(crate) async fn start(self: &Arc<Self>, request: Request) -> Result<Run, Fault> {
        if self.config.log_content {
            tracing::info!(prompt = ?request.prompt, "request");
        }
        let prepared: Prepared = self.blocking(move |app| prepare(app, &request)).await?;
        Run::submit(self, prepared)
    }

    /// The number of tokens of a request's prompt.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub(crate) async fn count(self: &Arc<Self>, request: Request) -> Result<usize, Fault> {
        self.blocking(move |app| count(app, &request)).await
    }

    /// Runs `work` where it may take its time. A panic of it is a fault of this request only.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let _permit = self.preparing.acquire().await.map_err(|_| Fault::internal())?;
        let app = Arc::clone(self);
        let worked =
            tokio::task::spawn_blocking(move || catch_unwind(AssertUnwindSafe(|| work(&app))));
        if let Ok(Ok(result)) = worked.await {
            return result;
        }
        tracing::error!("a panic ended the preparation of a request");
        Err(Fault::internal())
    }

    /// A handle that [`stop_all`](Self::stop_all) cancels too.
    pub(crate) fn new_cancel(&self) -> CancelHandle {
        let handle = CancelHandle::new();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.len() >= HANDLES {
            running.retain(|flag| flag.strong_count() > 0);
        }
        running.push(Arc::downgrade(&handle.flag()));
        handle
    }

    /// Cancels everything that is being generated or waits for it.
    pub(crate) fn stop_all(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for flag in running.iter().filter_map(Weak::upgrade) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
