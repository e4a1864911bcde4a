//! Every product with a weight matrix goes through [`Linear`], so that a faster kernel has one
//! place to enter.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};

use crate::InferError;

/// A weight matrix `[rows, columns]`, row-major, on the CPU.
#[derive(Debug, Clone)]
pub(crate) enum Weight {
    Quantized(Arc<QTensor>),
    Full(Tensor),
}

impl Weight {
    /// `f32` copies of the rows `ids`: `[ids.len(), columns]`. The table itself stays as it is.
    pub(crate) fn select_rows(&self, ids: &[u32]) -> Result<Tensor, InferError> {
        let ids = Tensor::new(ids, &Device::Cpu)?;
        Ok(match self {
            Self::Quantized(table) => table.embedding(&ids)?,
            Self::Full(table) => table.index_select(&ids, 0)?,
        })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Quantized(weight) => weight.storage_size_in_bytes(),
            Self::Full(weight) => weight.elem_count() * DType::F32.size_in_bytes(),
        }
    }
}

/// `y = x W^T + b`.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Tensor>,
}

impl Linear {
    pub(crate) fn new(weight: Weight, bias: Option<Tensor>) -> Self {
        Self { weight, bias }
    }

    /// `[tokens, columns]` to `[tokens, rows]`, both `f32` and contiguous.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, InferError> {
        let y = match &self.weight {
            // Not `QMatMul`: it reads environment variables that change the arithmetic.
            Weight::Quantized(weight) => x.apply_op1_no_bwd(weight.as_ref())?,
            Weight::Full(weight) => x.matmul(&weight.t()?)?,
        };
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }

    /// Whether the weight is the same storage as `table`.
    pub(crate) fn shares(&self, table: &Weight) -> bool {
        match (&self.weight, table) {
            (Weight::Quantized(own), Weight::Quantized(other)) => Arc::ptr_eq(own, other),
            (Weight::Full(own), Weight::Full(other)) => own.id() == other.id(),
            _ => false,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let bias = self.bias.as_ref().map_or(0, Tensor::elem_count);
        self.weight.bytes() + bias * DType::F32.size_in_bytes()
    }
}
