//! The model's own chat template, rendered so that no message can leave its place.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};
use molde_vocab::TokenId;

use crate::tokenizer::Piece;
use crate::{InferError, Tokenizer};

/// Instructions that a template may spend: a bound on a template that does not end.
const TEMPLATE_FUEL: u64 = 1_000_000;
const NAME: &str = "chat";

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions to the model, before the conversation.
    System,
    /// The user, with the document.
    User,
    /// The model.
    Assistant,
    /// A tool, with what it returned for a call.
    Tool,
}

impl Role {
    /// The name that chat templates know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said: any text.
    pub content: String,
    /// What the model called; empty for the other roles.
    pub tool_calls: Vec<ToolCall>,
}

/// One call of a tool that the model has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments: a JSON text, shown to the model as it is.
    pub arguments: String,
}

impl Message {
    /// A message without calls of tools.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new() }
    }

    /// A message of the system.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// A parsed chat template (Jinja, as in tokenizer_config.json).
///
/// # What is guaranteed
/// The template is rendered with a placeholder instead of each content, control tokens are looked
/// for in what the template itself wrote, and the contents are put in as plain text. Hence:
/// - no content can become, or complete, a control token: a document that says `<|im_end|>` is
///   read as saying that;
/// - for contents without such spellings the tokens are those of the whole rendered text, to the
///   last merge, because text between two control tokens is encoded in one piece;
/// - contents are verbatim: what a template does to them (trimming, say) is not done.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    special_tokens: SpecialTokens,
}

/// Spellings that a template can write by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// `bos_token`, if the model has one.
    pub bos: Option<String>,
    /// `eos_token`, if the model has one.
    pub eos: Option<String>,
}

impl ChatTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// [`InferError::Template`] with line and problem.
    pub fn new(source: &str, special_tokens: SpecialTokens) -> Result<Self, InferError> {
        let mut environment = Environment::new();
        // As Hugging Face transformers renders them.
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|source| InferError::Template { source })?;
        environment.set_syntax(syntax);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_fuel(Some(TEMPLATE_FUEL));
        environment.add_function("raise_exception", |message: String| {
            Err::<String, _>(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|source| InferError::Template { source })?;
        Ok(Self { environment, special_tokens })
    }

    /// The tokens of a conversation, ready for the model's answer. A last message of the
    /// assistant is the beginning of that answer: its turn is left open.
    ///
    /// # Errors
    /// [`InferError::EmptyPrompt`] without messages, [`InferError::Template`] if the template
    /// fails or raises an exception, [`InferError::TemplateContent`] if it does not write every
    /// content exactly once.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
    ) -> Result<Vec<TokenId>, InferError> {
        self.encode_with_tools(tokenizer, messages, &[])
    }

    /// [`encode`](Self::encode) for a model that may call `tools`, each a JSON text that describes
    /// one and is shown to the model as it is.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode), and [`InferError::TemplateTool`] if the template does not
    /// write every tool and every call exactly once.
    pub fn encode_with_tools(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tools: &[String],
    ) -> Result<Vec<TokenId>, InferError> {
        let (turns, opening) = match messages {
            [] => return Err(InferError::EmptyPrompt),
            [turns @ .., Message { role: Role::Assistant, content, tool_calls }]
                if !turns.is_empty() && tool_calls.is_empty() =>
            {
                (turns, content.as_str())
            }
            turns => (turns, ""),
        };
        let parts = self.render(turns, tools)?;
        let mut ids = Vec::new();
        let mut text = String::new();
        let mut add = |piece| -> Result<(), InferError> {
            match piece {
                Piece::Text(more) => text.push_str(more),
                Piece::Control(id) => {
                    ids.extend(tokenizer.encode_text(&text)?);
                    text.clear();
                    ids.push(id);
                }
            }
            Ok(())
        };
        for part in &parts {
            match part {
                Part::Template(written) => {
                    tokenizer.split_control(written).into_iter().try_for_each(&mut add)?;
                }
                Part::Verbatim(content) => add(Piece::Text(content))?,
            }
        }
        add(Piece::Text(opening))?;
        ids.extend(tokenizer.encode_text(&text)?);
        Ok(ids)
    }

    /// What the template writes around the texts of others, and their order.
    fn render<'t>(
        &self,
        messages: &'t [Message],
        tools: &'t [String],
    ) -> Result<Vec<Part<'t>>, InferError> {
        let failed = |source| InferError::Template { source };
        let mut slots = Vec::new();
        let mut slot = |kind, index, text: &'t str| {
            let placeholder = Slot::placeholder(kind, slots.len());
            slots.push(Slot { kind, index, text });
            placeholder
        };
        let mut calls = 0;
        let turns: Vec<_> = messages
            .iter()
            .enumerate()
            .map(|(index, message)| {
                // A template asks whether there is a content: an empty one stays empty.
                let content = match message.content.as_str() {
                    "" => String::new(),
                    content => slot(SlotKind::Content, index, content),
                };
                let tool_calls: Vec<_> = message
                    .tool_calls
                    .iter()
                    .map(|call| {
                        let name = slot(SlotKind::CallName, calls, &call.name);
                        let arguments = slot(SlotKind::CallArguments, calls, &call.arguments);
                        calls += 1;
                        let function = context! { name, arguments };
                        context! { type => "function", function }
                    })
                    .collect();
                let role = message.role.name();
                if tool_calls.is_empty() {
                    context! { role, content }
                } else {
                    context! { role, content, tool_calls }
                }
            })
            .collect();
        let shown: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| slot(SlotKind::Tool, index, tool))
            .collect();
        let template = self.environment.get_template(NAME).map_err(failed)?;
        let rendered = template
            .render(context! {
                messages => turns,
                tools => if shown.is_empty() { Value::UNDEFINED } else { Value::from(shown) },
                add_generation_prompt => true,
                bos_token => defined(self.special_tokens.bos.as_deref()),
                eos_token => defined(self.special_tokens.eos.as_deref()),
            })
            .map_err(failed)?;

        let mut places = Vec::new();
        for (number, slot) in slots.iter().enumerate() {
            places.push((slot.find(number, &rendered)?, slot.text));
        }
        places.sort_unstable_by_key(|(place, _)| place.start);
        let mut parts = Vec::new();
        let mut at = 0;
        for (place, text) in places {
            parts.push(Part::Template(rendered[at..place.start].to_owned()));
            parts.push(Part::Verbatim(text));
            at = place.end;
        }
        parts.push(Part::Template(rendered[at..].to_owned()));
        Ok(parts)
    }
}

/// A text of others that the template is to write.
struct Slot<'t> {
    kind: SlotKind,
    /// Which one of its kind.
    index: usize,
    text: &'t str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Content,
    CallName,
    CallArguments,
    Tool,
}

impl Slot<'_> {
    /// What the template is given in place of the text. Private-use characters keep placeholders
    /// apart from the template's own text; in contents quotes, brackets and both cases betray a
    /// template that escapes or changes them.
    fn placeholder(kind: SlotKind, number: usize) -> String {
        match kind {
            SlotKind::Content => format!("\u{E0F0}\"<&'aZ {number}\u{E0F1}"),
            SlotKind::CallName => format!("\u{E0F0}aZ {number}\u{E0F1}"),
            SlotKind::CallArguments | SlotKind::Tool => format!("\u{E0F0}{number}\u{E0F1}"),
        }
    }

    /// Where the text belongs. A JSON text is given to the template as a string and replaces it
    /// with its quotes, which the template's `tojson` writes.
    fn find(&self, number: usize, rendered: &str) -> Result<std::ops::Range<usize>, InferError> {
        let mut placeholder = Self::placeholder(self.kind, number);
        if matches!(self.kind, SlotKind::CallArguments | SlotKind::Tool) {
            let quoted = format!("\"{placeholder}\"");
            if rendered.contains(&quoted) {
                placeholder = quoted;
            }
        }
        let mut found = rendered.match_indices(&placeholder);
        let (first, others) = (found.next(), found.count());
        match first {
            Some((start, _)) if others == 0 => Ok(start..start + placeholder.len()),
            _ => {
                let got = others + usize::from(first.is_some());
                let what = match self.kind {
                    SlotKind::Content => {
                        return Err(InferError::TemplateContent { message: self.index, got });
                    }
                    SlotKind::CallName => "the name of tool call",
                    SlotKind::CallArguments => "the arguments of tool call",
                    SlotKind::Tool => "tool",
                };
                Err(InferError::TemplateTool { what, index: self.index, got })
            }
        }
    }
}

/// A template finds a token that the model does not have undefined, hence empty.
fn defined(spelling: Option<&str>) -> Value {
    spelling.map_or(Value::UNDEFINED, Value::from)
}

/// A part of a rendered conversation.
enum Part<'t> {
    Template(String),
    /// Text of others: it holds no control token, whatever it says.
    Verbatim(&'t str),
}
