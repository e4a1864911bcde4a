//! One byte of one thread.

use std::sync::Arc;

use crate::goal::{Alternative, GoalId, GoalLimit, ItemState, Progress};
use crate::options::{Escapes, Style};
use crate::text::{short_escape, unescape};

use super::SchemaAutomaton;
use super::compare::Shadow;
use super::frame::{Frame, ItemStateId, StackId};
use super::thread::{Content, Escape, Leaf, Place, Thread};
use super::track::{TextId, Trail};

/// Code units that stand for nothing by themselves.
pub(super) const HIGH_SURROGATES: std::ops::RangeInclusive<u16> = 0xD800..=0xDBFF;
pub(super) const LOW_SURROGATES: std::ops::RangeInclusive<u16> = 0xDC00..=0xDFFF;

impl SchemaAutomaton {
    /// Appends the threads that follow `thread` on `byte`: none if it dies.
    pub(super) fn step_thread(
        &mut self,
        thread: &Thread,
        byte: u8,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let stack = thread.stack;
        let trail = match thread.leaf {
            // Whitespace between two parts is read by `step_gap`.
            Leaf::Gap { .. } => Trail::NONE,
            _ => self.read(thread, byte)?,
        };
        match thread.leaf {
            Leaf::Gap { place, whitespace } => {
                self.step_gap(thread, place, whitespace, byte, after)
            }
            Leaf::Literal { literal, at } => {
                let spelling = literal.text();
                if spelling.get(at as usize) == Some(&byte) {
                    if at as usize + 1 == spelling.len() {
                        after.extend(self.complete_value(stack, trail)?);
                    } else {
                        let leaf = Leaf::Literal { literal, at: at + 1 };
                        after.push(Thread { stack, leaf, trail });
                    }
                }
                Ok(())
            }
            Leaf::Number { number, state } => {
                if let Some(state) = self.goals.number(number).step(state, byte) {
                    after.push(Thread { stack, leaf: Leaf::Number { number, state }, trail });
                    return Ok(());
                }
                // A number has no closing byte: what follows it ends it.
                if self.goals.number(number).is_accepting(state)
                    && let Some(done) = self.complete_value(stack, thread.trail)?
                {
                    return self.step_thread(&done, byte, after);
                }
                Ok(())
            }
            Leaf::Text { content, escape: Escape::None } if byte == b'"' => {
                self.close_content(stack, content, trail, after)
            }
            Leaf::Text { content, escape } => {
                let next = self.step_text(stack, content, escape, byte)?;
                after.extend(next.map(|leaf| Thread { stack, leaf, trail }));
                Ok(())
            }
        }
    }

    /// What is to be remembered of the text after one more byte.
    fn read(&mut self, thread: &Thread, byte: u8) -> Result<Trail, GoalLimit> {
        let text = self.read_text(thread, byte);
        let shadows = self.comparer.step(thread.trail.shadows, byte)?;
        Ok(Trail { text, shadows })
    }

    fn read_text(&mut self, thread: &Thread, byte: u8) -> TextId {
        if self.stacks.keeps_text(thread.stack) {
            self.texts.push(thread.trail.text, byte)
        } else {
            TextId::NONE
        }
    }

    /// The thread after a value has ended, its last byte included in `trail`; `None` if it must not
    /// be this value.
    pub(super) fn complete_value(
        &mut self,
        stack: StackId,
        trail: Trail,
    ) -> Result<Option<Thread>, GoalLimit> {
        Ok(match self.stacks.top(stack) {
            None => Some(Thread::gap(stack, Place::End, Trail::NONE)),
            Some((Frame::Array { shape, .. }, _)) if self.goals.array(shape).compares() => {
                self.complete_compared(stack, trail)?
            }
            Some((Frame::Array { .. }, _)) => Some(Thread::gap(stack, Place::AfterItem, trail)),
            Some((Frame::Object { shape, progress }, parent)) => {
                if self.stacks.progress(progress).writing.is_some() {
                    return self.complete_end(shape, progress, parent, trail).map(Some);
                }
                Some(Thread::gap(stack, Place::AfterMember, trail))
            }
        })
    }

    /// The thread after an item has ended that is compared with others.
    fn complete_compared(
        &mut self,
        stack: StackId,
        trail: Trail,
    ) -> Result<Option<Thread>, GoalLimit> {
        let Some((Frame::Array { shape: id, count, items, start }, parent)) =
            self.stacks.top(stack)
        else {
            return Ok(None);
        };
        let shape = Arc::clone(self.goals.array(id));
        let state = self.stacks.items(items).clone();
        let depth = self.stacks.depth(stack);
        let (own, around): (Vec<Shadow>, Vec<Shadow>) =
            self.comparer.get(trail.shadows).iter().partition(|shadow| shadow.depth == depth);
        let shadows = self.comparer.intern(around);
        let after = if shape.is_unique {
            let mut known = None;
            for shadow in own {
                if self.comparer.is_equal(shadow) {
                    match shadow.value {
                        // One of the items before it.
                        None => return Ok(None),
                        value => known = value,
                    }
                }
            }
            match (known, state.pending) {
                (Some(value), pending) => {
                    let mut after = state.with_value(value);
                    after.pending = pending.map(|known| known.saturating_sub(1));
                    if !self.goals.can_finish_items(id, count, &after)? {
                        return Ok(None);
                    }
                    after
                }
                (None, Some(_)) => return Err(GoalLimit::unsettled()),
                // `start` says how many values of each goal it is known not to be.
                (None, None) => ItemState { pending: Some(u64::from(start)), ..state },
            }
        } else if state.repeated {
            state
        } else if trail.text == TextId::UNKNOWN {
            ItemState { pending: Some(0), ..state }
        } else {
            let value = self.goals.value(&self.texts.bytes(trail.text, start))?;
            let repeated = state.values.contains(&value);
            ItemState { repeated, ..state.with_value(value) }
        };
        let keeps_text = shape.repeats && !after.repeated;
        let values = if after.repeated { Box::default() } else { after.values };
        let items = self.stacks.intern_items(ItemState { values, ..after });
        let frame = Frame::Array { shape: id, count, items, start: 0 };
        let stack = self.stacks.push(parent, frame, keeps_text);
        let text = if self.stacks.keeps_text(stack) { trail.text } else { TextId::NONE };
        Ok(Some(Thread::gap(stack, Place::AfterItem, Trail { text, shadows })))
    }

    /// Whether the text may end here.
    pub(super) fn thread_accepts(&mut self, thread: &Thread) -> bool {
        match thread.leaf {
            Leaf::Gap { place, .. } => place == Place::End,
            Leaf::Number { number, state } => {
                thread.stack == StackId::EMPTY && self.goals.number(number).is_accepting(state)
            }
            _ => false,
        }
    }

    fn step_gap(
        &mut self,
        thread: &Thread,
        place: Place,
        whitespace: u32,
        byte: u8,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let stack = thread.stack;
        let style = self.goals.options.style;
        if style == Style::Flexible && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            let nesting = 8 * self.stacks.depth(stack) as usize;
            let most = self.goals.options.limits.whitespace_bytes.saturating_add(nesting);
            if (whitespace as usize) < most {
                let leaf = Leaf::Gap { place, whitespace: whitespace + 1 };
                // Whitespace makes no difference between values.
                let trail = Trail { text: self.read_text(thread, byte), ..thread.trail };
                after.push(Thread { stack, leaf, trail });
            }
            return Ok(());
        }
        let trail = self.read(thread, byte)?;
        let spaced = style == Style::Spaced;
        match (place, byte) {
            (Place::Value(goal), _) => self.start_value(stack, goal, byte, trail, after)?,
            (Place::FirstItem | Place::AfterItem, b']') => {
                self.close_array(stack, trail, after)?;
            }
            (Place::FirstItem | Place::ComparedItem, _) => {
                self.start_items(stack, byte, thread.trail, trail, after)?;
            }
            (Place::AfterItem, b',') if self.compares_items(stack) => {
                let has_more = !self.item_starts(stack)?.is_empty();
                let place = if spaced { Place::ComparedSpace } else { Place::ComparedItem };
                after.extend(has_more.then(|| Thread::gap(stack, place, trail)));
            }
            (Place::AfterItem, b',') => {
                for (goal, stack) in self.item_starts(stack)? {
                    let place = if spaced { Place::ItemSpace(goal) } else { Place::Value(goal) };
                    after.push(Thread::gap(stack, place, trail));
                }
            }
            (Place::ComparedSpace, b' ') => {
                after.push(Thread::gap(stack, Place::ComparedItem, trail));
            }
            (Place::ItemSpace(goal) | Place::ColonSpace(goal), b' ') => {
                after.push(Thread::gap(stack, Place::Value(goal), trail));
            }
            (Place::FirstKey | Place::AfterMember, b'}') => {
                self.close_object(stack, trail, after)?;
            }
            (Place::AfterMember, b',') if self.start_key(stack)?.is_some() => {
                let place = if spaced { Place::KeySpace } else { Place::Key };
                after.push(Thread::gap(stack, place, trail));
            }
            (Place::KeySpace, b' ') => after.push(Thread::gap(stack, Place::Key, trail)),
            (Place::FirstKey | Place::Key, b'"') => {
                if let Some(content) = self.start_key(stack)? {
                    let leaf = Leaf::Text { content, escape: Escape::None };
                    after.push(Thread { stack, leaf, trail });
                }
            }
            (Place::Colon(goal), b':') => {
                let place = if spaced { Place::ColonSpace(goal) } else { Place::Value(goal) };
                after.push(Thread::gap(stack, place, trail));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the items of the array on top of a stack are compared with each other.
    fn compares_items(&self, stack: StackId) -> bool {
        matches!(self.stacks.top(stack), Some((Frame::Array { shape, items, .. }, _))
            if self.goals.array(shape).compares() && !self.stacks.items(items).repeated)
    }

    /// The first byte of an item. `before` is what was remembered before it, `trail` with it.
    fn start_items(
        &mut self,
        stack: StackId,
        byte: u8,
        before: Trail,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let is_compared = self.compares_items(stack);
        let state = match self.stacks.top(stack) {
            Some((Frame::Array { items, .. }, _)) => self.stacks.items(items).clone(),
            _ => return Ok(()),
        };
        for (goal, mut stack) in self.item_starts(stack)? {
            let mut trail = trail;
            if is_compared
                && let Some((Frame::Array { shape, count, items, .. }, parent)) =
                    self.stacks.top(stack)
            {
                let is_unique = self.goals.array(shape).is_unique;
                let mut start = self.texts.len(before.text);
                if is_unique {
                    let counted = self.stacks.items(items).clone();
                    let (pool, known) = self.goals.value_pool(shape, count, &counted, goal)?;
                    let depth = self.stacks.depth(stack);
                    let values = (&*state.values, &*pool);
                    trail.shadows =
                        self.comparer.begin(&self.goals, trail.shadows, depth, byte, values)?;
                    start = u32::try_from(known).unwrap_or(u32::MAX);
                }
                let frame = Frame::Array { shape, count, items, start };
                stack = self.stacks.push(parent, frame, !is_unique);
            }
            self.start_value(stack, goal, byte, trail, after)?;
        }
        Ok(())
    }

    /// The first byte of a value: it decides the type, hence which alternatives stay.
    fn start_value(
        &mut self,
        stack: StackId,
        goal: GoalId,
        byte: u8,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let solution = self.goals.solve(goal)?;
        self.widest = self.widest.max(solution.alternatives.len());
        let begins = |alternative: &Alternative| match (alternative, byte) {
            (Alternative::Literal(literal), _) => literal.text()[0] == byte,
            (Alternative::String(_), b'"')
            | (Alternative::Array(_), b'[')
            | (Alternative::Object(_), b'{')
            | (Alternative::Number(_), b'-' | b'0'..=b'9') => true,
            _ => false,
        };
        if solution.too_long.iter().any(begins) {
            self.passed_over = Some(self.goals.too_long(goal));
        }
        for alternative in solution.alternatives.iter() {
            let leaf = match (*alternative, byte) {
                (Alternative::Literal(literal), _) if literal.text()[0] == byte => {
                    Leaf::Literal { literal, at: 1 }
                }
                (Alternative::Number(number), b'-' | b'0'..=b'9') => {
                    self.start_number(stack, number, byte, trail, after)?;
                    continue;
                }
                (Alternative::String(shape), b'"') => {
                    let state = self.goals.string(shape).language.start();
                    let content = Content::String { shape, state, count: 0 };
                    Leaf::Text { content, escape: Escape::None }
                }
                (Alternative::Array(id), b'[') => {
                    let shape = self.goals.array(id);
                    let keeps_text = shape.repeats;
                    let items = if shape.remembers() {
                        self.stacks.intern_items(ItemState::start(shape))
                    } else {
                        ItemStateId::NONE
                    };
                    let frame = Frame::Array { shape: id, count: 0, items, start: 0 };
                    let stack = self.stacks.push(stack, frame, keeps_text);
                    after.push(Thread::gap(stack, Place::FirstItem, trail));
                    continue;
                }
                (Alternative::Object(shape), b'{') => {
                    let start = Progress::start(self.goals.object(shape));
                    let progress = self.stacks.intern_progress(start);
                    let frame = Frame::Object { shape, progress };
                    let stack = self.stacks.push(stack, frame, false);
                    after.push(Thread::gap(stack, Place::FirstKey, trail));
                    continue;
                }
                _ => continue,
            };
            after.push(Thread { stack, leaf, trail });
        }
        Ok(())
    }

    fn close_object(
        &mut self,
        stack: StackId,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        if let Some(object) = self.open_object(stack)
            && self.is_closable(&object)
            && self
                .goals
                .value_may_be_last(object.id, &self.stacks.progress(object.progress).clone())?
        {
            after.extend(self.complete_value(object.parent, trail)?);
        }
        Ok(())
    }

    fn close_array(
        &mut self,
        stack: StackId,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let Some((Frame::Array { shape, count, items, .. }, parent)) = self.stacks.top(stack)
        else {
            return Ok(());
        };
        let shape = self.goals.array(shape);
        let state = self.stacks.items(items);
        if count < shape.min_items || !state.is_complete(shape) {
            return Ok(());
        }
        if shape.repeats && !state.repeated {
            // Whether the last item is equal to one before it may not be known.
            return if state.pending.is_some() { Err(GoalLimit::unsettled()) } else { Ok(()) };
        }
        // What the array kept of its text, if no array around it needs it, ends with it.
        let text = if self.stacks.keeps_text(parent) { trail.text } else { TextId::NONE };
        after.extend(self.complete_value(parent, Trail { text, ..trail })?);
        Ok(())
    }

    /// The ways to begin one more item: its goal, and the array that has it.
    fn item_starts(&mut self, stack: StackId) -> Result<Vec<(GoalId, StackId)>, GoalLimit> {
        let Some((Frame::Array { shape: id, count, items, .. }, parent)) = self.stacks.top(stack)
        else {
            return Ok(Vec::new());
        };
        let state = self.stacks.items(items).clone();
        let ways = self.goals.item_ways(id, count, &state)?;
        let shape = Arc::clone(self.goals.array(id));
        let next = shape.saturate(count + 1);
        let mut starts = Vec::with_capacity(ways.len());
        for (goal, counted) in ways {
            let keeps_text = shape.repeats && !counted.repeated;
            let items = if shape.remembers() {
                self.stacks.intern_items(counted)
            } else {
                ItemStateId::NONE
            };
            let frame = Frame::Array { shape: id, count: next, items, start: 0 };
            starts.push((goal, self.stacks.push(parent, frame, keeps_text)));
        }
        Ok(starts)
    }

    /// One byte of a string, other than the quote that closes it.
    fn step_text(
        &mut self,
        stack: StackId,
        content: Content,
        escape: Escape,
        byte: u8,
    ) -> Result<Option<Leaf>, GoalLimit> {
        let text = |content, escape| Leaf::Text { content, escape };
        let any = self.goals.options.escapes == Escapes::Any;
        Ok(match escape {
            Escape::None => match byte {
                b'\\' => self
                    .continues_escaped(stack, content)?
                    .then(|| text(content, Escape::Backslash)),
                0..0x20 => None,
                _ => self.step_content(stack, content, byte)?.map(|next| text(next, Escape::None)),
            },
            Escape::Backslash if byte == b'u' => {
                let escape = Escape::Unit { value: 0, digits: 0 };
                self.escape_is_live(stack, content, escape)?.then(|| text(content, escape))
            }
            Escape::Backslash => match unescape(byte) {
                Some(character) if any || short_escape(character).is_some() => self
                    .step_content(stack, content, character)?
                    .map(|next| text(next, Escape::None)),
                _ => None,
            },
            Escape::Unit { value, digits } => {
                let Some(value) = with_digit(value, byte) else { return Ok(None) };
                if digits < 3 {
                    let escape = Escape::Unit { value, digits: digits + 1 };
                    self.escape_is_live(stack, content, escape)?.then(|| text(content, escape))
                } else if HIGH_SURROGATES.contains(&value) {
                    let escape = Escape::High { high: value };
                    self.escape_is_live(stack, content, escape)?.then(|| text(content, escape))
                } else if let Some(character) = char::from_u32(u32::from(value))
                    && (any || needs_unit(character))
                {
                    self.step_character(stack, content, character)?
                        .map(|next| text(next, Escape::None))
                } else {
                    None
                }
            }
            Escape::High { high } => {
                (byte == b'\\').then(|| text(content, Escape::HighBackslash { high }))
            }
            Escape::HighBackslash { high } => {
                (byte == b'u').then(|| text(content, Escape::LowUnit { high, value: 0, digits: 0 }))
            }
            Escape::LowUnit { high, value, digits } => {
                let Some(value) = with_digit(value, byte) else { return Ok(None) };
                if digits < 3 {
                    let escape = Escape::LowUnit { high, value, digits: digits + 1 };
                    self.escape_is_live(stack, content, escape)?.then(|| text(content, escape))
                } else if LOW_SURROGATES.contains(&value) {
                    self.step_character(stack, content, pair(high, value))?
                        .map(|next| text(next, Escape::None))
                } else {
                    None
                }
            }
        })
    }

    /// Whether an escape sequence can come next.
    pub(super) fn continues_escaped(
        &mut self,
        stack: StackId,
        content: Content,
    ) -> Result<bool, GoalLimit> {
        if self.goals.options.escapes == Escapes::Any {
            return self.continues(stack, content);
        }
        for character in ['"', '\\'] {
            if self.step_character(stack, content, character)?.is_some() {
                return Ok(true);
            }
        }
        self.continues_within(stack, content, '\0', '\u{1f}')
    }

    /// Whether an unfinished `\u` escape can become a character that may come next.
    fn escape_is_live(
        &mut self,
        stack: StackId,
        content: Content,
        escape: Escape,
    ) -> Result<bool, GoalLimit> {
        match escape {
            Escape::Unit { value, digits } => {
                let (first, last) = completions(value, digits);
                if self.goals.options.escapes == Escapes::Needed {
                    for unit in first..=last.min(0x1f) {
                        let character = char::from(unit as u8);
                        if needs_unit(character)
                            && self.step_character(stack, content, character)?.is_some()
                        {
                            return Ok(true);
                        }
                    }
                    return Ok(false);
                }
                // Below, between and above the surrogates a unit is a character by itself.
                for (low, high) in [(first, last.min(0xD7FF)), (first.max(0xE000), last)] {
                    if low <= high
                        && let (Some(low), Some(high)) =
                            (char::from_u32(u32::from(low)), char::from_u32(u32::from(high)))
                        && self.continues_within(stack, content, low, high)?
                    {
                        return Ok(true);
                    }
                }
                let (low, high) = (first.max(0xD800), last.min(0xDBFF));
                Ok(low <= high
                    && self.continues_within(
                        stack,
                        content,
                        pair(low, 0xDC00),
                        pair(high, 0xDFFF),
                    )?)
            }
            Escape::High { high } | Escape::HighBackslash { high } => {
                self.continues_within(stack, content, pair(high, 0xDC00), pair(high, 0xDFFF))
            }
            Escape::LowUnit { high, value, digits } => {
                let (first, last) = completions(value, digits);
                let (low, last) = (first.max(0xDC00), last.min(0xDFFF));
                Ok(low <= last
                    && self.continues_within(stack, content, pair(high, low), pair(high, last))?)
            }
            Escape::None | Escape::Backslash => Ok(true),
        }
    }
}

/// Whether a character can only be written as `\u` and four digits.
pub(super) fn needs_unit(character: char) -> bool {
    u8::try_from(character).is_ok_and(|byte| byte < 0x20 && short_escape(byte).is_none())
}

pub(super) fn with_digit(value: u16, byte: u8) -> Option<u16> {
    char::from(byte).to_digit(16).map(|digit| value << 4 | digit as u16)
}

/// The first and last code unit that an unfinished escape can become.
pub(super) fn completions(value: u16, digits: u8) -> (u16, u16) {
    let open = 4 * (4 - u32::from(digits));
    let first = u32::from(value) << open;
    (first as u16, (first + (1 << open) - 1) as u16)
}

/// The character of a surrogate pair.
pub(super) fn pair(high: u16, low: u16) -> char {
    let code = 0x10000 + (u32::from(high) - 0xD800) * 0x400 + (u32::from(low) - 0xDC00);
    char::from_u32(code).expect("every surrogate pair is a character")
}
