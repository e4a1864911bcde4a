//! The automata against naive oracles: membership by walking the unminimized automaton, sets of
//! words, lengths by enumeration.

use std::collections::BTreeSet;

use super::*;

/// A small deterministic generator (xorshift), so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

const LIMITS: fn() -> DfaLimits = DfaLimits::default;

/// A random automaton over the characters a, b, c and é, of at most `size` states.
fn random_raw(random: &mut Random, size: usize) -> (RawDfa, u32) {
    let n = 1 + random.below(size);
    let mut raw = RawDfa::new();
    // Each character state is followed by a state inside é, so that lengths in bytes differ from
    // lengths in characters.
    for state in 0..n as u32 {
        raw.push_state(random.below(3) == 0, &LIMITS()).expect("small");
        for byte in [b'a', b'b', b'c'] {
            let target = random.below(2 * n) as u32;
            if target < n as u32 {
                raw.push_transition(byte, byte, 1 + 2 * target);
            }
        }
        raw.push_transition(0xC3, 0xC3, 2 + 2 * state);
        raw.push_state(false, &LIMITS()).expect("small");
        let target = random.below(2 * n) as u32;
        if target < n as u32 {
            raw.push_transition(0xA9, 0xA9, 1 + 2 * target);
        }
    }
    (raw, 1)
}

fn walk(raw: &RawDfa, start: u32, word: &str) -> bool {
    let mut state = start;
    for byte in word.bytes() {
        state = raw
            .transitions(state)
            .iter()
            .find(|t| (t.lo..=t.hi).contains(&byte))
            .map_or(0, |t| t.target);
    }
    raw.accepting[state as usize]
}

fn all_words(max_chars: usize) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut from = 0;
    for _ in 0..max_chars {
        let to = words.len();
        for i in from..to {
            for c in ['a', 'b', 'c', 'é'] {
                words.push(format!("{}{c}", words[i]));
            }
        }
        from = to;
    }
    words
}

fn assert_invariants(dfa: &Dfa) {
    assert_eq!(dfa.transitions(0), []);
    for state in 1..dfa.states() as u32 {
        assert!(dfa.shortest_len(state) != u32::MAX, "co-accessible");
        let end = dfa.step_all(state, &dfa.shortest(state));
        assert!(dfa.is_accepting(end));
        for pair in dfa.transitions(state).windows(2) {
            assert!(pair[0].hi < pair[1].lo);
            assert!(pair[0].target != pair[1].target || pair[0].hi + 1 < pair[1].lo);
        }
        assert!(dfa.transitions(state).iter().all(|t| t.target != 0));
    }
    // Distinct states are distinguishable: no refinement by acceptance and successors merges two.
    let mut class: Vec<usize> = dfa.accepting.iter().map(|&a| usize::from(a)).collect();
    loop {
        let signatures: Vec<_> = (0..dfa.states() as u32)
            .map(|s| {
                let next: Vec<usize> = (0..=255).map(|b| class[dfa.step(s, b) as usize]).collect();
                (class[s as usize], next)
            })
            .collect();
        let distinct: BTreeSet<_> = signatures.iter().collect();
        let order: Vec<_> = distinct.iter().collect();
        let refined: Vec<usize> = signatures
            .iter()
            .map(|s| order.iter().position(|o| **o == s).expect("present"))
            .collect();
        let before = class.iter().collect::<BTreeSet<_>>().len();
        class = refined;
        if order.len() == before {
            break;
        }
    }
    let classes = class.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(classes, dfa.states(), "minimal");
}

#[test]
fn minimization_keeps_the_language_and_is_minimal() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let words = all_words(6);
    for _ in 0..150 {
        let (raw, start) = random_raw(&mut random, 7);
        let dfa = minimize(&raw, start, &LIMITS()).expect("small");
        assert_invariants(&dfa);
        for word in &words {
            assert_eq!(dfa.accepts(word), walk(&raw, start, word), "{word:?}");
        }
    }
}

#[test]
fn boolean_operations_are_those_of_sets() {
    let mut random = Random(42);
    let words = all_words(5);
    for _ in 0..100 {
        let (raw, start) = random_raw(&mut random, 5);
        let a = minimize(&raw, start, &LIMITS()).expect("small");
        let (raw, start) = random_raw(&mut random, 5);
        let b = minimize(&raw, start, &LIMITS()).expect("small");
        let and = a.intersect(&b, &LIMITS()).expect("small");
        let or = a.union(&b, &LIMITS()).expect("small");
        let minus = a.difference(&b, &LIMITS()).expect("small");
        let not = a.complement(&LIMITS()).expect("small");
        for word in &words {
            let (in_a, in_b) = (a.accepts(word), b.accepts(word));
            assert_eq!(and.accepts(word), in_a && in_b);
            assert_eq!(or.accepts(word), in_a || in_b);
            assert_eq!(minus.accepts(word), in_a && !in_b);
            assert_eq!(not.accepts(word), !in_a);
        }
        for dfa in [&and, &or, &minus, &not] {
            assert_invariants(dfa);
        }
        // Laws that equality of automata must make equalities of values.
        assert_eq!(not.complement(&LIMITS()).expect("small"), a);
        assert_eq!(
            minus,
            a.intersect(&b.complement(&LIMITS()).expect("small"), &LIMITS()).expect("small")
        );
        assert!(a.union(&not, &LIMITS()).expect("small").is_universal());
        assert!(a.intersect(&not, &LIMITS()).expect("small").is_empty());
    }
}

#[test]
fn any_string_is_exactly_valid_utf8() {
    let any = Dfa::any_string();
    assert!(any.is_universal());
    assert_invariants(&any);
    let edges = [0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF];
    let leads = [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF];
    let bytes: Vec<u8> = edges.into_iter().chain(leads).collect();
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..4 {
        let to = words.len();
        for i in from..to {
            // Longer words only behind a lead byte: all others are decided by shorter ones.
            if words[i].first().is_none_or(|&first| words[i].len() < 2 || first >= 0xE0) {
                for &byte in &bytes {
                    let mut word = words[i].clone();
                    word.push(byte);
                    words.push(word);
                }
            }
        }
        from = to;
    }
    assert!(words.len() > 100_000);
    for word in words {
        assert_eq!(any.accepts(&word), std::str::from_utf8(&word).is_ok(), "{word:x?}");
    }
}

#[test]
fn a_set_of_words_is_accepted_exactly() {
    let mut random = Random(7);
    for _ in 0..100 {
        let all = all_words(4);
        let words: BTreeSet<&String> =
            (0..random.below(40)).map(|_| &all[random.below(all.len())]).collect();
        let dfa = Dfa::from_words(&words, &LIMITS()).expect("small");
        assert_invariants(&dfa);
        for word in &all {
            assert_eq!(dfa.accepts(word), words.contains(word), "{word:?}");
        }
        assert_eq!(dfa.count_up_to(1000), words.len() as u64);
        assert_eq!(dfa.count_up_to(5), words.len().min(5) as u64);
        assert_eq!(
            u64::from(dfa.shortest_len(dfa.start())),
            words.iter().map(|w| w.len() as u64).min().unwrap_or(u64::from(u32::MAX))
        );
    }
    assert_eq!(Dfa::any_string().count_up_to(1 << 40), 1 << 40, "no end");
    assert_eq!(Dfa::literal("día").shortest(1), "día".as_bytes());
    assert!(Dfa::from_words([""; 2], &LIMITS()).expect("small").accepts(""));
}

#[test]
fn a_hundred_thousand_words_stay_small() {
    let mut random = Random(99);
    let words: Vec<String> = (0..100_000)
        .map(|i| format!("item-{:08x}-{i:06}", random.below(usize::MAX) as u32))
        .collect();
    let bytes: usize = words.iter().map(String::len).sum();
    let dfa = Dfa::from_words(&words, &LIMITS()).expect("proportional to its words");
    assert!(words.iter().all(|word| dfa.accepts(word)));
    assert!(!dfa.accepts("item-0"));
    assert_eq!(dfa.count_up_to(u64::MAX), 100_000);
    assert!(dfa.memory_usage() < 24 * bytes, "{} for {bytes}", dfa.memory_usage());
}

#[test]
fn a_long_word_needs_no_stack() {
    let word = "x".repeat(300_000);
    let dfa = Dfa::literal(&word);
    assert!(dfa.accepts(&word));
    assert_eq!(dfa.shortest(dfa.start()), word.as_bytes());
    let lengths = Lengths::new(&dfa, Some(400_000), &LIMITS()).expect("one length a state");
    assert_eq!(lengths.min(1), Some(300_000));
    assert_eq!(lengths.max(1), Some(300_000));
}

#[test]
fn the_shortest_word_prefers_what_people_write() {
    let any_but_empty = Dfa::any_string().difference(&Dfa::literal(""), &LIMITS()).expect("small");
    assert_eq!(any_but_empty.shortest(1), b"a");
    let symbols = Dfa::from_words(["\u{1}", "\"", "\\", "#", "7", "Q"], &LIMITS()).expect("small");
    assert_eq!(symbols.shortest(1), b"7");
}

/// Attainable lengths up to `cap` of every state, by iterating the definition.
fn naive_lengths(dfa: &Dfa, cap: usize) -> Vec<BTreeSet<usize>> {
    let mut sets = vec![BTreeSet::new(); dfa.states()];
    loop {
        let mut changed = false;
        for state in 1..dfa.states() as u32 {
            let mut lengths = BTreeSet::new();
            if dfa.is_accepting(state) {
                lengths.insert(0);
            }
            for t in dfa.transitions(state) {
                let step = usize::from(t.lo < 0x80 || t.lo >= 0xC0);
                lengths
                    .extend(sets[t.target as usize].iter().map(|n| n + step).filter(|&n| n <= cap));
            }
            changed |= lengths != sets[state as usize];
            sets[state as usize] = lengths;
        }
        if !changed {
            return sets;
        }
    }
}

#[test]
fn attainable_lengths_agree_with_enumeration() {
    let mut random = Random(2024);
    for round in 0..300 {
        let (raw, start) = random_raw(&mut random, if round % 2 == 0 { 4 } else { 12 });
        let dfa = minimize(&raw, start, &LIMITS()).expect("small");
        let cap = 30;
        let lengths = Lengths::new(&dfa, Some(cap as u64), &LIMITS()).expect("small");
        let naive = naive_lengths(&dfa, cap + 60);
        for (state, naive) in naive.iter().enumerate() {
            for least in 0..=cap {
                for most in 0..=cap {
                    assert_eq!(
                        lengths.reachable(state as u32, least as u64, Some(most as u64)),
                        naive.iter().any(|n| (least..=most).contains(n)),
                        "state {state} of {dfa:?}, {least}..={most}"
                    );
                }
                assert_eq!(
                    lengths.reachable(state as u32, least as u64, None),
                    naive.iter().any(|&n| n >= least)
                );
            }
        }
    }
}

#[test]
fn periodic_lengths_are_answered_at_any_size() {
    // (ab)*: even lengths.
    let mut raw = RawDfa::new();
    raw.push_state(true, &LIMITS()).expect("small");
    raw.push_transition(b'a', b'a', 2);
    raw.push_state(false, &LIMITS()).expect("small");
    raw.push_transition(b'b', b'b', 1);
    let dfa = minimize(&raw, 1, &LIMITS()).expect("small");
    let lengths = Lengths::new(&dfa, Some(1_000_000_000), &LIMITS()).expect("two rows");
    assert!(lengths.reachable(1, 999_999_998, Some(999_999_998)));
    assert!(!lengths.reachable(1, 999_999_999, Some(999_999_999)));
    assert!(lengths.reachable(1, 999_999_999, Some(1_000_000_000)));
    assert!(lengths.memory_usage() < 1000);
}

#[test]
fn every_limit_is_an_error_that_names_it() {
    let few = DfaLimits { max_states: 10, ..DfaLimits::default() };
    let a = Dfa::from_words(["abcdefgh", "bcdefghi"], &LIMITS()).expect("small");
    let b = a.complement(&few);
    assert_eq!(b, Err(DfaError::States { limit: 10 }));
    let few = DfaLimits { max_transitions: 100, ..DfaLimits::default() };
    let words: Vec<String> = (0..10_000).map(|i| format!("{i}-{}", i * 7919 % 10_007)).collect();
    assert_eq!(Dfa::from_words(words, &few), Err(DfaError::Transitions { limit: 100 }));
    // Lengths 0, 7, 11, 14, ... of coprime cycles repeat late, so the rows must fit.
    let mut raw = RawDfa::new();
    for state in 1..=30u32 {
        raw.push_state(state == 1, &LIMITS()).expect("small");
        raw.push_transition(b'a', b'a', if state == 30 { 1 } else { state + 1 });
        if state == 17 {
            raw.push_transition(b'b', b'b', 1);
        }
    }
    let dfa = minimize(&raw, 1, &LIMITS()).expect("small");
    let tight = DfaLimits { max_length_table_bytes: 100, ..DfaLimits::default() };
    assert_eq!(
        Lengths::new(&dfa, Some(1000), &tight).map(|_| ()),
        Err(DfaError::LengthTable { limit: 100 })
    );
    assert!(Lengths::new(&dfa, Some(1000), &LIMITS()).is_ok());
    assert!(Lengths::new(&dfa, None, &tight).is_ok());
}

#[test]
fn fewer_bytes_than_are_sure_are_never_dead() {
    let limits = DfaLimits::default();
    for (pattern, expected) in [
        ("foo", u32::MAX),
        ("^foo", 1),
        ("^(foo|[^f].*)?", u32::MAX),
        ("^(foo|[^f])", 2),
        ("^[^é]*$", 2),
        ("é$", u32::MAX),
        ("^[\\u0000-\\u07ff\\u0900-\\u{10ffff}]*", u32::MAX),
        ("^[\\u0000-\\u07ff\\u0900-\\u{10ffff}]*$", 2),
        ("^(\\S+\\s+){0,3}\\S+$|^$", 1),
        ("^x|^[\\s\\S]{0,9}$", 10),
    ] {
        let dfa = crate::pattern::compile_dfa(pattern, &limits).unwrap();
        let sure = dfa.sure_bytes();
        assert_eq!(sure[dfa.start() as usize], expected, "{pattern}");
        // By definition: over random strings, from every state between two characters.
        let characters = ["a", "f", "o", " ", "\u{7ff}", "\u{800}", "é", "\u{d7ff}", "😀", "\n"];
        let mut random = Random(5);
        for state in 1..dfa.states() as u32 {
            for _ in 0..50 {
                let count = random.below(14);
                let text: String =
                    (0..count).map(|_| characters[random.below(characters.len())]).collect();
                let bytes = sure[state as usize] as usize;
                if text.len() < bytes {
                    assert_ne!(dfa.step_all(state, text.as_bytes()), Dfa::DEAD, "{pattern} {text}");
                }
            }
        }
    }
}

#[test]
fn bytes_loop_where_no_character_that_they_begin_changes_the_state() {
    let limits = DfaLimits::default();
    for pattern in ["^[^/]*$", "^\\S*$", "^.*$", "^[^é]*$", "^a*$", "^(..)*$", "^[a-zé日]*x?$"] {
        let dfa = crate::pattern::compile_dfa(pattern, &limits).unwrap();
        for state in 1..dfa.states() as u32 {
            let inside = dfa.transitions(state).first().is_some_and(|t| t.lo & 0xC0 == 0x80);
            if inside {
                continue;
            }
            let bits = dfa.looping_bytes(state);
            let mut expected = [u64::MAX; 4];
            for byte in (0x80..0xC2).chain(0xF5..=0xFF) {
                expected[byte / 64] &= !(1 << (byte % 64));
            }
            for character in '\0'..=char::MAX {
                let mut buffer = [0; 4];
                let text = character.encode_utf8(&mut buffer).as_bytes();
                if dfa.step_all(state, text) != state {
                    expected[text[0] as usize / 64] &= !(1 << (text[0] % 64));
                }
            }
            assert_eq!(bits, expected, "{pattern} {state}");
        }
    }
}
