//! `POST /api/chat` and `POST /api/generate`.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use molde_infer::Message;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::read::{Options, read_format};
use super::write::{Head, NdjsonScript, Shape};
use crate::app::App;
use crate::body::collect;
use crate::fault::{Fault, Kind};
use crate::openai::common::{FunctionField, read_call, role};
use crate::request::{Extension, Prompt, Request, Tool};
use crate::stream::respond;
use crate::wire::{read, rfc3339};

/// Most rivals that are shown for a token.
const MOST_LOGPROBS: usize = 20;

#[derive(Debug, Deserialize)]
struct ChatRequest {
    model: Option<String>,
    #[serde(default)]
    messages: Vec<MessageField>,
    tools: Option<Vec<ToolField>>,
    format: Option<Box<RawValue>>,
    options: Option<Options>,
    stream: Option<bool>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    molde: Option<Extension>,
}

#[derive(Debug, Deserialize)]
struct MessageField {
    role: String,
    content: Option<String>,
    images: Option<Vec<Box<RawValue>>>,
    tool_calls: Option<Vec<CallField>>,
}

#[derive(Debug, Deserialize)]
struct CallField {
    function: CalledFunction,
}

#[derive(Debug, Deserialize)]
struct CalledFunction {
    name: String,
    arguments: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct ToolField {
    function: Option<FunctionField>,
}

#[derive(Debug, Deserialize)]
struct GenerateRequest {
    model: Option<String>,
    prompt: Option<String>,
    system: Option<String>,
    suffix: Option<String>,
    images: Option<Vec<Box<RawValue>>>,
    template: Option<String>,
    context: Option<Box<RawValue>>,
    raw: Option<bool>,
    format: Option<Box<RawValue>>,
    options: Option<Options>,
    stream: Option<bool>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    molde: Option<Extension>,
}

fn no_images(images: Option<&Vec<Box<RawValue>>>) -> Result<(), Fault> {
    if images.is_some_and(|images| !images.is_empty()) {
        return Err(Fault::invalid("images cannot be read: this model reads text only"));
    }
    Ok(())
}

fn check_model(app: &App, model: Option<&str>) -> Result<String, Fault> {
    let model = model.ok_or_else(|| Fault::invalid("model is required"))?;
    app.check_model(model)
        .map_err(|_| Fault::new(Kind::UnknownModel, format!("model '{model}' not found")))?;
    Ok(model.to_owned())
}

fn scores(logprobs: Option<bool>, top: Option<usize>) -> Result<Option<usize>, Fault> {
    let scores = logprobs.unwrap_or(false).then(|| top.unwrap_or(0));
    if scores.is_some_and(|top| top > MOST_LOGPROBS) {
        return Err(Fault::invalid(format!("top_logprobs: expected at most {MOST_LOGPROBS}")));
    }
    Ok(scores)
}

/// Answers `POST /api/chat`.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn chat(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let start = Instant::now();
    let bytes = collect(&app, body).await?;
    let fields: ChatRequest = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    if fields.messages.is_empty() {
        return Ok(loaded(&model, Shape::Chat));
    }
    let mut messages = Vec::new();
    for message in fields.messages {
        no_images(message.images.as_ref())?;
        let mut tool_calls = Vec::new();
        for call in message.tool_calls.unwrap_or_default() {
            let arguments = call.function.arguments;
            let arguments = arguments.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
            tool_calls.push(read_call(call.function.name, &arguments)?);
        }
        let content = message.content.unwrap_or_default();
        messages.push(Message { tool_calls, ..Message::new(role(&message.role)?, content) });
    }
    let tools: Vec<Tool> = fields
        .tools
        .unwrap_or_default()
        .into_iter()
        .map(|tool| {
            let function =
                tool.function.ok_or_else(|| Fault::invalid("tools: expected functions"))?;
            Ok(function.read())
        })
        .collect::<Result<_, Fault>>()?;
    let options = fields.options.unwrap_or_default();
    let request = Request {
        tools,
        form: read_format(fields.format.as_deref())?,
        sampling: options.sampling(&app)?,
        max_tokens: options.max_tokens()?,
        context_tokens: options.context_tokens(),
        stop: options.stop(),
        scores: scores(fields.logprobs, fields.top_logprobs)?,
        extension: fields.molde.unwrap_or_default(),
        ..Request::new(Prompt::Chat(messages))
    };
    answer(&app, request, model, Shape::Chat, fields.stream.unwrap_or(true), start).await
}

/// Answers `POST /api/generate`.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn generate(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let start = Instant::now();
    let bytes = collect(&app, body).await?;
    let fields: GenerateRequest = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    no_images(fields.images.as_ref())?;
    for (field, given) in [
        ("suffix", fields.suffix.is_some_and(|suffix| !suffix.is_empty())),
        ("template", fields.template.is_some_and(|template| !template.is_empty())),
        ("context", fields.context.is_some_and(|raw| !matches!(raw.get(), "null" | "[]"))),
    ] {
        if given {
            return Err(Fault::invalid(format!("{field} is not supported")));
        }
    }
    let prompt = fields.prompt.unwrap_or_default();
    if prompt.is_empty() {
        return Ok(loaded(&model, Shape::Generate));
    }
    let prompt = if fields.raw.unwrap_or(false) {
        Prompt::Text(prompt)
    } else {
        let system = fields.system.filter(|system| !system.is_empty()).map(Message::system);
        Prompt::Chat(system.into_iter().chain([Message::user(prompt)]).collect())
    };
    let options = fields.options.unwrap_or_default();
    let request = Request {
        form: read_format(fields.format.as_deref())?,
        sampling: options.sampling(&app)?,
        max_tokens: options.max_tokens()?,
        context_tokens: options.context_tokens(),
        stop: options.stop(),
        scores: scores(fields.logprobs, fields.top_logprobs)?,
        extension: fields.molde.unwrap_or_default(),
        ..Request::new(prompt)
    };
    answer(&app, request, model, Shape::Generate, fields.stream.unwrap_or(true), start).await
}

async fn answer(
    app: &Arc<App>,
    request: Request,
    model: String,
    shape: Shape,
    streams: bool,
    start: Instant,
) -> Result<Response, Fault> {
    let head =
        Head { model, shape, logprobs: request.scores, report: request.extension.report, start };
    let run = app.start(request).await?;
    if streams {
        return Ok(respond(app, run, NdjsonScript::new(head), "application/x-ndjson"));
    }
    let answers = run.collect().await?;
    let answer = answers.first().ok_or_else(Fault::internal)?;
    let body = head.whole(answer, answer.finish()?);
    Ok(([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response())
}

/// The answer to a request that only asks for the model to be loaded.
fn loaded(model: &str, shape: Shape) -> Response {
    let mut body = json!({
        "model": model,
        "created_at": rfc3339(SystemTime::now()),
        "done": true,
        "done_reason": "load",
    });
    match shape {
        Shape::Chat => body["message"] = json!({"role": "assistant", "content": ""}),
        Shape::Generate => body["response"] = json!(""),
    }
    axum::Json(body).into_response()
}
