//! Schemas out of bytes: whatever the bytes are, something that looks like a schema.

use std::fmt::Write;

/// Bytes that decisions are read from; 0 without end after the last.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

const TYPES: [&str; 7] = ["integer", "number", "string", "null", "boolean", "array", "object"];
const NAMES: [&str; 6] = ["a", "b", "ab", "", "type", "é\\\""];
const PATTERNS: [&str; 14] = [
    "^a",
    "b$",
    "^[ab]{1,2}$",
    "",
    "^(a|b)*c?$",
    "\\\\d",
    "^\\\\S+$",
    "a.b",
    "^(?!a)",
    "[^a-z]",
    "^\\\\p{Lu}",
    "(?<=a)b",
    "^x{0,3}$",
    "\\\\w\\\\b",
];
const FORMATS: [&str; 22] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "unknown",
    "byte",
    "int32",
];
const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "1.0",
    "10",
    "1e1",
    "-0",
    "0.1",
    "100",
    "1e400",
    "1e-400",
    "9007199254740993",
    "0.30000000000000004",
    "-2.5",
    "12345678901234567890",
];
const COUNTS: [&str; 10] = ["0", "1", "2", "3", "1.0", "5", "17", "64", "1000000000", "2e0"];
const DRAFTS: [&str; 4] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
];
/// Depth of sub-schemas in sub-schemas.
const MOST_DEPTH: usize = 3;

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        usize::from(first) % bound
    }

    fn choose(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// The text of a schema.
    pub(crate) fn schema(&mut self) -> String {
        let draft = match self.below(10) {
            choice @ 0..4 => format!(r#""$schema": "{}", "#, DRAFTS[choice]),
            _ => String::new(),
        };
        let definition = self.sub_schema(1);
        let rest = self.members(0);
        format!(r#"{{{draft}"$defs": {{"x": {definition}}}{rest}}}"#)
    }

    fn sub_schema(&mut self, depth: usize) -> String {
        if depth >= MOST_DEPTH || self.below(10) == 0 {
            return match self.below(6) {
                0 => "true".to_owned(),
                1 => "false".to_owned(),
                2 => r##"{"$ref": "#/$defs/x"}"##.to_owned(),
                3 => r##"{"$ref": "#"}"##.to_owned(),
                4 => format!(r#"{{"const": {}}}"#, self.value(0)),
                _ => format!(r#"{{"type": "{}"}}"#, self.choose(&TYPES)),
            };
        }
        let members = self.members(depth);
        format!("{{{}}}", members.strip_prefix(", ").unwrap_or_default())
    }

    /// Keywords, each after a comma. None comes twice.
    fn members(&mut self, depth: usize) -> String {
        let mut members = String::new();
        let mut used = Vec::new();
        for _ in 0..=self.below(4) {
            let keyword = KEYWORDS[self.below(KEYWORDS.len())];
            if used.contains(&keyword) {
                continue;
            }
            used.push(keyword);
            let value = self.keyword(keyword, depth);
            write!(members, r#", "{keyword}": {value}"#).expect("writing to a string");
        }
        members
    }

    fn keyword(&mut self, keyword: &str, depth: usize) -> String {
        match keyword {
            "type" => match self.below(3) {
                0 => format!(r#"["{}", "{}"]"#, TYPES[self.below(3)], TYPES[3 + self.below(4)]),
                _ => format!(r#""{}""#, self.choose(&TYPES)),
            },
            "enum" => self.list(|bytes| bytes.value(0)),
            "const" => self.value(0),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                self.choose(&NUMBERS).to_owned()
            }
            "multipleOf" => self.choose(&["1", "2", "0.1", "0.5", "3", "1e2", "0.25"]).to_owned(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minContains" | "maxContains"
            | "minProperties" | "maxProperties" => self.choose(&COUNTS).to_owned(),
            "pattern" => format!(r#""{}""#, self.choose(&PATTERNS)),
            "format" => format!(r#""{}""#, self.choose(&FORMATS)),
            "uniqueItems" => self.choose(&["true", "true", "false"]).to_owned(),
            "required" => self.names(),
            "dependentRequired" => self.object(&NAMES, Self::names),
            "properties" | "dependentSchemas" => {
                self.object(&NAMES, |bytes| bytes.sub_schema(depth + 1))
            }
            "patternProperties" => self.object(&PATTERNS, |bytes| bytes.sub_schema(depth + 1)),
            "dependencies" => self.object(&NAMES, |bytes| match bytes.below(2) {
                0 => bytes.names(),
                _ => bytes.sub_schema(depth + 1),
            }),
            "prefixItems" | "allOf" | "anyOf" | "oneOf" => {
                self.list(|bytes| bytes.sub_schema(depth + 1))
            }
            "items" if self.below(6) == 0 => self.list(|bytes| bytes.sub_schema(depth + 1)),
            "$ref" => r##""#/$defs/x""##.to_owned(),
            _ => self.sub_schema(depth + 1),
        }
    }

    fn names(&mut self) -> String {
        let first = self.below(NAMES.len());
        let second = self.below(NAMES.len());
        if first == second {
            format!(r#"["{}"]"#, NAMES[first])
        } else {
            format!(r#"["{}", "{}"]"#, NAMES[first], NAMES[second])
        }
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> String) -> String {
        let items: Vec<String> = (0..=self.below(3)).map(|_| item(self)).collect();
        format!("[{}]", items.join(", "))
    }

    fn object(
        &mut self,
        names: &[&'static str],
        mut value: impl FnMut(&mut Self) -> String,
    ) -> String {
        let mut used = Vec::new();
        let mut members = Vec::new();
        for _ in 0..=self.below(3) {
            let name = self.choose(names);
            if !used.contains(&name) {
                used.push(name);
                members.push(format!(r#""{name}": {}"#, value(self)));
            }
        }
        format!("{{{}}}", members.join(", "))
    }

    /// A constant.
    fn value(&mut self, depth: usize) -> String {
        match self.below(if depth < 2 { 10 } else { 7 }) {
            0..3 => self.choose(&NUMBERS[..12]).to_owned(),
            3 | 4 => format!(r#""{}""#, self.choose(&NAMES)),
            5 => "null".to_owned(),
            6 => self.choose(&["true", "false"]).to_owned(),
            7 | 8 => self.list(|bytes| bytes.value(depth + 1)),
            _ => self.object(&NAMES, |bytes| bytes.value(depth + 1)),
        }
    }
}

const KEYWORDS: [&str; 43] = [
    "type",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "properties",
];
