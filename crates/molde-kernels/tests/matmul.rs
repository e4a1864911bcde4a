//! Products against double precision, and bit for bit against each other.
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests")]

mod common;

use common::{Random, all_kernels, bits, dequantized, pool};
use molde_kernels::{KernelError, Kernels, PackedMatrix, Product, QuantizedRows, WeightType};

fn multiply(kernels: Kernels, threads: usize, values: &[f32], matrix: &PackedMatrix) -> Vec<f32> {
    let pool = pool(threads);
    let tokens = values.len() / matrix.columns();
    let mut rows = QuantizedRows::new();
    rows.quantize(kernels, &pool, values, tokens, matrix.columns()).unwrap();
    let mut output = vec![f32::NAN; tokens * matrix.rows()];
    kernels.matmul(&pool, &rows, matrix, &mut output).unwrap();
    output
}

fn matrix(
    random: &mut Random,
    weight_type: WeightType,
    rows: usize,
    columns: usize,
) -> PackedMatrix {
    let bytes = random.weights(weight_type, rows, columns);
    PackedMatrix::from_bytes(&pool(2), weight_type, rows, columns, &bytes).unwrap()
}

/// The documented quantization of activations, done again.
fn requantized(values: &[f32]) -> Vec<f64> {
    let mut out = Vec::new();
    for block in values.chunks(32) {
        let largest = block.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
        let scale = largest / 127.0;
        let inverse = 127.0 / largest;
        out.extend(block.iter().map(|x| {
            if largest == 0.0 {
                0.0
            } else {
                f64::from((x * inverse).round_ties_even()) * f64::from(scale)
            }
        }));
    }
    out
}

/// Tokens and outputs that hit every path: in registers, one tile, several, partial panels.
const SHAPES: [(usize, usize); 7] =
    [(1, 49), (2, 16), (4, 33), (5, 20), (13, 31), (64, 17), (250, 5)];

#[test]
fn products_agree_with_double_precision_for_every_type() {
    let mut random = Random(1);
    let kernels = Kernels::detect();
    for weight_type in WeightType::ALL {
        for (i, (tokens, rows)) in SHAPES.into_iter().enumerate() {
            let block = weight_type.block_weights();
            // 4,864 is cut into several chunks; odd lengths are padded.
            let columns = match block {
                1 => [7, 33, 896, 4864, 100, 31, 64][i],
                32 => [32, 96, 896, 4864, 1312, 64, 32][i],
                _ => [256, 512, 768, 4864, 1536, 256, 256][i],
            };
            let matrix = matrix(&mut random, weight_type, rows, columns);
            let values = random.normals(tokens * columns);
            let got = multiply(kernels, 2, &values, &matrix);
            let weights = dequantized(&matrix);
            for (token, values) in values.chunks_exact(columns).enumerate() {
                let values = requantized(values);
                for (row, weights) in weights.iter().enumerate() {
                    let terms = || values.iter().zip(weights).map(|(x, &w)| x * f64::from(w));
                    let (exact, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                    let got = f64::from(got[token * rows + row]);
                    assert!(
                        (got - exact).abs() <= 2e-6 * size + 1e-12,
                        "{weight_type} {tokens}x{columns}x{rows} [{token}, {row}]: {got}, expected {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn rounding_of_activations_costs_less_than_six_thousandths() {
    let mut random = Random(2);
    for columns in [896, 4864] {
        let matrix = matrix(&mut random, WeightType::F32, 64, columns);
        let values = random.normals(16 * columns);
        let got = multiply(Kernels::detect(), 1, &values, &matrix);
        let weights = dequantized(&matrix);
        let (mut error, mut size) = (0.0, 0.0);
        for (token, values) in values.chunks_exact(columns).enumerate() {
            for (row, weights) in weights.iter().enumerate() {
                let exact: f64 =
                    values.iter().zip(weights).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
                error += (f64::from(got[token * 64 + row]) - exact).powi(2);
                size += exact.powi(2);
            }
        }
        let relative = (error / size).sqrt();
        println!("{columns} columns: {relative:.5}");
        assert!(relative < 0.006, "{relative}");
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let mut random = Random(3);
    for weight_type in WeightType::ALL {
        for (tokens, rows, columns) in
            [(1, 35, 768), (3, 17, 256), (4, 16, 512), (7, 18, 256), (30, 20, 1536)]
        {
            let matrix = matrix(&mut random, weight_type, rows, columns);
            let values = random.normals(tokens * columns);
            let [scalar, others @ ..] = &*all_kernels() else {
                panic!("scalar kernels exist everywhere")
            };
            let expected = bits(&multiply(*scalar, 1, &values, &matrix));
            for &kernels in others {
                let got = bits(&multiply(kernels, 2, &values, &matrix));
                assert!(got == expected, "{weight_type} {tokens} tokens, {}", kernels.isa());
            }
        }
    }
}

#[test]
fn extreme_codes_are_exact_in_every_instruction_set() {
    // All codes at their limits and all activations at theirs: integer sums at their largest.
    for weight_type in WeightType::ALL {
        for fill in [0x00_u8, 0x7f, 0x80, 0xff] {
            if weight_type.block_weights() == 1 {
                continue;
            }
            let (rows, columns) = (16, 512);
            let mut bytes = vec![fill; weight_type.row_bytes(columns).unwrap() * rows];
            let at: &[usize] = match weight_type {
                WeightType::Q6_K => &[208],
                WeightType::Q4_K | WeightType::Q5_K | WeightType::Q4_1 | WeightType::Q5_1 => {
                    &[0, 2]
                }
                _ => &[0],
            };
            for block in bytes.chunks_exact_mut(weight_type.block_bytes()) {
                for &at in at {
                    block[at..at + 2].copy_from_slice(&half::f16::ONE.to_le_bytes());
                }
            }
            let matrix =
                PackedMatrix::from_bytes(&pool(1), weight_type, rows, columns, &bytes).unwrap();
            let weights = dequantized(&matrix);
            for sign in [127.0_f32, -127.0] {
                for tokens in [1, 6] {
                    let exact: f64 =
                        weights[0].iter().map(|&w| f64::from(w) * f64::from(sign)).sum();
                    for kernels in all_kernels() {
                        for got in multiply(kernels, 1, &vec![sign; columns * tokens], &matrix) {
                            assert!(
                                (f64::from(got) - exact).abs() <= exact.abs() * 1e-6,
                                "{weight_type} {fill:#x} {sign} {}: {got}, expected {exact}",
                                kernels.isa()
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_token_has_the_same_bits_alone_and_in_any_batch_on_any_number_of_threads() {
    let mut random = Random(4);
    for weight_type in
        [WeightType::Q8_0, WeightType::Q5_0, WeightType::Q4_0, WeightType::Q4_K, WeightType::Q6_K]
    {
        let (rows, columns) = (50, 1536);
        let matrix = matrix(&mut random, weight_type, rows, columns);
        let values = random.normals(300 * columns);
        for kernels in all_kernels().into_iter().skip(1) {
            let alone: Vec<f32> = values
                .chunks_exact(columns)
                .flat_map(|token| multiply(kernels, 1, token, &matrix))
                .collect();
            for tokens in [2, 3, 4, 5, 8, 11, 12, 13, 16, 25, 64, 300] {
                let threads = [1, 2, 4][tokens % 3];
                let together = multiply(kernels, threads, &values[..tokens * columns], &matrix);
                assert!(
                    bits(&together) == bits(&alone[..tokens * rows]),
                    "{weight_type} {tokens} {}",
                    kernels.isa()
                );
            }
        }
    }
}

#[test]
fn listed_rows_have_the_bits_of_the_full_product() {
    let mut random = Random(5);
    let (rows, columns) = (1003, 896);
    let matrix = matrix(&mut random, WeightType::Q8_0, rows, columns);
    let kernels = Kernels::detect();
    for tokens in [1, 3, 20] {
        let values = random.normals(tokens * columns);
        let full = multiply(kernels, 2, &values, &matrix);
        let pool = pool(2);
        let mut activations = QuantizedRows::new();
        activations.quantize(kernels, &pool, &values, tokens, columns).unwrap();
        let lists: [Vec<u32>; 4] = [
            vec![],
            vec![1002],
            vec![5, 3, 3, 1002, 0, 17, 16],
            (0..rows as u32).rev().step_by(7).collect(),
        ];
        for list in lists {
            let mut got = vec![f32::NAN; tokens * list.len()];
            kernels.matmul_rows(&pool, &activations, &matrix, &list, &mut got).unwrap();
            let expected: Vec<f32> = full
                .chunks_exact(rows)
                .flat_map(|token| list.iter().map(|&row| token[row as usize]))
                .collect();
            assert_eq!(bits(&got), bits(&expected));
        }
        let got =
            kernels.matmul_rows(&pool, &activations, &matrix, &[1003], &mut vec![0.0; tokens]);
        assert_eq!(got, Err(KernelError::OutOfRange { argument: "rows", got: 1003, len: 1003 }));
    }
}

#[test]
fn joint_products_have_the_bits_of_single_ones() {
    let mut random = Random(6);
    let kernels = Kernels::detect();
    let pool = pool(2);
    let types = [
        WeightType::Q5_0,
        WeightType::Q8_0,
        WeightType::Q4_0,
        WeightType::F32,
        WeightType::Q5_1,
        WeightType::Q4_1,
    ];
    let matrices: Vec<PackedMatrix> =
        types.iter().enumerate().map(|(i, &t)| matrix(&mut random, t, 20 + 30 * i, 96)).collect();
    for tokens in [1, 14] {
        let values = random.normals(tokens * 96);
        let mut activations = QuantizedRows::new();
        activations.quantize(kernels, &pool, &values, tokens, 96).unwrap();
        let mut outputs: Vec<Vec<f32>> =
            matrices.iter().map(|m| vec![0.0; tokens * m.rows()]).collect();
        let mut products: Vec<Product<'_>> = matrices
            .iter()
            .zip(&mut outputs)
            .map(|(weights, output)| Product { weights, output })
            .collect();
        kernels.matmul_all(&pool, &activations, &mut products).unwrap();
        for (matrix, output) in matrices.iter().zip(&outputs) {
            assert_eq!(bits(output), bits(&multiply(kernels, 1, &values, matrix)));
        }
    }
}

#[test]
fn undefined_activations_stay_with_their_token() {
    let mut random = Random(7);
    let matrix = matrix(&mut random, WeightType::Q8_0, 16, 64);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = random.normals(6 * 64);
        let clean = multiply(Kernels::detect(), 1, &values, &matrix);
        values[2 * 64 + 40] = bad;
        for kernels in all_kernels() {
            let got = multiply(kernels, 1, &values, &matrix);
            for (token, (got, clean)) in got.chunks(16).zip(clean.chunks(16)).enumerate() {
                if token == 2 {
                    assert!(got.iter().all(|x| x.is_nan()));
                } else {
                    assert_eq!(bits(got), bits(clean));
                }
            }
        }
    }
}

#[test]
fn tiny_and_zero_activations_are_finite() {
    let matrix = PackedMatrix::from_f32(&pool(1), 16, 32, &[1.0; 512]).unwrap();
    for value in [0.0, -0.0, f32::MIN_POSITIVE, 1e-45, 1e-37, f32::MAX / 64.0] {
        for kernels in all_kernels() {
            for got in multiply(kernels, 1, &[value; 32], &matrix) {
                let expected = 32.0 * value;
                assert!(
                    (got - expected).abs() <= expected.abs() * 1e-3 + 1e-35,
                    "{value:e}: {got:e}"
                );
            }
        }
    }
}

#[test]
fn mismatched_shapes_are_errors_and_nothing_is_written() {
    let kernels = Kernels::detect();
    let pool = pool(1);
    let matrix = PackedMatrix::from_f32(&pool, 2, 32, &[1.0; 64]).unwrap();
    let mut activations = QuantizedRows::new();
    assert!(matches!(
        activations.quantize(kernels, &pool, &[0.0; 5], 1, 6),
        Err(KernelError::Length { expected: 6, got: 5, .. })
    ));
    assert!(matches!(
        activations.quantize(kernels, &pool, &[], 1, 0),
        Err(KernelError::Multiple { .. })
    ));
    activations.quantize(kernels, &pool, &[1.0; 33], 1, 33).unwrap();
    let mut output = [7.0; 2];
    assert!(matches!(
        kernels.matmul(&pool, &activations, &matrix, &mut output),
        Err(KernelError::Dimension { expected: 32, got: 33, .. })
    ));
    activations.quantize(kernels, &pool, &[1.0; 32], 1, 32).unwrap();
    assert!(matches!(
        kernels.matmul(&pool, &activations, &matrix, &mut output[..1]),
        Err(KernelError::Length { expected: 2, got: 1, .. })
    ));
    assert_eq!(output, [7.0; 2]);
    activations.quantize(kernels, &pool, &[], 0, 32).unwrap();
    kernels.matmul(&pool, &activations, &matrix, &mut []).unwrap();
    kernels.matmul(&pool, &activations, &matrix, &mut []).unwrap();
}
