//! Why a text is not a schema that can be enforced.

use std::fmt::{self, Write};

/// The reason a schema was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: {message} (line {line}, column {column})")]
    Syntax {
        /// What the parser expected.
        message: String,
        /// Line, counted from 1.
        line: u64,
        /// Column in characters, counted from 1.
        column: u64,
    },
    /// The text is JSON, but not a schema.
    #[error(transparent)]
    Malformed(Offenders),
    /// The schema uses something that cannot be enforced. All occurrences are listed.
    #[error(transparent)]
    Refused(Offenders),
    /// No value satisfies the schema.
    #[error("no value satisfies the schema: it accepts nothing at {}", Location(.pointer))]
    Unsatisfiable {
        /// JSON Pointer of the schema location.
        pointer: String,
    },
    /// The schema needs more work than allowed.
    #[error(
        "the schema exceeds the limit `{name}` ({limit} {unit}) at {}: simplify that part, or raise `{name}` where `Limits` has it",
        Location(.pointer)
    )]
    Limit {
        /// Name of the limit: the field of [`Limits`](crate::Limits) where there is one of that name.
        name: &'static str,
        /// The limit's value.
        limit: u64,
        /// What is counted.
        unit: &'static str,
        /// JSON Pointer of the schema location; empty for the root or where there is none.
        pointer: String,
    },
}

/// Keyword occurrences that stopped the compilation: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offenders(pub Vec<Offender>);

/// One keyword occurrence, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// JSON Pointer of the keyword in the schema, such as `/properties/a/oneOf`.
    pub pointer: String,
    /// The keyword, or `""` where a whole schema is meant.
    pub keyword: String,
    /// What is wrong, as a phrase such as "is not supported".
    pub reason: String,
}

impl fmt::Display for Offenders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, offender) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{offender}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Offenders {}

impl fmt::Display for Offender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keyword, reason) = (Printable(&self.keyword), Printable(&self.reason));
        if self.keyword.is_empty() {
            write!(f, "{}: {reason}", Location(&self.pointer))
        } else {
            write!(f, "{}: `{keyword}` {reason}", Location(&self.pointer))
        }
    }
}

/// Displays a JSON Pointer, the empty one as "the root".
pub(crate) struct Location<'a>(pub(crate) &'a String);

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the root") } else { Printable(self.0).fmt(f) }
    }
}

/// Displays a text of the schema with its control characters escaped, so that it can neither move a
/// terminal's cursor nor look like a message of its own.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}
