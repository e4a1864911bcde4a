//! What bytes are that begin inside a string, whatever the string is part of.

use crate::options::Escapes;
use crate::text::{short_escape, unescape};

use super::step::{HIGH_SURROGATES, LOW_SURROGATES, completions, needs_unit, pair, with_digit};

/// Some bytes, read from inside a JSON string between two characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringReading {
    /// The content, escapes resolved; its last character may be unfinished.
    pub content: Vec<u8>,
    /// How the bytes end.
    pub end: StringEnd,
}

/// How bytes that were read from inside a JSON string end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringEnd {
    /// Inside the string.
    Inside,
    /// After the `\` that begins an escape sequence.
    Backslash,
    /// Further inside an escape sequence.
    Escape,
    /// After the string: so many bytes were read, the closing quote included.
    Closed(usize),
}

impl StringReading {
    /// Reads `bytes` as the inside of a JSON string; `None` if no string goes on like this.
    ///
    /// What follows the closing quote is not looked at.
    pub fn new(bytes: &[u8], escapes: Escapes) -> Option<Self> {
        let mut content = Vec::with_capacity(bytes.len());
        let mut at = 0;
        let mut end = StringEnd::Inside;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => {
                    end = StringEnd::Closed(at);
                    break;
                }
                b'\\' => {
                    // An escape sequence stands between two characters.
                    std::str::from_utf8(&content).ok()?;
                    match read_escape(&bytes[at..], escapes)? {
                        Escaped::Character(character, len) => {
                            content.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                            at += len;
                        }
                        Escaped::Unfinished => {
                            let begun = at == bytes.len();
                            end = if begun { StringEnd::Backslash } else { StringEnd::Escape };
                            break;
                        }
                    }
                }
                0..0x20 => return None,
                _ => content.push(byte),
            }
        }
        match std::str::from_utf8(&content) {
            Ok(_) => {}
            Err(error) if end == StringEnd::Inside && error.error_len().is_none() => {}
            Err(_) => return None,
        }
        Some(Self { content, end })
    }
}

enum Escaped {
    /// A character, and the bytes after the `\` that spell it.
    Character(char, usize),
    Unfinished,
}

/// Reads an escape sequence after its `\`; `None` if there is none like this.
fn read_escape(bytes: &[u8], escapes: Escapes) -> Option<Escaped> {
    let any = escapes == Escapes::Any;
    let Some(&letter) = bytes.first() else { return Some(Escaped::Unfinished) };
    if letter != b'u' {
        let character = unescape(letter)?;
        let allowed = any || short_escape(character).is_some();
        return allowed.then_some(Escaped::Character(char::from(character), 1));
    }
    let (value, digits) = unit(&bytes[1..])?;
    if digits < 4 {
        let (first, last) = completions(value, digits);
        let live = if any {
            // Only low surrogates cannot come first.
            !(LOW_SURROGATES.contains(&first) && LOW_SURROGATES.contains(&last))
        } else {
            (first..=last.min(0x1F)).any(|unit| needs_unit(char::from(unit as u8)))
        };
        return live.then_some(Escaped::Unfinished);
    }
    if !HIGH_SURROGATES.contains(&value) {
        let character = char::from_u32(u32::from(value))?;
        return (any || needs_unit(character)).then_some(Escaped::Character(character, 5));
    }
    if !any {
        return None;
    }
    match bytes.get(5..7) {
        Some(br"\u") => {}
        Some(_) => return None,
        None => {
            let unfinished = bytes.get(5).is_none_or(|&byte| byte == b'\\');
            return unfinished.then_some(Escaped::Unfinished);
        }
    }
    let (low, digits) = unit(&bytes[7..])?;
    let (first, last) = if digits < 4 { completions(low, digits) } else { (low, low) };
    if first.max(0xDC00) > last.min(0xDFFF) {
        return None;
    }
    Some(if digits < 4 { Escaped::Unfinished } else { Escaped::Character(pair(value, low), 11) })
}

/// Up to four hexadecimal digits; `None` if something else is among them.
fn unit(bytes: &[u8]) -> Option<(u16, u8)> {
    let mut value = 0;
    let mut digits = 0;
    for &byte in bytes.iter().take(4) {
        value = with_digit(value, byte)?;
        digits += 1;
    }
    Some((value, digits))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{CompileOptions, CompiledSchema, DEAD, SchemaAutomaton};

    /// Every text of up to four pieces, against the automaton of all strings.
    #[test]
    fn readings_agree_with_the_automaton_of_all_strings() {
        let pieces: [&[u8]; 22] = [
            b"a",
            b"\"",
            b"\\",
            b"\\n",
            b"\\/",
            b"\\u",
            b"00",
            b"0",
            b"1f",
            b"D83D",
            b"DE00",
            b"dc",
            b"d",
            b"\xC3",
            b"\xA9",
            b"\xF0\x9F",
            b"\x98\x80",
            b"\n",
            b"\\u0041",
            b"\\\"",
            b"\xED\xA0",
            b"9",
        ];
        for escapes in [Escapes::Needed, Escapes::Any] {
            let options = CompileOptions { escapes, ..CompileOptions::default() };
            let schema =
                Arc::new(CompiledSchema::compile(r#"{"type":"string"}"#, &options).unwrap());
            let mut automaton = SchemaAutomaton::new(&schema);
            let start = automaton.start();
            let inside = automaton.step(start, b'"');
            for number in 0..pieces.len().pow(4) {
                let mut rest = number;
                let mut bytes = Vec::new();
                for _ in 0..4 {
                    bytes.extend(pieces[rest % pieces.len()]);
                    rest /= pieces.len();
                }
                let mut state = inside;
                let mut read = 0;
                let mut closed = false;
                for &byte in &bytes {
                    state = automaton.step(state, byte);
                    read += 1;
                    closed = automaton.is_accepting(state);
                    if closed || state == DEAD {
                        break;
                    }
                }
                let reading = StringReading::new(&bytes, escapes);
                assert_eq!(reading.is_some(), state != DEAD, "{:?}", bytes.escape_ascii());
                let Some(reading) = reading else { continue };
                match reading.end {
                    StringEnd::Closed(len) => assert!(closed && len == read),
                    _ => assert!(!closed),
                }
                let inside_again = reading.end == StringEnd::Inside
                    && std::str::from_utf8(&reading.content).is_ok();
                assert_eq!(state == inside, inside_again, "{:?}", bytes.escape_ascii());
                if let StringEnd::Closed(len) = reading.end {
                    let text = [b"\"", &bytes[..len]].concat();
                    let expected: String = serde_json::from_slice(&text).unwrap();
                    assert_eq!(reading.content, expected.as_bytes());
                }
            }
        }
    }
}
