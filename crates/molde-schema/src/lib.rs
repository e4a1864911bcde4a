//! molde-schema

mod dfa;
