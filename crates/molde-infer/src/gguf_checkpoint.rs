//! Weights out of a GGUF file.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};
use rayon::prelude::*;

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
        let data = Cow::Borrowed(self.data(info, shape));
        let storage = QStorage::from_data(data, &Device::Cpu, info.dtype)?;
        Ok(QTensor::new(storage, shape)?)
    }

    /// The bytes of the first rows of a tensor: as many as `shape` has.
    fn data(&self, info: &TensorInfo, shape: &[usize]) -> &[u8] {
        let elements: usize = shape.iter().product();
        let bytes = elements / info.dtype.block_size() * info.dtype.type_size();
        // In range: the header was checked, and a part of the rows needs no more than all.
        &self.bytes[info.offset..info.offset + info.bytes.min(bytes)]
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
        let shape = [keep.min(rows), columns];
        if role == Role::Embedding && self.contains(Role::Head) {
            // Rows are only looked up, which is exact in every type.
            return Ok(Weight::Quantized(Arc::new(self.copy(info, &shape)?)));
        }
        let is_plain = matches!(info.dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        if is_plain || precision == Precision::Exact {
            let tensor = self.copy(info, &shape)?.dequantize(&Device::Cpu)?;
            return Ok(Weight::Full(tensor));
        }
        let tensor = if info.dtype == GgmlDType::Q5_0 {
            let storage = q5_0_as_q8_0(self.data(info, &shape))?;
            QTensor::new(storage, &shape[..])?
        } else {
            self.copy(info, &shape)?
        };
        Ok(Weight::Quantized(Arc::new(tensor)))
    }
}

/// The same weights in another layout: a block of `Q5_0` is an `f16` scale, 32 fifth bits and 32
/// times four bits of a number from -16 to 15; one of `Q8_0` is the scale and 32 `i8`.
///
/// candle 0.11 has vector code for products with `Q8_0` and none for `Q5_0`, the type of most
/// weights in the official `Q4_K_M` files of the 0.5B models.
fn q5_0_as_q8_0(data: &[u8]) -> Result<QStorage, InferError> {
    const VALUES: usize = 32;
    const Q5_0_BYTES: usize = 2 + VALUES / 8 + VALUES / 2;
    const Q8_0_BYTES: usize = 2 + VALUES;
    let blocks = data.len() / Q5_0_BYTES;
    // One byte more than needed, since candle demands an even address.
    let mut buffer = vec![0_u8; blocks * Q8_0_BYTES + 1];
    let start = buffer.as_ptr().align_offset(2).min(1);
    let aligned = &mut buffer[start..start + blocks * Q8_0_BYTES];
    aligned
        .par_chunks_exact_mut(Q8_0_BYTES)
        .zip(data.par_chunks_exact(Q5_0_BYTES))
        .with_min_len(1024)
        .for_each(|(to, from)| {
            let (scale, rest) = from.split_at(2);
            let (fifth_bits, low_bits) = rest.split_at(VALUES / 8);
            to[..2].copy_from_slice(scale);
            for (index, value) in to[2..].iter_mut().enumerate() {
                // The first half is in the low halves of the bytes, the second in the high ones.
                let low = low_bits[index % 16] >> (index / 16 * 4) & 0xF;
                let high = fifth_bits[index / 8] >> (index % 8) & 1;
                *value = (low | high << 4).wrapping_sub(16);
            }
        });
    Ok(QStorage::from_data(Cow::Borrowed(aligned), &Device::Cpu, GgmlDType::Q8_0)?)
}
