//! The chunks of `POST /v1/chat/completions`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::chat::{Head, logprobs_json};
use super::common::{FINGERPRINT, finish_reason, usage};
use crate::answer::{Answer, Delta};
use crate::app::App;
use crate::fault::{Dialect, Fault};
use crate::stream::{SSE_COMMENT, Script, sse};
use crate::wire::{extension_json, tokens_json};

pub(super) struct ChatScript {
    app: Arc<App>,
    head: Head,
    include_usage: bool,
    choices: usize,
}

impl ChatScript {
    pub(super) fn new(app: Arc<App>, head: Head, include_usage: bool, choices: usize) -> Self {
        Self { app, head, include_usage, choices }
    }

    fn chunk(&self, choices: &Value) -> Value {
        let mut chunk = json!({
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn send(&self, choice: usize, delta: &Value, out: &mut String) {
        let choices = json!([{
            "index": choice, "delta": delta, "logprobs": null, "finish_reason": null,
        }]);
        sse(None, &self.chunk(&choices), out);
    }
}

impl Script for ChatScript {
    fn open(&mut self, out: &mut String) {
        for choice in 0..self.choices {
            let delta = json!({"role": "assistant", "content": "", "refusal": null});
            self.send(choice, &delta, out);
        }
    }

    fn delta(&mut self, choice: usize, delta: &Delta, out: &mut String) {
        match delta {
            Delta::Text { text, tokens } => {
                let mut choices = json!([{
                    "index": choice, "delta": {"content": text}, "logprobs": null,
                    "finish_reason": null,
                }]);
                if let Some(top) = self.head.logprobs {
                    choices[0]["logprobs"] = logprobs_json(tokens, top);
                } else if text.is_empty() {
                    return;
                }
                if self.head.report && !tokens.is_empty() {
                    choices[0]["molde"] = json!({"tokens": tokens_json(tokens)});
                }
                sse(None, &self.chunk(&choices), out);
            }
            Delta::CallStart { index, name } => {
                let delta = json!({"tool_calls": [{
                    "index": index,
                    "id": self.app.ids.make("call_"),
                    "type": "function",
                    "function": {"name": name, "arguments": ""},
                }]});
                self.send(choice, &delta, out);
            }
            Delta::CallArguments { index, json } => {
                let delta = json!({"tool_calls": [{
                    "index": index, "function": {"arguments": json},
                }]});
                self.send(choice, &delta, out);
            }
            Delta::Started | Delta::End(_) => {}
        }
    }

    fn end(&mut self, choice: usize, answer: &Answer, out: &mut String) {
        let Some(finish) = answer.finish.as_deref() else { return };
        let mut choices = json!([{
            "index": choice, "delta": {}, "logprobs": null,
            "finish_reason": finish_reason(&finish.reason),
        }]);
        if let Some(extension) = extension_json(answer, finish, self.head.report) {
            choices[0]["molde"] = extension;
        }
        sse(None, &self.chunk(&choices), out);
    }

    fn close(&mut self, answers: &[Answer], out: &mut String) {
        if self.include_usage {
            let mut chunk = self.chunk(&json!([]));
            chunk["usage"] = usage(answers.iter().filter_map(|answer| answer.finish.as_deref()));
            sse(None, &chunk, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        sse(None, &fault.body(Dialect::OpenAi, ""), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(SSE_COMMENT)
    }
}
