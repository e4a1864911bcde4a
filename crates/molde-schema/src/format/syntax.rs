//! `uuid` (RFC 4122), `json-pointer` (RFC 6901), `relative-json-pointer`, `regex` (ECMA-262).

use super::whole;
use crate::dfa::DfaLimits;
use crate::pattern::{Pattern, PatternError};

pub(super) fn uuid(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let hex = r"[\dA-Fa-f]";
    whole(&format!("{hex}{{8}}(?:-{hex}{{4}}){{3}}-{hex}{{12}}"), limits)
}

const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

pub(super) fn json_pointer(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(JSON_POINTER, limits)
}

pub(super) fn relative_json_pointer(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(&format!(r"(?:0|[1-9]\d*)(?:#|{JSON_POINTER})"), limits)
}

/// Regular expressions of bounded depth whose parts mean the same to every common engine.
pub(super) fn regex(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    // What stands for itself: everything but the syntax characters and what is not printed.
    let literal = r##"[ !"#%&',:;<=>@A-Z_`a-z~\d\u{A1}-\u{24F}\u{370}-\u{3FF}\u{400}-\u{4FF}/-]"##;
    let hex = r"[\dA-Fa-f]";
    let code = format!("\\\\(?:u{hex}{{4}}|x{hex}{{2}})");
    let escape = format!(r"(?:\\[dDwWsStnrfv^$\\.*+?()\[\]{{}}|/]|{code})");
    let member = r##"[ !"#%&',:;<=>@A-Z_`a-z~\d.*+?$|(){}\u{A1}-\u{24F}/]"##;
    let class_escape = format!(r"(?:\\[dDwWsStnrfv\\\]\[^$.*+?(){{}}|/-]|{code})");
    // A hyphen stands for itself at the ends; elsewhere it makes a range, of one kind of letters.
    let ranges = ranges();
    let class = format!(r"\[\^?(?:-?(?:{ranges}|{member}|{class_escape})+-?|-)\]");
    let counts = counts();
    let quantifier = format!(r"(?:(?:[*+?]|\{{(?:\d{{1,3}},?|{counts})\}})\??)?");
    let assertion = r"(?:\^|\$|\\[bB])";
    let mut disjunction = String::new();
    for depth in 0..=2 {
        let (group, lookahead) = if depth == 0 {
            (String::new(), String::new())
        } else {
            (format!(r"|\((?:\?:)?{disjunction}\)"), format!(r"|\(\?[=!]{disjunction}\)"))
        };
        let atom = format!("(?:{literal}|{escape}|\\.|{class}{group})");
        // Empty alternatives are alternatives.
        disjunction = format!("(?:\\||{assertion}{lookahead}|{atom}{quantifier})*");
    }
    whole(&disjunction, limits)
}

/// Whatever does not begin with a quantifier or the end of a group, which no expression does.
pub(super) fn outer_regex(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole("(?![*+?)])[^]*", limits)
}

/// `a-f` and the like: from a letter or digit to one that is not before it.
fn ranges() -> String {
    let mut ranges = Vec::new();
    for (first, last) in [(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')] {
        for from in first..=last {
            ranges.push(format!("{}-[{}-{}]", from as char, from as char, last as char));
        }
    }
    ranges.join("|")
}

/// `3,16` and the like: up to two digits, and up to three that are not less. Where the first is 30 or
/// more, the second has other tens.
fn counts() -> String {
    let mut counts = Vec::new();
    for least in 0..10 {
        counts.push(format!(r"{least},(?:[{least}-9]|[1-9]\d{{1,2}})"));
    }
    for tens in 1..10 {
        let more = if tens < 9 { format!(r"[{}-9]\d|", tens + 1) } else { String::new() };
        if tens > 2 {
            counts.push(format!(r"{tens}\d,(?:{more}[1-9]\d{{2}})"));
            continue;
        }
        for ones in 0..10 {
            counts.push(format!(r"{tens}{ones},(?:{tens}[{ones}-9]|{more}[1-9]\d{{2}})"));
        }
    }
    counts.join("|")
}
