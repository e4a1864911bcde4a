//! The formats of JSON Schema as automata.
//!
//! A format that is a regular language is enforced exactly. One that is not, or whose exact
//! automaton would be out of proportion, is enforced as a *subset*: every accepted text is valid,
//! and [`Format::subset`] says what is left out. Other names than those of [`Format::from_name`]
//! are annotations. Whoever wants a text that is *not* of such a format is given one outside of a
//! language that has all its texts, [`Format::outer`]: what lies between the two is never written.
//!
//! The expressions and constructions are here, and compiled for tests only: the automata they make
//! are read from a table (`table.rs`).

#[cfg(test)]
mod host;
#[cfg(test)]
mod resource;
#[cfg(test)]
mod syntax;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod time;

#[cfg(test)]
use crate::dfa::{Dfa, DfaLimits};
#[cfg(test)]
use crate::pattern::{Pattern, PatternError, compile_dfa};

/// A format that can be asserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the format of its name")]
pub(crate) enum Format {
    Date,
    DateTime,
    Duration,
    Email,
    Hostname,
    IdnEmail,
    IdnHostname,
    Ipv4,
    Ipv6,
    Iri,
    IriReference,
    JsonPointer,
    Regex,
    RelativeJsonPointer,
    Time,
    Uri,
    UriReference,
    UriTemplate,
    Uuid,
}

/// Whose notion of a format is enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// That of the RFCs JSON Schema refers to.
    #[default]
    Standard,
    /// A subset that the types of common languages take as well: Pydantic's, the Python standard
    /// library's, `chrono`'s and `url`'s.
    Interoperable,
}

impl Format {
    /// Every format, by name.
    pub(crate) const ALL: [Self; 19] = [
        Self::Date,
        Self::DateTime,
        Self::Duration,
        Self::Email,
        Self::Hostname,
        Self::IdnEmail,
        Self::IdnHostname,
        Self::Ipv4,
        Self::Ipv6,
        Self::Iri,
        Self::IriReference,
        Self::JsonPointer,
        Self::Regex,
        Self::RelativeJsonPointer,
        Self::Time,
        Self::Uri,
        Self::UriReference,
        Self::UriTemplate,
        Self::Uuid,
    ];

    /// The format of a name; `None` if the name is an annotation.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The value of the keyword `format`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Duration => "duration",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::IdnEmail => "idn-email",
            Self::IdnHostname => "idn-hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Iri => "iri",
            Self::IriReference => "iri-reference",
            Self::JsonPointer => "json-pointer",
            Self::Regex => "regex",
            Self::RelativeJsonPointer => "relative-json-pointer",
            Self::Time => "time",
            Self::Uri => "uri",
            Self::UriReference => "uri-reference",
            Self::UriTemplate => "uri-template",
            Self::Uuid => "uuid",
        }
    }

    /// What the enforced language leaves out of the format, if anything.
    pub(crate) fn subset(self, profile: Profile) -> Option<&'static str> {
        if profile == Profile::Interoperable {
            let left_out = match self {
                Self::Date => Some("the year 0000, which date types do not have"),
                Self::DateTime => Some(
                    "the year 0000, leap seconds, more than six digits of a fraction, and lower-case `t` and `z`",
                ),
                Self::Time => {
                    Some("leap seconds, more than six digits of a fraction, and a lower-case `z`")
                }
                Self::Duration => Some("more than four digits in one component"),
                Self::IdnEmail => Some(
                    "what `email` leaves out, and the characters that `idn-hostname` leaves out",
                ),
                Self::Email => Some(
                    "quoted local parts, address literals, domains of one label or of a reserved top level, and labels with `--` in third place",
                ),
                Self::Uri | Self::UriReference | Self::Iri | Self::IriReference => Some(
                    "all but http, https, ftp, ws and wss with a host name, and urn, mailto and tel",
                ),
                _ => None,
            };
            if left_out.is_some() {
                return left_out;
            }
        }
        match self {
            Self::DateTime | Self::Time => {
                Some("leap seconds at offsets that are no whole quarters of an hour")
            }
            Self::Hostname => Some("A-labels (`xn--`), whose validity is no regular language"),
            Self::Email => Some("quoted pairs in local parts, and A-labels (`xn--`) in domains"),
            Self::IdnHostname => Some(
                "A-labels, scripts with contextual or bidirectional rules, combining marks, more than four labels, and labels of more than ten characters that are not ASCII",
            ),
            Self::IdnEmail => Some(
                "quoted pairs, quoted parts beyond 15 characters that are not ASCII, and what `idn-hostname` leaves out",
            ),
            Self::Regex => Some(
                "groups nested deeper than two levels, lookbehind, backreferences, named groups, properties, class ranges other than of letters or digits, and counts from 30 on with the same tens twice",
            ),
            _ => None,
        }
    }

    /// What [`language`](Self::language) reads from a table.
    ///
    /// # Errors
    /// [`PatternError::Limit`] if `limits` are below what the format needs; the defaults are not.
    #[cfg(test)]
    pub(crate) fn build(
        self,
        profile: Profile,
        limits: &DfaLimits,
    ) -> Result<Pattern, PatternError> {
        let standard = profile == Profile::Standard;
        match self {
            Self::Date => time::date(standard, limits),
            Self::DateTime => time::date_time(standard, limits),
            Self::Time => time::time(standard, limits),
            Self::Duration => time::duration(standard, limits),
            Self::Email => host::email(standard, limits),
            Self::Hostname => host::hostname(limits),
            Self::IdnEmail => host::idn_email(standard, limits),
            Self::IdnHostname => host::idn_hostname(limits),
            Self::Ipv4 => host::ipv4(limits),
            Self::Ipv6 => host::ipv6(limits),
            Self::Uri => resource::uri(standard, resource::Repertoire::Ascii, limits),
            Self::UriReference => {
                resource::reference(standard, resource::Repertoire::Ascii, limits)
            }
            Self::Iri => resource::uri(standard, resource::Repertoire::Unicode, limits),
            Self::IriReference => {
                resource::reference(standard, resource::Repertoire::Unicode, limits)
            }
            Self::UriTemplate => resource::template(limits),
            Self::Uuid => syntax::uuid(limits),
            Self::JsonPointer => syntax::json_pointer(limits),
            Self::RelativeJsonPointer => syntax::relative_json_pointer(limits),
            Self::Regex => syntax::regex(limits),
        }
    }

    /// What [`outer`](Self::outer) reads from a table: all texts of the format and no more than an
    /// automaton of a reasonable size can hardly tell from them.
    ///
    /// # Errors
    /// [`PatternError::Limit`], see [`build`](Self::build).
    #[cfg(test)]
    pub(crate) fn build_outer(self, limits: &DfaLimits) -> Result<Pattern, PatternError> {
        match self {
            Self::DateTime => time::outer_date_time(limits),
            Self::Time => time::outer_time(limits),
            Self::Email | Self::IdnEmail => host::outer_email(limits),
            Self::Hostname => host::outer_hostname(limits),
            Self::IdnHostname => host::outer_idn_hostname(limits),
            Self::Regex => syntax::outer_regex(limits),
            _ => self.build(Profile::Standard, limits),
        }
    }

    #[cfg(test)]
    /// The texts of the format as one automaton, bounds on their length included.
    ///
    /// # Errors
    /// [`PatternError::Limit`], see [`language`](Self::language).
    ///
    /// # Complexity
    /// For `hostname` and the e-mail formats the states are multiplied by the length bound.
    pub(crate) fn dfa(self, profile: Profile) -> Result<Dfa, PatternError> {
        let limits = DfaLimits::default();
        Ok(self.language(profile).into_dfa(&limits)?)
    }
}

/// The strings that an expression matches as a whole.
#[cfg(test)]
fn whole(expression: &str, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    Ok(compile_dfa(&format!("^(?:{expression})$"), limits)?.into())
}

/// At most `max_chars` code points of what the expression matches as a whole.
#[cfg(test)]
fn bounded(expression: &str, max_chars: u64, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    Ok(Pattern { max_chars: Some(max_chars), ..whole(expression, limits)? })
}
