//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its part")]

use molde_kernels::{Isa, Kernels, PackedMatrix, WeightType};

/// Deterministic pseudo-random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// About normal, mean 0, deviation 1: the sum of twelve uniform numbers.
    pub(crate) fn normal(&mut self) -> f32 {
        (0..12).map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32).sum::<f32>() - 6.0
    }

    pub(crate) fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal()).collect()
    }

    /// The bytes of a random matrix of any type.
    pub(crate) fn weights(
        &mut self,
        weight_type: WeightType,
        rows: usize,
        columns: usize,
    ) -> Vec<u8> {
        let elements = rows * columns;
        match weight_type {
            WeightType::F32 => {
                return self
                    .normals(elements)
                    .iter()
                    .flat_map(|w| (w * 0.02).to_le_bytes())
                    .collect();
            }
            WeightType::F16 => {
                let weights = self.normals(elements);
                return weights
                    .iter()
                    .flat_map(|w| half::f16::from_f32(w * 0.02).to_le_bytes())
                    .collect();
            }
            WeightType::BF16 => {
                let weights = self.normals(elements);
                return weights
                    .iter()
                    .flat_map(|w| half::bf16::from_f32(w * 0.02).to_le_bytes())
                    .collect();
            }
            _ => {}
        }
        let size = weight_type.row_bytes(columns).unwrap() * rows;
        let mut bytes: Vec<u8> = (0..size).map(|_| (self.next() >> 32) as u8).collect();
        let at: &[usize] = match weight_type {
            WeightType::Q6_K => &[208],
            WeightType::Q4_K | WeightType::Q5_K | WeightType::Q4_1 | WeightType::Q5_1 => &[0, 2],
            _ => &[0],
        };
        for block in bytes.chunks_exact_mut(weight_type.block_bytes()) {
            for &at in at {
                let scale = half::f16::from_f32(self.normal() * 0.01);
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
        }
        bytes
    }
}

pub(crate) fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Kernels for every instruction set of this machine, the scalar ones first.
pub(crate) fn all_kernels() -> Vec<Kernels> {
    Isa::ALL.into_iter().filter_map(|isa| Kernels::with_isa(isa).ok()).collect()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// All weights, row by row.
pub(crate) fn dequantized(matrix: &PackedMatrix) -> Vec<Vec<f32>> {
    (0..matrix.rows())
        .map(|row| {
            let mut weights = vec![0.0; matrix.columns()];
            matrix.dequantize_row(row, &mut weights).unwrap();
            weights
        })
        .collect()
}
