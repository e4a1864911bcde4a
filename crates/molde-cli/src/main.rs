//! The `molde` command.
fn main() {}
