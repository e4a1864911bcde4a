//! Progress on the standard error: bars on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use molde_hub::Event;

/// Writes a message to the standard error. That it cannot be written is no reason to stop.
pub(crate) fn say(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "molde: {}", printable(message));
}

/// A message with its control characters escaped, so that the name of a file can neither move a
/// terminal's cursor nor look like a message of its own: what follows a line end is indented.
pub(crate) fn printable(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '\n' => shown.push_str("\n  "),
            control if control.is_control() => shown.extend(control.escape_default()),
            other => shown.push(other),
        }
    }
    shown
}

/// Seconds between two plain lines about the same transfer.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Shows the events of transfers.
pub(crate) struct TransferProgress {
    bar: Option<ProgressBar>,
    is_terminal: bool,
    last_line: Option<Instant>,
    /// When the current transfer began, and with how many bytes.
    began: Option<(Instant, u64)>,
}

impl TransferProgress {
    pub(crate) fn new() -> Self {
        Self {
            bar: None,
            is_terminal: std::io::stderr().is_terminal(),
            last_line: None,
            began: None,
        }
    }

    pub(crate) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Start { file, total_bytes, resumed_bytes } => {
                self.began = Some((Instant::now(), resumed_bytes));
                let resumed = if resumed_bytes > 0 {
                    format!(", going on after {}", megabytes(resumed_bytes))
                } else {
                    String::new()
                };
                self.line(&format!("fetching {file} ({}{resumed})", megabytes(total_bytes)));
                self.begin(file, total_bytes, resumed_bytes);
            }
            Event::Bytes { file, done_bytes, total_bytes } => {
                self.advance(file, done_bytes, total_bytes, "fetched");
            }
            Event::Verify { file, done_bytes, total_bytes } => {
                self.advance(file, done_bytes, total_bytes, "checked");
            }
            Event::Waiting { file, lock } => {
                self.line(&format!(
                    "{file}: another process is fetching it, waiting (lock {})",
                    lock.display()
                ));
            }
            Event::Retry { file, attempt, wait, reason } => self.line(&format!(
                "{file}: attempt {attempt} failed ({reason}), next in {:.1} s",
                wait.as_secs_f64()
            )),
            Event::SourceFailed { model, source, reason } => {
                self.line(&format!("{model}: the {source} cannot deliver it ({reason})"));
            }
            Event::Package { package, piece, pieces } => {
                self.line(&format!("package {piece} of {pieces}: {package}"));
            }
            Event::Done { file, path } => {
                self.clear();
                self.line(&format!("{file} is complete and checked: {}", path.display()));
            }
            _ => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.last_line = None;
    }

    fn begin(&mut self, file: &str, total_bytes: u64, done_bytes: u64) {
        if !self.is_terminal {
            self.last_line = Some(Instant::now());
            return;
        }
        let bar = bytes_bar(file, total_bytes);
        bar.set_position(done_bytes);
        bar.reset_eta();
        self.bar = Some(bar);
    }

    fn advance(&mut self, file: &str, done_bytes: u64, total_bytes: u64, verb: &str) {
        if self.is_terminal {
            let bar = self.bar.get_or_insert_with(|| bytes_bar(file, total_bytes));
            bar.set_position(done_bytes);
            return;
        }
        if self.last_line.is_some_and(|last| last.elapsed() < PLAIN_INTERVAL) {
            return;
        }
        let first = self.last_line.replace(Instant::now()).is_none();
        if first && done_bytes == 0 {
            return;
        }
        let rate = self.began.map_or_else(String::new, |(began, from)| {
            rate_and_rest(
                began.elapsed(),
                done_bytes.saturating_sub(from),
                total_bytes.saturating_sub(done_bytes),
            )
        });
        say(&format!(
            "{file}: {} of {} {verb}{rate}",
            megabytes(done_bytes),
            megabytes(total_bytes)
        ));
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

fn bytes_bar(file: &str, total_bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr())
        .with_style(style)
        .with_message(file.to_owned())
}

/// A bar that counts documents, on a terminal and if there is more than one.
pub(crate) fn documents_bar(documents: usize) -> ProgressBar {
    if documents < 2 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("[{bar:30}] {pos}/{len} documents {per_sec} {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(documents as u64), ProgressDrawTarget::stderr())
        .with_style(style)
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn rate_and_rest(elapsed: Duration, done_bytes: u64, left_bytes: u64) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 || done_bytes == 0 {
        return String::new();
    }
    let rate = done_bytes as f64 / seconds;
    format!(", {:.1} MB/s, {:.0} s left", rate / 1e6, left_bytes as f64 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_lines_and_lose_their_control_characters() {
        assert_eq!(printable("a\u{1b}[31m\rb\tñ\u{9b}"), r"a\u{1b}[31m\rb\tñ\u{9b}");
        assert_eq!(printable("faults:\n/a: x"), "faults:\n  /a: x");
    }

    #[test]
    fn rate_and_time_left_follow_from_what_was_done() {
        assert_eq!(
            rate_and_rest(Duration::from_secs(2), 10_000_000, 20_000_000),
            ", 5.0 MB/s, 4 s left"
        );
        assert_eq!(rate_and_rest(Duration::ZERO, 5, 5), "");
        assert_eq!(rate_and_rest(Duration::from_secs(1), 0, 5), "");
    }
}
