//! What became of every keyword of a schema.

use crate::document::Document;
use crate::load::load;
use crate::{CompileOptions, CompiledSchema, Registry, SchemaError};

/// What became of every keyword of a schema, whether or not it compiles.
#[derive(Debug)]
pub struct Lint {
    /// Every keyword of the reachable schema locations, by pointer. What the error names is among
    /// them, with the verdict that it would have otherwise. Empty if the text cannot be read at
    /// all, or exceeds a limit while it is read.
    pub occurrences: Vec<Occurrence>,
    /// The compiled schema, or why there is none.
    pub outcome: Result<CompiledSchema, SchemaError>,
}

impl Lint {
    /// Compiles a schema as [`CompiledSchema::compile_with`] does, and keeps what can be said of
    /// its keywords if it fails.
    ///
    /// ```
    /// use molde_schema::{CompileOptions, Lint, Registry};
    ///
    /// let text = r#"{"title": "a", "minimum": 3, "maximum": 2, "type": "number"}"#;
    /// let lint = Lint::new(text, &Registry::new(), &CompileOptions::default());
    /// assert_eq!(lint.occurrences.len(), 4);
    /// assert!(lint.outcome.is_err(), "no number is at least 3 and at most 2");
    /// ```
    pub fn new(text: &str, registry: &Registry, options: &CompileOptions) -> Self {
        let loaded = Document::parse(text, &options.limits)
            .and_then(|mut document| load(&mut document, registry, options));
        match loaded {
            Ok(loaded) => Self {
                occurrences: loaded.occurrences.clone(),
                outcome: CompiledSchema::from_loaded(loaded, options),
            },
            Err(error) => Self { occurrences: Vec::new(), outcome: Err(error) },
        }
    }
}

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
    /// Enforced exactly, with a value that is read from the instance: `$data`.
    EnforcedWithData,
    /// Enforced as a subset: some valid values cannot be written, no invalid one can. Says why.
    Subset(&'static str),
    /// Not an assertion. Says why.
    Annotation(&'static str),
}
