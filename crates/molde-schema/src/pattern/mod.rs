//! ECMA-262 regular expressions as automata of the strings they *find*.
//!
//! JSON Schema searches: a pattern is unanchored unless it says otherwise. The dialect is the one
//! of the `u` flag without any other, plus the leniencies of Annex B that schemas in the wild rely
//! on: identity escapes of punctuation (`\-`), a `{`, `}` or `]` that stands for itself, a class
//! escape beside a hyphen (`[\w-.]`). The text is parsed here and never handed to another regular
//! expression parser, since the dialects differ where it matters (`\d`, `\w`, `\s`, `.`, `$`).
//!
//! Lookahead and lookbehind are decided exactly, in repetitions too, except one nested in the
//! other. Backreferences are no regular languages and are refused by name.

mod ast;
mod automaton;
mod class;
mod compile;
mod error;
mod parser;
#[cfg(test)]
mod tests;

pub use automaton::{PatternAutomaton, RegexError};
pub(crate) use compile::{Pattern, compile, compile_dfa};
pub(crate) use error::PatternError;
#[cfg(test)]
pub(crate) use error::{Construct, Expected};
