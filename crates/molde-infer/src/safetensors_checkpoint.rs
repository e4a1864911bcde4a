//! Weights out of a folder with one safetensors file, or several and an index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use half::{bf16, f16};
use molde_kernels::{PackedMatrix, WeightType};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Deserialize;

use crate::InferError;
use crate::checkpoint::{Checkpoint, Packing, Role};
use crate::gguf::shorten;
use crate::mmap::MappedFile;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Values that one task converts: enough to hide the cost of a task, few enough to stay in cache.
const CHUNK: usize = 1 << 15;

/// Maps the weight files of a folder. Every shard that the index names must be there.
pub(crate) fn map_shards(folder: &Path) -> Result<Vec<MappedFile>, InferError> {
    let index_path = folder.join(INDEX);
    if !index_path.is_file() {
        let single = folder.join(SINGLE);
        if !single.is_file() {
            let expected = "model.safetensors or model.safetensors.index.json";
            return Err(InferError::MissingFile { folder: folder.to_owned(), expected });
        }
        return Ok(vec![MappedFile::open(&single)?]);
    }
    let text = std::fs::read_to_string(&index_path)
        .map_err(|source| InferError::Io { path: index_path.clone(), source })?;
    let index: IndexJson = serde_json::from_str(&text)
        .map_err(|source| InferError::Json { path: index_path.clone(), source })?;
    let names: std::collections::BTreeSet<&String> = index.weight_map.values().collect();
    let mut shards = Vec::new();
    for name in names {
        // A name is a file of this folder, never a way out of it.
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(InferError::KeyValue {
                path: index_path,
                key: "weight_map".to_owned(),
                expected: "names of files in the same folder",
                got: shorten(name),
            });
        }
        shards.push(MappedFile::open(&folder.join(name))?);
    }
    Ok(shards)
}

#[derive(Deserialize)]
struct IndexJson {
    weight_map: BTreeMap<String, String>,
}

/// The parsed headers of all shards.
pub(crate) struct SafetensorsCheckpoint<'a> {
    folder: PathBuf,
    shards: Vec<(&'a MappedFile, SafeTensors<'a>)>,
    /// Tensor name to index in `shards`.
    location: BTreeMap<String, usize>,
}

impl<'a> SafetensorsCheckpoint<'a> {
    pub(crate) fn parse(folder: &Path, files: &'a [MappedFile]) -> Result<Self, InferError> {
        let mut shards = Vec::new();
        let mut location = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            let path = file.path();
            let tensors = SafeTensors::deserialize(file.bytes())
                .map_err(|source| InferError::Safetensors { path: path.to_owned(), source })?;
            for name in tensors.names() {
                if location.insert(name.to_owned(), index).is_some() {
                    let name = shorten(name);
                    return Err(InferError::Duplicate { path: path.to_owned(), name });
                }
            }
            shards.push((file, tensors));
        }
        Ok(Self { folder: folder.to_owned(), shards, location })
    }

    fn view(&self, role: Role) -> Result<(&'a Path, String, TensorView<'_>), InferError> {
        let name = role.safetensors_name();
        let Some((file, tensors)) = self.location.get(&name).map(|&index| &self.shards[index])
        else {
            return Err(InferError::TensorMissing { path: self.folder.clone(), tensor: name });
        };
        let path = file.path();
        let view = tensors
            .tensor(&name)
            .map_err(|source| InferError::Safetensors { path: path.to_owned(), source })?;
        Ok((path, name, view))
    }

    /// The values of a tensor that has exactly the expected shape.
    fn values(&self, role: Role, expected: &[usize]) -> Result<Values<'_>, InferError> {
        let (path, tensor, view) = self.view(role)?;
        if view.shape() != expected {
            return Err(InferError::TensorShape {
                path: path.to_owned(),
                tensor,
                expected: expected.to_vec(),
                got: view.shape().iter().map(|&d| d as u64).collect(),
            });
        }
        let kind = match view.dtype() {
            Dtype::F32 => Kind::F32,
            Dtype::F16 => Kind::F16,
            Dtype::BF16 => Kind::Bf16,
            other => {
                return Err(InferError::TensorType {
                    path: path.to_owned(),
                    tensor,
                    got: format!("{other:?}"),
                    supported: "F32, F16, BF16",
                });
            }
        };
        // `deserialize` has checked that the bytes are exactly shape times size.
        Ok(Values { kind, bytes: view.data() })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    F32,
    F16,
    Bf16,
}

/// Little-endian values, not necessarily aligned.
struct Values<'a> {
    kind: Kind,
    bytes: &'a [u8],
}

impl Values<'_> {
    const fn size(&self) -> usize {
        match self.kind {
            Kind::F32 => 4,
            Kind::F16 | Kind::Bf16 => 2,
        }
    }

    /// Converts the values from `first` on into `out`.
    fn read(&self, first: usize, out: &mut [f32]) {
        let size = self.size();
        let bytes = &self.bytes[first * size..(first + out.len()) * size];
        match self.kind {
            Kind::F32 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *value = f32::from_le_bytes(*raw);
                }
            }
            Kind::F16 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = f16::from_le_bytes(*raw).to_f32();
                }
            }
            Kind::Bf16 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = bf16::from_le_bytes(*raw).to_f32();
                }
            }
        }
    }

    fn to_f32(&self, count: usize) -> Vec<f32> {
        let mut out = vec![0.0; count];
        out.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(index, chunk)| self.read(index * CHUNK, chunk));
        out
    }
}

impl Checkpoint for SafetensorsCheckpoint<'_> {
    fn contains(&self, role: Role) -> bool {
        self.location.contains_key(&role.safetensors_name())
    }

    fn rows(&self, role: Role, columns: usize) -> Result<usize, InferError> {
        let (_, _, view) = self.view(role)?;
        let rows = view.shape().first().copied().unwrap_or(0);
        self.values(role, &[rows, columns]).map(|_| rows)
    }

    fn vector(&self, role: Role, length: usize) -> Result<Vec<f32>, InferError> {
        Ok(self.values(role, &[length])?.to_f32(length))
    }

    fn matrix(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
    ) -> Result<Tensor, InferError> {
        let values = self.values(role, &[rows, columns])?;
        let keep = keep.min(rows);
        Ok(Tensor::from_vec(values.to_f32(keep * columns), (keep, columns), &Device::Cpu)?)
    }

    fn packed(
        &self,
        role: Role,
        (rows, columns): (usize, usize),
        keep: usize,
        packing: Packing<'_>,
    ) -> Result<PackedMatrix, InferError> {
        let values = self.values(role, &[rows, columns])?;
        let keep = keep.min(rows);
        let weight_type = match values.kind {
            Kind::F32 => WeightType::F32,
            Kind::F16 => WeightType::F16,
            Kind::Bf16 => WeightType::BF16,
        };
        let bytes = &values.bytes[..keep * columns * values.size()];
        let Packing { pool, memory } = packing;
        let packed = PackedMatrix::from_bytes_in(memory, pool, weight_type, keep, columns, bytes);
        // The file that has them lets them go.
        self.shards.iter().for_each(|(file, _)| file.release(values.bytes));
        packed.map_err(|source| InferError::Weights {
            path: self.folder.clone(),
            tensor: role.safetensors_name(),
            source: Box::new(source),
        })
    }
}
