//! A server with OpenAI's chat interface.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use molde::{Form, Message, Timings, Usage};
use serde_json::{Value, json};

use super::Answer;

/// An answer that takes longer is a failure of the run.
const LIMIT: Duration = Duration::from_mins(5);

pub(super) struct Server {
    agent: ureq::Agent,
    address: String,
}

impl Server {
    pub(super) fn new(address: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT));
        Self { agent: config.build().into(), address: address.trim_end_matches('/').to_owned() }
    }

    /// Asks for one answer, greedily; under a form as a JSON Schema.
    pub(super) fn answer(
        &self,
        messages: &[Message],
        form: Form,
        schema: &str,
        max_tokens: usize,
    ) -> anyhow::Result<Answer> {
        let started = Instant::now();
        let turns: Vec<Value> = messages
            .iter()
            .map(|turn| json!({ "role": turn.role.name(), "content": turn.content }))
            .collect();
        let mut request = json!({
            "model": "any",
            "messages": turns,
            "temperature": 0,
            "max_tokens": max_tokens,
        });
        if form == Form::Constrained {
            let schema: Value = serde_json::from_str(schema)?;
            request["response_format"] = json!({
                "type": "json_schema",
                "json_schema": { "name": "answer", "strict": true, "schema": schema },
            });
        }
        let address = format!("{}/v1/chat/completions", self.address);
        let sent = self.agent.post(&address).header("content-type", "application/json");
        let mut response = sent.send(request.to_string()).context("the server did not answer")?;
        let text = response.body_mut().read_to_string()?;
        ensure!(response.status().is_success(), "the server says {}: {text}", response.status());
        let answer: Value = serde_json::from_str(&text)?;
        let content = answer["choices"][0]["message"]["content"].as_str();
        let count = |name: &str| answer["usage"][name].as_u64().unwrap_or(0) as usize;
        Ok(Answer {
            text: content.context("the answer has no text")?.to_owned(),
            usage: Usage {
                prompt_tokens: count("prompt_tokens"),
                output_tokens: count("completion_tokens"),
                ..Usage::default()
            },
            timings: Timings { total: started.elapsed(), ..Timings::default() },
        })
    }
}
