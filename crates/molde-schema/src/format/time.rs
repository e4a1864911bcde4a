//! `date`, `time`, `date-time`, `duration`: RFC 3339, section 5.6 and appendix A.

use std::collections::BTreeMap;

use super::whole;
use crate::dfa::{Dfa, DfaError, DfaLimits, RawDfa, minimize};
use crate::pattern::{Pattern, PatternError};

/// A calendar date, leap years included.
const DATE: &str = concat!(
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])",
    r"|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)",
    r"|02-(?:0[1-9]|1\d|2[0-8]))",
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29",
);

const CLOCK: &str = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d";

const OFFSET: &str = r"[+-](?:[01]\d|2[0-3]):[0-5]\d";

pub(super) fn date(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    whole(&date_expression(standard), limits)
}

fn date_expression(standard: bool) -> String {
    if standard { DATE.to_owned() } else { format!("(?!0000)(?:{DATE})") }
}

pub(super) fn time(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    Ok(time_dfa(standard, limits)?.into())
}

pub(super) fn date_time(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    date_and_time(standard, &time_dfa(standard, limits)?, limits)
}

/// All times, and second 60 at every offset.
pub(super) fn outer_time(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let leap = format!(r"(?:[01]\d|2[0-3]):[0-5]\d:60(?:\.\d+)?(?:[Zz]|{OFFSET})");
    Ok(time_dfa(true, limits)?.union(&whole(&leap, limits)?.dfa, limits)?.into())
}

pub(super) fn outer_date_time(limits: &DfaLimits) -> Result<Pattern, PatternError> {
    date_and_time(true, &outer_time(limits)?.dfa, limits)
}

fn date_and_time(standard: bool, time: &Dfa, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let date = whole(&date_expression(standard), limits)?.dfa;
    // No date continues into another one, so the concatenation is deterministic as it stands:
    // the date's accepting states get the separator, and lead to the time.
    let mut raw = RawDfa::new();
    let shift = date.states() as u32 - 1;
    let after_separator = time.start() + shift;
    let separators: &[u8] = if standard { b"Tt" } else { b"T" };
    for state in 1..date.states() as u32 {
        raw.push_state(false, limits)?;
        for t in date.transitions(state) {
            raw.push_transition(t.lo, t.hi, t.target);
        }
        if date.is_accepting(state) {
            for &byte in separators {
                raw.push_transition(byte, byte, after_separator);
            }
        }
    }
    for state in 1..time.states() as u32 {
        raw.push_state(time.is_accepting(state), limits)?;
        for t in time.transitions(state) {
            raw.push_transition(t.lo, t.hi, t.target + shift);
        }
    }
    Ok(minimize(&raw, 1, limits)?.into())
}

fn time_dfa(standard: bool, limits: &DfaLimits) -> Result<Dfa, PatternError> {
    if !standard {
        return Ok(whole(&format!(r"{CLOCK}(?:\.\d{{1,6}})?(?:Z|{OFFSET})"), limits)?.dfa);
    }
    let plain = whole(&format!(r"{CLOCK}(?:\.\d+)?(?:[Zz]|{OFFSET})"), limits)?.dfa;
    Ok(plain.union(&leap_seconds(limits)?, limits)?)
}

/// The times of second 60: those that are 23:59:60 in UTC, at offsets of whole quarter hours.
///
/// The local hour and minute fix the offset, so there is one branch for each of the 96.
fn leap_seconds(limits: &DfaLimits) -> Result<Dfa, DfaError> {
    const DAY: i32 = 24 * 60;
    let mut graph = Graph::default();
    let start = graph.state();
    let end = graph.state();
    for quarter in 0..96 {
        let offset = quarter * 15;
        let local = (DAY - 1 + offset) % DAY;
        let second =
            graph.path(start, format!("{:02}:{:02}:60", local / 60, local % 60).as_bytes());
        let point = graph.path(second, b".");
        let fraction = graph.state();
        for digit in b'0'..=b'9' {
            graph.states[point].insert(digit, fraction);
            graph.states[fraction].insert(digit, fraction);
        }
        // East of Greenwich local time is ahead, west of it behind.
        let east = format!("+{:02}:{:02}", offset / 60, offset % 60);
        let west = (DAY - offset) % DAY;
        let west = format!("-{:02}:{:02}", west / 60, west % 60);
        for from in [second, fraction] {
            graph.path_to(from, east.as_bytes(), end);
            graph.path_to(from, west.as_bytes(), end);
            if offset == 0 {
                graph.path_to(from, b"Z", end);
                graph.path_to(from, b"z", end);
            }
        }
    }
    let mut raw = RawDfa::new();
    for (id, state) in graph.states.iter().enumerate() {
        raw.push_state(id == end, limits)?;
        for (&byte, &target) in state {
            raw.push_transition(byte, byte, target as u32 + 1);
        }
    }
    minimize(&raw, start as u32 + 1, limits)
}

/// A deterministic graph that grows by words.
#[derive(Default)]
struct Graph {
    states: Vec<BTreeMap<u8, usize>>,
}

impl Graph {
    fn state(&mut self) -> usize {
        self.states.push(BTreeMap::new());
        self.states.len() - 1
    }

    /// The state after `word`, made where it is missing.
    fn path(&mut self, from: usize, word: &[u8]) -> usize {
        word.iter().fold(from, |at, &byte| {
            if let Some(&next) = self.states[at].get(&byte) {
                return next;
            }
            let next = self.state();
            self.states[at].insert(byte, next);
            next
        })
    }

    /// Lets `word` lead to `to`.
    fn path_to(&mut self, from: usize, word: &[u8], to: usize) {
        if let Some((&last, word)) = word.split_last() {
            let at = self.path(from, word);
            self.states[at].insert(last, to);
        }
    }
}

pub(super) fn duration(standard: bool, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let n = if standard { r"\d+" } else { r"\d{1,4}" };
    let time = format!("T(?:{n}H(?:{n}M(?:{n}S)?)?|{n}M(?:{n}S)?|{n}S)");
    let date = format!("(?:{n}Y(?:{n}M(?:{n}D)?)?|{n}M(?:{n}D)?|{n}D)");
    whole(&format!("P(?:{date}(?:{time})?|{time}|{n}W)"), limits)
}
