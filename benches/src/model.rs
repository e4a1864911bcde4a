//! Where the model of a benchmark is: a path, or an id of the catalogue that is cached.

use std::path::{Path, PathBuf};

use molde_hub::{CancelFlag, Hub, ModelLayout, ModelRef, NetworkPolicy};

/// The GGUF file or the folder of `model`.
///
/// # Errors
/// If it is neither there nor in the cache: a benchmark downloads nothing.
pub(crate) fn locate(model: &str) -> anyhow::Result<PathBuf> {
    if Path::new(model).exists() {
        return Ok(PathBuf::from(model));
    }
    let hub = Hub::from_env()?;
    let wanted = ModelRef::Catalog(model.to_owned());
    let files =
        hub.resolve(&wanted, NetworkPolicy::Offline, &mut |_| {}, &CancelFlag::default())?;
    match files.files {
        ModelLayout::Gguf { path } => Ok(path),
        ModelLayout::Safetensors { folder, .. } => Ok(folder),
        _ => anyhow::bail!("{model} has a layout that is not known here"),
    }
}
