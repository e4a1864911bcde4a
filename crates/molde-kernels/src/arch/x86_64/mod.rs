//! x86-64: AVX2, and AVX-512 with VNNI.

mod avx2;
mod avx512vnni;

pub(crate) use avx2::Avx2;
pub(crate) use avx512vnni::Avx512Vnni;
