//! The stack of open containers: persistent and hash-consed.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::goal::{ArrayId, ItemState, ObjectId, Progress};

/// A stack of frames; equal stacks have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StackId(u32);

impl StackId {
    pub(super) const EMPTY: Self = Self(0);
}

/// Index of a [`Progress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProgressId(u32);

/// Index of an [`ItemState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ItemStateId(u32);

impl ItemStateId {
    /// Of an array that remembers nothing but the number of its items.
    pub(super) const NONE: Self = Self(0);
}

/// An open container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Frame {
    /// An array with `count` items, the last of which may not have ended.
    Array {
        shape: ArrayId,
        count: u64,
        items: ItemStateId,
        /// Of the item that is being written, where items are compared. Where two must be equal: the
        /// offset at which it begins, in the text of the outermost such array. Where all must differ:
        /// how many of the first free values of each goal are followed by name.
        start: u32,
    },
    /// An object; a member counts as soon as its key is read.
    Object { shape: ObjectId, progress: ProgressId },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    parent: StackId,
    frame: Frame,
    depth: u32,
    /// Whether this frame or one below it has a key or an item that is not recorded yet.
    pending: bool,
    /// Whether this frame or one below it needs the texts of its items.
    keeps_text: bool,
}

/// All stacks that have come up.
#[derive(Debug, Clone)]
pub(super) struct Stacks {
    entries: IndexSet<Entry, FxBuildHasher>,
    progress: IndexSet<Progress, FxBuildHasher>,
    progress_bytes: usize,
    items: IndexSet<ItemState, FxBuildHasher>,
    item_bytes: usize,
}

impl Stacks {
    pub(super) fn new() -> Self {
        let mut items = IndexSet::default();
        items.insert(ItemState::default());
        Self {
            entries: IndexSet::default(),
            progress: IndexSet::default(),
            progress_bytes: 0,
            items,
            item_bytes: 0,
        }
    }

    /// Opens a container; `keeps_text` says whether it needs the texts of its items.
    pub(super) fn push(&mut self, parent: StackId, frame: Frame, keeps_text: bool) -> StackId {
        let depth = self.depth(parent) + 1;
        let keeps_text = keeps_text || self.keeps_text(parent);
        let own = match frame {
            Frame::Object { progress, .. } => self.progress(progress).pending,
            Frame::Array { items, .. } => self.items(items).pending.is_some(),
        };
        let pending = own || self.is_pending(parent);
        let (index, _) =
            self.entries.insert_full(Entry { parent, frame, depth, pending, keeps_text });
        StackId(index as u32 + 1)
    }

    /// The innermost frame and the stack below it; `None` at the top level.
    pub(super) fn top(&self, stack: StackId) -> Option<(Frame, StackId)> {
        let index = stack.0.checked_sub(1)?;
        let entry = self.entries[index as usize];
        Some((entry.frame, entry.parent))
    }

    /// Number of open containers.
    pub(super) fn depth(&self, stack: StackId) -> u32 {
        stack.0.checked_sub(1).map_or(0, |index| self.entries[index as usize].depth)
    }

    /// Whether some open container has a key or an item that is not recorded yet.
    pub(super) fn is_pending(&self, stack: StackId) -> bool {
        stack.0.checked_sub(1).is_some_and(|index| self.entries[index as usize].pending)
    }

    /// Whether some open array needs the texts of its items.
    pub(super) fn keeps_text(&self, stack: StackId) -> bool {
        stack.0.checked_sub(1).is_some_and(|index| self.entries[index as usize].keeps_text)
    }

    pub(super) fn intern_items(&mut self, items: ItemState) -> ItemStateId {
        let bytes = 64 + items.counters.len() * 8 + items.values.len() * 4;
        let (index, new) = self.items.insert_full(items);
        self.item_bytes += if new { bytes } else { 0 };
        ItemStateId(index as u32)
    }

    pub(super) fn items(&self, id: ItemStateId) -> &ItemState {
        &self.items[id.0 as usize]
    }

    pub(super) fn intern_progress(&mut self, progress: Progress) -> ProgressId {
        let extras: usize = progress.extras.iter().map(|name| name.len() + 16).sum();
        let bytes = size_of::<Progress>() + 32 + progress.seen.len() * 4 + extras;
        let (index, new) = self.progress.insert_full(progress);
        self.progress_bytes += if new { bytes } else { 0 };
        ProgressId(index as u32)
    }

    pub(super) fn progress(&self, id: ProgressId) -> &Progress {
        &self.progress[id.0 as usize]
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.entries.len() * (size_of::<Entry>() + 16) + self.progress_bytes + self.item_bytes
    }
}

/// Copies stacks from one table to another, each once.
pub(super) struct Moved<'a> {
    from: &'a Stacks,
    copies: FxHashMap<StackId, StackId>,
}

impl<'a> Moved<'a> {
    pub(super) fn new(from: &'a Stacks) -> Self {
        Self { from, copies: FxHashMap::default() }
    }

    pub(super) fn copy(&mut self, stack: StackId, to: &mut Stacks) -> StackId {
        let mut pending = Vec::new();
        let mut at = stack;
        let mut copied = loop {
            if let Some(&known) = self.copies.get(&at) {
                break known;
            }
            match self.from.top(at) {
                None => break StackId::EMPTY,
                Some((frame, parent)) => {
                    pending.push((at, frame));
                    at = parent;
                }
            }
        };
        for (old, frame) in pending.into_iter().rev() {
            let frame = match frame {
                Frame::Object { shape, progress } => {
                    let progress = to.intern_progress(self.from.progress(progress).clone());
                    Frame::Object { shape, progress }
                }
                Frame::Array { shape, count, items, start } => {
                    let items = to.intern_items(self.from.items(items).clone());
                    Frame::Array { shape, count, items, start }
                }
            };
            copied = to.push(copied, frame, self.from.keeps_text(old));
            self.copies.insert(old, copied);
        }
        copied
    }
}
