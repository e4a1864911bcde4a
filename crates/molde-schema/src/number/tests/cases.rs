//! Particular constraints: those that other engines get wrong, and large ones.

use crate::number::{
    Decimal, NumberAutomaton, NumberBound, NumberError, NumberLimits, NumberSpec, NumberStyle,
};

/// For numbers that are read, not written into a schema.
fn wide() -> NumberLimits {
    NumberLimits { max_decimal_order: i64::MAX / 16, ..NumberLimits::default() }
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text, &wide()).expect("a valid number")
}

fn bound(text: &str, exclusive: bool) -> NumberBound {
    NumberBound { value: decimal(text), exclusive }
}

/// Inclusive ends; an empty string is none.
fn between(minimum: &str, maximum: &str) -> NumberSpec {
    let end = |text: &str| (!text.is_empty()).then(|| bound(text, false));
    NumberSpec { minimum: end(minimum), maximum: end(maximum), ..NumberSpec::default() }
}

fn integers(minimum: &str, maximum: &str) -> NumberSpec {
    NumberSpec { integer_only: true, ..between(minimum, maximum) }
}

fn automaton(spec: &NumberSpec, style: NumberStyle) -> NumberAutomaton {
    NumberAutomaton::new(std::slice::from_ref(spec), style, &NumberLimits::default())
        .expect("within limits")
}

/// The state after a text, dead or not.
fn read(automaton: &mut NumberAutomaton, text: &str) -> u32 {
    let start = automaton.start();
    text.bytes().try_fold(start, |state, byte| automaton.step(state, byte)).unwrap_or(0)
}

/// Texts of `accepted` are accepted, those of `live` can be continued, and those of `refused` are
/// not accepted. In style `Plain` the last cannot be continued either; an exponent often can.
fn check(
    spec: &NumberSpec,
    style: NumberStyle,
    accepted: &[&str],
    live: &[&str],
    refused: &[&str],
) {
    let mut automaton = automaton(spec, style);
    for text in accepted {
        let state = read(&mut automaton, text);
        assert!(automaton.is_accepting(state), "{text} in {spec:?}");
        assert!(automaton.shortest(state).is_empty());
    }
    for text in live {
        let state = read(&mut automaton, text);
        assert_ne!(state, NumberAutomaton::DEAD, "{text} in {spec:?}");
        assert!(!automaton.is_accepting(state), "{text} in {spec:?}");
        let rest = automaton.shortest(state);
        let whole = format!("{text}{}", String::from_utf8_lossy(&rest));
        let end = read(&mut automaton, &whole);
        assert!(automaton.is_accepting(end), "{whole} in {spec:?}");
        assert!(spec.accepts(&decimal(&whole)), "{whole} in {spec:?}");
    }
    for text in refused {
        let state = read(&mut automaton, text);
        assert!(!automaton.is_accepting(state), "{text} in {spec:?}");
        assert!(style == Any || state == NumberAutomaton::DEAD, "{text} in {spec:?}");
    }
}

use NumberStyle::{Any, Plain};

#[test]
fn plain_writes_integers_without_fraction_and_nothing_with_an_exponent() {
    check(
        &NumberSpec::default(),
        Plain,
        &[
            "0",
            "7",
            "-7",
            "7.5",
            "7.50",
            "-0.5",
            "0.001",
            "123456789012345",
            "12345678901234.5",
            "123456789012345678901234567890",
        ],
        &["-", "-0", "7.", "7.0", "0.", "14.00", "0.000", "-0.0"],
        &[
            "00",
            "01",
            "+1",
            ".5",
            "1e",
            "1E",
            "1..",
            "1.5.",
            "--",
            "1.1-",
            "0x",
            "123456789012345.",
            "1.234567890123456",
        ],
    );
}

#[test]
fn any_writes_a_value_in_every_spelling() {
    check(
        &between("1", "1"),
        Any,
        &["1", "1.0", "1.000", "1e0", "1E+0", "1.0e-00", "10e-1", "0.1e1", "0.001E3", "100.0e-002"],
        &["10", "100", "0", "0.0", "1e", "0.00000000001e1"],
        &["-", "2", "1.1", "11", "1e1", "0.2", "1e00000000000000000000", "01"],
    );
    check(
        &between("0", "0"),
        Any,
        &["0", "-0", "0.0", "-0e5", "0e-999999999999999999", "0.000E+7"],
        &["-", "0.", "0e"],
        &["1", "0.1", "00"],
    );
}

#[test]
fn bounds_hold_where_other_engines_let_numbers_slip() {
    for style in [Any, Plain] {
        check(
            &integers("2018", "2026"),
            style,
            &["2018", "2019", "2020", "2026"],
            &["2", "20", "201"],
            &["2017", "2027", "3", "-", "21", "2018.5"],
        );
        check(
            &NumberSpec { minimum: Some(bound("0", true)), ..NumberSpec::default() },
            style,
            &["0.5", "0.0001", "1", "100.5"],
            &["0", "0.", "0.0"],
            &["-1", "-0.1"],
        );
        check(
            &between("-4", "4"),
            style,
            &["-0.5", "-4", "4", "0", "3.99", "-3.5"],
            &["-", "-0.", "3."],
            &["5", "-5", "4.1", "-4.01", "44.5"],
        );
        check(
            &NumberSpec { maximum: Some(bound("0.2", true)), ..between("0.1", "") },
            style,
            &["0.1", "0.15", "0.19999"],
            &["0", "0."],
            &["0.2", "0.3", "-"],
        );
        check(&between("2", ""), style, &["2", "2.5", "10"], &[], &["1.9", "-2", "0.5"]);
        check(&between("1", "5"), style, &["5", "4.7"], &["4."], &["5.7", "5.01", "50.1"]);
        check(&between("-5", ""), style, &["-5", "-4.9", "3"], &["-"], &["-5.1", "-51.2"]);
    }
    check(&between("0.1", "0.2"), Plain, &["0.2"], &["0"], &["1", "0.0", "0.21"]);
    check(&between("-4", "4"), Any, &["-0.0", "40e-1"], &["44", "9"], &["41e", "4.1e0"]);
}

#[test]
fn bounds_of_any_size_are_exact() {
    check(
        &integers("0", "18446744073709551615"),
        Plain,
        &["18446744073709551615", "9999999999999999999", "0"],
        &[],
        &["18446744073709551616", "20000000000000000000", "184467440737095516150"],
    );
    let low = "1234567890123456789012345678901234567890";
    let high = "1234567890123456789012345678901234567899.5";
    for style in [Any, Plain] {
        check(
            &integers(low, high),
            style,
            &[low, "1234567890123456789012345678901234567899"],
            &["123456789012345678901234567890123456789"],
            &["124", "12345678901234567890123456789012345679", "123456789012345678901234567880"],
        );
    }
    check(&integers(low, high), Any, &["1.23456789012345678901234567890123456789e39"], &[], &[]);
    check(&between("1e400", "1e400"), Any, &["1e400", "10E+399"], &["1000"], &["1e401e", "2"]);
    check(&NumberSpec::default(), Any, &["1e400", "-1e-400", "1e999999999999999999"], &[], &[]);
    check(
        &between("1e30", ""),
        Plain,
        &["1000000000000000000000000000000"],
        &["1", "9"],
        &["-", "0"],
    );
    check(&between("", "-1e30"), Any, &["-2e30", "-123e29"], &["-1", "-0"], &["1"]);
    // Far ends and near ones raise the digit limits, so that nothing becomes unsatisfiable.
    let wide = format!("1{}", "0".repeat(500));
    check(&integers("1e500", ""), Plain, &[&wide], &["1"], &["-"]);
    check(
        &between("0.1234567890123456789", "0.1234567890123456789"),
        Plain,
        &["0.1234567890123456789"],
        &["0.12"],
        &["0.2"],
    );
    check(
        &between("0.1", "0.1000000000000000000001"),
        Plain,
        &["0.1", "0.1000000000000000000001"],
        &["0"],
        &["0.11"],
    );
}

#[test]
fn the_number_of_states_follows_the_digits_of_a_bound_not_its_size() {
    let mut automaton = automaton(&between("0", "1e30"), Plain);
    let mut random = 0x2545_F491_4F6C_DD1Du64;
    for _ in 0..3_000 {
        let mut state = automaton.start();
        for _ in 0..50 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let byte = b"0123456789.-"[(random >> 33) as usize % 12];
            match automaton.step(state, byte) {
                Some(next) => state = next,
                None => break,
            }
        }
    }
    assert!(automaton.state_count() < 600, "{}", automaton.state_count());
}

#[test]
fn multiples_are_exact_decimals() {
    for style in [Any, Plain] {
        check(
            &NumberSpec { multiple_of: vec![decimal("0.01")], ..between("0.05", "0.07") },
            style,
            &["0.05", "0.06", "0.07", "0.070"],
            &["0", "0.0"],
            &["0.1", "0.08", "0.055", "0.04"],
        );
        check(
            &NumberSpec { multiple_of: vec![decimal("7")], ..between("10", "13") },
            style,
            &[],
            &[],
            &["1", "", "2"],
        );
        check(
            &NumberSpec { multiple_of: vec![decimal("0.3"), decimal("-0.5")], ..between("1", "3") },
            style,
            &["1.5", "3"],
            &["1", "1."],
            &["2", "1.6"],
        );
        check(
            &NumberSpec { multiple_of: vec![decimal("1000000007")], ..NumberSpec::default() },
            style,
            &["0", "1000000007", "7000000049", "10000000070"],
            &["1", "700000004", "123456789"],
            &["1.5e9x"],
        );
    }
    let sixteenths = NumberSpec { multiple_of: vec![decimal("0.0625")], ..between("0", "1") };
    check(
        &sixteenths,
        Plain,
        &["0.0625", "0.5", "0.9375", "0.93750", "1"],
        &["0.93"],
        &["0.07", "0.06251", "0.94"],
    );
    check(&sixteenths, Any, &["625e-4", "5E-1", "0.00625e1"], &["62", "625"], &["0.1e0x", "9376"]);
}

#[test]
fn excluded_divisors_and_points_leave_the_rest() {
    for style in [Any, Plain] {
        check(
            &NumberSpec {
                not_multiple_of: vec![decimal("2"), decimal("3")],
                ..integers("0", "10")
            },
            style,
            &["1", "5", "7"],
            &[],
            &["-", "2.5"],
        );
        check(
            &NumberSpec { not_integer: true, excluded: vec![decimal("0.5")], ..between("0", "1") },
            style,
            &["0.4", "0.55", "0.51", "0.499"],
            &["0", "0.5", "0.50"],
            &["2", "-0.1"],
        );
    }
    let only = NumberSpec { excluded: vec![decimal("4"), decimal("5")], ..integers("4", "5") };
    assert_eq!(only.is_empty(&NumberLimits::default()), Ok(true));
    assert!(automaton(&only, Any).is_empty());
}

#[test]
fn draft_4_integers_have_neither_fraction_nor_exponent() {
    let integer = NumberSpec { draft4_integer: true, ..between("5", "100") };
    check(&integer, Any, &["5", "50", "100"], &["1"], &["5.", "5e", "50.", "0", "-", "101"]);
    let other = NumberSpec { not_draft4_integer: true, ..between("5", "6") };
    check(&other, Any, &["5.0", "5e0", "6.0", "0.5e1"], &["5", "6", "0"], &["6.1e0"]);
    assert!(integer.intersect(&other).is_empty(&NumberLimits::default()).is_ok_and(|empty| empty));
}

#[test]
fn contradictions_accept_nothing() {
    for spec in [
        between("2", "1"),
        NumberSpec { minimum: Some(bound("1", true)), ..between("", "1") },
        integers("0.1", "0.9"),
        NumberSpec { integer_only: true, not_integer: true, ..NumberSpec::default() },
        NumberSpec {
            multiple_of: vec![decimal("6")],
            not_multiple_of: vec![decimal("3")],
            ..NumberSpec::default()
        },
        NumberSpec::from_values(Vec::new()),
        NumberSpec::from_values(vec![decimal("1")]).intersect(&between("2", "")),
        NumberSpec { multiple_of: vec![decimal("0")], ..between("1", "") },
    ] {
        assert_eq!(spec.is_empty(&NumberLimits::default()), Ok(true), "{spec:?}");
        for style in [Any, Plain] {
            let mut automaton = automaton(&spec, style);
            assert!(automaton.is_empty(), "{spec:?}");
            assert_eq!(automaton.start(), NumberAutomaton::DEAD);
            assert_eq!(automaton.step(NumberAutomaton::DEAD, b'1'), None);
        }
    }
}

#[test]
fn large_enumerations_accept_exactly_their_values() {
    let texts: Vec<String> = (0..5_000).map(|i| format!("{}.{}", i * 37 - 90_000, i % 4)).collect();
    let values: Vec<Decimal> = texts.iter().map(|text| decimal(text)).collect();
    let members: std::collections::BTreeSet<&Decimal> = values.iter().collect();
    let mut automaton = NumberAutomaton::from_values(values.clone(), Any, &NumberLimits::default())
        .expect("within limits");
    for i in 0..20_000 {
        let text = format!("{}.{}", i * 9 - 90_000, i % 5);
        let state = read(&mut automaton, &text);
        assert_eq!(automaton.is_accepting(state), members.contains(&decimal(&text)), "{text}");
    }
    for text in &texts {
        let state = read(&mut automaton, text);
        assert!(automaton.is_accepting(state), "{text}");
    }
}

#[test]
fn unions_are_one_automaton() {
    let specs = [
        integers("10", "20"),
        NumberSpec::from_values(vec![decimal("0.5"), decimal("-3")]),
        NumberSpec { multiple_of: vec![decimal("100")], ..between("1000", "") },
    ];
    let mut automaton =
        NumberAutomaton::new(&specs, Plain, &NumberLimits::default()).expect("within limits");
    for (text, accepted) in [
        ("10", true),
        ("20", true),
        ("21", false),
        ("0.5", true),
        ("-3", true),
        ("-4", false),
        ("1000", true),
        ("1050", false),
        ("123400", true),
        ("100", false),
        ("0", false),
    ] {
        let state = read(&mut automaton, text);
        assert_eq!(automaton.is_accepting(state), accepted, "{text}");
    }
    for (text, rest) in [("", 2), ("1", 1), ("11", 0), ("12", 0), ("105", 2), ("-", 1), ("0.", 1)] {
        let state = read(&mut automaton, text);
        assert_eq!(automaton.shortest(state).len(), rest, "{text}");
    }
}

/// Walks at random, avoiding the shortest way out, to the digit limits and back.
#[test]
fn walks_end_within_the_digit_limits() {
    let specs = [
        NumberSpec::default(),
        integers("", ""),
        between("0.001", "1000"),
        NumberSpec { multiple_of: vec![decimal("0.07")], ..NumberSpec::default() },
        NumberSpec { not_multiple_of: vec![decimal("0.5")], ..between("-1", "1") },
        NumberSpec { excluded: vec![decimal("12"), decimal("0")], ..NumberSpec::default() },
    ];
    let limits = NumberLimits {
        max_integer_digits: 12,
        max_plain_number_digits: 9,
        max_fraction_digits: 11,
        max_exponent_digits: 3,
        plain_significant_digits: 6,
        plain_fraction_zeros: 4,
        ..NumberLimits::default()
    };
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    for spec in &specs {
        for style in [Any, Plain] {
            let mut automaton = NumberAutomaton::new(std::slice::from_ref(spec), style, &limits)
                .expect("within limits");
            for _ in 0..300 {
                let mut state = automaton.start();
                let mut text = String::new();
                loop {
                    let next: Vec<(u8, u32)> = (b"0123456789.-+eE".iter())
                        .filter_map(|byte| Some((*byte, automaton.step(state, *byte)?)))
                        .collect();
                    let rest = automaton.shortest(state);
                    assert_eq!(rest.is_empty(), automaton.is_accepting(state), "{text}");
                    if !rest.is_empty() {
                        assert!(next.iter().any(|(byte, _)| *byte == rest[0]), "{text} {spec:?}");
                    }
                    if rest.is_empty() {
                        assert_eq!(spec.accepts_text(&text, &wide()), Ok(true));
                    }
                    if next.is_empty() {
                        break;
                    }
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (byte, to) = next[(random >> 33) as usize % next.len()];
                    text.push(byte as char);
                    state = to;
                    assert!(text.len() < 40, "{text} goes on");
                }
                assert!(automaton.is_accepting(state), "{text} ends nowhere in {spec:?}");
            }
        }
    }
}

/// The largest numbers that the limits let into a schema, and many points left out.
#[test]
fn hostile_constraints_are_walked_to_the_end() {
    let digits: String = (0..999).map(|i| char::from(b'1' + (i * i % 9) as u8)).collect();
    let points: Vec<Decimal> = (0..2_000).map(|i| decimal(&format!("{i}"))).collect();
    let specs = [
        integers(&format!("{digits}1"), &format!("{digits}3")),
        between(&format!("0.{digits}1"), &format!("0.{digits}3")),
        between("1e-999", "1e999"),
        NumberSpec { multiple_of: vec![decimal(&digits)], ..NumberSpec::default() },
        NumberSpec { not_multiple_of: vec![decimal(&digits)], ..NumberSpec::default() },
        NumberSpec { excluded: points, ..integers("0", "2000") },
    ];
    for spec in &specs {
        for style in [Any, Plain] {
            let mut automaton = automaton(spec, style);
            assert!(!automaton.is_empty(), "{style:?} {spec:?}");
            let mut state = automaton.start();
            let mut text = String::new();
            for byte in automaton.shortest(state) {
                state = automaton.step(state, byte).expect("the completion is a path");
                text.push(byte as char);
            }
            assert!(automaton.is_accepting(state), "{style:?} {spec:?}");
            assert_eq!(spec.accepts_text(&text, &wide()), Ok(true));
        }
    }
}

#[test]
fn clearing_keeps_the_states_asked_for() {
    let spec = NumberSpec { multiple_of: vec![decimal("0.25")], ..between("-10", "10") };
    let mut cleared = automaton(&spec, Any);
    let prefixes = ["", "-", "1", "1.2", "0.", "5e", "5e-", "25e-2"];
    let before: Vec<u32> = prefixes.iter().map(|text| read(&mut cleared, text)).collect();
    let full = cleared.memory_usage();
    let after = cleared.clear(&before);
    assert!(cleared.memory_usage() < full);
    for (text, state) in prefixes.iter().zip(after) {
        assert_eq!(read(&mut cleared, text), state, "{text}");
        let rest = cleared.shortest(state);
        let fresh = automaton(&spec, Any).clear(&[]);
        assert!(fresh.is_empty());
        let end = rest.iter().try_fold(state, |state, byte| cleared.step(state, *byte));
        assert!(end.is_some_and(|end| cleared.is_accepting(end)), "{text}");
    }
}

#[test]
fn what_exceeds_a_limit_is_a_named_error() {
    let primes = ["7919", "104729", "1299709"].map(decimal).to_vec();
    let limits = NumberLimits { max_decimal_digits: 10, ..NumberLimits::default() };
    let spec = NumberSpec { multiple_of: primes, ..NumberSpec::default() };
    assert_eq!(
        NumberAutomaton::new(&[spec], Any, &limits).err(),
        Some(NumberError::TooManyDigits { digits: 16, limit: 10 })
    );
    let limits = NumberLimits { max_excluded_divisors: 2, ..NumberLimits::default() };
    let spec = NumberSpec {
        not_multiple_of: ["2", "3", "5"].map(decimal).to_vec(),
        ..NumberSpec::default()
    };
    let expected = NumberError::TooManyExcludedDivisors { got: 3, limit: 2 };
    assert_eq!(spec.is_empty(&limits), Err(expected.clone()));
    assert_eq!(NumberAutomaton::new(&[spec], Any, &limits).err(), Some(expected));
    let limits = NumberLimits { max_exponent_digits: 19, ..NumberLimits::default() };
    assert_eq!(
        NumberAutomaton::new(&[NumberSpec::default()], Any, &limits).err(),
        Some(NumberError::ExponentDigitsTooMany { got: 19, ceiling: 18 })
    );
}
