//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::chat_stream::ChatScript;
use super::common::{
    ChatMessage, FINGERPRINT, FunctionField, GuidedFields, MOST_LOGPROBS, ResponseFormat,
    SamplingFields, check_model, finish_reason, read_stop, read_tool_choice, usage,
};
use crate::answer::Answer;
use crate::app::App;
use crate::body::collect;
use crate::fault::Fault;
use crate::request::{Extension, Form, Prompt, Request};
use crate::stream::respond;
use crate::wire::{OneOrMany, extension_json, read, score_json, token_limit, unix_seconds};

/// The body of a request. What is not named here changes nothing of the answer.
#[derive(Debug, Deserialize)]
struct ChatRequest {
    model: Option<String>,
    messages: Vec<ChatMessage>,
    response_format: Option<ResponseFormat>,
    tools: Option<Vec<ToolField>>,
    tool_choice: Option<Box<RawValue>>,
    functions: Option<Box<RawValue>>,
    parallel_tool_calls: Option<bool>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    stop: Option<OneOrMany>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    n: Option<usize>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    molde: Option<Extension>,
}

#[derive(Debug, Deserialize)]
struct ToolField {
    #[serde(rename = "type")]
    kind: Option<String>,
    function: Option<FunctionField>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

/// What the answer is written with.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    /// Rivals to show for each token; `None`: no scores.
    pub(super) logprobs: Option<usize>,
    pub(super) report: bool,
}

/// Answers a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn chat(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let bytes = collect(&app, body).await?;
    let fields: ChatRequest = read(&bytes)?;
    // Flattened fields would lose the texts of schemas, so they are read on their own.
    let sampling: SamplingFields = read(&bytes)?;
    let guided: GuidedFields = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    if fields.functions.is_some() {
        return Err(Fault::invalid("functions is not supported: use tools").at("functions"));
    }
    let format = fields.response_format.map_or(Ok(Form::Text), ResponseFormat::read)?;
    let logprobs = fields.logprobs.unwrap_or(false).then(|| fields.top_logprobs.unwrap_or(0));
    if logprobs.is_none() && fields.top_logprobs.is_some_and(|top| top > 0) {
        return Err(Fault::invalid("top_logprobs needs logprobs: true").at("top_logprobs"));
    }
    if logprobs.is_some_and(|top| top > MOST_LOGPROBS) {
        let message = format!("top_logprobs: expected at most {MOST_LOGPROBS}");
        return Err(Fault::invalid(message).at("top_logprobs"));
    }
    let messages =
        fields.messages.into_iter().map(ChatMessage::read).collect::<Result<Vec<_>, _>>()?;
    let limit = match token_limit("max_completion_tokens", fields.max_completion_tokens)? {
        Some(limit) => Some(limit),
        None => token_limit("max_tokens", fields.max_tokens)?,
    };
    let extension = fields.molde.unwrap_or_default();
    let request = Request {
        tools: read_tools(fields.tools)?,
        tool_choice: read_tool_choice(fields.tool_choice.as_deref())?,
        parallel_calls: fields.parallel_tool_calls.unwrap_or(true),
        form: guided.read(format)?,
        sampling: sampling.read(&app)?,
        max_tokens: limit,
        stop: read_stop(fields.stop)?,
        choices: fields.n.unwrap_or(1),
        scores: logprobs,
        extension: extension.clone(),
        ..Request::new(Prompt::Chat(messages))
    };
    let run = app.start(request).await?;
    let head = Head {
        id: app.ids.make("chatcmpl-"),
        created: unix_seconds(SystemTime::now()),
        model,
        logprobs,
        report: extension.report,
    };
    if fields.stream.unwrap_or(false) {
        let include_usage =
            fields.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        let script = ChatScript::new(Arc::clone(&app), head, include_usage, run.choices);
        return Ok(respond(&app, run, script, "text/event-stream; charset=utf-8"));
    }
    let answers = run.collect().await?;
    Ok(axum::Json(completion(&app, &head, &answers)?).into_response())
}

fn read_tools(tools: Option<Vec<ToolField>>) -> Result<Vec<crate::request::Tool>, Fault> {
    tools
        .unwrap_or_default()
        .into_iter()
        .map(|tool| match (tool.kind.as_deref(), tool.function) {
            (None | Some("function"), Some(function)) => Ok(function.read()),
            (kind, _) => {
                let kind = kind.unwrap_or_default();
                let message = format!("tools: expected functions, got a tool of type \"{kind}\"");
                Err(Fault::invalid(message).at("tools"))
            }
        })
        .collect()
}

fn completion(app: &App, head: &Head, answers: &[Answer]) -> Result<Value, Fault> {
    let mut choices = Vec::new();
    let mut finishes = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        let finish = answer.finish()?;
        let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null});
        if !answer.calls.is_empty() {
            if answer.text.is_empty() {
                message["content"] = Value::Null;
            }
            let calls: Vec<Value> = answer
                .calls
                .iter()
                .map(|call| {
                    json!({
                        "id": app.ids.make("call_"),
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    })
                })
                .collect();
            message["tool_calls"] = Value::Array(calls);
        }
        message["annotations"] = json!([]);
        let mut choice = json!({
            "index": index,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(&finish.reason),
        });
        if let Some(top) = head.logprobs {
            choice["logprobs"] = logprobs_json(&answer.scores, top);
        }
        if let Some(extension) = extension_json(answer, finish, head.report) {
            choice["molde"] = extension;
        }
        choices.push(choice);
        finishes.push(finish);
    }
    Ok(json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": choices,
        "usage": usage(finishes),
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }))
}

/// `logprobs` of tokens.
pub(super) fn logprobs_json(scores: &[crate::answer::TokenScore], top: usize) -> Value {
    let content: Vec<Value> = scores.iter().map(|score| score_json(score, top)).collect();
    json!({"content": content, "refusal": null})
}
