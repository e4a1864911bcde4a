//! The list of choices against the list.

use molde_constraint::{Choices, ChoicesError};
use molde_vocab::{ByteAutomaton, StateId};

use crate::walk::Random;

fn check(texts: &[Vec<u8>]) {
    let mut choices = Choices::new(texts).unwrap();
    // Every prefix of every text, and each of them with one byte more.
    for text in texts {
        for len in 0..=text.len() {
            let prefix = &text[..len];
            let start = choices.start();
            let state = prefix.iter().fold(start, |state, &byte| choices.step(state, byte));
            let rests: Vec<&[u8]> =
                texts.iter().filter_map(|text| text.strip_prefix(prefix)).collect();
            assert!(state.is_live());
            assert_eq!(choices.is_accepting(state), rests.contains(&&b""[..]));
            let mut next: Vec<u8> = rests.iter().filter_map(|rest| rest.first().copied()).collect();
            next.sort_unstable();
            next.dedup();
            for byte in 0..=255 {
                let after = choices.step(state, byte);
                assert_eq!(after.is_live(), next.contains(&byte));
                assert_ne!(after, StateId::UNDECIDED);
            }
            let forced = (next.len() == 1 && !rests.contains(&&b""[..])).then(|| next[0]);
            assert_eq!(choices.forced_byte(state), forced);
            let completion = choices.completion(state);
            assert!(rests.contains(&completion.as_slice()));
            assert_eq!(Some(completion.len()), rests.iter().map(|rest| rest.len()).min());
        }
    }
}

#[test]
fn a_list_of_choices_accepts_its_texts_and_their_prefixes_only() {
    check(&[b"".to_vec()]);
    check(&[b"".to_vec(), b"a".to_vec()]);
    check(&["no", "none", "yes", "no", "año"].map(|text| text.as_bytes().to_vec()));
    let mut random = Random(1);
    for _ in 0..100 {
        let mut text = || (0..random.below(6)).map(|_| random.below(3) as u8 + 253).collect();
        let texts: Vec<Vec<u8>> = (0..10).map(|_| text()).collect();
        check(&texts);
    }
}

#[test]
fn an_empty_list_is_no_constraint() {
    assert_eq!(Choices::new::<&str>([]).unwrap_err(), ChoicesError::Empty);
}

#[test]
fn dead_and_undecided_states_lead_to_themselves_and_kept_states_keep_their_ids() {
    let mut choices = Choices::new(["ab", "ac"]).unwrap();
    for state in [StateId::DEAD, StateId::UNDECIDED] {
        assert_eq!(choices.step(state, b'a'), state);
        assert!(!choices.is_accepting(state));
    }
    let start = choices.start();
    let inside = choices.step(start, b'a');
    assert_eq!(choices.clear_cache(&[inside, start]), [inside, start]);
}

#[test]
fn a_hundred_thousand_choices_share_their_prefixes() {
    let texts: Vec<String> = (0..100_000).map(|i| format!("value-{i:06}")).collect();
    let mut choices = Choices::new(&texts).unwrap();
    let read = |choices: &mut Choices, text: &str| {
        let start = choices.start();
        text.bytes().fold(start, |state, byte| choices.step(state, byte))
    };
    for text in texts.iter().step_by(997) {
        let state = read(&mut choices, text);
        assert!(choices.is_accepting(state));
    }
    assert_eq!(read(&mut choices, "value-1000000"), StateId::DEAD);
    // 111,111 nodes of digits and 6 before: not 1,200,000.
    assert!(choices.memory_usage() < 4 << 20, "{} bytes", choices.memory_usage());
}
