//! MaskBench files: one schema with its instances a line, gzipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema and its instances, all as they are written in the file.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) schema: Box<RawValue>,
    #[serde(default)]
    pub(crate) tests: Vec<Instance>,
}

/// One instance.
#[derive(Deserialize)]
pub(crate) struct Instance {
    pub(crate) valid: bool,
    pub(crate) data: Box<RawValue>,
}

/// Calls `each` for every case of the files, in order.
///
/// # Errors
/// What cannot be read or parsed, with the file and line, and what `each` returns.
pub(crate) fn for_each_case(
    files: &[PathBuf],
    mut each: impl FnMut(Case) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for path in files {
        for (number, line) in lines(path)?.lines().enumerate() {
            let at = || format!("{}, line {}", path.display(), number + 1);
            let line = line.with_context(at)?;
            if !line.trim().is_empty() {
                each(serde_json::from_str(&line).with_context(at)?)?;
            }
        }
    }
    Ok(())
}

fn lines(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(BufReader::new(GzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    })
}
