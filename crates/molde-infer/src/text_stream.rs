//! Text out of tokens, as it comes.

/// Turns the bytes of one token after the other into text, and holds back the bytes of a
/// character that is not complete yet.
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    /// The beginning of a character: at most three bytes.
    pending: Vec<u8>,
}

impl TextStream {
    /// A stream with nothing held back.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that is complete after `bytes`. Bytes that can no longer become UTF-8 are
    /// replaced by U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut held_back = 0;
        let mut chunks = self.pending.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // An incomplete character at the very end may still become whole.
            let may_go_on = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if chunks.peek().is_none() && may_go_on {
                held_back = invalid.len();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending.drain(..self.pending.len() - held_back);
        text
    }

    /// What is left at the end: empty, or U+FFFD for a character that never became whole.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}
