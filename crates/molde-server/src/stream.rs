//! Answers that are sent while they are written.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::answer::{Answer, Delta};
use crate::app::App;
use crate::fault::Fault;
use crate::run::Run;

/// How one dialect tells of an answer while it is written. Everything is appended to `out`, which
/// is sent when it is not empty.
pub(crate) trait Script: Send + 'static {
    /// Before anything is known.
    fn open(&mut self, out: &mut String);
    /// A piece of one answer: text, or a call.
    fn delta(&mut self, choice: usize, delta: &Delta, out: &mut String);
    /// One answer has come to its end.
    fn end(&mut self, choice: usize, answer: &Answer, out: &mut String);
    /// All have.
    fn close(&mut self, answers: &[Answer], out: &mut String);
    /// One of them failed: the last thing that is sent.
    fn fail(&mut self, fault: &Fault, out: &mut String);
    /// What may be sent at any time and says nothing.
    fn keep_alive(&self) -> Option<&'static str>;
}

/// An event of a stream of server-sent events.
pub(crate) fn sse(event: Option<&str>, data: &Value, out: &mut String) {
    if let Some(event) = event {
        out.push_str("event: ");
        out.push_str(event);
        out.push('\n');
    }
    out.push_str("data: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}

/// What server-sent events may hold at any time.
pub(crate) const SSE_COMMENT: &str = ": keep-alive\n\n";

struct State<S> {
    run: Run,
    script: S,
    answers: Vec<Answer>,
    keep_alive: Duration,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Open,
    Running,
    Over,
}

/// The response that sends what `script` makes of `run`.
pub(crate) fn respond(
    app: &Arc<App>,
    run: Run,
    script: impl Script,
    content_type: &'static str,
) -> Response {
    let answers = vec![Answer::default(); run.choices];
    let keep_alive = app.config.limits.keep_alive;
    let state = State { run, script, answers, keep_alive, stage: Stage::Open };
    let body = Body::from_stream(futures_util::stream::unfold(state, step));
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, body).into_response()
}

async fn step<S: Script>(
    mut state: State<S>,
) -> Option<(Result<String, std::convert::Infallible>, State<S>)> {
    let mut out = String::new();
    loop {
        match state.stage {
            Stage::Over => return None,
            Stage::Open => {
                state.script.open(&mut out);
                state.stage = Stage::Running;
            }
            Stage::Running => {
                match tokio::time::timeout(state.keep_alive, state.run.next()).await {
                    Err(_) => out.push_str(state.script.keep_alive().unwrap_or_default()),
                    Ok(Some((choice, delta))) => state.tell(choice, &delta, &mut out),
                    Ok(None) => {
                        state.script.close(&state.answers, &mut out);
                        state.stage = Stage::Over;
                    }
                }
            }
        }
        if !out.is_empty() {
            return Some((Ok(out), state));
        }
    }
}

impl<S: Script> State<S> {
    fn tell(&mut self, choice: usize, delta: &Delta, out: &mut String) {
        let Some(answer) = self.answers.get_mut(choice) else { return };
        answer.push(delta);
        match delta {
            Delta::End(Ok(_)) => self.script.end(choice, answer, out),
            Delta::End(Err(fault)) => {
                self.script.fail(fault, out);
                self.stage = Stage::Over;
            }
            Delta::Started => {}
            delta => self.script.delta(choice, delta, out),
        }
    }
}
