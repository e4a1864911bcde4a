//! `POST /molde/lint`: what becomes of every keyword of a schema, for the playground.

use molde::{Contract, RawJson};
use molde_schema::{Lint, Registry, Verdict};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::app::App;
use crate::fault::{Fault, Kind};

#[derive(Debug, Deserialize)]
pub(crate) struct LintRequest {
    schema: Box<RawValue>,
}

/// The verdict of each keyword, and what stops the schema from being enforced.
///
/// # Errors
/// A schema that is too large.
pub(crate) fn lint(app: &App, request: &LintRequest) -> Result<Value, Fault> {
    let text = request.schema.get();
    let most = app.config.limits.schema_bytes;
    if text.len() > most {
        let message = format!("the schema has {} bytes: expected at most {most}", text.len());
        return Err(Fault::new(Kind::Form, message));
    }
    let lint = Lint::new(text, &Registry::new(), &Contract::<RawJson>::default_options());
    let keywords: Vec<Value> = lint
        .occurrences
        .iter()
        .map(|occurrence| {
            let (verdict, reason) = match occurrence.verdict {
                Verdict::Enforced => ("enforced", ""),
                Verdict::EnforcedWithData => ("enforced", "its value is read from the instance"),
                Verdict::Subset(reason) => ("subset", reason),
                Verdict::Annotation(reason) => ("annotation", reason),
            };
            json!({
                "pointer": occurrence.pointer,
                "keyword": occurrence.keyword,
                "verdict": verdict,
                "reason": reason,
            })
        })
        .collect();
    let error = lint.outcome.err().map(|error| error.to_string());
    Ok(json!({"keywords": keywords, "error": error}))
}
