//! `molde models`: what can be used by name.

use std::io::Write;

use molde_hub::{Hub, ModelStatus};

use crate::failure::{Exit, Failure};
use crate::progress::megabytes;

/// Prints one line for each model of the catalogue.
pub(crate) fn run() -> Result<Exit, Failure> {
    let hub = Hub::from_env()?;
    let mut output = std::io::stdout().lock();
    let statuses = hub.status();
    let width = statuses.iter().map(|status| status.model.id.len()).max().unwrap_or(0);
    for status in &statuses {
        let model = status.model;
        let mark = if model.id == hub.catalog().default_id() { " (default)" } else { "" };
        writeln!(
            output,
            "{:width$}  {:>8}  {:7}  {}, {} tokens of context{mark}",
            model.id,
            megabytes(model.size_bytes()),
            model.quantization,
            state(status),
            model.context_tokens,
        )?;
    }
    Ok(Exit::Success)
}

/// Whether the model is on this machine.
pub(crate) fn state(status: &ModelStatus<'_>) -> String {
    match (&status.cached, status.partial_bytes) {
        (Some(_), _) => "cached".to_owned(),
        (None, 0) => "not cached".to_owned(),
        (None, bytes) => format!("{} fetched so far", megabytes(bytes)),
    }
}
