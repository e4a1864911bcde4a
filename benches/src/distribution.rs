//! Times, and what is said of many of them.

use serde::Serialize;

/// Times in nanoseconds.
#[derive(Default)]
pub(crate) struct Times(Vec<u32>);

/// Average and percentiles, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Distribution {
    pub(crate) count: usize,
    pub(crate) avg: f64,
    pub(crate) p25: f64,
    pub(crate) p50: f64,
    pub(crate) p75: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Times {
    pub(crate) fn extend(&mut self, nanoseconds: impl IntoIterator<Item = u32>) {
        self.0.extend(nanoseconds);
    }

    /// Sorts, and sums up.
    pub(crate) fn distribution(&mut self) -> Distribution {
        self.0.sort_unstable();
        let Some(&max) = self.0.last() else { return Distribution::default() };
        let at = |fraction: f64| {
            let index = (self.0.len() as f64 * fraction) as usize;
            micros(self.0[index.min(self.0.len() - 1)])
        };
        let sum: f64 = self.0.iter().map(|&time| micros(time)).sum();
        Distribution {
            count: self.0.len(),
            avg: sum / self.0.len() as f64,
            p25: at(0.25),
            p50: at(0.50),
            p75: at(0.75),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: micros(max),
        }
    }
}

fn micros(nanoseconds: u32) -> f64 {
    f64::from(nanoseconds) / 1000.0
}

impl Distribution {
    /// The values with their names, in the order of the table.
    pub(crate) fn columns(&self) -> [(&'static str, f64); 9] {
        [
            ("avg", self.avg),
            ("p25", self.p25),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("max", self.max),
        ]
    }
}
