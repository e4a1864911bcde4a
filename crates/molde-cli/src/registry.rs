//! The documents that a schema may refer to, from files.

use std::path::{Path, PathBuf};

use molde_schema::{DEFAULT_BASE, Registry};

use crate::documents::read_argument;
use crate::failure::Failure;

/// The documents in `paths`, files or folders of `.json` files, for a schema with the text
/// `schema`. Each is known by its own `$id` and by its name (in a folder, by its path from there),
/// as a reference that is relative to the schema has it.
pub(crate) fn load(paths: &[PathBuf], schema: &str) -> Result<Registry, Failure> {
    let mut registry = Registry::new();
    if paths.is_empty() {
        return Ok(registry);
    }
    let base = own_uri(schema).unwrap_or_default();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            list(path, "", &mut files)?;
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            files.push((path.clone(), name.unwrap_or_default()));
        }
    }
    for (path, name) in files {
        let text = read_argument(&path)?;
        registry.insert(&format!("{DEFAULT_BASE}{name}"), text.as_str());
        if let Some((folder, _)) = base.rsplit_once('/') {
            registry.insert(&format!("{folder}/{name}"), text.as_str());
        }
        if let Some(uri) = own_uri(&text) {
            registry.insert(&uri, text);
        }
    }
    Ok(registry)
}

/// The `.json` files of a folder and those below it, in the order of their names.
fn list(folder: &Path, prefix: &str, files: &mut Vec<(PathBuf, String)>) -> Result<(), Failure> {
    let failed = |source| Failure::Argument { path: folder.to_owned(), source };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            list(&path, &format!("{prefix}{name}/"), files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push((path, format!("{prefix}{name}")));
        }
    }
    Ok(())
}

/// The absolute URI that a schema gives itself.
fn own_uri(text: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let own = json.get("$id").or_else(|| json.get("id"))?.as_str()?;
    own.contains(':').then(|| own.to_owned())
}
