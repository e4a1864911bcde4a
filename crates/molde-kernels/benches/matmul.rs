//! Speed of the matrix kernels on the shapes of Qwen2.5-0.5B, with a correctness check beside it.
//!
//! `cargo bench -p molde-kernels [-- [threads=N] [isa=NAME] [file=NAME] [tokens=N] [full]]`: best of several short runs. GB/s counts the
//! packed weights once, G MAC/s the multiply-adds; the model's lines add up its 24 layers in the
//! mixture of types that the official Q4_K_M file has. With one thread, processor time is measured,
//! which other processes disturb little.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the terminal")]

use std::time::{Duration, Instant};

use molde_kernels::{Isa, Kernels, PackedMatrix, Product, QuantizedRows, WeightMemory, WeightType};

/// Deterministic pseudo-random bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Random weights of a type, with scales of about 0.01.
fn weights(random: &mut Random, weight_type: WeightType, rows: usize, columns: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; weight_type.row_bytes(columns).unwrap() * rows];
    for chunk in bytes.chunks_mut(8) {
        let value = random.next().to_le_bytes();
        chunk.copy_from_slice(&value[..chunk.len()]);
    }
    let scale = 0x211f_u16.to_le_bytes();
    for block in bytes.chunks_exact_mut(weight_type.block_bytes()) {
        let at: &[usize] = match weight_type {
            WeightType::Q6_K => &[208],
            WeightType::Q4_K | WeightType::Q5_K | WeightType::Q4_1 | WeightType::Q5_1 => &[0, 2],
            _ => &[0],
        };
        for &at in at {
            block[at..at + 2].copy_from_slice(&scale);
        }
    }
    bytes
}

/// Processor seconds of this thread so far, where the system tells: time in which other
/// processes ran is not in them.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// Seconds per run: the processor's, averaged, for one thread; else the best run's.
fn seconds(threads: usize, budget: Duration, mut run: impl FnMut()) -> f64 {
    run();
    let (start, processor) = (Instant::now(), processor_seconds());
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || start.elapsed() < budget {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64());
        runs += 1;
    }
    match (processor, processor_seconds()) {
        // The system counts in ticks of some milliseconds.
        (Some(before), Some(after)) if threads == 1 && after - before > 0.03 => {
            (after - before) / f64::from(runs)
        }
        _ => best,
    }
}

/// Read bandwidth of the machine, GB/s.
fn bandwidth(pool: &rayon::ThreadPool) -> f64 {
    use rayon::prelude::*;
    let data = vec![1_u64; 32 << 20];
    let seconds = pool.install(|| {
        seconds(pool.current_num_threads(), Duration::from_millis(400), || {
            let sum: u64 = data.par_chunks(1 << 16).map(|part| part.iter().sum::<u64>()).sum();
            assert_eq!(sum, 32 << 20);
        })
    });
    (data.len() * 8) as f64 / seconds / 1e9
}

struct Setup {
    pool: rayon::ThreadPool,
    kernels: Kernels,
    random: Random,
}

impl Setup {
    /// Seconds per multiplication, after comparing one element with a naive product.
    fn time(&mut self, matrix: &PackedMatrix, tokens: usize, budget: Duration) -> f64 {
        let columns = matrix.columns();
        let values: Vec<f32> = (0..tokens * columns).map(|_| self.random.float()).collect();
        let mut rows = QuantizedRows::new();
        rows.quantize(self.kernels, &self.pool, &values, tokens, columns).unwrap();
        let mut output = vec![0.0; tokens * matrix.rows()];
        let time = self.pool.install(|| {
            let run = || self.kernels.matmul(&self.pool, &rows, matrix, &mut output).unwrap();
            seconds(self.pool.current_num_threads(), budget, run)
        });
        let (token, row) = (tokens - 1, matrix.rows() - 1);
        let mut weights = vec![0.0; columns];
        matrix.dequantize_row(row, &mut weights).unwrap();
        let terms = || {
            weights
                .iter()
                .zip(&values[token * columns..])
                .map(|(&w, &x)| f64::from(w) * f64::from(x))
        };
        let (exact, size) =
            (terms().sum::<f64>(), terms().map(|term| term * term).sum::<f64>().sqrt());
        let got = f64::from(output[token * matrix.rows() + row]);
        assert!((got - exact).abs() < 0.02 * size, "wrong result: {got}, expected {exact}");
        time
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let threads = argument("threads=").map_or(2, |text| text.parse().unwrap());
    let isas: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.is_available()).collect();
    let full = arguments.iter().any(|argument| argument == "full");
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    println!("{threads} threads, read bandwidth {:.1} GB/s", bandwidth(&pool()));
    for isa in isas.into_iter().rev() {
        if argument("isa=").map_or(isa == Isa::Scalar && !full, |name| name != isa.name()) {
            continue;
        }
        let mut setup =
            Setup { pool: pool(), kernels: Kernels::with_isa(isa).unwrap(), random: Random(7) };
        println!("\n{isa}");
        if full {
            shapes(&mut setup);
        }
        model(&mut setup, argument("file="), argument("tokens=").map(|text| text.parse().unwrap()));
    }
}

/// Every real shape, in every width.
fn shapes(setup: &mut Setup) {
    println!("{:>14} {:>5} {:>7} {:>8} {:>9}", "shape", "type", "tokens", "GB/s", "G MAC/s");
    for (rows, columns) in [(896, 896), (128, 896), (4864, 896), (896, 4864), (151_936, 896)] {
        for weight_type in [
            WeightType::Q8_0,
            WeightType::Q5_0,
            WeightType::Q4_0,
            WeightType::Q6_K,
            WeightType::Q4_K,
        ] {
            if columns % weight_type.block_weights() != 0
                || rows > 5000 && weight_type != WeightType::Q8_0
            {
                continue;
            }
            let bytes = weights(&mut setup.random, weight_type, rows, columns);
            let matrix =
                PackedMatrix::from_bytes(&setup.pool, weight_type, rows, columns, &bytes).unwrap();
            for tokens in if rows > 5000 { vec![1, 8] } else { vec![1, 2, 4, 8, 16, 64, 512] } {
                let seconds = setup.time(&matrix, tokens, Duration::from_millis(100));
                println!(
                    "{:>14} {:>5} {tokens:>7} {:>8.1} {:>9.1}",
                    format!("{rows}x{columns}"),
                    weight_type.name(),
                    matrix.memory_bytes() as f64 / seconds / 1e9,
                    (rows * columns * tokens) as f64 / seconds / 1e9,
                );
            }
        }
    }
}

/// One layer's matrices, packed.
struct Layer {
    qkv: [PackedMatrix; 3],
    output: PackedMatrix,
    gate_up: [PackedMatrix; 2],
    down: PackedMatrix,
}

/// The whole model: layers alternate between the two kinds that a Q4_K_M file has.
fn model(setup: &mut Setup, only_file: Option<&str>, only_tokens: Option<usize>) {
    for (name, small, down_even, down_odd) in [
        ("Q4_K_M", WeightType::Q5_0, WeightType::Q6_K, WeightType::Q4_K),
        ("Q8_0", WeightType::Q8_0, WeightType::Q8_0, WeightType::Q8_0),
        ("Q4_0", WeightType::Q4_0, WeightType::Q4_0, WeightType::Q4_0),
    ] {
        if only_file.is_some_and(|file| file != name) {
            continue;
        }
        let memory = WeightMemory::new();
        let mut pack = |weight_type, rows, columns| {
            let bytes = weights(&mut setup.random, weight_type, rows, columns);
            let pool = &setup.pool;
            PackedMatrix::from_bytes_in(&memory, pool, weight_type, rows, columns, &bytes).unwrap()
        };
        let layers: Vec<Layer> = (0..24)
            .map(|layer| Layer {
                qkv: [
                    pack(small, 896, 896),
                    pack(small, 128, 896),
                    pack(WeightType::Q8_0, 128, 896),
                ],
                output: pack(small, 896, 896),
                gate_up: [pack(small, 4864, 896), pack(small, 4864, 896)],
                down: pack(if layer % 2 == 0 { down_even } else { down_odd }, 896, 4864),
            })
            .collect();
        let start = Instant::now();
        let head = pack(WeightType::Q8_0, 151_665, 896);
        let packing = start.elapsed().as_secs_f64();
        let bytes: usize = layers
            .iter()
            .flat_map(|l| l.qkv.iter().chain([&l.output, &l.down]).chain(&l.gate_up))
            .map(PackedMatrix::memory_bytes)
            .sum();
        println!(
            "{name}: layers {:.0} MB, head {:.0} MB (packed in {packing:.2} s)",
            bytes as f64 / 1e6,
            head.memory_bytes() as f64 / 1e6
        );
        for tokens in [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 512] {
            if only_tokens.is_some_and(|only| only != tokens) {
                continue;
            }
            let seconds = model_step(setup, &layers, tokens);
            println!(
                "  {tokens:>4} tokens: {:>7.1} tok/s without the head, {:>6.1} GB/s, {:>6.1} G MAC/s",
                tokens as f64 / seconds,
                bytes as f64 / seconds / 1e9,
                357.9e6 * tokens as f64 / seconds / 1e9,
            );
            if tokens == 1 {
                let head_seconds = setup.time(&head, 1, Duration::from_millis(100));
                println!(
                    "        with the head: {:>7.1} tok/s (head alone {:.1} GB/s)",
                    1.0 / (seconds + head_seconds),
                    head.memory_bytes() as f64 / head_seconds / 1e9
                );
            }
        }
    }
}

/// Seconds for all matrix products of all layers, quantization of the activations included.
fn model_step(setup: &mut Setup, layers: &[Layer], tokens: usize) -> f64 {
    let (pool, kernels) = (&setup.pool, setup.kernels);
    let hidden: Vec<f32> = (0..tokens * 896).map(|_| setup.random.float()).collect();
    let wide: Vec<f32> = (0..tokens * 4864).map(|_| setup.random.float()).collect();
    let mut rows = QuantizedRows::new();
    let [mut q, mut k, mut v] = [896, 128, 128].map(|width| vec![0.0; tokens * width]);
    let [mut gate, mut up] = [vec![0.0; tokens * 4864], vec![0.0; tokens * 4864]];
    let mut run = || {
        for layer in layers {
            rows.quantize(kernels, pool, &hidden, tokens, 896).unwrap();
            let mut products = [
                Product { weights: &layer.qkv[0], output: &mut q },
                Product { weights: &layer.qkv[1], output: &mut k },
                Product { weights: &layer.qkv[2], output: &mut v },
            ];
            kernels.matmul_all(pool, &rows, &mut products).unwrap();
            rows.quantize(kernels, pool, &hidden, tokens, 896).unwrap();
            kernels.matmul(pool, &rows, &layer.output, &mut q).unwrap();
            rows.quantize(kernels, pool, &hidden, tokens, 896).unwrap();
            let mut products = [
                Product { weights: &layer.gate_up[0], output: &mut gate },
                Product { weights: &layer.gate_up[1], output: &mut up },
            ];
            kernels.matmul_all(pool, &rows, &mut products).unwrap();
            rows.quantize(kernels, pool, &wide, tokens, 4864).unwrap();
            kernels.matmul(pool, &rows, &layer.down, &mut q).unwrap();
        }
    };
    let budget = Duration::from_millis(if tokens < 64 { 400 } else { 1500 });
    pool.install(|| seconds(pool.current_num_threads(), budget, &mut run))
}
