//! One file for each command.

pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod extract;
pub(crate) mod generate;
pub(crate) mod lint;
pub(crate) mod models;
pub(crate) mod pull;
pub(crate) mod trace;
