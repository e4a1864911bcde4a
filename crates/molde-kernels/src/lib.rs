//! Matrix kernels for quantized weights on CPUs, with runtime dispatch, and the small operations
//! of a transformer between them.
//!
//! ```
//! use molde_kernels::{Kernels, PackedMatrix, QuantizedRows};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
//! let kernels = Kernels::detect();
//! // Three outputs of 32 inputs each: row `r` holds the value `r` everywhere.
//! let weights: Vec<f32> = (0..3).flat_map(|row| [row as f32; 32]).collect();
//! let weights = PackedMatrix::from_f32(&pool, 3, 32, &weights)?;
//! let mut activations = QuantizedRows::new();
//! activations.quantize(kernels, &pool, &[1.0; 32], 1, 32)?;
//! let mut output = [0.0; 3];
//! kernels.matmul(&pool, &activations, &weights, &mut output)?;
//! assert!((output[2] - 64.0).abs() < 0.1);
//! # Ok(())
//! # }
//! ```
//!
//! # Numbers
//! Weights keep the size and the exact values of their file format (see [`PackedMatrix`]); activations are
//! quantized to 8 bits in blocks of 32 ([`QuantizedRows`]). A dot product is an exact integer sum per block
//! and a fused multiply-add of floats per block. Against the product in double precision the root mean square error
//! is below 0.6 % of that of the result, nearly all of it from the rounding of the activations
//! (tested).
//!
//! # Invariants
//! - **One order of operations per output element**, whatever the number of tokens, the tile, the
//!   number of threads, the subset of rows and the instruction set. Results are bit-equal. The one
//!   exception is the payload of undefined values (NaN).
//! - **No panics, no undefined behaviour on any input**: shapes are checked before anything runs. Values that are
//!   infinite or undefined give undefined results for their own token only.
//! - **`unsafe` only** in `arch` (intrinsics, behind a value that proves the instruction set was detected), in
//!   `matmul` (threads writing disjoint columns of one result) and in `weights` (matrices in disjoint parts of one mapping).
//! - No globals, no hidden threads: the caller passes its pool.
//!
//! # What it does not know
//! Models, files, tokens, vocabularies, tensors of other crates. An exact `f32` product is not here either:
//! the reference mode is the tensor library's business.

#![allow(
    clippy::inline_always,
    reason = "only what is inlined into an entry point is compiled with its instructions"
)]
#![allow(clippy::needless_range_loop, reason = "lanes and tokens index several arrays at once")]

mod activations;
mod arch;
mod attention;
mod error;
mod isa;
mod matmul;
mod ops;
mod probe;
mod weights;

pub use activations::QuantizedRows;
pub use attention::{CacheElement, KvLayer, QueryPlace};
pub use error::KernelError;
pub use isa::{Isa, Kernels};
pub use matmul::Product;
pub use ops::{RotaryEmbedding, Rotations};
pub use weights::{PackedMatrix, WeightMemory, WeightType};
