//! `/api/tags`, `/api/ps`, `/api/show`, `/api/version`.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::wire::{read, rfc3339};

/// The version of Ollama whose API this is like: clients ask for it.
const VERSION: &str = "0.12.0";

fn details() -> Value {
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": "qwen2",
        "families": ["qwen2"],
        "parameter_size": "",
        "quantization_level": "",
    })
}

fn model(app: &App, name: &str) -> Value {
    json!({
        "name": name,
        "model": name,
        "modified_at": rfc3339(app.started),
        "size": app.generator.weight_bytes(),
        "digest": "",
        "details": details(),
    })
}

fn names(app: &App) -> impl Iterator<Item = &String> {
    std::iter::once(&app.config.model_id).chain(&app.config.aliases)
}

pub(crate) fn tags(app: &App) -> Value {
    json!({"models": names(app).map(|name| model(app, name)).collect::<Vec<_>>()})
}

pub(crate) fn ps(app: &App) -> Value {
    // The model stays as long as the server does.
    let expires = rfc3339(SystemTime::now() + Duration::from_hours(365 * 24));
    let mut running = model(app, &app.config.model_id);
    running["expires_at"] = json!(expires);
    running["size_vram"] = json!(0);
    running["context_length"] = json!(app.context_tokens);
    json!({"models": [running]})
}

#[derive(Debug, Deserialize)]
struct ShowRequest {
    model: Option<String>,
    name: Option<String>,
}

/// # Errors
/// An unknown model.
pub(crate) fn show(app: &App, body: &[u8]) -> Result<Value, Fault> {
    let fields: ShowRequest = read(body)?;
    let name = fields.model.or(fields.name).ok_or_else(|| Fault::invalid("model is required"))?;
    app.check_model(&name)
        .map_err(|_| Fault::new(Kind::UnknownModel, format!("model '{name}' not found")))?;
    let tools =
        if app.markers.is_some() { vec!["completion", "tools"] } else { vec!["completion"] };
    Ok(json!({
        "modelfile": "",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": details(),
        "model_info": {
            "general.architecture": "qwen2",
            "qwen2.context_length": app.context_tokens,
        },
        "capabilities": tools,
        "modified_at": rfc3339(app.started),
    }))
}

pub(crate) fn version() -> Value {
    json!({"version": VERSION})
}
