//! What every request passes before it reaches a route: who may ask, and what is noted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::fault::{Dialect, Fault, Kind};

/// The name of one request, in its response's headers and in logs.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// Routes that answer without a key: they say nothing that is worth one.
const OPEN_ROUTES: [&str; 3] = ["/", "/health", "/openapi.json"];

pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let id = app.ids.make("req_");
    let method = request.method().clone();
    let dialect = Dialect::of_path(request.uri().path());
    let route =
        request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = match admit(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.response(dialect, &id),
    };
    let fault = response.extensions().get::<Kind>().map_or("", |kind| kind.code());
    let status = response.status().as_u16();
    app.metrics.responded(&route, status, fault);
    tracing::info!(%id, %method, route, status, error = fault, ms = start.elapsed().as_millis(), "response");
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), id.clone());
        headers.insert(HeaderName::from_static("request-id"), id);
    }
    headers.insert(
        HeaderName::from_static("openai-processing-ms"),
        HeaderValue::from(start.elapsed().as_millis() as u64),
    );
    headers
        .insert(HeaderName::from_static("openai-version"), HeaderValue::from_static("2020-10-01"));
    response
}

fn admit(app: &App, request: &Request) -> Result<(), Fault> {
    let path = request.uri().path();
    check_host(app, request)?;
    check_origin(app, request.headers())?;
    if app.is_draining() && path != "/health" {
        return Err(Fault::new(Kind::Draining, "the server is stopping"));
    }
    let is_open = OPEN_ROUTES.contains(&path) || request.method() == Method::OPTIONS;
    if !is_open && let Some(key) = &app.config.api_key {
        check_key(key, request.headers())?;
    }
    Ok(())
}

/// A web page can make a browser resolve its own name to this machine: then the name in `Host` is
/// not one of ours.
fn check_host(app: &App, request: &Request) -> Result<(), Fault> {
    let foreign = || {
        Fault::new(
            Kind::ForeignHost,
            "the Host header names another server: use localhost or the address, or allow the \
             name with --allow-host",
        )
    };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).ok_or_else(foreign)?;
    if hosts.next().is_some() || !is_our_host(app, host) {
        return Err(foreign());
    }
    match request.uri().authority() {
        Some(authority) if !is_our_host(app, authority.as_str()) => Err(foreign()),
        _ => Ok(()),
    }
}

fn is_our_host(app: &App, host: &str) -> bool {
    let name = host_name(host);
    let own = app.config.host.as_str();
    if let Ok(address) = name.parse::<IpAddr>() {
        // Names are what rebinding needs: an address is as good as another, if others are served.
        let serves_others = !own.parse::<IpAddr>().is_ok_and(|own| own.is_loopback());
        return address.is_loopback() || serves_others && own != "localhost";
    }
    name.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case(own)
        || app.config.hosts.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
}

/// The host without port and brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A browser says which page asks. Pages of others may not, unless they are named.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Fault> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let is_named = app.config.origins.iter().any(|named| named == "*" || named == origin);
    if is_named || is_own.is_some_and(|own| own.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(Fault::new(
        Kind::ForeignHost,
        "web pages of this origin may not use the server: allow it with --allow-origin",
    ))
}

fn check_key(key: &str, headers: &HeaderMap) -> Result<(), Fault> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.as_bytes().split_at_checked(7))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
        .map(|(_, key)| key);
    let plain = headers.get("x-api-key").map(HeaderValue::as_bytes);
    let is_right = |given: &[u8]| bool::from(given.ct_eq(key.as_bytes()));
    let given = [bearer, plain];
    if given.iter().flatten().any(|given| is_right(given)) {
        return Ok(());
    }
    let message = if given.iter().all(Option::is_none) {
        "no API key was given: send it as `Authorization: Bearer` or `x-api-key`"
    } else {
        "the API key is wrong"
    };
    Err(Fault::new(Kind::Unauthorized, message))
}
