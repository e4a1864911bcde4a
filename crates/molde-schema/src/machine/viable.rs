//! Whether an item can still become a value that it may be.
//!
//! A thread without shadows can be finished: that is what its goals see to. With shadows, what may
//! follow could lead to nothing but values that are taken. So a way out is looked for: bytes after
//! which no shadow is left, or an end of the item that is allowed. Nearly always the first byte that
//! no shadow goes on with is one; where there is none, everything that may follow is the rest of a
//! few values, and looking at it costs no more than they are long.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::goal::{GoalLimit, NumberId, StringShape, word_counts};
use crate::number::Decimal;

use super::SchemaAutomaton;
use super::compare::ShadowsId;
use super::frame::{Frame, StackId};
use super::thread::{Content, Leaf, Place, Thread};
use super::track::{TextId, Trail};

/// Code points that leave more strings than any array can hold.
const MANY_CODE_POINTS: u64 = 4;

/// Ways to go on that are compared for a short text, and positions looked at for them.
const COMPARED_WAYS: usize = 64;
const COMPARED_POSITIONS: usize = 2048;

impl SchemaAutomaton {
    /// Whether the items that are being written can become values that they may be.
    ///
    /// # Errors
    /// `comparison_steps`, and whatever limit stands in the way where no other way is found.
    pub(super) fn is_viable(&mut self, thread: &Thread) -> Result<bool, GoalLimit> {
        if self.is_free(thread) || is_number(thread) {
            return Ok(true);
        }
        // Texts that are kept rarely make a difference here, and would make every way another one.
        let without_text = without_text(thread);
        if without_text != *thread
            && let Ok(answer) = self.find_way_out(&without_text)
        {
            return Ok(answer);
        }
        self.find_way_out(thread)
    }

    fn find_way_out(&mut self, thread: &Thread) -> Result<bool, GoalLimit> {
        if let Some(&known) = self.viable.get(thread) {
            return Ok(known);
        }
        // Breadth first: the way out is mostly near.
        let mut open = VecDeque::from([*thread]);
        let mut seen: FxHashSet<Thread> = FxHashSet::default();
        let mut unknown = None;
        while let Some(thread_at) = open.pop_front() {
            if thread_at.trail.shadows == ShadowsId::NONE {
                // An item follows one that is not recorded: they may be equal.
                unknown = Some(GoalLimit::unsettled());
                continue;
            }
            if !seen.insert(thread_at) {
                continue;
            }
            let most = self.goals.options.limits.comparison_steps;
            if seen.len() > most {
                return Err(GoalLimit {
                    name: "comparison_steps",
                    limit: most as u64,
                    unit: "steps in the search for values that differ",
                    pointer: String::new(),
                });
            }
            for byte in self.bytes_to_try(&thread_at) {
                let mut after = Vec::new();
                if let Err(limit) = self.step_thread(&thread_at, byte, &mut after) {
                    unknown = Some(limit);
                }
                for next in after {
                    if self.is_free(&next)
                        || is_number(&next)
                        || self.viable.get(&next) == Some(&true)
                    {
                        self.viable.insert(*thread, true);
                        return Ok(true);
                    }
                    if self.viable.get(&next) != Some(&false) {
                        open.push_back(next);
                    }
                }
            }
        }
        if let Some(limit) = unknown {
            return Err(limit);
        }
        self.viable.extend(seen.into_iter().map(|thread| (thread, false)));
        Ok(false)
    }

    /// The first byte of a number. What it is compared with is decided here: either it is none of
    /// the numbers that its shadows have, or one of those after which something viable follows. So
    /// the many spellings of a number are not looked at one by one.
    pub(super) fn start_number(
        &mut self,
        stack: StackId,
        number: NumberId,
        byte: u8,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        let mut add = |automaton: &mut Self, number: NumberId, trail: Trail| {
            let numbers = automaton.goals.number(number);
            let start = numbers.start();
            if let Some(state) = numbers.step(start, byte) {
                after.push(Thread { stack, leaf: Leaf::Number { number, state }, trail });
            }
        };
        if trail.shadows == ShadowsId::NONE {
            add(self, number, trail);
            return Ok(());
        }
        let depth = self.stacks.depth(stack);
        let is_item = matches!(self.stacks.top(stack), Some((Frame::Array { .. }, _)));
        let mut compared: Vec<Decimal> = Vec::new();
        let mut viable: Vec<Decimal> = Vec::new();
        for (value, shadow) in self.comparer.numbers(trail.shadows) {
            let Some(text) = self.goals.number_text(number, &value, byte)? else { continue };
            // An item of this very array that is there already, unless it is known otherwise.
            let is_taken = is_item && shadow.depth == depth && shadow.value.is_none();
            compared.push(value.clone());
            if is_taken {
                continue;
            }
            let mut read = trail;
            for &byte in &text[1..] {
                read.shadows = self.comparer.step(read.shadows, byte)?;
                if self.stacks.keeps_text(stack) {
                    read.text = self.texts.push(read.text, byte);
                }
            }
            if let Some(done) = self.complete_value(stack, read)?
                && self.is_viable(&done)?
            {
                viable.push(value);
            }
        }
        if let Some(apart) = self.goals.number_without(number, &compared)? {
            add(self, apart, Trail { shadows: ShadowsId::NONE, ..trail });
        }
        if let Some(within) = self.goals.number_within(number, &viable)? {
            add(self, within, trail);
        }
        Ok(())
    }

    /// A short text after which nothing is compared any more, appended to `text`, and the thread it
    /// leads to; `None` if there is none. What is beyond a limit is no way to finish.
    pub(super) fn complete_apart(&mut self, thread: &Thread, text: &mut Vec<u8>) -> Option<Thread> {
        // Breadth first. Of the positions by number, the one before and the byte between.
        let mut positions: Vec<(Thread, usize, u8)> = vec![(*thread, 0, 0)];
        let mut seen: FxHashSet<Thread> = FxHashSet::from_iter([without_text(thread)]);
        let mut open = VecDeque::from([(0, 0)]);
        let mut best: Option<(usize, usize)> = None;
        let mut ways = 0;
        while let Some((at, depth)) = open.pop_front() {
            if best.is_some_and(|(length, _)| depth + 1 >= length || at > COMPARED_POSITIONS) {
                break;
            }
            if positions.len() > self.goals.options.limits.comparison_steps {
                break;
            }
            let from = positions[at].0;
            for byte in self.bytes_to_try(&from) {
                let mut after = Vec::new();
                let _ = self.step_thread(&from, byte, &mut after);
                for next in after {
                    if !seen.insert(without_text(&next)) {
                        continue;
                    }
                    let number = positions.len();
                    positions.push((next, at, byte));
                    if !self.is_free(&next) {
                        let is_way = next.trail.shadows != ShadowsId::NONE
                            && self.is_viable(&next).unwrap_or(false);
                        if is_way {
                            open.push_back((number, depth + 1));
                        }
                        continue;
                    }
                    ways += 1;
                    if ways > COMPARED_WAYS && best.is_some() {
                        continue;
                    }
                    if let Ok(Some(rest)) = self.complete_thread(next, usize::MAX) {
                        let length = depth + 1 + rest.len();
                        if best.is_none_or(|(known, _)| length < known) {
                            best = Some((length, number));
                        }
                    }
                }
            }
        }
        let (_, end) = best?;
        let before = text.len();
        let mut at = end;
        while at != 0 {
            text.push(positions[at].2);
            at = positions[at].1;
        }
        text[before..].reverse();
        Some(positions[end].0)
    }

    /// Bytes that may follow, those first with which no shadow goes on.
    fn bytes_to_try(&mut self, thread: &Thread) -> Vec<u8> {
        let mut bits = [0; 4];
        self.thread_successors(thread, &mut bits);
        let alike = self.comparer.successors(thread.trail.shadows);
        let has =
            |bits: &super::ByteBits, byte: u8| bits[byte as usize / 64] >> (byte % 64) & 1 == 1;
        let (mut other, mut same): (Vec<u8>, Vec<u8>) =
            (0..=u8::MAX).filter(|&byte| has(&bits, byte)).partition(|&byte| !has(&alike, byte));
        // Letters lead to texts that are easy to read.
        other.sort_by_key(|byte| !byte.is_ascii_lowercase());
        other.append(&mut same);
        other
    }

    /// Whether nothing that is being written is compared with anything, so that all that may follow
    /// can be finished.
    pub(super) fn is_free(&mut self, thread: &Thread) -> bool {
        thread.trail.shadows == ShadowsId::NONE && !self.crosses(thread)
    }

    /// Whether an item is being written after one that is not recorded, and could be equal to it
    /// whatever follows.
    fn crosses(&mut self, thread: &Thread) -> bool {
        if !self.stacks.is_pending(thread.stack) {
            return false;
        }
        let mut is_inside = !matches!(thread.leaf, Leaf::Gap { place, .. }
            if !matches!(place, Place::Value(_)));
        let mut is_top = true;
        let mut at = thread.stack;
        while let Some((frame, parent)) = self.stacks.top(at) {
            if let Frame::Array { shape, items, .. } = frame
                && is_inside
                && self.goals.array(shape).is_unique
                && self.stacks.items(items).pending.is_some()
                && !(is_top && self.has_room(thread.leaf))
            {
                return true;
            }
            is_inside = true;
            is_top = false;
            at = parent;
        }
        false
    }

    /// Whether there are more ways to go on with a scalar than values that it could be equal to.
    fn has_room(&mut self, leaf: Leaf) -> bool {
        let Leaf::Text { content: Content::String { shape: id, count, .. }, .. } = leaf else {
            return false;
        };
        let shape = self.goals.string(id);
        if let Some(max) = shape.max_length {
            return shape.language.is_universal() && max.saturating_sub(count) >= MANY_CODE_POINTS;
        }
        let goals = &self.goals;
        *self.endless.entry(id).or_insert_with(|| is_endless(goals.string(id)))
    }
}

/// The thread with any text in place of the one that it keeps.
fn without_text(thread: &Thread) -> Thread {
    let text = match thread.trail.text {
        TextId::NONE => TextId::NONE,
        _ => TextId::UNKNOWN,
    };
    Thread { trail: Trail { text, ..thread.trail }, ..*thread }
}

/// Whether a thread is inside a number that has shadows: see [`SchemaAutomaton::start_number`].
pub(super) fn is_number(thread: &Thread) -> bool {
    matches!(thread.leaf, Leaf::Number { .. }) && thread.trail.shadows != ShadowsId::NONE
}

/// Whether each beginning of a word of a language has endlessly many ways to go on.
fn is_endless(shape: &StringShape) -> bool {
    let counts = word_counts(&shape.language);
    (1..counts.len()).all(|state| counts[state] == u64::MAX)
}

/// Whether threads were found to be viable.
pub(super) type Viable = FxHashMap<Thread, bool>;
