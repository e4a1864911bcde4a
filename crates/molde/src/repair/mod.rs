//! Repair without the model: an answer that is nearly JSON, and nearly of the schema's form.
//!
//! ```text
//! text ─ read ───▶ first balanced object, tolerantly; what stands around it is left out
//!      ─ fit ────▶ members that the schema does not know go, texts become the numbers they say
//!      ─ judge ──▶ an instance of the schema that keeps all rules, or no repair at all
//! ```
//!
//! Deterministic, and every change is logged with what stood there before and after. What could be
//! meant in two ways is not repaired: `1,234` for a number, a number that the end of the answer may
//! have cut, a member that comes twice with different values.

mod fit;
mod number;
mod reader;

use serde::Serialize;
use serde_json::Value;

use crate::exact::Exact;
use crate::numbers::{DocumentNumbers, declared_unit};
use crate::{Fault, Validator};
use reader::{Candidate, Node};

/// What one repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairKind {
    /// A Markdown fence around the value was left out.
    CodeFence,
    /// Other text around the value was left out.
    SurroundingText,
    /// The value was a JSON string that holds JSON.
    EncodedTwice,
    /// Quotes that are not JSON's became JSON's.
    Quotes,
    /// A name without quotes got them.
    UnquotedKey,
    /// A text without quotes got them.
    UnquotedText,
    /// A comma without a member after it was left out.
    TrailingComma,
    /// A comma between two members was put in.
    MissingComma,
    /// A comment was left out.
    Comment,
    /// `True`, `None` and the like became JSON's words.
    Literal,
    /// A character in a string, or an escape sequence, was written as JSON demands.
    Escape,
    /// The end was cut off: open brackets were closed, and a value that may be cut was left out.
    CutOff,
    /// A member that came twice with the same value was left out once.
    DuplicateKey,
    /// A member that the schema does not know was left out.
    UnknownKey,
    /// A number that was written as text became a number.
    NumberText,
    /// A number was written as JSON demands: separators, signs, zeros.
    NumberForm,
    /// A text that says "nothing" became null.
    NullText,
    /// A text that says true or false became that.
    BooleanText,
}

/// One change that [`repair`] made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// What was done.
    pub kind: RepairKind,
    /// JSON Pointer of the value, or of the object whose member it was; `""` is the root.
    pub pointer: String,
    /// What stood there.
    pub before: String,
    /// What stands there now; empty if it was left out.
    pub after: String,
}

impl Repair {
    pub(crate) fn new(
        kind: RepairKind,
        pointer: &str,
        before: impl Into<String>,
        after: impl Into<String>,
    ) -> Self {
        Self { kind, pointer: pointer.to_owned(), before: before.into(), after: after.into() }
    }
}

/// An answer that could be repaired.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Repaired {
    /// The JSON text, an instance of the schema. The answer itself if nothing had to be changed.
    pub text: String,
    /// Its value.
    pub value: Value,
    /// Every change, in the order in which it was made; empty if none was needed.
    pub repairs: Vec<Repair>,
    /// JSON Pointers of the numbers that were changed and that the document does not contain, in any
    /// reading; empty without a document. Such a number may be a misread one.
    pub ungrounded: Vec<String>,
}

/// Repairs an answer. `document`, if it is given, is what numbers are looked up in.
///
/// # Errors
/// The first [`Fault`] of the answer, if no repair makes it an instance that keeps all rules.
///
/// # Complexity
/// Linear in the answer for each object in it, at most 64 of them.
pub fn repair(
    validator: &Validator,
    answer: &str,
    document: Option<&str>,
) -> Result<Repaired, Fault> {
    let fault = match validator.validate(answer) {
        Ok(value) => {
            let text = answer.trim().to_owned();
            return Ok(Repaired { text, value, repairs: Vec::new(), ungrounded: Vec::new() });
        }
        Err(fault) => fault,
    };
    let numbers = document.map(DocumentNumbers::read);
    let attempt = |text: &str, log: &[Repair]| repair_text(validator, text, log, numbers.as_ref());
    if let Some(repaired) = attempt(answer, &[]) {
        return Ok(repaired);
    }
    // JSON inside a JSON string, or its quotes escaped as if it were.
    let inner = match serde_json::from_str::<Value>(answer.trim()) {
        Ok(Value::String(inner)) => inner,
        _ if answer.contains("\\\"") => answer.replace("\\\"", "\""),
        _ => return Err(fault),
    };
    let log = [Repair::new(RepairKind::EncodedTwice, "", answer.trim(), inner.as_str())];
    attempt(&inner, &log).ok_or(fault)
}

/// Objects of an answer that are tried at most.
const CANDIDATES: usize = 64;

fn repair_text(
    validator: &Validator,
    text: &str,
    log: &[Repair],
    numbers: Option<&DocumentNumbers>,
) -> Option<Repaired> {
    let contains = |text: &str| {
        numbers.is_some_and(|numbers| {
            let number = Exact::from_json(text);
            numbers.values(None).into_iter().any(|(value, _)| Some(value) == number)
        })
    };
    let fits = |candidate: &Candidate| -> Option<Repaired> {
        let mut repairs = log.to_vec();
        repairs.extend(around(text, candidate));
        repairs.extend(candidate.repairs.iter().cloned());
        let mut changed = Vec::new();
        let node = fit::fit(validator.schema(), &candidate.node, &mut repairs, &mut changed)?;
        let text = node.to_json();
        let value = validator.validate(&text).ok()?;
        let ungrounded = match numbers {
            Some(numbers) => changed
                .into_iter()
                .filter(|change| !is_grounded(change, numbers))
                .map(|change| change.pointer)
                .collect(),
            None => Vec::new(),
        };
        Some(Repaired { text, value, repairs, ungrounded })
    };
    let mut cut = None;
    let mut from = 0;
    for _ in 0..CANDIDATES {
        let Some(found) = text[from..].find(['{', '[']) else { break };
        let start = from + found;
        from = start + 1;
        let Some(candidate) = reader::read(text, start, &contains) else { continue };
        if candidate.is_cut {
            cut = cut.or(Some(candidate));
            continue;
        }
        if let Some(repaired) = fits(&candidate) {
            return Some(repaired);
        }
    }
    if let Some(repaired) = cut.as_ref().and_then(fits) {
        return Some(repaired);
    }
    // A value that is no object: the whole answer, if it is one line.
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.contains(['{', '[', '\n']) {
        return None;
    }
    let node = Node::Bare(trimmed.trim_matches('`').trim().to_owned());
    fits(&Candidate { node, bytes: 0..text.len(), repairs: Vec::new(), is_cut: false })
}

/// A number that was changed, with the power of ten of the unit that its field declares.
#[derive(Debug, Clone)]
struct ChangedNumber {
    pointer: String,
    text: String,
    unit: Option<i64>,
}

fn is_grounded(change: &ChangedNumber, numbers: &DocumentNumbers) -> bool {
    let number = Exact::from_json(&change.text);
    let is_it = |(value, _): &(Exact, std::ops::Range<usize>)| Some(value) == number.as_ref();
    numbers.values(None).iter().any(is_it) || numbers.values(change.unit).iter().any(is_it)
}

/// The unit of the field that a schema describes.
fn unit_of(schema: &Value) -> Option<i64> {
    declared_unit(schema.get("description")?.as_str()?)
}

/// The log lines of what stands around the value.
fn around(text: &str, candidate: &Candidate) -> Vec<Repair> {
    let mut repairs = Vec::new();
    let (before, after) = (&text[..candidate.bytes.start], &text[candidate.bytes.end..]);
    let mut prose = Vec::new();
    for part in [before, after] {
        let part = part.trim();
        if part.contains("```") {
            let lines: Vec<&str> = part.lines().filter(|line| !is_fence(line)).collect();
            if repairs.is_empty() {
                repairs.push(Repair::new(RepairKind::CodeFence, "", "```", ""));
            }
            prose.push(lines.join("\n").replace("```", "").trim().to_owned());
        } else {
            prose.push(part.to_owned());
        }
    }
    for part in prose.iter().filter(|part| !part.is_empty()) {
        repairs.push(Repair::new(RepairKind::SurroundingText, "", part.as_str(), ""));
    }
    repairs
}

fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.strip_prefix("```").is_some_and(|language| language.chars().all(char::is_alphanumeric))
}
