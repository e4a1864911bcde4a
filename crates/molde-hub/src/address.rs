//! Addresses: the endpoint, where a redirect leads, and whether two are the same server.

use std::net::IpAddr;

use ureq::http::Uri;
use ureq::http::uri::Scheme;

use crate::error::RedirectRule;
use crate::{HubError, catalog::CatalogFile};

/// The hub's address, without a trailing slash.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint(String);

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, HubError> {
        let trimmed = text.trim().trim_end_matches('/');
        match trimmed.parse::<Uri>() {
            Ok(uri) if is_http(&uri) && uri.query().is_none() => Ok(Self(trimmed.to_owned())),
            _ => Err(HubError::Setting {
                variable: "HF_ENDPOINT",
                value: text.to_owned(),
                problem: "an address such as https://huggingface.co is expected",
            }),
        }
    }

    /// Where a file of a repository is. All parts come from a validated catalogue, so none needs
    /// escaping.
    pub(crate) fn file(&self, repo: &str, revision: &str, file: &CatalogFile) -> Uri {
        format!("{}/{repo}/resolve/{revision}/{}", self.0, file.name)
            .parse()
            .expect("a valid endpoint followed by names of a valid catalogue is a valid address")
    }

    /// Host and port.
    pub(crate) fn host(&self) -> String {
        self.0.parse().map(|uri| host(&uri)).unwrap_or_default()
    }
}

/// Host and port, for messages: the path or query of a signed address is a secret.
pub(crate) fn host(uri: &Uri) -> String {
    uri.authority()
        // Credentials before an @ are a secret too.
        .map(|authority| match authority.as_str().rsplit_once('@') {
            Some((_, host)) => host.to_owned(),
            None => authority.as_str().to_owned(),
        })
        .unwrap_or_default()
}

/// Whether a header meant for one may go to the other: scheme, host and port are equal.
pub(crate) fn same_origin(a: &Uri, b: &Uri) -> bool {
    let origin = |uri: &Uri| {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        (secure, uri.host().unwrap_or_default().to_ascii_lowercase(), port)
    };
    origin(a) == origin(b)
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The address that a `Location` header names, seen from the address that sent it.
pub(crate) fn redirect_target(from: &Uri, location: Option<&str>) -> Result<Uri, HubError> {
    let refused =
        |to: &str, why| Err(HubError::RedirectRefused { from: host(from), to: to.to_owned(), why });
    let Some(location) = location else {
        return refused("nowhere", RedirectRule::BadLocation);
    };
    // A fragment is for the reader of a page, never for the server.
    let location = location.split('#').next().unwrap_or_default().trim();
    let scheme = from.scheme_str().unwrap_or("http");
    let authority = from.authority().map_or("", |authority| authority.as_str());
    let absolute = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if has_scheme(location) {
        location.to_owned()
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    match absolute.parse::<Uri>() {
        Ok(uri) if !is_http(&uri) => refused(&uri_start(location), RedirectRule::BadLocation),
        Ok(uri)
            if from.scheme() == Some(&Scheme::HTTPS) && uri.scheme() != Some(&Scheme::HTTPS) =>
        {
            refused(&host(&uri), RedirectRule::Downgrade)
        }
        Ok(uri) => Ok(uri),
        Err(_) => refused(&uri_start(location), RedirectRule::BadLocation),
    }
}

fn is_http(uri: &Uri) -> bool {
    let scheme = uri.scheme();
    (scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS))
        && uri.host().is_some_and(|host| !host.is_empty())
}

fn has_scheme(location: &str) -> bool {
    location.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Enough of a malformed address to recognize it by, without its query.
fn uri_start(location: &str) -> String {
    location.split('?').next().unwrap_or_default().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("an address")
    }

    #[test]
    fn locations_resolve_like_links() {
        let from = uri("https://hub.test:8443/a/b?sig=1");
        for (location, expected) in [
            ("https://cdn.test/x?y=1#z", "https://cdn.test/x?y=1"),
            ("//cdn.test/x", "https://cdn.test/x"),
            ("/x/y", "https://hub.test:8443/x/y"),
            ("c", "https://hub.test:8443/a/c"),
        ] {
            let target = redirect_target(&from, Some(location)).expect(location);
            assert_eq!(target.to_string(), expected);
        }
    }

    #[test]
    fn locations_that_leave_https_or_http_are_refused_without_their_query() {
        let from = uri("https://hub.test/a");
        for (location, rule) in [
            (Some("http://hub.test/a?secret"), RedirectRule::Downgrade),
            (Some("file:///etc/passwd?secret"), RedirectRule::BadLocation),
            (Some("ftp://hub.test/a?secret"), RedirectRule::BadLocation),
            (Some("https://?secret"), RedirectRule::BadLocation),
            (None, RedirectRule::BadLocation),
        ] {
            let error = redirect_target(&from, location).expect_err("refused");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(
                matches!(error, HubError::RedirectRefused { why, .. } if why == rule),
                "{location:?}"
            );
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = uri("https://hub.test/a");
        assert!(same_origin(&origin, &uri("https://HUB.test:443/b")));
        for other in ["http://hub.test/a", "https://hub.test:444/a", "https://hub.test.evil/a"] {
            assert!(!same_origin(&origin, &uri(other)), "{other}");
        }
    }

    #[test]
    fn this_machine_is_known_by_name_and_by_number() {
        for here in ["http://localhost:1", "http://127.0.0.2/a", "http://[::1]:8/"] {
            assert!(is_loopback(&uri(here)), "{here}");
        }
        for elsewhere in ["http://localhost.test", "http://10.0.0.1", "http://128.0.0.1"] {
            assert!(!is_loopback(&uri(elsewhere)), "{elsewhere}");
        }
    }

    #[test]
    fn hosts_in_messages_carry_no_credentials() {
        assert_eq!(host(&uri("https://user:secret@hub.test:1/a?b")), "hub.test:1");
    }
}
