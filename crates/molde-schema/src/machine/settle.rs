//! Recording the names of undeclared keys and the values of items that are compared.
//!
//! Inside a key that can no longer equal a name that is taken, all texts are alike: one state
//! stands for them all, and masks are shared. The same is true of an item that can no longer equal
//! one before it. The price is that the automaton does not know the key, or the item, when it ends;
//! the container's frame is then *pending*. Whoever walks the automaton along a real text (rather
//! than along the tokens of a vocabulary) settles the state with that text, and the frame learns
//! what it was, so that it never comes twice.

use rustc_hash::FxHashMap;

use crate::goal::{GoalLimit, ItemState};

use super::frame::{Frame, StackId};
use super::scan::Scan;
use super::thread::Thread;
use super::{DEAD, SchemaAutomaton, UNDECIDED};

impl SchemaAutomaton {
    /// Whether [`settle`](Self::settle) would change the state.
    pub fn needs_settling(&self, state: u32) -> bool {
        state > UNDECIDED
            && self.states[state as usize].iter().any(|thread| self.stacks.is_pending(thread.stack))
    }

    /// The state that also knows the undeclared keys and the items which have ended since the last
    /// call. `text` is the whole text so far, and `state` the state it leads to.
    ///
    /// To be called after each byte of a real text, and never while a vocabulary is walked. (What is
    /// read before the call goes by what is known: a step that depends on more is undecided.)
    ///
    /// # Complexity
    /// O(1) unless a key or an item has ended, then O(bytes since the last call) and a comparison
    /// of the text with that of the last call.
    pub fn settle(&mut self, state: u32, text: &[u8]) -> u32 {
        if !self.needs_settling(state) {
            return state;
        }
        let scan = self.scans.read(text);
        let mut settled = FxHashMap::default();
        let mut after = Vec::new();
        for thread in self.states[state as usize].clone() {
            match self.settle_stack(thread.stack, text, &scan, &mut settled) {
                Ok(stack) => after.push(Thread { stack, ..thread }),
                Err(limit) => {
                    self.last_limit = Some(limit);
                    return UNDECIDED;
                }
            }
        }
        after.sort_unstable();
        after.dedup();
        if after.is_empty() { DEAD } else { self.intern(after) }
    }

    fn settle_stack(
        &mut self,
        stack: StackId,
        text: &[u8],
        scan: &Scan,
        settled: &mut FxHashMap<StackId, StackId>,
    ) -> Result<StackId, GoalLimit> {
        let mut frames = Vec::new();
        let mut at = stack;
        while self.stacks.is_pending(at) {
            if let Some(&known) = settled.get(&at) {
                at = known;
                break;
            }
            let Some((frame, parent)) = self.stacks.top(at) else { break };
            frames.push((at, frame));
            at = parent;
        }
        for (old, frame) in frames.into_iter().rev() {
            let depth = self.stacks.depth(at) as usize;
            let frame = match frame {
                Frame::Object { shape, progress } if self.stacks.progress(progress).pending => {
                    let name = scan.last_key(depth, text).map(unquote).unwrap_or_default();
                    let recorded = self.stacks.progress(progress).recorded(&name);
                    Frame::Object { shape, progress: self.stacks.intern_progress(recorded) }
                }
                Frame::Array { shape, count, items, start }
                    if self.stacks.items(items).pending.is_some() =>
                {
                    let item = scan.last_item(depth, text).unwrap_or_default();
                    let value = self.goals.value(item)?;
                    let state = self.stacks.items(items).with_value(value);
                    let items = self.stacks.intern_items(ItemState { pending: None, ..state });
                    Frame::Array { shape, count, items, start }
                }
                frame => frame,
            };
            at = self.stacks.push(at, frame, self.stacks.keeps_text(old));
            settled.insert(old, at);
        }
        Ok(at)
    }
}

/// The content of a JSON string, from the raw bytes between its quotes.
fn unquote(raw: &[u8]) -> String {
    let mut content = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied();
    let mut high: Option<u32> = None;
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            content.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'u') => {
                let unit = bytes
                    .by_ref()
                    .take(4)
                    .fold(0, |unit, digit| unit << 4 | char::from(digit).to_digit(16).unwrap_or(0));
                let code = match (high.take(), unit) {
                    (None, 0xD800..=0xDBFF) => {
                        high = Some(unit);
                        continue;
                    }
                    (Some(high), _) => {
                        0x10000 + ((high - 0xD800) << 10) + unit.wrapping_sub(0xDC00)
                    }
                    (None, _) => unit,
                };
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                content.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(letter) => content.push(crate::text::unescape(letter).unwrap_or(letter)),
            None => {}
        }
    }
    String::from_utf8_lossy(&content).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unquoted_with_every_kind_of_escape() {
        assert_eq!(unquote(br#"a\"\\\/\n\u00e9\ud83d\ude00z"#), "a\"\\/\né😀z");
        assert_eq!(unquote("ñ".as_bytes()), "ñ");
    }
}
