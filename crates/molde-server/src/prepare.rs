//! From a request to what the generator needs: prompt tokens, constraint, budget. Every reason to
//! refuse a request is found here, before anything is generated.

use std::sync::Arc;

use molde::{Language, form_instructions};
use molde_constraint::{CallMarkers, Content};
use molde_infer::{Message, Role, Sampling};
use molde_vocab::{TokenConstraint, TokenId};

use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::form::CompiledForm;
use crate::reader::Reading;
use crate::request::{Form, Prompt, Request, Tool, ToolChoice};
use crate::wire::spaced_json;

/// Candidates that a report scores beside the chosen token: none, its own score is enough.
const REPORT_SCORES: usize = 0;
/// Choices and characters of a pattern that the model is shown.
const SHOWN_CHOICES: usize = 100;
const SHOWN_PATTERN: usize = 2000;

/// A request that will be answered.
pub(crate) struct Prepared {
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) max_tokens: usize,
    /// One for each answer.
    pub(crate) constraints: Vec<Option<Box<dyn TokenConstraint>>>,
    pub(crate) sampling: Sampling,
    pub(crate) scores: Option<usize>,
    pub(crate) reading: Reading,
}

/// What an answer is held to, compiled.
struct Plan<'r> {
    form: Option<Arc<CompiledForm>>,
    /// The call of a tool, and how it is marked.
    call: Option<(Arc<CompiledForm>, CallMarkers)>,
    request: &'r Request,
    /// The beginning of the answer, as tokens.
    prefill: Vec<TokenId>,
}

/// Prepares a request. Compiles schemas and makes masks: to be called where blocking is allowed.
///
/// # Errors
/// Everything that is wrong with the request.
pub(crate) fn prepare(app: &App, request: &Request) -> Result<Prepared, Fault> {
    check(app, request)?;
    let form = match &request.form {
        Form::Text | Form::Regex(_) | Form::Choice(_) => None,
        Form::JsonObject => Some(app.forms.any_object()?),
        Form::Schema { text, field } => {
            check_schema(app, text, "the schema").map_err(|fault| fault.at(*field))?;
            Some(
                app.forms
                    .schema(text, "the schema", request.extension.open_objects)
                    .map_err(|fault| fault.at(*field))?,
            )
        }
    };
    let offered = offered(request)?;
    let call = if offered.is_empty() {
        None
    } else {
        for tool in &offered {
            check_schema(app, &tool.parameters, &format!("the schema of tool \"{}\"", tool.name))
                .map_err(|fault| fault.at("tools"))?;
        }
        let form = app
            .forms
            .call(&offered, request.extension.open_objects)
            .map_err(|fault| fault.at("tools"))?;
        let markers = app.markers.clone().ok_or_else(|| {
            Fault::invalid("the model was not made for tools: its vocabulary has no <tool_call>")
                .at("tools")
        })?;
        Some((form, markers))
    };
    let prefill_text = prefill(&request.prompt);
    let plan = Plan {
        form,
        call,
        request,
        prefill: app.tokenizer.encode_text(prefill_text).map_err(Fault::from)?,
    };
    let prompt = encode(app, request, &offered)?;
    let mut constraints = Vec::new();
    let mut needed_tokens = 0;
    for _ in 0..request.choices {
        let mut constraint = plan.constraint(app)?;
        if let Some(constraint) = &mut constraint {
            for &token in &plan.prefill {
                constraint.accept(token).map_err(|_| {
                    Fault::invalid(
                        "the beginning of the answer (the last message) does not fit the form asked for",
                    )
                    .at("messages")
                })?;
            }
            needed_tokens = constraint.completion_tokens();
        }
        constraints.push(constraint);
    }
    let (max_tokens, limited_by_context) = budget(app, request, prompt.len(), needed_tokens)?;
    let is_json = matches!(request.form, Form::JsonObject | Form::Schema { .. });
    let calls_only = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
        && plan.call.is_some();
    let wants_scores = request.scores.is_some();
    Ok(Prepared {
        prompt,
        max_tokens,
        constraints,
        sampling: request.sampling.clone(),
        scores: request.scores.or(request.extension.report.then_some(REPORT_SCORES)),
        reading: Reading {
            stop: request.stop.clone(),
            is_free: request.form == Form::Text && !calls_only,
            is_json,
            call_marker: plan.call.as_ref().map(|(_, markers)| markers.open),
            accept_closed: request.extension.close,
            limited_by_context,
            wants_scores,
            wants_report: request.extension.report,
            prefill: prefill_text.to_owned(),
        },
    })
}

/// The prompt's tokens, for whoever only counts them.
pub(crate) fn count(app: &App, request: &Request) -> Result<usize, Fault> {
    check(app, request)?;
    Ok(encode(app, request, &offered(request)?)?.len())
}

fn check(app: &App, request: &Request) -> Result<(), Fault> {
    let limits = &app.config.limits;
    let too_many = |what: &str, got: usize, most: usize| {
        Fault::invalid(format!("{what}: expected at most {most}, got {got}"))
    };
    if let Prompt::Chat(messages) = &request.prompt {
        if messages.is_empty() {
            return Err(Fault::invalid("there is no message: expected at least one").at("messages"));
        }
        if messages.len() > limits.messages {
            return Err(too_many("messages", messages.len(), limits.messages).at("messages"));
        }
    }
    if request.tools.len() > limits.tools {
        return Err(too_many("tools", request.tools.len(), limits.tools).at("tools"));
    }
    if request.choices == 0 || request.choices > limits.choices {
        return Err(Fault::invalid(format!(
            "n: expected 1 to {}, got {}",
            limits.choices, request.choices
        ))
        .at("n"));
    }
    if request.max_tokens == Some(0) {
        return Err(Fault::invalid("the token limit is 0: expected at least 1").at("max_tokens"));
    }
    if request.stop.iter().any(String::is_empty) {
        return Err(
            Fault::invalid("a stop text is empty: expected at least one character").at("stop")
        );
    }
    Ok(())
}

fn check_schema(app: &App, text: &str, what: &str) -> Result<(), Fault> {
    let most = app.config.limits.schema_bytes;
    if text.len() > most {
        let message = format!("{what} has {} bytes: expected at most {most}", text.len());
        return Err(Fault::new(Kind::Form, message));
    }
    Ok(())
}

/// The tools that the answer may call.
fn offered(request: &Request) -> Result<Vec<&Tool>, Fault> {
    let mut seen: Vec<&str> = Vec::new();
    for tool in &request.tools {
        if tool.name.is_empty() {
            return Err(Fault::invalid("a tool has no name").at("tools"));
        }
        if seen.contains(&tool.name.as_str()) {
            let message = format!("two tools have the name \"{}\"", tool.name);
            return Err(Fault::invalid(message).at("tools"));
        }
        seen.push(&tool.name);
    }
    match &request.tool_choice {
        ToolChoice::None => Ok(Vec::new()),
        ToolChoice::Required if request.tools.is_empty() => {
            Err(Fault::invalid("a call is required, but there are no tools").at("tool_choice"))
        }
        ToolChoice::Auto | ToolChoice::Required => Ok(request.tools.iter().collect()),
        ToolChoice::Named(name) => {
            let named = request.tools.iter().find(|tool| tool.name == *name);
            named.map(|tool| vec![tool]).ok_or_else(|| {
                let message = format!("there is no tool \"{name}\" among the tools");
                Fault::invalid(message).at("tool_choice")
            })
        }
    }
}

/// The beginning of the answer that the request brings.
fn prefill(prompt: &Prompt) -> &str {
    match prompt {
        Prompt::Chat(messages) => match messages.as_slice() {
            [_, .., last] if last.role == Role::Assistant && last.tool_calls.is_empty() => {
                &last.content
            }
            _ => "",
        },
        Prompt::Text(_) => "",
    }
}

impl Plan<'_> {
    fn constraint(&self, app: &App) -> Result<Option<Box<dyn TokenConstraint>>, Fault> {
        let text = self.text_constraint(app)?;
        let Some((call, markers)) = &self.call else {
            return Ok(text);
        };
        let content = match (&self.request.tool_choice, text) {
            (ToolChoice::Required | ToolChoice::Named(_), _) => Content::Nothing,
            (_, Some(constraint)) => Content::Constrained(constraint),
            (_, None) => Content::Free,
        };
        // Who names the tool asks for one call of it.
        let is_single = !self.request.parallel_calls
            || matches!(self.request.tool_choice, ToolChoice::Named(_));
        let most = if is_single { 1 } else { app.config.limits.calls };
        Ok(Some(Box::new(app.forms.calls(call, content, markers.clone(), most))))
    }

    fn text_constraint(&self, app: &App) -> Result<Option<Box<dyn TokenConstraint>>, Fault> {
        let prefilled = !self.prefill.is_empty();
        Ok(match (&self.request.form, &self.form) {
            (Form::Regex(pattern), _) => Some(app.forms.pattern(pattern, prefilled)?),
            (Form::Choice(texts), _) => Some(app.forms.choices(texts, prefilled)?),
            (_, Some(form)) => Some(Box::new(app.forms.constraint(form, prefilled))),
            (_, None) => None,
        })
    }
}

/// The tokens of the prompt, with the form of the answer and the tools shown to the model.
fn encode(app: &App, request: &Request, offered: &[&Tool]) -> Result<Vec<TokenId>, Fault> {
    let messages = match &request.prompt {
        Prompt::Text(text) => return Ok(app.tokenizer.encode_text(text)?),
        Prompt::Chat(messages) => messages,
    };
    let mut messages = messages.clone();
    let calls_only = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    if request.extension.show_schema.unwrap_or(app.config.show_schema)
        && (!calls_only || offered.is_empty())
        && let Some(shown) = shown_form(&request.form)
    {
        match messages.first_mut() {
            Some(first) if first.role == Role::System => {
                let gap = if first.content.trim().is_empty() { "" } else { "\n" };
                first.content = format!("{}{gap}{shown}", first.content.trim_end());
            }
            _ => messages.insert(0, Message::system(shown)),
        }
    }
    let tools: Vec<String> = offered.iter().map(|tool| tool_text(tool)).collect();
    Ok(app.template.encode_with_tools(&app.tokenizer, &messages, &tools)?)
}

/// What the model is told of the form of its answer.
fn shown_form(form: &Form) -> Option<String> {
    match form {
        Form::Text => None,
        Form::JsonObject => Some("Answer only with a JSON object.".to_owned()),
        Form::Schema { text, .. } => Some(form_instructions(text, Language::English)),
        Form::Regex(pattern) => (pattern.len() <= SHOWN_PATTERN).then(|| {
            format!("Answer only with a text that matches this regular expression:\n{pattern}")
        }),
        Form::Choice(texts) => (texts.len() <= SHOWN_CHOICES)
            .then(|| format!("Answer only with one of these texts:\n{}", texts.join("\n"))),
    }
}

/// A tool as the models that know tools were trained to read it.
fn tool_text(tool: &Tool) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let description = match &tool.description {
        Some(description) => format!(r#""description": {}, "#, text(description)),
        None => String::new(),
    };
    format!(
        r#"{{"type": "function", "function": {{"name": {}, {description}"parameters": {}}}}}"#,
        text(&tool.name),
        spaced_json(&tool.parameters),
    )
}

/// The token limit, and whether it is what the context leaves.
fn budget(
    app: &App,
    request: &Request,
    prompt_tokens: usize,
    needed_tokens: usize,
) -> Result<(usize, bool), Fault> {
    let own = app.context_tokens;
    let context_tokens = request.context_tokens.map_or(own, |tokens| tokens.min(own));
    let room = context_tokens.saturating_sub(prompt_tokens);
    if room == 0 || room < needed_tokens {
        let shortest = match needed_tokens {
            0 => String::new(),
            needed => format!(" and the shortest answer {needed}"),
        };
        return Err(Fault::new(
            Kind::ContextLength,
            format!(
                "prompt is too long: {prompt_tokens} tokens{shortest} > {context_tokens} maximum; \
                 this model's maximum context length is {context_tokens} tokens"
            ),
        )
        .at("messages"));
    }
    let asked = request.max_tokens.unwrap_or(app.config.limits.default_max_tokens);
    let asked = if request.max_tokens.is_none() { asked.max(needed_tokens) } else { asked };
    if needed_tokens > asked {
        return Err(Fault::new(
            Kind::BudgetTooSmall,
            format!(
                "the shortest valid answer has {needed_tokens} tokens, the limit is {asked}: raise \
                 the token limit"
            ),
        )
        .at("max_tokens"));
    }
    Ok((asked.min(room), room < asked))
}
