//! Weight matrices as candle tensors.

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};

use crate::InferError;

/// A table whose rows are looked up, `[rows, columns]`.
#[derive(Debug)]
pub(crate) enum Table {
    /// Never multiplied with. A row is exact in every type, so it stays as it is in the file.
    Quantized(QTensor),
    /// `f32`.
    Full(Tensor),
}

impl Table {
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
            Self::Quantized(table) => table.storage_size_in_bytes(),
            Self::Full(table) => table.elem_count() * DType::F32.size_in_bytes(),
        }
    }
}

/// `y = x W^T + b`, in `f32`.
#[derive(Debug)]
pub(crate) struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    /// `weight` is `[rows, columns]`, `bias` is `[rows]`.
    pub(crate) fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self { weight, bias }
    }

    /// `[tokens, columns]` to `[tokens, rows]`, both contiguous.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, InferError> {
        let y = x.matmul(&self.weight.t()?)?;
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }

    /// Number of outputs.
    pub(crate) fn rows(&self) -> Result<usize, InferError> {
        Ok(self.weight.dim(0)?)
    }

    pub(crate) fn bytes(&self) -> usize {
        let bias = self.bias.as_ref().map_or(0, Tensor::elem_count);
        (self.weight.elem_count() + bias) * DType::F32.size_in_bytes()
    }
}
