//! `cargo xtask check`: everything CI runs.
fn main() {}
