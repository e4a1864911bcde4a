//! The grammar of ECMA-262 (22.2.1, with the `u` flag and parts of Annex B.1.2).

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{
    ast::{Assertion, Look, Node},
    class,
    error::{Construct, Expected, PatternError},
};

/// Groups deeper than this are refused: later passes recurse over them.
const MAX_NESTING: usize = 200;

/// Parses a whole pattern.
///
/// # Errors
/// [`PatternError::Syntax`], [`PatternError::Unsupported`] or [`PatternError::Nesting`].
pub(super) fn parse(text: &str) -> Result<Node, PatternError> {
    let mut parser =
        Parser { text, at: 0, depth: 0, names: Vec::new(), groups: count_groups(text) };
    let node = parser.disjunction()?;
    if parser.at < text.len() {
        // Only an unmatched `)` stops a disjunction early.
        return Err(parser.syntax(Expected::Atom));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    names: Vec<&'a str>,
    /// Number of capture groups in the whole pattern, which `\1` may refer to before they open.
    groups: usize,
}

/// One member of a character class.
enum ClassAtom {
    /// A code point; a surrogate is one too, although no text contains it.
    CodePoint(u32),
    Set(ClassUnicode),
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn syntax(&self, expected: Expected) -> PatternError {
        PatternError::Syntax { offset: self.at, expected, got: self.peek() }
    }

    fn disjunction(&mut self) -> Result<Node, PatternError> {
        let mut alternatives = vec![self.alternative()?];
        while self.eat("|") {
            alternatives.push(self.alternative()?);
        }
        Ok(if alternatives.len() == 1 {
            alternatives.pop().expect("one alternative")
        } else {
            Node::Alternation(alternatives)
        })
    }

    fn alternative(&mut self) -> Result<Node, PatternError> {
        let mut nodes = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            match self.term()? {
                Node::Empty => {}
                Node::Concat(inner) => nodes.extend(inner),
                node => nodes.push(node),
            }
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.pop().expect("one node"),
            _ => Node::Concat(nodes),
        })
    }

    fn term(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        let c = self.bump().expect("the caller saw a character");
        let node = match c {
            '^' => return Ok(Node::Assertion(Assertion::Start)),
            '$' => return Ok(Node::Assertion(Assertion::End)),
            '(' => {
                let is_lookbehind =
                    self.rest().starts_with("?<=") || self.rest().starts_with("?<!");
                let node = self.group(start)?;
                // Annex B lets a lookahead be quantified, and nobody a lookbehind.
                if is_lookbehind {
                    return Ok(node);
                }
                node
            }
            '.' => Node::Class(class::dot()),
            '[' => Node::Class(self.class()?),
            '\\' => match self.escape(start)? {
                Node::Assertion(assertion) => return Ok(Node::Assertion(assertion)),
                node => node,
            },
            '*' | '+' | '?' => {
                self.at = start;
                return Err(self.syntax(Expected::Atom));
            }
            '{' => {
                // A brace that begins no quantifier stands for itself (Annex B).
                self.at = start;
                if self.quantifier()?.is_some() {
                    self.at = start;
                    return Err(self.syntax(Expected::Atom));
                }
                self.at = start + 1;
                Node::literal('{')
            }
            c => Node::literal(c),
        };
        self.quantified(node)
    }

    fn quantified(&mut self, node: Node) -> Result<Node, PatternError> {
        let Some((min, max)) = self.quantifier()? else {
            return Ok(node);
        };
        self.eat("?");
        Ok(match (min, max) {
            (1, Some(1)) => node,
            (_, Some(0)) => Node::Empty,
            _ => Node::Repeat { node: Box::new(node), min, max },
        })
    }

    /// A quantifier without its laziness, if there is one here.
    fn quantifier(&mut self) -> Result<Option<(u64, Option<u64>)>, PatternError> {
        let start = self.at;
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                let Some(min) = self.count() else {
                    self.at = start;
                    return Ok(None);
                };
                let max = if self.eat(",") { self.count() } else { Some(min) };
                if !self.eat("}") {
                    self.at = start;
                    return Ok(None);
                }
                if max.is_some_and(|max| max < min) {
                    self.at = start;
                    return Err(self.syntax(Expected::AscendingCounts));
                }
                return Ok(Some((min, max)));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(bounds))
    }

    /// Decimal digits, if there are any. Counts beyond 64 bits are beyond every limit alike.
    fn count(&mut self) -> Option<u64> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let (number, _) = self.rest().split_at(digits);
        self.at += digits;
        (digits > 0).then(|| {
            number
                .bytes()
                .fold(0u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
        })
    }

    fn group(&mut self, start: usize) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(PatternError::Nesting { offset: start, limit: MAX_NESTING });
        }
        let mut look = None;
        if self.eat("?") {
            if self.eat(":") {
            } else if self.eat("=") {
                look = Some((true, false));
            } else if self.eat("!") {
                look = Some((true, true));
            } else if self.eat("<=") {
                look = Some((false, false));
            } else if self.eat("<!") {
                look = Some((false, true));
            } else if self.eat("<") {
                self.group_name()?;
            } else if is_modifiers(self.rest()) {
                return Err(PatternError::Unsupported {
                    offset: start,
                    construct: Construct::Modifiers,
                });
            } else {
                return Err(self.syntax(Expected::GroupKind));
            }
        }
        let node = self.disjunction()?;
        if !self.eat(")") {
            return Err(self.syntax(Expected::ClosingParenthesis));
        }
        self.depth -= 1;
        Ok(match look {
            None => node,
            Some((ahead, negative)) => {
                Node::Look(Box::new(Look { ahead, negative, node, offset: start }))
            }
        })
    }

    fn group_name(&mut self) -> Result<(), PatternError> {
        let length = self.rest().find('>').ok_or_else(|| self.syntax(Expected::GroupName))?;
        let name = &self.rest()[..length];
        let mut chars = name.chars();
        let valid = chars.next().is_some_and(|c| c == '$' || c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '$' || c == '_' || c.is_alphanumeric());
        if !valid {
            return Err(self.syntax(Expected::GroupName));
        }
        if self.names.contains(&name) {
            return Err(self.syntax(Expected::UniqueGroupName));
        }
        self.names.push(name);
        self.at += length + 1;
        Ok(())
    }

    /// What follows a backslash outside a class.
    fn escape(&mut self, start: usize) -> Result<Node, PatternError> {
        match self.peek() {
            Some('b') => {
                self.at += 1;
                Ok(Node::Assertion(Assertion::WordBoundary))
            }
            Some('B') => {
                self.at += 1;
                Ok(Node::Assertion(Assertion::NotWordBoundary))
            }
            Some('1'..='9') => {
                let number = self.count().expect("a digit is next");
                if number > self.groups as u64 {
                    self.at = start + 1;
                    return Err(self.syntax(Expected::Escape));
                }
                Err(PatternError::Unsupported {
                    offset: start,
                    construct: Construct::Backreference,
                })
            }
            Some('k') if self.rest().starts_with("k<") => Err(PatternError::Unsupported {
                offset: start,
                construct: Construct::Backreference,
            }),
            _ => Ok(match self.character_escape()? {
                ClassAtom::CodePoint(code) => match char::from_u32(code) {
                    Some(c) => Node::literal(c),
                    // Half a surrogate pair: no text contains it.
                    None => Node::Class(ClassUnicode::empty()),
                },
                ClassAtom::Set(set) => Node::Class(set),
            }),
        }
    }

    /// What follows a backslash inside and outside a class alike.
    fn character_escape(&mut self) -> Result<ClassAtom, PatternError> {
        let start = self.at;
        let Some(c) = self.bump() else {
            return Err(self.syntax(Expected::Escape));
        };
        let code = match c {
            'd' => return Ok(ClassAtom::Set(class::digit())),
            'D' => return Ok(ClassAtom::Set(class::negated(class::digit()))),
            'w' => return Ok(ClassAtom::Set(class::word())),
            'W' => return Ok(ClassAtom::Set(class::negated(class::word()))),
            's' => return Ok(ClassAtom::Set(class::space())),
            'S' => return Ok(ClassAtom::Set(class::negated(class::space()))),
            'p' => return Ok(ClassAtom::Set(self.property()?)),
            'P' => return Ok(ClassAtom::Set(class::negated(self.property()?))),
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            '0' if !self.rest().starts_with(|c: char| c.is_ascii_digit()) => 0,
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    letter as u32 % 32
                }
                _ => return Err(self.syntax(Expected::ControlLetter)),
            },
            'x' => self.hex_digits(2)?,
            'u' => self.unicode_escape()?,
            // Identity escapes: the syntax characters and `/` under the `u` flag, any other
            // character that is neither letter nor digit by Annex B.
            c if !c.is_ascii_alphanumeric() => c as u32,
            _ => {
                self.at = start;
                return Err(self.syntax(Expected::Escape));
            }
        };
        Ok(ClassAtom::CodePoint(code))
    }

    fn hex_digits(&mut self, count: usize) -> Result<u32, PatternError> {
        let digits = self
            .rest()
            .get(..count)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .ok_or_else(|| self.syntax(Expected::HexDigits))?;
        self.at += count;
        Ok(u32::from_str_radix(digits, 16).expect("at most eight hexadecimal digits"))
    }

    fn unicode_escape(&mut self) -> Result<u32, PatternError> {
        if self.eat("{") {
            let digits = self.rest().bytes().take_while(u8::is_ascii_hexdigit).count();
            let significant = self.rest()[..digits].trim_start_matches('0');
            let code = if significant.len() > 6 {
                u32::MAX
            } else {
                u32::from_str_radix(significant, 16).unwrap_or(0)
            };
            if digits == 0 || code > 0x10_FFFF || !self.rest()[digits..].starts_with('}') {
                return Err(self.syntax(Expected::CodePoint));
            }
            self.at += digits + 1;
            return Ok(code);
        }
        let high = self.hex_digits(4)?;
        if (0xD800..0xDC00).contains(&high) && self.rest().starts_with("\\u") {
            let start = self.at;
            self.at += 2;
            if let Ok(low @ 0xDC00..0xE000) = self.hex_digits(4) {
                return Ok(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            }
            self.at = start;
        }
        Ok(high)
    }

    fn property(&mut self) -> Result<ClassUnicode, PatternError> {
        let inside = self
            .rest()
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map(|(inside, _)| inside);
        let found = inside.and_then(|inside| Some((inside.len(), class::property(inside)?)));
        let Some((length, set)) = found else {
            return Err(self.syntax(Expected::Property));
        };
        self.at += length + 2;
        Ok(set)
    }

    /// A class, after its opening bracket.
    fn class(&mut self) -> Result<ClassUnicode, PatternError> {
        let negative = self.eat("^");
        let mut ranges: Vec<ClassUnicodeRange> = Vec::new();
        while !self.eat("]") {
            let start = self.at;
            let first = self.class_atom()?;
            // A hyphen makes a range if both ends are characters; beside a set, or last in the
            // class, it stands for itself (Annex B).
            let after_hyphen = self.rest().strip_prefix('-');
            if after_hyphen.is_none_or(|rest| rest.starts_with(']')) {
                push(&mut ranges, first);
                continue;
            }
            self.at += 1;
            match (first, self.class_atom()?) {
                (ClassAtom::CodePoint(first), ClassAtom::CodePoint(last)) => {
                    if first > last {
                        self.at = start;
                        return Err(self.syntax(Expected::AscendingRange));
                    }
                    push_range(&mut ranges, first, last);
                }
                (first, last) => {
                    push(&mut ranges, first);
                    push_range(&mut ranges, '-' as u32, '-' as u32);
                    push(&mut ranges, last);
                }
            }
        }
        let class = ClassUnicode::new(ranges);
        Ok(if negative { class::negated(class) } else { class })
    }

    fn class_atom(&mut self) -> Result<ClassAtom, PatternError> {
        match self.bump() {
            None => Err(self.syntax(Expected::ClosingBracket)),
            Some('\\') => {
                // Inside a class `\b` is a backspace.
                if self.eat("b") {
                    return Ok(ClassAtom::CodePoint(0x08));
                }
                self.character_escape()
            }
            Some(c) => Ok(ClassAtom::CodePoint(c as u32)),
        }
    }
}

fn push(ranges: &mut Vec<ClassUnicodeRange>, atom: ClassAtom) {
    match atom {
        ClassAtom::CodePoint(code) => push_range(ranges, code, code),
        ClassAtom::Set(set) => ranges.extend(set.iter()),
    }
}

/// Adds a range of code points without the surrogates in it.
fn push_range(ranges: &mut Vec<ClassUnicodeRange>, first: u32, last: u32) {
    for (low, high) in [(0, 0xD7FF), (0xE000, 0x10_FFFF)] {
        let (first, last) = (first.max(low), last.min(high));
        if first <= last
            && let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last))
        {
            ranges.push(ClassUnicodeRange::new(first, last));
        }
    }
}

/// Number of capture groups, found without parsing.
fn count_groups(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut groups, mut at, mut in_class) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let rest = &bytes[at + 1..];
                let named = rest.starts_with(b"?<") && !matches!(rest.get(2), Some(b'=' | b'!'));
                groups += usize::from(named || rest.first() != Some(&b'?'));
            }
            _ => {}
        }
        at += 1;
    }
    groups
}

/// Whether a group starts with the modifiers of ECMA-262 2025, `(?ims-ims:`.
fn is_modifiers(rest: &str) -> bool {
    rest.split_once(':').is_some_and(|(flags, _)| {
        let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
        (on.len() + off.len() > 0) && on.chars().chain(off.chars()).all(|c| "ims".contains(c))
    })
}
