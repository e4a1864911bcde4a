//! What the machine could do at best: bytes read, and bytes multiplied.

use molde_kernels::Kernels;
use rayon::prelude::*;

use crate::clock::Clock;

/// Words of the buffer that is read: 256 MB, far more than any cache.
const WORDS: usize = 32 << 20;
/// Rounds of multiply-adds in one run, about a millisecond.
const ROUNDS: usize = 200_000;

fn pool(threads: usize) -> anyhow::Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// Billions of bytes read from memory in a second by all threads.
pub(crate) fn bandwidth_gb_s(threads: usize, clock: Clock) -> anyhow::Result<f64> {
    let data = vec![1_u64; WORDS];
    let sum = || {
        let sum: u64 = data.par_chunks(1 << 16).map(|part| part.iter().sum::<u64>()).sum();
        anyhow::ensure!(sum == WORDS as u64, "a wrong sum");
        Ok(())
    };
    let seconds = pool(threads)?.install(|| clock.seconds(sum))?;
    Ok((WORDS * size_of::<u64>()) as f64 / seconds / 1e9)
}

/// Billions of 8-bit multiply-adds in a second by all threads.
pub(crate) fn int8_gmac_s(threads: usize, clock: Clock) -> anyhow::Result<f64> {
    let kernels = Kernels::detect();
    let pool = pool(threads)?;
    let seconds = clock.seconds(|| {
        pool.broadcast(|_| std::hint::black_box(kernels.probe_multiply_adds(ROUNDS)));
        Ok(())
    })?;
    Ok((threads * ROUNDS * Kernels::PROBE_MULTIPLY_ADDS) as f64 / seconds / 1e9)
}
