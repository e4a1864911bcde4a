//! The tokenizer of a command that runs no model.

use std::path::{Path, PathBuf};

use molde_hub::ModelLayout;
use molde_infer::Tokenizer;

use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::model;

/// Loads the tokenizer of a file, or of a model that is there: nothing is fetched.
pub(crate) fn load(
    file: Option<&Path>,
    model: Option<&str>,
    interrupts: &Interrupts,
) -> Result<Tokenizer, Failure> {
    let path = match file {
        Some(path) => path.to_owned(),
        None => match model::find(model, true, interrupts)?.files {
            ModelLayout::Gguf { path } => path,
            ModelLayout::Safetensors { folder, .. } => folder,
            // The layouts of models may become more; the tokenizer can be named.
            other => {
                let kind = std::io::Error::other(format!("unknown layout {other:?}"));
                return Err(Failure::Argument { path: PathBuf::from("--tokenizer"), source: kind });
            }
        },
    };
    Tokenizer::load(&path).map_err(|error| Failure::Tokenizer(Box::new(error)))
}

/// The number of tokens of each text.
pub(crate) fn counts<const N: usize>(
    tokenizer: &Tokenizer,
    texts: [&str; N],
) -> Result<[usize; N], Failure> {
    let mut counts = [0; N];
    for (count, text) in counts.iter_mut().zip(texts) {
        *count =
            tokenizer.encode_text(text).map_err(|error| Failure::Tokenizer(Box::new(error)))?.len();
    }
    Ok(counts)
}
