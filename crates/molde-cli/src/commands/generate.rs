//! `molde generate`: free text, token by token.

use std::io::Write;

use molde::{Control, End, Event, GenerationRequest};

use crate::args::Generate;
use crate::documents::{Source, text_or_file};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;
use crate::progress::say;

/// Writes the answer to the standard output as it comes. An answer that the token limit cuts is a
/// success with a note; one that the deadline cuts is not.
pub(crate) fn run(args: &Generate, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let user = if args.prompt == "-" {
        Source::Stdin.read().map_err(Failure::Prompt)?
    } else {
        text_or_file(&args.prompt)?
    };
    let request = GenerationRequest {
        system: args.system.as_deref().map(text_or_file).transpose()?,
        max_tokens: args.max_tokens,
        ..GenerationRequest::new(user)
    };
    let engine = model::load(&args.model, interrupts)?;
    let mut control = Control::new().cancel(&interrupts.work);
    if let Some(deadline) = args.deadline {
        control = control.timeout(deadline);
    }
    let mut output = std::io::stdout().lock();
    let mut failure = None;
    let generation = engine.generate_with(&request, &control, |event| {
        let Event::Token { text, .. } = event else { return };
        if let Err(error) = output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            failure.get_or_insert(error);
            // Nobody reads on: the model need not write on.
            interrupts.work.cancel();
        }
    })?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    writeln!(output)?;
    match generation.end {
        End::Cancelled => Err(Failure::Interrupted),
        End::DeadlineExceeded => {
            say("cut by the deadline");
            Ok(Exit::Failed)
        }
        End::Truncated => {
            say(&format!("cut at the limit of {} tokens", args.max_tokens));
            Ok(Exit::Success)
        }
        _ => Ok(Exit::Success),
    }
}
