//! `POST /v1/messages` and `POST /v1/messages/count_tokens`.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use molde::Spelling;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::messages_stream::MessagesScript;
use super::read::{Meaning, MessagesRequest};
use crate::answer::{Answer, Finish, Reason};
use crate::app::App;
use crate::body::collect;
use crate::fault::Fault;
use crate::openai::common::check_model;
use crate::stream::respond;
use crate::wire::{extension_json, read};

/// What an answer is written with.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) model: String,
    report: bool,
    recovery: Vec<molde::RecoveredNode>,
}

/// An answer.
#[derive(Debug, Serialize)]
struct MessageBody {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: String,
    content: Vec<Block>,
    stop_reason: &'static str,
    stop_sequence: Option<String>,
    usage: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    molde: Option<Value>,
}

/// Inputs of tools are the texts that the model wrote: no number of them is changed.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: Box<RawValue> },
}

/// Answers a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn messages(
    app: Arc<App>,
    request: Request,
    request_id: &str,
) -> Result<Response, Fault> {
    let spelling = spelling(&request);
    let body = request.into_body();
    let bytes = collect(&app, body).await?;
    let fields: MessagesRequest = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    let streams = fields.stream.unwrap_or(false);
    let Meaning { request, recovery } = fields.read(&app, spelling, true)?;
    let report = request.extension.report;
    let run = app.start(request).await?;
    let head = Head { id: app.ids.make("msg_"), model, report, recovery };
    if streams {
        let script = MessagesScript::new(Arc::clone(&app), head, run.prompt_tokens, request_id);
        return Ok(respond(&app, run, script, "text/event-stream; charset=utf-8"));
    }
    let answers = run.collect().await?;
    let answer = answers.first().ok_or_else(Fault::internal)?;
    let finish = answer.finish()?;
    let mut content = Vec::new();
    if !answer.text.is_empty() || answer.calls.is_empty() {
        content.push(Block::Text { text: answer.text.clone() });
    }
    for call in &answer.calls {
        // A call that was cut has no input that could be sent as a value: it is left out.
        if let Ok(input) = RawValue::from_string(call.arguments.clone()) {
            content.push(Block::ToolUse {
                id: app.ids.make("toolu_"),
                name: call.name.clone(),
                input,
            });
        }
    }
    let (stop_reason, stop_sequence) = stop_reason(&finish.reason);
    let message = MessageBody {
        molde: head.extension(answer, finish),
        id: head.id,
        kind: "message",
        role: "assistant",
        model: head.model,
        content,
        stop_reason,
        stop_sequence,
        usage: usage(finish),
    };
    Ok(axum::Json(message).into_response())
}

/// Counts the tokens of a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn count_tokens(app: Arc<App>, request: Request) -> Result<Response, Fault> {
    let spelling = spelling(&request);
    let body = request.into_body();
    let bytes = collect(&app, body).await?;
    let fields: MessagesRequest = read(&bytes)?;
    check_model(&app, fields.model.as_deref())?;
    let Meaning { request, .. } = fields.read(&app, spelling, false)?;
    let tokens = app.count(request).await?;
    Ok(axum::Json(json!({"input_tokens": tokens})).into_response())
}

/// Which SDK wrote the descriptions.
fn spelling(request: &Request) -> Spelling {
    match request.headers().get("x-stainless-lang").map(axum::http::HeaderValue::as_bytes) {
        Some(b"python") => Spelling::Python,
        Some(b"js") => Spelling::Json,
        _ => Spelling::Unknown,
    }
}

impl Head {
    pub(super) fn extension(&self, answer: &Answer, finish: &Finish) -> Option<Value> {
        let mut extension = extension_json(answer, finish, self.report);
        if self.report && !self.recovery.is_empty() {
            let nodes: Vec<Value> = self
                .recovery
                .iter()
                .map(|node| json!({"pointer": node.pointer, "status": node.status.name()}))
                .collect();
            extension.get_or_insert_with(|| json!({}))["recovery"] = Value::Array(nodes);
        }
        extension
    }
}

/// `stop_reason` and `stop_sequence`.
pub(super) fn stop_reason(reason: &Reason) -> (&'static str, Option<String>) {
    match reason {
        Reason::Complete => ("end_turn", None),
        Reason::Stop(stop) => ("stop_sequence", Some(stop.clone())),
        Reason::Length { context: true } => ("model_context_window_exceeded", None),
        Reason::Length { context: false } => ("max_tokens", None),
        Reason::Calls => ("tool_use", None),
    }
}

/// `usage` at the end.
fn usage(finish: &Finish) -> Value {
    json!({
        "input_tokens": finish.prompt_tokens - finish.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": finish.cached_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": finish.output_tokens,
        "service_tier": "standard",
    })
}
