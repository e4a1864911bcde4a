//! The events of `POST /v1/messages`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::messages::{Head, stop_reason};
use super::read::DIALECT;
use crate::answer::{Answer, Delta};
use crate::app::App;
use crate::fault::Fault;
use crate::stream::{Script, sse};

pub(super) struct MessagesScript {
    app: Arc<App>,
    head: Head,
    prompt_tokens: usize,
    request_id: String,
    /// Blocks that were begun, and whether the last one is open.
    blocks: usize,
    is_open: bool,
    pinged: bool,
    in_text: bool,
}

impl MessagesScript {
    pub(super) fn new(app: Arc<App>, head: Head, prompt_tokens: usize, request_id: &str) -> Self {
        Self {
            app,
            head,
            prompt_tokens,
            request_id: request_id.to_owned(),
            blocks: 0,
            is_open: false,
            pinged: false,
            in_text: false,
        }
    }

    fn event(kind: &str, mut data: Value, out: &mut String) {
        let mut event = json!({"type": kind});
        if let (Some(event), Some(data)) = (event.as_object_mut(), data.as_object_mut()) {
            event.append(data);
        }
        sse(Some(kind), &event, out);
    }

    fn begin(&mut self, block: &Value, out: &mut String) {
        self.finish_block(out);
        let data = json!({"index": self.blocks, "content_block": block});
        Self::event("content_block_start", data, out);
        self.is_open = true;
        if !std::mem::replace(&mut self.pinged, true) {
            Self::event("ping", json!({}), out);
        }
    }

    fn more(&self, delta: &Value, out: &mut String) {
        let data = json!({"index": self.blocks, "delta": delta});
        Self::event("content_block_delta", data, out);
    }

    fn finish_block(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_open) {
            Self::event("content_block_stop", json!({"index": self.blocks}), out);
            self.blocks += 1;
        }
        self.in_text = false;
    }

    fn begin_text(&mut self, out: &mut String) {
        self.begin(&json!({"type": "text", "text": ""}), out);
        self.in_text = true;
    }
}

impl Script for MessagesScript {
    fn open(&mut self, out: &mut String) {
        let message = json!({
            "id": self.head.id,
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {
                "input_tokens": self.prompt_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 1,
                "service_tier": "standard",
            },
        });
        Self::event("message_start", json!({"message": message}), out);
    }

    fn delta(&mut self, _choice: usize, delta: &Delta, out: &mut String) {
        match delta {
            Delta::Text { text, .. } if text.is_empty() => {}
            Delta::Text { text, .. } => {
                if !self.in_text {
                    self.begin_text(out);
                }
                self.more(&json!({"type": "text_delta", "text": text}), out);
            }
            Delta::CallStart { name, .. } => {
                let id = self.app.ids.make("toolu_");
                self.begin(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}), out);
                self.more(&json!({"type": "input_json_delta", "partial_json": ""}), out);
            }
            Delta::CallArguments { json, .. } => {
                self.more(&json!({"type": "input_json_delta", "partial_json": json}), out);
            }
            Delta::Started | Delta::End(_) => {}
        }
    }

    fn end(&mut self, _choice: usize, answer: &Answer, out: &mut String) {
        let Some(finish) = answer.finish.as_deref() else { return };
        if self.blocks == 0 && !self.is_open {
            self.begin_text(out);
        }
        self.finish_block(out);
        let (stop_reason, stop_sequence) = stop_reason(&finish.reason);
        let mut data = json!({
            "delta": {"stop_reason": stop_reason, "stop_sequence": stop_sequence},
            "usage": {
                "input_tokens": finish.prompt_tokens - finish.cached_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": finish.cached_tokens,
                "output_tokens": finish.output_tokens,
            },
        });
        if let Some(extension) = self.head.extension(answer, finish) {
            data["molde"] = extension;
        }
        Self::event("message_delta", data, out);
    }

    fn close(&mut self, _answers: &[Answer], out: &mut String) {
        Self::event("message_stop", json!({}), out);
    }

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        sse(Some("error"), &fault.body(DIALECT, &self.request_id), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some("event: ping\ndata: {\"type\":\"ping\"}\n\n")
    }
}
