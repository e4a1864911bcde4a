//! Ctrl-C: the first one stops the work cleanly, a second one at once.

use molde::CancelHandle;
use molde_hub::CancelFlag;

use crate::failure::Failure;
use crate::progress::say;

/// The flag that Ctrl-C raises, as the model and as transfers know it.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    /// Stops the model: while it is loaded, and while it works.
    pub(crate) work: CancelHandle,
    /// Stops transfers.
    pub(crate) transfers: CancelFlag,
}

impl Interrupts {
    /// Listens to Ctrl-C from now on.
    pub(crate) fn listen() -> Self {
        let work = CancelHandle::new();
        let transfers = CancelFlag::from(work.flag());
        let raised = work.clone();
        let listening = ctrlc::set_handler(move || {
            if raised.is_cancelled() {
                // Lines are written whole, so nothing is left half written.
                std::process::exit(130);
            }
            raised.cancel();
        });
        if let Err(error) = listening {
            say(&format!("cannot listen to Ctrl-C ({error}): it will end the program at once"));
        }
        Self { work, transfers }
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.work.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
