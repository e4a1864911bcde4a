//! 64-bit Arm: Advanced SIMD (NEON).

mod neon;

pub(crate) use neon::Neon;
