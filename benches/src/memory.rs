//! Peak memory of this process.

/// The largest resident size so far, in bytes; `None` where the system does not say.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Makes the present resident size the peak, where the system can, and returns the peak.
pub(crate) fn reset_peak() -> Option<u64> {
    // 5 means the high-water mark: proc(5).
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    peak_bytes()
}
