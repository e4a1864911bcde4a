//! Where in a container a text ends.

use crate::document::{Document, Value};
use crate::options::Limits;

/// The beginning of a value's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a [u8],
    /// Whether the value has ended: a number has no closing byte of its own.
    pub(super) is_ended: bool,
}

impl Part<'_> {
    /// The offset at which a text that is wrong only at its end is wrong.
    pub(super) fn last(self) -> usize {
        if self.is_ended { self.text.len() } else { self.text.len().saturating_sub(1) }
    }
}

/// The child of a container in which the container's text ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child<'a> {
    pub(super) step: Step,
    pub(super) part: Part<'a>,
    /// Whether the last byte is the one that closes it, or ends it.
    pub(super) is_closed: bool,
}

/// From a container to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Item(u64),
}

/// What a container's text has, up to where it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents<'a> {
    /// Names of the members that have begun.
    pub(super) names: Vec<String>,
    /// The texts of the members that have ended, but for the last child.
    pub(super) values: Vec<(String, &'a [u8])>,
    /// The child to which the last byte belongs, if it does not stand between children or in a key.
    /// The byte that ends a number belongs to it.
    pub(super) child: Option<Child<'a>>,
}

impl<'a> Contents<'a> {
    /// Reads the text of a container that is well formed but perhaps for its last byte; nothing is
    /// found in the text of a scalar.
    pub(super) fn of(part: Part<'a>) -> Self {
        let text = part.text;
        let mut contents = Self::default();
        let is_object = match text.first() {
            Some(b'{') => true,
            Some(b'[') => false,
            _ => return contents,
        };
        let mut at = 1;
        let mut index = 0;
        loop {
            at = skip_whitespace(text, at);
            let step = if is_object {
                if text.get(at) != Some(&b'"') {
                    return contents;
                }
                let Some(end) = end_of_value(text, at) else { return contents };
                let Some(name) = decode(&text[at..end]) else { return contents };
                contents.names.push(name.clone());
                at = skip_whitespace(text, end);
                if text.get(at) != Some(&b':') {
                    return contents;
                }
                at = skip_whitespace(text, at + 1);
                Step::Member(name)
            } else {
                if index == 0 && text.get(at) == Some(&b']') {
                    return contents;
                }
                Step::Item(index)
            };
            let end = end_of_value(text, at);
            let is_number = matches!(text.get(at), Some(b'-' | b'0'..=b'9'));
            // What cannot begin a value is where the text is wrong.
            let end = end.filter(|end| *end > at);
            let is_ended = is_number && end.is_some_and(|end| end + 1 == text.len());
            match end {
                Some(end) if !is_ended && end < text.len() => {
                    if let Step::Member(name) = step {
                        contents.values.push((name, &text[at..end]));
                    }
                    at = end;
                }
                _ => {
                    let part = Part { text: &text[at..end.unwrap_or(text.len())], is_ended };
                    let is_closed = end.is_some();
                    contents.child = Some(Child { step, part, is_closed });
                    return contents;
                }
            }
            at = skip_whitespace(text, at);
            if text.get(at) != Some(&b',') {
                return contents;
            }
            at += 1;
            index += 1;
        }
    }
}

impl Contents<'_> {
    /// Whether a name of the object in which a text ends comes twice in it. The text may end in the
    /// second one.
    pub(super) fn repeats_name(text: &[u8]) -> bool {
        let mut text = text;
        loop {
            let contents = Contents::of(Part { text, is_ended: false });
            match contents.child {
                Some(child) if matches!(child.part.text, [b'{' | b'[', ..]) && !child.is_closed => {
                    text = child.part.text;
                }
                _ => {
                    let names = &contents.names;
                    return names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
                }
            }
        }
    }
}

fn skip_whitespace(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// Where the value that begins at `from` ends; `None` if the text ends before it is certain.
fn end_of_value(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let run = |is_inside: fn(&u8) -> bool| {
        let len = rest.iter().take_while(|byte| is_inside(byte)).count();
        (len < rest.len()).then_some(from + len)
    };
    match rest.first()? {
        b'-' | b'0'..=b'9' => {
            run(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
        }
        b'"' | b'{' | b'[' => {
            let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
            for (at, byte) in rest.iter().enumerate() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    _ if in_string => {}
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && !in_string {
                    return Some(from + at + 1);
                }
            }
            None
        }
        _ => run(u8::is_ascii_alphabetic),
    }
}

/// The content of a JSON string, quotes included.
fn decode(text: &[u8]) -> Option<String> {
    let document = Document::parse(std::str::from_utf8(text).ok()?, &Limits::default()).ok()?;
    match document.get(document.root()) {
        Value::String(content) => Some(content.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_in(text: &str) -> Option<(Step, &str, bool)> {
        let contents = Contents::of(Part { text: text.as_bytes(), is_ended: false });
        contents.child.map(|child| {
            let text = std::str::from_utf8(child.part.text).unwrap();
            assert!(child.is_closed || !child.part.is_ended);
            (child.step, text, child.is_closed)
        })
    }

    fn member(name: &str) -> Step {
        Step::Member(name.to_owned())
    }

    #[test]
    fn the_child_in_which_a_text_ends_is_found() {
        for (text, expected) in [
            (r#"{"a": "#, Some((member("a"), "", false))),
            (r#"{"a": 5"#, Some((member("a"), "5", false))),
            (r#"{"a": 5}"#, Some((member("a"), "5", true))),
            (r#"{"a": 5, "#, None),
            (r#"{"a": 5, "b\"\u0041":tr"#, Some((member("b\"A"), "tr", false))),
            (
                r#"{"a": {"x": [1, "}"], "y": "#,
                Some((member("a"), r#"{"x": [1, "}"], "y": "#, false)),
            ),
            (r#"{"a": {"x": 1}"#, Some((member("a"), r#"{"x": 1}"#, true))),
            (r#"{"a": "x""#, Some((member("a"), r#""x""#, true))),
            (r#"{"a": "x","#, None),
            (r#"{"a": {"x": 1}, "b": ?"#, Some((member("b"), "?", false))),
            (r#"{"a"#, None),
            (r#"{"a""#, None),
            (r#"{"a":}"#, Some((member("a"), "}", false))),
            ("[", Some((Step::Item(0), "", false))),
            ("[]", None),
            ("[1, [2, 3], ", Some((Step::Item(2), "", false))),
            ("[1, -2.5e", Some((Step::Item(1), "-2.5e", false))),
            ("[1, -2.5]", Some((Step::Item(1), "-2.5", true))),
            ("[true]", None),
            ("5", None),
        ] {
            assert_eq!(ends_in(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_those_of_all_members_that_have_begun() {
        let text = br#"{"a": 1, "b": {"c": 2}, "\u00e9": [], "d": "#;
        let contents = Contents::of(Part { text, is_ended: false });
        assert_eq!(contents.names, ["a", "b", "é", "d"]);
    }
}
