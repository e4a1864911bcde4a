//! Which model a command uses, and where its files are.

use std::num::NonZeroUsize;
use std::path::Path;

use molde::{Engine, MoldeError, Precision};
use molde_hub::{
    Hub, ModelFiles, ModelLayout, ModelRef, NetworkPolicy, Reachability, choose_default,
};
use molde_infer::{Interrupt, LoadedModel, ModelOptions};

use crate::args::ModelArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::progress::{TransferProgress, say};

/// Loads the model that the arguments name, or the default one.
pub(crate) fn load(args: &ModelArgs, interrupts: &Interrupts) -> Result<Engine, Failure> {
    let files = find(args.model.as_deref(), args.offline, interrupts)?;
    interrupts.check()?;
    let precision = if args.exact { Precision::Exact } else { Precision::Native };
    let mut builder = Engine::builder()
        .files(files)
        .precision(precision)
        .threads(args.threads.unwrap_or(0))
        .cancel(&interrupts.work);
    if let Some(tokens) = args.context {
        builder = builder.context_tokens(tokens);
    }
    Ok(builder.build()?)
}

/// Loads the model that the arguments name, or the default one, for whoever runs it without an
/// engine. Returns its name too.
pub(crate) fn load_parts(
    args: &ModelArgs,
    interrupts: &Interrupts,
) -> Result<(LoadedModel, String), Failure> {
    let files = find(args.model.as_deref(), args.offline, interrupts)?;
    interrupts.check()?;
    let id = files.id.clone();
    let path = match files.files {
        ModelLayout::Gguf { path } => path,
        ModelLayout::Safetensors { folder, .. } => folder,
        _ => return Err(Failure::Molde(Box::new(MoldeError::UnknownLayout { id }))),
    };
    let options = ModelOptions {
        precision: if args.exact { Precision::Exact } else { Precision::Native },
        threads: args.threads.and_then(NonZeroUsize::new),
        ..ModelOptions::default()
    };
    let interrupt = Interrupt { cancel: Some(interrupts.work.clone()), deadline: None };
    let loaded = LoadedModel::load_unless(&path, &options, &interrupt)
        .map_err(|error| Failure::Load(Box::new(error)))?;
    // A file has no name of its own: without its folder and ending it has a short one.
    let name = Path::new(&id)
        .file_stem()
        .map_or_else(|| id.clone(), |stem| stem.to_string_lossy().into_owned());
    let is_path = args.model.as_deref().is_some_and(|model| Path::new(model).exists());
    Ok((loaded, if is_path { name } else { id }))
}

/// Finds the files of a model, and fetches what is missing.
pub(crate) fn find(
    model: Option<&str>,
    offline: bool,
    interrupts: &Interrupts,
) -> Result<ModelFiles, Failure> {
    let hub = Hub::from_env()?;
    let reference = choose(&hub, model, offline);
    let mut progress = TransferProgress::new();
    let files = hub.resolve(
        &reference,
        policy(&hub, offline),
        &mut |event| progress.show(event),
        &interrupts.transfers,
    );
    progress.clear();
    Ok(files?)
}

/// The model that was named, or the default one; says so if it is another one.
pub(crate) fn choose(hub: &Hub, model: Option<&str>, offline: bool) -> ModelRef {
    if let Some(text) = model {
        return ModelRef::from_text(text, hub.catalog());
    }
    let choice = default(hub, offline);
    if let Some(reason) = choice.reason {
        say(&format!("using {}: {reason}", choice.id));
    }
    ModelRef::Catalog(choice.id)
}

/// The model that is used when none is named.
pub(crate) fn default(hub: &Hub, offline: bool) -> molde_hub::DefaultChoice {
    choose_default(
        hub.catalog(),
        policy(hub, offline),
        |id| matches!(hub.cached(id), Ok(Some(_))),
        |id| {
            hub.probe(id)
                .unwrap_or_else(|error| Reachability::Unreachable { reason: error.to_string() })
        },
    )
}

pub(crate) fn policy(hub: &Hub, offline: bool) -> NetworkPolicy {
    if offline || hub.config().offline { NetworkPolicy::Offline } else { NetworkPolicy::Online }
}
