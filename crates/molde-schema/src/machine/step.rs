//! One byte of one thread.

use crate::goal::{Alternative, ArrayId, GoalId, GoalLimit};
use crate::options::{Escapes, Style};
use crate::text::{short_escape, unescape};

use super::SchemaAutomaton;
use super::frame::{Frame, StackId};
use super::thread::{Content, Escape, Leaf, Place, Thread};

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
        match thread.leaf {
            Leaf::Gap { place, whitespace } => self.step_gap(stack, place, whitespace, byte, after),
            Leaf::Literal { literal, at } => {
                let text = literal.text();
                if text.get(at as usize) == Some(&byte) {
                    after.push(if at as usize + 1 == text.len() {
                        self.complete_value(stack)
                    } else {
                        Thread { stack, leaf: Leaf::Literal { literal, at: at + 1 } }
                    });
                }
                Ok(())
            }
            Leaf::Number { number, state } => {
                if let Some(state) = self.goals.number(number).step(state, byte) {
                    after.push(Thread { stack, leaf: Leaf::Number { number, state } });
                    return Ok(());
                }
                // A number has no closing byte: what follows it ends it.
                if self.goals.number(number).is_accepting(state) {
                    let done = self.complete_value(stack);
                    return self.step_thread(&done, byte, after);
                }
                Ok(())
            }
            Leaf::Text { content, escape } => {
                let next = self.step_text(stack, content, escape, byte)?;
                after.extend(next);
                Ok(())
            }
        }
    }

    /// The thread after a value has ended.
    pub(super) fn complete_value(&mut self, stack: StackId) -> Thread {
        match self.stacks.top(stack) {
            None => Thread::gap(stack, Place::End),
            Some((Frame::Array { shape, count }, parent)) => {
                let count = self.goals.array(shape).saturate(count + 1);
                let stack = self.stacks.push(parent, Frame::Array { shape, count });
                Thread::gap(stack, Place::AfterItem)
            }
            Some((Frame::Object { .. }, _)) => Thread::gap(stack, Place::AfterMember),
        }
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
        stack: StackId,
        place: Place,
        whitespace: u32,
        byte: u8,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let style = self.goals.options.style;
        if style == Style::Flexible && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            let nesting = 8 * self.stacks.depth(stack) as usize;
            let most = self.goals.options.limits.whitespace_bytes.saturating_add(nesting);
            if (whitespace as usize) < most {
                let leaf = Leaf::Gap { place, whitespace: whitespace + 1 };
                after.push(Thread { stack, leaf });
            }
            return Ok(());
        }
        match place {
            Place::Value(goal) => self.start_value(stack, goal, byte, after),
            Place::FirstItem => {
                let Some((Frame::Array { shape, count }, _)) = self.stacks.top(stack) else {
                    return Ok(());
                };
                if byte == b']' {
                    self.close_array(stack, after);
                    return Ok(());
                }
                let shape = self.goals.array(shape);
                if shape.max_items.is_some_and(|max| count >= max) {
                    return Ok(());
                }
                let goal = shape.goal(count);
                self.start_value(stack, goal, byte, after)
            }
            Place::AfterItem => {
                let Some((Frame::Array { shape, count }, _)) = self.stacks.top(stack) else {
                    return Ok(());
                };
                match byte {
                    b']' => {
                        self.close_array(stack, after);
                        Ok(())
                    }
                    b',' => {
                        if let Some(goal) = self.next_item(shape, count)? {
                            after.push(Thread::gap(
                                stack,
                                match style {
                                    Style::Spaced => Place::ItemSpace,
                                    Style::Compact | Style::Flexible => Place::Value(goal),
                                },
                            ));
                        }
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            Place::ItemSpace => {
                if let (b' ', Some((Frame::Array { shape, count }, _))) =
                    (byte, self.stacks.top(stack))
                {
                    let goal = self.goals.array(shape).goal(count);
                    after.push(Thread::gap(stack, Place::Value(goal)));
                }
                Ok(())
            }
            Place::FirstKey => match byte {
                b'}' => {
                    self.close_object(stack, after);
                    Ok(())
                }
                _ => self.begin_key(stack, byte, after),
            },
            Place::AfterMember => match byte {
                b'}' => {
                    self.close_object(stack, after);
                    Ok(())
                }
                b',' => {
                    if self.start_key(stack)?.is_some() {
                        after.push(Thread::gap(
                            stack,
                            match style {
                                Style::Spaced => Place::KeySpace,
                                Style::Compact | Style::Flexible => Place::Key,
                            },
                        ));
                    }
                    Ok(())
                }
                _ => Ok(()),
            },
            Place::KeySpace => {
                if byte == b' ' {
                    after.push(Thread::gap(stack, Place::Key));
                }
                Ok(())
            }
            Place::Key => self.begin_key(stack, byte, after),
            Place::Colon(goal) => {
                if byte == b':' {
                    after.push(Thread::gap(
                        stack,
                        match style {
                            Style::Spaced => Place::ColonSpace(goal),
                            Style::Compact | Style::Flexible => Place::Value(goal),
                        },
                    ));
                }
                Ok(())
            }
            Place::ColonSpace(goal) => {
                if byte == b' ' {
                    after.push(Thread::gap(stack, Place::Value(goal)));
                }
                Ok(())
            }
            Place::End => Ok(()),
        }
    }

    /// The first byte of a value: it decides the type, hence which alternatives stay.
    fn start_value(
        &mut self,
        stack: StackId,
        goal: GoalId,
        byte: u8,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let alternatives = self.goals.solve(goal)?.alternatives;
        self.widest = self.widest.max(alternatives.len());
        for alternative in alternatives.iter() {
            let leaf = match (*alternative, byte) {
                (Alternative::Literal(literal), _) if literal.text()[0] == byte => {
                    Leaf::Literal { literal, at: 1 }
                }
                (Alternative::Number(number), b'-' | b'0'..=b'9') => {
                    let automaton = self.goals.number(number);
                    let start = automaton.start();
                    match automaton.step(start, byte) {
                        Some(state) => Leaf::Number { number, state },
                        None => continue,
                    }
                }
                (Alternative::String(shape), b'"') => {
                    let state = self.goals.string(shape).language.start();
                    let content = Content::String { shape, state, count: 0 };
                    Leaf::Text { content, escape: Escape::None }
                }
                (Alternative::Array(shape), b'[') => {
                    let stack = self.stacks.push(stack, Frame::Array { shape, count: 0 });
                    after.push(Thread::gap(stack, Place::FirstItem));
                    continue;
                }
                (Alternative::Object(shape), b'{') => {
                    let progress = self.stacks.intern_progress(crate::goal::Progress::default());
                    let stack = self.stacks.push(stack, Frame::Object { shape, progress });
                    after.push(Thread::gap(stack, Place::FirstKey));
                    continue;
                }
                _ => continue,
            };
            after.push(Thread { stack, leaf });
        }
        Ok(())
    }

    fn begin_key(
        &mut self,
        stack: StackId,
        byte: u8,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        if byte == b'"'
            && let Some(content) = self.start_key(stack)?
        {
            let leaf = Leaf::Text { content, escape: Escape::None };
            after.push(Thread { stack, leaf });
        }
        Ok(())
    }

    fn close_object(&mut self, stack: StackId, after: &mut Vec<Thread>) {
        if let Some(object) = self.open_object(stack)
            && self.is_closable(&object)
        {
            after.push(self.complete_value(object.parent));
        }
    }

    fn close_array(&mut self, stack: StackId, after: &mut Vec<Thread>) {
        if let Some((Frame::Array { shape, count }, parent)) = self.stacks.top(stack)
            && count >= self.goals.array(shape).min_items
        {
            after.push(self.complete_value(parent));
        }
    }

    /// The goal of one more item, if there may be one.
    fn next_item(&mut self, shape: ArrayId, count: u64) -> Result<Option<GoalId>, GoalLimit> {
        let shape = self.goals.array(shape);
        if shape.max_items.is_some_and(|max| count >= max) {
            return Ok(None);
        }
        let goal = shape.goal(count);
        Ok(self.goals.shortest(goal)?.map(|_| goal))
    }

    fn step_text(
        &mut self,
        stack: StackId,
        content: Content,
        escape: Escape,
        byte: u8,
    ) -> Result<Option<Thread>, GoalLimit> {
        let text = |content, escape| Thread { stack, leaf: Leaf::Text { content, escape } };
        let any = self.goals.options.escapes == Escapes::Any;
        Ok(match escape {
            Escape::None => match byte {
                b'"' => self.close_content(stack, content)?,
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
    pub(super) fn continues_escaped(&mut self, stack: StackId, content: Content) -> Result<bool, GoalLimit> {
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
