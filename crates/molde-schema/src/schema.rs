//! The compiled schema: immutable, shared by all automata of it.

use std::sync::Arc;

use crate::dialect::Dialect;
use crate::document::Document;
use crate::error::SchemaError;
use crate::goal::Goals;
use crate::lint::Occurrence;
use crate::load::{Loaded, Registry, load};
use crate::options::CompileOptions;

/// A schema whose every keyword is enforced or an annotation, and which some value satisfies.
///
/// Immutable; share it behind an [`Arc`] and make one
/// [`SchemaAutomaton`](crate::SchemaAutomaton) for each sequence.
#[derive(Debug)]
pub struct CompiledSchema {
    options: CompileOptions,
    dialect: Dialect,
    occurrences: Vec<Occurrence>,
    /// What was worked out to see that the schema is satisfiable: where automata begin.
    goals: Goals,
}

impl CompiledSchema {
    /// Compiles a schema from its text, so that numbers are read exactly.
    ///
    /// The dialect is the one named by `$schema`, 2020-12 by default.
    ///
    /// # Errors
    /// - [`SchemaError::Syntax`] and [`SchemaError::Malformed`] if the text is no schema;
    /// - [`SchemaError::Refused`] if it uses what cannot be enforced, with all occurrences;
    /// - [`SchemaError::Unsatisfiable`] if no value satisfies it;
    /// - [`SchemaError::Limit`] if it exceeds one of the [`Limits`](crate::Limits).
    ///
    /// # Complexity
    /// O(size of the text), plus the automata of its patterns.
    pub fn compile(text: &str, options: &CompileOptions) -> Result<Self, SchemaError> {
        Self::compile_with(text, &Registry::new(), options)
    }

    /// [`compile`](Self::compile), where the schema may refer to the documents of `registry`.
    ///
    /// # Errors
    /// Those of [`compile`](Self::compile).
    pub fn compile_with(
        text: &str,
        registry: &Registry,
        options: &CompileOptions,
    ) -> Result<Self, SchemaError> {
        let mut document = Document::parse(text, &options.limits)?;
        Self::from_loaded(load(&mut document, registry, options)?, options)
    }

    pub(crate) fn from_loaded(
        loaded: Loaded,
        options: &CompileOptions,
    ) -> Result<Self, SchemaError> {
        if let Some(fault) = loaded.fault {
            return Err(fault);
        }
        let mut goals = Goals::new(Arc::new(loaded.schema), *options);
        let root = goals.root();
        let solution = goals.solve(root).map_err(|limit| SchemaError::Limit {
            name: limit.name,
            limit: limit.limit,
            unit: limit.unit,
            pointer: limit.pointer,
        })?;
        if solution.shortest.is_none() {
            return Err(SchemaError::Unsatisfiable { pointer: String::new() });
        }
        Ok(Self {
            options: *options,
            dialect: loaded.dialect,
            occurrences: loaded.occurrences,
            goals,
        })
    }

    /// The options it was compiled with.
    pub fn options(&self) -> &CompileOptions {
        &self.options
    }

    /// The draft it was read as.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Every keyword of the reachable schema locations and what became of it, by pointer.
    pub fn occurrences(&self) -> &[Occurrence] {
        &self.occurrences
    }

    pub(crate) fn goals(&self) -> &Goals {
        &self.goals
    }
}
