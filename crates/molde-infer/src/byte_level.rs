//! The byte-level alphabet: how tokenizer files write bytes as printable characters.
//!
//! Introduced by GPT-2: printable Latin-1 bytes stand for themselves, the other 68 are shifted
//! to the characters from U+0100 on, in ascending order.

/// The character that stands for `byte`.
pub(crate) fn char_of(byte: u8) -> char {
    let shifted = (0..byte).filter(|&b| !is_itself(b)).count() as u32;
    if is_itself(byte) {
        char::from(byte)
    } else {
        char::from_u32(0x100 + shifted).expect("U+0100 to U+0143 are characters")
    }
}

const fn is_itself(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The inverse of [`char_of`], as a table.
#[derive(Debug)]
pub(crate) struct ByteAlphabet {
    bytes: [Option<u8>; 0x144],
}

impl ByteAlphabet {
    pub(crate) fn new() -> Self {
        let mut bytes = [None; 0x144];
        for byte in 0..=u8::MAX {
            bytes[char_of(byte) as usize] = Some(byte);
        }
        Self { bytes }
    }

    /// The bytes that `text` stands for; `None` if a character is not in the alphabet.
    pub(crate) fn decode(&self, text: &str) -> Option<Vec<u8>> {
        text.chars().map(|c| self.bytes.get(c as usize).copied().flatten()).collect()
    }
}
