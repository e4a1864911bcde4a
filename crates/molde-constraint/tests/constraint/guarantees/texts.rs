//! JSON texts over a toy alphabet, enumerated by a grammar that knows nothing of schemas.

use std::collections::{BTreeMap, BTreeSet};

/// Where whitespace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    Compact,
    Spaced,
}

/// The scalars that stand anywhere: two numbers of one byte, one value in two spellings, the two
/// shortest strings, and what is neither.
const ATOMS: [&str; 6] = ["0", "1", "1.0", "\"\"", "\"a\"", "null"];
/// More scalars, which stand alone only.
const NUMBERS: [&str; 22] = [
    "2", "10", "12", "20", "100", "-1", "-2", "-10", "-0", "0.0", "0.1", "0.2", "0.5", "1.5",
    "2.0", "-0.5", "-1.0", "10.0", "2.5", "1.10", "0.10", "12.5",
];
/// Names of members: the empty one, two, and one that begins as the first and ends as the second.
const NAMES: [&str; 4] = ["", "a", "b", "ab"];
/// Containers in containers.
const MOST_DEPTH: usize = 2;

/// All texts of at most `most_bytes` bytes: scalars, arrays and objects of [`ATOMS`] up to
/// [`MOST_DEPTH`] deep in which no name comes twice, and texts that stand alone.
pub(crate) fn texts(spacing: Spacing, most_bytes: usize) -> BTreeSet<String> {
    let (comma, colon) = match spacing {
        Spacing::Compact => (",", ":"),
        Spacing::Spaced => (", ", ": "),
    };
    let mut grammar = Grammar { comma, colon, known: BTreeMap::new() };
    let mut texts: BTreeSet<String> =
        (1..=most_bytes).flat_map(|bytes| grammar.values(bytes, MOST_DEPTH)).collect();
    texts.extend(["true", "false"].map(str::to_owned));
    texts.extend(NUMBERS.map(str::to_owned));
    texts.extend(words(4).into_iter().map(|word| format!("\"{word}\"")));
    texts.retain(|text| text.len() <= most_bytes);
    texts
}

/// All words over `a` and `b` of at most so many letters.
fn words(most: usize) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = words.clone();
    for _ in 0..most {
        last = last.iter().flat_map(|word| ["a", "b"].map(|x| format!("{word}{x}"))).collect();
        words.extend(last.iter().cloned());
    }
    words
}

struct Grammar {
    comma: &'static str,
    colon: &'static str,
    /// Values by their exact number of bytes and greatest depth.
    known: BTreeMap<(usize, usize), Vec<String>>,
}

impl Grammar {
    fn values(&mut self, bytes: usize, depth: usize) -> Vec<String> {
        if let Some(known) = self.known.get(&(bytes, depth)) {
            return known.clone();
        }
        let mut found: Vec<String> =
            ATOMS.iter().filter(|atom| atom.len() == bytes).map(|&atom| atom.to_owned()).collect();
        if depth > 0 && bytes >= 2 {
            self.items("[", bytes - 1, depth - 1, &mut found);
            self.members("{", &mut Vec::new(), bytes - 1, depth - 1, &mut found);
        }
        self.known.insert((bytes, depth), found.clone());
        found
    }

    /// Arrays that begin with `begun`, with `left` bytes to come.
    fn items(&mut self, begun: &str, left: usize, depth: usize, found: &mut Vec<String>) {
        if begun == "[" && left == 1 {
            found.push("[]".to_owned());
        }
        let separator = if begun == "[" { "" } else { self.comma };
        for bytes in 1..left.saturating_sub(separator.len()) {
            for value in self.values(bytes, depth) {
                let begun = format!("{begun}{separator}{value}");
                let left = left - separator.len() - bytes;
                if left == 1 {
                    found.push(format!("{begun}]"));
                }
                self.items(&begun, left, depth, found);
            }
        }
    }

    /// Objects that begin with `begun`, which has the members `used`, with `left` bytes to come.
    fn members(
        &mut self,
        begun: &str,
        used: &mut Vec<&'static str>,
        left: usize,
        depth: usize,
        found: &mut Vec<String>,
    ) {
        if used.is_empty() && left == 1 {
            found.push("{}".to_owned());
        }
        let separator = if used.is_empty() { "" } else { self.comma };
        for name in NAMES {
            if used.contains(&name) {
                continue;
            }
            let key = format!("{separator}\"{name}\"{}", self.colon);
            for bytes in 1..left.saturating_sub(key.len()) {
                for value in self.values(bytes, depth) {
                    let begun = format!("{begun}{key}{value}");
                    let left = left - key.len() - bytes;
                    if left == 1 {
                        found.push(format!("{begun}}}"));
                    }
                    used.push(name);
                    self.members(&begun, used, left, depth, found);
                    used.pop();
                }
            }
        }
    }
}

/// The prefixes of a set of texts.
pub(crate) struct Prefixes {
    /// By node: the node after a byte.
    next: Vec<BTreeMap<u8, usize>>,
    /// By node: the text that ends there, as an index into the texts.
    text: Vec<Option<usize>>,
}

impl Prefixes {
    /// The node of the empty prefix.
    pub(crate) const START: usize = 0;

    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut prefixes = Self { next: vec![BTreeMap::new()], text: vec![None] };
        for (index, text) in texts.into_iter().enumerate() {
            let mut node = Self::START;
            for byte in text.bytes() {
                let fresh = prefixes.next.len();
                node = *prefixes.next[node].entry(byte).or_insert(fresh);
                if node == fresh {
                    prefixes.next.push(BTreeMap::new());
                    prefixes.text.push(None);
                }
            }
            prefixes.text[node] = Some(index);
        }
        prefixes
    }

    /// The prefix that goes on from `node` with `bytes`, if there is one.
    pub(crate) fn after(&self, node: usize, bytes: &[u8]) -> Option<usize> {
        bytes.iter().try_fold(node, |node, byte| self.next[node].get(byte).copied())
    }

    /// The text that `node` is.
    pub(crate) fn text(&self, node: usize) -> Option<usize> {
        self.text[node]
    }
}

#[test]
fn the_grammar_writes_json_and_every_value_that_it_should() {
    let compact = texts(Spacing::Compact, 14);
    assert!(compact.len() > 15_000, "{}", compact.len());
    for text in ["{\"a\":1,\"b\":0}", "[[0,1],[1,0]]", "[{\"a\":1},[0]]", "{\"\":{},\"ab\":1}"] {
        assert!(compact.contains(text), "{text}");
    }
    let spaced = texts(Spacing::Spaced, 14);
    assert!(spaced.contains("{\"a\": [0, 1]}") && spaced.contains("[0, {}, null]"));
    for text in compact.iter().chain(&spaced) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert!(text.len() <= 14, "{value}");
    }
}
