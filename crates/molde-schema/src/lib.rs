//! JSON Schema as an automaton over bytes.
//!
//! A schema text is parsed and loaded into an intermediate representation of one node for each
//! schema location ([`CompiledSchema`]); [`SchemaAutomaton`] reads texts byte by byte and knows, for
//! every prefix, whether it can still become a text of a valid value, and a short way to finish it.
//!
//! ```
//! use std::sync::Arc;
//! use molde_schema::{CompileOptions, CompiledSchema, DEAD, SchemaAutomaton};
//!
//! let text = r#"{"type": "object", "properties": {"n": {"type": "integer", "maximum": 20}},
//!                "required": ["n"], "additionalProperties": false}"#;
//! let schema = Arc::new(CompiledSchema::compile(text, &CompileOptions::default())?);
//! let mut automaton = SchemaAutomaton::new(&schema);
//! let mut state = automaton.start();
//! for byte in *b"{\"n\": 2" {
//!     state = automaton.step(state, byte);
//! }
//! assert_ne!(automaton.step(state, b'0'), DEAD);
//! assert_eq!(automaton.step(state, b'1'), DEAD, "21 is above the maximum");
//! assert_eq!(automaton.completion(state), b"}");
//! # Ok::<(), molde_schema::SchemaError>(())
//! ```
//!
//! # Invariants
//! - **Fail closed.** A keyword is enforced or the schema is refused, with all offenders.
//! - **Sound.** Every accepted text is a JSON text of a value that the schema accepts.
//! - **No dead ends.** From every live state some byte string leads to acceptance.
//! - **Exact numbers.** Bounds, `multipleOf` and constants never pass through a float.
//! - **Bounded.** What can grow has a field in [`Limits`].
//! - This crate knows nothing of tokens, models, files or the network.

mod canonical_order;
mod constant;
mod dfa;
mod dialect;
mod document;
mod error;
mod explain;
mod format;
mod goal;
mod ir;
mod lint;
mod load;
mod machine;
mod number;
mod options;
mod pattern;
mod schema;
mod text;

pub use dialect::Dialect;
pub use error::{Offender, Offenders, SchemaError};
pub use explain::{LiveKeyword, Reason, Rejection};
pub use lint::{Lint, Occurrence, Verdict};
pub use load::{DEFAULT_BASE, Registry};
pub use machine::{
    ByteBits, DEAD, SchemaAutomaton, StringContent, StringEnd, StringPosition, StringReading,
    UNDECIDED,
};
pub use options::{
    CompileOptions, Escapes, FormatProfile, Formats, Limits, NumberStyle, Order, Style,
};
pub use pattern::{PatternAutomaton, RegexError};
pub use schema::CompiledSchema;
