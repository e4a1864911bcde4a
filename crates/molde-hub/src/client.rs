//! The hub's protocol over HTTP: what a file is (`HEAD`), and its bytes (`GET` from an offset).
//! Redirects are followed by hand, since the token may go to the hub and nowhere else.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use ureq::Body;
use ureq::http::{HeaderMap, Method, Request, Response, Uri, header};

use crate::address::{Endpoint, host, redirect_target, same_origin};
use crate::agent::{Agents, broke_off, describe_error};
use crate::cache::is_blob_name;
use crate::catalog::CatalogFile;
use crate::error::RedirectRule;
use crate::{HubConfig, HubError};

const MAX_REDIRECTS: usize = 10;
/// Pause between two questions to a hub that answered with an error, while it may still answer.
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// A failed attempt: whether another one may help.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server answered badly, or the connection broke: it may do better.
    Retry(HubError),
    /// No connection came about. Worth another try in a long transfer, not when asking whether
    /// anybody is there.
    Down(HubError),
    /// No attempt will help.
    Stop(HubError),
}

impl Failure {
    pub(crate) fn into_error(self) -> HubError {
        match self {
            Self::Retry(error) | Self::Down(error) | Self::Stop(error) => error,
        }
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        Self::Stop(error)
    }
}

/// What the hub says about a file.
#[derive(Clone, Debug)]
pub(crate) struct FileMetadata {
    /// Normalized: without quotes and weakness mark. Names the blob.
    pub(crate) etag: String,
    pub(crate) size_bytes: u64,
    /// The ETag as sent, if the server that serves the bytes sent it: good for `If-Range`.
    pub(crate) served_etag: Option<String>,
}

/// The answer to a `GET`.
pub(crate) struct Answer {
    pub(crate) response: Response<Body>,
    /// Host and port that gave it.
    pub(crate) host: String,
    /// Whether that is the hub itself, not a download server it redirected to.
    pub(crate) on_hub: bool,
}

/// A file of the hub: which repository and revision, and what the catalogue says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteFile<'a> {
    pub(crate) repo: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) file: &'a CatalogFile,
}

/// Speaks to one hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    agents: Agents,
    endpoint: Endpoint,
    token: Option<String>,
    answer_timeout: Duration,
}

impl Client {
    pub(crate) fn new(config: &HubConfig) -> Result<Self, HubError> {
        let agents = Agents::new(config);
        let endpoint = Endpoint::parse(&config.endpoint)?;
        let token = config.token.clone();
        let answer_timeout = config.answer_timeout;
        Ok(Self { agents, endpoint, token, answer_timeout })
    }

    /// Host and port of the hub.
    pub(crate) fn host(&self) -> String {
        self.endpoint.host()
    }

    /// Asks what a file is, and takes at most the answer timeout whatever happens: name lookup has
    /// no limit of its own on some systems, so the question is asked on a thread, which is left
    /// behind if it does not come back.
    ///
    /// A broken connection is tried again until then; a server error is not, but if `persistent`.
    pub(crate) fn metadata(
        &self,
        remote: RemoteFile<'_>,
        persistent: bool,
    ) -> Result<FileMetadata, Failure> {
        let deadline = Instant::now() + self.answer_timeout;
        let (client, file) = (self.clone(), remote.file.clone());
        let (repo, revision) = (remote.repo.to_owned(), remote.revision.to_owned());
        let (sender, receiver) = mpsc::channel();
        let ask = move || {
            let remote = RemoteFile { repo: &repo, revision: &revision, file: &file };
            loop {
                let answer = client.ask(remote);
                let again = match &answer {
                    Err(Failure::Retry(HubError::Http { .. })) => persistent,
                    Err(Failure::Retry(HubError::Unreachable { .. })) => true,
                    _ => false,
                };
                if !again || Instant::now() + ASK_AGAIN >= deadline {
                    // Nobody listens any more if the deadline has passed.
                    let _ = sender.send(answer);
                    return;
                }
                std::thread::sleep(ASK_AGAIN);
            }
        };
        let started = std::thread::Builder::new().name("molde-hub-ask".to_owned()).spawn(ask);
        let unreachable =
            |reason| Failure::Stop(HubError::Unreachable { host: self.host(), reason });
        if let Err(error) = started {
            return Err(unreachable(error.to_string()));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(Err(
                Failure::Retry(error @ HubError::Unreachable { .. }) | Failure::Down(error),
            )) => Err(Failure::Stop(error)),
            Ok(answer) => answer,
            Err(_) => {
                Err(unreachable(format!("no answer in {:.1} s", self.answer_timeout.as_secs_f32())))
            }
        }
    }

    /// The `HEAD` request, up to the redirect to the server that has the bytes.
    fn ask(&self, remote: RemoteFile<'_>) -> Result<FileMetadata, Failure> {
        let mut at = self.endpoint.file(remote.repo, remote.revision, remote.file);
        let start = at.clone();
        let mut on_hub = true;
        let mut known_etag = None;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&Method::HEAD, &at, on_hub, &[])?;
            let headers = response.headers();
            let linked_size = number(headers, "x-linked-size");
            let served = text(headers, "etag");
            // What the hub said about the content goes before what a download server says.
            if known_etag.is_none() {
                known_etag = text(headers, "x-linked-etag").map(str::to_owned);
            }
            if !response.status().is_redirection() {
                self.check_status(&response, &at, remote, on_hub)?;
                let size_bytes = linked_size.or_else(|| number(headers, "content-length"));
                let served_etag = served.filter(|tag| on_hub && is_strong(tag)).map(str::to_owned);
                let etag = known_etag.as_deref().or(served);
                return describe(etag, size_bytes, served_etag, &at, remote);
            }
            let next = redirect_target(&at, text(headers, "location"))?;
            let leaves = !same_origin(&next, &start);
            if leaves && on_hub && known_etag.is_none() {
                known_etag = served.map(str::to_owned);
            }
            let size_bytes = linked_size.or(remote.file.size_bytes);
            if known_etag.is_some() && size_bytes.is_some() {
                return describe(known_etag.as_deref(), size_bytes, None, &at, remote);
            }
            on_hub &= !leaves;
            at = next;
        }
        Err(Failure::Stop(too_many_redirects(&start, &at)))
    }

    /// The answer to a `GET` from `offset`. The status is 200, 206 or 416.
    pub(crate) fn get(
        &self,
        remote: RemoteFile<'_>,
        offset: u64,
        if_range: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut at = self.endpoint.file(remote.repo, remote.revision, remote.file);
        let start = at.clone();
        let mut on_hub = true;
        let range = format!("bytes={offset}-");
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = Vec::new();
            if offset > 0 {
                headers.push((header::RANGE, range.as_str()));
                // A download server has its own ETags.
                headers.extend(if_range.filter(|_| on_hub).map(|tag| (header::IF_RANGE, tag)));
            }
            let response = self.send(&Method::GET, &at, on_hub, &headers)?;
            if !response.status().is_redirection() {
                if response.status().as_u16() != 416 || offset == 0 {
                    self.check_status(&response, &at, remote, on_hub)?;
                }
                return Ok(Answer { response, host: host(&at), on_hub });
            }
            let next = redirect_target(&at, text(response.headers(), "location"))?;
            on_hub &= same_origin(&next, &start);
            at = next;
        }
        Err(Failure::Stop(too_many_redirects(&start, &at)))
    }

    fn send(
        &self,
        method: &Method,
        at: &Uri,
        on_hub: bool,
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Response<Body>, Failure> {
        let mut request = Request::builder().method(method).uri(at);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if let Some(token) = self.token.as_ref().filter(|_| on_hub) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(()).map_err(|_| {
            Failure::Stop(HubError::Setting {
                variable: "HF_TOKEN",
                value: "(not shown)".to_owned(),
                problem: "a token of printable ASCII is expected",
            })
        })?;
        self.agents.run(at, request)?.map_err(|error| {
            let reason = describe_error(&error);
            let unreachable = HubError::Unreachable { host: host(at), reason };
            if broke_off(&error) { Failure::Retry(unreachable) } else { Failure::Down(unreachable) }
        })
    }

    fn check_status(
        &self,
        response: &Response<Body>,
        at: &Uri,
        remote: RemoteFile<'_>,
        on_hub: bool,
    ) -> Result<(), Failure> {
        let status = response.status().as_u16();
        let file = remote.file.name.clone();
        let host = host(at);
        let token_sent = on_hub && self.token.is_some();
        match status {
            200 | 206 => Ok(()),
            401 | 403 => {
                Err(Failure::Stop(HubError::Unauthorized { status, host, file, token_sent }))
            }
            404 => Err(Failure::Stop(HubError::NotFound {
                host,
                repo: remote.repo.to_owned(),
                revision: remote.revision.to_owned(),
                file,
            })),
            408 | 429 | 500..=599 => Err(Failure::Retry(HubError::Http { status, host, file })),
            _ => Err(Failure::Stop(HubError::Http { status, host, file })),
        }
    }
}

fn describe(
    etag: Option<&str>,
    size_bytes: Option<u64>,
    served_etag: Option<String>,
    at: &Uri,
    remote: RemoteFile<'_>,
) -> Result<FileMetadata, Failure> {
    let not_a_hub = |header| {
        let file = remote.file.name.clone();
        Failure::Stop(HubError::NotAHub { host: host(at), header, file })
    };
    let etag = etag.map(normalize_etag).filter(|etag| is_blob_name(etag));
    let etag = etag.ok_or_else(|| not_a_hub("ETag"))?.to_owned();
    let size_bytes = size_bytes.ok_or_else(|| not_a_hub("Content-Length"))?;
    Ok(FileMetadata { etag, size_bytes, served_etag })
}

/// A header as text; absent if it is not printable.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A header as a number.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

/// First byte, and size of the whole if known, of a `Content-Range: bytes first-last/size`.
pub(crate) fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let range = text(headers, "content-range")?.trim().strip_prefix("bytes")?.trim_start();
    let (bounds, size) = range.split_once('/')?;
    let (first, _) = bounds.split_once('-')?;
    let size = if size.trim() == "*" { None } else { Some(size.trim().parse().ok()?) };
    Some((first.trim().parse().ok()?, size))
}

pub(crate) fn normalize_etag(etag: &str) -> &str {
    etag.trim().trim_start_matches("W/").trim_matches('"')
}

fn is_strong(etag: &str) -> bool {
    etag.starts_with('"') && etag.ends_with('"')
}

fn too_many_redirects(from: &Uri, to: &Uri) -> HubError {
    HubError::RedirectRefused { from: host(from), to: host(to), why: RedirectRule::TooMany }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(value: &str) -> Option<(u64, Option<u64>)> {
        let mut headers = HeaderMap::new();
        headers.insert("content-range", value.parse().expect("a header value"));
        content_range(&headers)
    }

    #[test]
    fn content_ranges_are_read_or_refused() {
        assert_eq!(range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(range("bytes 5-9/*"), Some((5, None)));
        for wrong in ["bytes */10", "items 5-9/10", "bytes 5-9", "bytes -9/10", "bytes 5-9/x"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn etags_lose_quotes_and_weakness() {
        for etag in ["\"abc\"", "W/\"abc\"", "abc", " \"abc\" "] {
            assert_eq!(normalize_etag(etag), "abc");
        }
        assert!(is_strong("\"abc\"") && !is_strong("W/\"abc\""));
    }
}
