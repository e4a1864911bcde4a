//! Fetches a model into the cache: `pull [ID [CATALOG.toml]]`. One line an event, for people and
//! for the tests that need a process to kill.

use std::io::Write as _;

use molde_hub::{CancelFlag, Catalog, Event, Hub, HubConfig, ModelRef, NetworkPolicy};

fn main() -> std::process::ExitCode {
    match pull() {
        Ok(line) => {
            say(&line);
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error {error}"));
            std::process::ExitCode::FAILURE
        }
    }
}

fn pull() -> Result<String, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let id = arguments.next();
    let catalog = match arguments.next() {
        Some(path) => Catalog::parse(&std::fs::read_to_string(path)?)?,
        None => Catalog::embedded(),
    };
    let model = ModelRef::from_text(id.as_deref().unwrap_or(catalog.default_id()), &catalog);
    let hub = Hub::new(catalog, HubConfig::from_env()?)?;
    let mut last_percent = None;
    let mut on_event = |event: Event<'_>| match event {
        Event::Bytes { file, done_bytes, total_bytes } => {
            let percent = done_bytes * 100 / total_bytes.max(1);
            if last_percent.replace(percent) != Some(percent) {
                say(&format!("{file} {percent}% {done_bytes}"));
            }
        }
        Event::Verify { done_bytes, total_bytes, .. } if done_bytes < total_bytes => {}
        other => say(&format!("{other:?}")),
    };
    let files = hub.resolve(&model, NetworkPolicy::Online, &mut on_event, &CancelFlag::new())?;
    Ok(format!("ok {files:?}"))
}

/// A closed pipe is no reason to stop fetching.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
