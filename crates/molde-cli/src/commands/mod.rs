//! One file for each command.

pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod generate;
pub(crate) mod lint;
pub(crate) mod models;
pub(crate) mod pull;
pub(crate) mod serve;
pub(crate) mod signature;
pub(crate) mod trace;
