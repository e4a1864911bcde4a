//! `hostname`, `ipv4`, `ipv6`, `email` and the internationalized two.

use super::{bounded, whole};
use crate::dfa::{DfaLimits, RawDfa, minimize};
use crate::pattern::{Pattern, PatternError};

/// One number of an IPv4 address: no leading zeros (RFC 3986, `dec-octet`).
const OCTET: &str = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";

/// A label of a host name (RFC 1123): 1 to 63 letters, digits and inner hyphens. Hyphens in third
/// and fourth place are reserved for A-labels and their like (RFC 5891, 4.2.3.1).
const LABEL: &str = r"(?:(?![A-Za-z\d-]{2}--)[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?)";

/// Most characters of a host name (RFC 1035 counts 255 octets with length bytes and root).
const HOSTNAME_CHARS: u64 = 253;

/// Most characters of a mailbox (RFC 5321, 4.5.3.1.3, a path of 256 less its brackets).
const MAILBOX_CHARS: u64 = 254;

/// Most octets of a local part (RFC 5321, 4.5.3.1.1).
const LOCAL_OCTETS: usize = 64;

/// A character of an unquoted local part (RFC 5322, `atext`).
const ATEXT: &str = r"A-Za-z\d!#$%&'*+/=?^_`{|}~-";

/// Letters of scripts whose labels need no context (RFC 5892) and no bidirectional rule (RFC
/// 5893), in normal form and in lower case.
const IDN_LETTERS: &str = concat!(
    "a-z",
    // Latin: ß to ÿ without the division sign, and Slovene, Czech, Polish, Turkish, …
    "\u{E0}-\u{F6}\u{F8}-\u{FF}āăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżž",
    // Greek without final sigma, Cyrillic.
    "\u{3AC}-\u{3AF}\u{3B1}-\u{3C1}\u{3C3}-\u{3CE}\u{430}-\u{45F}",
    // Devanagari letters, kana, Han, Hangul syllables.
    "\u{905}-\u{928}\u{3041}-\u{3096}\u{30A1}-\u{30FA}\u{4E00}-\u{9FA5}\u{AC00}-\u{D7A3}",
);

pub(super) fn ipv4(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(&ipv4_expression(), limits)
}

pub(super) fn ipv4_expression() -> String {
    format!(r"{OCTET}(?:\.{OCTET}){{3}}")
}

pub(super) fn ipv6(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(&ipv6_expression(), limits)
}

/// `IPv6address` of RFC 3986: `::` stands for at least one group, and for at most one run.
pub(super) fn ipv6_expression() -> String {
    let group = r"[\dA-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4_expression());
    let mut alternatives = vec![format!("(?:{group}:){{6}}{last}")];
    // `before` groups at most in front of `::`, exactly `after` and the last two behind it.
    for (before, after) in (0..=5).rev().enumerate() {
        let front = match before {
            0 => String::new(),
            n => format!("(?:(?:{group}:){{0,{}}}{group})?", n - 1),
        };
        alternatives.push(format!("{front}::(?:{group}:){{{after}}}{last}"));
    }
    alternatives.push(format!("(?:(?:{group}:){{0,5}}{group})?::{group}"));
    alternatives.push(format!("(?:(?:{group}:){{0,6}}{group})?::"));
    format!("(?:{})", alternatives.join("|"))
}

pub(super) fn hostname(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    bounded(&hostname_expression(), HOSTNAME_CHARS, limits)
}

/// Host names, and what only looks like an A-label.
pub(super) fn outer_hostname(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let label = r"[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?";
    bounded(&format!(r"{label}(?:\.{label})*"), HOSTNAME_CHARS, limits)
}

/// Whatever has no ASCII character that no host name has.
pub(super) fn outer_idn_hostname(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(r"[A-Za-z\d.\u{80}-\u{10FFFF}-]+", limits)
}

/// Whatever has an `@`.
pub(super) fn outer_email(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole("[^]*@[^]*", limits)
}

fn hostname_expression() -> String {
    format!(r"{LABEL}(?:\.{LABEL})*")
}

/// Host names that are resolved in public: two labels at least, the last one a top-level domain
/// that begins and ends with a letter and is not reserved (RFC 6761, RFC 6762, RFC 7686).
pub(super) fn public_hostname_expression() -> String {
    let reserved = "arpa|example|internal|invalid|local|localhost|onion|test";
    let reserved: String = reserved
        .chars()
        .map(|c| match c {
            'a'..='z' => format!("[{c}{}]", c.to_ascii_uppercase()),
            c => c.to_string(),
        })
        .collect();
    format!(
        r"(?:{LABEL}\.)+(?!(?:{reserved})(?![A-Za-z\d-]))(?![A-Za-z\d-]{{2}}--)[A-Za-z](?:[A-Za-z\d-]{{0,61}}[A-Za-z])"
    )
}

pub(super) fn email(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let unquoted = format!(r"(?=[^@]{{1,{LOCAL_OCTETS}}}@)[{ATEXT}]+(?:\.[{ATEXT}]+)*");
    if !standard {
        return bounded(
            &format!("{unquoted}@{}", public_hostname_expression()),
            MAILBOX_CHARS,
            limits,
        );
    }
    // A quoted string of printable ASCII; its quotes count.
    let quoted = format!(r#""[ !#-\[\]-~]{{1,{}}}""#, LOCAL_OCTETS - 2);
    let literal = format!(r"\[(?:{}|IPv6:{})\]", ipv4_expression(), ipv6_expression());
    bounded(
        &format!("(?:{unquoted}|{quoted})@(?:{}|{literal})", hostname_expression()),
        MAILBOX_CHARS,
        limits,
    )
}

/// Names whose every label is ASCII, or short enough to fit when it is encoded.
///
/// A Punycode character takes at most five letters after the first, so ten of them and the prefix
/// fit into a label, and four such labels into a name.
fn idn_hostname_expression() -> String {
    let ascii = r"(?:(?![a-z\d-]{2}--)[a-z\d](?:[a-z\d-]{0,54}[a-z\d])?)";
    let letters = IDN_LETTERS;
    let unicode = format!(r"(?:(?!.{{2}}--)[{letters}](?:[{letters}\d-]{{0,8}}[{letters}\d])?)");
    let label = format!("(?:{ascii}|{unicode})");
    format!(r"{label}(?:\.{label}){{0,3}}")
}

pub(super) fn idn_hostname(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let names = whole(&idn_hostname_expression(), limits)?;
    let ascii = hostname(limits)?;
    // The bound of the one holds for the other, so the union may share it.
    Ok(Pattern { dfa: names.dfa.union(&ascii.dfa, limits)?, ..ascii })
}

pub(super) fn idn_email(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let atext = if standard {
        format!(r"[\u{{80}}-\u{{10FFFF}}{ATEXT}]")
    } else {
        // Validators refuse what is unassigned, private or unsafe to show.
        format!("[{IDN_LETTERS}{ATEXT}]")
    };
    let unquoted = format!(r"{atext}+(?:\.{atext}+)*");
    let domain = if standard {
        format!("(?:{}|{})", hostname_expression(), idn_hostname_expression())
    } else {
        public_hostname_expression()
    };
    let unquoted = whole(&format!("{unquoted}@{domain}"), limits)?.dfa;
    let mut dfa = unquoted.intersect(&local_part_octets(limits)?, limits)?;
    if standard {
        let quoted = r#""[ !#-\[\]-~\u{80}-\u{10FFFF}]{1,15}""#;
        dfa = dfa.union(&whole(&format!("{quoted}@{domain}"), limits)?.dfa, limits)?;
    }
    let ascii = email(standard, limits)?;
    Ok(Pattern { dfa: dfa.union(&ascii.dfa, limits)?, ..ascii })
}

/// At most 64 octets before the first `@`, whatever follows it.
fn local_part_octets(limits: &DfaLimits) -> Result<crate::dfa::Dfa, PatternError> {
    let mut raw = RawDfa::new();
    let after = LOCAL_OCTETS as u32 + 2;
    for octets in 0..=LOCAL_OCTETS as u32 {
        raw.push_state(false, limits)?;
        let next = if octets == LOCAL_OCTETS as u32 { 0 } else { octets + 2 };
        raw.push_transition(0, b'@' - 1, next);
        raw.push_transition(b'@', b'@', after);
        raw.push_transition(b'@' + 1, 0xFF, next);
    }
    raw.push_state(true, limits)?;
    raw.push_transition(0, 0xFF, after);
    Ok(minimize(&raw, 1, limits)?)
}
