//! All short texts, for many random constraints.

use num_bigint::BigInt;
use num_traits::Zero;

use crate::number::{Decimal, NumberAutomaton, NumberBound, NumberLimits, NumberSpec, NumberStyle};

/// Values are compared as multiples of `10^-SCALE`.
const SCALE: usize = 110;
const MAX_EXPONENT_DIGITS: u32 = 2;

fn limits() -> NumberLimits {
    NumberLimits { max_exponent_digits: MAX_EXPONENT_DIGITS, ..NumberLimits::default() }
}

/// `digits * 10^(exponent)` as a multiple of `10^-SCALE`, by appending zeros to the digits.
fn scaled(text: &str) -> BigInt {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().expect("an exponent");
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let zeros = SCALE as i64 + exponent - fraction.len() as i64;
    let zeros = usize::try_from(zeros).expect("the scale leaves room");
    format!("{integer}{fraction}{}", "0".repeat(zeros)).parse().expect("digits")
}

/// A constraint as strings, from which the automaton's and the oracle's forms are both made.
#[expect(clippy::struct_excessive_bools, reason = "the fields are those of `NumberSpec`")]
#[derive(Clone, Debug, Default)]
struct Case {
    integer_only: bool,
    not_integer: bool,
    draft4_integer: bool,
    not_draft4_integer: bool,
    minimum: Option<(&'static str, bool)>,
    maximum: Option<(&'static str, bool)>,
    multiple_of: Vec<&'static str>,
    not_multiple_of: Vec<&'static str>,
    excluded: Vec<&'static str>,
    one_of: Option<Vec<&'static str>>,
}

struct Oracle {
    case: Case,
    minimum: Option<(BigInt, bool)>,
    maximum: Option<(BigInt, bool)>,
    multiple_of: Vec<BigInt>,
    not_multiple_of: Vec<BigInt>,
    excluded: Vec<BigInt>,
    one_of: Option<Vec<BigInt>>,
}

impl Case {
    fn spec(&self) -> NumberSpec {
        let decimal =
            |text: &&str| Decimal::parse(text, &NumberLimits::default()).expect("a valid number");
        let all = |texts: &Vec<&str>| texts.iter().map(decimal).collect::<Vec<_>>();
        let bound =
            |(text, exclusive): (&str, bool)| NumberBound { value: decimal(&text), exclusive };
        NumberSpec {
            integer_only: self.integer_only,
            not_integer: self.not_integer,
            draft4_integer: self.draft4_integer,
            not_draft4_integer: self.not_draft4_integer,
            minimum: self.minimum.map(bound),
            maximum: self.maximum.map(bound),
            multiple_of: all(&self.multiple_of),
            not_multiple_of: all(&self.not_multiple_of),
            excluded: all(&self.excluded),
            one_of: self.one_of.as_ref().map(all),
        }
    }

    fn oracle(&self) -> Oracle {
        let all = |texts: &Vec<&str>| texts.iter().map(|text| scaled(text)).collect::<Vec<_>>();
        let mut multiple_of = all(&self.multiple_of);
        let mut not_multiple_of = all(&self.not_multiple_of);
        if self.integer_only {
            multiple_of.push(scaled("1"));
        }
        if self.not_integer {
            not_multiple_of.push(scaled("1"));
        }
        Oracle {
            case: self.clone(),
            minimum: self.minimum.map(|(text, exclusive)| (scaled(text), exclusive)),
            maximum: self.maximum.map(|(text, exclusive)| (scaled(text), exclusive)),
            multiple_of,
            not_multiple_of,
            excluded: all(&self.excluded),
            one_of: self.one_of.as_ref().map(all),
        }
    }
}

impl Oracle {
    fn accepts(&self, text: &str, value: &BigInt) -> bool {
        let bare = !text.contains(['.', 'e', 'E']);
        let multiple = |divisor: &BigInt| {
            if divisor.is_zero() { value.is_zero() } else { (value % divisor).is_zero() }
        };
        (bare || !self.case.draft4_integer)
            && !(bare && self.case.not_draft4_integer)
            && self.minimum.as_ref().is_none_or(|(bound, exclusive)| {
                if *exclusive { value > bound } else { value >= bound }
            })
            && self.maximum.as_ref().is_none_or(|(bound, exclusive)| {
                if *exclusive { value < bound } else { value <= bound }
            })
            && self.multiple_of.iter().all(multiple)
            && !self.not_multiple_of.iter().any(multiple)
            && !self.excluded.contains(value)
            && self.one_of.as_ref().is_none_or(|values| values.contains(value))
    }
}

/// Whether style `Plain` writes that text, which is a valid one and short.
fn is_plain(text: &str) -> bool {
    if text.contains(['e', 'E']) || text == "-0" {
        return false;
    }
    text.split_once('.').is_none_or(|(_, fraction)| fraction.bytes().any(|byte| byte != b'0'))
}

/// A prefix of a valid text.
struct Node {
    parent: usize,
    byte: u8,
    depth: usize,
    /// The text and its value, if it is a whole number.
    text: Option<(String, BigInt)>,
}

/// Every prefix of every valid text over an alphabet, parents first.
fn prefixes(alphabet: &[u8], length: usize) -> Vec<Node> {
    let mut nodes = vec![Node { parent: 0, byte: 0, depth: 0, text: None }];
    let mut texts = vec![String::new()];
    let mut at = 0;
    while at < nodes.len() {
        if nodes[at].depth < length {
            for byte in alphabet {
                let text = format!("{}{}", texts[at], *byte as char);
                if let Some(complete) = grammar(&text) {
                    let depth = nodes[at].depth + 1;
                    let whole = complete.then(|| (text.clone(), scaled(&text)));
                    nodes.push(Node { parent: at, byte: *byte, depth, text: whole });
                    texts.push(text);
                }
            }
        }
        at += 1;
    }
    nodes
}

/// `None` if no number begins so, else whether the text is one; exponents of up to two digits.
fn grammar(text: &str) -> Option<bool> {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (rest, None),
    };
    let (integer, fraction) = match number.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (number, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(integer) || (integer.len() > 1 && integer.starts_with('0')) {
        return None;
    }
    let mut complete = !integer.is_empty();
    if let Some(fraction) = fraction {
        if !complete || !digits(fraction) {
            return None;
        }
        complete = !fraction.is_empty();
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !complete || !digits(unsigned) || unsigned.len() > MAX_EXPONENT_DIGITS as usize {
            return None;
        }
        complete = !unsigned.is_empty();
    }
    Some(complete)
}

/// Checks one union of constraints in both styles; `exact` if the alphabet has every byte, so that shortest
/// completions can be compared too.
fn check(cases: &[Case], nodes: &[Node], length: usize, exact: bool) {
    let oracles: Vec<Oracle> = cases.iter().map(Case::oracle).collect();
    let accepts =
        |(text, value): &(String, BigInt)| oracles.iter().any(|oracle| oracle.accepts(text, value));
    let accepted: Vec<bool> =
        nodes.iter().map(|node| node.text.as_ref().is_some_and(accepts)).collect();
    for style in [NumberStyle::Any, NumberStyle::Plain] {
        check_style(cases, style, nodes, &accepted, exact.then_some(length));
    }
}

fn check_style(
    cases: &[Case],
    style: NumberStyle,
    nodes: &[Node],
    accepted: &[bool],
    exact_length: Option<usize>,
) {
    let specs: Vec<NumberSpec> = cases.iter().map(Case::spec).collect();
    let mut automaton = NumberAutomaton::new(&specs, style, &limits()).expect("within limits");
    let mut states = vec![automaton.start(); nodes.len()];
    let mut shortest = vec![usize::MAX; nodes.len()];
    for (id, node) in nodes.iter().enumerate().skip(1) {
        states[id] = automaton.step(states[node.parent], node.byte).unwrap_or(0);
        let accepting = automaton.is_accepting(states[id]);
        match &node.text {
            None => assert!(!accepting, "{cases:?}"),
            Some((text, _)) => {
                let expected = (style == NumberStyle::Any || is_plain(text)) && accepted[id];
                assert_eq!(accepting, expected, "{text} in {style:?} for {cases:?}");
                if expected {
                    shortest[id] = 0;
                }
            }
        }
    }
    for (id, node) in nodes.iter().enumerate().skip(1).rev() {
        shortest[node.parent] = shortest[node.parent].min(shortest[id].saturating_add(1));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (id, node) in nodes.iter().enumerate() {
        let state = states[id];
        if state == NumberAutomaton::DEAD {
            assert_eq!(shortest[id], usize::MAX);
            continue;
        }
        let text = automaton.shortest(state);
        if seen.insert(state) {
            let end = text.iter().try_fold(state, |state, byte| automaton.step(state, *byte));
            assert!(
                end.is_some_and(|end| automaton.is_accepting(end)),
                "{text:?} does not complete node {id} for {cases:?}"
            );
        }
        assert!(text.len() <= shortest[id], "{text:?}, not {} for {cases:?}", shortest[id]);
        if exact_length.is_some_and(|length| node.depth + text.len() <= length) {
            assert_eq!(text.len(), shortest[id], "{text:?} for {cases:?}");
        }
    }
}

/// A small deterministic generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some(&mut self, from: &[&'static str], most: usize) -> Vec<&'static str> {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.pick(from)).collect()
    }

    fn case(&mut self) -> Case {
        const BOUNDS: &[&str] = &[
            "0",
            "1",
            "-1",
            "5",
            "10",
            "12",
            "100",
            "999",
            "-7",
            "-10",
            "-250",
            "0.1",
            "0.5",
            "0.05",
            "0.055",
            "-0.5",
            "-0.05",
            "1.5",
            "9.99",
            "99.5",
            "12.345",
            "-12.5",
            "1e3",
            "1e12",
            "-1e-3",
            "1e-12",
            "11.1111111111",
            "1111",
            "0.99",
            "1.05e20",
            "5e-20",
        ];
        const DIVISORS: &[&str] = &[
            "1",
            "2",
            "3",
            "7",
            "10",
            "0.5",
            "0.1",
            "0.01",
            "0.25",
            "7.5",
            "1e-2",
            "16",
            "125",
            "0.03",
            "100",
            "1e5",
            "1.1",
            "11",
            "1000000007",
            "0.0625",
        ];
        let values = [BOUNDS, &["1.0", "15", "10.1", "110", "0.0", "1e1", "-5"]].concat();
        let (low, high) = (self.pick(BOUNDS), self.pick(BOUNDS));
        let (low, high) =
            if scaled(low) <= scaled(high) || self.one_in(8) { (low, high) } else { (high, low) };
        let mut case = Case::default();
        if !self.one_in(3) {
            case.minimum = Some((low, self.one_in(2)));
        }
        if !self.one_in(3) {
            case.maximum = Some((high, self.one_in(2)));
        }
        case.integer_only = self.one_in(4);
        case.not_integer = self.one_in(8);
        case.draft4_integer = self.one_in(10);
        case.not_draft4_integer = self.one_in(12);
        if self.one_in(3) {
            case.multiple_of = self.some(DIVISORS, 2);
        }
        if self.one_in(5) {
            case.not_multiple_of = self.some(DIVISORS, 3);
        }
        if self.one_in(4) {
            case.excluded = self.some(&values, 4);
        }
        if self.one_in(6) {
            case.one_of = Some(self.some(&values, 12));
        }
        case
    }
}

#[test]
fn short_texts_over_every_byte_are_accepted_exactly_when_their_value_is() {
    let nodes = prefixes(b"-0123456789.eE+", 4);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..100 {
        let cases: Vec<Case> = (0..=round % 3).map(|_| random.case()).collect();
        check(&cases, &nodes, 4, true);
    }
}

#[test]
fn longer_texts_over_few_digits_are_accepted_exactly_when_their_value_is() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for alphabet in [b"-015.e", b"-279.e", b"-105.E"] {
        let nodes = prefixes(alphabet, 7);
        for round in 0..50 {
            let cases: Vec<Case> = (0..=round % 2).map(|_| random.case()).collect();
            check(&cases, &nodes, 7, false);
        }
    }
}

/// A number text of up to some thirty digits, often one that begins like `start`.
fn long_text(random: &mut Random, start: &str) -> String {
    let start = scaled(start.trim_start_matches('-')).to_string();
    let kept = random.below(start.len().min(24) + 1);
    let mut digits = start[..kept].to_owned();
    for _ in 0..random.below(12) {
        digits.push(char::from(b'0' + random.below(10) as u8));
    }
    let point = random.below(digits.len() + 1);
    let (integer, fraction) = digits.split_at(point);
    let integer = integer.trim_start_matches('0');
    let integer = if integer.is_empty() { "0" } else { integer };
    let sign = random.pick(&["", "", "-"]);
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent = match random.below(3) {
        0 => format!("{}{}", random.pick(&["e", "E-", "e+"]), random.below(40)),
        _ => String::new(),
    };
    format!("{sign}{integer}{point}{fraction}{exponent}")
}

#[test]
fn long_texts_are_accepted_exactly_when_their_value_is() {
    let mut random = Random(0x8CB9_2BA7_2F3D_8DD7);
    let mut accepted = [0, 0];
    for round in 0..400 {
        let cases: Vec<Case> = (0..=(round % 2)).map(|_| random.case()).collect();
        let specs: Vec<NumberSpec> = cases.iter().map(Case::spec).collect();
        let oracles: Vec<Oracle> = cases.iter().map(Case::oracle).collect();
        let mut automata = [NumberStyle::Any, NumberStyle::Plain]
            .map(|style| NumberAutomaton::new(&specs, style, &limits()).expect("within limits"));
        for _ in 0..60 {
            let ends = cases[0].minimum.iter().chain(&cases[0].maximum);
            let starts: Vec<&str> = ends.map(|(text, _)| *text).chain(["0", "1"]).collect();
            let start = random.pick(&starts);
            let text = long_text(&mut random, start);
            let value = scaled(&text);
            let inside = oracles.iter().any(|oracle| oracle.accepts(&text, &value));
            for (index, automaton) in automata.iter_mut().enumerate() {
                let written = index == 0 || is_plain(&text);
                let start = automaton.start();
                let end = text.bytes().try_fold(start, |state, byte| automaton.step(state, byte));
                let accepts = end.is_some_and(|end| automaton.is_accepting(end));
                // The digits of close ends may be more than style `Plain` has by itself.
                assert!(!accepts || inside, "{text} for {cases:?}");
                assert!(
                    accepts || !(inside && written) || too_long(&text, index),
                    "{text} for {cases:?}"
                );
                accepted[index] += usize::from(accepts);
            }
        }
    }
    assert!(accepted.iter().all(|count| *count > 1_000), "{accepted:?}");
}

/// Whether style `Plain` may refuse the text for its digits alone.
fn too_long(text: &str, index: usize) -> bool {
    let digits = text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit);
    index == 1 && text.contains('.') && digits.count() > 15
}

#[test]
fn values_and_constraints_agree_with_the_oracle_and_intersect_as_sets() {
    let nodes = prefixes(b"-0157.e", 5);
    let mut random = Random(0xA076_1D64_78BD_642F);
    for _ in 0..100 {
        let (one, two) = (random.case(), random.case());
        let both = one.spec().intersect(&two.spec());
        let (first, second) = (one.oracle(), two.oracle());
        for (text, value) in nodes.iter().filter_map(|node| node.text.as_ref()) {
            let accepts = |spec: &NumberSpec| {
                spec.accepts_text(text, &NumberLimits::default()).expect("a valid number")
            };
            let (in_first, in_second) = (first.accepts(text, value), second.accepts(text, value));
            assert_eq!(accepts(&one.spec()), in_first, "{text} {one:?}");
            assert_eq!(accepts(&both), in_first && in_second, "{text} {one:?} {two:?}");
            if in_first {
                assert_eq!(one.spec().is_empty(&NumberLimits::default()), Ok(false), "{one:?}");
            }
        }
    }
}
