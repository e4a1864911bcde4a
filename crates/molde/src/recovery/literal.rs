//! Literals of Python and JSON, read into JSON text.

/// Levels of nesting that are read.
const LEVELS: usize = 64;

/// The JSON text of a Python literal, as `str()` and `repr()` write values that came from JSON;
/// `None` for anything else. Numbers keep their digits.
pub(super) fn python_to_json(text: &str) -> Option<String> {
    let mut reader = Reader { rest: text, out: String::new() };
    reader.value(LEVELS)?;
    reader.rest.is_empty().then_some(reader.out)
}

/// The text itself if it is JSON without white space around it.
pub(super) fn json(text: &str) -> Option<String> {
    let raw: &serde_json::value::RawValue = serde_json::from_str(text).ok()?;
    (raw.get().len() == text.len()).then(|| text.to_owned())
}

/// Whether a text is a number of JSON.
pub(super) fn is_number(text: &str) -> bool {
    let begins_as_one = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    begins_as_one && json(text).is_some()
}

struct Reader<'t> {
    rest: &'t str,
    out: String,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn value(&mut self, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        for (python, json) in [("None", "null"), ("True", "true"), ("False", "false")] {
            if self.take(python).is_some() {
                self.out.push_str(json);
                return Some(());
            }
        }
        match self.rest.chars().next()? {
            '[' => self.list("[", "]", levels),
            '(' => self.list("(", ")", levels),
            '{' => self.dict(levels),
            '\'' | '"' => self.string(),
            _ => self.number(),
        }
    }

    fn list(&mut self, open: &str, close: &str, levels: usize) -> Option<()> {
        self.take(open)?;
        self.out.push('[');
        let mut is_first = true;
        while self.take(close).is_none() {
            if !std::mem::take(&mut is_first) {
                self.take(",")?;
                // A tuple of one has a comma after it.
                if close == ")" && self.take(close).is_some() {
                    break;
                }
                self.take(" ")?;
                self.out.push(',');
            }
            self.value(levels)?;
        }
        self.out.push(']');
        Some(())
    }

    fn dict(&mut self, levels: usize) -> Option<()> {
        self.take("{")?;
        self.out.push('{');
        let mut is_first = true;
        while self.take("}").is_none() {
            if !std::mem::take(&mut is_first) {
                self.take(", ")?;
                self.out.push(',');
            }
            self.string()?;
            self.take(": ")?;
            self.out.push(':');
            self.value(levels)?;
        }
        self.out.push('}');
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let mut characters = self.rest.char_indices();
        let (_, quote) = characters.next().filter(|(_, quote)| matches!(quote, '\'' | '"'))?;
        let mut text = String::new();
        loop {
            let (at, character) = characters.next()?;
            if character == quote {
                self.rest = &self.rest[at + 1..];
                break;
            }
            if character != '\\' {
                text.push(character);
                continue;
            }
            let (_, escape) = characters.next()?;
            let digits = match escape {
                '\\' | '\'' | '"' => {
                    text.push(escape);
                    continue;
                }
                'n' => {
                    text.push('\n');
                    continue;
                }
                'r' => {
                    text.push('\r');
                    continue;
                }
                't' => {
                    text.push('\t');
                    continue;
                }
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ => return None,
            };
            let mut code = 0;
            for _ in 0..digits {
                code = code * 16 + characters.next()?.1.to_digit(16)?;
            }
            text.push(char::from_u32(code)?);
        }
        self.out.push_str(&serde_json::Value::from(text).to_string());
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        if !is_number(number) {
            return None;
        }
        self.out.push_str(number);
        self.rest = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_python_become_json() {
        for (python, expected) in [
            ("None", "null"),
            ("True", "true"),
            ("-1.50e-05", "-1.50e-05"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("'a\\'b\"c\\n\\x00\\u00e9\\U0001f600'", r#""a'b\"c\n\u0000é😀""#),
            (r#""it's""#, r#""it's""#),
            ("[]", "[]"),
            ("[1, 'a', None]", r#"[1,"a",null]"#),
            ("(1,)", "[1]"),
            ("{'a': {'b': [True, {}]}, 'c': 1.0}", r#"{"a":{"b":[true,{}]},"c":1.0}"#),
        ] {
            assert_eq!(python_to_json(python).as_deref(), Some(expected), "{python}");
        }
    }

    #[test]
    fn what_is_no_literal_is_nothing() {
        for text in [
            "",
            "a",
            "1 ",
            " 1",
            "01",
            "1.",
            ".5",
            "nan",
            "inf",
            "[1,2]",
            "[1, ]",
            "{1: 2}",
            "'a",
            "{'a':1}",
            "{'a': 1",
            "'\\ud800'",
            "'\\q'",
            "null",
            "True1",
            "1, minimum: 2",
        ] {
            assert_eq!(python_to_json(text), None, "{text}");
        }
        assert_eq!(python_to_json(&"[".repeat(100_000)), None);
    }
}
