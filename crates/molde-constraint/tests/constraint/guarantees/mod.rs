//! The guarantees at scale: sound, complete, no dead ends, a true minimum, the same as naive.

mod completeness;
mod corpus;
mod schemas;
mod small_world;
mod texts;
mod toy;
mod walks;
mod work;
