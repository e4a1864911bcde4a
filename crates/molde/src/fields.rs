//! An incremental reader of the JSON text that is being written: which member or element has just
//! been completed, and which one is being written.
//!
//! It checks nothing (the constraint has done that): on text that is no JSON it reports something
//! arbitrary, but never panics.

use std::ops::Range;

/// One open object or array.
#[derive(Debug)]
enum Frame {
    /// An object, with the name of the member that is being written, if one is.
    Object { start: usize, key: Option<String> },
    /// An array, with the number of completed elements and whether another one has begun.
    Array { start: usize, completed: usize, in_element: bool },
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Lexeme {
    /// Punctuation or white space.
    Between,
    /// A string, with whether it is a member's name and whether the last byte was a backslash.
    String { start: usize, is_key: bool, escaped: bool },
    /// A number, `true`, `false` or `null`.
    Bare { start: usize },
}

/// A completed member of an object or element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedField {
    /// RFC 6901 JSON Pointer to the value.
    pub pointer: String,
    /// The bytes of the value in the text.
    pub bytes: Range<usize>,
}

/// Reads a JSON text piece by piece.
///
/// Linear in the text, plus the length of the pointer for each completed field.
#[derive(Debug)]
pub struct FieldScanner {
    text: Vec<u8>,
    stack: Vec<Frame>,
    lexeme: Lexeme,
}

impl Default for FieldScanner {
    fn default() -> Self {
        Self::new()
    }
}

impl FieldScanner {
    /// A scanner before the first byte.
    pub fn new() -> Self {
        Self { text: Vec::new(), stack: Vec::new(), lexeme: Lexeme::Between }
    }

    /// All bytes read so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Reads `bytes`, and appends the fields that they complete, inner ones first.
    pub fn push(&mut self, bytes: &[u8], completed: &mut Vec<CompletedField>) {
        for &byte in bytes {
            self.push_byte(byte, completed);
            self.text.push(byte);
        }
    }

    /// JSON Pointer to the innermost value that has been begun and not completed: inside a
    /// member's value the member, between two members their object.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.stack {
            match frame {
                Frame::Object { key: Some(key), .. } => push_segment(&mut pointer, key),
                Frame::Array { completed, in_element: true, .. } => {
                    push_segment(&mut pointer, &completed.to_string());
                }
                Frame::Object { key: None, .. } | Frame::Array { in_element: false, .. } => break,
            }
        }
        pointer
    }

    fn push_byte(&mut self, byte: u8, completed: &mut Vec<CompletedField>) {
        let offset = self.text.len();
        match &mut self.lexeme {
            Lexeme::String { escaped, .. } if *escaped => *escaped = false,
            Lexeme::String { escaped, .. } if byte == b'\\' => *escaped = true,
            Lexeme::String { start, is_key, .. } => {
                if byte == b'"' {
                    let (start, is_key) = (*start, *is_key);
                    self.lexeme = Lexeme::Between;
                    if is_key {
                        self.set_key(start);
                    } else {
                        self.complete(start..offset + 1, completed);
                    }
                }
            }
            Lexeme::Bare { start } => {
                if matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') {
                    let start = *start;
                    self.lexeme = Lexeme::Between;
                    self.complete(start..offset, completed);
                    self.push_punctuation(byte, offset, completed);
                }
            }
            Lexeme::Between => self.push_punctuation(byte, offset, completed),
        }
    }

    fn push_punctuation(&mut self, byte: u8, offset: usize, completed: &mut Vec<CompletedField>) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b':' | b',' => {}
            b'{' => {
                self.begin_value();
                self.stack.push(Frame::Object { start: offset, key: None });
            }
            b'[' => {
                self.begin_value();
                self.stack.push(Frame::Array { start: offset, completed: 0, in_element: false });
            }
            b'}' | b']' => {
                if let Some(Frame::Object { start, .. } | Frame::Array { start, .. }) =
                    self.stack.pop()
                {
                    self.complete(start..offset + 1, completed);
                }
            }
            b'"' => {
                let is_key = matches!(self.stack.last(), Some(Frame::Object { key: None, .. }));
                if !is_key {
                    self.begin_value();
                }
                self.lexeme = Lexeme::String { start: offset, is_key, escaped: false };
            }
            _ => {
                self.begin_value();
                self.lexeme = Lexeme::Bare { start: offset };
            }
        }
    }

    fn begin_value(&mut self) {
        if let Some(Frame::Array { in_element, .. }) = self.stack.last_mut() {
            *in_element = true;
        }
    }

    /// Takes the string that began at `start`, whose closing quote is the current byte, as the
    /// name of a member.
    fn set_key(&mut self, start: usize) {
        let mut quoted = self.text[start..].to_vec();
        quoted.push(b'"');
        let name = serde_json::from_slice(&quoted)
            .unwrap_or_else(|_| String::from_utf8_lossy(&quoted).into_owned());
        if let Some(Frame::Object { key, .. }) = self.stack.last_mut() {
            *key = Some(name);
        }
    }

    fn complete(&mut self, bytes: Range<usize>, completed: &mut Vec<CompletedField>) {
        if self.stack.is_empty() {
            return;
        }
        completed.push(CompletedField { pointer: self.pointer(), bytes });
        match self.stack.last_mut() {
            Some(Frame::Object { key, .. }) => *key = None,
            Some(Frame::Array { completed, in_element, .. }) => {
                *completed += 1;
                *in_element = false;
            }
            None => {}
        }
    }
}

/// Appends `/segment` with the escapes of RFC 6901.
pub(crate) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn scan(text: &str) -> Vec<(String, String)> {
        let mut scanner = FieldScanner::new();
        let mut fields = Vec::new();
        for byte in text.as_bytes() {
            scanner.push(&[*byte], &mut fields);
        }
        fields.into_iter().map(|field| (field.pointer, text[field.bytes].to_owned())).collect()
    }

    /// Oracle: every member and element of the parsed value, in the order in which they end.
    fn walk(value: &Value, pointer: &str, into: &mut Vec<String>) {
        let mut visit = |segment: &str, value: &Value| {
            let mut inner = pointer.to_owned();
            push_segment(&mut inner, segment);
            walk(value, &inner, into);
            into.push(inner);
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(key, value)| visit(key, value)),
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| visit(&index.to_string(), value));
            }
            _ => {}
        }
    }

    #[test]
    fn every_member_and_element_is_reported_once_with_its_own_text() {
        let texts = [
            r#"{"a": 1, "b": [true, null, -2.5e3], "c": {"d": "x"}}"#,
            r#"[[], {}, [[1, 2], ["}", "]", ",", "\\", "\"", "\\\""]]]"#,
            r#"{"a/b": {"m~n": 0}, "": "", "\u0041\"": [{"k": [1]}, 2]}"#,
            "{\n  \"a\" : [ 1 , 2 ] ,\r\n\t\"b\" : false\n}",
            "12",
            r#""text""#,
        ];
        for text in texts {
            let value: Value = serde_json::from_str(text).expect("the sample is JSON");
            let mut expected = Vec::new();
            walk(&value, "", &mut expected);
            let fields = scan(text);
            let pointers: Vec<&String> = fields.iter().map(|(pointer, _)| pointer).collect();
            assert_eq!(pointers, expected.iter().collect::<Vec<_>>(), "{text}");
            for (pointer, raw) in &fields {
                let read: Value = serde_json::from_str(raw).expect("a field is JSON");
                assert_eq!(Some(&read), value.pointer(pointer), "{pointer} in {text}");
            }
        }
    }

    #[test]
    fn the_pointer_names_what_is_being_written() {
        let cases = [
            ("", ""),
            ("{", ""),
            ("{\"a", ""),
            ("{\"a\"", "/a"),
            ("{\"a\": ", "/a"),
            ("{\"a\": 1", "/a"),
            ("{\"a\": 1, ", ""),
            ("{\"a\": [", "/a"),
            ("{\"a\": [1", "/a/0"),
            ("{\"a\": [1, ", "/a"),
            ("{\"a\": [1, {\"b\": \"x", "/a/1/b"),
            ("{\"a\": [1, {\"b\": \"x\"", "/a/1"),
        ];
        for (text, expected) in cases {
            let mut scanner = FieldScanner::new();
            scanner.push(text.as_bytes(), &mut Vec::new());
            assert_eq!(scanner.pointer(), expected, "after {text:?}");
        }
    }

    #[test]
    fn text_that_is_no_json_does_not_panic() {
        for text in
            ["}}}]]]", "{]}[", "\"\\", "{{{{", "[,,,]", "{\"\\u12", "abc\"{", "{\"\\x\": 1}"]
        {
            scan(text);
        }
    }
}
