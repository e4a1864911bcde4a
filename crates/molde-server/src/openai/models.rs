//! `GET /v1/models` and `GET /v1/models/{id}`: one body for OpenAI's and Anthropic's SDKs.

use serde_json::{Value, json};

use crate::app::App;
use crate::fault::Fault;
use crate::wire::{rfc3339, unix_seconds};

fn model(app: &App, id: &str) -> Value {
    json!({
        "id": id,
        "object": "model",
        "created": unix_seconds(app.started),
        "owned_by": "molde",
        "type": "model",
        "display_name": app.config.model_id,
        "created_at": rfc3339(app.started),
        "lifecycle": "active",
        "max_input_tokens": app.context_tokens,
        "max_tokens": app.context_tokens,
    })
}

/// All names of the model.
pub(crate) fn list(app: &App) -> Value {
    let ids = || std::iter::once(&app.config.model_id).chain(&app.config.aliases);
    let data: Vec<Value> = ids().map(|id| model(app, id)).collect();
    json!({
        "object": "list",
        "data": data,
        "has_more": false,
        "first_id": ids().next(),
        "last_id": ids().last(),
    })
}

/// One of them.
///
/// # Errors
/// An unknown one.
pub(crate) fn retrieve(app: &App, id: &str) -> Result<Value, Fault> {
    app.check_model(id)?;
    Ok(model(app, id))
}
