//! What is wrong with an answer: the kinds of faults, by the names that Pydantic gives them.

use std::borrow::Cow;

use serde::Serialize;

/// The first fault of an answer: unknown members first, then the fields in the order of the schema,
/// as Pydantic reports them; then the rules.
///
/// # Kinds
/// The names are Pydantic's where it has one: `json_invalid`, `missing`, `extra_forbidden`,
/// `model_type`, `dict_type`, `list_type`, `string_type`, `bool_type`, `bool_parsing`, `int_type`,
/// `int_parsing`, `int_from_float`, `float_type`, `float_parsing`, `none_required`, `greater_than`,
/// `greater_than_equal`, `less_than`, `less_than_equal`, `multiple_of`, `string_too_short`,
/// `string_too_long`, `string_pattern_mismatch`, `too_short`, `too_long`, `enum`, `literal_error`,
/// `union_tag_invalid`, `union_tag_not_found`, `tuple_type`, `set_type`, `model_attributes_type`, and
/// for formats `date_type`, `date_from_datetime_parsing`, `datetime_type`,
/// `datetime_from_date_parsing`, `time_type`, `time_parsing`, `uuid_type`, `uuid_parsing`,
/// `url_type`, `url_parsing`, `ip_v4_address`, `ip_v6_address`, `value_error`.
///
/// Names of this crate's own: `duplicate_key` (a member comes twice; Pydantic takes the last),
/// `unique_items`, `json_schema` (another keyword of the schema), `undecided` (beyond the limits of
/// the constraint), `closed_by_budget` (the token limit changed a constrained answer), and `rule:NAME` for a
/// rule between fields.
///
/// # Strictness
/// Validation is that of JSON Schema, nothing is converted. Pydantic's lax mode takes `"4"` and
/// `true` for an integer; here they are faults with the names that its strict mode has (`int_type`).
/// What its lax mode refuses as well has the name that the lax mode gives (`int_parsing`). `4.0` is
/// an integer in JSON Schema and in the lax mode, though not in the strict mode. `enum` stands for
/// Pydantic's `enum` and for its `literal_error` with several values, which a schema does not tell
/// apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The kind, a stable name.
    pub kind: Cow<'static, str>,
    /// JSON Pointer of the value; `""` is the root.
    pub pointer: String,
    /// A sentence that says what was expected. Never quotes the answer or the document.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(
        kind: impl Into<Cow<'static, str>>,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { kind: kind.into(), pointer: pointer.into(), message: message.into() }
    }

    /// The kind of a rule between fields that does not hold.
    pub(crate) fn rule(name: &str) -> Self {
        Self::new(format!("rule:{name}"), "", format!("the rule `{name}` does not hold"))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(formatter, "{} at {place}: {}", self.kind, self.message)
    }
}
