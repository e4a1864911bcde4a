//! Bytes from the hub into a partial file, again and again until it is whole.

use std::io::Read;
use std::time::Duration;

use ureq::http::HeaderMap;

use crate::client::{
    Answer, Client, Failure, FileMetadata, RemoteFile, content_range, normalize_etag, number, text,
};
use crate::digest::CHUNK_BYTES;
use crate::partial::Partial;
use crate::progress::{Event, Observer};
use crate::{HubConfig, HubError};

/// An attempt that brought this much was worth it: failures are counted anew.
const PROGRESS_BYTES: u64 = 1 << 20;
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Attempts in a row that failed, and the pauses between them.
pub(crate) struct Retries<'a> {
    config: &'a HubConfig,
    failed: u32,
}

impl<'a> Retries<'a> {
    pub(crate) fn new(config: &'a HubConfig) -> Self {
        Self { config, failed: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.failed = 0;
    }

    /// Attempts that failed since the last reset.
    pub(crate) fn failed(&self) -> u32 {
        self.failed
    }

    /// Pauses before the next attempt, or gives the failure back if there must be none.
    pub(crate) fn pause_after(
        &mut self,
        failure: Failure,
        file: &str,
        observer: &mut Observer<'_>,
    ) -> Result<(), HubError> {
        self.failed += 1;
        match failure {
            Failure::Retry(reason) | Failure::Down(reason)
                if self.failed <= self.config.retries =>
            {
                let doubled = 1_u32 << (self.failed - 1).min(16);
                let wait = self.config.retry_pause.saturating_mul(doubled).min(MAX_PAUSE);
                observer.event(Event::Retry { file, attempt: self.failed, wait, reason: &reason });
                observer.pause(wait)
            }
            failure => Err(failure.into_error()),
        }
    }
}

/// Fetches what the partial file lacks.
pub(crate) fn fetch(
    client: &Client,
    remote: RemoteFile<'_>,
    metadata: &FileMetadata,
    partial: &mut Partial,
    config: &HubConfig,
    observer: &mut Observer<'_>,
) -> Result<(), HubError> {
    let mut retries = Retries::new(config);
    let mut use_range = true;
    while partial.missing_bytes() > 0 {
        observer.check()?;
        if !use_range {
            partial.restart()?;
        }
        let before = partial.len_bytes();
        let attempt = Attempt { client, remote, metadata, config };
        match attempt.run(partial, &mut use_range, observer) {
            Ok(()) => {}
            Err(failure) => {
                if partial.len_bytes() >= before + PROGRESS_BYTES {
                    retries.reset();
                }
                let attempts = retries.failed() + 1;
                retries
                    .pause_after(failure, &remote.file.name, observer)
                    .map_err(|error| with_attempts(error, attempts))?;
            }
        }
    }
    Ok(())
}

fn with_attempts(error: HubError, count: u32) -> HubError {
    match error {
        HubError::Truncated { file, expected_bytes, got_bytes, reason, .. } => {
            HubError::Truncated { file, expected_bytes, got_bytes, reason, attempts: count }
        }
        other => other,
    }
}

/// One request and its body.
struct Attempt<'a> {
    client: &'a Client,
    remote: RemoteFile<'a>,
    metadata: &'a FileMetadata,
    config: &'a HubConfig,
}

impl Attempt<'_> {
    fn run(
        &self,
        partial: &mut Partial,
        use_range: &mut bool,
        observer: &mut Observer<'_>,
    ) -> Result<(), Failure> {
        let offset = partial.len_bytes();
        let if_range = self.metadata.served_etag.as_deref();
        let Answer { response, host, on_hub } = self.client.get(self.remote, offset, if_range)?;
        let headers = response.headers();
        if on_hub {
            self.check_unchanged(headers, host)?;
        }
        match response.status().as_u16() {
            206 => match content_range(headers) {
                Some((_, Some(whole))) if whole != partial.target().size_bytes => {
                    return Err(Failure::Stop(self.wrong_size(whole)));
                }
                Some((first, _)) if first == offset => {}
                // Another part than the one asked for: this server's ranges are of no use.
                _ => {
                    *use_range = false;
                    return Err(Failure::Retry(
                        self.truncated(partial, "a range nobody asked for"),
                    ));
                }
            },
            416 => {
                *use_range = false;
                return Err(Failure::Retry(self.truncated(partial, "range refused")));
            }
            _ => {
                if let Some(whole) = whole_length(headers)
                    && whole != self.metadata.size_bytes
                {
                    return Err(Failure::Stop(self.wrong_size(whole)));
                }
                // The server starts from the first byte, whatever it was asked for.
                if offset > 0 {
                    partial.restart()?;
                }
            }
        }
        self.copy(response.into_body().into_reader(), partial, observer)
    }

    fn copy(
        &self,
        mut body: impl Read,
        partial: &mut Partial,
        observer: &mut Observer<'_>,
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            observer.check()?;
            match body.read(&mut buffer) {
                Ok(0) if partial.missing_bytes() == 0 => return Ok(()),
                Ok(0) => {
                    return Err(Failure::Retry(self.truncated(partial, "it was closed early")));
                }
                Ok(count) => {
                    partial.append(&buffer[..count])?;
                    observer.event(Event::Bytes {
                        file: &self.remote.file.name,
                        done_bytes: partial.len_bytes(),
                        total_bytes: self.metadata.size_bytes,
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // The file is whole: how the connection ends does not matter.
                Err(_) if partial.missing_bytes() == 0 => return Ok(()),
                Err(error) => {
                    let reason = if is_stall(&error) {
                        format!("nothing arrived for {} s", self.config.stall_timeout.as_secs_f32())
                    } else {
                        error.to_string()
                    };
                    return Err(Failure::Retry(self.truncated(partial, &reason)));
                }
            }
        }
    }

    /// The hub must not speak of other content than when it was asked what the file is.
    fn check_unchanged(&self, headers: &HeaderMap, host: String) -> Result<(), Failure> {
        match (&self.metadata.served_etag, text(headers, "etag")) {
            (Some(expected), Some(got)) if normalize_etag(got) != normalize_etag(expected) => {
                Err(Failure::Stop(HubError::Changed {
                    file: self.remote.file.name.clone(),
                    host,
                    expected: normalize_etag(expected).to_owned(),
                    got: normalize_etag(got).to_owned(),
                }))
            }
            _ => Ok(()),
        }
    }

    fn wrong_size(&self, got_bytes: u64) -> HubError {
        HubError::SizeMismatch {
            file: self.remote.file.name.clone(),
            expected_bytes: self.metadata.size_bytes,
            got_bytes,
        }
    }

    fn truncated(&self, partial: &Partial, reason: &str) -> HubError {
        HubError::Truncated {
            file: self.remote.file.name.clone(),
            expected_bytes: self.metadata.size_bytes,
            got_bytes: partial.len_bytes(),
            attempts: 1,
            reason: reason.to_owned(),
        }
    }
}

/// The length of a body that is the file itself, not a compressed form of it.
fn whole_length(headers: &HeaderMap) -> Option<u64> {
    if text(headers, "content-encoding").is_some_and(|encoding| encoding != "identity") {
        return None;
    }
    number(headers, "content-length")
}

fn is_stall(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock)
        || error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ureq::Error>())
            .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)))
}
