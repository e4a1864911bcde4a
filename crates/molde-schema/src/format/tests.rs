//! Formats against tables, against the official suite where it is, and against the `jsonschema`
//! crate on words sampled from the automata.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::dfa::tests::Random;

fn language(format: Format, profile: Profile) -> Pattern {
    format
        .build(profile, &DfaLimits::default())
        .unwrap_or_else(|error| panic!("{}: {error}", format.name()))
}

fn accepts(language: &Pattern, text: &str) -> bool {
    let chars = text.chars().count() as u64;
    chars >= language.min_chars
        && language.max_chars.is_none_or(|max| chars <= max)
        && language.dfa.accepts(text)
}

/// Accepted words of every shape: random walks that turn home after a while.
fn samples(language: &Pattern, random: &mut Random, count: usize) -> Vec<String> {
    let dfa = &language.dfa;
    let mut words = Vec::new();
    while words.len() < count {
        let mut state = dfa.start();
        let mut word = Vec::new();
        let patience = random.below(40);
        while word.len() < patience && !(dfa.is_accepting(state) && random.below(6) == 0) {
            let transitions = dfa.transitions(state);
            if transitions.is_empty() {
                break;
            }
            let t = transitions[random.below(transitions.len())];
            word.push(t.lo + random.below(usize::from(t.hi - t.lo) + 1) as u8);
            state = t.target;
        }
        word.extend(dfa.shortest(state));
        let word = String::from_utf8(word).expect("languages of strings are valid UTF-8");
        assert!(dfa.accepts(&word));
        if language.max_chars.is_none_or(|max| word.chars().count() as u64 <= max) {
            words.push(word);
        }
    }
    words
}

fn validator(format: Format) -> jsonschema::Validator {
    jsonschema::options()
        .should_validate_formats(true)
        .build(&json!({ "format": format.name() }))
        .expect("a valid schema")
}

#[test]
fn every_sampled_word_is_valid_for_an_independent_validator() {
    let mut random = Random(0xF0F0_1234);
    for format in Format::ALL {
        let validator = validator(format);
        let assertive = !validator.is_valid(&json!("\u{0} not ~ any { format \\"));
        assert!(assertive, "{} is asserted by the oracle", format.name());
        for profile in [Profile::Standard, Profile::Interoperable] {
            for word in samples(&language(format, profile), &mut random, 3000) {
                assert!(
                    validator.is_valid(&Value::from(word.as_str())),
                    "{} accepts {word:?} ({profile:?})",
                    format.name()
                );
            }
        }
    }
}

#[test]
fn the_interoperable_profile_is_a_subset_of_the_standard_one() {
    let limits = DfaLimits::default();
    for format in Format::ALL {
        let (wide, narrow) =
            (language(format, Profile::Standard), language(format, Profile::Interoperable));
        let outside = narrow.dfa.difference(&wide.dfa, &limits).expect("small");
        assert!(
            outside.is_empty(),
            "{}: {:?}",
            format.name(),
            String::from_utf8(outside.shortest(outside.start()))
        );
        assert!(narrow.max_chars.unwrap_or(u64::MAX) <= wide.max_chars.unwrap_or(u64::MAX));
        assert!(!narrow.dfa.is_empty());
    }
}

#[test]
fn names_are_those_of_the_specification() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    for unknown in ["", "Date", "int32", "url", "byte", "color"] {
        assert_eq!(Format::from_name(unknown), None);
    }
}

/// Texts of the official suite that are valid and not accepted, by format: what
/// [`Format::subset`] leaves out.
fn is_documented_reject(format: Format, text: &str) -> bool {
    match format {
        Format::Hostname => text.contains("xn--"),
        Format::IdnHostname => {
            // A-labels, other separators, long labels, and characters outside the repertoire.
            text.contains("xn--")
                || text.contains(['\u{3002}', '\u{FF0E}', '\u{FF61}'])
                || text.split('.').any(|label| !label.is_ascii() && label.chars().count() > 10)
                || text.chars().any(|c| "\u{df}\u{3c2}\u{f0b}\u{3007}\u{6fd}\u{6fe}\u{b7}\u{375}\u{5f3}\u{5f4}\u{30fb}\u{660}\u{6f0}\u{200d}\u{200c}".contains(c))
        }
        Format::IdnEmail => text.contains('\u{301}'),
        Format::Regex => text.contains("(?<") || ["[]", "[^]", "\\cA"].contains(&text),
        _ => false,
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "says that it is skipped")]
fn the_official_suite_agrees() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/json-schema-test-suite/tests/draft2020-12/optional/format");
    if !suite.is_dir() {
        println!("skipped: the official test suite is not beside the workspace");
        return;
    }
    let (mut judged, mut left_out) = (0, 0);
    for name in Format::ALL.map(Format::name).into_iter().chain(["ecmascript-regex"]) {
        let text = std::fs::read_to_string(suite.join(name).with_extension("json"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let groups: Value = serde_json::from_str(&text).expect("JSON");
        for group in groups.as_array().expect("an array of groups") {
            let format = Format::from_name(group["schema"]["format"].as_str().expect("a name"))
                .expect("a known one");
            let standard = language(format, Profile::Standard);
            let narrow = language(format, Profile::Interoperable);
            for test in group["tests"].as_array().expect("an array of tests") {
                let Some(text) = test["data"].as_str() else {
                    continue;
                };
                let valid = test["valid"] == Value::Bool(true);
                judged += 1;
                if valid && !accepts(&standard, text) {
                    left_out += 1;
                    assert!(is_documented_reject(format, text), "{name} rejects {text:?}");
                    assert!(format.subset(Profile::Standard).is_some());
                }
                if !valid {
                    assert!(!accepts(&standard, text), "{name} accepts {text:?}");
                    assert!(!accepts(&narrow, text), "{name} accepts {text:?}");
                }
            }
        }
    }
    assert!(judged > 600 && left_out < 50, "{judged} judged, {left_out} left out");
}

/// Format, texts it accepts, texts it does not: the standard profile.
const STANDARD: &[(Format, &[&str], &[&str])] = &[
    (
        Format::Date,
        &["2024-02-29", "2000-02-29", "2023-12-31", "0000-02-29", "9999-04-30"],
        &[
            "2023-02-29",
            "1900-02-29",
            "2021-04-31",
            "2024-13-01",
            "24-01-01",
            "2024-1-01",
            "2024-01-00",
            "2024-01-01\n",
            "২024-01-01",
        ],
    ),
    (
        Format::Time,
        &[
            "23:59:60Z",
            "08:30:06Z",
            "08:30:06z",
            "12:00:00.52+05:00",
            "00:29:60.5+00:30",
            "15:59:60-08:00",
            "05:44:60+05:45",
            "12:34:56-00:00",
        ],
        &[
            "22:59:60Z",
            "23:58:60Z",
            "24:00:00Z",
            "12:00:00",
            "1:00:00Z",
            "23:59:60+01:00",
            "12:00:00.Z",
            "12:00:00+24:00",
            "12:00:00+00:60",
            "12:00:61Z",
        ],
    ),
    (
        Format::DateTime,
        &[
            "2024-05-01T10:20:30Z",
            "2024-05-01t10:20:30.1234+02:00",
            "1998-12-31T23:59:60Z",
            "2024-02-29T00:00:00-23:59",
        ],
        &[
            "2024-05-01",
            "2024-05-01T25:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-05-01 10:20:30Z",
            "2024-05-01T10:20:30",
            "T10:20:30Z",
        ],
    ),
    (
        Format::Duration,
        &["P4DT12H30M5S", "P1Y2M3D", "PT1M2S", "P2W", "P0D", "PT36H", "P99999999999D"],
        &[
            "P", "PT", "P1YT", "PT1D", "P1Y2D", "PT1H2S", "P1Y2W", "P1", "-P1D", "PT0.5S", "P2D1Y",
            "p1d",
        ],
    ),
    (
        Format::Hostname,
        &["Example.COM", "a-b.example", "hostname", "1host", "a--b.com", "0"],
        &[
            "-bad.example",
            "bad-.example",
            "a..b",
            "exa mple",
            "",
            ".",
            "a.",
            "host_name",
            "xn--X",
            "ab--cd.com",
            "café.com",
        ],
    ),
    (
        Format::Ipv4,
        &["0.0.0.0", "255.255.255.255", "192.168.10.1"],
        &["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", "1..2.3"],
    ),
    (
        Format::Ipv6,
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "::ffff:192.168.0.1",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2::192.168.0.1",
            "FE80::A",
        ],
        &[
            "",
            ":",
            ":::",
            "1",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::1.2.3.256",
            "::1%eth0",
            ":1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
        ],
    ),
    (
        Format::Email,
        &[
            "joe.bloggs@example.com",
            "te~st@example.com",
            "\"joe bloggs\"@example.com",
            "a@b",
            "a@[127.0.0.1]",
            "a@[IPv6:::1]",
            "a@1.de",
        ],
        &[
            "2962",
            ".a@b.c",
            "a.@b.c",
            "a..b@c.d",
            "@b.c",
            "a@",
            "a@b..c",
            "a@b c",
            "a@[1.2.3.300]",
            "a@b, c@d",
            "jösé@example.com",
        ],
    ),
    (
        Format::IdnEmail,
        &["실례@실례.테스트", "δοκιμή@example.com", "\"δοκιμή\"@example.com", "a@b"],
        &["2962", "a@@b", "user＠example.com", "\u{e9}.@a.de"],
    ),
    (
        Format::IdnHostname,
        &["실례.테스트", "münchen.de", "пример.рф", "例え.jp", "a-b.c", "A.example"],
        &["-a", "a-", "a..b", "", "é\u{301}\u{302}-", "a\u{5d0}", "〮실례", "\u{30fb}", "xn--X"],
    ),
    (
        Format::Uri,
        &[
            "http://foo.bar/?baz=qux#quux",
            "urn:oasis:names",
            "mailto:a@b.c",
            "ldap://[2001:db8::7]/c=GB?x?y",
            "http://",
            "a:",
            "http://a:80/%2f",
            "http://[v1.a:b]",
        ],
        &[
            "//foo.bar/",
            "/abc",
            "abc",
            "http:// a",
            "1http://a",
            "http://a/%6G",
            "http://a:b/",
            "http://[::1",
            "http:/[::1]",
            "http://a/é",
            "http://a/\\",
            "http://a@b@c/",
        ],
    ),
    (
        Format::UriReference,
        &["", "/abc", "abc", "#f", "?q", "//", "./a:b", "http://a/b", "//a.b/c?d#e"],
        &["\\a", "1:b", "/%zz", "#a#b", "/a\"b", "//a:b/"],
    ),
    (
        Format::Iri,
        &["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "urn:a", "http://a/?\u{E000}"],
        &["/abc", "âππ", "http://a/\u{E000}", "http://a b"],
    ),
    (
        Format::IriReference,
        &["//ƒøø.ßår/", "âππ", "#ƒrägmênt", ""],
        &["\\\\a", "#ƒräg\\mênt", "1é:b"],
    ),
    (
        Format::UriTemplate,
        &["", "http://e.com/{term:1}/{term}", "{+a,b*}", "{a.b}", "{%41}", "a%41b", "a'b", "x😀"],
        &["{}", "{", "}", "{a,}", "{v:0}", "{v:10000}", "{a..b}", "a b", "{a b}", "%4"],
    ),
    (
        Format::Uuid,
        &["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        &[
            "2eb8aa08aa9811eab4aa73b441d16380",
            "zeb8aa08-aa98-11ea-b4aa-73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
        ],
    ),
    (Format::JsonPointer, &["", "/", "/a~0b/c~1d", "//", "/\n\u{0}é"], &["a", "/~", "/~2", "#/a"]),
    (
        Format::RelativeJsonPointer,
        &["0", "1#", "120/a/b", "0//"],
        &["", "01", "-1", "/a", "0##", "1#/a", "0/~2"],
    ),
    (
        Format::Regex,
        &["([abc])+\\s+$", "^\\d{3}-[a-z]+$", "(?:a|b)*c?", "[^\\]\\-]\\.", "a{2,5}?"],
        &["^(abc]", "a**", "(", "a)", "[", "\\a", "a{5,2}", "\\"],
    ),
];

/// Format, texts it accepts, texts that the standard accepts and it does not: the other profile.
const INTEROPERABLE: &[(Format, &[&str], &[&str])] = &[
    (Format::Date, &["2024-02-29", "0001-01-01"], &["0000-01-01"]),
    (
        Format::Time,
        &["10:20:30Z", "10:20:30.123456+05:30"],
        &["23:59:60Z", "10:20:30z", "10:20:30.1234567Z"],
    ),
    (
        Format::DateTime,
        &["2024-05-01T10:20:30.5Z"],
        &["2024-05-01t10:20:30Z", "1998-12-31T23:59:60Z", "0000-01-01T00:00:00Z"],
    ),
    (Format::Duration, &["P1DT12H"], &["P12345D"]),
    (
        Format::Email,
        &["joe.bloggs@example.com", "a@b.localhosts.de", "a@mail.testing"],
        &["a@b", "\"a\"@b.de", "a@[127.0.0.1]", "a@b.test", "a@b.LocalHost", "a@b.c1", "a@b.d"],
    ),
    (
        Format::Uri,
        &["https://example.com:8080/a?b#c", "urn:isbn:1", "mailto:a@b.c"],
        &[
            "http://",
            "http://1.2.3.4/",
            "http://localhost/",
            "a:b",
            "http://[::1]/",
            "http://a%41.de/",
        ],
    ),
];

#[test]
fn formats_follow_their_specifications() {
    for (format, valid, invalid) in STANDARD {
        let own = language(*format, Profile::Standard);
        for text in *valid {
            assert!(accepts(&own, text), "{} rejects {text:?}", format.name());
        }
        for text in *invalid {
            assert!(!accepts(&own, text), "{} accepts {text:?}", format.name());
        }
    }
    assert_eq!(STANDARD.len(), Format::ALL.len());
    for (format, valid, left_out) in INTEROPERABLE {
        let own = language(*format, Profile::Interoperable);
        let standard = language(*format, Profile::Standard);
        assert!(format.subset(Profile::Interoperable).is_some());
        for text in *valid {
            assert!(accepts(&own, text), "{} rejects {text:?}", format.name());
        }
        for text in *left_out {
            assert!(!accepts(&own, text), "{} accepts {text:?}", format.name());
            assert!(accepts(&standard, text), "{} rejects {text:?}", format.name());
        }
    }
}

#[test]
fn lengths_of_names_are_bounded() {
    let label = "a".repeat(63);
    let hostname = language(Format::Hostname, Profile::Standard);
    assert!(accepts(&hostname, &label));
    assert!(!accepts(&hostname, &format!("{label}a")));
    let longest = format!("{label}.{label}.{label}.{}", &label[..61]);
    assert_eq!(longest.len(), 253);
    assert!(accepts(&hostname, &longest));
    assert!(!accepts(&hostname, &format!("{longest}a")));
    // The same bound inside one automaton.
    let dfa = Format::Hostname.dfa(Profile::Standard).expect("within the limits");
    assert!(dfa.accepts(&longest));
    assert!(!dfa.accepts(format!("{longest}a")));

    let local = "a".repeat(64);
    for format in [Format::Email, Format::IdnEmail] {
        let email = language(format, Profile::Standard);
        assert!(accepts(&email, &format!("{local}@example.com")));
        assert!(!accepts(&email, &format!("{local}a@example.com")));
        assert!(accepts(&email, &format!("\"{}\"@a.de", &local[..62])));
        assert!(!accepts(&email, &format!("\"{}\"@a.de", &local[..63])));
    }
    // 64 octets are 32 of these.
    let idn = language(Format::IdnEmail, Profile::Standard);
    assert!(accepts(&idn, &format!("{}@a.de", "é".repeat(32))));
    assert!(!accepts(&idn, &format!("{}a@a.de", "é".repeat(32))));
}

#[test]
fn automata_stay_small() {
    for format in Format::ALL {
        for profile in [Profile::Standard, Profile::Interoperable] {
            let states = language(format, profile).dfa.states();
            assert!(states < 12_000, "{}: {states} states", format.name());
        }
    }
}
