//! `molde doctor`: what this machine, the cache and the network offer.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use molde_hub::{Hub, NetworkPolicy, Reachability};

use crate::args::Doctor;
use crate::commands::models;
use crate::failure::{Exit, Failure};
use crate::model;
use crate::progress::{megabytes, printable};

/// Prints what it finds. Failed only where the main command could not work: no model is cached
/// and none can be fetched.
pub(crate) fn run(args: &Doctor) -> Result<Exit, Failure> {
    let hub = Hub::from_env()?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "molde      {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(output, "processor  {}, {}", std::env::consts::ARCH, threads())?;
    writeln!(output, "           has {}", listed(&processor_features()))?;
    writeln!(output, "kernels    {}, compiled {}", molde::Engine::instruction_set(), profile())?;
    let cache = &hub.config().cache;
    writeln!(output, "cache      {}", printable(&cache.display().to_string()))?;
    writeln!(output, "           {}", cache_state(cache))?;
    let policy = model::policy(&hub, args.offline);
    writeln!(output, "hub        {}: {}", hub.config().endpoint, hub_state(&hub, policy))?;
    let choice = model::default(&hub, args.offline);
    let mut usable = policy == NetworkPolicy::Online;
    for (index, status) in hub.status().iter().enumerate() {
        let label = if index == 0 { "models" } else { "" };
        writeln!(output, "{label:10} {}: {}", status.model.id, models::state(status))?;
        usable |= status.cached.is_some() && status.model.id == choice.id;
    }
    let reason = choice.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    writeln!(output, "default    {}{reason}", choice.id)?;
    Ok(if usable { Exit::Success } else { Exit::Failed })
}

fn threads() -> String {
    match std::thread::available_parallelism().map(std::num::NonZero::get) {
        Ok(1) => "1 thread".to_owned(),
        Ok(threads) => format!("{threads} threads"),
        Err(error) => format!("unknown number of threads ({error})"),
    }
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) { "with assertions (slower than --release)" } else { "for speed" }
}

/// The features that matrix kernels use, as the processor reports them.
fn processor_features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for (name, present) in [
        ("avx", std::arch::is_x86_feature_detected!("avx")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ("avx512bw", std::arch::is_x86_feature_detected!("avx512bw")),
        ("avx512vnni", std::arch::is_x86_feature_detected!("avx512vnni")),
    ] {
        if present {
            found.push(name);
        }
    }
    #[cfg(target_arch = "aarch64")]
    for (name, present) in [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("dotprod", std::arch::is_aarch64_feature_detected!("dotprod")),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
    ] {
        if present {
            found.push(name);
        }
    }
    found
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no vector extension".to_owned() } else { names.join(" ") }
}

/// Whether the cache, or the place where it will be made, can be written to, and how much fits.
fn cache_state(cache: &Path) -> String {
    let Some(existing) = cache.ancestors().find(|folder| folder.is_dir()) else {
        return "cannot be made: no folder above it exists".to_owned();
    };
    let made = if existing == cache { "" } else { "not there yet, " };
    let probe = existing.join(format!(".molde-doctor-{}", std::process::id()));
    let writable = match OpenOptions::new().write(true).create_new(true).open(&probe) {
        Ok(_) => {
            // A probe that cannot be removed again is an empty file, and no reason to fail.
            let _ = std::fs::remove_file(&probe);
            "writable".to_owned()
        }
        Err(error) => format!("not writable ({error}); choose another folder with HF_HOME"),
    };
    let free = match fs4::available_space(existing) {
        Ok(bytes) => format!("{} free", megabytes(bytes)),
        Err(error) => format!("free space unknown ({error})"),
    };
    format!("{made}{writable}, {free}")
}

fn hub_state(hub: &Hub, policy: NetworkPolicy) -> String {
    if policy == NetworkPolicy::Offline {
        return "not asked, offline".to_owned();
    }
    match hub.probe(hub.catalog().default_id()) {
        Ok(Reachability::Reachable) => "answers".to_owned(),
        Ok(Reachability::Unreachable { reason }) => format!("does not answer ({reason})"),
        Ok(_) => "unknown".to_owned(),
        Err(error) => error.to_string(),
    }
}
