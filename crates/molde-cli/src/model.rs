//! Which model a command uses, and where its files are.

use molde::{Engine, Precision};
use molde_hub::{Hub, ModelFiles, ModelRef, NetworkPolicy, Reachability, choose_default};

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
