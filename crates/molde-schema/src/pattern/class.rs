//! The character sets of ECMA-262: class escapes and Unicode properties.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// A set from inclusive ranges.
pub(super) fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}

/// All characters but those of `class`.
pub(super) fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// `.` without the `s` flag: all but the line terminators.
pub(super) fn dot() -> ClassUnicode {
    negated(set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]))
}

/// `\d`
pub(super) fn digit() -> ClassUnicode {
    set(&[('0', '9')])
}

/// `\w`
pub(super) fn word() -> ClassUnicode {
    set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// `\s`: ECMA-262 `WhiteSpace` (tab, vertical tab, form feed, U+FEFF, category Zs) and
/// `LineTerminator`.
pub(super) fn space() -> ClassUnicode {
    set(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{A0}', '\u{A0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200A}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202F}', '\u{202F}'),
        ('\u{205F}', '\u{205F}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{FEFF}', '\u{FEFF}'),
    ])
}

/// The set of `\p{name}` or `\p{name=value}`, without the braces; `None` if it is not known.
///
/// Names and values are those of the Unicode tables of `regex-syntax`, which folds their case and
/// ignores underscores; a script may stand without `Script=`.
pub(super) fn property(text: &str) -> Option<ClassUnicode> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (Some(name), value),
        None => (None, text),
    };
    let name = match name {
        None => None,
        Some("General_Category" | "gc") => Some("gc"),
        Some("Script" | "sc") => Some("sc"),
        Some("Script_Extensions" | "scx") => Some("scx"),
        Some(_) => return None,
    };
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    // Surrogates are no characters of any valid text, and in no table.
    if matches!(name, None | Some("gc")) && matches!(value, "Cs" | "Surrogate") {
        return Some(ClassUnicode::empty());
    }
    let query = match name {
        Some(name) => format!(r"\p{{{name}={value}}}"),
        None => format!(r"\p{{{value}}}"),
    };
    // Only a property name that was just checked goes through the other parser: it owns the tables.
    match regex_syntax::parse(&query).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).ok()?.chars();
            let c = chars.next()?;
            Some(set(&[(c, c)]))
        }
        _ => None,
    }
}
