//! The items of which inputs and outputs of the Responses API are made.

use molde_infer::{Message, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::common::{read_call, read_content, role};
use crate::answer::{Answer, Reason, TokenScore};
use crate::app::App;
use crate::fault::Fault;
use crate::wire::{is_string, read_part, score_json};

#[derive(Debug, Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<Box<RawValue>>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<Box<RawValue>>,
}

/// The items of an input, each as its text.
///
/// # Errors
/// An input that is neither a text nor a list.
pub(super) fn read_input(input: &RawValue) -> Result<Vec<String>, Fault> {
    if is_string(input) {
        let text: String = read_part(input, "input")?;
        return Ok(vec![json!({"role": "user", "content": text}).to_string()]);
    }
    let items: Vec<Box<RawValue>> = read_part(input, "input")?;
    Ok(items.iter().map(|item| item.get().to_owned()).collect())
}

/// The conversation that items tell.
///
/// # Errors
/// An item that the model cannot read.
pub(super) fn read_items(items: &[String]) -> Result<Vec<Message>, Fault> {
    let mut messages: Vec<Message> = Vec::new();
    for text in items {
        let item: Item = serde_json::from_str(text).map_err(|error| {
            Fault::invalid(format!("an item of input is not what was expected: {error}"))
                .at("input")
        })?;
        let missing = |kind: &str, field: &str| {
            Fault::invalid(format!("an item of type {kind} has no {field}")).at("input")
        };
        match item.kind.as_deref() {
            None | Some("message") => {
                let role = role(&item.role.ok_or_else(|| missing("message", "role"))?)?;
                let content = item.content.ok_or_else(|| missing("message", "content"))?;
                messages.push(Message::new(role, read_content(&content)?));
            }
            Some("function_call") => {
                let name = item.name.ok_or_else(|| missing("function_call", "name"))?;
                let call = read_call(name, &item.arguments.unwrap_or_default())?;
                match messages.last_mut() {
                    Some(last) if last.role == Role::Assistant => last.tool_calls.push(call),
                    _ => {
                        messages.push(Message { tool_calls: vec![call], ..Message::assistant("") });
                    }
                }
            }
            Some("function_call_output") => {
                let output =
                    item.output.ok_or_else(|| missing("function_call_output", "output"))?;
                messages.push(Message::new(Role::Tool, read_content(&output)?));
            }
            // What a model thought is not shown to another.
            Some("reasoning") => {}
            Some(other) => {
                let message = format!(
                    "an item of type \"{other}\" cannot be read: this model reads text only"
                );
                return Err(Fault::invalid(message).at("input"));
            }
        }
    }
    Ok(messages)
}

/// `logprobs` of a part.
pub(super) fn logprobs(scores: &[TokenScore], top: Option<usize>) -> Value {
    match top {
        Some(top) => scores.iter().map(|score| score_json(score, top)).collect(),
        None => json!([]),
    }
}

/// A part with text.
pub(super) fn text_part(text: &str, logprobs: &Value) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs})
}

/// A message of the model.
pub(super) fn message_item(id: &str, status: &str, content: &Value) -> Value {
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

/// A call of the model.
pub(super) fn call_item(ids: &CallIds, status: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": ids.item,
        "type": "function_call",
        "status": status,
        "call_id": ids.call,
        "name": name,
        "arguments": arguments,
    })
}

/// The two names of a call.
#[derive(Debug, Clone)]
pub(super) struct CallIds {
    pub(super) item: String,
    pub(super) call: String,
}

impl CallIds {
    pub(super) fn new(app: &App) -> Self {
        Self { item: app.ids.make("fc_"), call: app.ids.make("call_") }
    }
}

/// The output of a whole answer.
///
/// # Errors
/// An answer that has no end.
pub(super) fn output(app: &App, answer: &Answer, top: Option<usize>) -> Result<Vec<Value>, Fault> {
    let status = item_status(&answer.finish()?.reason);
    let mut items = Vec::new();
    if !answer.text.is_empty() || answer.calls.is_empty() {
        let part = text_part(&answer.text, &logprobs(&answer.scores, top));
        items.push(message_item(&app.ids.make("msg_"), status, &json!([part])));
    }
    for call in &answer.calls {
        items.push(call_item(&CallIds::new(app), status, &call.name, &call.arguments));
    }
    Ok(items)
}

/// `status` of an item, or of a response.
pub(super) fn item_status(reason: &Reason) -> &'static str {
    match reason {
        Reason::Length { .. } => "incomplete",
        _ => "completed",
    }
}
