//! The network on candle tensors, all arithmetic in `f32`: the reference for
//! [`native`](crate::native), and independent of its kernels.

mod attention;
mod linear;
mod network;

pub(crate) use linear::Table;
pub(crate) use network::{ExactNetwork, ExactScratch};
