//! Threads: one way to read the text so far.

use crate::goal::{GoalId, Literal, NumberId, StringId};

use super::compare::ShadowsId;
use super::content::{KeyId, Keys};
use super::frame::{Moved, StackId, Stacks};
use super::track::{Texts, Trail};

/// One way to read the text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Thread {
    pub(super) stack: StackId,
    pub(super) leaf: Leaf,
    pub(super) trail: Trail,
}

/// The position inside the innermost container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Leaf {
    /// Between two tokens of JSON, after `whitespace` bytes of whitespace.
    Gap { place: Place, whitespace: u32 },
    /// Inside `null`, `true` or `false`, before byte `at`.
    Literal { literal: Literal, at: u8 },
    /// Inside a number.
    Number { number: NumberId, state: u32 },
    /// Inside a string or a key.
    Text { content: Content, escape: Escape },
}

/// What comes next, between two tokens of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// A value.
    Value(GoalId),
    /// After `[`: an item or `]`.
    FirstItem,
    /// After an item: a comma or `]`.
    AfterItem,
    /// After the comma: the space that [`Style::Spaced`](crate::Style) writes, then a value.
    ItemSpace(GoalId),
    /// After the comma, where items are compared: the space that [`Style::Spaced`](crate::Style)
    /// writes.
    ComparedSpace,
    /// After the comma (and space), where items are compared: an item. What it may be depends on the
    /// one before, which may be recorded by now.
    ComparedItem,
    /// After `{`: a key or `}`.
    FirstKey,
    /// After a member: a comma or `}`.
    AfterMember,
    /// After the comma: the space that [`Style::Spaced`](crate::Style) writes.
    KeySpace,
    /// After a comma (and space): a key.
    Key,
    /// After a key: a colon, then a value.
    Colon(GoalId),
    /// After the colon: the space that [`Style::Spaced`](crate::Style) writes.
    ColonSpace(GoalId),
    /// After the whole value.
    End,
}

/// The decoded content of a string so far, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Content {
    /// A string value: state of its language, and number of code points.
    String { shape: StringId, state: u32, count: u64 },
    /// A key of the object on top of the stack.
    Key(KeyId),
}

/// The position inside an escape sequence of a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Escape {
    None,
    /// After `\`.
    Backslash,
    /// After `\u` and `digits` hexadecimal digits.
    Unit {
        value: u16,
        digits: u8,
    },
    /// After the escape of a high surrogate.
    High {
        high: u16,
    },
    /// After the `\` that must follow it.
    HighBackslash {
        high: u16,
    },
    /// After `\u` and `digits` digits of the low surrogate.
    LowUnit {
        high: u16,
        value: u16,
        digits: u8,
    },
}

impl Thread {
    /// Stands for the reserved undecided state: no step yields it.
    pub(super) const RESERVED: Self = Self {
        stack: StackId::EMPTY,
        leaf: Leaf::Literal { literal: Literal::Null, at: u8::MAX },
        trail: Trail::NONE,
    };

    /// The only thread at the start of a text.
    pub(super) fn at_value(goal: GoalId) -> Self {
        Self::gap(StackId::EMPTY, Place::Value(goal), Trail::NONE)
    }

    pub(super) fn gap(stack: StackId, place: Place, trail: Trail) -> Self {
        Self { stack, leaf: Leaf::Gap { place, whitespace: 0 }, trail }
    }

    /// The same thread over new tables of stacks and keys.
    pub(super) fn moved(
        self,
        moved: &mut Moved<'_>,
        stacks: &mut Stacks,
        (old_keys, keys): (&Keys, &mut Keys),
        (old_texts, texts): (&Texts, &mut Texts),
        shadows: ShadowsId,
    ) -> Self {
        let leaf = match self.leaf {
            Leaf::Text { content: Content::Key(key), escape } => {
                Leaf::Text { content: Content::Key(keys.intern(old_keys.get(key).clone())), escape }
            }
            leaf => leaf,
        };
        let trail = Trail { text: texts.copy(self.trail.text, old_texts), shadows };
        Self { stack: moved.copy(self.stack, stacks), leaf, trail }
    }
}
