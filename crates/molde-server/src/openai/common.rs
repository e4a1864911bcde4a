//! What the endpoints of OpenAI's dialect share.

use std::collections::BTreeMap;

use molde_infer::{Message, Role, Sampling, ToolCall};
use molde_vocab::TokenId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Finish, Reason};
use crate::app::App;
use crate::fault::Fault;
use crate::request::{Form, Tool, ToolChoice};
use crate::wire::{OneOrMany, is_string, read_part, within};

/// A model of a request, which must be named.
///
/// # Errors
/// None is named, or an unknown one.
pub(crate) fn check_model(app: &App, model: Option<&str>) -> Result<String, Fault> {
    let model = model.ok_or_else(|| Fault::invalid("no model was named").at("model"))?;
    app.check_model(model)?;
    Ok(model.to_owned())
}

/// Settings of the choice of tokens.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SamplingFields {
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    seed: Option<i64>,
    frequency_penalty: Option<f64>,
    presence_penalty: Option<f64>,
    logit_bias: Option<BTreeMap<String, f64>>,
}

impl SamplingFields {
    /// The settings; a temperature that is absent is 0.
    pub(crate) fn read(&self, app: &App) -> Result<Sampling, Fault> {
        let mut logit_bias: Vec<(TokenId, f32)> = Vec::new();
        for (token, &bias) in self.logit_bias.iter().flatten() {
            let id = token.parse().map_err(|_| {
                Fault::invalid(format!("logit_bias: expected token ids, got \"{token}\""))
                    .at("logit_bias")
            })?;
            logit_bias.push((id, within("logit_bias", Some(bias), 0.0, -100.0, 100.0)?));
        }
        Ok(Sampling {
            temperature: within("temperature", self.temperature, 0.0, 0.0, 2.0)?,
            top_p: within("top_p", self.top_p, 1.0, 0.0, 1.0)?,
            // -1 is vLLM's spelling of "all".
            top_k: self.top_k.and_then(|top| usize::try_from(top).ok()).unwrap_or(0),
            seed: self.seed.map_or_else(|| app.ids.seed(), |seed| seed as u64),
            frequency_penalty: within("frequency_penalty", self.frequency_penalty, 0.0, -2.0, 2.0)?,
            presence_penalty: within("presence_penalty", self.presence_penalty, 0.0, -2.0, 2.0)?,
            logit_bias,
        })
    }
}

/// A schema with its name.
#[derive(Debug, Deserialize)]
pub(crate) struct JsonSchemaField {
    schema: Option<Box<RawValue>>,
}

/// `response_format`.
#[derive(Debug, Deserialize)]
pub(crate) struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<JsonSchemaField>,
}

impl ResponseFormat {
    /// The form that it asks for.
    pub(crate) fn read(self) -> Result<Form, Fault> {
        const FIELD: &str = "response_format";
        match self.kind.as_str() {
            "text" => Ok(Form::Text),
            "json_object" => Ok(Form::JsonObject),
            "json_schema" => {
                let schema = self.json_schema.and_then(|field| field.schema).ok_or_else(|| {
                    Fault::invalid("response_format.json_schema.schema is missing").at(FIELD)
                })?;
                Ok(Form::Schema { text: schema.get().to_owned(), field: FIELD })
            }
            other => {
                let message = format!(
                    "response_format.type: expected text, json_object or json_schema, got \"{other}\""
                );
                Err(Fault::invalid(message).at(FIELD))
            }
        }
    }
}

/// What vLLM adds: other ways to hold the text to something.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct GuidedFields {
    structured_outputs: Option<Structured>,
    guided_json: Option<Box<RawValue>>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<Box<RawValue>>,
    guided_whitespace_pattern: Option<Box<RawValue>>,
    structural_tag: Option<Box<RawValue>>,
    grammar: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
struct Structured {
    json: Option<Box<RawValue>>,
    regex: Option<String>,
    choice: Option<Vec<String>>,
    json_object: Option<bool>,
    grammar: Option<Box<RawValue>>,
    structural_tag: Option<Box<RawValue>>,
    whitespace_pattern: Option<Box<RawValue>>,
}

impl GuidedFields {
    /// The form that all fields, `format` among them, ask for: at most one may.
    ///
    /// # Errors
    /// Several forms, or one that is not enforced here.
    pub(crate) fn read(self, format: Form) -> Result<Form, Fault> {
        let structured = self.structured_outputs.unwrap_or_default();
        for (field, given) in [
            ("guided_grammar", self.guided_grammar.is_some()),
            ("guided_whitespace_pattern", self.guided_whitespace_pattern.is_some()),
            ("structural_tag", self.structural_tag.is_some()),
            ("grammar", self.grammar.is_some()),
            ("structured_outputs.grammar", structured.grammar.is_some()),
            ("structured_outputs.structural_tag", structured.structural_tag.is_some()),
            ("structured_outputs.whitespace_pattern", structured.whitespace_pattern.is_some()),
        ] {
            if given {
                let message = format!(
                    "{field} cannot be enforced: use a JSON Schema, a regular expression or a list of choices"
                );
                return Err(Fault::invalid(message).at(field));
            }
        }
        let mut forms = Vec::new();
        if format != Form::Text {
            forms.push(format);
        }
        for (schema, field) in
            [(self.guided_json, "guided_json"), (structured.json, "structured_outputs.json")]
        {
            if let Some(schema) = schema {
                // A schema may come as the text of one.
                let text = if is_string(&schema) {
                    read_part::<String>(&schema, field)?
                } else {
                    schema.get().to_owned()
                };
                forms.push(Form::Schema { text, field });
            }
        }
        forms.extend([self.guided_regex, structured.regex].into_iter().flatten().map(Form::Regex));
        forms.extend(
            [self.guided_choice, structured.choice].into_iter().flatten().map(Form::Choice),
        );
        if structured.json_object == Some(true) {
            forms.push(Form::JsonObject);
        }
        match forms.len() {
            0 => Ok(Form::Text),
            1 => Ok(forms.swap_remove(0)),
            _ => Err(Fault::invalid(
                "the text is asked to have several forms at once: give one of response_format, \
                 structured_outputs and guided_*",
            )),
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    role: String,
    content: Option<Box<RawValue>>,
    tool_calls: Option<Vec<CallField>>,
    function_call: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct CallField {
    function: CalledFunction,
}

#[derive(Debug, Deserialize)]
struct CalledFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

impl ChatMessage {
    /// The message as the model reads it.
    pub(crate) fn read(self) -> Result<Message, Fault> {
        let role = role(&self.role)?;
        if self.function_call.is_some() {
            return Err(
                Fault::invalid("function_call is not supported: use tool_calls").at("messages")
            );
        }
        let content = self.content.map(|content| read_content(&content)).transpose()?;
        let tool_calls = self.tool_calls.unwrap_or_default();
        if content.is_none() && tool_calls.is_empty() && role != Role::Assistant {
            let message = format!("a message of role {} has no content", self.role);
            return Err(Fault::invalid(message).at("messages"));
        }
        let tool_calls = tool_calls
            .into_iter()
            .map(|call| read_call(call.function.name, &call.function.arguments))
            .collect::<Result<_, _>>()?;
        Ok(Message { tool_calls, ..Message::new(role, content.unwrap_or_default()) })
    }
}

/// A call in a conversation's past.
///
/// # Errors
/// Arguments that are no JSON: the model would be shown a call it cannot have made.
pub(crate) fn read_call(name: String, arguments: &str) -> Result<ToolCall, Fault> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    if serde_json::from_str::<&RawValue>(arguments).is_err() {
        let message = format!("the arguments of a call of \"{name}\" are no JSON");
        return Err(Fault::invalid(message).at("messages"));
    }
    Ok(ToolCall { name, arguments: crate::wire::spaced_json(arguments) })
}

pub(crate) fn role(name: &str) -> Result<Role, Fault> {
    match name {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        other => {
            let message = format!(
                "expected the role system, developer, user, assistant or tool, got \"{other}\""
            );
            Err(Fault::invalid(message).at("messages"))
        }
    }
}

/// A part of a content.
#[derive(Debug, Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

/// A content: a text, or parts that are texts.
///
/// # Errors
/// A part that is none.
pub(crate) fn read_content(content: &RawValue) -> Result<String, Fault> {
    if content.get() == "null" {
        return Ok(String::new());
    }
    if is_string(content) {
        return read_part(content, "content");
    }
    let parts: Vec<ContentPart> = read_part(content, "content")?;
    let mut text = String::new();
    for part in parts {
        match (part.kind.as_str(), part.text, part.refusal) {
            ("text" | "input_text" | "output_text", Some(more), _) | ("refusal", _, Some(more)) => {
                text.push_str(&more);
            }
            (kind, ..) => return Err(no_part(kind)),
        }
    }
    Ok(text)
}

/// Refuses what the model cannot read.
pub(crate) fn no_part(kind: &str) -> Fault {
    Fault::invalid(format!(
        "a content part of type \"{kind}\" cannot be read: this model reads text only"
    ))
    .at("messages")
}

/// A function that may be called.
#[derive(Debug, Deserialize)]
pub(crate) struct FunctionField {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Box<RawValue>>,
}

/// The arguments of a function that names none.
pub(crate) const NO_ARGUMENTS: &str =
    r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;

impl FunctionField {
    pub(crate) fn read(self) -> Tool {
        let parameters = self.parameters.map_or_else(
            || NO_ARGUMENTS.to_owned(),
            |parameters| match parameters.get() {
                "null" => NO_ARGUMENTS.to_owned(),
                text => text.to_owned(),
            },
        );
        let description = self.description.filter(|description| !description.is_empty());
        Tool { name: self.name, description, parameters }
    }
}

/// `tool_choice`: a word, or an object that names a function.
#[derive(Debug, Deserialize)]
struct NamedChoice {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    function: Option<NamedFunction>,
}

#[derive(Debug, Deserialize)]
struct NamedFunction {
    name: String,
}

/// # Errors
/// A choice that is not known.
pub(crate) fn read_tool_choice(choice: Option<&RawValue>) -> Result<ToolChoice, Fault> {
    const FIELD: &str = "tool_choice";
    let Some(choice) = choice else { return Ok(ToolChoice::Auto) };
    if choice.get() == "null" {
        return Ok(ToolChoice::Auto);
    }
    let unknown = |got: &str| {
        Fault::invalid(format!(
            "tool_choice: expected none, auto, required or a function, got \"{got}\""
        ))
        .at(FIELD)
    };
    if is_string(choice) {
        let word: String = read_part(choice, FIELD)?;
        return match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" => Ok(ToolChoice::Required),
            other => Err(unknown(other)),
        };
    }
    let named: NamedChoice = read_part(choice, FIELD)?;
    let kind = named.kind.unwrap_or_default();
    match named.function.map(|function| function.name).or(named.name) {
        Some(name) if kind == "function" => Ok(ToolChoice::Named(name)),
        _ => Err(unknown(&kind)),
    }
}

/// `stop`, at most as many as the API takes.
///
/// # Errors
/// Too many.
pub(crate) fn read_stop(stop: Option<OneOrMany>) -> Result<Vec<String>, Fault> {
    const MOST: usize = 16;
    let stop = stop.map(OneOrMany::into_vec).unwrap_or_default();
    if stop.len() > MOST {
        let message = format!("stop: expected at most {MOST} texts, got {}", stop.len());
        return Err(Fault::invalid(message).at("stop"));
    }
    Ok(stop)
}

/// `finish_reason` of the chat and completions endpoints.
pub(crate) fn finish_reason(reason: &Reason) -> &'static str {
    match reason {
        Reason::Complete | Reason::Stop(_) => "stop",
        Reason::Length { .. } => "length",
        Reason::Calls => "tool_calls",
    }
}

/// `usage` of the chat and completions endpoints: the prompt once, the answers together.
pub(crate) fn usage<'f>(finishes: impl IntoIterator<Item = &'f Finish>) -> Value {
    let (mut prompt, mut cached, mut output) = (0, 0, 0);
    for (index, finish) in finishes.into_iter().enumerate() {
        if index == 0 {
            (prompt, cached) = (finish.prompt_tokens, finish.cached_tokens);
        }
        output += finish.output_tokens;
    }
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

/// `system_fingerprint`.
pub(crate) const FINGERPRINT: &str = concat!("molde-", env!("CARGO_PKG_VERSION"));
/// Most rivals that are shown for a token.
pub(crate) const MOST_LOGPROBS: usize = 20;
