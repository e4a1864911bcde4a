//! Rules between the fields of an answer.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::schema_edit::add_all_of;
use crate::{Fault, MoldeError, schema_view};

/// A rule between fields, checked after an answer is written; see [`FieldRule`] for rules that the
/// mask enforces while it is written.
#[derive(Clone)]
pub struct Rule {
    name: Arc<str>,
    holds: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rule {
    /// A rule under a name, which becomes the kind `rule:NAME` of its faults. `holds` is asked about
    /// answers that satisfy the schema.
    ///
    /// ```
    /// use molde::Rule;
    /// let rule = Rule::new("low <= high", |value| value["low"].as_f64() <= value["high"].as_f64());
    /// # let _ = rule;
    /// ```
    pub fn new(
        name: impl Into<Arc<str>>,
        holds: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), holds: Arc::new(holds) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(&self, value: &Value) -> Result<(), Fault> {
        if (self.holds)(value) { Ok(()) } else { Err(Fault::rule(&self.name)) }
    }
}

/// A common rule between members of the outermost object. It can be checked
/// ([`rule`](Self::rule)), and it can become part of the schema ([`add_to`](Self::add_to)), where
/// the mask enforces it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldRule {
    /// The first number is at most the second, where both are numbers.
    LessOrEqual(String, String),
    /// All of these members are null or absent, or none is.
    AllOrNone(Vec<String>),
}

impl FieldRule {
    /// `low` is at most `high`, where both are numbers.
    pub fn less_or_equal(low: impl Into<String>, high: impl Into<String>) -> Self {
        Self::LessOrEqual(low.into(), high.into())
    }

    /// All of `names` are null or absent, or none is.
    pub fn all_or_none<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::AllOrNone(names.into_iter().map(Into::into).collect())
    }

    /// Its name: `low<=high`, `all_or_none(low,high)`.
    pub fn name(&self) -> String {
        match self {
            Self::LessOrEqual(low, high) => format!("{low}<={high}"),
            Self::AllOrNone(names) => format!("all_or_none({})", names.join(",")),
        }
    }

    /// The rule as a check. Numbers are compared as binary64.
    pub fn rule(&self) -> Rule {
        let rule = self.clone();
        Rule::new(self.name(), move |value| match &rule {
            Self::LessOrEqual(low, high) => {
                match (value[low.as_str()].as_f64(), value[high.as_str()].as_f64()) {
                    (Some(low), Some(high)) => low <= high,
                    _ => true,
                }
            }
            Self::AllOrNone(names) => {
                let given = names.iter().filter(|name| !value[name.as_str()].is_null()).count();
                given == 0 || given == names.len()
            }
        })
    }

    /// The members that it speaks of.
    pub fn fields(&self) -> Vec<&str> {
        match self {
            Self::LessOrEqual(low, high) => vec![low, high],
            Self::AllOrNone(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// The schema `text` with `rules` as parts of it, so that the mask enforces them.
    /// [`LessOrEqual`](Self::LessOrEqual) becomes a bound that refers to a member (`$data`).
    ///
    /// # Errors
    /// [`MoldeError::UnknownField`] for a member that the outermost object does not declare, and
    /// [`MoldeError::NotAnObjectSchema`] for a text that is no JSON object.
    pub fn add_to(text: &str, rules: &[Self]) -> Result<String, MoldeError> {
        let schema = schema_view::read(text);
        for rule in rules {
            for field in rule.fields() {
                if !declares(&schema, field) {
                    return Err(MoldeError::UnknownField { field: field.to_owned() });
                }
            }
        }
        let parts: Vec<String> =
            rules.iter().map(|rule| rule.as_schema(rules).to_string()).collect();
        add_all_of(text, &parts)
    }

    /// Whether the outermost object of a schema declares a field.
    pub(crate) fn check_declared(text: &str, field: &str) -> Result<(), MoldeError> {
        if declares(&schema_view::read(text), field) {
            Ok(())
        } else {
            Err(MoldeError::UnknownField { field: field.to_owned() })
        }
    }

    /// The rule as a schema, beside `others`.
    fn as_schema(&self, others: &[Self]) -> Value {
        match self {
            Self::LessOrEqual(low, high) => {
                let reference = format!("1/{}", low.replace('~', "~0").replace('/', "~1"));
                let bounded = json!({"anyOf": [
                    {"type": "number", "minimum": {"$data": reference}},
                    {"not": {"type": "number"}},
                ]});
                let both = others.iter().any(|rule| {
                    matches!(rule, Self::AllOrNone(names) if names.contains(low) && names.contains(high))
                });
                if both {
                    // No number stands beside a null, so the bound always has a number to refer to.
                    return json!({"properties": {high: bounded}});
                }
                // Where the lower member is no number there is nothing to compare with.
                json!({"anyOf": [
                    {"properties": {low: {"not": {"type": "number"}}}},
                    {"properties": {high: bounded}},
                ]})
            }
            Self::AllOrNone(names) => {
                let each = |schema: &Value| {
                    let members: Map<String, Value> =
                        names.iter().map(|name| (name.clone(), schema.clone())).collect();
                    Value::Object(members)
                };
                json!({"anyOf": [
                    {"properties": each(&json!({"type": "null"}))},
                    {"properties": each(&json!({"not": {"type": "null"}})), "required": names},
                ]})
            }
        }
    }
}

fn declares(schema: &Value, field: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(field).is_some())
}
