//! Compiled forms and the matchers that serve them, kept between requests.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use molde::{Contract, RawJson, close_objects};
use molde_constraint::{
    CallMarkers, Calls, Choices, Content, Matcher, MatcherOptions, PatternConstraint,
    SchemaConstraint, Segmentation,
};
use molde_schema::{CompiledSchema, Registry};
use molde_vocab::{ConstraintError, TokenConstraint, TokenId, TokenMask, Vocabulary};

use crate::config::Limits;
use crate::fault::{Fault, Kind};
use crate::request::Tool;

/// Where the schemas of tools are found by the schema of a call.
const TOOL_BASE: &str = "molde:///tool/";

/// A schema in the form that constraints are made from.
#[derive(Debug)]
pub(crate) struct CompiledForm {
    /// What it was compiled from: schemas with equal keys are one form.
    key: String,
    schema: Arc<CompiledSchema>,
    /// Whether it is no longer kept, so that its matchers are not to be kept either.
    is_forgotten: AtomicBool,
}

/// Keeps the most recently used forms, and the matchers that are not in use.
#[derive(Debug)]
pub(crate) struct Forms {
    vocabulary: Arc<Vocabulary>,
    capacity: usize,
    max_text_bytes: usize,
    /// Most recently used last.
    compiled: Mutex<VecDeque<Arc<CompiledForm>>>,
    idle: Arc<Idle>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Matchers that are not in use, the most recently used last.
#[derive(Debug)]
struct Idle {
    max_bytes: usize,
    matchers: Mutex<VecDeque<IdleMatcher>>,
}

#[derive(Debug)]
struct IdleMatcher {
    form: Arc<CompiledForm>,
    matcher: Matcher<SchemaConstraint>,
    bytes: usize,
}

impl Forms {
    pub(crate) fn new(vocabulary: Arc<Vocabulary>, limits: &Limits) -> Self {
        let max_bytes = limits.mask_bytes;
        Self {
            vocabulary,
            capacity: limits.compiled_forms,
            max_text_bytes: limits.compiled_text_bytes,
            compiled: Mutex::default(),
            idle: Arc::new(Idle { max_bytes, matchers: Mutex::default() }),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// How often a form was found compiled, and how often it was not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    /// The form of a schema; `what` names it in an error. Unless it is `open`, its objects are
    /// closed to members that they do not declare: nobody asked for them.
    pub(crate) fn schema(
        &self,
        text: &str,
        what: &str,
        open: bool,
    ) -> Result<Arc<CompiledForm>, Fault> {
        self.find(&key_of(text, open), || {
            CompiledSchema::compile(&closed_unless(open, text), &options())
                .map_err(|error| Fault::schema(what, &error))
        })
    }

    /// The form of any JSON object.
    pub(crate) fn any_object(&self) -> Result<Arc<CompiledForm>, Fault> {
        self.schema(r#"{"type": "object"}"#, "any object", true)
    }

    /// The form of a call of one of `tools`: `{"name": …, "arguments": {…}}`.
    pub(crate) fn call(&self, tools: &[&Tool], open: bool) -> Result<Arc<CompiledForm>, Fault> {
        let arguments =
            |index: usize| format!(r#"{{"type": "object", "$ref": "{TOOL_BASE}{index}"}}"#);
        let branches: Vec<String> = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| {
                let name = serde_json::Value::from(tool.name.as_str());
                let arguments = arguments(index);
                format!(
                    r#"{{"type": "object", "properties": {{"name": {{"const": {name}}}, "arguments": {arguments}}}, "required": ["name", "arguments"], "additionalProperties": false}}"#
                )
            })
            .collect();
        let text = format!(r#"{{"anyOf": [{}]}}"#, branches.join(", "));
        let parameters: Vec<&str> = tools.iter().map(|tool| tool.parameters.as_str()).collect();
        let key = key_of(&format!("{text}\n{}", parameters.join("\n")), open);
        self.find(&key, || {
            let mut registry = Registry::new();
            for (index, tool) in tools.iter().enumerate() {
                // Alone first, so that places in an error are places in the tool's own schema.
                let what = format!("the schema of tool \"{}\"", tool.name);
                self.schema(&tool.parameters, &what, open)?;
                let parameters = closed_unless(open, &tool.parameters);
                registry.insert(&format!("{TOOL_BASE}{index}"), &*parameters);
                CompiledSchema::compile_with(&arguments(index), &registry, &options()).map_err(
                    |error| {
                        Fault::schema(&format!("{what}, of which arguments are objects,"), &error)
                    },
                )?;
            }
            CompiledSchema::compile_with(&text, &registry, &options())
                .map_err(|error| Fault::schema("the choice of tools", &error))
        })
    }

    fn find(
        &self,
        key: &str,
        compile: impl FnOnce() -> Result<CompiledSchema, Fault>,
    ) -> Result<Arc<CompiledForm>, Fault> {
        {
            let mut compiled = lock(&self.compiled);
            if let Some(at) = compiled.iter().position(|form| form.key == key)
                && let Some(form) = compiled.remove(at)
            {
                compiled.push_back(Arc::clone(&form));
                self.hits.fetch_add(1, Relaxed);
                return Ok(form);
            }
        }
        self.misses.fetch_add(1, Relaxed);
        let form = Arc::new(CompiledForm {
            key: key.to_owned(),
            schema: Arc::new(compile()?),
            is_forgotten: AtomicBool::new(false),
        });
        let mut compiled = lock(&self.compiled);
        compiled.push_back(Arc::clone(&form));
        let mut text_bytes: usize = compiled.iter().map(|form| form.key.len()).sum();
        // The newest one stays, however large it is.
        while compiled.len() > 1
            && (compiled.len() > self.capacity || text_bytes > self.max_text_bytes)
            && let Some(oldest) = compiled.pop_front()
        {
            text_bytes -= oldest.key.len();
            oldest.is_forgotten.store(true, Relaxed);
            lock(&self.idle.matchers).retain(|idle| !Arc::ptr_eq(&idle.form, &oldest));
        }
        Ok(form)
    }

    /// A matcher of a form. `prefilled`: its text begins with tokens that it did not choose.
    fn matcher(&self, form: &Arc<CompiledForm>, prefilled: bool) -> Matcher<SchemaConstraint> {
        if !prefilled {
            let mut idle = lock(&self.idle.matchers);
            let found = idle.iter().rposition(|idle| idle.form.key == form.key);
            if let Some(idle) = found.and_then(|at| idle.remove(at)) {
                return idle.matcher;
            }
        }
        let automaton = SchemaConstraint::new(&form.schema);
        Matcher::new(automaton, Arc::clone(&self.vocabulary), matcher_options(prefilled))
    }

    /// The constraint of a form.
    pub(crate) fn constraint(&self, form: &Arc<CompiledForm>, prefilled: bool) -> Held {
        let matcher = self.matcher(form, prefilled);
        Held::new(Inner::Schema(Box::new(matcher)), form, &self.idle, prefilled)
    }

    /// The constraint of text that may hold calls.
    pub(crate) fn calls(
        &self,
        form: &Arc<CompiledForm>,
        content: Content,
        markers: CallMarkers,
        most_calls: usize,
    ) -> Held {
        let calls = Calls::new(content, self.matcher(form, false), markers, most_calls);
        Held::new(Inner::Calls(Box::new(calls)), form, &self.idle, false)
    }

    /// The constraint of a regular expression.
    pub(crate) fn pattern(
        &self,
        pattern: &str,
        prefilled: bool,
    ) -> Result<Box<dyn TokenConstraint>, Fault> {
        let constraint = PatternConstraint::new(pattern).map_err(|error| {
            Fault::new(Kind::Form, format!("the pattern cannot be enforced: {error}"))
        })?;
        Ok(Box::new(Matcher::new(
            constraint,
            Arc::clone(&self.vocabulary),
            matcher_options(prefilled),
        )))
    }

    /// The constraint of a list of texts.
    pub(crate) fn choices(
        &self,
        texts: &[String],
        prefilled: bool,
    ) -> Result<Box<dyn TokenConstraint>, Fault> {
        let constraint = Choices::new(texts).map_err(|error| {
            Fault::new(Kind::Form, format!("the choices cannot be enforced: {error}"))
        })?;
        Ok(Box::new(Matcher::new(
            constraint,
            Arc::clone(&self.vocabulary),
            matcher_options(prefilled),
        )))
    }
}

/// What a form is known by: no schema begins as an open one's key does.
fn key_of(text: &str, open: bool) -> String {
    if open { format!("open {text}") } else { text.to_owned() }
}

fn closed_unless(open: bool, text: &str) -> Cow<'_, str> {
    if open { Cow::Borrowed(text) } else { Cow::Owned(close_objects(text).text) }
}

fn options() -> molde::CompileOptions {
    Contract::<RawJson>::default_options()
}

/// The beginning of an answer that somebody else wrote is rarely cut where the tokenizer cuts it.
fn matcher_options(prefilled: bool) -> MatcherOptions {
    let segmentation = if prefilled { Segmentation::Any } else { Segmentation::Canonical };
    MatcherOptions { segmentation, ..MatcherOptions::default() }
}

/// A constraint whose matcher is kept for the next request when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// `None` only while it is being dropped.
    inner: Option<Inner>,
    form: Arc<CompiledForm>,
    idle: Arc<Idle>,
    prefilled: bool,
    /// Whether all work on it has come to its end: what a panic interrupts may be half changed.
    is_whole: bool,
}

#[derive(Debug)]
enum Inner {
    Schema(Box<Matcher<SchemaConstraint>>),
    Calls(Box<Calls<SchemaConstraint>>),
}

impl Held {
    fn new(inner: Inner, form: &Arc<CompiledForm>, idle: &Arc<Idle>, prefilled: bool) -> Self {
        let (form, idle) = (Arc::clone(form), Arc::clone(idle));
        Self { inner: Some(inner), form, idle, prefilled, is_whole: true }
    }

    fn work<'h, T>(&'h mut self, work: impl FnOnce(&'h mut dyn TokenConstraint) -> T) -> T {
        self.is_whole = false;
        let result = work(match self.inner.as_mut().expect("only dropping takes it") {
            Inner::Schema(matcher) => &mut **matcher,
            Inner::Calls(calls) => &mut **calls,
        });
        self.is_whole = true;
        result
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_whole || self.prefilled || self.form.is_forgotten.load(Relaxed) {
            return;
        }
        let mut matcher = match self.inner.take() {
            Some(Inner::Schema(matcher)) => *matcher,
            Some(Inner::Calls(calls)) => calls.into_matcher(),
            None => return,
        };
        matcher.reset();
        let bytes = matcher.memory_usage();
        if bytes > self.idle.max_bytes {
            return;
        }
        let mut idle = lock(&self.idle.matchers);
        idle.push_back(IdleMatcher { form: Arc::clone(&self.form), matcher, bytes });
        let mut total: usize = idle.iter().map(|idle| idle.bytes).sum();
        while total > self.idle.max_bytes {
            total -= idle.pop_front().map_or(total, |idle| idle.bytes);
        }
    }
}

impl TokenConstraint for Held {
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError> {
        self.work(|constraint| constraint.mask())
    }

    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError> {
        self.work(|constraint| constraint.mask_within(remaining_tokens))
    }

    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool {
        self.work(|constraint| constraint.fits(token, remaining_tokens))
    }

    fn completion_tokens(&mut self) -> usize {
        self.work(TokenConstraint::completion_tokens)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        self.work(|constraint| constraint.accept(token))
    }

    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError> {
        self.work(|constraint| constraint.rollback(tokens))
    }

    fn forced(&mut self) -> Option<TokenId> {
        self.work(TokenConstraint::forced)
    }

    fn is_complete(&mut self) -> bool {
        self.work(TokenConstraint::is_complete)
    }

    fn is_finished(&mut self) -> bool {
        self.work(TokenConstraint::is_finished)
    }

    fn undecided(&self) -> u64 {
        match &self.inner {
            Some(Inner::Schema(matcher)) => matcher.undecided(),
            Some(Inner::Calls(calls)) => calls.undecided(),
            None => 0,
        }
    }
}

/// Locks what is valid at any time: a panic elsewhere has not damaged it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
