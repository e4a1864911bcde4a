//! Grounding: numbers of an answer that the document must contain.
//!
//! For each document the contract is narrowed: a grounded field can be one of the numbers of the
//! document, in the readings that its unit allows, or what else its schema allows that is no number.
//! The narrowed schema is compiled like any other, so range, type and rules between fields hold
//! together with the grounding, and there are no dead ends.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use crate::exact::Exact;
use crate::fields::{FieldScanner, push_segment};
use crate::numbers::{DocumentNumbers, declared_unit};
use crate::schema_edit::add_all_of;
use crate::{Contract, FieldRule, MoldeError, schema_view};
use molde_schema::SchemaError;

/// Distinct numbers of one document that a field can be grounded in; a document with more is an
/// error, [`MoldeError::TooManyNumbers`]. With a rule between two grounded fields, see
/// [`MAX_PAIRED_NUMBERS`].
pub const MAX_GROUNDED_NUMBERS: usize = 2000;

/// Distinct numbers of one document where a rule compares two grounded fields.
pub const MAX_PAIRED_NUMBERS: usize = 200;

/// Where a value of an answer stands in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// JSON Pointer of the value.
    pub pointer: String,
    /// Bytes of the document, one range for each place that says it, in document order.
    pub spans: Vec<Range<usize>>,
    /// Whether each of these places can be read as another number as well, as `1.234` can.
    pub ambiguous: bool,
}

/// Which fields are grounded, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grounding {
    /// Names of members of the outermost object.
    pub(crate) numbers: Vec<String>,
    /// Rules between fields, enforced with the grounding.
    pub(crate) rules: Vec<FieldRule>,
}

impl Grounding {
    /// Whether anything depends on the document.
    pub(crate) fn is_active(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Checks that every field is declared, before any document is read.
    pub(crate) fn check(&self, schema: &str) -> Result<(), MoldeError> {
        let schema = schema_view::read(schema);
        let declared = schema.get("properties");
        let unknown = self
            .numbers
            .iter()
            .find(|name| declared.and_then(|all| all.get(name.as_str())).is_none());
        match unknown {
            Some(field) => Err(MoldeError::UnknownField { field: field.clone() }),
            None => Ok(()),
        }
    }

    /// The contract for one document.
    pub(crate) fn narrow<T>(
        &self,
        contract: &Contract<T>,
        numbers: &DocumentNumbers,
    ) -> Result<Contract<T>, MoldeError> {
        let schema = schema_view::read(contract.schema_text());
        let candidates: Vec<(&String, Vec<String>)> = self
            .numbers
            .iter()
            .map(|name| Ok((name, self.candidates(&schema, name, numbers)?)))
            .collect::<Result<_, MoldeError>>()?;
        let field_parts: Vec<String> =
            candidates.iter().map(|(name, texts)| one_of(name, texts)).collect();
        let mut parts = field_parts.clone();
        for rule in &self.rules {
            if let FieldRule::LessOrEqual(low, high) = rule
                && let Some((_, lows)) = candidates.iter().find(|(name, _)| *name == low)
                && let Some((_, highs)) = candidates.iter().find(|(name, _)| *name == high)
            {
                parts.push(in_order(low, lows, high, highs));
            }
        }
        let compile =
            |parts: &[String]| contract.with_schema(&add_all_of(contract.schema_text(), parts)?);
        match compile(&parts) {
            Err(MoldeError::Schema(SchemaError::Unsatisfiable { .. })) => {
                let alone = self.numbers.iter().zip(&field_parts).find(|(_, part)| {
                    matches!(
                        compile(std::slice::from_ref(part)),
                        Err(MoldeError::Schema(SchemaError::Unsatisfiable { .. }))
                    )
                });
                let fields = match alone {
                    Some((name, _)) => vec![name.clone()],
                    None => self.numbers.clone(),
                };
                Err(MoldeError::NoGroundedValue { fields })
            }
            other => other,
        }
    }

    /// The JSON texts that a field can have, in document order, each once.
    fn candidates(
        &self,
        schema: &Value,
        name: &str,
        numbers: &DocumentNumbers,
    ) -> Result<Vec<String>, MoldeError> {
        let mut texts: Vec<String> = Vec::new();
        for (value, _) in numbers.values(unit(schema, name)) {
            if let Some(text) = value.plain()
                && !texts.contains(&text)
            {
                texts.push(text);
            }
        }
        let paired = self.rules.iter().any(|rule| {
            matches!(rule, FieldRule::LessOrEqual(..)) && rule.fields().contains(&name)
        });
        let limit = if paired { MAX_PAIRED_NUMBERS } else { MAX_GROUNDED_NUMBERS };
        if texts.len() > limit {
            return Err(MoldeError::TooManyNumbers { numbers: texts.len(), limit });
        }
        Ok(texts)
    }

    /// Where the document says the numbers of an answer.
    pub(crate) fn evidence(
        &self,
        schema_text: &str,
        answer: &str,
        numbers: &DocumentNumbers,
    ) -> Vec<Evidence> {
        let schema = schema_view::read(schema_text);
        let mut scanner = FieldScanner::new();
        let mut fields = Vec::new();
        scanner.push(answer.as_bytes(), &mut fields);
        let mut found = Vec::new();
        for name in &self.numbers {
            let mut pointer = String::new();
            push_segment(&mut pointer, name);
            let Some(value) = fields
                .iter()
                .find(|field| field.pointer == pointer)
                .and_then(|field| Exact::from_json(&answer[field.bytes.clone()]))
            else {
                continue;
            };
            let unit = unit(&schema, name);
            let spans: Vec<Range<usize>> = numbers
                .values(unit)
                .into_iter()
                .filter(|(number, _)| *number == value)
                .map(|(_, span)| span)
                .collect();
            let ambiguous = spans.iter().all(|span| {
                let others = numbers.values(unit);
                others.iter().filter(|(_, other)| other == span).count() > 1
            });
            found.push(Evidence { pointer, spans, ambiguous });
        }
        found
    }
}

/// The power of ten of the unit that a field declares in its description.
fn unit(schema: &Value, name: &str) -> Option<i64> {
    declared_unit(schema.get("properties")?.get(name)?.get("description")?.as_str()?)
}

/// That a member is null.
pub(crate) fn only_null(name: &str) -> String {
    json!({"properties": {name: {"type": "null"}}}).to_string()
}

/// That a member, where it is a number, is one of `texts`.
fn one_of(name: &str, texts: &[String]) -> String {
    let name = Value::from(name);
    if texts.is_empty() {
        return format!("{{\"properties\": {{{name}: {{\"not\": {{\"type\": \"number\"}}}}}}}}");
    }
    format!(
        "{{\"properties\": {{{name}: {{\"anyOf\": [{{\"not\": {{\"type\": \"number\"}}}}, {{\"enum\": [{}]}}]}}}}}}",
        texts.join(", ")
    )
}

/// That `low` is at most `high`, where both are numbers of these lists: for each low number the high
/// ones that go with it.
fn in_order(low: &str, lows: &[String], high: &str, highs: &[String]) -> String {
    let no_number = json!({"not": {"type": "number"}});
    let mut branches = vec![json!({"properties": {low: no_number}}).to_string()];
    for text in lows {
        let reached: Vec<String> =
            highs.iter().filter(|other| is_at_most(text, other)).cloned().collect();
        let name = Value::from(low);
        let high = one_of(high, &reached);
        // One schema for both members: what `high` may be depends on this `low`.
        branches.push(format!(
            "{{\"properties\": {{{name}: {{\"const\": {text}}}}}, \"required\": [{name}], \"allOf\": [{high}]}}"
        ));
    }
    format!("{{\"anyOf\": [{}]}}", branches.join(", "))
}

/// Whether one plain decimal is at most another.
fn is_at_most(left: &str, right: &str) -> bool {
    let (left_negative, right_negative) = (left.starts_with('-'), right.starts_with('-'));
    match (left_negative, right_negative) {
        (true, false) => true,
        (false, true) => false,
        (true, true) => magnitude_at_most(&right[1..], &left[1..]),
        (false, false) => magnitude_at_most(left, right),
    }
}

fn magnitude_at_most(left: &str, right: &str) -> bool {
    let parts = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        (whole.len(), whole.to_owned(), fraction.to_owned())
    };
    parts(left) <= parts(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_decimals_are_compared_exactly() {
        for (left, right, expected) in [
            ("7230", "7650", true),
            ("7650", "7230", false),
            ("999", "1000", true),
            ("7.23", "7.3", true),
            ("7.3", "7.23", false),
            ("7.23", "7.23", true),
            ("0.5", "12", true),
            ("-5", "3", true),
            ("-5", "-3", true),
            ("-3", "-5", false),
            ("3", "-5", false),
            ("7", "7.01", true),
            ("7.01", "7", false),
        ] {
            assert_eq!(is_at_most(left, right), expected, "{left} and {right}");
        }
    }
}
