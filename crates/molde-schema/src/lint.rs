//! What became of every keyword of a schema.

/// One occurrence of a keyword in a schema that was compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// JSON Pointer of the keyword, such as `/properties/a/minimum`.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a keyword. Refused ones are in
/// [`SchemaError::Refused`](crate::SchemaError::Refused).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Enforced exactly.
    Enforced,
    /// Enforced as a subset: some valid values cannot be written, no invalid one can. Says why.
    Subset(&'static str),
    /// Not an assertion. Says why.
    Annotation(&'static str),
}
