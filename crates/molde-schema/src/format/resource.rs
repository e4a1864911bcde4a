//! `uri`, `uri-reference` (RFC 3986), `iri`, `iri-reference` (RFC 3987), `uri-template` (RFC 6570).

use super::{host, whole};
use crate::dfa::DfaLimits;
use crate::pattern::{Pattern, PatternError};

/// Which characters a resource identifier is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repertoire {
    /// A URI.
    Ascii,
    /// An IRI.
    Unicode,
}

/// `ucschar` of RFC 3987.
const UCSCHAR: &str = concat!(
    "\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}",
    "\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}",
    "\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}",
    "\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}",
    "\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}",
);

/// `iprivate` of RFC 3987, allowed in queries alone.
const IPRIVATE: &str = "\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}";

const PERCENT: &str = r"%[\dA-Fa-f]{2}";

/// The parts of the grammar, as expressions.
struct Parts {
    /// `scheme ":"`
    scheme: String,
    /// `"//" authority path-abempty`
    network: String,
    /// `path-absolute`
    absolute: String,
    /// `path-rootless`
    rootless: String,
    /// `path-noscheme`
    noscheme: String,
    /// `[ "?" query ] [ "#" fragment ]`
    tail: String,
}

impl Parts {
    fn new(standard: bool, repertoire: Repertoire) -> Self {
        let (ucs, private) = match repertoire {
            Repertoire::Ascii => ("", ""),
            Repertoire::Unicode => (UCSCHAR, IPRIVATE),
        };
        let plain = format!(r"A-Za-z\d._~!$&'()*+,;={ucs}-");
        let one = |more: &str| format!("(?:[{more}{plain}]|{PERCENT})");
        let segment = one(":@");
        let path = format!("(?:/{segment}*)*");
        let literal = format!(
            r"\[(?:{}|[vV][\dA-Fa-f]+\.[A-Za-z\d._~!$&'()*+,;=:-]+)\]",
            host::ipv6_expression()
        );
        let authority = if standard {
            format!("(?:{}*@)?(?:{literal}|{}*)(?::\\d*)?", one(":"), one(""))
        } else {
            format!("{}(?::[1-9]\\d{{0,3}})?", host::public_hostname_expression())
        };
        Self {
            scheme: r"[A-Za-z][A-Za-z\d+.-]*:".to_owned(),
            network: format!("//{authority}{path}"),
            absolute: format!("/(?:{segment}+{path})?"),
            rootless: format!("{segment}+{path}"),
            noscheme: format!("{}+{path}", one("@")),
            tail: format!(r"(?:\?{}*)?(?:#{}*)?", one(&format!(":@/?{private}")), one(":@/?")),
        }
    }

    /// Absolute, in the standard's sense of having a scheme.
    fn absolute_expression(&self, standard: bool) -> String {
        let Self { scheme, network, absolute, rootless, tail, .. } = self;
        if standard {
            format!("{scheme}(?:{network}|{absolute}|{rootless}|){tail}")
        } else {
            format!(
                r"(?:(?:https?|ftp|wss?):{network}|(?:urn:[A-Za-z\d]{{2,32}}:|mailto:|tel:)[A-Za-z\d._~!$&'()*+,;=:@-]+){tail}"
            )
        }
    }

    fn relative_expression(&self) -> String {
        let Self { network, absolute, noscheme, tail, .. } = self;
        format!("(?:{network}|{absolute}|{noscheme}|){tail}")
    }
}

pub(super) fn uri(
    standard: bool,
    repertoire: Repertoire,
    limits: &DfaLimits,
) -> Result<Pattern, PatternError> {
    let parts = Parts::new(standard, repertoire);
    whole(&parts.absolute_expression(standard), limits)
}

pub(super) fn reference(
    standard: bool,
    repertoire: Repertoire,
    limits: &DfaLimits,
) -> Result<Pattern, PatternError> {
    let parts = Parts::new(standard, repertoire);
    let absolute = parts.absolute_expression(standard);
    whole(&format!("{absolute}|{}", parts.relative_expression()), limits)
}

pub(super) fn template(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    // The apostrophe is RFC 6570's by erratum 6937.
    let literal = format!(r"[!#$&'-;=?-\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{PERCENT}");
    let character = format!(r"(?:[A-Za-z\d_]|{PERCENT})");
    let variable = format!(r"{character}(?:\.?{character})*(?::[1-9]\d{{0,3}}|\*)?");
    let expression = format!(r"\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}}");
    whole(&format!("(?:{literal}|{expression})*"), limits)
}
