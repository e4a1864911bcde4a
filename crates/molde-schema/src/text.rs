//! Writing JSON strings.

/// The shortest JSON string with the given content, quotes included.
pub(crate) fn quoted(content: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(content.len() + 2);
    text.push(b'"');
    escape_into(content.as_bytes(), &mut text);
    text.push(b'"');
    text
}

/// Appends decoded content as it stands between the quotes: escaped only where JSON demands it.
pub(crate) fn escape_into(content: &[u8], text: &mut Vec<u8>) {
    for &byte in content {
        match short_escape(byte) {
            Some(letter) => text.extend([b'\\', letter]),
            None if byte < 0x20 => text.extend(format!("\\u{byte:04x}").into_bytes()),
            None => text.push(byte),
        }
    }
}

/// The letter of the two-byte escape that a byte needs, if it needs one and has one.
pub(crate) fn short_escape(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return None,
    })
}

/// The character of a two-byte escape, by its letter; `None` if there is no such escape.
pub(crate) fn unescape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_what_json_demands_and_nothing_else() {
        let text = quoted("a\"b\\c/\n\u{1}é\u{7f}");
        assert_eq!(text, "\"a\\\"b\\\\c/\\n\\u0001é\u{7f}\"".as_bytes());
    }

    #[test]
    fn short_escapes_and_unescapes_agree() {
        for byte in 0..=255 {
            if let Some(letter) = short_escape(byte) {
                assert_eq!(unescape(letter), Some(byte));
            }
        }
    }
}
