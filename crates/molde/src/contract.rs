//! The form of an answer: a compiled schema, and how its text becomes a value.

use std::marker::PhantomData;
use std::sync::Arc;

use molde_schema::{CompileOptions, CompiledSchema, FormatProfile};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::outcome::RawJson;
use crate::validate::FreeForm;
use crate::{MoldeError, deep, rust_type};
use molde_constraint::SchemaConstraint;

/// What answers look like, compiled once and used for any number of documents and engines.
///
/// `T` is what an answer is read into: [`RawJson`], or the caller's type.
pub struct Contract<T = RawJson> {
    text: Arc<str>,
    compiled: Arc<CompiledSchema>,
    read: fn(&str) -> Result<T, MoldeError>,
}

impl<T> Clone for Contract<T> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), compiled: Arc::clone(&self.compiled), read: self.read }
    }
}

impl<T> std::fmt::Debug for Contract<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Contract")
            .field("schema", &self.text)
            .field("value", &PhantomData::<T>)
            .finish_non_exhaustive()
    }
}

impl Contract<RawJson> {
    /// Compiles the text of a JSON Schema. Answers are kept exactly as written.
    ///
    /// # Errors
    /// [`MoldeError::Schema`]: not JSON, not a schema, something that cannot be enforced (all
    /// places are listed), nothing that satisfies it, or a limit exceeded.
    pub fn from_schema(text: &str) -> Result<Self, MoldeError> {
        Self::from_schema_with(text, &Self::default_options())
    }

    /// [`from_schema`](Self::from_schema) with a choice of style, order, spellings, formats and
    /// limits. Begin with [`default_options`](Self::default_options) to change only some of them.
    ///
    /// # Errors
    /// As [`from_schema`](Self::from_schema).
    pub fn from_schema_with(text: &str, options: &CompileOptions) -> Result<Self, MoldeError> {
        Self::new(text.into(), options, |answer| Ok(RawJson::new(answer)))
    }
}

impl<T: JsonSchema + DeserializeOwned + Send> Contract<T> {
    /// Compiles the schema of a Rust type, narrowed to what the type can be read from: integer
    /// and float ranges, `char`, `NonZero`, tags of enums, names of members. Members that can be
    /// null are required, and structs admit no other members than their own.
    ///
    /// Every complete answer deserialises, unless the type's own `Deserialize` demands more than
    /// its `JsonSchema` says, as `SocketAddr` does, or the answer of a recursive type is nested
    /// deeper than 10,000 levels. A deep answer is read on a thread of its own, hence `Send`.
    ///
    /// # Errors
    /// [`MoldeError::RustType`] for a string format that nothing enforces, and
    /// [`MoldeError::Schema`] for what cannot be enforced otherwise.
    pub fn from_type() -> Result<Self, MoldeError> {
        Self::from_type_with(&Self::default_options())
    }

    /// [`from_type`](Self::from_type) with a choice of style, order, spellings, formats and
    /// limits. Begin with [`default_options`](Self::default_options) to change only some of them.
    ///
    /// # Errors
    /// As [`from_type`](Self::from_type).
    pub fn from_type_with(options: &CompileOptions) -> Result<Self, MoldeError> {
        Self::new(rust_type::schema_text::<T>()?.into(), options, deep::read)
    }
}

impl<T> Contract<T> {
    /// How a contract is compiled where nothing else is asked for: everything as in
    /// [`CompileOptions::default`], except that strings with a `format` are those that the types
    /// of common languages can be read from as well ([`FormatProfile::Interoperable`]): no year
    /// 0000, no leap second, no lower-case `t` or `z`.
    ///
    /// ```
    /// use molde::{CompileOptions, Contract, FormatProfile, RawJson};
    ///
    /// let options = CompileOptions {
    ///     format_profile: FormatProfile::Standard,
    ///     ..Contract::<RawJson>::default_options()
    /// };
    /// let contract = Contract::from_schema_with(r#"{"format": "date-time"}"#, &options)?;
    /// # Ok::<(), molde::MoldeError>(())
    /// ```
    pub fn default_options() -> CompileOptions {
        CompileOptions { format_profile: FormatProfile::Interoperable, ..CompileOptions::default() }
    }

    fn new(
        text: Arc<str>,
        options: &CompileOptions,
        read: fn(&str) -> Result<T, MoldeError>,
    ) -> Result<Self, MoldeError> {
        let compiled = Arc::new(CompiledSchema::compile(&text, options)?);
        Ok(Self { text, compiled, read })
    }

    /// The text of the schema that is enforced.
    pub fn schema_text(&self) -> &str {
        &self.text
    }

    /// The same contract with another schema, a narrower one.
    pub(crate) fn with_schema(&self, text: &str) -> Result<Self, MoldeError> {
        Self::new(text.into(), self.compiled.options(), self.read)
    }

    /// How the schema was compiled.
    pub(crate) fn options(&self) -> &CompileOptions {
        self.compiled.options()
    }

    /// Reads a complete answer.
    pub(crate) fn read(&self, answer: &str) -> Result<T, MoldeError> {
        (self.read)(answer)
    }

    pub(crate) fn automaton(&self) -> SchemaConstraint {
        SchemaConstraint::new(&self.compiled)
    }

    /// Checks a text that was written without a constraint, in any JSON spelling: white space,
    /// order of members, escapes and forms of numbers are free, and a `format` means what its RFC
    /// says.
    ///
    /// Compiles the schema anew for that; linear in the text, times the number of undeclared keys.
    ///
    /// # Errors
    /// [`MoldeError::Schema`] if the freer spelling exceeds a limit.
    pub fn check(&self, text: &str) -> Result<Verdict, MoldeError> {
        Ok(FreeForm::new(&self.text, self.compiled.options())?.judge(text))
    }
}

/// What [`Contract::check`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The text is an instance of the schema.
    Valid,
    /// No instance begins with the text up to and including the byte at `offset`.
    Invalid {
        /// JSON Pointer of the value that was being written; `""` is the root.
        pointer: String,
        /// Offset in bytes, in the text without white space around it.
        offset: usize,
    },
    /// The text breaks off before the value is whole.
    Incomplete {
        /// JSON Pointer of the value that was being written; `""` is the root.
        pointer: String,
    },
    /// The limits of the constraint did not allow a decision.
    Undecided {
        /// Offset in bytes, in the text without white space around it.
        offset: usize,
    },
}
