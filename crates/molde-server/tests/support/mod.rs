//! A server with the tiny untrained model, and a client that is no SDK.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{LoadedModel, ModelOptions};
use molde_server::{Config, Server};
use serde_json::Value;
use tokio::sync::oneshot;

/// A running server; dropping it stops it.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The tiny model under the name `tiny`, with settings changed by `change`.
pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Running {
    start_model(&TinyModel::default(), change)
}

pub(crate) fn start_model(model: &TinyModel, change: impl FnOnce(&mut Config)) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    model.write_gguf(&path, TinyDtype::Q8_0).unwrap();
    let options = ModelOptions { threads: std::num::NonZeroUsize::new(1), ..Default::default() };
    let loaded = LoadedModel::load(&path, &options).unwrap();
    let mut config = Config { port: 0, ..Config::new("tiny") };
    change(&mut config);
    let (stop, stopped) = oneshot::channel();
    let (told, address) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap().block_on(async move {
            let server = Server::bind(loaded, None, config).await.unwrap();
            told.send(server.address()).unwrap();
            server.run(async { drop(stopped.await) }).await.unwrap();
        });
    });
    Running { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server ended cleanly");
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The JSON of a reply that must be a success.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    /// Server-sent events: name and data.
    pub(crate) fn events(&self) -> Vec<(Option<String>, String)> {
        assert_eq!(self.status, 200, "{}", self.body);
        let blocks = self.body.split("\n\n").filter(|block| !block.is_empty());
        blocks
            .filter(|block| !block.starts_with(':'))
            .map(|block| {
                let field = |name: &str| {
                    let line = block.lines().find(|line| line.starts_with(name))?;
                    Some(line[name.len()..].to_owned())
                };
                (field("event: "), field("data: ").expect("every event has data"))
            })
            .collect()
    }
}

impl Running {
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut stream = self.connect();
        let host = format!("localhost:{}", self.address.port());
        let mut head = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push(format!("Host: {host}"));
        }
        head.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if method != "GET" {
            head.push("Content-Type: application/json".to_owned());
            head.push(format!("Content-Length: {}", body.len()));
        }
        let head = head.join("\r\n");
        write!(stream, "{head}\r\n\r\n{body}").unwrap();
        read_reply(stream)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.request("POST", path, &[], &body.to_string())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "")
    }
}

/// Reads a response to its end.
pub(crate) fn read_reply(stream: TcpStream) -> Reply {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {line:?}"));
    let status = status.parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    let mut bytes = Vec::new();
    if is_chunked {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            bytes.extend_from_slice(&chunk[..size]);
            // Every chunk is whole characters.
            assert!(std::str::from_utf8(&chunk[..size]).is_ok(), "a character was split");
            if size == 0 {
                break;
            }
        }
    } else {
        reader.read_to_end(&mut bytes).unwrap();
    }
    Reply { status, headers, body: String::from_utf8(bytes).unwrap() }
}
