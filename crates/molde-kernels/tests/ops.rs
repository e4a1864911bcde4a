//! The small operations and attention, against double precision and bit for bit.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Random, all_kernels, bits, pool};
use molde_kernels::{
    CacheElement, KernelError, Kernels, KvLayer, QueryPlace, RotaryEmbedding, Rotations,
};

/// Runs on every instruction set, asserts equal bits, returns the result.
fn on_all(run: impl Fn(Kernels) -> Vec<f32>) -> Vec<f32> {
    let [scalar, others @ ..] = &*all_kernels() else { panic!("scalar kernels exist everywhere") };
    let expected = run(*scalar);
    for &kernels in others {
        assert_eq!(bits(&run(kernels)), bits(&expected), "{}", kernels.isa());
    }
    expected
}

#[track_caller]
fn close(got: f32, exact: f64, tolerance: f64) {
    assert!(
        (f64::from(got) - exact).abs() <= tolerance,
        "{got}, expected {exact} within {tolerance:e}"
    );
}

/// The places of some consecutive tokens of one sequence.
fn places(sequence: usize, positions: std::ops::Range<usize>) -> Vec<QueryPlace> {
    positions.map(|position| QueryPlace { sequence, positions: position + 1 }).collect()
}

const LENGTHS: [usize; 8] = [1, 15, 16, 17, 64, 100, 896, 4864];

#[test]
fn rms_norm_agrees_with_double_precision() {
    let mut random = Random(1);
    for columns in LENGTHS {
        for rows in [1, 3, 50] {
            let (values, weight) = (random.normals(rows * columns), random.normals(columns));
            let got = on_all(|kernels| {
                let mut output = vec![0.0; values.len()];
                kernels.rms_norm(&pool(2), &values, &weight, 1e-6, &mut output).unwrap();
                output
            });
            for (got, values) in got.chunks(columns).zip(values.chunks(columns)) {
                let mean =
                    values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / columns as f64;
                for ((&got, &x), &w) in got.iter().zip(values).zip(&weight) {
                    let exact = f64::from(x) / (mean + 1e-6).sqrt() * f64::from(w);
                    close(got, exact, 1e-6 * exact.abs() + 1e-9);
                }
            }
        }
    }
}

#[test]
fn silu_mul_agrees_with_double_precision_also_far_out() {
    let mut random = Random(2);
    for len in [1, 16, 31, 4864, 40_000] {
        let mut gate: Vec<f32> = random.normals(len).iter().map(|x| x * 8.0).collect();
        let up = random.normals(len);
        for (gate, extreme) in
            gate.iter_mut().zip([200.0, -200.0, 0.0, 88.5, -88.5, 1e30, -1e30]).skip(1)
        {
            *gate = extreme;
        }
        let got = on_all(|kernels| {
            let mut gate = gate.clone();
            kernels.silu_mul(&pool(2), &mut gate, &up).unwrap();
            gate
        });
        for ((&got, &gate), &up) in got.iter().zip(&gate).zip(&up) {
            let exact = f64::from(gate) / (1.0 + (-f64::from(gate)).exp()) * f64::from(up);
            // Where the exponential saturates a vanishing result is as good as zero.
            close(got, exact, 1e-6 * exact.abs() + 1e-7);
        }
    }
}

#[test]
fn softmax_agrees_with_double_precision_and_keeps_zeros() {
    let mut random = Random(3);
    for len in LENGTHS {
        let mut logits: Vec<f32> = random.normals(len).iter().map(|x| x * 10.0).collect();
        if len > 3 {
            logits[2] = f32::NEG_INFINITY;
        }
        let got = on_all(|kernels| {
            let mut values = logits.clone();
            kernels.softmax(&mut values);
            values
        });
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = logits.iter().map(|&x| f64::from(x - largest).exp()).sum();
        for (&got, &logit) in got.iter().zip(&logits) {
            let exact = f64::from(logit - largest).exp() / total;
            close(got, exact, 2e-6 * exact + 1e-30);
        }
        assert!(len <= 3 || got[2].to_bits() == 0);
    }
}

#[test]
fn argmax_takes_the_first_of_equals_and_only_what_is_allowed() {
    let mut random = Random(4);
    for len in [0, 1, 16, 63, 64, 65, 1000, 151_936] {
        let mut values: Vec<f32> = random.normals(len).iter().map(|x| (x * 50.0).round()).collect();
        if len > 100 {
            values[40] = f32::NAN;
            values[41] = f32::NEG_INFINITY;
        }
        let allowed: Vec<u64> =
            (0..len.div_ceil(64)).map(|_| random.next() & random.next()).collect();
        let naive = |allowed: Option<&[u64]>| {
            let mut best: Option<usize> = None;
            for (i, value) in values.iter().enumerate() {
                let is_allowed = allowed.is_none_or(|words| words[i / 64] >> (i % 64) & 1 == 1);
                if is_allowed && !value.is_nan() && best.is_none_or(|best| *value > values[best]) {
                    best = Some(i);
                }
            }
            best
        };
        for kernels in all_kernels() {
            assert_eq!(kernels.argmax(&values, None).unwrap(), naive(None));
            assert_eq!(kernels.argmax(&values, Some(&allowed)).unwrap(), naive(Some(&allowed)));
            let none = vec![0; allowed.len()];
            assert_eq!(kernels.argmax(&values, Some(&none)).unwrap(), None);
            if len > 100 {
                let mut only = none.clone();
                only[0] = 1 << 41 | 1 << 40;
                assert_eq!(
                    kernels.argmax(&values, Some(&only)).unwrap(),
                    Some(41),
                    "an infinite one is still one"
                );
            }
            assert!(kernels.argmax(&values, Some(&vec![0; allowed.len() + 1])).is_err());
        }
    }
}

#[test]
fn vectors_agree_with_double_precision() {
    let mut random = Random(5);
    for len in LENGTHS {
        let (a, b) = (random.normals(len), random.normals(len));
        let dot = on_all(|kernels| vec![kernels.dot(&a, &b).unwrap()])[0];
        let terms = || a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        close(dot, terms().sum(), 1e-6 * terms().map(f64::abs).sum::<f64>());
        let sums = on_all(|kernels| {
            let mut y = b.clone();
            kernels.add_scaled(0.3, &a, &mut y).unwrap();
            kernels.add_bias(&a, &mut y).unwrap();
            y
        });
        for ((&got, &a), &b) in sums.iter().zip(&a).zip(&b) {
            close(got, f64::from(b) + f64::from(0.3_f32) * f64::from(a) + f64::from(a), 1e-5);
        }
    }
}

#[test]
fn rope_turns_each_pair_by_its_angle() {
    let mut random = Random(6);
    // Halves of whole vectors, of less than one, and of a vector and a part.
    for head_dim in [64, 16, 48, 2] {
        let half = head_dim / 2;
        let embedding = RotaryEmbedding::new(head_dim, 1e6).unwrap();
        for (first, tokens, heads) in [(0, 1, 1), (5, 3, 14), (32_000, 2, 2)] {
            let values = random.normals(tokens * heads * head_dim);
            let got = on_all(|kernels| {
                let (mut values, mut rotations) = (values.clone(), Rotations::default());
                embedding.rotations(first..first + tokens, &mut rotations);
                kernels.rope(&rotations, heads, &mut values).unwrap();
                values
            });
            for (i, (got, values)) in got.chunks(head_dim).zip(values.chunks(head_dim)).enumerate()
            {
                let position = (first + i / heads) as f64;
                for pair in 0..half {
                    let angle = position / 1e6_f64.powf(pair as f64 / half as f64);
                    let (x, y) = (f64::from(values[pair]), f64::from(values[pair + half]));
                    let tolerance = 1e-6 * (x.abs() + y.abs());
                    close(got[pair], x * angle.cos() - y * angle.sin(), tolerance);
                    close(got[pair + half], y * angle.cos() + x * angle.sin(), tolerance);
                }
            }
        }
    }
    assert!(RotaryEmbedding::new(15, 1e6).is_err());
    assert!(RotaryEmbedding::new(0, 1e6).is_err());
}

struct Attention {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Attention {
    fn random(
        random: &mut Random,
        tokens: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
    ) -> Self {
        Self {
            heads,
            kv_heads,
            head_dim,
            queries: random.normals(tokens * heads * head_dim).iter().map(|x| x * 2.0).collect(),
            keys: random.normals(tokens * kv_heads * head_dim),
            values: random.normals(tokens * kv_heads * head_dim),
        }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    /// Appends and attends in the given portions.
    fn run<E: CacheElement>(
        &self,
        kernels: Kernels,
        threads: usize,
        portions: &[usize],
    ) -> Vec<f32> {
        let mut cache = KvLayer::<E>::new(self.kv_heads, self.head_dim).unwrap();
        let (query, token) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut output = vec![f32::NAN; self.queries.len()];
        let mut start = 0;
        for portion in portions {
            let end = start + portion;
            cache
                .append(
                    &self.keys[start * token..end * token],
                    &self.values[start * token..end * token],
                )
                .unwrap();
            let (queries, output) = (
                &self.queries[start * query..end * query],
                &mut output[start * query..end * query],
            );
            let (pool, cache) = (pool(threads), &cache);
            kernels
                .attention(
                    &pool,
                    queries,
                    self.heads,
                    &places(0, start..end),
                    |_| Some(cache),
                    self.scale(),
                    output,
                )
                .unwrap();
            start = end;
        }
        assert_eq!(cache.len(), start);
        output
    }

    /// The definition, in double precision.
    fn exact(&self, token: usize, head: usize) -> Vec<f64> {
        let kv_head = head / (self.heads / self.kv_heads);
        let d = self.head_dim;
        let query = &self.queries[(token * self.heads + head) * d..][..d];
        let at = |data: &[f32], position: usize, i: usize| {
            f64::from(data[(position * self.kv_heads + kv_head) * d + i])
        };
        let scores: Vec<f64> = (0..=token)
            .map(|p| {
                (0..d).map(|i| f64::from(query[i]) * at(&self.keys, p, i)).sum::<f64>()
                    * f64::from(self.scale())
            })
            .collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        (0..d)
            .map(|i| {
                weights.iter().enumerate().map(|(p, w)| w * at(&self.values, p, i)).sum::<f64>()
                    / total
            })
            .collect()
    }
}

#[test]
fn attention_agrees_with_double_precision() {
    let mut random = Random(7);
    for (tokens, heads, kv_heads, head_dim) in
        [(1, 14, 2, 64), (70, 14, 2, 64), (130, 3, 3, 32), (20, 20, 2, 16)]
    {
        let case = Attention::random(&mut random, tokens, heads, kv_heads, head_dim);
        let single = on_all(|kernels| case.run::<f32>(kernels, 2, &[tokens]));
        let half = on_all(|kernels| case.run::<half::f16>(kernels, 2, &[tokens]));
        for token in 0..tokens {
            for head in 0..heads {
                let at = (token * heads + head) * head_dim;
                for (i, exact) in case.exact(token, head).into_iter().enumerate() {
                    close(single[at + i], exact, 5e-6);
                    close(half[at + i], exact, 6e-3);
                }
            }
        }
    }
}

#[test]
fn attention_has_the_same_bits_in_any_portions_on_any_number_of_threads() {
    let mut random = Random(8);
    let case = Attention::random(&mut random, 150, 14, 2, 64);
    for kernels in all_kernels().into_iter().skip(1) {
        let expected = bits(&case.run::<f32>(kernels, 1, &[150]));
        for (threads, portions) in
            [(2, vec![1; 150]), (4, vec![64, 64, 22]), (1, vec![7, 100, 1, 1, 41])]
        {
            assert_eq!(bits(&case.run::<f32>(kernels, threads, &portions)), expected);
        }
    }
}

#[test]
fn attention_of_several_sequences_at_once_has_the_bits_of_each_alone() {
    let mut random = Random(10);
    let lengths = [70, 1, 33];
    let cases = lengths.map(|tokens| Attention::random(&mut random, tokens, 6, 2, 32));
    let (query, kernels, pool) = (6 * 32, Kernels::detect(), pool(2));
    let mut expected = Vec::new();
    let (mut queries, mut at) = (Vec::new(), Vec::new());
    let mut caches = Vec::new();
    for (sequence, (case, tokens)) in cases.iter().zip(lengths).enumerate() {
        // Of the first only the last token asks, of the others all.
        let first = if sequence == 0 { tokens - 1 } else { 0 };
        expected.extend_from_slice(&case.run::<f32>(kernels, 1, &[tokens])[first * query..]);
        queries.extend_from_slice(&case.queries[first * query..]);
        at.extend(places(sequence, first..tokens));
        let mut cache = KvLayer::<f32>::new(2, 32).unwrap();
        cache.append(&case.keys, &case.values).unwrap();
        // A copy of the beginning, filled up again, is as good.
        let mut copy = cache.prefix(first, tokens);
        let memory = copy.memory_bytes();
        copy.append(&case.keys[first * 64..], &case.values[first * 64..]).unwrap();
        assert_eq!((copy.len(), copy.memory_bytes()), (tokens, memory));
        caches.push(copy);
    }
    let mut output = vec![0.0; queries.len()];
    let scale = cases[0].scale();
    kernels.attention(&pool, &queries, 6, &at, |s| caches.get(s), scale, &mut output).unwrap();
    assert_eq!(bits(&output), bits(&expected));
}

#[test]
fn a_cache_cut_back_and_filled_again_is_as_new() {
    let mut random = Random(9);
    let case = Attention::random(&mut random, 40, 4, 2, 32);
    let kernels = Kernels::detect();
    let mut cache = KvLayer::<f32>::new(2, 32).unwrap();
    cache.reserve(40);
    let memory = cache.memory_bytes();
    cache.append(&case.keys, &random.normals(40 * 64)).unwrap();
    cache.truncate(5);
    assert_eq!(cache.len(), 5);
    cache.truncate(0);
    cache.append(&case.keys, &case.values).unwrap();
    assert_eq!(cache.memory_bytes(), memory, "reserved room is kept");
    let mut output = vec![0.0; case.queries.len()];
    kernels
        .attention(
            &pool(1),
            &case.queries,
            4,
            &places(0, 0..40),
            |_| Some(&cache),
            case.scale(),
            &mut output,
        )
        .unwrap();
    assert_eq!(bits(&output), bits(&case.run::<f32>(kernels, 1, &[40])));
}

#[test]
fn shapes_are_checked() {
    let (kernels, pool) = (Kernels::detect(), pool(1));
    assert!(KvLayer::<f32>::new(2, 24).is_err());
    let mut cache = KvLayer::<f32>::new(2, 16).unwrap();
    assert!(cache.append(&[0.0; 33], &[0.0; 33]).is_err());
    assert!(cache.append(&[0.0; 32], &[0.0; 64]).is_err());
    cache.append(&[0.0; 32], &[0.0; 32]).unwrap();
    let mut output = [0.0; 128];
    let attend = |places: &[QueryPlace], queries: &[f32], heads, output: &mut [f32]| {
        let layer = |sequence| (sequence == 0).then_some(&cache);
        kernels.attention(&pool, queries, heads, places, layer, 1.0, output).unwrap_err()
    };
    let one = &places(0, 0..1);
    assert!(matches!(
        attend(one, &[0.0; 48], 3, &mut output[..48]),
        KernelError::Multiple { multiple: 2, got: 3, .. }
    ));
    for place in
        [&places(0, 1..2), &places(1, 0..1), &vec![QueryPlace { sequence: 0, positions: 0 }]]
    {
        let error = attend(place, &[0.0; 32], 2, &mut output[..32]);
        assert!(matches!(error, KernelError::OutOfRange { argument: "places", .. }), "{error}");
    }
    assert!(matches!(attend(one, &[0.0; 64], 2, &mut output[..64]), KernelError::Length { .. }));
    assert!(matches!(attend(one, &[0.0; 32], 2, &mut output[..31]), KernelError::Length { .. }));
    assert!(kernels.rms_norm(&pool, &[0.0; 5], &[0.0; 2], 0.0, &mut [0.0; 5]).is_err());
    assert!(kernels.silu_mul(&pool, &mut [0.0; 5], &[0.0; 4]).is_err());
    assert!(kernels.dot(&[0.0; 5], &[0.0; 4]).is_err());
    assert!(kernels.add_bias(&[0.0; 2], &mut [0.0; 5]).is_err());
    let mut rotations = Rotations::default();
    RotaryEmbedding::new(32, 1e4).unwrap().rotations(0..2, &mut rotations);
    assert!(kernels.rope(&rotations, 1, &mut [0.0; 32]).is_err());
}
