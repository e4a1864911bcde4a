//! The first strings of a language, by the length of their texts.

use rustc_hash::FxHashSet;

use crate::dfa::Dfa;
use crate::text::{escape_into, short_escape};

use super::super::{GoalLimit, StringShape};
use super::Texts;

/// The bytes of contents, those that are easy to read first.
fn byte_rank(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => byte - b'a',
        b'0'..=b'9' => 26 + (byte - b'0'),
        b'A'..=b'Z' => 36 + (byte - b'A'),
        _ => 62,
    }
}

/// Bytes with which a byte of a content is written.
fn written_len(byte: u8) -> usize {
    match short_escape(byte) {
        Some(_) => 2,
        None if byte < b' ' => 6,
        None => 1,
    }
}

/// The first strings of a shape, quoted, by the length of their texts.
pub(super) fn first_strings(
    shape: &StringShape,
    count: usize,
    steps: usize,
) -> Result<Texts, GoalLimit> {
    let mut search =
        WordSearch { shape, steps, found: Vec::new(), count, dead: FxHashSet::default() };
    let shortest = shape.shortest_text(None).len();
    // Of a finite language no word has more bytes than there are states.
    let is_finite = shape.language.count_up_to(u64::MAX) != u64::MAX;
    let most_bytes = match (is_finite, shape.max_length) {
        (true, _) => Some(shape.language.states()),
        (false, Some(max)) => usize::try_from(max.saturating_mul(4)).ok(),
        (false, None) => None,
    };
    let longest = most_bytes.map(|bytes| bytes.saturating_mul(6));
    let mut length = shortest;
    while search.found.len() < count {
        if longest.is_some_and(|longest| length > longest) {
            return Ok((search.found, true));
        }
        search.run(length)?;
        length += 1;
    }
    Ok((search.found, false))
}

/// Lists the words of a shape that are written with a number of bytes.
struct WordSearch<'a> {
    shape: &'a StringShape,
    /// Steps that are left.
    steps: usize,
    found: Vec<Vec<u8>>,
    count: usize,
    /// States, code points and bytes left from which nothing was found.
    dead: FxHashSet<(u32, u64, usize)>,
}

/// A position in the search: what is there, and the bytes that are still to be tried.
struct Level {
    key: (u32, u64, usize),
    bytes: Vec<(u8, u32)>,
    found_before: usize,
}

impl WordSearch<'_> {
    fn run(&mut self, length: usize) -> Result<(), GoalLimit> {
        let mut word: Vec<u8> = Vec::new();
        let start = self.level((self.shape.language.start(), 0, length));
        let mut levels = vec![start];
        while let Some(level) = levels.last_mut() {
            let Some((byte, target)) = level.bytes.pop() else {
                if level.found_before == self.found.len() {
                    self.dead.insert(level.key);
                }
                levels.pop();
                word.pop();
                continue;
            };
            let (_, points, left) = level.key;
            self.steps = self.steps.checked_sub(1).ok_or_else(|| GoalLimit {
                name: "item_steps",
                limit: 0,
                unit: "steps in the search for strings that differ",
                pointer: String::new(),
            })?;
            let points = points + u64::from(byte & 0xC0 != 0x80);
            let left = left - written_len(byte);
            word.push(byte);
            if left == 0 {
                if self.shape.is_complete(target, points) && std::str::from_utf8(&word).is_ok() {
                    let mut text = b"\"".to_vec();
                    escape_into(&word, &mut text);
                    text.push(b'"');
                    self.found.push(text);
                    if self.found.len() >= self.count {
                        return Ok(());
                    }
                }
                word.pop();
                continue;
            }
            let next = self.level((target, self.shape.saturate(points), left));
            levels.push(next);
        }
        Ok(())
    }

    fn level(&mut self, key: (u32, u64, usize)) -> Level {
        let (state, points, left) = key;
        let mut level = Level { key, bytes: Vec::new(), found_before: self.found.len() };
        if left == 0 {
            // Only the empty word is asked for like this.
            if self.shape.is_complete(state, points) {
                self.found.push(b"\"\"".to_vec());
            }
            return level;
        }
        if self.dead.contains(&key) {
            return level;
        }
        for transition in self.shape.language.transitions(state) {
            let least = self.shape.language.shortest_len(transition.target) as usize;
            for byte in transition.lo..=transition.hi {
                let points = points + u64::from(byte & 0xC0 != 0x80);
                if transition.target != Dfa::DEAD
                    && left >= least.saturating_add(written_len(byte))
                    && self.shape.is_live(transition.target, points)
                {
                    level.bytes.push((byte, transition.target));
                }
            }
        }
        // A stack: what comes first is last.
        level.bytes.sort_by_key(|&(byte, _)| std::cmp::Reverse((byte_rank(byte), byte)));
        level
    }
}
