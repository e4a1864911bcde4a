//! Weights out of a GGUF file.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};

use crate::InferError;
use crate::checkpoint::{Checkpoint, Precision, Role};
use crate::gguf::{Gguf, TensorInfo};
use crate::linear::Weight;

/// A checked header together with the bytes that it describes.
pub(crate) struct GgufCheckpoint<'a> {
    pub(crate) header: &'a Gguf<'a>,
    pub(crate) bytes: &'a [u8],
}

impl GgufCheckpoint<'_> {
    fn info(&self, role: Role, shape: &[usize]) -> Result<&TensorInfo, InferError> {
        let name = role.gguf_name();
        let Some(info) = self.header.tensors.get(name.as_str()) else {
            return Err(InferError::TensorMissing {
                path: self.header.path().to_owned(),
                tensor: name,
            });
        };
        if info.shape.len() == shape.len()
            && info.shape.iter().zip(shape).all(|(&got, &expected)| got == expected as u64)
        {
            return Ok(info);
        }
        Err(InferError::TensorShape {
            path: self.header.path().to_owned(),
            tensor: name,
            expected: shape.to_vec(),
            got: info.shape.clone(),
        })
    }

    /// A copy of the first `keep` rows (all, for a vector) in candle's own storage.
    fn copy(&self, info: &TensorInfo, shape: &[usize]) -> Result<QTensor, InferError> {
        let elements: usize = shape.iter().product();
        let bytes = elements / info.dtype.block_size() * info.dtype.type_size();
        // In range: the header was checked, and a part of the rows needs no more than all.
        let data = &self.bytes[info.offset..info.offset + info.bytes.min(bytes)];
        let storage = QStorage::from_data(Cow::Borrowed(data), &Device::Cpu, info.dtype)?;
        Ok(QTensor::new(storage, shape)?)
    }
}

impl Checkpoint for GgufCheckpoint<'_> {
    fn contains(&self, role: Role) -> bool {
        self.header.tensors.contains_key(role.gguf_name().as_str())
    }

    fn rows(&self, role: Role, columns: usize) -> Result<usize, InferError> {
        let found = self.header.tensors.get(role.gguf_name().as_str());
        let rows = found.and_then(|info| info.shape.first().copied()).unwrap_or(0) as usize;
        self.info(role, &[rows, columns]).map(|_| rows)
    }

    fn vector(&self, role: Role, length: usize) -> Result<Tensor, InferError> {
        let info = self.info(role, &[length])?;
        Ok(self.copy(info, &[length])?.dequantize(&Device::Cpu)?)
    }

    fn matrix(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
        precision: Precision,
    ) -> Result<Weight, InferError> {
        let info = self.info(role, &[rows, columns])?;
        let tensor = self.copy(info, &[keep.min(rows), columns])?;
        let is_plain = matches!(info.dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        Ok(if is_plain || precision == Precision::Exact {
            Weight::Full(tensor.dequantize(&Device::Cpu)?)
        } else {
            Weight::Quantized(Arc::new(tensor))
        })
    }
}
