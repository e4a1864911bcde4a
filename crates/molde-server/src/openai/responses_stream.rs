//! The events of `POST /v1/responses`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::responses::Head;
use super::responses_items::{CallIds, call_item, item_status, logprobs, message_item, text_part};
use crate::answer::{Answer, Delta, TokenScore};
use crate::app::App;
use crate::fault::Fault;
use crate::stream::{SSE_COMMENT, Script, sse};

pub(super) struct ResponsesScript {
    app: Arc<App>,
    head: Head,
    sequence: usize,
    /// Items that are whole.
    output: Vec<Value>,
    open: Option<Open>,
}

/// The item that is being written.
enum Open {
    Message { id: String, text: String, scores: Vec<TokenScore> },
    Call { ids: CallIds, name: String, arguments: String },
}

impl ResponsesScript {
    pub(super) fn new(app: Arc<App>, head: Head) -> Self {
        Self { app, head, sequence: 0, output: Vec::new(), open: None }
    }

    fn event(&mut self, kind: &str, mut data: Value, out: &mut String) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Some(event), Some(data)) = (event.as_object_mut(), data.as_object_mut()) {
            event.append(data);
        }
        sse(Some(kind), &event, out);
    }

    fn open_message(&mut self, out: &mut String) {
        let id = self.app.ids.make("msg_");
        let index = self.output.len();
        let item = message_item(&id, "in_progress", &json!([]));
        self.event("response.output_item.added", json!({"output_index": index, "item": item}), out);
        let part = text_part("", &json!([]));
        let data = json!({"item_id": id, "output_index": index, "content_index": 0, "part": part});
        self.event("response.content_part.added", data, out);
        self.open = Some(Open::Message { id, text: String::new(), scores: Vec::new() });
    }

    fn close_item(&mut self, status: &str, out: &mut String) {
        let index = self.output.len();
        let item = match self.open.take() {
            None => return,
            Some(Open::Message { id, text, scores }) => {
                let shown = logprobs(&scores, self.head.logprobs);
                let place = json!({"item_id": id, "output_index": index, "content_index": 0});
                let mut done = place.clone();
                done["text"] = json!(text);
                done["logprobs"] = shown.clone();
                self.event("response.output_text.done", done, out);
                let part = text_part(&text, &shown);
                let mut done = place;
                done["part"] = part.clone();
                self.event("response.content_part.done", done, out);
                message_item(&id, status, &json!([part]))
            }
            Some(Open::Call { ids, name, arguments }) => {
                let data = json!({
                    "item_id": ids.item,
                    "output_index": index,
                    "name": name,
                    "arguments": arguments,
                });
                self.event("response.function_call_arguments.done", data, out);
                call_item(&ids, status, &name, &arguments)
            }
        };
        self.output.push(item.clone());
        self.event("response.output_item.done", json!({"output_index": index, "item": item}), out);
    }
}

impl Script for ResponsesScript {
    fn open(&mut self, out: &mut String) {
        let response = self.head.response("in_progress", &[]);
        self.event("response.created", json!({"response": response.clone()}), out);
        self.event("response.in_progress", json!({"response": response}), out);
    }

    fn delta(&mut self, _choice: usize, delta: &Delta, out: &mut String) {
        match delta {
            Delta::Text { text, tokens } => {
                if !matches!(self.open, Some(Open::Message { .. })) {
                    self.open_message(out);
                }
                let index = self.output.len();
                let shown = logprobs(tokens, self.head.logprobs);
                if let Some(Open::Message { id, text: written, scores }) = &mut self.open {
                    written.push_str(text);
                    scores.extend_from_slice(tokens);
                    let data = json!({
                        "item_id": id,
                        "output_index": index,
                        "content_index": 0,
                        "delta": text,
                        "logprobs": shown,
                    });
                    self.event("response.output_text.delta", data, out);
                }
            }
            Delta::CallStart { name, .. } => {
                self.close_item("completed", out);
                let ids = CallIds::new(&self.app);
                let item = call_item(&ids, "in_progress", name, "");
                let data = json!({"output_index": self.output.len(), "item": item});
                self.event("response.output_item.added", data, out);
                self.open = Some(Open::Call { ids, name: name.clone(), arguments: String::new() });
            }
            Delta::CallArguments { json, .. } => {
                let index = self.output.len();
                if let Some(Open::Call { ids, arguments, .. }) = &mut self.open {
                    arguments.push_str(json);
                    let data = json!({
                        "item_id": ids.item, "output_index": index, "delta": json,
                    });
                    self.event("response.function_call_arguments.delta", data, out);
                }
            }
            Delta::Started | Delta::End(_) => {}
        }
    }

    fn end(&mut self, _choice: usize, answer: &Answer, out: &mut String) {
        let Some(finish) = answer.finish.as_deref() else { return };
        if self.open.is_none() && self.output.is_empty() {
            self.open_message(out);
        }
        let status = item_status(&finish.reason);
        self.close_item(status, out);
        let response = self.head.finished(answer, finish, &self.output);
        self.head.keep(&self.app, &response, &self.output);
        let kind = format!("response.{status}");
        self.event(&kind, json!({"response": response}), out);
    }

    fn close(&mut self, _answers: &[Answer], _out: &mut String) {}

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        let mut response = self.head.response("failed", &self.output.clone());
        response["error"] = json!({"code": "server_error", "message": fault.message});
        self.event("response.failed", json!({"response": response}), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(SSE_COMMENT)
    }
}
