//! `POST /v1/responses`, `GET` and `DELETE /v1/responses/{id}`.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use molde_infer::Message;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::common::{
    FunctionField, GuidedFields, MOST_LOGPROBS, SamplingFields, check_model, read_tool_choice,
};
use super::responses_items::{item_status, output, read_input, read_items};
use super::responses_stream::ResponsesScript;
use crate::answer::{Answer, Finish, Reason};
use crate::app::App;
use crate::body::collect;
use crate::fault::{Fault, Kind};
use crate::request::{Extension, Form, Prompt, Request, Tool};
use crate::store::Stored;
use crate::stream::respond;
use crate::wire::{extension_json, read, token_limit, unix_seconds};

#[derive(Debug, Deserialize)]
struct ResponsesRequest {
    model: Option<String>,
    input: Option<Box<RawValue>>,
    instructions: Option<String>,
    text: Option<TextField>,
    tools: Option<Vec<ToolField>>,
    tool_choice: Option<Box<RawValue>>,
    parallel_tool_calls: Option<bool>,
    stream: Option<bool>,
    max_output_tokens: Option<i64>,
    top_logprobs: Option<usize>,
    include: Option<Vec<String>>,
    previous_response_id: Option<String>,
    conversation: Option<Box<RawValue>>,
    background: Option<bool>,
    store: Option<bool>,
    metadata: Option<Value>,
    user: Option<String>,
    molde: Option<Extension>,
}

#[derive(Debug, Deserialize)]
struct TextField {
    format: Option<FormatField>,
    verbosity: Option<String>,
}

/// `text.format`: flat, unlike `response_format`.
#[derive(Debug, Deserialize)]
struct FormatField {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    description: Option<String>,
    strict: Option<bool>,
    schema: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct ToolField {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Box<RawValue>>,
    strict: Option<bool>,
}

/// What a response repeats of its request, and its name.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: String,
    created: u64,
    pub(super) logprobs: Option<usize>,
    report: bool,
    /// The members of a response that do not change while it is written.
    echo: Value,
    /// The items before the answer, and whether they are kept with it.
    items: Vec<String>,
    store: bool,
}

/// Answers a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn create(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let bytes = collect(&app, body).await?;
    let fields: ResponsesRequest = read(&bytes)?;
    let sampling: SamplingFields = read(&bytes)?;
    let guided: GuidedFields = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    if fields.background == Some(true) {
        return Err(Fault::invalid("background is not supported").at("background"));
    }
    if fields.conversation.is_some() {
        return Err(Fault::invalid("conversation is not supported: use previous_response_id")
            .at("conversation"));
    }
    let mut items = match &fields.previous_response_id {
        None => Vec::new(),
        Some(id) => stored(&app, id)?.items,
    };
    let input = fields.input.ok_or_else(|| Fault::invalid("there is no input").at("input"))?;
    items.extend(read_input(&input)?);
    let mut messages = read_items(&items)?;
    if let Some(instructions) = fields.instructions.as_deref().filter(|text| !text.is_empty()) {
        messages.insert(0, Message::system(instructions));
    }
    let wants_logprobs =
        fields.include.iter().flatten().any(|included| included == "message.output_text.logprobs")
            || fields.top_logprobs.is_some_and(|top| top > 0);
    let logprobs = wants_logprobs.then(|| fields.top_logprobs.unwrap_or(0));
    if logprobs.is_some_and(|top| top > MOST_LOGPROBS) {
        let message = format!("top_logprobs: expected at most {MOST_LOGPROBS}");
        return Err(Fault::invalid(message).at("top_logprobs"));
    }
    let limit = token_limit("max_output_tokens", fields.max_output_tokens)?;
    let format = fields.text.as_ref().and_then(|text| text.format.as_ref());
    let extension = fields.molde.clone().unwrap_or_default();
    let sampling = sampling.read(&app)?;
    let echo = json!({
        "background": false,
        "instructions": fields.instructions,
        "max_output_tokens": limit,
        "max_tool_calls": null,
        "model": model,
        "parallel_tool_calls": fields.parallel_tool_calls.unwrap_or(true),
        "previous_response_id": fields.previous_response_id,
        "reasoning": {"effort": null, "summary": null},
        "service_tier": "default",
        "store": fields.store.unwrap_or(true),
        "temperature": sampling.temperature,
        "text": {
            "format": format.map_or_else(|| json!({"type": "text"}), FormatField::echo),
            "verbosity": fields.text.as_ref().and_then(|text| text.verbosity.as_deref()).unwrap_or("medium"),
        },
        "tool_choice": fields.tool_choice.as_deref().and_then(value).unwrap_or_else(|| json!("auto")),
        "tools": fields.tools.iter().flatten().map(ToolField::echo).collect::<Vec<_>>(),
        "top_logprobs": fields.top_logprobs.unwrap_or(0),
        "top_p": sampling.top_p,
        "truncation": "disabled",
        "user": fields.user,
        "metadata": fields.metadata.clone().unwrap_or_else(|| json!({})),
    });
    let request = Request {
        tools: fields
            .tools
            .unwrap_or_default()
            .into_iter()
            .map(ToolField::read)
            .collect::<Result<_, _>>()?,
        tool_choice: read_tool_choice(fields.tool_choice.as_deref())?,
        parallel_calls: fields.parallel_tool_calls.unwrap_or(true),
        form: guided.read(format.map_or(Ok(Form::Text), FormatField::read)?)?,
        sampling,
        max_tokens: limit,
        scores: logprobs,
        extension: extension.clone(),
        ..Request::new(Prompt::Chat(messages))
    };
    let run = app.start(request).await?;
    let head = Head {
        id: app.ids.make("resp_"),
        created: unix_seconds(SystemTime::now()),
        logprobs,
        report: extension.report,
        echo,
        items,
        store: fields.store.unwrap_or(true),
    };
    if fields.stream.unwrap_or(false) {
        let script = ResponsesScript::new(Arc::clone(&app), head);
        return Ok(respond(&app, run, script, "text/event-stream; charset=utf-8"));
    }
    let answers = run.collect().await?;
    let answer = answers.first().ok_or_else(Fault::internal)?;
    let output = output(&app, answer, head.logprobs)?;
    let response = head.finished(answer, answer.finish()?, &output);
    head.keep(&app, &response, &output);
    Ok(axum::Json(response).into_response())
}

/// A response that was kept.
///
/// # Errors
/// There is none of that name.
pub(crate) fn retrieve(app: &App, id: &str) -> Result<Response, Fault> {
    let stored = stored(app, id)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], stored.body).into_response())
}

/// Forgets a response.
///
/// # Errors
/// There is none of that name.
pub(crate) fn delete(app: &App, id: &str) -> Result<Response, Fault> {
    if !app.store.remove(id) {
        return Err(unknown(id));
    }
    Ok(axum::Json(json!({"id": id, "object": "response", "deleted": true})).into_response())
}

fn stored(app: &App, id: &str) -> Result<Stored, Fault> {
    app.store.get(id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Fault {
    Fault::new(Kind::NotFound, format!("there is no response '{id}', or it was forgotten"))
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

impl FormatField {
    fn read(&self) -> Result<Form, Fault> {
        const FIELD: &str = "text.format";
        match self.kind.as_str() {
            "text" => Ok(Form::Text),
            "json_object" => Ok(Form::JsonObject),
            "json_schema" => match &self.schema {
                Some(schema) => Ok(Form::Schema { text: schema.get().to_owned(), field: FIELD }),
                None => Err(Fault::invalid("text.format.schema is missing").at(FIELD)),
            },
            other => {
                let message = format!(
                    "text.format.type: expected text, json_object or json_schema, got \"{other}\""
                );
                Err(Fault::invalid(message).at(FIELD))
            }
        }
    }

    fn echo(&self) -> Value {
        if self.kind != "json_schema" {
            return json!({"type": self.kind});
        }
        json!({
            "type": self.kind,
            "name": self.name.as_deref().unwrap_or("schema"),
            "description": self.description,
            "strict": self.strict.unwrap_or(false),
            "schema": self.schema.as_deref().and_then(value).unwrap_or_else(|| json!({})),
        })
    }
}

impl ToolField {
    fn read(self) -> Result<Tool, Fault> {
        match (self.kind.as_str(), self.name) {
            ("function", Some(name)) => {
                let Self { description, parameters, .. } = self;
                Ok(FunctionField { name, description, parameters }.read())
            }
            (kind, _) => {
                let message =
                    format!("tools: expected functions with a name, got a tool of type \"{kind}\"");
                Err(Fault::invalid(message).at("tools"))
            }
        }
    }

    fn echo(&self) -> Value {
        json!({
            "type": self.kind,
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters.as_deref().and_then(value),
            "strict": self.strict.unwrap_or(true),
        })
    }
}

impl Head {
    /// The response while it is written, or as it is at last.
    pub(super) fn response(&self, status: &str, output: &[Value]) -> Value {
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "completed_at": null,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "output": output,
            "usage": null,
        });
        if let (Some(response), Some(echo)) = (response.as_object_mut(), self.echo.as_object()) {
            response.extend(echo.clone());
        }
        response
    }

    /// The response of an answer that has come to its end.
    pub(super) fn finished(&self, answer: &Answer, finish: &Finish, output: &[Value]) -> Value {
        let mut response = self.response(item_status(&finish.reason), output);
        if matches!(finish.reason, Reason::Length { .. }) {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        } else {
            response["completed_at"] = json!(unix_seconds(SystemTime::now()));
        }
        response["usage"] = json!({
            "input_tokens": finish.prompt_tokens,
            "input_tokens_details": {"cached_tokens": finish.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": finish.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": finish.prompt_tokens + finish.output_tokens,
        });
        if let Some(extension) = extension_json(answer, finish, self.report) {
            response["molde"] = extension;
        }
        response
    }

    /// Keeps a response, if that was asked for.
    pub(super) fn keep(&self, app: &App, response: &Value, output: &[Value]) {
        if self.store {
            let mut items = self.items.clone();
            items.extend(output.iter().map(Value::to_string));
            app.store.put(Stored { id: self.id.clone(), body: response.to_string(), items });
        }
    }
}
