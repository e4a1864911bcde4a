//! The tokenizer against the tokenizers library's own loader, and user text against control
//! tokens.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;

use std::process::Command;

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{TextStream, Tokenizer};
use support::Random;

/// The tiny tokenizer from a GGUF file and from a folder, and the library's reading of the latter.
fn three_ways() -> (Tokenizer, Tokenizer, tokenizers::Tokenizer) {
    let folder = tempfile::tempdir().unwrap();
    let gguf = folder.path().join("tiny.gguf");
    TinyModel::default().write_gguf(&gguf, TinyDtype::Q8_0).unwrap();
    TinyModel::default().write_folder(folder.path(), TinyDtype::BF16, 1).unwrap();
    let json = folder.path().join("tokenizer.json");
    (
        Tokenizer::load(&gguf).unwrap(),
        Tokenizer::load(folder.path()).unwrap(),
        tokenizers::Tokenizer::from_file(json).unwrap(),
    )
}

fn assert_agree(ours: &Tokenizer, library: &tokenizers::Tokenizer, text: &str) {
    let expected = library.encode(text, false).unwrap();
    assert_eq!(ours.encode_with_control(text).unwrap(), expected.get_ids(), "{text:?}");
    let decoded = library.decode(expected.get_ids(), false).unwrap();
    // The library shows control tokens, this crate does not: compare where there are none.
    let plain = ours.encode_text(text).unwrap();
    if plain == expected.get_ids() {
        assert_eq!(ours.decode(&plain), decoded, "{text:?}");
    }
}

#[test]
fn gguf_and_json_tokenizers_agree_with_the_library() {
    let (gguf, folder, library) = three_ways();
    let mut random = Random(1);
    for round in 0..3000 {
        let text = match round % 2 {
            0 => random.text(round % 12),
            _ => random.hostile_text(round % 12),
        };
        assert_agree(&gguf, &library, &text);
        assert_eq!(gguf.encode_text(&text).unwrap(), folder.encode_text(&text).unwrap());
    }
    let (a, b) = (gguf.vocabulary(), folder.vocabulary());
    assert_eq!(a.len(), b.len());
    assert_eq!(a.end_of_turn(), b.end_of_turn());
    assert!((0..a.len() as u32).all(|id| a.token_bytes(id) == b.token_bytes(id)));
}

#[test]
fn user_text_never_becomes_a_control_token_and_comes_back_whole() {
    let (tokenizer, _, library) = three_ways();
    let vocabulary = tokenizer.vocabulary();
    let mut random = Random(2);
    let mut with_markers = 0;
    for round in 0..3000 {
        let text = random.hostile_text(1 + round % 10);
        let ids = tokenizer.encode_text(&text).unwrap();
        assert!(ids.iter().all(|&id| vocabulary.token_bytes(id).is_some()), "{text:?}");
        let normalized = library.get_normalizer().map(|normalizer| {
            let mut normalized = tokenizers::NormalizedString::from(text.as_str());
            tokenizers::Normalizer::normalize(normalizer, &mut normalized).unwrap();
            normalized.get().to_owned()
        });
        assert_eq!(tokenizer.decode(&ids), normalized.unwrap());
        with_markers += usize::from(tokenizer.encode_with_control(&text).unwrap() != ids);
    }
    assert!(with_markers > 1000, "the texts must contain markers: {with_markers}");
}

#[test]
fn control_tokens_have_ids_but_no_bytes() {
    let (tokenizer, ..) = three_ways();
    let vocabulary = tokenizer.vocabulary();
    for spelling in ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"] {
        let id = tokenizer.control_token(spelling).unwrap();
        assert!(vocabulary.is_control(id) && vocabulary.token_bytes(id).is_none());
        assert_eq!(tokenizer.encode_with_control(spelling).unwrap(), [id]);
        assert_eq!(tokenizer.decode(&[id]), "");
    }
    let end = ["<|im_end|>", "<|endoftext|>"].map(|s| tokenizer.control_token(s).unwrap());
    assert!(end.iter().all(|&id| vocabulary.is_end_of_turn(id)));
    assert_eq!(vocabulary.end_of_turn().len(), 2);
    assert!(vocabulary.missing_bytes().is_empty());
    assert_eq!(
        vocabulary.segmenter().unwrap().segment("{\"name\": 1}"),
        tokenizer.encode_text("{\"name\": 1}").unwrap()
    );
}

#[test]
fn streamed_text_is_the_whole_text_wherever_it_is_cut() {
    let text = "año 日本 🎉 e\u{301} fin".as_bytes();
    // Whole, cut in pieces of every size, and with damage in the middle and at the end.
    let damaged = [b"a\xF0\x9F".as_slice(), b"b\xC3".as_slice()].concat();
    for bytes in [text, &damaged, b"\xFF\xFE", b"", b"\xE6\x97"] {
        for size in 1..=bytes.len().max(1) {
            let mut stream = TextStream::new();
            let mut streamed = String::new();
            for piece in bytes.chunks(size) {
                let text = stream.push(piece);
                assert!(!text.contains('\u{FFFD}') || String::from_utf8(bytes.to_vec()).is_err());
                streamed.push_str(&text);
            }
            streamed.push_str(&stream.finish());
            assert_eq!(streamed, String::from_utf8_lossy(bytes), "pieces of {size}");
        }
    }
}

#[test]
fn a_document_of_a_million_spaces_or_letters_is_encoded_whole() {
    let (tokenizer, ..) = three_ways();
    for text in [" ".repeat(300_000) + "x", "a".repeat(300_000), "\n ".repeat(100_000)] {
        let ids = tokenizer.encode_text(&text).unwrap();
        assert!(tokenizer.decode(&ids) == text);
    }
}

#[test]
fn the_real_tokenizer_from_gguf_agrees_with_its_tokenizer_json() {
    let Some(archive) = support::shared("data/qwen2.5-tokenizer.json.gz") else { return };
    let Some(gguf) = support::real_model() else { return };
    let Ok(unpacked) = Command::new("gzip").arg("-dc").arg(&archive).output() else {
        println!("skipped: there is no gzip");
        return;
    };
    assert!(unpacked.status.success());
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("tokenizer.json");
    std::fs::write(&json, &unpacked.stdout).unwrap();
    let from_gguf = Tokenizer::load(&gguf).unwrap();
    let from_json = Tokenizer::load(&json).unwrap();
    let library = tokenizers::Tokenizer::from_bytes(&unpacked.stdout).unwrap();
    assert_eq!(from_gguf.vocabulary().len(), 151_665);
    let (a, b) = (from_gguf.vocabulary(), from_json.vocabulary());
    assert_eq!(a.len(), b.len());
    assert!((0..a.len() as u32).all(|id| {
        a.token_bytes(id) == b.token_bytes(id) && a.is_control(id) == b.is_control(id)
    }));
    let mut random = Random(3);
    for round in 0..2000 {
        let text = random.hostile_text(round % 15);
        assert_agree(&from_gguf, &library, &text);
    }
}
