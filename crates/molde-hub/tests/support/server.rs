//! A server that speaks the hub's protocol, with faults on demand.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{COMMIT, FILE, REPO, git_sha1, sha256};

/// A request as it arrived; absent headers are empty.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    pub range: String,
    pub if_range: String,
    pub authorization: String,
}

/// What to do wrong, once, with the next request of a method.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing.
    Well,
    /// This status and no body.
    Status(u16),
    /// Close the connection after this many bytes of the body.
    CutAfter(usize),
    /// Send this many bytes of the body, then nothing for a while.
    StallAfter(usize, Duration),
    /// Answer only after a pause.
    Wait(Duration),
    /// Flip the last byte of the body.
    WrongByte,
    /// Answer 200 with the whole file, whatever range was asked for.
    IgnoreRange,
    /// Answer 206 with another range than the one asked for.
    OtherRange,
    /// Announce this many bytes more than there are.
    LengthMore(usize),
    /// Redirect to this address.
    Redirect(String),
    /// Close the connection before any answer.
    NoAnswer,
    /// Answer without an ETag, as a login page does.
    NoEtag,
    /// Send this as the ETag.
    Etag(String),
    /// Say that the file has this size.
    Size(u64),
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    /// Where bytes are served, if not here.
    cdn: Option<String>,
    head: VecDeque<Fault>,
    get: VecDeque<Fault>,
    log: Vec<Recorded>,
    /// Pause between chunks of a body.
    pace: Option<Duration>,
}

/// A running server. It ends with the test process.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
    pub address: String,
}

impl Server {
    /// A hub with one large file: `FILE` of `REPO` at `COMMIT`.
    pub fn with(content: &[u8]) -> Self {
        let server = Self::start();
        server.add(&format!("/{REPO}/resolve/{COMMIT}/{FILE}"), content);
        server
    }

    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let server = Self { state: state.clone(), address };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                // A client that hangs up is no failure of the server.
                std::thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        server
    }

    pub fn add(&self, path: &str, content: &[u8]) {
        self.change(|state| drop(state.files.insert(path.to_owned(), content.to_owned())));
    }

    pub fn redirect_bytes_to(&self, other: &Server) {
        self.change(|state| state.cdn = Some(other.address.clone()));
    }

    pub fn on_head(&self, faults: impl IntoIterator<Item = Fault>) {
        self.change(|state| state.head.extend(faults));
    }

    pub fn on_get(&self, faults: impl IntoIterator<Item = Fault>) {
        self.change(|state| state.get.extend(faults));
    }

    pub fn pace(&self, pause: Duration) {
        self.change(|state| state.pace = Some(pause));
    }

    /// The requests so far, in order.
    pub fn log(&self) -> Vec<Recorded> {
        self.state.lock().expect("no panic in the server").log.clone()
    }

    /// The `GET` requests so far, in order.
    pub fn gets(&self) -> Vec<Recorded> {
        self.log().into_iter().filter(|request| request.method == "GET").collect()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic in the server"));
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = read_request(&mut reader)?;
    let (content, cdn, fault, pace) = {
        let mut state = state.lock().expect("no panic in the server");
        state.log.push(request.clone());
        let content = state.files.get(&request.path).cloned();
        let faults = if request.method == "HEAD" { &mut state.head } else { &mut state.get };
        let fault = faults.pop_front();
        (content, state.cdn.clone(), fault, state.pace)
    };
    let mut out = stream;
    let fault = fault.unwrap_or(Fault::Well);
    match &fault {
        Fault::NoAnswer => return Ok(()),
        Fault::Wait(pause) => std::thread::sleep(*pause),
        Fault::Status(status) => return head(&mut out, *status, &[("Content-Length", "0")]),
        Fault::Redirect(to) => {
            return head(&mut out, 302, &[("Location", to), ("Content-Length", "0")]);
        }
        _ => {}
    }
    let Some(content) = content else {
        return head(&mut out, 404, &[("Content-Length", "0")]);
    };
    let etag = match &fault {
        Fault::Etag(etag) => etag.clone(),
        _ if request.path.rsplit_once('.').is_some_and(|(_, end)| end == "json") => {
            git_sha1(&content)
        }
        _ => sha256(&content),
    };
    let quoted = format!("\"{etag}\"");
    let size = match fault {
        Fault::Size(size) => size.to_string(),
        _ => content.len().to_string(),
    };
    let linked = [
        ("X-Repo-Commit", COMMIT),
        ("X-Linked-Etag", quoted.as_str()),
        ("X-Linked-Size", size.as_str()),
    ];
    if let Some(cdn) = cdn {
        let location = format!("{cdn}{}?signature=secret", request.path);
        let mut headers = linked.to_vec();
        headers.extend([("Location", location.as_str()), ("Content-Length", "0")]);
        return head(&mut out, 302, &headers);
    }
    if matches!(fault, Fault::NoEtag) {
        return head(&mut out, 200, &[("Content-Length", &size)]);
    }
    if request.method == "HEAD" {
        return head(&mut out, 200, &[("ETag", &quoted), ("Content-Length", &size)]);
    }
    send_body(&mut out, &request, content, &quoted, &fault, pace)
}

fn send_body(
    out: &mut TcpStream,
    request: &Recorded,
    mut content: Vec<u8>,
    etag: &str,
    fault: &Fault,
    pace: Option<Duration>,
) -> std::io::Result<()> {
    let whole = content.len();
    if matches!(fault, Fault::WrongByte)
        && let Some(last) = content.last_mut()
    {
        *last ^= 1;
    }
    let asked = request.range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
    let first = match (asked.and_then(|first| first.parse::<usize>().ok()), fault) {
        (_, Fault::IgnoreRange) => None,
        (Some(first), Fault::OtherRange) => Some(first / 2),
        (first, _) => first,
    };
    let body = content.get(first.unwrap_or(0)..).unwrap_or_default();
    let more = if let Fault::LengthMore(more) = fault { *more } else { 0 };
    let length = (body.len() + more).to_string();
    let range = format!("bytes {}-{}/{whole}", first.unwrap_or(0), whole.saturating_sub(1));
    let mut headers = vec![("ETag", etag), ("Content-Length", length.as_str())];
    if first.is_some() {
        headers.push(("Content-Range", &range));
    }
    head(out, if first.is_some() { 206 } else { 200 }, &headers)?;
    match fault {
        Fault::CutAfter(bytes) => out.write_all(&body[..*bytes]),
        Fault::StallAfter(bytes, pause) => {
            out.write_all(&body[..*bytes])?;
            std::thread::sleep(*pause);
            Ok(())
        }
        _ => body.chunks(1 << 15).try_for_each(|chunk| {
            if let Some(pause) = pace {
                std::thread::sleep(pause);
            }
            out.write_all(chunk)
        }),
    }
}

fn head(out: &mut TcpStream, status: u16, headers: &[(&str, &str)]) -> std::io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    out.write_all(text.as_bytes())
}

fn read_request(reader: &mut impl std::io::BufRead) -> std::io::Result<Recorded> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Recorded {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
        ..Recorded::default()
    };
    for line in reader.lines() {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = value,
            "if-range" => request.if_range = value,
            "authorization" => request.authorization = value,
            _ => {}
        }
    }
    Ok(request)
}
