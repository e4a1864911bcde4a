//! Packed weights decode to what the reference implementation says, and float types to nearly
//! what they were.
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests")]

mod common;

use common::{Random, pool};
use molde_kernels::{KernelError, PackedMatrix, WeightType};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn every_quantized_type_decodes_exactly_as_the_reference() {
    let cases: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("data/blocks.json")).unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = case["type"].as_str().unwrap();
        let weight_type = WeightType::ALL.into_iter().find(|t| t.name() == name).unwrap();
        let columns = case["columns"].as_u64().unwrap() as usize;
        let rows = case["rows"].as_u64().unwrap() as usize;
        let matrix = PackedMatrix::from_bytes(
            &pool(2),
            weight_type,
            rows,
            columns,
            &hex(case["bytes"].as_str().unwrap()),
        )
        .unwrap();
        let expected: Vec<f32> = hex(case["values"].as_str().unwrap())
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        let got = common::dequantized(&matrix).concat();
        for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
            // Equal as numbers: the reference writes some zeros with a sign.
            assert!(
                got == expected,
                "{name} [{}, {}]: {got}, expected {expected}",
                i / columns,
                i % columns
            );
        }
        assert_eq!(got.len(), expected.len());
    }
}

#[test]
fn float_types_lose_at_most_half_a_step_of_the_block() {
    let mut random = Random(11);
    for weight_type in [WeightType::F32, WeightType::F16, WeightType::BF16] {
        for columns in [32, 45, 896] {
            let bytes = random.weights(weight_type, 18, columns);
            let matrix =
                PackedMatrix::from_bytes(&pool(1), weight_type, 18, columns, &bytes).unwrap();
            let size = weight_type.block_bytes();
            let original: Vec<f32> = bytes
                .chunks_exact(size)
                .map(|b| match weight_type {
                    WeightType::F32 => f32::from_le_bytes(b.try_into().unwrap()),
                    WeightType::F16 => half::f16::from_le_bytes(b.try_into().unwrap()).to_f32(),
                    _ => half::bf16::from_le_bytes(b.try_into().unwrap()).to_f32(),
                })
                .collect();
            for (row, original) in
                common::dequantized(&matrix).iter().zip(original.chunks_exact(columns))
            {
                for (got, expected) in row.chunks(32).zip(original.chunks(32)) {
                    let largest = expected.iter().fold(0.0_f32, |m, w| m.max(w.abs()));
                    for (got, expected) in got.iter().zip(expected) {
                        // Half a step, and a little for the rounding of the step to half precision.
                        assert!(
                            (got - expected).abs() <= largest / 127.0 * 0.57,
                            "{got} {expected} {largest}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn memory_is_that_of_the_file_format() {
    let mut random = Random(12);
    for weight_type in WeightType::ALL {
        let bytes = random.weights(weight_type, 32, 1024);
        let matrix = PackedMatrix::from_bytes(&pool(1), weight_type, 32, 1024, &bytes).unwrap();
        let expected = match weight_type {
            WeightType::F32 | WeightType::F16 | WeightType::BF16 => 32 * 1024 / 32 * 34,
            // Scales and minima are unpacked from 6 to 8 bits.
            WeightType::Q4_K | WeightType::Q5_K => bytes.len() + 32 * 1024 / 256 * 4,
            _ => bytes.len(),
        };
        assert_eq!(matrix.memory_bytes(), expected, "{weight_type}");
    }
}

#[test]
fn what_is_no_number_is_refused_with_its_place() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e7] {
        let mut weights = vec![0.5; 3 * 40];
        weights[2 * 40 + 37] = bad;
        let got = PackedMatrix::from_f32(&pool(1), 3, 40, &weights).unwrap_err();
        assert_eq!(
            got,
            KernelError::WeightNotFinite { row: 2, column: 37, weight_type: WeightType::F32 }
        );
    }
}

#[test]
fn shapes_and_lengths_are_checked() {
    let pool = pool(1);
    let make = |weight_type, rows, columns, bytes: usize| {
        PackedMatrix::from_bytes(&pool, weight_type, rows, columns, &vec![0; bytes]).unwrap_err()
    };
    assert!(matches!(
        make(WeightType::Q8_0, 1, 31, 34),
        KernelError::Multiple { multiple: 32, got: 31, .. }
    ));
    assert!(matches!(
        make(WeightType::Q4_K, 1, 128, 72),
        KernelError::Multiple { multiple: 256, got: 128, .. }
    ));
    assert!(matches!(
        make(WeightType::F32, 0, 8, 0),
        KernelError::Multiple { dimension: "rows", .. }
    ));
    assert!(matches!(
        make(WeightType::F32, 8, 0, 0),
        KernelError::Multiple { dimension: "columns", .. }
    ));
    assert!(matches!(
        make(WeightType::Q8_0, 2, 32, 67),
        KernelError::Length { expected: 68, got: 67, .. }
    ));
    assert!(matches!(make(WeightType::F32, usize::MAX, 2, 8), KernelError::TooLarge { .. }));
    assert!(matches!(make(WeightType::F32, 1, usize::MAX, 8), KernelError::TooLarge { .. }));
    let matrix = PackedMatrix::from_f32(&pool, 2, 3, &[1.0; 6]).unwrap();
    assert!(matches!(
        matrix.dequantize_row(2, &mut [0.0; 3]),
        Err(KernelError::OutOfRange { got: 2, len: 2, .. })
    ));
    assert!(matches!(
        matrix.dequantize_row(1, &mut [0.0; 4]),
        Err(KernelError::Length { expected: 3, got: 4, .. })
    ));
    assert!(PackedMatrix::from_f32(&pool, 2, 3, &[1.0; 5]).is_err());
}
