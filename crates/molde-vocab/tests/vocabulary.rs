//! `Vocabulary` and `TokenTrie` against the list of texts they were built from.

mod common;

use std::sync::Arc;

use common::Random;
use molde_vocab::TokenEntry::{self, Control, Text, Unused};
use molde_vocab::{Segmenter, TokenId, TrieVisitor, Vocabulary, VocabularyError};

/// A set of texts as a recognizer: the state is the text so far, cut off where it no longer is a
/// prefix of `target`, and every token met is recorded.
struct PrefixesOf<'a> {
    target: &'a [u8],
    entered: usize,
    found: Vec<(TokenId, usize)>,
}

impl TrieVisitor for PrefixesOf<'_> {
    type State = usize;

    fn enter(&mut self, state: usize, byte: u8) -> Option<usize> {
        self.entered += 1;
        (self.target.get(state) == Some(&byte)).then_some(state + 1)
    }

    fn token(&mut self, token: TokenId, state: usize) {
        self.found.push((token, state));
    }
}

/// Lets every text pass and records in which order they come.
#[derive(Default)]
struct Everything(Vec<(TokenId, u64)>);

impl TrieVisitor for Everything {
    type State = u64;

    fn enter(&mut self, state: u64, byte: u8) -> Option<u64> {
        Some(hash(state, byte))
    }

    fn token(&mut self, token: TokenId, state: u64) {
        self.0.push((token, state));
    }
}

fn hash(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
}

fn random_texts(random: &mut Random, count: usize, alphabet: usize) -> Vec<Vec<u8>> {
    let mut text = || {
        let len = random.below(7);
        (0..len).map(|_| b'a' + random.below(alphabet) as u8).collect()
    };
    (0..count).map(|_| text()).collect()
}

#[test]
fn a_walk_meets_every_non_empty_text_once_with_its_own_bytes_in_byte_order() {
    let mut random = Random(1);
    for count in [0, 1, 5, 300, 5000] {
        let texts = random_texts(&mut random, count, 4);
        let vocabulary = Vocabulary::new(texts.iter().map(Text), [], None).unwrap();
        let mut visitor = Everything::default();
        vocabulary.trie().walk(&mut visitor, 7, &mut Vec::new());

        let mut expected: Vec<(&[u8], TokenId)> = texts
            .iter()
            .zip(0..)
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, token)| (text.as_slice(), token))
            .collect();
        expected.sort_unstable();
        let expected: Vec<_> = expected
            .iter()
            .map(|(text, token)| (*token, text.iter().fold(7, |state, &b| hash(state, b))))
            .collect();
        assert!(visitor.0 == expected, "{count} texts");
    }
}

#[test]
fn a_rejected_byte_skips_its_subtree_and_nothing_else() {
    let mut random = Random(2);
    for _ in 0..200 {
        let texts = random_texts(&mut random, 60, 3);
        let target = random_texts(&mut random, 1, 3).remove(0);
        let vocabulary = Vocabulary::new(texts.iter().map(Text), [], None).unwrap();
        let mut visitor = PrefixesOf { target: &target, entered: 0, found: Vec::new() };
        vocabulary.trie().walk(&mut visitor, 0, &mut Vec::new());

        let mut expected: Vec<_> = texts
            .iter()
            .zip(0..)
            .filter(|(text, _)| !text.is_empty() && target.starts_with(text))
            .map(|(text, token)| (token, text.len()))
            .collect();
        expected.sort_unstable_by_key(|&(token, len)| (len, token));
        assert_eq!(visitor.found, expected);
        // At most the three children of every prefix of the target.
        assert!(visitor.entered <= 3 * (target.len() + 1), "{} nodes entered", visitor.entered);

        expected.dedup_by_key(|&mut (_, len)| len);
        let prefixes: Vec<_> =
            vocabulary.trie().prefixes(&target).map(|(len, token)| (token, len)).collect();
        assert_eq!(prefixes, expected);
    }
}

#[test]
fn ids_and_bytes_are_kept_for_text_control_and_unused_entries() {
    let entries = [Text("ab"), Control, Text(""), Unused, Text("ab"), Control];
    let vocabulary = Vocabulary::new(entries, [5, 1, 5], None).unwrap();
    assert_eq!(vocabulary.len(), 6);
    let bytes: Vec<_> = (0..7).map(|token| vocabulary.token_bytes(token)).collect();
    assert_eq!(bytes, [Some(&b"ab"[..]), None, Some(b""), None, Some(b"ab"), None, None]);
    assert_eq!(vocabulary.end_of_turn(), [1, 5]);
    assert_eq!((0..8).filter(|&t| vocabulary.is_control(t)).collect::<Vec<_>>(), [1, 5]);
    assert_eq!((0..8).filter(|&t| vocabulary.is_end_of_turn(t)).collect::<Vec<_>>(), [1, 5]);
    assert_eq!((vocabulary.trie().len(), vocabulary.trie().max_depth()), (2, 2));
    assert!(vocabulary.segmenter().is_none());
}

#[test]
fn a_segmenter_can_be_a_closure() {
    let bytes = |text: &str| text.bytes().map(TokenId::from).collect();
    let segmenter: Arc<dyn Segmenter> = Arc::new(bytes);
    let vocabulary = Vocabulary::new((0..=255u8).map(|b| Text([b])), [], Some(segmenter)).unwrap();
    assert_eq!(vocabulary.segmenter().unwrap().segment("é"), [0xC3, 0xA9]);
    assert!(vocabulary.missing_bytes().is_empty());
}

#[test]
fn missing_bytes_are_those_that_no_token_spells_alone() {
    let texts = (0..=255u8).filter(|b| ![0, b'x', 255].contains(b)).map(|b| vec![b]);
    let texts = texts.chain([b"xx".to_vec()]).map(Text);
    assert_eq!(Vocabulary::new(texts, [], None).unwrap().missing_bytes(), [0, b'x', 255]);
}

#[test]
fn what_makes_no_vocabulary_is_an_error_with_numbers() {
    let error = |entries: Vec<TokenEntry>, end_of_turn: &[TokenId]| {
        Vocabulary::new(entries, end_of_turn.iter().copied(), None).unwrap_err()
    };
    assert_eq!(
        error(vec![Control], &[0, 1]),
        VocabularyError::EndOfTurnUnknown { token: 1, vocabulary_len: 1 }
    );
    assert_eq!(
        error(vec![Control, Text(b"<end>".to_vec())], &[1]),
        VocabularyError::EndOfTurnNotControl { token: 1 }
    );
    assert_eq!(error(vec![Unused], &[0]), VocabularyError::EndOfTurnNotControl { token: 0 });
    assert_eq!(
        error(vec![Text(vec![b' '; 1023]), Text(vec![b' '; 1024])], &[]),
        VocabularyError::TokenTooLong { token: 1, bytes: 1024, max: 1023 }
    );
    let many = (0..1u32 << 24).map(|_| TokenEntry::<Vec<u8>>::Unused);
    assert_eq!(
        Vocabulary::new(many, [], None).unwrap_err(),
        VocabularyError::TooManyTokens { max: (1 << 24) - 1 }
    );
    // 5,000 texts of 1,000 bytes that share nothing.
    let long = (0..5000u32).map(|i| Text([i.to_be_bytes().to_vec(), vec![b' '; 996]].concat()));
    assert!(matches!(
        Vocabulary::new(long, [], None).unwrap_err(),
        VocabularyError::TrieTooLarge { nodes, max: 4_194_303 } if nodes > 4_194_303
    ));
}
