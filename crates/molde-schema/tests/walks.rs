//! Random texts: whatever the automaton lets through is valid.

mod support;

use molde_schema::{DEAD, SchemaAutomaton, UNDECIDED};
use support::{Random, cases, compile, validator};

/// Walks at random, preferring bytes that end things the longer the text gets.
fn walk(automaton: &mut SchemaAutomaton, random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = automaton.start();
    while text.len() < bytes {
        let live: Vec<(u8, u32)> = (0..=u8::MAX)
            .map(|byte| (byte, automaton.step(state, byte)))
            .filter(|&(_, next)| next != DEAD && next != UNDECIDED)
            .collect();
        assert!(
            !live.is_empty() || automaton.is_accepting(state),
            "dead end after {}",
            String::from_utf8_lossy(&text)
        );
        let structural = live.iter().copied().filter(|(byte, _)| b"\",:[]{}0a".contains(byte));
        let structural: Vec<_> = structural.collect();
        let choice =
            if structural.is_empty() || random.below(3) == 0 { &live } else { &structural };
        if choice.is_empty() || automaton.is_accepting(state) && random.below(4) == 0 {
            break;
        }
        let (byte, next) = choice[random.below(choice.len())];
        text.push(byte);
        state = automaton.settle(next, &text);
    }
    let rest = automaton.completion(state);
    for byte in rest {
        state = automaton.step(state, byte);
        text.push(byte);
        state = automaton.settle(state, &text);
    }
    assert!(automaton.is_accepting(state), "incomplete: {}", String::from_utf8_lossy(&text));
    text
}

/// Whether the validator, which computes with floats, can judge the numbers of a text: integers of
/// more than 15 digits lose some.
fn judged(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).all(|digits| digits.len() <= 15)
}

#[test]
fn random_walks_end_in_valid_texts() {
    let mut random = Random(7);
    for case in cases() {
        let schema = compile(&case.schema, &case.options);
        let validator = validator(&case.schema);
        let mut automaton = SchemaAutomaton::new(&schema);
        for _ in 0..60 {
            let bytes = 1 + random.below(80);
            let text = walk(&mut automaton, &mut random, bytes);
            let text = String::from_utf8(text).expect("UTF-8");
            let value: serde_json::Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}: {text}", case.name));
            if judged(&text) {
                assert!(validator.is_valid(&value), "{}: {text}", case.name);
            }
        }
    }
}
