//! From the tokens of a sequence to text, calls, and where to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use molde::{CompletedField, FieldScanner};
use molde_infer::{CancelHandle, End, Generation, InferError, TokenEvent, Tokenizer};
use molde_vocab::TokenId;

use crate::answer::{Delta, FieldReport, Finish, Piece, Reason, TokenScore};
use crate::fault::{Fault, Kind};

/// What a reader is told of the request.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Reading {
    /// Texts that end free text.
    pub(crate) stop: Vec<String>,
    /// Whether the text is free: stop texts are looked for.
    pub(crate) is_free: bool,
    /// Whether the text is JSON: fields are reported.
    pub(crate) is_json: bool,
    /// The marker before a call, where calls can be made.
    pub(crate) call_marker: Option<TokenId>,
    /// Whether an answer that the token limit closed is a whole one.
    pub(crate) accept_closed: bool,
    /// Whether the token limit is what the context leaves.
    pub(crate) limited_by_context: bool,
    pub(crate) wants_scores: bool,
    pub(crate) wants_report: bool,
    /// What the answer begins with that was in the prompt.
    pub(crate) prefill: String,
}

/// Reads one sequence.
#[derive(Debug)]
pub(crate) struct Reader {
    reading: Reading,
    tokenizer: Arc<Tokenizer>,
    cancel: CancelHandle,
    /// Text that may be the beginning of a stop text, and the tokens it came with.
    held_text: String,
    held_tokens: Vec<TokenScore>,
    stopped: Option<String>,
    call: Option<CallReader>,
    calls: usize,
    fields: FieldScanner,
    /// Offset at which each token begins, in the text that `fields` has read.
    offsets: Vec<usize>,
    completed: Vec<CompletedField>,
    reports: Vec<FieldReport>,
    /// Per token: offset, logarithm of its probability under the mask, whether it was forced.
    weights: Vec<(usize, f64, bool)>,
    removed: (f64, usize),
    submitted: Instant,
    queued: Duration,
}

impl Reader {
    pub(crate) fn new(reading: Reading, tokenizer: Arc<Tokenizer>, cancel: CancelHandle) -> Self {
        let mut fields = FieldScanner::new();
        let mut completed = Vec::new();
        fields.push(reading.prefill.as_bytes(), &mut completed);
        completed.clear();
        Self {
            reading,
            tokenizer,
            cancel,
            held_text: String::new(),
            held_tokens: Vec::new(),
            stopped: None,
            call: None,
            calls: 0,
            fields,
            offsets: Vec::new(),
            completed,
            reports: Vec::new(),
            weights: Vec::new(),
            removed: (0.0, 0),
            submitted: Instant::now(),
            queued: Duration::ZERO,
        }
    }

    /// The model begins with this sequence.
    pub(crate) fn started(&mut self) {
        self.queued = self.submitted.elapsed();
    }

    /// Reads a token; appends what became known.
    pub(crate) fn push(&mut self, token: &TokenEvent<'_>, deltas: &mut Vec<Delta>) {
        if self.stopped.is_some() {
            return;
        }
        self.weigh(token);
        if self.reading.call_marker == Some(token.token) {
            self.release(deltas);
            self.call = Some(CallReader::default());
            return;
        }
        if let Some(call) = &mut self.call {
            let index = self.calls;
            call.push(token.text, index, deltas);
            if token.bytes.is_empty() {
                // The marker after the call.
                self.call = None;
                self.calls += 1;
            }
            return;
        }
        if self.calls > 0 {
            // The gap between two calls.
            return;
        }
        self.held_text.push_str(token.text);
        if self.reading.wants_scores {
            self.held_tokens.push(self.score(token));
        }
        if self.reading.is_free && !self.reading.stop.is_empty() {
            self.look_for_stop(deltas);
        } else {
            self.release(deltas);
        }
    }

    fn look_for_stop(&mut self, deltas: &mut Vec<Delta>) {
        let found = self
            .reading
            .stop
            .iter()
            .filter_map(|stop| Some((self.held_text.find(stop.as_str())?, stop)))
            .min_by_key(|(at, stop)| (*at, std::cmp::Reverse(stop.len())));
        if let Some((at, stop)) = found {
            self.stopped = Some(stop.clone());
            self.held_text.truncate(at);
            self.release(deltas);
            self.cancel.cancel();
            return;
        }
        // The longest end of the text that a stop text begins with stays.
        let text = &self.held_text;
        let held = text
            .char_indices()
            .map(|(at, _)| at)
            .find(|&at| self.reading.stop.iter().any(|stop| stop.starts_with(&text[at..])));
        match held {
            Some(0) => {}
            Some(at) => {
                let rest = self.held_text.split_off(at);
                self.release(deltas);
                self.held_text = rest;
            }
            None => self.release(deltas),
        }
    }

    fn release(&mut self, deltas: &mut Vec<Delta>) {
        if self.held_text.is_empty() && self.held_tokens.is_empty() {
            return;
        }
        deltas.push(Delta::Text {
            text: std::mem::take(&mut self.held_text),
            tokens: std::mem::take(&mut self.held_tokens),
        });
    }

    fn score(&self, token: &TokenEvent<'_>) -> TokenScore {
        let piece = |id: TokenId, logprob: f32| {
            let bytes = self.tokenizer.decode_bytes(&[id]);
            Piece { text: String::from_utf8_lossy(&bytes).into_owned(), bytes, logprob }
        };
        match token.scores {
            None => TokenScore {
                token: piece(token.token, 0.0),
                forced: token.forced,
                allowed: 0.0,
                candidates: Vec::new(),
            },
            Some(scores) => TokenScore {
                token: piece(token.token, scores.logprob),
                forced: token.forced,
                allowed: scores.allowed,
                candidates: scores
                    .candidates
                    .iter()
                    .map(|candidate| (piece(candidate.token, candidate.logprob), candidate.allowed))
                    .collect(),
            },
        }
    }

    /// Follows the JSON that is written, for reports and for what the budget closed.
    fn weigh(&mut self, token: &TokenEvent<'_>) {
        let offset = self.fields.text().len();
        self.offsets.push(offset);
        if !self.reading.is_json {
            return;
        }
        self.fields.push(token.bytes, &mut self.completed);
        if !self.reading.wants_report {
            self.completed.clear();
            return;
        }
        let weight = token.scores.map_or(0.0, |s| f64::from(s.logprob) - f64::from(s.allowed));
        if let Some(scores) = token.scores {
            self.removed.0 += 1.0 - f64::from(scores.allowed).exp();
            self.removed.1 += 1;
        }
        self.weights.push((offset, weight, token.forced));
        for field in self.completed.drain(..) {
            // The tokens that begin in the field, or before it and reach into it.
            let first = self.weights.partition_point(|(at, ..)| *at <= field.bytes.start);
            let last = self.weights.partition_point(|(at, ..)| *at < field.bytes.end);
            let tokens = &self.weights[first.saturating_sub(1)..last];
            self.reports.push(FieldReport {
                pointer: field.pointer,
                probability: tokens.iter().map(|(_, weight, _)| weight).sum::<f64>().exp(),
                tokens: tokens.len(),
                forced_tokens: tokens.iter().filter(|(.., forced)| *forced).count(),
            });
        }
    }

    /// The last deltas of the sequence.
    pub(crate) fn finish(
        &mut self,
        outcome: Result<Generation, InferError>,
        deltas: &mut Vec<Delta>,
    ) {
        let generation = match outcome {
            Ok(generation) => generation,
            Err(error) => {
                deltas.push(Delta::End(Err(fault_of(error))));
                return;
            }
        };
        let early = match generation.end {
            End::Cancelled if self.stopped.is_none() => {
                Some(Fault::new(Kind::Draining, "the server stopped before the answer was whole"))
            }
            End::DeadlineExceeded => Some(Fault::new(
                Kind::Deadline,
                "the deadline passed before the answer was whole: ask for less, or raise it",
            )),
            _ => None,
        };
        if let Some(fault) = early {
            deltas.push(Delta::End(Err(fault)));
            return;
        }
        if self.stopped.is_none() {
            self.release(deltas);
        }
        let closed = !generation.closed_by_budget.is_empty();
        let reason = if let Some(stop) = self.stopped.take() {
            Reason::Stop(stop)
        } else if generation.end == End::TokenLimit || (closed && !self.reading.accept_closed) {
            Reason::Length { context: self.reading.limited_by_context }
        } else if self.calls > 0 {
            Reason::Calls
        } else {
            Reason::Complete
        };
        deltas.push(Delta::End(Ok(Box::new(Finish {
            reason,
            prompt_tokens: generation.usage.prompt_tokens,
            cached_tokens: generation.usage.cached_prompt_tokens,
            output_tokens: generation.usage.generated_tokens,
            forced_tokens: generation.usage.forced_tokens,
            queued: self.queued,
            prefill: generation.timings.prefill,
            decode: generation.timings.decode,
            mask: generation.timings.mask,
            closed_by_budget: self.pointers_at(&generation.closed_by_budget),
            undecided: generation.undecided,
            stop_ignored: !self.reading.is_free && !self.reading.stop.is_empty(),
            fields: std::mem::take(&mut self.reports),
            removed: (self.removed.1 > 0).then(|| self.removed.0 / self.removed.1 as f64),
        }))));
    }

    /// JSON Pointers of what was being written when the given tokens were chosen, each once.
    fn pointers_at(&self, tokens: &[usize]) -> Vec<String> {
        if !self.reading.is_json {
            return if tokens.is_empty() { Vec::new() } else { vec![String::new()] };
        }
        let mut pointers: Vec<String> = Vec::new();
        let mut scanner = FieldScanner::new();
        let text = self.fields.text();
        for &token in tokens {
            let offset = self.offsets.get(token).copied().unwrap_or(text.len());
            let from = scanner.text().len().min(offset);
            scanner.push(&text[from..offset], &mut Vec::new());
            let pointer = scanner.pointer();
            if !pointers.contains(&pointer) {
                pointers.push(pointer);
            }
        }
        pointers
    }
}

fn fault_of(error: InferError) -> Fault {
    match error {
        InferError::Cancelled => {
            Fault::new(Kind::Draining, "the server stopped before the answer was whole")
        }
        error => error.into(),
    }
}

/// Reads one call, `{"name": …, "arguments": {…}}`, and passes the arguments on as they come.
///
/// It checks nothing: the constraint has done that.
#[derive(Debug, Default)]
struct CallReader {
    text: String,
    /// Where the arguments begin, once their name is written.
    arguments: Option<usize>,
    /// How much of `text` has been looked at, and how deep it is there.
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    done: bool,
    /// How much of the arguments has been passed on.
    sent: usize,
}

/// What stands between the name and the arguments.
const BEFORE_ARGUMENTS: &str = ", \"arguments\": ";

impl CallReader {
    fn push(&mut self, text: &str, index: usize, deltas: &mut Vec<Delta>) {
        self.text.push_str(text);
        if self.arguments.is_none() {
            self.find_name(index, deltas);
        }
        let Some(start) = self.arguments else { return };
        self.at = self.at.max(start);
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() && !self.done {
            let byte = bytes[self.at];
            if self.escaped {
                self.escaped = false;
            } else if self.in_string {
                match byte {
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        self.done = self.depth == 0;
                    }
                    _ => {}
                }
            }
            self.at += 1;
        }
        let from = start + self.sent;
        if from < self.at {
            let json = self.text[from..self.at].to_owned();
            self.sent += json.len();
            deltas.push(Delta::CallArguments { index, json });
        }
    }

    fn find_name(&mut self, index: usize, deltas: &mut Vec<Delta>) {
        const BEFORE_NAME: &str = "{\"name\": ";
        let Some(start) = self.text.find(BEFORE_NAME).map(|at| at + BEFORE_NAME.len()) else {
            return;
        };
        let mut stream =
            serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<String>();
        let Some(Ok(name)) = stream.next() else { return };
        let end = start + stream.byte_offset();
        if self.text[end..].starts_with(BEFORE_ARGUMENTS) {
            self.arguments = Some(end + BEFORE_ARGUMENTS.len());
            deltas.push(Delta::CallStart { index, name });
        }
    }
}
