//! `POST /v1/completions`: text that goes on, without a conversation.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::common::{
    FINGERPRINT, GuidedFields, MOST_LOGPROBS, ResponseFormat, SamplingFields, check_model,
    finish_reason, read_stop, usage,
};
use crate::answer::{Answer, Delta, TokenScore};
use crate::app::App;
use crate::body::collect;
use crate::fault::{Dialect, Fault};
use crate::request::{Extension, Form, Prompt, Request};
use crate::stream::{SSE_COMMENT, Script, respond, sse};
use crate::wire::{
    OneOrMany, extension_json, is_string, masked, read, read_part, token_limit, unix_seconds,
};

/// Tokens of an answer where the request says nothing: the API's own default.
const DEFAULT_MAX_TOKENS: usize = 16;

#[derive(Debug, Deserialize)]
struct CompletionRequest {
    model: Option<String>,
    prompt: Option<Box<RawValue>>,
    suffix: Option<String>,
    echo: Option<bool>,
    best_of: Option<usize>,
    response_format: Option<ResponseFormat>,
    stream: Option<bool>,
    stop: Option<OneOrMany>,
    max_tokens: Option<i64>,
    n: Option<usize>,
    logprobs: Option<usize>,
    molde: Option<Extension>,
}

#[derive(Debug, Clone)]
struct Head {
    id: String,
    created: u64,
    model: String,
    logprobs: Option<usize>,
    report: bool,
    /// What every text begins with.
    echo: String,
}

/// Answers a request.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn completions(app: Arc<App>, body: Body) -> Result<Response, Fault> {
    let bytes = collect(&app, body).await?;
    let fields: CompletionRequest = read(&bytes)?;
    let sampling: SamplingFields = read(&bytes)?;
    let guided: GuidedFields = read(&bytes)?;
    let model = check_model(&app, fields.model.as_deref())?;
    let prompt = read_prompt(fields.prompt.as_deref())?;
    if fields.suffix.is_some_and(|suffix| !suffix.is_empty()) {
        return Err(Fault::invalid("suffix is not supported").at("suffix"));
    }
    let choices = fields.n.unwrap_or(1);
    if fields.best_of.is_some_and(|best| best != choices) {
        return Err(Fault::invalid("best_of is not supported beyond n").at("best_of"));
    }
    if fields.logprobs.is_some_and(|top| top > MOST_LOGPROBS) {
        let message = format!("logprobs: expected at most {MOST_LOGPROBS}");
        return Err(Fault::invalid(message).at("logprobs"));
    }
    let format = fields.response_format.map_or(Ok(Form::Text), ResponseFormat::read)?;
    let form = guided.read(format)?;
    let limit = token_limit("max_tokens", fields.max_tokens)?;
    let limit = if form == Form::Text { limit.or(Some(DEFAULT_MAX_TOKENS)) } else { limit };
    let extension = fields.molde.unwrap_or_default();
    let head = Head {
        id: app.ids.make("cmpl-"),
        created: unix_seconds(SystemTime::now()),
        model,
        logprobs: fields.logprobs,
        report: extension.report,
        echo: if fields.echo.unwrap_or(false) { prompt.clone() } else { String::new() },
    };
    let request = Request {
        form,
        sampling: sampling.read(&app)?,
        max_tokens: limit,
        stop: read_stop(fields.stop)?,
        choices,
        scores: fields.logprobs,
        extension,
        ..Request::new(Prompt::Text(prompt))
    };
    let run = app.start(request).await?;
    if fields.stream.unwrap_or(false) {
        let script = CompletionScript { head, choices: run.choices };
        return Ok(respond(&app, run, script, "text/event-stream; charset=utf-8"));
    }
    let answers = run.collect().await?;
    Ok(axum::Json(completion(&head, &answers)?).into_response())
}

/// A prompt: a text, or a list with one.
fn read_prompt(prompt: Option<&RawValue>) -> Result<String, Fault> {
    let wrong = |message: &str| Fault::invalid(message).at("prompt");
    let prompt = prompt.ok_or_else(|| wrong("there is no prompt"))?;
    let text: String = if is_string(prompt) {
        read_part(prompt, "prompt")?
    } else {
        let mut texts: Vec<String> = read_part(prompt, "prompt")?;
        match texts.len() {
            1 => texts.swap_remove(0),
            _ => return Err(wrong("prompt: expected one text")),
        }
    };
    if text.is_empty() {
        return Err(wrong("the prompt is empty: expected at least one character"));
    }
    Ok(text)
}

fn logprobs_json(scores: &[TokenScore], top: usize) -> Value {
    let mut offset = 0;
    let mut offsets = Vec::new();
    let mut rivals = Vec::new();
    for score in scores {
        offsets.push(offset);
        offset += score.token.text.chars().count();
        let allowed = score.candidates.iter().filter(|(_, allowed)| *allowed).take(top);
        let shown: serde_json::Map<String, Value> = allowed
            .map(|(piece, _)| (piece.text.clone(), json!(masked(piece.logprob, score.allowed))))
            .collect();
        rivals.push(Value::Object(shown));
    }
    let tokens: Vec<&str> = scores.iter().map(|score| score.token.text.as_str()).collect();
    let logprobs: Vec<f64> =
        scores.iter().map(|score| masked(score.token.logprob, score.allowed)).collect();
    json!({
        "tokens": tokens,
        "token_logprobs": logprobs,
        "top_logprobs": rivals,
        "text_offset": offsets,
    })
}

fn body(head: &Head, choices: &Value) -> Value {
    json!({
        "id": head.id,
        "object": "text_completion",
        "created": head.created,
        "model": head.model,
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
    })
}

fn completion(head: &Head, answers: &[Answer]) -> Result<Value, Fault> {
    let mut choices = Vec::new();
    let mut finishes = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        let finish = answer.finish()?;
        let mut choice = json!({
            "index": index,
            "text": format!("{}{}", head.echo, answer.text),
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
    let mut body = body(head, &Value::Array(choices));
    body["usage"] = usage(finishes);
    Ok(body)
}

struct CompletionScript {
    head: Head,
    choices: usize,
}

impl Script for CompletionScript {
    fn open(&mut self, out: &mut String) {
        for choice in 0..self.choices {
            if !self.head.echo.is_empty() {
                let choices = json!([{
                    "index": choice, "text": self.head.echo, "logprobs": null,
                    "finish_reason": null,
                }]);
                sse(None, &body(&self.head, &choices), out);
            }
        }
    }

    fn delta(&mut self, choice: usize, delta: &Delta, out: &mut String) {
        if let Delta::Text { text, tokens } = delta {
            let mut choices =
                json!([{"index": choice, "text": text, "logprobs": null, "finish_reason": null}]);
            if let Some(top) = self.head.logprobs {
                choices[0]["logprobs"] = logprobs_json(tokens, top);
            } else if text.is_empty() {
                return;
            }
            sse(None, &body(&self.head, &choices), out);
        }
    }

    fn end(&mut self, choice: usize, answer: &Answer, out: &mut String) {
        let Some(finish) = answer.finish.as_deref() else { return };
        let mut choices = json!([{
            "index": choice, "text": "", "logprobs": null,
            "finish_reason": finish_reason(&finish.reason),
        }]);
        if let Some(extension) = extension_json(answer, finish, self.head.report) {
            choices[0]["molde"] = extension;
        }
        sse(None, &body(&self.head, &choices), out);
    }

    fn close(&mut self, _answers: &[Answer], out: &mut String) {
        out.push_str("data: [DONE]\n\n");
    }

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        sse(None, &fault.body(Dialect::OpenAi, ""), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(SSE_COMMENT)
    }
}
