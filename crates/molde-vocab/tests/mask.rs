//! `TokenMask` against an ordered set.

mod common;

use std::collections::BTreeSet;

use common::Random;
use molde_vocab::{FEW_TOKENS, MaskKind, TokenId, TokenMask};

fn check(mask: &TokenMask, expected: &BTreeSet<TokenId>) {
    let list: Vec<TokenId> = expected.iter().copied().collect();
    assert_eq!(mask.iter().collect::<Vec<_>>(), list);
    assert_eq!(mask.len(), list.len());
    assert_eq!(mask.is_empty(), list.is_empty());
    let all = mask.vocabulary_len() as TokenId;
    assert!((0..all + 100).all(|token| mask.contains(token) == expected.contains(&token)));
    match mask.kind() {
        MaskKind::Empty => assert!(list.is_empty()),
        MaskKind::Forced(token) => assert_eq!(list, [token]),
        MaskKind::Few(few) => {
            assert_eq!(few, list);
            assert!((2..=FEW_TOKENS).contains(&few.len()));
        }
        MaskKind::Many => assert!(list.len() > FEW_TOKENS),
    }
    assert_eq!(mask.forced().is_some(), list.len() == 1);
    assert_eq!(mask.words().is_some(), list.len() > FEW_TOKENS);
    assert_eq!(*mask, TokenMask::from_tokens(mask.vocabulary_len(), list.iter().rev().copied()));
    let mut words = vec![0; mask.vocabulary_len().div_ceil(64)];
    mask.write_into(&mut words);
    assert_eq!(*mask, TokenMask::from_words(mask.vocabulary_len(), &words));
}

#[test]
fn insertions_and_removals_agree_with_a_set_across_the_few_threshold() {
    let mut random = Random(1);
    for vocabulary_len in [1, 63, 64, 65, 3000] {
        let mut mask = TokenMask::new(vocabulary_len);
        let mut set = BTreeSet::new();
        for round in 0..8 {
            for _ in 0..vocabulary_len {
                let token = random.below(vocabulary_len) as TokenId;
                if round % 4 < 2 {
                    assert_eq!(mask.insert(token), set.insert(token));
                } else {
                    assert_eq!(mask.remove(token), set.remove(&token));
                }
            }
            check(&mask, &set);
        }
    }
}

#[test]
fn ids_outside_the_vocabulary_are_never_members() {
    let mut mask = TokenMask::new(70);
    assert!(!mask.insert(70));
    assert!(!mask.remove(1 << 30));
    check(&mask, &BTreeSet::new());
    check(&TokenMask::from_tokens(70, [69, 70, u32::MAX]), &BTreeSet::from([69]));
    check(&TokenMask::from_words(70, &[1, u64::MAX, 7]), &(64..70).chain([0]).collect());
    check(&TokenMask::from_words(70, &[1]), &BTreeSet::from([0]));
    check(&TokenMask::from_words(0, &[1]), &BTreeSet::new());
}

#[test]
fn union_holds_the_tokens_of_both() {
    let mut random = Random(2);
    for (a, b) in [(0, 0), (3, 4), (600, 600), (1, 2900), (2000, 2000)] {
        let mut draw =
            |n: usize| (0..n).map(|_| random.below(3000) as u32).collect::<BTreeSet<_>>();
        let (a, b) = (draw(a), draw(b));
        let mut mask = TokenMask::from_tokens(3000, a.iter().copied());
        mask.union(&TokenMask::from_tokens(3000, b.iter().copied()));
        check(&mask, &(&a | &b));
    }
}

#[test]
fn apply_leaves_exactly_the_logits_of_the_set() {
    let mut random = Random(3);
    for members in [0, 1, 5, 1024, 1025, 2900] {
        let set: BTreeSet<_> = (0..members).map(|_| random.below(3000) as u32).collect();
        let mask = TokenMask::from_tokens(3000, set.iter().copied());
        for logit_count in [0, 10, 64, 2999, 3000, 3100] {
            let mut logits: Vec<f32> = (0..logit_count).map(|i| i as f32).collect();
            mask.apply(&mut logits);
            for (i, logit) in logits.iter().enumerate() {
                let expected = if set.contains(&(i as u32)) { i as f32 } else { f32::NEG_INFINITY };
                assert_eq!(logit.to_bits(), expected.to_bits(), "{members} members, logit {i}");
            }
        }
    }
}
