//! The network on the kernels of `molde-kernels`: weights as the file has them, activations rounded
//! to 8 bits before each product.
//!
//! Each number is computed by one order of operations, whatever the chunk and the number of threads,
//! so logits are the same to the bit however a text is read.

mod layer;
mod network;
mod workspace;

pub(crate) use network::NativeNetwork;
pub(crate) use workspace::NativeScratch;
