//! One thread that runs a model for whoever asks.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use molde_vocab::{TokenConstraint, TokenId};

use crate::generate::{GenerateRequest, Generation, TokenEvent};
use crate::{
    Batch, BatchOptions, InferError, Model, SequenceEvent, SequenceListener, TokenScores, Tokenizer,
};

/// Stack of the thread: constraints may recurse into deep schemas.
const STACK_BYTES: usize = 16 << 20;

/// A [`Batch`] on a thread of its own, for any number of callers: what they submit at the same
/// time shares the steps of the model.
///
/// Dropping it ends what runs as cancelled, and waits for the thread.
#[derive(Debug)]
pub struct Scheduler {
    /// `None` while it is being dropped.
    submissions: Option<Sender<Submission>>,
    thread: Option<JoinHandle<()>>,
}

struct Submission {
    request: GenerateRequest,
    constraint: Option<Box<dyn TokenConstraint>>,
    listener: SequenceListener,
}

/// An event that has left the scheduler's thread.
enum Sent {
    Token(SentToken),
    End(Result<Generation, InferError>),
}

struct SentToken {
    index: usize,
    token: TokenId,
    bytes: Vec<u8>,
    text: String,
    forced: bool,
    scores: Option<TokenScores>,
}

impl SentToken {
    fn new(event: &TokenEvent<'_>) -> Self {
        Self {
            index: event.index,
            token: event.token,
            bytes: event.bytes.to_vec(),
            text: event.text.to_owned(),
            forced: event.forced,
            scores: event.scores.cloned(),
        }
    }

    fn event(&self) -> TokenEvent<'_> {
        let Self { index, token, forced, .. } = *self;
        let scores = self.scores.as_ref();
        TokenEvent { index, token, bytes: &self.bytes, text: &self.text, forced, scores }
    }
}

impl Scheduler {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`InferError::Thread`] if the system refuses.
    pub fn start(
        model: Arc<Model>,
        tokenizer: Arc<Tokenizer>,
        options: &BatchOptions,
    ) -> Result<Self, InferError> {
        let (sender, receiver) = channel();
        let mut batch = Batch::new(model, tokenizer, options);
        let thread = std::thread::Builder::new()
            .name("scheduler".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&mut batch, &receiver))
            .map_err(|source| InferError::Thread { source })?;
        Ok(Self { submissions: Some(sender), thread: Some(thread) })
    }

    /// Hands a sequence over. It joins the running batch within a step, or waits until there is
    /// room. Cancelling its [`Interrupt`](crate::Interrupt) ends it within a step.
    ///
    /// The listener is called on the scheduler's thread: it should hand on what it hears, and
    /// never wait. The constraint is dropped there when the sequence ends.
    ///
    /// # Errors
    /// [`InferError::Stopped`] if the thread has died.
    pub fn submit(
        &self,
        request: GenerateRequest,
        constraint: Option<Box<dyn TokenConstraint>>,
        listener: SequenceListener,
    ) -> Result<(), InferError> {
        let sender = self.submissions.as_ref().ok_or(InferError::Stopped)?;
        let submission = Submission { request, constraint, listener };
        sender.send(submission).map_err(|_| InferError::Stopped)
    }

    /// Hands a sequence over and waits for its end. `on_token` is called on this thread, once for
    /// each token, in order.
    ///
    /// # Errors
    /// Those of [`generate`](crate::generate()), [`InferError::StepFailed`] and
    /// [`InferError::Stopped`].
    pub fn generate(
        &self,
        request: GenerateRequest,
        constraint: Option<Box<dyn TokenConstraint>>,
        on_token: &mut dyn FnMut(TokenEvent<'_>),
    ) -> Result<Generation, InferError> {
        let (sender, receiver) = channel();
        let listener = move |event: SequenceEvent<'_>| {
            let sent = match event {
                SequenceEvent::Started => return,
                SequenceEvent::Token(event) => Sent::Token(SentToken::new(&event)),
                SequenceEvent::End(outcome) => Sent::End(outcome),
            };
            // Whoever waits here cannot be gone before the end.
            let _is_heard = sender.send(sent);
        };
        self.submit(request, constraint, Box::new(listener))?;
        for sent in receiver {
            match sent {
                Sent::Token(token) => on_token(token.event()),
                Sent::End(outcome) => return outcome,
            }
        }
        Err(InferError::Stopped)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.submissions = None;
        if let Some(thread) = self.thread.take() {
            // A panic over there was reported when it happened.
            let _ended = thread.join();
        }
    }
}

fn run(batch: &mut Batch, submissions: &Receiver<Submission>) {
    loop {
        // Sleeps while there is nothing to do.
        let mut next = if batch.is_empty() {
            submissions.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            submissions.try_recv()
        };
        loop {
            match next {
                Ok(Submission { request, constraint, listener }) => {
                    batch.add(request, constraint, listener);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return batch.cancel_all(),
            }
            next = submissions.try_recv();
        }
        batch.step();
    }
}
