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
}

impl Role {
    /// The name that chat templates know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
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
}

impl Message {
    /// A message of the system.
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Role::System, content: content.into() }
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
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
        let (turns, opening) = match messages {
            [] => return Err(InferError::EmptyPrompt),
            [turns @ .., Message { role: Role::Assistant, content }] if !turns.is_empty() => {
                (turns, content.as_str())
            }
            turns => (turns, ""),
        };
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
        let parts = self.render(turns)?;
        for part in &parts {
            match part {
                Part::Template(written) => {
                    tokenizer.split_control(written).into_iter().try_for_each(&mut add)?;
                }
                Part::Content(index) => add(Piece::Text(&turns[*index].content))?,
            }
        }
        add(Piece::Text(opening))?;
        ids.extend(tokenizer.encode_text(&text)?);
        Ok(ids)
    }

    /// What the template writes around the contents, and their order.
    fn render(&self, messages: &[Message]) -> Result<Vec<Part>, InferError> {
        // Private-use characters keep placeholders apart from the template's own text; quotes,
        // brackets and both cases betray a template that escapes or changes contents.
        let placeholder = |index: usize| format!("\u{E0F0}\"<&'aZ {index}\u{E0F1}");
        let failed = |source| InferError::Template { source };
        let turns: Vec<_> = messages
            .iter()
            .enumerate()
            .map(
                |(index, message)| context! { role => message.role.name(), content => placeholder(index) },
            )
            .collect();
        let template = self.environment.get_template(NAME).map_err(failed)?;
        let rendered = template
            .render(context! {
                messages => turns,
                add_generation_prompt => true,
                bos_token => defined(self.special_tokens.bos.as_deref()),
                eos_token => defined(self.special_tokens.eos.as_deref()),
            })
            .map_err(failed)?;

        let mut places = Vec::new();
        for message in 0..messages.len() {
            let placeholder = placeholder(message);
            let mut found = rendered.match_indices(&placeholder);
            let (first, others) = (found.next(), found.count());
            match first {
                Some((start, _)) if others == 0 => places.push((start, placeholder.len(), message)),
                _ => {
                    let got = others + usize::from(first.is_some());
                    return Err(InferError::TemplateContent { message, got });
                }
            }
        }
        places.sort_unstable();
        let mut parts = Vec::new();
        let mut at = 0;
        for (start, length, message) in places {
            parts.push(Part::Template(rendered[at..start].to_owned()));
            parts.push(Part::Content(message));
            at = start + length;
        }
        parts.push(Part::Template(rendered[at..].to_owned()));
        Ok(parts)
    }
}

/// A template finds a token that the model does not have undefined, hence empty.
fn defined(spelling: Option<&str>) -> Value {
    spelling.map_or(Value::UNDEFINED, Value::from)
}

/// A part of a rendered conversation.
enum Part {
    Template(String),
    /// Index of the message whose content stands here.
    Content(usize),
}
