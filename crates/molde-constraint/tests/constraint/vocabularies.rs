//! Vocabularies to test with, and a byte-pair segmenter over any of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use molde_vocab::TokenEntry::{self, Control, Text, Unused};
use molde_vocab::{TokenId, Vocabulary};

use crate::walk::Random;

/// Byte-pair merging by rank: of all neighbours whose concatenation is a token, those with the
/// lowest id are merged first.
fn byte_pairs(ranks: &BTreeMap<Vec<u8>, TokenId>, text: &str) -> Vec<TokenId> {
    let mut parts: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
    while let Some((_, at)) = parts
        .windows(2)
        .enumerate()
        .filter_map(|(at, pair)| Some((*ranks.get(&pair.concat())?, at)))
        .min()
    {
        let second = parts.remove(at + 1);
        parts[at].extend(second);
    }
    parts.iter().map_while(|part| ranks.get(part).copied()).collect()
}

/// A vocabulary with a segmenter that merges pairs of its tokens.
pub(crate) fn with_byte_pairs(
    entries: Vec<TokenEntry>,
    end_of_turn: &[TokenId],
) -> Arc<Vocabulary> {
    let mut ranks = BTreeMap::new();
    for (entry, token) in entries.iter().zip(0..) {
        if let Text(text) = entry {
            ranks.entry(text.clone()).or_insert(token);
        }
    }
    let segmenter = move |text: &str| byte_pairs(&ranks, text);
    let vocabulary = Vocabulary::new(
        entries,
        end_of_turn.iter().copied(),
        Some(Arc::new(segmenter) as Arc<dyn molde_vocab::Segmenter>),
    );
    Arc::new(vocabulary.unwrap())
}

/// About sixty tokens for brackets, numbers and the record: two ids that end the turn, a hole, an
/// empty text, two ids with one text.
pub(crate) fn toy() -> Arc<Vocabulary> {
    let singles = "{}[]\":, abcefklmnorstu01239-.";
    let merged = [
        "tr", "ue", "true", "fal", "se", "false", "nu", "ll", "null", "na", "me", "name", "ok",
        "co", "nt", "un", "count", "{\"", "\":", "\": ", ", ", ", \"", " \"", "\",", "\"}", "[[",
        "]]", "[]", "][", "[][]", "10", "12", "0.", "é", "é\"", "]]]", "ka",
    ];
    let mut entries: Vec<TokenEntry> = vec![Control, Control, Unused, Text(Vec::new())];
    entries.extend(singles.bytes().map(|byte| Text(vec![byte])));
    entries.extend([Text(vec![0xC3]), Text(vec![0xA9])]);
    entries.extend(merged.iter().map(|text| Text(text.as_bytes().to_vec())));
    entries.push(Text(b"[]".to_vec()));
    with_byte_pairs(entries, &[0, 1])
}

/// `count` tokens: all single bytes, then random texts of the shapes that real ones have.
pub(crate) fn synthetic(count: usize, seed: u64) -> Arc<Vocabulary> {
    const PIECES: [&str; 24] = [
        "a", "e", "th", "ing", "er", " ", "\"", "\\", "n", "{", "}", ":", ", ", "[", "]", "1",
        "20", ".", "\n", "é", "日", "\u{301}", "😀", "true",
    ];
    let mut random = Random(seed);
    let mut entries: Vec<TokenEntry> = (0..=255).map(|byte| Text(vec![byte])).collect();
    while entries.len() < count - 1 {
        let mut text = Vec::new();
        for _ in 0..=random.below(6) {
            text.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes());
        }
        // Some tokens of a byte-level tokenizer are parts of characters.
        if random.below(20) == 0 {
            text.pop();
        }
        entries.push(Text(text));
    }
    entries.push(Control);
    let end = entries.len() as TokenId - 1;
    if count < 2000 {
        return with_byte_pairs(entries, &[end]);
    }
    Arc::new(Vocabulary::new(entries, [end], None).unwrap())
}
