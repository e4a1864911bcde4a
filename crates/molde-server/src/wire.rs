//! What the dialects share in reading and writing JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Answer, Finish, Reason, TokenScore};
use crate::fault::Fault;

/// A JSON text with one space after commas and colons and no other white space between its parts.
/// Nothing else of it is changed. Linear.
pub(crate) fn spaced_json(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 8);
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_string {
            spaced.push(character);
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == '"' {
                in_string = false;
            }
            continue;
        }
        match character {
            ' ' | '\t' | '\n' | '\r' => continue,
            '"' => in_string = true,
            _ => {}
        }
        spaced.push(character);
        if matches!(character, ',' | ':') {
            spaced.push(' ');
        }
    }
    spaced
}

/// Seconds since 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// RFC 3339 in UTC, with nanoseconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant, "chrono-compatible low-level date algorithms": civil_from_days.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:09}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_nanos()
    )
}

/// One text or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// Reads the body of a request.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::invalid(format!("the body is not what was expected: {error}")))
}

/// Reads a part of a body that has one of several forms.
///
/// # Errors
/// What is wrong with it; the place is relative to the part.
pub(crate) fn read_part<'b, T: Deserialize<'b>>(
    part: &'b RawValue,
    name: &str,
) -> Result<T, Fault> {
    serde_json::from_str(part.get()).map_err(|error| {
        Fault::invalid(format!("{name} is not what was expected: {error}")).at(name)
    })
}

/// Whether a part is a JSON text.
pub(crate) fn is_string(part: &RawValue) -> bool {
    part.get().starts_with('"')
}

/// A number within bounds.
///
/// # Errors
/// The field, the bounds and the number.
pub(crate) fn within(
    name: &str,
    value: Option<f64>,
    default: f64,
    least: f64,
    most: f64,
) -> Result<f32, Fault> {
    match value {
        None => Ok(default as f32),
        Some(value) if value >= least && value <= most => Ok(value as f32),
        Some(value) => {
            let message = format!("{name}: expected a number from {least} to {most}, got {value}");
            Err(Fault::invalid(message).at(name))
        }
    }
}

/// A token limit.
///
/// # Errors
/// A negative number, or 0.
pub(crate) fn token_limit(name: &str, value: Option<i64>) -> Result<Option<usize>, Fault> {
    match value {
        None => Ok(None),
        Some(value) => match usize::try_from(value) {
            Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
            _ => {
                let message = format!("{name}: expected at least 1, got {value}");
                Err(Fault::invalid(message).at(name))
            }
        },
    }
}

/// A token's score under the mask: the logarithm of its probability among the allowed tokens.
/// Finite, since JSON has no infinities.
pub(crate) fn masked(logprob: f32, allowed: f32) -> f64 {
    f64::from((logprob - allowed).clamp(-9999.0, 0.0))
}

/// A score as OpenAI and Ollama write it. `top` rivals, those that the mask allows.
pub(crate) fn score_json(score: &TokenScore, top: usize) -> Value {
    let entry = |piece: &crate::answer::Piece| {
        json!({
            "token": piece.text,
            "logprob": masked(piece.logprob, score.allowed),
            "bytes": piece.bytes,
        })
    };
    let mut shown = entry(&score.token);
    let mut rivals: Vec<Value> = score
        .candidates
        .iter()
        .filter(|(_, allowed)| *allowed)
        .take(top)
        .map(|(piece, _)| entry(piece))
        .collect();
    if score.forced && top > 0 {
        rivals.push(shown.clone());
    }
    shown["top_logprobs"] = Value::Array(rivals);
    shown
}

/// The `molde` field of an answer: what the dialects have no place for. `None` if there is nothing
/// to say and no report was asked for.
pub(crate) fn extension_json(answer: &Answer, finish: &Finish, report: bool) -> Option<Value> {
    let mut extension = serde_json::Map::new();
    if !finish.closed_by_budget.is_empty() {
        extension.insert("closed_by_budget".to_owned(), json!(finish.closed_by_budget));
    }
    if let Reason::Length { context } = finish.reason {
        let limit = if context { "context" } else { "max_tokens" };
        extension.insert("limit".to_owned(), json!(limit));
    }
    if finish.stop_ignored {
        extension.insert("stop_ignored".to_owned(), json!(true));
    }
    if finish.undecided > 0 {
        extension.insert("undecided".to_owned(), json!(finish.undecided));
    }
    if report {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let fields: Vec<Value> = finish
            .fields
            .iter()
            .map(|field| {
                json!({
                    "pointer": field.pointer,
                    "probability": field.probability,
                    "tokens": field.tokens,
                    "forced_tokens": field.forced_tokens,
                })
            })
            .collect();
        extension.insert(
            "report".to_owned(),
            json!({
                "fields": fields,
                "removed_probability": finish.removed,
                "output_tokens": finish.output_tokens,
                "forced_tokens": finish.forced_tokens,
                "queued_ms": milliseconds(finish.queued),
                "prefill_ms": milliseconds(finish.prefill),
                "decode_ms": milliseconds(finish.decode),
                "mask_ms": milliseconds(finish.mask),
                "tokens": tokens_json(&answer.scores),
            }),
        );
    }
    (!extension.is_empty()).then_some(Value::Object(extension))
}

/// Every scored token with its rivals, allowed or not: what the playground shows.
pub(crate) fn tokens_json(scores: &[TokenScore]) -> Vec<Value> {
    scores
        .iter()
        .map(|score| {
            let candidates: Vec<Value> = score
                .candidates
                .iter()
                .map(|(piece, allowed)| {
                    json!({"token": piece.text, "logprob": piece.logprob, "allowed": allowed})
                })
                .collect();
            json!({
                "token": score.token.text,
                "forced": score.forced,
                "logprob": score.token.logprob,
                "removed": 1.0 - f64::from(score.allowed).exp(),
                "candidates": candidates,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_spaced_outside_of_strings_only() {
        let text = "{ \"a\" :[1,\t2.50e1,\n\"x,: \\\" ,\"],\"b\":{}}";
        assert_eq!(spaced_json(text), r#"{"a": [1, 2.50e1, "x,: \" ,"], "b": {}}"#);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000000Z"),
            (1_796_062_210, "2026-11-30T18:10:10.000000000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
