//! What `/api/chat` and `/api/generate` share in reading.

use molde_infer::Sampling;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::fault::Fault;
use crate::request::Form;
use crate::wire::{OneOrMany, is_string, read_part, within};

/// `options`. What is not named here changes nothing of the answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Options {
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    seed: Option<i64>,
    frequency_penalty: Option<f64>,
    presence_penalty: Option<f64>,
    num_predict: Option<i64>,
    num_ctx: Option<i64>,
    stop: Option<OneOrMany>,
}

impl Options {
    pub(super) fn sampling(&self, app: &App) -> Result<Sampling, Fault> {
        Ok(Sampling {
            temperature: within("options.temperature", self.temperature, 0.0, 0.0, 2.0)?,
            top_p: within("options.top_p", self.top_p, 1.0, 0.0, 1.0)?,
            top_k: self.top_k.and_then(|top| usize::try_from(top).ok()).unwrap_or(0),
            seed: self.seed.map_or_else(|| app.ids.seed(), |seed| seed as u64),
            frequency_penalty: within(
                "options.frequency_penalty",
                self.frequency_penalty,
                0.0,
                -2.0,
                2.0,
            )?,
            presence_penalty: within(
                "options.presence_penalty",
                self.presence_penalty,
                0.0,
                -2.0,
                2.0,
            )?,
            ..Sampling::default()
        })
    }

    /// The token limit: -1 is none of the request's own, -2 what the context leaves.
    pub(super) fn max_tokens(&self) -> Result<Option<usize>, Fault> {
        match self.num_predict {
            None | Some(-1) => Ok(None),
            Some(-2) => Ok(Some(usize::MAX)),
            Some(tokens) => match usize::try_from(tokens) {
                Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
                _ => Err(Fault::invalid(format!(
                    "options.num_predict: expected at least 1, -1 or -2, got {tokens}"
                ))),
            },
        }
    }

    pub(super) fn context_tokens(&self) -> Option<usize> {
        self.num_ctx.and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
    }

    pub(super) fn stop(&self) -> Vec<String> {
        self.stop.clone().map(OneOrMany::into_vec).unwrap_or_default()
    }
}

/// `format`: `"json"` or a schema.
///
/// # Errors
/// Another word.
pub(super) fn read_format(format: Option<&RawValue>) -> Result<Form, Fault> {
    let Some(format) = format.filter(|format| format.get() != "null") else {
        return Ok(Form::Text);
    };
    if !is_string(format) {
        return Ok(Form::Schema { text: format.get().to_owned(), field: "format" });
    }
    match read_part::<String>(format, "format")?.as_str() {
        "" => Ok(Form::Text),
        "json" => Ok(Form::JsonObject),
        other => Err(Fault::invalid(format!(
            "format: expected \"json\" or a JSON Schema, got \"{other}\""
        ))),
    }
}
