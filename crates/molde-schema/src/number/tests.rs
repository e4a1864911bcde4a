//! The automaton against an oracle that shares no code with it: values scaled to integers.

mod cases;
mod exhaustive;
mod extreme;
