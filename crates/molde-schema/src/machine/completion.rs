//! The shortest way to finish a text.

use crate::goal::GoalLimit;
use crate::options::Style;

use super::SchemaAutomaton;
use super::frame::{Frame, StackId};
use super::thread::{Content, Escape, Leaf, Place, Thread};
use super::track::{TextId, Trail};
use super::viable::is_number;

/// Bytes tried in this order where an escape sequence has to be finished.
const ESCAPE_BYTES: &[u8] = b"nu\"\\/bfrt0123456789abcdef";

impl SchemaAutomaton {
    /// A short byte string that leads from a live state to acceptance; empty where it accepts, and
    /// for the two reserved states.
    pub fn completion(&mut self, state: u32) -> Vec<u8> {
        if state <= super::UNDECIDED || self.is_accepting(state) {
            return Vec::new();
        }
        let threads = self.states[state as usize].clone();
        threads
            .iter()
            .filter_map(|thread| self.complete_thread(*thread, usize::MAX).ok().flatten())
            .min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
            .unwrap_or_default()
    }

    /// The first bytes of [`completion`](Self::completion), at most so many.
    ///
    /// # Complexity
    /// That of writing these bytes where the state has one way to be read, else that of the whole.
    pub fn completion_start(&mut self, state: u32, max_bytes: usize) -> Vec<u8> {
        if state <= super::UNDECIDED || self.is_accepting(state) {
            return Vec::new();
        }
        let single = match *self.states[state as usize] {
            [thread] => Some(thread),
            _ => None,
        };
        let start = match single {
            Some(thread) => self.complete_thread(thread, max_bytes).ok().flatten(),
            None => Some(self.completion(state)),
        };
        let mut start = start.unwrap_or_default();
        start.truncate(max_bytes);
        start
    }

    /// At least the first `enough` bytes, or all. `None` if the thread cannot be finished, which the
    /// steps that lead to it rule out.
    pub(super) fn complete_thread(
        &mut self,
        thread: Thread,
        enough: usize,
    ) -> Result<Option<Vec<u8>>, GoalLimit> {
        let mut text = Vec::new();
        let mut thread = thread;
        loop {
            if text.len() >= enough {
                return Ok(Some(text));
            }
            if !self.is_free(&thread) && !is_number(&thread) {
                match self.complete_apart(&thread, &mut text) {
                    Some(after) => thread = after,
                    None => return Ok(None),
                }
                continue;
            }
            // Where two items must be equal, they are needed whole.
            let enough = if self.stacks.keeps_text(thread.stack) { usize::MAX } else { enough };
            let stack = thread.stack;
            let before = text.len();
            let next = match thread.leaf {
                Leaf::Literal { literal, at } => {
                    text.extend(&literal.text()[at as usize..]);
                    let read = self.read_all(&thread, &text[before..]);
                    self.complete_value(stack, read)?
                }
                Leaf::Number { number, state } => {
                    text.extend(self.goals.number(number).shortest(state));
                    let mut read = self.read_all(&thread, &text[before..]);
                    for &byte in &text[before..] {
                        read.shadows = self.comparer.step(read.shadows, byte)?;
                    }
                    self.complete_value(stack, read)?
                }
                Leaf::Text { content, escape } => {
                    let after = self.complete_text(&thread, content, escape, enough, &mut text)?;
                    match *after.as_slice() {
                        [] => None,
                        [only] => Some(only),
                        // A key that ended in several ways: only the innermost one can, so this
                        // goes one level deep.
                        _ => {
                            let mut best: Option<Vec<u8>> = None;
                            for thread in after {
                                if let Some(rest) = self.complete_thread(thread, usize::MAX)?
                                    && best.as_ref().is_none_or(|best| rest.len() < best.len())
                                {
                                    best = Some(rest);
                                }
                            }
                            return Ok(best.map(|rest| [text, rest].concat()));
                        }
                    }
                }
                Leaf::Gap { place: Place::End, .. } => return Ok(Some(text)),
                Leaf::Gap { place, .. } => self.complete_gap(&thread, place, enough, &mut text)?,
            };
            match next {
                Some(next) => thread = next,
                None => return Ok(None),
            }
        }
    }

    /// What is to be remembered of the text after more bytes.
    fn read_all(&mut self, thread: &Thread, bytes: &[u8]) -> Trail {
        if self.stacks.keeps_text(thread.stack) {
            let text = self.texts.extend(thread.trail.text, bytes);
            Trail { text, ..thread.trail }
        } else {
            Trail { text: TextId::NONE, ..thread.trail }
        }
    }

    /// Finishes an escape, the content and the closing quote: the threads that follow.
    fn complete_text(
        &mut self,
        thread: &Thread,
        content: Content,
        escape: Escape,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<Vec<Thread>, GoalLimit> {
        let stack = thread.stack;
        if escape != Escape::None {
            // A live escape always has a next byte, and ends within a dozen.
            for &byte in ESCAPE_BYTES {
                let mut after = Vec::new();
                self.step_thread(thread, byte, &mut after)?;
                if !after.is_empty() {
                    text.push(byte);
                    after.truncate(1);
                    return Ok(after);
                }
            }
            return Ok(Vec::new());
        }
        let before = text.len();
        let mut content = content;
        match content {
            Content::String { shape, state, count } => {
                let left = enough.saturating_sub(text.len());
                let shape = self.goals.string(shape);
                text.extend(shape.shortest_text_start(Some((state, count)), left));
                text.push(b'"');
                let read = self.read_all(thread, &text[before..]);
                return Ok(self.complete_value(stack, read)?.into_iter().collect());
            }
            Content::Key(key) => {
                let Some(rest) = self.shortest_key(stack, key)? else { return Ok(Vec::new()) };
                for &byte in &rest {
                    match self.step_content(stack, content, byte)? {
                        Some(next) => content = next,
                        None => return Ok(Vec::new()),
                    }
                }
                crate::text::escape_into(&rest, text);
            }
        }
        text.push(b'"');
        let read = self.read_all(thread, &text[before..]);
        let mut after = Vec::new();
        self.close_content(stack, content, read, &mut after)?;
        Ok(after)
    }

    fn complete_gap(
        &mut self,
        thread: &Thread,
        place: Place,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<Option<Thread>, GoalLimit> {
        let stack = thread.stack;
        let before = text.len();
        let spaced = self.goals.options.style == Style::Spaced;
        Ok(match place {
            Place::Value(goal) => {
                self.goals.write_value(goal, enough, text)?;
                let read = self.read_all(thread, &text[before..]);
                self.complete_value(stack, read)?
            }
            Place::FirstItem | Place::AfterItem => {
                let Some((Frame::Array { shape, count, items, .. }, parent)) =
                    self.stacks.top(stack)
                else {
                    return Ok(None);
                };
                let state = self.stacks.items(items).clone();
                let is_first = place == Place::FirstItem;
                self.goals.write_items(shape, count, &state, is_first, enough, text)?;
                text.push(b']');
                let read = self.read_all(thread, &text[before..]);
                self.close_completed(parent, read)?
            }
            Place::FirstKey | Place::AfterMember => {
                let Some(object) = self.open_object(stack) else { return Ok(None) };
                let progress = self.stacks.progress(object.progress).clone();
                let Some(members) = self.goals.solved_plan(object.id, &progress)? else {
                    return Ok(None);
                };
                if object.shape.relations.is_some()
                    && let Some(first) = members.first()
                    && let Some(index) =
                        object.shape.names.iter().position(|name| *name == first.name)
                {
                    // What the others must be depends on it: one member at a time.
                    if place == Place::AfterMember {
                        text.extend(self.goals.separator());
                    }
                    text.extend(crate::text::quoted(&first.name));
                    let read = self.read_all(thread, &text[before..]);
                    let start =
                        if self.stacks.keeps_text(stack) { self.texts.len(read.text) } else { 0 };
                    let ways =
                        self.goals.related_members(object.id, &progress, index as u32, start)?;
                    let first = ways.into_iter().take(1).collect();
                    let opened = self.with_members(&object, first);
                    return Ok(opened
                        .first()
                        .map(|&(goal, stack)| Thread::gap(stack, Place::Colon(goal), read)));
                }
                self.goals.write_members(&members, place == Place::FirstKey, enough, text)?;
                text.push(b'}');
                let read = self.read_all(thread, &text[before..]);
                self.complete_value(object.parent, read)?
            }
            Place::KeySpace | Place::Key => {
                if place == Place::KeySpace {
                    text.push(b' ');
                }
                text.push(b'"');
                let read = self.read_all(thread, &text[before..]);
                self.start_key(stack)?.map(|content| Thread {
                    stack,
                    leaf: Leaf::Text { content, escape: Escape::None },
                    trail: read,
                })
            }
            Place::Colon(goal) => {
                text.push(b':');
                let read = self.read_all(thread, &text[before..]);
                let place = if spaced { Place::ColonSpace(goal) } else { Place::Value(goal) };
                Some(Thread::gap(stack, place, read))
            }
            Place::ComparedSpace | Place::ComparedItem => {
                if place == Place::ComparedSpace {
                    text.push(b' ');
                }
                self.complete_compared_item(thread, before, text)?
            }
            Place::ColonSpace(goal) | Place::ItemSpace(goal) => {
                text.push(b' ');
                let read = self.read_all(thread, &text[before..]);
                Some(Thread::gap(stack, Place::Value(goal), read))
            }
            Place::End => None,
        })
    }

    /// Writes an item, all that the array needs after it, and its end.
    fn complete_compared_item(
        &mut self,
        thread: &Thread,
        before: usize,
        text: &mut Vec<u8>,
    ) -> Result<Option<Thread>, GoalLimit> {
        let Some((Frame::Array { shape: id, count, items, .. }, parent)) =
            self.stacks.top(thread.stack)
        else {
            return Ok(None);
        };
        let state = self.stacks.items(items).clone();
        let next = self.goals.array(id).saturate(count + 1);
        let mut best: Option<Vec<u8>> = None;
        for (goal, counted) in self.goals.item_ways(id, count, &state)? {
            let mut own = Vec::new();
            self.goals.write_item(id, next, &counted, goal, &mut own)?;
            if best.as_ref().is_none_or(|best| own.len() < best.len()) {
                best = Some(own);
            }
        }
        let Some(best) = best else { return Ok(None) };
        text.extend(best);
        text.push(b']');
        let read = self.read_all(thread, &text[before..]);
        self.close_completed(parent, read)
    }

    /// After an array that ends: what it kept of its text ends with it.
    fn close_completed(
        &mut self,
        parent: StackId,
        read: Trail,
    ) -> Result<Option<Thread>, GoalLimit> {
        let keeps_text = self.stacks.keeps_text(parent);
        let text = if keeps_text { read.text } else { TextId::NONE };
        self.complete_value(parent, Trail { text, ..read })
    }
}
