//! Ctrl-C: the first one stops the work cleanly, a second one at once.

use molde::CancelHandle;
use molde_hub::CancelFlag;

use crate::failure::Failure;
use crate::progress::say;

/// Both of the flags that Ctrl-C raises.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    /// Stops the model.
    pub(crate) work: CancelHandle,
    /// Stops transfers.
    pub(crate) transfers: CancelFlag,
}

impl Interrupts {
    /// Listens to Ctrl-C from now on.
    pub(crate) fn listen() -> Self {
        let interrupts = Self::default();
        let raised = interrupts.clone();
        let listening = ctrlc::set_handler(move || {
            if raised.work.is_cancelled() {
                // Lines are written whole, so nothing is left half written.
                std::process::exit(130);
            }
            raised.work.cancel();
            raised.transfers.cancel();
        });
        if let Err(error) = listening {
            say(&format!("cannot listen to Ctrl-C ({error}): it will end the program at once"));
        }
        interrupts
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.work.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
