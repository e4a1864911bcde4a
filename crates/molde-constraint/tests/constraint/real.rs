//! A real vocabulary, where it is at hand beside the workspace.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use molde_constraint::Segmentation;
use molde_vocab::TokenEntry::{Control, Text, Unused};
use molde_vocab::{TokenConstraint, TokenEntry, TokenId, Vocabulary};

use crate::automata::{JsonString, Language, Number, record};
use crate::walk::{Random, matcher, naive_mask, read_tokens, tokens_of};

/// The vocabulary of a byte-level `tokenizer.json`, `None` where the file is not there.
pub(crate) fn qwen() -> Option<Arc<Vocabulary>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/qwen2.5-tokenizer.json.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();

    // The tokenizer spells bytes that are not printable with the characters from U+0100 on.
    let mut bytes = BTreeMap::new();
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..);
        let character = if printable { u32::from(byte) } else { next };
        next += u32::from(!printable);
        bytes.insert(char::from_u32(character).unwrap(), byte);
    }
    let mut entries: Vec<TokenEntry> = vec![Unused; 151_936];
    for (text, id) in json["model"]["vocab"].as_object().unwrap() {
        let text = text.chars().map(|character| bytes[&character]).collect();
        entries[id.as_u64().unwrap() as usize] = Text(text);
    }
    let mut end_of_turn = Vec::new();
    for token in json["added_tokens"].as_array().unwrap() {
        let id = token["id"].as_u64().unwrap();
        entries[id as usize] = Control;
        if token["content"] == "<|im_end|>" || token["content"] == "<|endoftext|>" {
            end_of_turn.push(id as TokenId);
        }
    }
    Some(Arc::new(Vocabulary::new(entries, end_of_turn, None).unwrap()))
}

fn check<L: Language>(language: &L, vocabulary: &Arc<Vocabulary>, seed: u64) {
    let mut random = Random(seed);
    let mut matcher = matcher(language, vocabulary, Segmentation::Any);
    let mut accepted = Vec::new();
    for _ in 0..12 {
        let state = read_tokens(language, vocabulary, &accepted);
        let mask = tokens_of(&mut matcher);
        assert_eq!(mask, naive_mask(language, state, vocabulary).0);
        let token = random.choose(&mask);
        matcher.accept(token).unwrap();
        if matcher.is_finished() {
            matcher.reset();
            accepted.clear();
        } else {
            accepted.push(token);
        }
    }
}

#[test]
fn on_the_vocabulary_of_qwen_masks_equal_trying_every_token() {
    let Some(vocabulary) = qwen() else { return };
    assert_eq!(vocabulary.end_of_turn(), [151_643, 151_645]);
    assert!(vocabulary.missing_bytes().is_empty());
    check(&JsonString { max_chars: 40 }, &vocabulary, 1);
    check(&record(), &vocabulary, 2);
    check(&Number, &vocabulary, 3);
}
