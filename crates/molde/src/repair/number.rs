//! Numbers that are not written as JSON writes them.

use crate::exact::Exact;
use crate::numbers::{readings_of, unit_after};

/// What a number is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// No fraction is allowed.
    pub(super) integer: bool,
    /// The power of ten of the unit that the field declares.
    pub(super) unit: Option<i64>,
}

/// Whether a text is a JSON number.
pub(super) fn is_json(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => {
            (mantissa, Some(power.strip_prefix(['+', '-']).unwrap_or(power)))
        }
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && power.is_none_or(digits)
}

/// The JSON number that a text says, if it says one only.
pub(super) fn read(text: &str, wanted: Wanted) -> Option<String> {
    let text = text.trim();
    if is_json(text) {
        // For an integer `2.024` can only be two thousand and twenty-four.
        let number = Exact::from_json(text)?;
        let is_whole = number.plain().is_some_and(|plain| !plain.contains('.'));
        if !wanted.integer || is_whole {
            return Some(text.to_owned());
        }
    }
    let (negative, rest) = sign(text);
    let rest = strip_currency(rest);
    let (sign_inside, rest) = sign(rest);
    if negative && sign_inside {
        return None;
    }
    let rest = strip_letters(rest, wanted)?;
    let end = numeral_end(rest);
    let (numeral, after) = rest.split_at(end);
    let mut number = numeral_value(numeral, wanted)?;
    if negative || sign_inside {
        number = number.negated();
    }
    let after = strip_currency(after.trim());
    let after = after.strip_prefix('%').unwrap_or(after).trim();
    if !after.is_empty() {
        // A unit word is understood where the field declares its own unit.
        let scale = unit_after(after)?;
        number = number.scaled(scale - wanted.unit?);
        let rest = strip_unit(after);
        if !strip_currency(rest).is_empty() {
            return None;
        }
    }
    let plain = number.plain()?;
    (!wanted.integer || !plain.contains('.')).then_some(plain)
}

fn sign(text: &str) -> (bool, &str) {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix(['-', '−']) {
        return (true, rest.trim_start());
    }
    (false, text.strip_prefix(['+', '~', '≈']).unwrap_or(text).trim_start())
}

const CURRENCIES: [&str; 9] = ["US$", "USD", "EUR", "GBP", "$", "€", "£", "euros", "dólares"];

/// The text without a currency at its ends.
fn strip_currency(text: &str) -> &str {
    let mut text = text.trim();
    for currency in CURRENCIES {
        let bare = text.strip_prefix(currency).or_else(|| text.strip_suffix(currency));
        if let Some(rest) = bare {
            text = rest.trim();
            break;
        }
    }
    text
}

/// The text without the unit words, and the currency that follows "de" or "of".
fn strip_unit(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..2 {
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        if crate::numbers::scale_of(&rest[..end]).is_none() {
            break;
        }
        rest = rest[end..].trim_start_matches(['.', ' ']);
    }
    let is_link = matches!(rest, "de" | "of") || rest.starts_with("de ") || rest.starts_with("of ");
    if is_link { rest[2..].trim() } else { rest.trim() }
}

/// `Q4`, `FY2024` and `4T` are the integers in them. Letters that are a unit are none of these.
fn strip_letters(text: &str, wanted: Wanted) -> Option<&str> {
    let digits = text.find(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','))?;
    let prefix = &text[..digits];
    if !prefix.is_empty() {
        let short = prefix.chars().count() <= 2 && prefix.chars().all(char::is_alphabetic);
        return (short && wanted.integer).then(|| &text[digits..]);
    }
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if wanted.integer && matches!(suffix, "T" | "Q" | "t" | "q" | "º" | "th" | "st" | "nd" | "rd")
    {
        return Some(&text[..text.len() - suffix.len()]);
    }
    Some(text)
}

fn numeral_end(text: &str) -> usize {
    let is_part = |c: char| {
        c.is_ascii_digit()
            || matches!(c, '.' | ',' | '\'' | '’' | '_' | ' ' | '\u{a0}' | '\u{202f}')
    };
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    text[..end].trim_end_matches([' ', '\u{a0}', '\u{202f}']).len()
}

fn numeral_value(text: &str, wanted: Wanted) -> Option<Exact> {
    // `.5` and `5.` lack a zero.
    let padded = match (text.starts_with(['.', ',']), text.ends_with(['.', ','])) {
        (true, true) => return None,
        (true, false) => format!("0{text}"),
        (false, true) => text[..text.len() - 1].to_owned(),
        (false, false) => text.to_owned(),
    };
    let groups: Vec<&str> = padded.split(|c: char| !c.is_ascii_digit()).collect();
    let separators: Vec<char> = padded.chars().filter(|c| !c.is_ascii_digit()).collect();
    if groups.iter().any(|group| group.is_empty()) {
        return None;
    }
    let readings = readings_of(&groups, &separators);
    match readings.as_slice() {
        [] => with_doubtful_last(&groups, &separators),
        [only] => Some(only.clone()),
        // Thousands or decimals. For an integer only thousands are possible; a point is what JSON
        // says it is; a comma can be either.
        [_, whole] if wanted.integer => Some(whole.clone()),
        [decimal, _] if separators == ['.'] => Some(decimal.clone()),
        _ => None,
    }
}

/// `13.561.9`: groups of three and a last one that is none, all with the same separator. The last
/// one can only be the fraction.
fn with_doubtful_last(groups: &[&str], separators: &[char]) -> Option<Exact> {
    let (last, whole) = groups.split_last()?;
    let (first, middle) = whole.split_first()?;
    let same = separators.iter().all(|mark| *mark == separators[0]) && separators.len() >= 2;
    let grouped =
        first.len() <= 3 && !first.starts_with('0') && middle.iter().all(|g| g.len() == 3);
    (same && grouped && matches!(separators[0], '.' | ',') && last.len() != 3)
        .then(|| Exact::new(false, &groups.concat(), last.len() as i64))
}
