//! The numbers of a document: what its numerals say, with every reading that they have.

use std::ops::Range;

use crate::exact::Exact;

/// A numeral of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Its bytes in the document, without unit words and signs.
    pub(crate) bytes: Range<usize>,
    /// What it says, without its unit word: several numbers where the separator is ambiguous
    /// (`1.234`), or the sign is (`(5)`).
    pub(crate) readings: Vec<Exact>,
    /// Powers of ten by which its unit word multiplies it: none is none known, several are possible
    /// where the word belongs to a neighbour (`500 to 600 million`).
    pub(crate) scales: Vec<i64>,
}

/// All numerals of a text, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentNumbers {
    pub(crate) mentions: Vec<Mention>,
}

/// Digits that are read as one numeral at most; a longer run is no number that is meant.
const MAX_DIGITS: usize = 64;

impl DocumentNumbers {
    /// Reads a text. Linear.
    pub(crate) fn read(text: &str) -> Self {
        let mut mentions = Vec::new();
        let mut at = 0;
        while let Some(found) = text[at..].find(|character: char| character.is_ascii_digit()) {
            let start = at + found;
            let numeral = Numeral::at(text, start);
            at = numeral.end;
            numeral.push_mentions(text, &mut mentions);
        }
        share_units(text, &mut mentions);
        Self { mentions }
    }

    /// The values that a field can take from the document: each with the place of its numeral, in
    /// document order. `unit` is the power of ten of the unit that the field declares.
    ///
    /// A numeral with a unit word is converted to the field's unit if that is known. One without is
    /// taken as it stands, and also as a count of ones if it is as large as the unit.
    pub(crate) fn values(&self, unit: Option<i64>) -> Vec<(Exact, Range<usize>)> {
        let mut values: Vec<(Exact, Range<usize>)> = Vec::new();
        for mention in &self.mentions {
            for reading in &mention.readings {
                for value in in_unit(reading, &mention.scales, unit) {
                    if !values.iter().any(|(known, at)| *known == value && *at == mention.bytes) {
                        values.push((value, mention.bytes.clone()));
                    }
                }
            }
        }
        values
    }
}

/// What a numeral says in a field's unit.
fn in_unit(reading: &Exact, scales: &[i64], unit: Option<i64>) -> Vec<Exact> {
    let Some(unit) = unit else {
        // The field declares no unit: the numeral as it stands, or spelled out in ones.
        return std::iter::once(reading.clone())
            .chain(scales.iter().map(|scale| reading.scaled(*scale)))
            .collect();
    };
    if scales.is_empty() {
        let in_ones = reading.magnitude().is_some_and(|magnitude| unit > 0 && magnitude >= unit);
        return std::iter::once(reading.clone())
            .chain(in_ones.then(|| reading.scaled(-unit)))
            .collect();
    }
    scales.iter().map(|scale| reading.scaled(scale - unit)).collect()
}

/// Whether a document contains a number, in any reading of its separators: as it stands, spelled out,
/// or in the unit that `description` declares.
///
/// ```
/// assert!(molde::contains_number("revenue of $7.23 billion", "7230", "millions of USD"));
/// assert!(!molde::contains_number("revenue of $7.23 billion", "723", "millions of USD"));
/// ```
pub fn contains_number(document: &str, json: &str, description: &str) -> bool {
    let number = Exact::from_json(json);
    let numbers = DocumentNumbers::read(document);
    let is_it = |(value, _): &(Exact, Range<usize>)| Some(value) == number.as_ref();
    numbers.values(None).iter().any(is_it)
        || numbers.values(declared_unit(description)).iter().any(is_it)
}

/// The power of ten of the unit that a description declares, such as 6 for "millions of USD";
/// `None` if it names none, or several.
pub(crate) fn declared_unit(description: &str) -> Option<i64> {
    let words: Vec<&str> = description
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = None;
    let mut index = 0;
    while index < words.len() {
        let pair = (words[index], words.get(index + 1).copied());
        let (scale, used) = match pair {
            (first, Some(second)) if first.eq_ignore_ascii_case("mil") && is_millions(second) => {
                (Some(9), 2)
            }
            // "mil" alone is a word of many texts, not a unit that is declared.
            (word, _) if word.eq_ignore_ascii_case("mil") => (None, 1),
            (word, _) => (scale_of(word).filter(|_| word.chars().count() > 2), 1),
        };
        if let Some(scale) = scale {
            if found.is_some_and(|other| other != scale) {
                return None;
            }
            found = Some(scale);
        }
        index += used;
    }
    found
}

fn is_millions(word: &str) -> bool {
    matches!(scale_of(word), Some(6)) && word.chars().count() > 2
}

/// The power of ten that a unit word stands for. `billón` is 10^12 in Spanish, `billion` 10^9.
pub(crate) fn scale_of(word: &str) -> Option<i64> {
    Some(match word.to_lowercase().as_str() {
        "thousand" | "thousands" | "k" | "mil" | "miles" => 3,
        "million" | "millions" | "mn" | "m" | "mm" | "mln" | "millón" | "millon" | "millones"
        | "mill" => 6,
        "billion" | "billions" | "bn" | "b" | "bln" | "millardo" | "millardos" => 9,
        "trillion" | "trillions" | "tn" | "billón" | "billon" | "billones" => 12,
        _ => return None,
    })
}

/// Groups of digits with single separators between them.
struct Numeral {
    /// Start and end of each group.
    groups: Vec<Range<usize>>,
    /// The separator before each group but the first.
    separators: Vec<char>,
    end: usize,
}

impl Numeral {
    fn at(text: &str, start: usize) -> Self {
        let digits_end = |from: usize| {
            text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |len| from + len)
        };
        let mut groups: Vec<Range<usize>> = Vec::new();
        groups.push(start..digits_end(start));
        let mut separators = Vec::new();
        loop {
            let end = groups[groups.len() - 1].end;
            let mut rest = text[end..].chars();
            let Some(separator) = rest.next() else { break };
            let next = end + separator.len_utf8();
            if !rest.next().is_some_and(|character| character.is_ascii_digit()) {
                break;
            }
            let group = next..digits_end(next);
            let joins = match separator {
                '.' | ',' => true,
                // Grouping characters stand between a short group and groups of three only.
                '\'' | '’' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '_' | ' ' => {
                    group.len() == 3
                        && groups[0].len() <= 3
                        && groups[1..].iter().all(|group| group.len() == 3)
                        && separators.iter().all(|other| *other == separator)
                }
                _ => false,
            };
            if !joins {
                break;
            }
            groups.push(group);
            separators.push(separator);
        }
        let end = groups[groups.len() - 1].end;
        Self { groups, separators, end }
    }

    fn push_mentions(&self, text: &str, mentions: &mut Vec<Mention>) {
        let digits: Vec<&str> = self.groups.iter().map(|group| &text[group.clone()]).collect();
        let start = self.groups[0].start;
        let spaced = self.separators.contains(&' ');
        let readings = readings_of(&digits, &self.separators);
        if !readings.is_empty() {
            mentions.push(mention(text, start..self.end, readings));
        }
        // `4 530` can be two numbers, `12.11.2024` is no number at all.
        if self.groups.len() > 1
            && (mentions.last().is_none_or(|last| last.bytes.start != start) || spaced)
        {
            for group in &self.groups {
                let number = Exact::new(false, &text[group.clone()], 0);
                if group.len() <= MAX_DIGITS {
                    mentions.push(mention(text, group.clone(), vec![number]));
                }
            }
        }
    }
}

/// The numbers that groups of digits can say.
pub(crate) fn readings_of(groups: &[&str], separators: &[char]) -> Vec<Exact> {
    if groups.iter().map(|group| group.len()).sum::<usize>() > MAX_DIGITS {
        return Vec::new();
    }
    let whole = || Exact::new(false, &groups.concat(), 0);
    let decimal = || {
        let places = groups.last().map_or(0, |group| group.len());
        Exact::new(false, &groups.concat(), places as i64)
    };
    let is_decimal_mark = |mark: &char| matches!(mark, '.' | ',');
    let Some((last, earlier)) = separators.split_last() else { return vec![whole()] };
    let threes = |groups: &[&str]| groups.iter().all(|group| group.len() == 3);
    // A number that is grouped begins with one to three digits, and not with a zero.
    let leads = groups[0].len() <= 3 && !groups[0].starts_with('0');
    let grouped_before_last = || {
        leads && threes(&groups[1..groups.len() - 1]) && earlier.windows(2).all(|w| w[0] == w[1])
    };
    if earlier.is_empty() {
        let thousands = leads && threes(&groups[1..]);
        return match (is_decimal_mark(last), thousands) {
            (true, true) => vec![decimal(), whole()],
            (true, false) => vec![decimal()],
            (false, true) => vec![whole()],
            (false, false) => Vec::new(),
        };
    }
    if earlier.iter().all(|mark| mark == last) {
        return if leads && threes(&groups[1..]) { vec![whole()] } else { Vec::new() };
    }
    if is_decimal_mark(last) && !earlier.contains(last) && grouped_before_last() {
        return vec![decimal()];
    }
    Vec::new()
}

fn mention(text: &str, bytes: Range<usize>, mut readings: Vec<Exact>) -> Mention {
    let before = &text[..bytes.start];
    // A currency sign can stand between the sign and the digits.
    let unsigned = before.trim_end_matches(['$', '€', '£', '¥', ' ']);
    if let Some(rest) = unsigned.strip_suffix(['-', '−'])
        && !rest.ends_with(|character: char| character.is_alphanumeric() || character == '-')
        && (unsigned.len() == before.len() || !before.ends_with(' '))
        && !rest.trim_end().ends_with(|character: char| character.is_ascii_digit())
    {
        readings = readings.iter().map(Exact::negated).collect();
    } else if unsigned.ends_with('(') && text[bytes.end..].trim_start().starts_with(')') {
        readings.extend(readings.clone().iter().map(Exact::negated));
    }
    let scales = unit_after(&text[bytes.end..]).into_iter().collect();
    Mention { bytes, readings, scales }
}

/// The power of ten of the unit word with which `rest` begins.
pub(crate) fn unit_after(rest: &str) -> Option<i64> {
    let (word, after) = next_word(rest)?;
    let glued = rest.starts_with(word);
    // One letter is a unit only directly after the digits: `5M`, but not `5 m`.
    let short = word.chars().count() == 1;
    if short && !glued {
        return None;
    }
    let scale = scale_of(word)?;
    if word.eq_ignore_ascii_case("mil")
        && let Some((second, _)) = next_word(after)
        && is_millions(second)
    {
        return Some(9);
    }
    Some(scale)
}

/// The word with which a text begins, after spaces, a hyphen or a currency sign.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let start = text.trim_start_matches([' ', '\u{a0}', '\u{202f}', '-', '\n', '€', '$', '£']);
    if text.len() - start.len() > 8 {
        return None;
    }
    let end = start.find(|c: char| !c.is_alphabetic()).unwrap_or(start.len());
    // A word that goes on with digits is a name, as `m2`.
    let is_name = start[end..].starts_with(|c: char| c.is_ascii_digit());
    (end > 0 && !is_name).then(|| (&start[..end], &start[end..]))
}

/// Words between the two ends of a range.
const BETWEEN: [&str; 14] =
    ["and", "to", "y", "a", "o", "or", "e", "hasta", "through", "till", "und", "et", "&", "versus"];

/// A numeral without a unit word may have that of the next one, if both are ends of a range.
fn share_units(text: &str, mentions: &mut [Mention]) {
    for index in (0..mentions.len().saturating_sub(1)).rev() {
        let (left, right) = mentions.split_at_mut(index + 1);
        let (this, next) = (&mut left[index], &right[0]);
        if !this.scales.is_empty() || next.scales.is_empty() || next.bytes.start < this.bytes.end {
            continue;
        }
        let between = text[this.bytes.end..next.bytes.start]
            .trim_matches(|c: char| c.is_whitespace() || matches!(c, '$' | '€' | '£' | '¥'))
            .trim_start_matches("USD")
            .trim_start_matches("EUR")
            .trim_matches(|c: char| c.is_whitespace() || matches!(c, '$' | '€' | '£'));
        if BETWEEN.contains(&between.to_lowercase().as_str()) || matches!(between, "-" | "–" | "—")
        {
            this.scales.clone_from(&next.scales);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, unit: Option<i64>) -> Vec<String> {
        let mut values: Vec<String> = DocumentNumbers::read(text)
            .values(unit)
            .into_iter()
            .filter_map(|(value, _)| value.plain())
            .collect();
        values.sort();
        values.dedup();
        values
    }

    #[test]
    fn separators_are_read_in_both_conventions_and_ambiguous_ones_in_both_ways() {
        for (text, expected) in [
            ("7,230.5", &["7230.5"][..]),
            ("7.230,0", &["7230"]),
            ("13.561,9 y 1.234.567", &["1234567", "13561.9"]),
            ("1.234", &["1.234", "1234"]),
            ("1,234", &["1.234", "1234"]),
            ("0.234", &["0.234"]),
            ("7,23", &["7.23"]),
            ("12345.678", &["12345.678"]),
            ("7 230", &["230", "7", "7230"]),
            ("7\u{a0}230,5", &["7230.5"]),
            ("7'230.5", &["7230.5"]),
            ("12.11.2024", &["11", "12", "2024"]),
            ("1,234.5,6", &["1", "234", "5", "6"]),
            ("in Q4 2024, up 9%", &["2024", "4", "9"]),
            ("12.", &["12"]),
            ("", &[]),
        ] {
            assert_eq!(values(text, None), expected, "{text}");
        }
    }

    #[test]
    fn unit_words_convert_to_the_unit_of_the_field_and_nothing_else_does() {
        for (text, expected) in [
            ("$7.23 billion", &["7230"][..]),
            ("7.23 millones", &["7.23"]),
            ("7,23 mil millones de USD", &["7230"]),
            ("530 million", &["530"]),
            ("$7.23bn", &["7230"]),
            ("450k", &["0.45"]),
            ("450 m", &["450"]),
            ("$5,157,500,000", &["5157.5", "5157500000"]),
            ("412", &["412"]),
            ("2 billones", &["2000000"]),
            ("between $7.23 and $7.65 billion", &["7230", "7650"]),
            ("530 to 555 million", &["530", "555"]),
            ("4.9-5.1 billion", &["4900", "5100"]),
            ("3 stores and 2 billion", &["2000", "3"]),
        ] {
            assert_eq!(values(text, Some(6)), expected, "{text}");
        }
    }

    #[test]
    fn signs_are_told_from_dashes() {
        for (text, expected) in [
            ("a loss of -5.2", &["-5.2"][..]),
            ("-$5", &["-5"]),
            ("530-555", &["530", "555"]),
            ("530 - 555", &["530", "555"]),
            ("(5.2)", &["-5.2", "5.2"]),
            ("COVID-19", &["19"]),
        ] {
            assert_eq!(values(text, None), expected, "{text}");
        }
    }

    #[test]
    fn units_are_declared_in_words() {
        for (text, expected) in [
            ("millones de USD", Some(6)),
            ("in millions of USD", Some(6)),
            ("USD billion", Some(9)),
            ("mil millones de euros", Some(9)),
            ("thousands of units", Some(3)),
            ("in USD", None),
            ("thousands or millions", None),
            ("mil cosas", None),
        ] {
            assert_eq!(declared_unit(text), expected, "{text}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_places_are_inside_it() {
        let text = "é1,2€3.4'5 6\u{202f}789\u{a0}(١٢) 1.2.3.4.5 9999999999999999999999 -- -1 1e5 ½"
            .repeat(3);
        for mention in DocumentNumbers::read(&text).mentions {
            assert!(
                text.get(mention.bytes.clone())
                    .is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
            );
            assert!(!mention.readings.is_empty());
        }
    }
}
