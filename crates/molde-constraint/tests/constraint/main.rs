//! The matcher against independent oracles: automata written as plain transition functions, masks
//! found by trying every token byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod automata;
mod budget;
mod canonical;
mod choices;
mod limits;
mod masks;

mod vocabularies;
mod walk;
