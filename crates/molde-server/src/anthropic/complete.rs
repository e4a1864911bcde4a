//! `POST /v1/complete`: the endpoint of the first SDKs.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use molde_infer::{Message, Sampling};
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::stop_reason;
use super::read::DIALECT;
use crate::answer::{Answer, Delta, Reason};
use crate::app::App;
use crate::body::collect;
use crate::fault::Fault;
use crate::openai::common::check_model;
use crate::request::{Extension, Prompt, Request};
use crate::stream::{SSE_COMMENT, Script, respond, sse};
use crate::wire::{read, token_limit, within};

const HUMAN: &str = "\n\nHuman:";
const ASSISTANT: &str = "\n\nAssistant:";

#[derive(Debug, Deserialize)]
struct CompleteRequest {
    model: Option<String>,
    prompt: String,
    max_tokens_to_sample: Option<i64>,
    stop_sequences: Option<Vec<String>>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<usize>,
    stream: Option<bool>,
    molde: Option<Extension>,
}

/// Answers a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn complete(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let bytes = collect(&app, body).await?;
    let fields: CompleteRequest = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    let max_tokens = token_limit("max_tokens_to_sample", fields.max_tokens_to_sample)?
        .ok_or_else(|| Fault::invalid("max_tokens_to_sample: field required"))?;
    let request = Request {
        sampling: Sampling {
            temperature: within("temperature", fields.temperature, 0.0, 0.0, 2.0)?,
            top_p: within("top_p", fields.top_p, 1.0, 0.0, 1.0)?,
            top_k: fields.top_k.unwrap_or(0),
            seed: app.ids.seed(),
            ..Sampling::default()
        },
        max_tokens: Some(max_tokens),
        stop: fields.stop_sequences.unwrap_or_default(),
        extension: fields.molde.unwrap_or_default(),
        ..Request::new(Prompt::Chat(turns(&fields.prompt)?))
    };
    let run = app.start(request).await?;
    let id = app.ids.make("compl_");
    if fields.stream.unwrap_or(false) {
        let script = CompleteScript { id, model };
        return Ok(respond(&app, run, script, "text/event-stream; charset=utf-8"));
    }
    let answers = run.collect().await?;
    let answer = answers.first().ok_or_else(Fault::internal)?;
    let finish = answer.finish()?;
    Ok(axum::Json(completion(&id, &model, &answer.text, Some(&finish.reason))).into_response())
}

/// The conversation that a prompt spells out. A prompt without turns is one of the user.
fn turns(prompt: &str) -> Result<Vec<Message>, Fault> {
    let mut messages = Vec::new();
    let mut rest = prompt;
    let first = rest.find(HUMAN).unwrap_or(rest.len());
    let before = rest[..first].trim();
    rest = &rest[first..];
    if rest.is_empty() {
        messages.push(Message::user(before));
    } else if !before.is_empty() {
        messages.push(Message::system(before));
    }
    while !rest.is_empty() {
        let (marker, is_human) =
            if rest.starts_with(HUMAN) { (HUMAN, true) } else { (ASSISTANT, false) };
        rest = &rest[marker.len()..];
        let end = [HUMAN, ASSISTANT].iter().filter_map(|marker| rest.find(marker)).min();
        let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
        let text = text.trim();
        rest = after;
        if is_human {
            messages.push(Message::user(text));
        } else if !(rest.is_empty() && text.is_empty()) {
            messages.push(Message::assistant(text));
        }
    }
    if messages.is_empty() {
        return Err(Fault::invalid("the prompt is empty"));
    }
    Ok(messages)
}

fn completion(id: &str, model: &str, text: &str, reason: Option<&Reason>) -> Value {
    let (stop_reason, stop) = match reason {
        None => (None, None),
        // A turn of its own ends with what the first SDKs called a stop sequence.
        Some(Reason::Complete | Reason::Calls) => (Some("stop_sequence"), Some(HUMAN.to_owned())),
        Some(reason) => {
            let (reason, stop) = stop_reason(reason);
            let is_limit = reason == "model_context_window_exceeded";
            (Some(if is_limit { "max_tokens" } else { reason }), stop)
        }
    };
    json!({
        "type": "completion",
        "id": id,
        "completion": text,
        "model": model,
        "stop_reason": stop_reason,
        "stop": stop,
        "log_id": id,
    })
}

struct CompleteScript {
    id: String,
    model: String,
}

impl Script for CompleteScript {
    fn open(&mut self, _out: &mut String) {}

    fn delta(&mut self, _choice: usize, delta: &Delta, out: &mut String) {
        if let Delta::Text { text, .. } = delta
            && !text.is_empty()
        {
            sse(Some("completion"), &completion(&self.id, &self.model, text, None), out);
        }
    }

    fn end(&mut self, _choice: usize, answer: &Answer, out: &mut String) {
        let reason = answer.finish.as_deref().map(|finish| &finish.reason);
        sse(Some("completion"), &completion(&self.id, &self.model, "", reason), out);
    }

    fn close(&mut self, _answers: &[Answer], _out: &mut String) {}

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        sse(Some("error"), &fault.body(DIALECT, ""), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(SSE_COMMENT)
    }
}
