//! `molde compare`: the methods on one's own schema, documents and truth.

use std::io::Write;
use std::time::Duration;

use molde::{AnswerModel, Contract, Control, Counts, Form, Method, MoldeError, Runner, Validator};
use serde_json::{Map, Value, json};

use crate::args;
use crate::documents::{read_argument, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::progress::documents_bar;

/// A document with the value that is right.
struct Case {
    id: String,
    text: String,
    truth: Value,
}

/// What one method did.
#[derive(Default)]
struct Score {
    counts: Counts,
    correct: usize,
    calls: usize,
    tokens: usize,
    time: Duration,
}

/// Prints one line for each method.
pub(crate) fn run(args: &args::Compare, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let schema = molde::close_objects(&read_argument(&args.schema)?).text;
    let bad_schema =
        |source| Failure::Schema { path: args.schema.clone(), source: Box::new(source) };
    let contract = Contract::from_schema(&schema).map_err(bad_schema)?;
    let validator = Validator::new(&contract).map_err(bad_schema)?;
    let cases = cases(args, &validator)?;
    let engine = model::load(&args.model, interrupts)?;
    let mut builder = engine
        .extractor_with(contract.clone())
        .language(args.language.into())
        .max_tokens(args.max_tokens);
    if let Some(text) = args.instructions.as_deref().map(text_or_file).transpose()? {
        builder = builder.instructions(text);
    }
    if let Some(text) = args.conventions.as_deref().map(text_or_file).transpose()? {
        builder = builder.conventions(text);
    }
    let extractor = builder.build()?;
    let control = Control::new().cancel(&interrupts.work);
    // The instructions are read once: that is not the time of the first document.
    let _ = extractor.write(&extractor.messages("."), Form::Free, &control);
    interrupts.check()?;
    let methods = [
        ("free", Method::free()),
        ("retry", Method::retry(1)),
        ("repair", Method::repair()),
        ("constrained", Method::constrained()),
    ];
    let bar = documents_bar(methods.len() * cases.len());
    let mut scores = Vec::new();
    for (name, method) in methods {
        let runner = Runner::new(&contract, method)?.language(args.language.into());
        let mut score = Score::default();
        for case in &cases {
            interrupts.check()?;
            let messages = extractor.messages(&case.text);
            match runner.run(&extractor, &messages, &case.text, &control) {
                Ok(report) => {
                    score.counts.add(report.error_kind(), []);
                    score.calls += report.calls();
                    score.tokens += report.usage.output_tokens;
                    score.time += report.timings.total;
                    let json = report.json.as_deref().filter(|_| report.is_valid());
                    let value = json.and_then(|text| serde_json::from_str::<Value>(text).ok());
                    let right =
                        value.is_some_and(|value| agrees(&value, &case.truth, args.tolerance));
                    score.correct += usize::from(right);
                }
                Err(MoldeError::Cancelled) => return Err(Failure::Interrupted),
                Err(error) => score.counts.add(Some(error.kind()), []),
            }
            bar.inc(1);
        }
        scores.push((name, score));
    }
    bar.finish_and_clear();
    write(&scores, args.json)?;
    Ok(Exit::Success)
}

fn write(scores: &[(&str, Score)], as_json: bool) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    if as_json {
        let methods: Vec<Value> = scores.iter().map(|(name, score)| score.as_json(name)).collect();
        writeln!(output, "{}", json!({ "methods": methods }))?;
    } else {
        writeln!(
            output,
            "{:12} {:>9} {:>9} {:>6} {:>8} {:>9}  first faults",
            "method", "valid", "correct", "calls", "tokens", "ms/doc"
        )?;
        for (name, score) in scores {
            let n = score.counts.total();
            let kinds: Vec<String> =
                score.kinds().map(|(kind, count)| format!("{kind} {count}")).collect();
            writeln!(
                output,
                "{name:12} {:>9} {:>9} {:>6} {:>8} {:>9.0}  {}",
                format!("{}/{n}", score.counts.valid()),
                format!("{}/{n}", score.correct),
                score.calls,
                score.tokens,
                score.ms(),
                kinds.join(", ")
            )?;
        }
    }
    output.flush()?;
    Ok(())
}

impl Score {
    fn ms(&self) -> f64 {
        self.time.as_secs_f64() * 1000.0 / self.counts.total().max(1) as f64
    }

    fn kinds(&self) -> impl Iterator<Item = (&String, &usize)> {
        self.counts.all.iter().filter(|(kind, _)| *kind != "valid")
    }

    fn as_json(&self, name: &str) -> Value {
        let kinds: Map<String, Value> =
            self.kinds().map(|(kind, count)| (kind.clone(), json!(count))).collect();
        json!({
            "name": name, "n": self.counts.total(), "valid": self.counts.valid(),
            "correct": self.correct, "error_kinds": kinds, "calls": self.calls,
            "tokens": self.tokens, "ms_per_document": self.ms(),
        })
    }
}

/// The documents and their truth, checked before the model is loaded.
fn cases(args: &args::Compare, validator: &Validator) -> Result<Vec<Case>, Failure> {
    let bad =
        |line: usize, reason: String| Failure::Truth { path: args.documents.clone(), line, reason };
    let text = read_argument(&args.documents)?;
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = number + 1;
        let value: Value = serde_json::from_str(line)
            .map_err(|error| bad(number, format!("it is not JSON: {error}")))?;
        let member = |name: &str| value.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        let id = member("id").ok_or_else(|| bad(number, "no `id` that is a string".to_owned()))?;
        let text =
            member("text").ok_or_else(|| bad(number, "no `text` that is a string".to_owned()))?;
        let truth =
            value.get("truth").cloned().ok_or_else(|| bad(number, "no `truth`".to_owned()))?;
        validator.validate(&truth.to_string()).map_err(|fault| {
            bad(number, format!("the truth does not satisfy the schema: {fault}"))
        })?;
        if cases.iter().any(|case| case.id == id) {
            return Err(bad(number, format!("the id {id:?} comes twice")));
        }
        cases.push(Case { id, text, truth });
    }
    if cases.is_empty() {
        return Err(bad(1, "there are no documents".to_owned()));
    }
    Ok(cases)
}

/// Whether a value is the right one: numbers within a share of the truth, all else equal.
fn agrees(value: &Value, truth: &Value, tolerance: f64) -> bool {
    match (value, truth) {
        (Value::Number(value), Value::Number(truth)) => match (value.as_f64(), truth.as_f64()) {
            (Some(value), Some(truth)) => (value - truth).abs() <= tolerance * truth.abs(),
            _ => value == truth,
        },
        (Value::Array(value), Value::Array(truth)) => {
            value.len() == truth.len()
                && value.iter().zip(truth).all(|(value, truth)| agrees(value, truth, tolerance))
        }
        (Value::Object(value), Value::Object(truth)) => {
            value.len() == truth.len()
                && truth.iter().all(|(name, truth)| {
                    value.get(name).is_some_and(|value| agrees(value, truth, tolerance))
                })
        }
        _ => value == truth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_within_the_tolerance_and_all_else_exactly() {
        let truth = json!({"a": 100, "b": ["x", null], "c": {"d": -2.0}});
        for (value, tolerance, expected) in [
            (json!({"c": {"d": -2}, "b": ["x", null], "a": 100.0}), 0.0, true),
            (json!({"a": 100.4, "b": ["x", null], "c": {"d": -2}}), 0.005, true),
            (json!({"a": 100.6, "b": ["x", null], "c": {"d": -2}}), 0.005, false),
            (json!({"a": 100, "b": ["x"], "c": {"d": -2}}), 0.005, false),
            (json!({"a": 100, "b": ["x", null], "c": {"d": 2}}), 0.005, false),
            (json!({"a": 100, "b": ["x", null]}), 0.005, false),
            (json!(null), 0.005, false),
        ] {
            assert_eq!(agrees(&value, &truth, tolerance), expected, "{value}");
        }
    }
}
