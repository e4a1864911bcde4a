//! The matcher against independent oracles: automata written as plain transition functions, masks
//! found by trying every token byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod automata;
mod budget;
mod calls;
mod canonical;
mod choices;
mod explain;
mod guarantees;
mod limits;
mod masks;
mod real;
mod related;
mod schemas;

mod vocabularies;
mod walk;
