//! The weights of the tiny model: seeded noise of a size that keeps activations in range.

use std::path::Path;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};

use super::{TinyDtype, TinyModel};
use crate::InferError;
use crate::checkpoint::{LayerRole, Role};

pub(super) const ROPE_THETA: f32 = 1_000_000.0;
pub(super) const RMS_NORM_EPS: f32 = 1e-6;

pub(super) struct TinyTensor {
    pub(super) role: Role,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl TinyTensor {
    /// As GGUF holds it: vectors stay `f32`.
    pub(super) fn quantize(&self, dtype: TinyDtype) -> Result<QTensor, InferError> {
        let dtype = match dtype {
            _ if self.shape.len() == 1 => GgmlDType::F32,
            TinyDtype::F32 => GgmlDType::F32,
            TinyDtype::F16 => GgmlDType::F16,
            TinyDtype::BF16 => GgmlDType::BF16,
            TinyDtype::Q8_0 => GgmlDType::Q8_0,
            TinyDtype::Q4_0 => GgmlDType::Q4_0,
            TinyDtype::Q4_1 => GgmlDType::Q4_1,
            TinyDtype::Q5_0 => GgmlDType::Q5_0,
            TinyDtype::Q5_1 => GgmlDType::Q5_1,
            TinyDtype::Q4K => GgmlDType::Q4K,
            TinyDtype::Q5K => GgmlDType::Q5K,
            TinyDtype::Q6K => GgmlDType::Q6K,
        };
        let tensor = Tensor::from_slice(&self.values, &self.shape[..], &Device::Cpu)?;
        Ok(QTensor::quantize(&tensor, dtype)?)
    }
}

pub(super) fn to_safetensors(
    path: &Path,
    tensors: &[TinyTensor],
    dtype: TinyDtype,
) -> Result<Vec<u8>, InferError> {
    let failed = |source| InferError::Safetensors { path: path.to_owned(), source };
    let encoded: Vec<(String, Dtype, &[usize], Vec<u8>)> = tensors
        .iter()
        .map(|tensor| {
            let values = tensor.values.iter().copied();
            let (dtype, bytes) = match dtype {
                TinyDtype::F16 => {
                    (Dtype::F16, values.flat_map(|v| f16::from_f32(v).to_le_bytes()).collect())
                }
                TinyDtype::BF16 => {
                    (Dtype::BF16, values.flat_map(|v| bf16::from_f32(v).to_le_bytes()).collect())
                }
                _ => (Dtype::F32, values.flat_map(f32::to_le_bytes).collect()),
            };
            (tensor.role.safetensors_name(), dtype, &tensor.shape[..], bytes)
        })
        .collect();
    let views = encoded
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            Ok((name.as_str(), TensorView::new(*dtype, shape.to_vec(), bytes)?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    safetensors::serialize(views, None).map_err(failed)
}

pub(super) fn tensors(model: &TinyModel, rows: usize) -> Vec<TinyTensor> {
    use LayerRole as L;
    let mut noise = Noise(model.seed);
    let hidden = model.hidden_size;
    let inner = model.intermediate_size;
    let key_value = hidden / model.attention_heads * model.key_value_heads;
    let mut all = Vec::new();
    let mut add = |role, shape: &[usize], middle: f32, size: f32| {
        let count = shape.iter().product();
        let values = (0..count).map(|_| middle + size * noise.next()).collect();
        all.push(TinyTensor { role, shape: shape.to_vec(), values });
    };
    let unit = |columns: usize| (3.0 / columns as f32).sqrt();
    add(Role::Embedding, &[rows, hidden], 0.0, 1.0);
    for layer in 0..model.layers {
        let role = |role| Role::Layer(layer, role);
        add(role(L::InputNorm), &[hidden], 1.0, 0.2);
        add(role(L::QProj), &[hidden, hidden], 0.0, 2.0 * unit(hidden));
        add(role(L::QBias), &[hidden], 0.0, 0.5);
        add(role(L::KProj), &[key_value, hidden], 0.0, 2.0 * unit(hidden));
        add(role(L::KBias), &[key_value], 0.0, 0.5);
        add(role(L::VProj), &[key_value, hidden], 0.0, unit(hidden));
        add(role(L::VBias), &[key_value], 0.0, 0.5);
        add(role(L::OProj), &[hidden, hidden], 0.0, 2.0 * unit(hidden));
        add(role(L::PostAttentionNorm), &[hidden], 1.0, 0.2);
        add(role(L::GateProj), &[inner, hidden], 0.0, 2.0 * unit(hidden));
        add(role(L::UpProj), &[inner, hidden], 0.0, 2.0 * unit(hidden));
        add(role(L::DownProj), &[hidden, inner], 0.0, 2.0 * unit(inner));
    }
    add(Role::OutputNorm, &[hidden], 1.0, 0.2);
    if !model.tied_head {
        add(Role::Head, &[rows, hidden], 0.0, 4.0 * unit(hidden));
    }
    all
}

/// SplitMix64 (Steele, Lea and Flood 2014), as numbers from -1 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        // 24 bits are exact in an `f32`.
        ((z ^ z >> 31) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
