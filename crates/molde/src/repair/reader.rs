//! A tolerant reader of nearly-JSON. It changes no value: numbers and words keep their text until
//! the schema says what they are to be.

use std::ops::Range;

use super::{Repair, RepairKind, number};
use crate::fields::push_segment;

/// Levels of nesting that are read.
const LEVELS: usize = 100;

/// A value as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Boolean(bool),
    /// A JSON number, as written.
    Number(String),
    /// A string, decoded.
    Text(String),
    /// Something without quotes that is no word of JSON and no JSON number.
    Bare(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The JSON text.
    pub(super) fn to_json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Number(text) => text.clone(),
            Self::Text(text) | Self::Bare(text) => quoted(text),
            Self::Array(items) => {
                let items: Vec<String> = items.iter().map(Self::to_json).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("{}: {}", quoted(name), value.to_json()))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }
}

/// A value found in an answer.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) node: Node,
    pub(super) bytes: Range<usize>,
    pub(super) repairs: Vec<Repair>,
    /// Whether the answer ends inside it.
    pub(super) is_cut: bool,
}

/// Reads the object or array that begins at `start`. `contains` says whether the document contains
/// a number, which decides about one that stands at the cut-off end.
pub(super) fn read(text: &str, start: usize, contains: &dyn Fn(&str) -> bool) -> Option<Candidate> {
    read_to_end(text, start, contains).or_else(|| {
        // A fence that closes before the value does ends the answer.
        let fence = start + text[start..].find("\n```")?;
        read_to_end(&text[..=fence], start, contains)
    })
}

fn read_to_end(text: &str, start: usize, contains: &dyn Fn(&str) -> bool) -> Option<Candidate> {
    let mut reader = Reader { text, at: start, repairs: Vec::new(), is_cut: false, contains };
    let node = reader.value("", false, LEVELS)?;
    Some(Candidate {
        node: node?,
        bytes: start..reader.at,
        repairs: reader.repairs,
        is_cut: reader.is_cut,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    repairs: Vec<Repair>,
    is_cut: bool,
    contains: &'t dyn Fn(&str) -> bool,
}

/// Characters that models write for quotes, with their other half.
fn closing_quote(opening: char) -> Option<char> {
    Some(match opening {
        '"' => '"',
        '\'' => '\'',
        '“' | '”' => '”',
        '‘' | '’' => '’',
        '`' => '`',
        _ => return None,
    })
}

/// The outer `None`: this is no value. The inner: the end cut it off, and nothing of it is certain.
type Read<T> = Option<Option<T>>;

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn log(
        &mut self,
        kind: RepairKind,
        pointer: &str,
        before: impl Into<String>,
        after: impl Into<String>,
    ) {
        self.repairs.push(Repair::new(kind, pointer, before, after));
    }

    /// Skips white space and comments.
    fn skip(&mut self, pointer: &str) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let rest = self.rest();
            let comment = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                return;
            };
            let before = rest[..comment].to_owned();
            self.at += comment;
            self.log(RepairKind::Comment, pointer, before, "");
        }
    }

    fn value(&mut self, pointer: &str, in_object: bool, levels: usize) -> Read<Node> {
        let levels = levels.checked_sub(1)?;
        self.skip(pointer);
        match self.peek() {
            None => {
                self.is_cut = true;
                Some(None)
            }
            Some('{') => self.object(pointer, levels).map(|node| node.map(Node::Object)),
            Some('[') => self.array(pointer, levels).map(|node| node.map(Node::Array)),
            Some(quote) if closing_quote(quote).is_some() => {
                self.string(pointer, quote).map(|text| text.map(Node::Text))
            }
            Some(',' | '}' | ']' | ':') => None,
            Some(_) => self.bare(pointer, in_object),
        }
    }

    fn object(&mut self, pointer: &str, levels: usize) -> Read<Vec<(String, Node)>> {
        self.at += 1;
        let mut members: Vec<(String, Node)> = Vec::new();
        loop {
            self.skip(pointer);
            match self.peek() {
                None => return self.cut(pointer, "", '}', members),
                Some('}') => {
                    self.at += 1;
                    return Some(Some(members));
                }
                _ => {}
            }
            let start = self.at;
            let Some(key) = self.key(pointer)? else {
                return self.cut_from(pointer, start, '}', members);
            };
            self.skip(pointer);
            match self.peek() {
                None => return self.cut_from(pointer, start, '}', members),
                Some(':') => self.at += 1,
                Some(_) => return None,
            }
            let mut inner = pointer.to_owned();
            push_segment(&mut inner, &key);
            let Some(value) = self.value(&inner, true, levels)? else {
                return self.cut_from(pointer, start, '}', members);
            };
            let was_cut = self.is_cut;
            match members.iter().find(|(known, _)| *known == key) {
                None => members.push((key, value)),
                Some((_, known)) if *known == value => {
                    self.log(RepairKind::DuplicateKey, &inner, value.to_json(), "");
                }
                // Which of the two is meant nobody knows.
                Some(_) => return None,
            }
            if was_cut {
                return self.cut(pointer, "", '}', members);
            }
            self.separator(pointer, '}')?;
        }
    }

    fn array(&mut self, pointer: &str, levels: usize) -> Read<Vec<Node>> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip(pointer);
            match self.peek() {
                None => return self.cut(pointer, "", ']', items),
                Some(']') => {
                    self.at += 1;
                    return Some(Some(items));
                }
                _ => {}
            }
            let start = self.at;
            let inner = format!("{pointer}/{}", items.len());
            let Some(value) = self.value(&inner, false, levels)? else {
                return self.cut_from(pointer, start, ']', items);
            };
            items.push(value);
            if self.is_cut {
                return self.cut(pointer, "", ']', items);
            }
            self.separator(pointer, ']')?;
        }
    }

    /// What stands between two members, or after the last one.
    fn separator(&mut self, pointer: &str, close: char) -> Option<()> {
        let before = self.at;
        self.skip(pointer);
        match self.peek() {
            None => Some(()),
            Some(character) if character == close => Some(()),
            Some(',') => {
                self.at += 1;
                self.skip(pointer);
                if self.peek() == Some(close) {
                    self.log(RepairKind::TrailingComma, pointer, ",", "");
                }
                // A comma before the cut-off end is part of what was cut.
                Some(())
            }
            // A new line separates as well as a comma, to a reader.
            Some(_) if self.text[before..self.at].contains('\n') => {
                self.log(RepairKind::MissingComma, pointer, "", ",");
                Some(())
            }
            Some(character) if closing_quote(character).is_some() => {
                self.log(RepairKind::MissingComma, pointer, "", ",");
                Some(())
            }
            Some(_) => None,
        }
    }

    /// Ends a container that the end of the answer cut, leaving out what began at `start`.
    fn cut_from<T>(&mut self, pointer: &str, start: usize, close: char, inner: T) -> Read<T> {
        let left_out = self.text[start..].trim_end().to_owned();
        self.cut(pointer, &left_out, close, inner)
    }

    #[expect(clippy::unnecessary_wraps, reason = "what its callers return")]
    fn cut<T>(&mut self, pointer: &str, left_out: &str, close: char, inner: T) -> Read<T> {
        self.is_cut = true;
        self.at = self.text.len();
        self.log(RepairKind::CutOff, pointer, left_out, close);
        Some(Some(inner))
    }

    fn key(&mut self, pointer: &str) -> Read<String> {
        let first = self.peek()?;
        if closing_quote(first).is_some() {
            return self.string(pointer, first);
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        let len = self.rest().find(|c: char| !is_name(c)).unwrap_or(self.rest().len());
        if len == 0 {
            return None;
        }
        let key = self.rest()[..len].to_owned();
        self.at += len;
        if self.at == self.text.len() {
            return Some(None);
        }
        self.log(RepairKind::UnquotedKey, pointer, key.clone(), format!("\"{key}\""));
        Some(Some(key))
    }

    fn string(&mut self, pointer: &str, opening: char) -> Read<String> {
        let closing = closing_quote(opening)?;
        let start = self.at;
        self.at += opening.len_utf8();
        let mut decoded = String::new();
        let mut escaped = Vec::new();
        loop {
            let Some(character) = self.peek() else {
                self.is_cut = true;
                self.at = self.text.len();
                return Some(None);
            };
            self.at += character.len_utf8();
            match character {
                '\\' => match self.escape(&mut decoded)? {
                    None => {
                        self.is_cut = true;
                        self.at = self.text.len();
                        return Some(None);
                    }
                    Some(Escape::Known) => {}
                    Some(Escape::Unknown(text)) => escaped.push(text),
                },
                // `“` is closed by `”` or, by many writers, by a plain quote.
                character if character == closing || (opening == '“' && character == '"') => {
                    break;
                }
                // An apostrophe inside: what follows a closing quote is punctuation.
                character => {
                    if character.is_control() {
                        escaped.push(character.to_string());
                    }
                    decoded.push(character);
                }
            }
            if opening == '\'' && self.is_apostrophe() {
                decoded.push('\'');
                self.at += 1;
            }
        }
        if opening != '"' {
            let written = self.text[start..self.at].to_owned();
            self.log(RepairKind::Quotes, pointer, written, quoted(&decoded));
        }
        for text in escaped {
            self.log(RepairKind::Escape, pointer, text, "");
        }
        Some(Some(decoded))
    }

    /// Whether the single quote that comes next is inside a word, as in `it's`.
    fn is_apostrophe(&self) -> bool {
        let mut next = self.rest().chars();
        let before = self.text[..self.at].chars().next_back();
        next.next() == Some('\'')
            && before.is_some_and(char::is_alphabetic)
            && next.next().is_some_and(char::is_alphabetic)
    }

    /// Decodes an escape sequence; the backslash has been read.
    fn escape(&mut self, decoded: &mut String) -> Read<Escape> {
        let Some(character) = self.peek() else { return Some(None) };
        self.at += character.len_utf8();
        let plain = match character {
            '"' | '\\' | '/' => character,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.code_point(decoded),
            other => {
                // `\'` and `\_` say the character; JSON has no such escape.
                decoded.push(other);
                return Some(Some(Escape::Unknown(format!("\\{other}"))));
            }
        };
        decoded.push(plain);
        Some(Some(Escape::Known))
    }

    fn code_point(&mut self, decoded: &mut String) -> Read<Escape> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.text.get(at..at + 4)?;
            u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
        };
        let Some(first) = unit(self.at) else {
            return if self.text.len() - self.at < 4 { Some(None) } else { None };
        };
        self.at += 4;
        let code = if (0xd800..0xdc00).contains(&first) {
            if self.rest().is_empty() {
                return Some(None);
            }
            let low = self.rest().strip_prefix("\\u").and_then(|_| {
                let unit = self.text.get(self.at + 2..self.at + 6)?;
                u32::from_str_radix(unit, 16).ok().filter(|low| (0xdc00..0xe000).contains(low))
            })?;
            self.at += 6;
            0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00)
        } else {
            first
        };
        decoded.push(char::from_u32(code)?);
        Some(Some(Escape::Known))
    }

    /// A number, a word of JSON, or something else without quotes.
    fn bare(&mut self, pointer: &str, in_object: bool) -> Read<Node> {
        let rest = self.rest();
        let mut end = rest.len();
        for (offset, character) in rest.char_indices() {
            let stops = match character {
                '}' | ']' | '\n' | '"' | '{' | '[' => true,
                ',' => !(in_object && joins_digits(rest, offset)),
                '/' => rest[offset..].starts_with("//") || rest[offset..].starts_with("/*"),
                _ => false,
            };
            if stops {
                end = offset;
                break;
            }
        }
        let token = rest[..end].trim_end().to_owned();
        let at_end = self.at + token.len() == self.text.len();
        self.at += token.len();
        if token.is_empty() {
            return None;
        }
        if at_end {
            return Some(self.cut_token(pointer, &token));
        }
        Some(Some(self.token(pointer, token)))
    }

    fn token(&mut self, pointer: &str, token: String) -> Node {
        let word = match token.as_str() {
            "null" => return Node::Null,
            "true" => return Node::Boolean(true),
            "false" => return Node::Boolean(false),
            "None" | "NULL" | "Null" | "nil" | "undefined" => Node::Null,
            "True" | "TRUE" => Node::Boolean(true),
            "False" | "FALSE" => Node::Boolean(false),
            _ if number::is_json(&token) => return Node::Number(token),
            _ => return Node::Bare(token),
        };
        self.log(RepairKind::Literal, pointer, token, word.to_json());
        word
    }

    /// A token that ends where the answer does.
    fn cut_token(&mut self, pointer: &str, token: &str) -> Option<Node> {
        self.is_cut = true;
        for (word, node) in
            [("null", Node::Null), ("true", Node::Boolean(true)), ("false", Node::Boolean(false))]
        {
            if word.starts_with(token) {
                if word != token {
                    self.log(RepairKind::CutOff, pointer, token, word);
                }
                return Some(node);
            }
        }
        // `76` may be the beginning of `7650`: only the document can tell.
        (number::is_json(token) && (self.contains)(token)).then(|| Node::Number(token.to_owned()))
    }
}

/// What an escape sequence was.
enum Escape {
    Known,
    /// One that JSON does not have, as written.
    Unknown(String),
}

/// Whether the comma at `offset` stands inside a number, as in `7.230,0`: between digits, and what
/// follows is no name of a member.
fn joins_digits(text: &str, offset: usize) -> bool {
    let after = &text[offset + 1..];
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    text[..offset].ends_with(|c: char| c.is_ascii_digit())
        && digits > 0
        && !after[digits..].trim_start().starts_with(':')
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
