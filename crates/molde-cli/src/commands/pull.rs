//! `molde pull`: a model into the cache.

use std::io::Write;

use molde_hub::{Hub, ModelLayout, ModelRef};

use crate::args::Pull;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::progress::{TransferProgress, say};

/// Fetches the model and prints where it is, or checks what is cached.
pub(crate) fn run(args: &Pull, interrupts: &Interrupts) -> Result<Exit, Failure> {
    if args.verify {
        return verify(args, interrupts);
    }
    let files = model::find(args.model.as_deref(), args.offline, interrupts)?;
    let path = match &files.files {
        ModelLayout::Gguf { path } => path.display(),
        ModelLayout::Safetensors { folder, .. } => folder.display(),
        _ => return Err(molde::MoldeError::UnknownLayout { id: files.id }.into()),
    };
    writeln!(std::io::stdout().lock(), "{path}")?;
    Ok(Exit::Success)
}

fn verify(args: &Pull, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let hub = Hub::from_env()?;
    // What is checked is in the cache: the hub need not be asked which model is the default.
    let id = match model::choose(&hub, args.model.as_deref(), true) {
        ModelRef::Catalog(id) => id,
        other => {
            // A file of one's own has no checksum to compare with: it is found, or not.
            hub.resolve(&other, model::policy(&hub, true), &mut |_| {}, &interrupts.transfers)?;
            say("a path has no entry in the catalogue, so there is no checksum to compare with");
            return Ok(Exit::Success);
        }
    };
    let mut progress = TransferProgress::new();
    let verified = hub.verify(&id, &mut |event| progress.show(event), &interrupts.transfers);
    progress.clear();
    verified?;
    writeln!(std::io::stdout().lock(), "{id}: every file has the right checksum")?;
    Ok(Exit::Success)
}
