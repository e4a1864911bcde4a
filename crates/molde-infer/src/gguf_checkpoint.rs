//! Weights out of a GGUF file.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};
use molde_kernels::{PackedMatrix, WeightType};

use crate::InferError;
use crate::checkpoint::{Checkpoint, Packing, Role};
use crate::exact::Table;
use crate::gguf::{Gguf, SUPPORTED_TYPES, TensorInfo};
use crate::mmap::MappedFile;

/// A checked header together with the file that it describes.
pub(crate) struct GgufCheckpoint<'a> {
    pub(crate) header: &'a Gguf<'a>,
    pub(crate) file: &'a MappedFile,
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
        let data = Cow::Borrowed(self.data(info, shape));
        let storage = QStorage::from_data(data, &Device::Cpu, info.dtype)?;
        Ok(QTensor::new(storage, shape)?)
    }

    /// The bytes of the first rows of a tensor: as many as `shape` has.
    fn data(&self, info: &TensorInfo, shape: &[usize]) -> &[u8] {
        let elements: usize = shape.iter().product();
        let bytes = elements / info.dtype.block_size() * info.dtype.type_size();
        // In range: the header was checked, and a part of the rows needs no more than all.
        &self.file.bytes()[info.offset..info.offset + info.bytes.min(bytes)]
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

    fn vector(&self, role: Role, length: usize) -> Result<Vec<f32>, InferError> {
        let info = self.info(role, &[length])?;
        Ok(self.copy(info, &[length])?.dequantize(&Device::Cpu)?.to_vec1()?)
    }

    fn matrix(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
    ) -> Result<Tensor, InferError> {
        let info = self.info(role, &[rows, columns])?;
        Ok(self.copy(info, &[keep.min(rows), columns])?.dequantize(&Device::Cpu)?)
    }

    fn table(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
    ) -> Result<Table, InferError> {
        let info = self.info(role, &[rows, columns])?;
        Ok(Table::Quantized(self.copy(info, &[keep.min(rows), columns])?))
    }

    fn packed(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
        packing: Packing<'_>,
    ) -> Result<PackedMatrix, InferError> {
        let info = self.info(role, &[rows, columns])?;
        let keep = keep.min(rows);
        let path = || self.header.path().to_owned();
        let tensor = || role.gguf_name();
        let weight_type = weight_type(info.dtype).ok_or_else(|| InferError::TensorType {
            path: path(),
            tensor: tensor(),
            got: format!("{:?}", info.dtype),
            supported: SUPPORTED_TYPES,
        })?;
        let data = self.data(info, &[keep, columns]);
        let Packing { pool, memory } = packing;
        let packed = PackedMatrix::from_bytes_in(memory, pool, weight_type, keep, columns, data);
        self.file.release(data);
        packed.map_err(|source| InferError::Weights {
            path: path(),
            tensor: tensor(),
            source: Box::new(source),
        })
    }
}

const fn weight_type(dtype: GgmlDType) -> Option<WeightType> {
    Some(match dtype {
        GgmlDType::F32 => WeightType::F32,
        GgmlDType::F16 => WeightType::F16,
        GgmlDType::BF16 => WeightType::BF16,
        GgmlDType::Q4_0 => WeightType::Q4_0,
        GgmlDType::Q4_1 => WeightType::Q4_1,
        GgmlDType::Q5_0 => WeightType::Q5_0,
        GgmlDType::Q5_1 => WeightType::Q5_1,
        GgmlDType::Q8_0 => WeightType::Q8_0,
        GgmlDType::Q4K => WeightType::Q4_K,
        GgmlDType::Q5K => WeightType::Q5_K,
        GgmlDType::Q6K => WeightType::Q6_K,
        _ => return None,
    })
}
