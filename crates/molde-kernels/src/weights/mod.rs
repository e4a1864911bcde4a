//! Weights: the file formats, and the packed form that the kernels read.

mod blocks;
mod packed;
mod storage;
mod types;

pub(crate) use blocks::BLOCK;
pub use packed::PackedMatrix;
pub(crate) use packed::Scales;
pub use storage::WeightMemory;
pub use types::WeightType;
