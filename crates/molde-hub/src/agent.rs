//! Connections: time limits, proxy, certificates.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ureq::http::{Request, Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Proxy};

use crate::address::is_loopback;
use crate::{HubConfig, HubError};

/// Sends requests, and follows no redirect. Clones share their connections.
///
/// Certificates are read at the first request: whoever finds all models on disk needs none.
#[derive(Clone)]
pub(crate) struct Agents {
    connect_timeout: Duration,
    stall_timeout: Duration,
    ca_bundle: Option<PathBuf>,
    built: Arc<OnceLock<Built>>,
}

struct Built {
    /// Through the proxy of the environment, if there is one.
    proxied: Agent,
    /// For servers on this machine: a proxy elsewhere cannot reach them.
    local: Agent,
}

impl Agents {
    pub(crate) fn new(config: &HubConfig) -> Self {
        Self {
            connect_timeout: config.connect_timeout,
            stall_timeout: config.stall_timeout,
            ca_bundle: config.ca_bundle.clone(),
            built: Arc::default(),
        }
    }

    /// The answer's head; the body comes as it is read.
    pub(crate) fn run(
        &self,
        at: &Uri,
        request: Request<()>,
    ) -> Result<Result<Response<Body>, ureq::Error>, HubError> {
        let built = self.built()?;
        let agent = if is_loopback(at) { &built.local } else { &built.proxied };
        Ok(agent.run(request))
    }

    fn built(&self) -> Result<&Built, HubError> {
        if let Some(built) = self.built.get() {
            return Ok(built);
        }
        let mut tls = TlsConfig::builder();
        if let Some(path) = &self.ca_bundle {
            tls = tls.root_certs(root_certificates(path)?);
        }
        let tls = tls.build();
        let proxied = self.build(tls.clone(), Proxy::try_from_env());
        let local = self.build(tls, None);
        Ok(self.built.get_or_init(|| Built { proxied, local }))
    }

    fn build(&self, tls: TlsConfig, proxy: Option<Proxy>) -> Agent {
        Agent::config_builder()
            .tls_config(tls)
            .proxy(proxy)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Sizes and offsets are those of the file: it must come as it is.
            .accept_encoding("identity")
            .user_agent(concat!("molde-hub/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(self.connect_timeout))
            .timeout_connect(Some(self.connect_timeout))
            .timeout_recv_response(Some(self.stall_timeout))
            .timeout_per_read(Some(self.stall_timeout))
            .timeout_per_write(Some(self.stall_timeout))
            .build()
            .new_agent()
    }
}

/// The certificates of the bundle that the environment names: behind an inspecting proxy the
/// built-in ones do not do.
fn root_certificates(path: &Path) -> Result<RootCerts, HubError> {
    let pem = std::fs::read(path).map_err(|source| HubError::io("read", path, source))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(HubError::Setting {
            variable: "SSL_CERT_FILE",
            value: path.display().to_string(),
            problem: "a PEM file with at least one certificate is expected",
        });
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// Whether a connection was there and broke.
pub(crate) fn broke_off(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Io(source) => matches!(
            source.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        ),
        ureq::Error::Protocol(_) => true,
        _ => false,
    }
}

/// What a failed request ended in, for people.
pub(crate) fn describe_error(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(phase) => format!("time limit reached ({phase})"),
        ureq::Error::HostNotFound => "no such host".to_owned(),
        ureq::Error::Io(source) => source.to_string(),
        other => other.to_string(),
    }
}
