//! A request that is being answered.

use std::sync::Arc;
use std::time::Instant;

use molde_infer::{CancelHandle, GenerateRequest, Interrupt, SequenceEvent};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::answer::{Answer, Delta};
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::generator::{Job, QueueFull};
use crate::prepare::Prepared;
use crate::reader::Reader;

/// The answers to one request, as they are written. Dropping it stops them.
///
/// What is waiting to be read is bounded by the token limit of the request.
#[derive(Debug)]
pub(crate) struct Run {
    deltas: UnboundedReceiver<(usize, Delta)>,
    cancels: Vec<CancelHandle>,
    pub(crate) choices: usize,
    /// Tokens of the prompt.
    pub(crate) prompt_tokens: usize,
}

impl Run {
    /// Queues all answers of a request, or none.
    pub(crate) fn submit(app: &Arc<App>, prepared: Prepared) -> Result<Self, Fault> {
        let (sender, deltas) = unbounded_channel();
        let deadline = Instant::now() + app.config.limits.request;
        let choices = prepared.constraints.len();
        let mut run =
            Self { deltas, cancels: Vec::new(), choices, prompt_tokens: prepared.prompt.len() };
        for (choice, constraint) in prepared.constraints.into_iter().enumerate() {
            let cancel = app.new_cancel();
            let mut sampling = prepared.sampling.clone();
            sampling.seed = sampling.seed.wrapping_add(choice as u64);
            let request = GenerateRequest {
                interrupt: Interrupt { cancel: Some(cancel.clone()), deadline: Some(deadline) },
                sampling,
                scores: prepared.scores,
                // The next message of a conversation begins with this one, and what was read
                // for one document is the beginning for all that share its instructions.
                shared_prefix_tokens: prepared.prompt.len(),
                ..GenerateRequest::new(prepared.prompt.clone(), prepared.max_tokens)
            };
            let tokenizer = Arc::clone(&app.tokenizer);
            let mut reader = Reader::new(prepared.reading.clone(), tokenizer, cancel.clone());
            run.cancels.push(cancel);
            let sender = sender.clone();
            let metrics = Arc::clone(&app.metrics);
            let submitted = Instant::now();
            let mut is_first = true;
            let listener = move |event: SequenceEvent<'_>| {
                let mut deltas = Vec::new();
                match event {
                    SequenceEvent::Started => {
                        reader.started();
                        metrics.queued(submitted.elapsed());
                        deltas.push(Delta::Started);
                    }
                    SequenceEvent::Token(token) => {
                        if std::mem::take(&mut is_first) {
                            metrics.first_token(submitted.elapsed());
                        }
                        reader.push(&token, &mut deltas);
                    }
                    SequenceEvent::End(outcome) => {
                        if let Ok(generation) = &outcome {
                            metrics.generated(generation);
                        }
                        reader.finish(outcome, &mut deltas);
                    }
                }
                for delta in deltas {
                    // A receiver that is gone has cancelled.
                    let _ = sender.send((choice, delta));
                }
            };
            let job = Job { request, constraint, listener: Box::new(listener) };
            app.generator.submit(job).map_err(|QueueFull| {
                Fault::new(
                    Kind::QueueFull,
                    format!(
                        "{} requests are waiting for the model already: try again later",
                        app.config.limits.queue
                    ),
                )
            })?;
        }
        Ok(run)
    }

    /// The next piece of an answer; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<(usize, Delta)> {
        self.deltas.recv().await
    }

    /// Waits for all answers.
    ///
    /// # Errors
    /// The first fault of one of them.
    pub(crate) async fn collect(mut self) -> Result<Vec<Answer>, Fault> {
        let mut answers = vec![Answer::default(); self.choices];
        while let Some((choice, delta)) = self.next().await {
            if let Delta::End(Err(fault)) = delta {
                return Err(fault);
            }
            if let Some(answer) = answers.get_mut(choice) {
                answer.push(&delta);
            }
        }
        for answer in &answers {
            answer.finish()?;
        }
        Ok(answers)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        for cancel in &self.cancels {
            cancel.cancel();
        }
    }
}
