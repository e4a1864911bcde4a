//! Virtual environments with pinned packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

/// The Python of the environment `target/FOLDER` with the packages that `requirements` pins; made
/// once, renewed when the pins change.
pub(crate) fn environment(root: &Path, requirements: &str, folder: &str) -> Result<PathBuf> {
    let requirements = root.join(requirements);
    let wanted = std::fs::read_to_string(&requirements)
        .with_context(|| format!("reading {}", requirements.display()))?;
    let folder = root.join("target").join(folder);
    let python = folder.join("bin/python");
    let stamp = folder.join("requirements.txt");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    let host = env::var("MOLDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    step("Python environment", Command::new(host).args(["-m", "venv", "--clear"]).arg(&folder))?;
    step(
        "Python packages",
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .arg("--requirement")
            .arg(&requirements),
    )?;
    std::fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(python)
}
