//! What a thread remembers of the text that was read.
//!
//! Inside an array of which two items must be equal, and none are yet, every item's text is part of
//! the state until the item ends and its value is known. A text is a list that shares what it has in
//! common with others.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::compare::ShadowsId;

/// What a thread remembers of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Trail {
    /// What was read inside the outermost array of which two items must be equal;
    /// [`TextId::NONE`] outside of such.
    pub(super) text: TextId,
    /// The values that items which have not ended may become.
    pub(super) shadows: ShadowsId,
}

impl Trail {
    pub(super) const NONE: Self = Self { text: TextId::NONE, shadows: ShadowsId::NONE };
}

/// A text; equal texts have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TextId(u32);

impl TextId {
    /// The empty text.
    pub(super) const NONE: Self = Self(0);
    /// Some text or other: what is asked does not depend on which.
    pub(super) const UNKNOWN: Self = Self(u32::MAX);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    before: TextId,
    byte: u8,
    len: u32,
}

/// All texts that have come up.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    entries: IndexSet<Entry, FxBuildHasher>,
}

impl Texts {
    pub(super) fn push(&mut self, before: TextId, byte: u8) -> TextId {
        if before == TextId::UNKNOWN {
            return before;
        }
        let len = self.len(before) + 1;
        let (index, _) = self.entries.insert_full(Entry { before, byte, len });
        TextId(index as u32 + 1)
    }

    pub(super) fn extend(&mut self, before: TextId, bytes: &[u8]) -> TextId {
        bytes.iter().fold(before, |text, &byte| self.push(text, byte))
    }

    fn entry(&self, text: TextId) -> Option<Entry> {
        if text == TextId::UNKNOWN {
            return None;
        }
        text.0.checked_sub(1).map(|index| self.entries[index as usize])
    }

    /// In bytes.
    pub(super) fn len(&self, text: TextId) -> u32 {
        self.entry(text).map_or(0, |entry| entry.len)
    }

    /// The bytes from offset `start` on.
    pub(super) fn bytes(&self, text: TextId, start: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.len(text).saturating_sub(start)) as usize);
        let mut at = text;
        while let Some(entry) = self.entry(at).filter(|entry| entry.len > start) {
            bytes.push(entry.byte);
            at = entry.before;
        }
        bytes.reverse();
        bytes
    }

    pub(super) fn copy(&mut self, text: TextId, from: &Self) -> TextId {
        if text == TextId::UNKNOWN {
            return text;
        }
        self.extend(TextId::NONE, &from.bytes(text, 0))
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.entries.len() * (size_of::<Entry>() + 16)
    }
}
