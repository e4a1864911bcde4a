//! Intervals and tests.

use serde::{Deserialize, Serialize};

use super::documents::Random;

/// A share with its 95 % interval by Wilson's method.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) of_all: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Wilson (1927), without continuity correction.
pub(crate) fn wilson(hits: usize, of: usize) -> Share {
    if of == 0 {
        return Share { of_all: 0.0, low: 0.0, high: 1.0 };
    }
    let (n, z) = (of as f64, 1.959_963_984_540_054);
    let p = hits as f64 / n;
    let scale = 1.0 + z * z / n;
    let middle = (p + z * z / (2.0 * n)) / scale;
    let half = z / scale * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Share { of_all: p, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// Two methods on the same documents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Paired {
    pub(crate) better: String,
    pub(crate) than: String,
    pub(crate) of: String,
    /// Documents that only the first got right, and only the second.
    pub(crate) only_first: usize,
    pub(crate) only_second: usize,
    /// Difference of the shares, with its 95 % bootstrap interval over documents.
    pub(crate) difference: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// McNemar's exact test, two-sided.
    pub(crate) p: f64,
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

pub(crate) fn paired(names: (&str, &str), of: &str, first: &[bool], second: &[bool]) -> Paired {
    let n = first.len().min(second.len());
    let differences: Vec<i32> = first
        .iter()
        .zip(second)
        .map(|(first, second)| i32::from(*first) - i32::from(*second))
        .collect();
    let count = |value: i32| differences.iter().filter(|one| **one == value).count();
    let (only_first, only_second) = (count(1), count(-1));
    let mean = |sum: i32| f64::from(sum) / n.max(1) as f64;
    let mut random = Random::new(20_260_101);
    let mut means: Vec<f64> = (0..if n == 0 { 0 } else { RESAMPLES })
        .map(|_| mean((0..n).map(|_| differences[random.below(n)]).sum()))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * means.len() as f64) as usize).copied().unwrap_or(0.0);
    Paired {
        better: names.0.to_owned(),
        than: names.1.to_owned(),
        of: of.to_owned(),
        only_first,
        only_second,
        difference: mean(differences.iter().sum()),
        low: at(0.025),
        high: at(0.975),
        p: mcnemar(only_first, only_second),
    }
}

/// The probability, with fair coins, of a split at least as uneven.
pub(crate) fn mcnemar(left: usize, right: usize) -> f64 {
    let n = left + right;
    let least = left.min(right);
    // Binomial coefficients by logarithms: n can be in the thousands.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for k in 0..=least {
        sum += log_term.exp();
        log_term += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_gives_the_published_intervals() {
        // Computed with statsmodels' proportion_confint(method="wilson").
        for (hits, of, low, high) in [
            (2, 20, 0.027_866, 0.301_034),
            (13, 20, 0.432_854, 0.818_808),
            (20, 20, 0.838_875, 1.0),
            (0, 20, 0.0, 0.161_125),
        ] {
            let share = wilson(hits, of);
            assert!(
                (share.low - low).abs() < 5e-4 && (share.high - high).abs() < 5e-4,
                "{hits}/{of}: {share:?}"
            );
        }
    }

    #[test]
    fn mcnemar_is_the_exact_binomial_test() {
        // By hand: two-sided sums of binomial(n, 1/2).
        for (left, right, p) in
            [(0, 0, 1.0), (3, 1, 0.625), (5, 0, 0.0625), (10, 2, 0.038_574), (0, 8, 0.007_812_5)]
        {
            assert!(
                (mcnemar(left, right) - p).abs() < 1e-5,
                "{left}, {right}: {}",
                mcnemar(left, right)
            );
        }
        assert!(mcnemar(900, 100) < 1e-100);
    }

    #[test]
    fn a_paired_difference_counts_what_only_one_got_right() {
        let first: Vec<bool> = (0..100).map(|index| index < 40).collect();
        let second: Vec<bool> = (0..100).map(|index| (30..50).contains(&index)).collect();
        let found = paired(("a", "b"), "correct", &first, &second);
        assert_eq!((found.only_first, found.only_second), (30, 10));
        assert!((found.difference - 0.2).abs() < 1e-12);
        assert!(
            found.low > 0.05 && found.low < 0.12 && found.high > 0.28 && found.high < 0.35,
            "{found:?}"
        );
    }
}
