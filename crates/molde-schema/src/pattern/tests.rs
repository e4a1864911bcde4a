//! Patterns against a naive backtracking matcher, against tables, and against their limits.

use super::*;
use crate::dfa::{Dfa, DfaError, DfaLimits, tests::Random};

fn dfa(pattern: &str) -> Dfa {
    compile_dfa(pattern, &DfaLimits::default()).unwrap_or_else(|e| panic!("{pattern:?}: {e}"))
}

/// A random pattern as a tree, with its own text and its own semantics: the oracle shares neither
/// parser nor automata with what it judges.
#[derive(Debug, Clone)]
enum Tree {
    Char(char),
    Dot,
    Digit,
    NotWord,
    Space,
    Set(bool, Vec<(char, char)>),
    Start,
    End,
    Boundary(bool),
    Cat(Vec<Tree>),
    Alt(Vec<Tree>),
    Rep(Box<Tree>, usize, Option<usize>, bool),
    Look(bool, bool, Box<Tree>),
}

const ALPHABET: [char; 8] = ['a', 'b', '0', '_', ' ', 'é', '\n', '🐲'];

impl Tree {
    /// `look`: 0 outside lookaround, 1 inside a lookahead, 2 inside a lookbehind.
    fn random(random: &mut Random, depth: usize, look: usize) -> Self {
        let many = |random: &mut Random, depth| {
            (0..random.below(4)).map(|_| Self::random(random, depth, look)).collect()
        };
        match random.below(if depth == 0 { 12 } else { 22 }) {
            0..=3 => Self::Char(ALPHABET[random.below(ALPHABET.len())]),
            4 => Self::Dot,
            5 => Self::Digit,
            6 => Self::NotWord,
            7 => Self::Space,
            8 => {
                let ranges = (0..random.below(3))
                    .map(|_| {
                        let (a, b) = (random.below(8), random.below(8));
                        let (a, b) = (ALPHABET[a], ALPHABET[b]);
                        (a.min(b), a.max(b))
                    })
                    .collect();
                Self::Set(random.below(2) == 0, ranges)
            }
            9 => Self::Start,
            10 => Self::End,
            11 => Self::Boundary(random.below(2) == 0),
            12..=14 => Self::Cat(many(random, depth - 1)),
            15 | 16 => Self::Alt(many(random, depth - 1)),
            17..=19 => {
                let min = random.below(3);
                let max = (random.below(2) == 0).then(|| min + random.below(3));
                let inner = Self::random(random, depth - 1, look);
                Self::Rep(Box::new(inner), min, max, random.below(2) == 0)
            }
            _ => {
                let ahead = look == 1 || (look == 0 && random.below(3) > 0);
                let kind = if ahead { 1 } else { 2 };
                let inner = Self::random(random, depth - 1, kind);
                Self::Look(ahead, random.below(2) == 0, Box::new(inner))
            }
        }
    }

    fn text(&self) -> String {
        let join =
            |trees: &[Self], by: &str| trees.iter().map(Self::text).collect::<Vec<_>>().join(by);
        match self {
            Self::Char(c) => c.to_string(),
            Self::Dot => ".".into(),
            Self::Digit => r"\d".into(),
            Self::NotWord => r"\W".into(),
            Self::Space => r"\s".into(),
            Self::Set(negative, ranges) => {
                let ranges: Vec<_> = ranges.iter().map(|(a, b)| format!("{a}-{b}")).collect();
                let ranges = ranges.concat();
                format!("[{}{ranges}]", if *negative { "^" } else { "" })
            }
            Self::Start => "^".into(),
            Self::End => "$".into(),
            Self::Boundary(yes) => if *yes { r"\b" } else { r"\B" }.into(),
            Self::Cat(trees) => join(trees, ""),
            Self::Alt(trees) => format!("(?:{})", join(trees, "|")),
            Self::Rep(tree, min, max, lazy) => {
                let max = max.map_or(String::new(), |max| max.to_string());
                let lazy = if *lazy { "?" } else { "" };
                format!("({}){{{min},{max}}}{lazy}", tree.text())
            }
            Self::Look(ahead, negative, tree) => format!(
                "(?{}{}{})",
                if *ahead { "" } else { "<" },
                if *negative { "!" } else { "=" },
                tree.text()
            ),
        }
    }

    fn matches_char(&self, c: char) -> Option<bool> {
        Some(match self {
            Self::Char(own) => *own == c,
            Self::Dot => c != '\n',
            Self::Digit => c == '0',
            Self::NotWord => !is_word(Some(&c)),
            Self::Space => c == ' ' || c == '\n',
            Self::Set(negative, ranges) => {
                ranges.iter().any(|&(a, b)| (a..=b).contains(&c)) != *negative
            }
            _ => return None,
        })
    }

    /// Whether it matches from `at`, such that `then` holds where it ends.
    fn run(&self, text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
        match self {
            Self::Start => at == 0 && then(at),
            Self::End => at == text.len() && then(at),
            Self::Boundary(yes) => {
                let before = at.checked_sub(1).and_then(|i| text.get(i));
                (is_word(before) != is_word(text.get(at))) == *yes && then(at)
            }
            Self::Cat(trees) => match trees.split_first() {
                None => then(at),
                Some((first, rest)) => {
                    let rest = Self::Cat(rest.to_vec());
                    first.run(text, at, &mut |at| rest.run(text, at, then))
                }
            },
            // `(?:)` matches the empty string.
            Self::Alt(trees) if trees.is_empty() => then(at),
            Self::Alt(trees) => trees.iter().any(|tree| tree.run(text, at, then)),
            Self::Rep(tree, min, max, lazy) => {
                if *max == Some(0) {
                    return then(at);
                }
                let fewer =
                    Self::Rep(tree.clone(), min.saturating_sub(1), max.map(|max| max - 1), *lazy);
                (*min == 0 && then(at))
                    || tree.run(text, at, &mut |end| {
                        (end > at || *min > 0) && fewer.run(text, end, then)
                    })
            }
            Self::Look(true, negative, tree) => {
                tree.run(text, at, &mut |_| true) != *negative && then(at)
            }
            Self::Look(false, negative, tree) => {
                let found = (0..=at).any(|start| tree.run(text, start, &mut |end| end == at));
                found != *negative && then(at)
            }
            _ => text.get(at).is_some_and(|&c| self.matches_char(c) == Some(true) && then(at + 1)),
        }
    }

    fn finds(&self, text: &[char]) -> bool {
        (0..=text.len()).any(|at| self.run(text, at, &mut |_| true))
    }
}

fn is_word(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
}

#[test]
fn random_patterns_find_what_a_backtracking_matcher_finds() {
    let mut random = Random(0x1234_5678_9ABC);
    let mut texts: Vec<Vec<char>> = vec![Vec::new()];
    for i in 0..ALPHABET.len() * ALPHABET.len() {
        texts.push(vec![ALPHABET[i % 8], ALPHABET[i / 8]]);
    }
    texts.extend(ALPHABET.map(|c| vec![c]));
    let (mut compiled, mut found, mut with_look) = (0, 0, 0);
    for _ in 0..6000 {
        let tree = Tree::random(&mut random, 4, 0);
        let text = tree.text();
        let dfa = match compile_dfa(&text, &DfaLimits::default()) {
            Ok(dfa) => dfa,
            Err(error) => panic!("{text:?}: {error}"),
        };
        compiled += 1;
        with_look +=
            usize::from(text.contains("(?=") || text.contains("(?!") || text.contains("(?<"));
        let longer = (0..60).map(|_| {
            (0..3 + random.below(4)).map(|_| ALPHABET[random.below(ALPHABET.len())]).collect()
        });
        for sample in texts.iter().cloned().chain(longer.collect::<Vec<_>>()) {
            let expected = tree.finds(&sample);
            found += usize::from(expected);
            let sample: String = sample.into_iter().collect();
            assert_eq!(dfa.accepts(&sample), expected, "{text:?} on {sample:?}");
        }
    }
    assert!(
        compiled == 6000 && with_look > 800 && found > 100_000,
        "{compiled} {with_look} {found}"
    );
}

/// Pattern, what it finds, what it does not.
const TABLE: &[(&str, &[&str], &[&str])] = &[
    ("^a*$", &["", "aaa"], &["abc", "a\n"]),
    ("a+", &["xxaayy"], &["", "xyz"]),
    ("", &["", "anything", "\n"], &[]),
    ("^left$|^right$", &["left", "right"], &["leftright", "up", "lef"]),
    ("^left|right$", &["left…", "…right"], &["…left", "right…"]),
    (r"^\p{Letter}+$", &["Hello", "π"], &["123", ""]),
    (r"^\p{digit}+$", &["42", "৪২"], &["-%#"]),
    (r"^\p{Script=Greek}\p{sc=Han}\p{scx=Cyrl}$", &["α漢я"], &["a漢я"]),
    (r"^\P{Lu}\p{gc=Nd}\p{General_Category=Lu}$", &["a1A"], &["A1A"]),
    (r"^\p{ASCII}\p{Any}\p{Emoji_Presentation}$", &["a\u{10FFFF}🐲"], &["éaa"]),
    (r"^\p{Cs}$", &[], &["a", ""]),
    (r"^\d$", &["0"], &["\u{7C0}", "a"]),
    (r"^\D$", &["\u{7C0}"], &["0"]),
    (r"^\w$", &["a", "_", "Z", "9"], &["é", "-", "\u{212A}", "\u{17F}"]),
    (r"^\W$", &["é", "-"], &["a"]),
    (
        r"^\s$",
        &[
            " ", "\t", "\u{B}", "\u{C}", "\u{A0}", "\u{FEFF}", "\n", "\r", "\u{2029}", "\u{2003}",
            "\u{1680}", "\u{202F}", "\u{205F}", "\u{3000}",
        ],
        &["\u{1}", "\u{2013}", "\u{85}", "\u{180E}", "\u{200B}"],
    ),
    (r"^\S$", &["\u{1}", "\u{2013}"], &[" ", "\u{2003}"]),
    ("^.$", &["a", "\u{85}", "🐲"], &["\n", "\r", "\u{2028}", "\u{2029}", ""]),
    (r"^\cC\cj\0\x41\u0042\u{43}\u{1F432}\uD83D\uDC32$", &["\u{3}\n\0ABC🐲🐲"], &["cCcj0ABC🐲🐲"]),
    (r"^\uD83D$|x", &["x"], &["\u{FFFD}", ""]),
    (r"^[\uD83D\uDC32-\uD83D\uDC33]$", &["🐲", "🐳"], &["🐴"]),
    (r"^[\u{D7FF}-\u{E000}]$", &["\u{D7FF}", "\u{E000}"], &["\u{D7FE}"]),
    ("^🐲*$", &["", "🐲🐲"], &["🐉", "D"]),
    (r"^\t\n\v\f\r$", &["\t\n\u{B}\u{C}\r"], &[r"\t\n\v\f\r"]),
    (r"^\-\_\/\.\ \'\@\#\é$", &["-_/. '@#é"], &[""]),
    (r"^{}]a{b{1,c}d{,2}$", &["{}]a{b{1,c}d{,2}"], &["dd"]),
    (r"^a{2}b{1,}c{0,1}$", &["aab", "aabbbc"], &["ab", "aabcc"]),
    (r"^[a-c-e]+$", &["a-e", "b"], &["d"]),
    (r"^[\w-.]+$", &["a-.", "b"], &["/", "+"]),
    (r"^[A-\d]+$", &["A-9"], &["B"]),
    (r"^[-a][a-][\]\-\\^][^^][\b]$", &["-a]x\u{8}", "a-^-\u{8}"], &["--a^\u{8}"]),
    ("^[]$|^b$", &["b"], &["", "a"]),
    ("^[^]$", &["a", "\n", "\u{2028}"], &["", "ab"]),
    ("^(?<year>[0-9]{4})(?:-)([0-9]{2})$", &["2024-01"], &["202401"]),
    ("^a*?b+?c??$", &["aabbc", "b"], &["aac"]),
    (r"\bfoo\b", &["foo", "a foo.", "éfooé"], &["foobar", "_foo"]),
    (r"^\Bé$|^x\By$", &["é", "xy"], &["x"]),
    ("^(a|b^c|d$)$", &["a", "d"], &["bc"]),
    ("a$b|c^d", &[], &["ab", "cd", ""]),
    ("(?:^|,)x(?:,|$)", &["x", "a,x", "x,b", "a,x,b"], &["ax", "xb"]),
    // Lookaround.
    ("^(?!admin$)[a-z]+$", &["user", "administrator", "adm"], &["admin", "A", ""]),
    ("^(?=.*[0-9])(?=.*[a-z]).{4,8}$", &["abc1", "1zzz9999"], &["abcd", "1234", "a1", "a12345678"]),
    (r"^((?!mode)(?!Mode).)*$", &["", "made", "mod\u{e9}"], &["a mode", "Mode", "a\n"]),
    (r"^(?!^lucene\.|builtin\.|mongodb\.).*", &["lucene", "xlucene."], &["lucene.a", "mongodb.x"]),
    (r"((?:[^/]*/)*)(?=\.(yaml|yml|json))", &[".yaml", "a/.json", "a.yml"], &["yaml", "a/json"]),
    (r"^([\da-z](?:(?!.*--)[\da-z-]*[\da-z])?)$", &["a", "a-b"], &["a--b", "a-"]),
    (r"^(?![ \t\n]*\(default(.*)\))[\s\S]*", &["x (default)", ""], &[" (default) "]),
    (r"(?<=\$)\d+", &["$1", "a$22"], &["1$", "€1"]),
    (r"(?<!\$)\b\d+", &["1", "$12 3"], &["$12", "a1"]),
    (r"(?<=^a|bc)d$", &["ad", "xbcd"], &["xad", "cd"]),
    (r"(?<=a+)b(?=c+$)", &["aabcc"], &["bc", "abcd"]),
    (r"a(?!b)c", &["ac", "abac"], &["abc", "ab"]),
    (r"(?:(?=(a|b))[a-z]){2}x", &["abx"], &["acx"]),
    (r"^(?=a(?!b))a", &["a", "ac"], &["ab"]),
    ("^(?=a)*b", &["b"], &["a"]),
];

#[test]
fn patterns_follow_the_dialect() {
    for (pattern, found, not_found) in TABLE {
        let plain = dfa(pattern);
        let bounded = compile(pattern, &DfaLimits::default()).expect("the plain form compiles");
        for (texts, expected) in [(found, true), (not_found, false)] {
            for text in *texts {
                assert_eq!(plain.accepts(text), expected, "{pattern:?} on {text:?}");
                assert_eq!(accepts(&bounded, text), expected, "{pattern:?} on {text:?}");
            }
        }
    }
}

fn accepts(pattern: &Pattern, text: &str) -> bool {
    let chars = text.chars().count() as u64;
    pattern.dfa.accepts(text)
        && chars >= pattern.min_chars
        && pattern.max_chars.is_none_or(|max| chars <= max)
}

#[test]
fn bounds_on_the_whole_length_are_counters() {
    for (pattern, min, max) in [
        ("^.{0,100000}$", 0, Some(100_000)),
        ("^[a-z]{1,65536}$", 1, Some(65_536)),
        (r"^(\p{L}{20})$", 20, Some(20)),
        (r"^(?=.{17,255}$)(?!x)(?=.{3,200}$)[a-z.]+$", 17, Some(200)),
        ("^.{100,}$", 100, None),
        ("^a{1,16}$", 0, None),
        ("^a{1,200}b$", 0, None),
        ("a{1,200}$", 0, None),
        ("^(?!.{20,30}$)x", 0, None),
    ] {
        let compiled = compile(pattern, &DfaLimits::default()).expect("small");
        assert_eq!((compiled.min_chars, compiled.max_chars), (min, max), "{pattern}");
        assert_eq!(compiled.is_plain(), (min, max) == (0, None));
    }
    // The same language as without the counters.
    let pattern = "^(?=[a-zé]{0,30}$)(?!.*aa).{18,40}$";
    let (plain, bounded) = (dfa(pattern), compile(pattern, &DfaLimits::default()).expect("small"));
    let mut random = Random(5);
    for _ in 0..5000 {
        let text: String = (0..random.below(45))
            .map(|i| if i % 2 == 0 && random.below(200) > 0 { 'é' } else { 'a' })
            .collect();
        assert_eq!(plain.accepts(&text), accepts(&bounded, &text), "{text}");
    }
}

#[test]
fn what_is_no_pattern_is_an_error_with_its_place() {
    for (pattern, offset, expected) in [
        ("^(abc]", 6, Expected::ClosingParenthesis),
        ("a)", 1, Expected::Atom),
        ("*a", 0, Expected::Atom),
        ("a**", 2, Expected::Atom),
        ("a++", 2, Expected::Atom),
        ("^*", 1, Expected::Atom),
        (r"\b+", 2, Expected::Atom),
        ("{1}", 0, Expected::Atom),
        ("(?<=a)*", 6, Expected::Atom),
        ("a{2,1}", 1, Expected::AscendingCounts),
        ("[a", 2, Expected::ClosingBracket),
        ("[b-a]", 1, Expected::AscendingRange),
        (r"\a", 1, Expected::Escape),
        (r"\Z", 1, Expected::Escape),
        ("é\\", 3, Expected::Escape),
        (r"\01", 1, Expected::Escape),
        (r"\2(a)", 1, Expected::Escape),
        (r"[\B]", 2, Expected::Escape),
        (r"\c1", 2, Expected::ControlLetter),
        (r"\x4", 2, Expected::HexDigits),
        (r"\u12", 2, Expected::HexDigits),
        (r"\u{110000}", 3, Expected::CodePoint),
        (r"\u{}", 3, Expected::CodePoint),
        (r"\p{Klingon}", 2, Expected::Property),
        (r"\p{sc=}", 2, Expected::Property),
        (r"\pL", 2, Expected::Property),
        (r"\p{Age=6.0}", 2, Expected::Property),
        ("(?P<n>a)", 2, Expected::GroupKind),
        ("(?#x)", 2, Expected::GroupKind),
        ("(?i)a", 2, Expected::GroupKind),
        ("(?>a)", 2, Expected::GroupKind),
        ("(?<1>a)", 3, Expected::GroupName),
        ("(?<a", 3, Expected::GroupName),
        ("(?<a>x)(?<a>y)", 10, Expected::UniqueGroupName),
    ] {
        match compile(pattern, &DfaLimits::default()) {
            Err(PatternError::Syntax { offset: at, expected: what, got }) => {
                assert_eq!((at, what), (offset, expected), "{pattern:?}");
                assert_eq!(got, pattern[at..].chars().next(), "{pattern:?}");
            }
            other => panic!("{pattern:?}: {other:?}"),
        }
    }
}

#[test]
fn what_is_not_decided_is_refused_by_name() {
    for (pattern, offset, construct) in [
        (r"(a)\1", 3, Construct::Backreference),
        (r"\1(a)", 0, Construct::Backreference),
        (r"(?<n>a)\k<n>", 7, Construct::Backreference),
        ("x(?i:a)", 1, Construct::Modifiers),
        ("(?=a(?<=b))", 4, Construct::LookbehindInLookahead),
        ("(?<=a(?!b))", 5, Construct::LookaheadInLookbehind),
    ] {
        assert_eq!(
            compile(pattern, &DfaLimits::default()),
            Err(PatternError::Unsupported { offset, construct }),
            "{pattern:?}"
        );
    }
    let deep = "(".repeat(100_000) + &")".repeat(100_000);
    assert!(matches!(
        compile(&deep, &DfaLimits::default()),
        Err(PatternError::Nesting { offset: 200, limit: 200 })
    ));
    let message = compile(r"(a)\1", &DfaLimits::default()).expect_err("refused").to_string();
    assert!(message.contains("backreference at byte 3"), "{message}");
}

#[test]
fn hostile_patterns_end_in_a_result_or_a_named_limit() {
    // The limits are counts of work, so no clock is needed to see them hold.
    let within = |pattern: &str| compile(pattern, &DfaLimits::default());
    for pattern in [
        "(a{1000}){1000}",
        "(((x{100}){100}){100}){100}",
        "a{1,65536}b",
        "a{99999999999999999999}b",
        &"é".repeat(500_000),
        &r"[\p{L}\p{N}]".repeat(10_000),
    ] {
        assert!(matches!(
            within(pattern),
            Err(PatternError::Limit(
                DfaError::NfaBytes { .. }
                    | DfaError::States { .. }
                    | DfaError::DeterminizeSteps { .. }
            ))
        ));
    }
    let alternatives = within(&"a|b|".repeat(250_000));
    assert!(matches!(alternatives, Err(PatternError::Limit(_))));
    assert!(within(&"[".repeat(1_000_000)).is_err());
    assert!(within(&r"\p{".repeat(300_000)).is_err());
}
