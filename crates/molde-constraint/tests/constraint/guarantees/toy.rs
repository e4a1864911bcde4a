//! Vocabularies made for JSON: some forty tokens over its structure, and some hundreds with merges.

use std::sync::Arc;

use molde_vocab::TokenEntry::{self, Control, Text};
use molde_vocab::{TokenId, Vocabulary};

use crate::vocabularies::with_byte_pairs;

/// Every byte that the small world is made of, and pieces that cross from one part of a text into
/// another: out of a key into a value, out of a value into the next member. And letters that it is not
/// made of, with which a completion tells an item apart from all others.
pub(crate) const TOKENS: [&str; 52] = [
    "{", "}", "[", "]", "\"", ":", ",", " ", "a", "b", "c", "d", "g", "h", "0", "1", "2", "3", "4",
    "5", "6", "7", "8", "9", "-", ".", "n", "u", "l", "t", "r", "e", "f", "s", "!", "{\"", "\"}",
    "\":", "\": ", ", \"", ",\"", "[\"", "a\"", "ab", "\"a", "[]", "},", "null", "10", "1,", "]]",
    "\"\"",
];

/// The tokens, and one that ends the turn.
pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    let texts = TOKENS.iter().map(|text| Text(text.as_bytes().to_vec()));
    let entries: Vec<TokenEntry> = texts.chain([Control]).collect();
    let end = TOKENS.len() as u32;
    Arc::new(Vocabulary::new(entries, [end], None).unwrap())
}

/// What JSON is made of, in tokens as long as real ones, with a tokenizer that merges pairs.
pub(crate) fn json_vocabulary() -> Arc<Vocabulary> {
    let mut entries: Vec<TokenEntry> = (0..=255).map(|byte| Text(vec![byte])).collect();
    let pieces = [
        "\"", "\":", "\": ", "\": \"", "\",", "\", \"", ", \"", ", ", "{\"", "\"}", "}}", "[\"",
        "\"]", "]]", "},", "}, {\"", "[]", "{}", "[{", "}]", "\\\"", "\\\\", "\\n", "\\u", "\\u00",
        "  ", "    ", "\n", "\n ", "\n  ", "\n    ", "{\n", "\":[", ",\"", ":{", ":\"", "00", "10",
        "12", "20", "0.", "1.", ".5", ".0", "-1", "e1", "1,", "0,", "0]", "1]", "tr", "ue", "true",
        "fal", "se", "false", "nu", "ll", "null", "na", "me", "name", "ty", "pe", "type", "id",
        "va", "lue", "value", "ab", "bc", "abc", "aa", "aaaa", "th", "er", "in", "ing", "an", "on",
        " a", " th", "ti", "tion", "é", "日", "日本", "😀", "@", "://", "www", ".com", "20", "202",
        "-0", "T1", "Z", "a\"", "b\"", "1\"", "e\"", "x\"",
    ];
    for piece in pieces {
        let text = piece.as_bytes().to_vec();
        if !entries.contains(&Text(text.clone())) {
            entries.push(Text(text));
        }
    }
    entries.push(Control);
    let end = entries.len() as TokenId - 1;
    with_byte_pairs(entries, &[end])
}
