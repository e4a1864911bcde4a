//! Recording the names of undeclared keys.
//!
//! Inside a key that can no longer equal a name that is taken, all texts are alike: one state
//! stands for them all, and masks are shared. The price is that the automaton does not know the
//! key when it ends; the object's frame is then *pending*. Whoever walks the automaton along a real
//! text (rather than along the tokens of a vocabulary) settles the state with that text before the
//! next token, and the frame learns the name, so that it is never written twice.

use rustc_hash::FxHashMap;

use super::SchemaAutomaton;
use super::frame::{Frame, StackId};
use super::thread::{Content, Leaf, Place, Thread};
use super::{DEAD, UNDECIDED};

/// The keys of the containers that are open at the end of a text, outermost first.
struct OpenKeys<'a> {
    /// For each open container, the raw content of the last key that has ended in it.
    last: Vec<Option<&'a [u8]>>,
    /// The raw content so far of a string that has not ended.
    unfinished: Option<&'a [u8]>,
}

impl<'a> OpenKeys<'a> {
    /// Scans a prefix of a JSON text.
    fn scan(text: &'a [u8]) -> Self {
        let mut open: Vec<bool> = Vec::new();
        let mut last: Vec<Option<&'a [u8]>> = Vec::new();
        let mut string: Option<usize> = None;
        let mut escaped = false;
        let mut expects_key = false;
        for (at, &byte) in text.iter().enumerate() {
            if let Some(start) = string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => {
                        if let (true, Some(last)) = (expects_key, last.last_mut()) {
                            *last = Some(&text[start..at]);
                        }
                        string = None;
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => string = Some(at + 1),
                b'{' | b'[' => {
                    open.push(byte == b'{');
                    last.push(None);
                    expects_key = byte == b'{';
                }
                b'}' | b']' => {
                    open.pop();
                    last.pop();
                    expects_key = false;
                }
                b',' => expects_key = open.last() == Some(&true),
                b':' => expects_key = false,
                _ => {}
            }
        }
        Self { last, unfinished: string.map(|start| &text[start..]) }
    }
}

impl SchemaAutomaton {
    /// Whether [`settle`](Self::settle) would change the state.
    pub fn needs_settling(&self, state: u32) -> bool {
        state > UNDECIDED
            && self.states[state as usize].iter().any(|thread| self.stacks.is_pending(thread.stack))
    }

    /// The state that also knows the undeclared keys which have ended since the last call. `text`
    /// is the whole text so far, and `state` the state it leads to.
    ///
    /// To be called after each token of a real text, and never while a vocabulary is walked.
    ///
    /// # Complexity
    /// O(1) unless an undeclared key has ended, then O(length of the text).
    pub fn settle(&mut self, state: u32, text: &[u8]) -> u32 {
        if !self.needs_settling(state) {
            return state;
        }
        let keys = OpenKeys::scan(text);
        let mut settled = FxHashMap::default();
        let mut after = Vec::new();
        for thread in self.states[state as usize].clone() {
            let stack = self.settle_stack(thread.stack, &keys, &mut settled);
            if stack == thread.stack {
                after.push(thread);
                continue;
            }
            match (thread.leaf, keys.unfinished) {
                // The key that is being written must be compared with the one just recorded.
                (Leaf::Text { content: Content::Key(_), .. }, Some(unfinished)) => {
                    let text = self.texts.without(thread.text, unfinished.len() + 1);
                    let mut open = vec![Thread::gap(stack, Place::Key, text)];
                    for &byte in [b'"'].iter().chain(unfinished) {
                        let mut next = Vec::new();
                        for thread in &open {
                            if let Err(limit) = self.step_thread(thread, byte, &mut next) {
                                self.last_limit = Some(limit);
                                return UNDECIDED;
                            }
                        }
                        open = next;
                    }
                    after.extend(open);
                }
                (leaf, _) => after.push(Thread { stack, leaf, text: thread.text }),
            }
        }
        after.sort_unstable();
        after.dedup();
        if after.is_empty() { DEAD } else { self.intern(after) }
    }

    fn settle_stack(
        &mut self,
        stack: StackId,
        keys: &OpenKeys<'_>,
        settled: &mut FxHashMap<StackId, StackId>,
    ) -> StackId {
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
                    let name = keys.last.get(depth).copied().flatten().map(unquote);
                    let recorded =
                        self.stacks.progress(progress).recorded(&name.unwrap_or_default());
                    Frame::Object { shape, progress: self.stacks.intern_progress(recorded) }
                }
                frame => frame,
            };
            at = self.stacks.push(at, frame, self.stacks.compares(old));
            settled.insert(old, at);
        }
        at
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

    #[test]
    fn the_last_key_of_each_open_container_is_found() {
        let text = br#"{"a": [1, {"x\"y": "v:{", "k" "#;
        let keys = OpenKeys::scan(text);
        assert_eq!(keys.last, [Some(&b"a"[..]), None, Some(&b"k"[..])]);
        assert_eq!(keys.unfinished, None);
        let keys = OpenKeys::scan(br#"{"a":"b","c"#);
        assert_eq!(keys.last, [Some(&b"a"[..])]);
        assert_eq!(keys.unfinished, Some(&b"c"[..]));
        let keys = OpenKeys::scan(br#"{"a":"value""#);
        assert_eq!(keys.last, [Some(&b"a"[..])]);
    }
}
