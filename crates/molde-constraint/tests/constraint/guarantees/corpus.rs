//! The corpus of molde-schema: schemas with instances.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema with its valid instances, each as a JSON text.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) schema: String,
    pub(crate) valid: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    schema: Box<RawValue>,
    #[serde(default)]
    valid: Vec<Box<RawValue>>,
    #[serde(default)]
    valid_texts: Vec<String>,
}

/// Formats that are enforced as a subset, with a valid text that is left out.
const LEFT_OUT: [(&str, &str); 1] = [("hostname", "\"xn--4gbwdl.xn--wgbh1c\"")];

/// Every case with instances, by file and position.
pub(crate) fn corpus() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../molde-schema/tests/data/corpus");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "json")
                && !path.ends_with("refused.json")
                // Bounds from elsewhere in the instance have tests of their own.
                && !path.ends_with("data.json")
        })
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let entries: Vec<Entry> = serde_json::from_str(&text).unwrap();
        cases.extend(entries.into_iter().map(|entry| {
            let values = entry.valid.iter().map(|value| value.get().to_owned());
            let mut valid: Vec<String> = values.chain(entry.valid_texts).collect();
            valid.retain(|text| !LEFT_OUT.contains(&(&entry.name, text)));
            Case { name: entry.name, schema: entry.schema.get().to_owned(), valid }
        }));
    }
    assert!(cases.len() > 700, "the corpus is gone: {} schemas", cases.len());
    cases
}

/// How the parts of a text are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `,` and `:`.
    Compact,
    /// `, ` and `: `.
    Spaced,
    /// A line for each member and item, so many spaces for each level.
    Pretty(usize),
}

/// A JSON text with its whitespace as in `layout`, and with the escapes that JSON demands; numbers
/// and the order of members stay as they are.
pub(crate) fn lay_out(text: &str, layout: Layout) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut rest = text.trim();
    let line = |out: &mut String, depth: usize| {
        if let Layout::Pretty(width) = layout {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth * width));
        }
    };
    while let Some(first) = rest.chars().next() {
        let mut len = 1;
        match first {
            '"' => {
                let mut strings =
                    serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
                let string = strings.next().unwrap().unwrap();
                len = strings.byte_offset();
                out.push_str(&string.to_string());
            }
            '{' | '[' => {
                out.push(first);
                let closes = rest[1..].trim_start().starts_with(['}', ']']);
                if !closes {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                if !out.ends_with(['{', '[']) {
                    depth -= 1;
                    line(&mut out, depth);
                }
                out.push(first);
            }
            ',' => {
                out.push_str(if layout == Layout::Spaced { ", " } else { "," });
                line(&mut out, depth);
            }
            ':' => out.push_str(if layout == Layout::Compact { ":" } else { ": " }),
            _ => {
                len = rest.find([',', ']', '}', ' ', '\n', '\t', '\r']).unwrap_or(rest.len());
                out.push_str(&rest[..len]);
            }
        }
        rest = rest[len..].trim_start();
    }
    out
}

#[test]
fn layouts_change_whitespace_and_nothing_else() {
    let text = r#" {"a" :[1.0 , {}, []], "\u0062\/": "x, \"y\"\n" ,"c":{"d":null}}"#;
    let compact = r#"{"a":[1.0,{},[]],"b/":"x, \"y\"\n","c":{"d":null}}"#;
    let spaced = r#"{"a": [1.0, {}, []], "b/": "x, \"y\"\n", "c": {"d": null}}"#;
    assert_eq!(lay_out(text, Layout::Compact), compact);
    assert_eq!(lay_out(text, Layout::Spaced), spaced);
    let pretty = "[\n  1,\n  {\n    \"a\": []\n  }\n]";
    assert_eq!(lay_out("[1,{\"a\":[]}]", Layout::Pretty(2)), pretty);
}
