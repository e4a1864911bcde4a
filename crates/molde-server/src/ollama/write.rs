//! The lines that `/api/chat` and `/api/generate` answer with.

use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{Answer, Call, Delta, Finish, Reason, TokenScore};
use crate::fault::{Dialect, Fault};
use crate::stream::Script;
use crate::wire::{extension_json, rfc3339, score_json};

/// Which of the two endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Chat,
    Generate,
}

/// What an answer is written with.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) model: String,
    pub(super) shape: Shape,
    pub(super) logprobs: Option<usize>,
    pub(super) report: bool,
    pub(super) start: Instant,
}

/// A line. Arguments of tools are the texts that the model wrote: no number of them is changed.
#[derive(Debug, Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageField<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    done: bool,
    #[serde(flatten)]
    end: Option<EndFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    molde: Option<Value>,
}

#[derive(Debug, Serialize)]
struct MessageField<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallField>,
}

#[derive(Debug, Serialize)]
struct CallField {
    function: FunctionField,
}

#[derive(Debug, Serialize)]
struct FunctionField {
    name: String,
    arguments: Box<RawValue>,
}

/// What only the last line has. Durations are nanoseconds.
#[derive(Debug, Serialize)]
struct EndFields {
    done_reason: &'static str,
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
    prompt_eval_duration: u64,
    eval_count: usize,
    eval_duration: u64,
}

impl Head {
    fn line(
        &self,
        text: &str,
        calls: &[Call],
        scores: Option<&[TokenScore]>,
        end: Option<(&Answer, &Finish)>,
    ) -> String {
        let tool_calls = calls
            .iter()
            .filter_map(|call| {
                let arguments = RawValue::from_string(call.arguments.clone()).ok()?;
                Some(CallField { function: FunctionField { name: call.name.clone(), arguments } })
            })
            .collect();
        let is_chat = self.shape == Shape::Chat;
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let line = Line {
            model: &self.model,
            created_at: rfc3339(SystemTime::now()),
            message: is_chat.then_some(MessageField {
                role: "assistant",
                content: text,
                tool_calls,
            }),
            response: (!is_chat).then_some(text),
            done: end.is_some(),
            end: end.map(|(_, finish)| EndFields {
                done_reason: match finish.reason {
                    Reason::Length { .. } => "length",
                    _ => "stop",
                },
                total_duration: nanoseconds(self.start.elapsed()),
                load_duration: 0,
                prompt_eval_count: finish.prompt_tokens,
                prompt_eval_duration: nanoseconds(finish.prefill),
                eval_count: finish.output_tokens,
                eval_duration: nanoseconds(finish.decode + finish.mask),
            }),
            logprobs: self
                .logprobs
                .zip(scores)
                .map(|(top, scores)| scores.iter().map(|score| score_json(score, top)).collect()),
            molde: end.and_then(|(answer, finish)| extension_json(answer, finish, self.report)),
        };
        // Nothing of a line can fail to be written.
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// The whole answer in one object.
    pub(super) fn whole(&self, answer: &Answer, finish: &Finish) -> String {
        self.line(&answer.text, &answer.calls, Some(&answer.scores), Some((answer, finish)))
    }
}

/// The lines of an answer while it is written. A call is sent when it is whole.
pub(super) struct NdjsonScript {
    head: Head,
    call: Option<Call>,
}

impl NdjsonScript {
    pub(super) fn new(head: Head) -> Self {
        Self { head, call: None }
    }

    fn send(line: &str, out: &mut String) {
        out.push_str(line);
        out.push('\n');
    }

    fn finish_call(&mut self, out: &mut String) {
        if let Some(call) = self.call.take() {
            Self::send(&self.head.line("", &[call], None, None), out);
        }
    }
}

impl Script for NdjsonScript {
    fn open(&mut self, _out: &mut String) {}

    fn delta(&mut self, _choice: usize, delta: &Delta, out: &mut String) {
        match delta {
            Delta::Text { text, tokens } => {
                if !text.is_empty() || !tokens.is_empty() {
                    Self::send(&self.head.line(text, &[], Some(tokens), None), out);
                }
            }
            Delta::CallStart { name, .. } => {
                self.finish_call(out);
                self.call = Some(Call { name: name.clone(), arguments: String::new() });
            }
            Delta::CallArguments { json, .. } => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(json);
                }
            }
            Delta::Started | Delta::End(_) => {}
        }
    }

    fn end(&mut self, _choice: usize, answer: &Answer, out: &mut String) {
        self.finish_call(out);
        if let Some(finish) = answer.finish.as_deref() {
            Self::send(&self.head.line("", &[], None, Some((answer, finish))), out);
        }
    }

    fn close(&mut self, _answers: &[Answer], _out: &mut String) {}

    fn fail(&mut self, fault: &Fault, out: &mut String) {
        Self::send(&fault.body(Dialect::Ollama, "").to_string(), out);
    }

    fn keep_alive(&self) -> Option<&'static str> {
        None
    }
}
