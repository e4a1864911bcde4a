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
    let literal = r"[ !#%&',:;<=>@A-Z_`a-z~\d\u{A1}-\u{24F}\u{370}-\u{3FF}\u{400}-\u{4FF}/-]";
    let escape = r"\\[dDwWsStnrfv^$\\.*+?()\[\]{}|/]";
    let member = r"(?:[ !#%',:;<=>@A-Z_`a-z\d.*+?$(){}\u{A1}-\u{24F}/]|\\[dDwWsStnrf\\\]\[^-])";
    let class = format!(r"\[\^?(?:{member}|a-z|A-Z|0-9)+\]");
    let quantifier = r"(?:(?:[*+?]|\{(?:\d{1,2},?|0,[1-9]|1,[1-9]\d|2,[3-9])\})\??)?";
    let assertion = r"(?:\^|\$|\\[bB])";
    let mut alternatives = String::new();
    for depth in 0..=2 {
        let group =
            if depth == 0 { String::new() } else { format!(r"|\((?:\?:)?(?:{alternatives})\)") };
        let atom = format!("(?:{literal}|{escape}|\\.|{class}{group})");
        let sequence = format!("(?:{assertion}|{atom}{quantifier})+");
        alternatives = format!(r"{sequence}(?:\|{sequence})*");
    }
    whole(&alternatives, limits)
}
