//! The wire types of `POST /v1/messages`, and what they mean.

use molde::Spelling;
use molde_infer::{Message, Role, Sampling};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::fault::{Dialect, Fault};
use crate::openai::common::{NO_ARGUMENTS, no_part, read_call};
use crate::request::{Extension, Form, Prompt, Request, Tool, ToolChoice};
use crate::wire::{is_string, read_part, token_limit, within};

/// The body of a request. What is not named here changes nothing of the answer.
#[derive(Debug, Deserialize)]
pub(super) struct MessagesRequest {
    pub(super) model: Option<String>,
    messages: Option<Vec<MessageField>>,
    system: Option<Box<RawValue>>,
    max_tokens: Option<i64>,
    output_config: Option<OutputConfig>,
    /// The field of the beta.
    output_format: Option<FormatField>,
    tools: Option<Vec<ToolField>>,
    tool_choice: Option<ChoiceField>,
    pub(super) stream: Option<bool>,
    stop_sequences: Option<Vec<String>>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<usize>,
    pub(super) molde: Option<Extension>,
}

#[derive(Debug, Deserialize)]
struct OutputConfig {
    format: Option<FormatField>,
}

#[derive(Debug, Deserialize)]
struct FormatField {
    #[serde(rename = "type")]
    kind: String,
    schema: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct MessageField {
    role: String,
    content: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    content: Option<Box<RawValue>>,
    source: Option<Source>,
}

#[derive(Debug, Deserialize)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    data: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToolField {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: String,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct ChoiceField {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

/// What a request means, and what became of the bounds in its descriptions.
pub(super) struct Meaning {
    pub(super) request: Request,
    pub(super) recovery: Vec<molde::RecoveredNode>,
}

impl MessagesRequest {
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(
        self,
        app: &App,
        spelling: Spelling,
        needs_limit: bool,
    ) -> Result<Meaning, Fault> {
        let extension = self.molde.unwrap_or_default();
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            let text = read_text(system, "system")?;
            if !text.is_empty() {
                messages.push(Message::system(text));
            }
        }
        let turns = self
            .messages
            .ok_or_else(|| Fault::invalid("messages: there is none").at("messages"))?;
        if turns.is_empty() {
            return Err(Fault::invalid("messages: at least one message is required").at("messages"));
        }
        for message in turns {
            message.read(&mut messages)?;
        }
        let max_tokens = token_limit("max_tokens", self.max_tokens)?;
        if needs_limit && max_tokens.is_none() {
            return Err(Fault::invalid("max_tokens: field required").at("max_tokens"));
        }
        let recovers = extension.recover_bounds.unwrap_or(app.config.recover_bounds);
        let spelling = recovers.then_some(spelling);
        let mut recovery = Vec::new();
        let format = match (self.output_config.and_then(|config| config.format), self.output_format)
        {
            (Some(_), Some(_)) => {
                return Err(Fault::invalid(
                    "output_format and output_config.format were both given: use output_config.format",
                ));
            }
            (format, old) => format.or(old),
        };
        let form = match format {
            None => Form::Text,
            Some(format) => format.read(spelling, &mut recovery)?,
        };
        let choice = self.tool_choice;
        let parallel_calls =
            !choice.as_ref().and_then(|choice| choice.disable_parallel_tool_use).unwrap_or(false);
        let tools: Vec<Tool> = self
            .tools
            .unwrap_or_default()
            .into_iter()
            .map(ToolField::read)
            .collect::<Result<_, _>>()?;
        let request = Request {
            tool_choice: choice.map_or(Ok(ToolChoice::Auto), ChoiceField::read)?,
            tools,
            parallel_calls,
            form,
            sampling: Sampling {
                temperature: within("temperature", self.temperature, 0.0, 0.0, 2.0)?,
                top_p: within("top_p", self.top_p, 1.0, 0.0, 1.0)?,
                top_k: self.top_k.unwrap_or(0),
                seed: app.ids.seed(),
                ..Sampling::default()
            },
            max_tokens,
            stop: self.stop_sequences.unwrap_or_default(),
            extension,
            ..Request::new(Prompt::Chat(messages))
        };
        Ok(Meaning { request, recovery })
    }
}

impl FormatField {
    fn read(
        self,
        recovers: Option<Spelling>,
        recovery: &mut Vec<molde::RecoveredNode>,
    ) -> Result<Form, Fault> {
        const FIELD: &str = "output_config.format";
        if self.kind != "json_schema" {
            let message = format!("{FIELD}.type: expected json_schema, got \"{}\"", self.kind);
            return Err(Fault::invalid(message).at(FIELD));
        }
        let schema = self
            .schema
            .ok_or_else(|| Fault::invalid(format!("{FIELD}.schema is missing")).at(FIELD))?;
        let text = if let Some(spelling) = recovers {
            let recovered = molde::recover_bounds(schema.get(), spelling);
            *recovery = recovered.nodes;
            recovered.schema_text
        } else {
            schema.get().to_owned()
        };
        Ok(Form::Schema { text, field: FIELD })
    }
}

impl MessageField {
    /// Appends the message: several, where results of tools stand beside text.
    fn read(self, messages: &mut Vec<Message>) -> Result<(), Fault> {
        let role = match self.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => {
                let message =
                    format!("messages: expected the role user or assistant, got \"{other}\"");
                return Err(Fault::invalid(message).at("messages"));
            }
        };
        if is_string(&self.content) {
            messages.push(Message::new(role, read_part::<String>(&self.content, "content")?));
            return Ok(());
        }
        let blocks: Vec<Block> = read_part(&self.content, "content")?;
        let mut text = String::new();
        let mut tool_calls = Vec::new();
        let mut results = Vec::new();
        let mut has_text = false;
        for block in blocks {
            match block.kind.as_str() {
                "text" => {
                    text.push_str(&block.text.unwrap_or_default());
                    has_text = true;
                }
                "tool_use" if role == Role::Assistant => {
                    let name = block.name.unwrap_or_default();
                    let input =
                        block.input.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
                    tool_calls.push(read_call(name, &input)?);
                }
                "tool_result" if role == Role::User => {
                    let content = block.content.map(|content| read_text(&content, "content"));
                    results
                        .push(Message::new(Role::Tool, content.transpose()?.unwrap_or_default()));
                }
                "document" => match block.source {
                    Some(Source { kind, data: Some(data) }) if kind == "text" => {
                        text.push_str(&data);
                        has_text = true;
                    }
                    _ => return Err(no_part("document")),
                },
                // What a model thought is not shown to another.
                "thinking" | "redacted_thinking" => {}
                other => return Err(no_part(other)),
            }
        }
        let is_alone = results.is_empty();
        messages.append(&mut results);
        if has_text || !tool_calls.is_empty() || is_alone {
            messages.push(Message { tool_calls, ..Message::new(role, text) });
        }
        Ok(())
    }
}

/// A text, or blocks that are texts.
fn read_text(raw: &RawValue, name: &str) -> Result<String, Fault> {
    if raw.get() == "null" {
        return Ok(String::new());
    }
    if is_string(raw) {
        return read_part(raw, name);
    }
    let blocks: Vec<Block> = read_part(raw, name)?;
    let mut text = String::new();
    for block in blocks {
        match (block.kind.as_str(), block.text) {
            ("text", Some(more)) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&more);
            }
            (kind, _) => return Err(no_part(kind)),
        }
    }
    Ok(text)
}

impl ToolField {
    fn read(self) -> Result<Tool, Fault> {
        if let Some(kind) = self.kind.filter(|kind| kind != "custom") {
            let message =
                format!("tools: the built-in tool \"{kind}\" is not here: expected custom tools");
            return Err(Fault::invalid(message).at("tools"));
        }
        let description = self.description.filter(|description| !description.is_empty());
        let parameters =
            self.input_schema.map_or_else(|| NO_ARGUMENTS.to_owned(), |raw| raw.get().to_owned());
        Ok(Tool { name: self.name, description, parameters })
    }
}

impl ChoiceField {
    fn read(self) -> Result<ToolChoice, Fault> {
        match (self.kind.as_str(), self.name) {
            ("auto", _) => Ok(ToolChoice::Auto),
            ("any", _) => Ok(ToolChoice::Required),
            ("none", _) => Ok(ToolChoice::None),
            ("tool", Some(name)) => Ok(ToolChoice::Named(name)),
            (other, _) => {
                let message = format!(
                    "tool_choice: expected auto, any, none or a tool with a name, got \"{other}\""
                );
                Err(Fault::invalid(message).at("tool_choice"))
            }
        }
    }
}

/// The dialect of this folder.
pub(super) const DIALECT: Dialect = Dialect::Anthropic;
