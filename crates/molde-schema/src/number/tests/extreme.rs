//! The greatest and least numbers that are left within two ends, against values worked out by hand.

use crate::number::{Decimal, NumberBound, NumberLimits, NumberSpec, NumberStyle, Numbers};

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text, &NumberLimits::default()).expect("a valid number")
}

/// An end: empty is none, a leading `!` excludes the end itself.
fn bound(text: &str) -> Option<NumberBound> {
    let value = text.trim_start_matches('!');
    (!value.is_empty())
        .then(|| NumberBound { value: decimal(value), exclusive: text.starts_with('!') })
}

fn integers() -> NumberSpec {
    NumberSpec { integer_only: true, ..NumberSpec::default() }
}

fn multiples(of: &str) -> NumberSpec {
    NumberSpec { multiple_of: vec![decimal(of)], ..NumberSpec::default() }
}

#[test]
fn extremes_are_those_of_the_texts_that_a_style_has() {
    let nines = "9".repeat(400);
    let any = NumberSpec::default;
    let values = || NumberSpec::from_values(["-3", "0.5", "7"].map(decimal).to_vec());
    for (specs, low, high, least, greatest) in [
        (vec![integers()], "", "", format!("-{nines}"), nines.clone()),
        (vec![integers()], "!3", "!10", "4".to_owned(), "9".to_owned()),
        (vec![integers()], "2.5", "7.5", "3".to_owned(), "7".to_owned()),
        (vec![integers()], "-7.5", "-2.5", "-7".to_owned(), "-3".to_owned()),
        (vec![integers()], "-5", "!1", "-5".to_owned(), "0".to_owned()),
        (vec![any()], "!9", "!10", "9.00000000000001".to_owned(), "9.99999999999999".to_owned()),
        (
            vec![any()],
            "!-10",
            "!-9",
            "-9.99999999999999".to_owned(),
            "-9.00000000000001".to_owned(),
        ),
        (vec![any()], "", "", format!("-{}", &nines[..308]), nines[..308].to_owned()),
        (vec![any()], "!0", "1", format!("0.{}1", "0".repeat(20)), "1".to_owned()),
        (vec![multiples("5")], "1", "99", "5".to_owned(), "95".to_owned()),
        (vec![multiples("0.25")], "!0.25", "!1", "0.5".to_owned(), "0.75".to_owned()),
        (vec![values()], "", "", "-3".to_owned(), "7".to_owned()),
        (vec![values()], "!-3", "!7", "0.5".to_owned(), "0.5".to_owned()),
        (vec![values(), multiples("4")], "", "9", format!("-{}6", &nines[..399]), "8".to_owned()),
    ] {
        let numbers = Numbers { specs: &specs, style: NumberStyle::Plain };
        let (low, high) = (bound(low), bound(high));
        let ends = (low.as_ref(), high.as_ref());
        assert_eq!(numbers.least(ends.0, ends.1), Ok(Some(decimal(&least))), "{specs:?} {ends:?}");
        let found = numbers.greatest(ends.0, ends.1);
        assert_eq!(found, Ok(Some(decimal(&greatest))), "{specs:?} {ends:?}");
    }
}

#[test]
fn between_ends_without_a_number_there_is_no_extreme() {
    for (spec, low, high) in [
        (integers(), "!1", "!2"),
        (integers(), "3", "2"),
        (multiples("5"), "6", "9"),
        (NumberSpec::from_values(vec![decimal("3")]), "4", ""),
        // Two numbers of 15 digits with none between them.
        (NumberSpec::default(), "!1.00000000000001", "!1.00000000000002"),
    ] {
        let numbers = Numbers { specs: &[spec], style: NumberStyle::Plain };
        let (low, high) = (bound(low), bound(high));
        assert_eq!(numbers.least(low.as_ref(), high.as_ref()), Ok(None));
        assert_eq!(numbers.greatest(low.as_ref(), high.as_ref()), Ok(None));
    }
}
