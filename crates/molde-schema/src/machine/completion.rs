//! The shortest way to finish a text.

use crate::goal::{Alternative, GoalId, GoalLimit, Member};
use crate::options::Style;
use crate::text::quoted;

use super::SchemaAutomaton;
use super::frame::{Frame, StackId};
use super::thread::{Content, Escape, Leaf, Place, Thread};

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
    fn complete_thread(
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
            let stack = thread.stack;
            thread = match thread.leaf {
                Leaf::Literal { literal, at } => {
                    text.extend(&literal.text()[at as usize..]);
                    self.complete_value(stack)
                }
                Leaf::Number { number, state } => {
                    text.extend(self.goals.number(number).shortest(state));
                    self.complete_value(stack)
                }
                Leaf::Text { content, escape } => {
                    match self.complete_text(stack, content, escape, enough, &mut text)? {
                        Some(thread) => thread,
                        None => return Ok(None),
                    }
                }
                Leaf::Gap { place: Place::End, .. } => return Ok(Some(text)),
                Leaf::Gap { place, .. } => {
                    match self.complete_gap(stack, place, enough, &mut text)? {
                        Some(thread) => thread,
                        None => return Ok(None),
                    }
                }
            };
        }
    }

    /// Finishes an escape, the content and the closing quote.
    fn complete_text(
        &mut self,
        stack: StackId,
        content: Content,
        escape: Escape,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<Option<Thread>, GoalLimit> {
        if escape != Escape::None {
            // A live escape always has a next byte, and ends within a dozen.
            let thread = Thread { stack, leaf: Leaf::Text { content, escape } };
            for &byte in ESCAPE_BYTES {
                let mut after = Vec::new();
                self.step_thread(&thread, byte, &mut after)?;
                if let Some(next) = after.pop() {
                    text.push(byte);
                    return Ok(Some(next));
                }
            }
            return Ok(None);
        }
        let content = match content {
            Content::String { shape, state, count } => {
                let left = enough.saturating_sub(text.len());
                let shape = self.goals.string(shape);
                text.extend(shape.shortest_text_start(Some((state, count)), left));
                text.push(b'"');
                return Ok(Some(self.complete_value(stack)));
            }
            Content::Key(key) => {
                let Some(rest) = self.shortest_key(stack, key)? else { return Ok(None) };
                let mut content = content;
                for &byte in &rest {
                    match self.step_content(stack, content, byte)? {
                        Some(next) => content = next,
                        None => return Ok(None),
                    }
                }
                crate::text::escape_into(&rest, text);
                content
            }
        };
        text.push(b'"');
        self.close_content(stack, content)
    }

    fn complete_gap(
        &mut self,
        stack: StackId,
        place: Place,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<Option<Thread>, GoalLimit> {
        Ok(match place {
            Place::Value(goal) => {
                self.write_value(goal, enough, text)?;
                Some(self.complete_value(stack))
            }
            Place::FirstItem | Place::AfterItem | Place::ItemSpace => {
                let Some((Frame::Array { shape, count }, parent)) = self.stacks.top(stack) else {
                    return Ok(None);
                };
                let shape = self.goals.array(shape).clone();
                let mut count = count;
                let mut first = place == Place::FirstItem;
                if place == Place::ItemSpace {
                    text.push(b' ');
                    self.write_value(shape.goal(count), enough, text)?;
                    count += 1;
                }
                while count < shape.min_items && text.len() < enough {
                    if !std::mem::take(&mut first) {
                        text.extend(self.goals.separator());
                    }
                    self.write_value(shape.goal(count), enough, text)?;
                    count += 1;
                }
                text.push(b']');
                Some(self.complete_value(parent))
            }
            Place::FirstKey | Place::AfterMember => {
                let Some(object) = self.open_object(stack) else { return Ok(None) };
                let progress = self.stacks.progress(object.progress).clone();
                let Some(members) = self.goals.solved_plan(object.id, &progress)? else {
                    return Ok(None);
                };
                self.write_members(&members, place == Place::FirstKey, enough, text)?;
                text.push(b'}');
                Some(self.complete_value(object.parent))
            }
            Place::KeySpace | Place::Key => {
                if place == Place::KeySpace {
                    text.push(b' ');
                }
                text.push(b'"');
                self.start_key(stack)?.map(|content| Thread {
                    stack,
                    leaf: Leaf::Text { content, escape: Escape::None },
                })
            }
            Place::Colon(goal) => {
                text.push(b':');
                Some(Thread::gap(
                    stack,
                    match self.goals.options.style {
                        Style::Spaced => Place::ColonSpace(goal),
                        Style::Compact | Style::Flexible => Place::Value(goal),
                    },
                ))
            }
            Place::ColonSpace(goal) => {
                text.push(b' ');
                Some(Thread::gap(stack, Place::Value(goal)))
            }
            Place::End => None,
        })
    }

    fn write_members(
        &mut self,
        members: &[Member],
        first: bool,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        for (index, member) in members.iter().enumerate() {
            if text.len() >= enough {
                break;
            }
            if index > 0 || !first {
                text.extend(self.goals.separator());
            }
            text.extend(quoted(&member.name));
            text.extend(self.goals.colon());
            self.write_value(member.goal, enough, text)?;
        }
        Ok(())
    }

    /// Appends the shortest value of a goal. A stack of its own: nesting is as deep as the schema
    /// demands.
    fn write_value(
        &mut self,
        goal: GoalId,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        enum Part {
            Value(GoalId),
            Text(Vec<u8>),
        }
        let mut parts = vec![Part::Value(goal)];
        while text.len() < enough
            && let Some(part) = parts.pop()
        {
            let goal = match part {
                Part::Text(bytes) => {
                    text.extend(bytes);
                    continue;
                }
                Part::Value(goal) => goal,
            };
            let Some((_, alternative)) = self.goals.solve(goal)?.shortest else { continue };
            match alternative {
                Alternative::Literal(literal) => text.extend(literal.text()),
                Alternative::Number(id) => {
                    let automaton = self.goals.number(id);
                    let start = automaton.start();
                    text.extend(automaton.shortest(start));
                }
                Alternative::String(id) => {
                    text.push(b'"');
                    let left = enough.saturating_sub(text.len());
                    text.extend(self.goals.string(id).shortest_text_start(None, left));
                    text.push(b'"');
                }
                Alternative::Array(id) => {
                    let shape = self.goals.array(id).clone();
                    text.push(b'[');
                    parts.push(Part::Text(b"]".to_vec()));
                    for index in (0..shape.min_items).rev() {
                        parts.push(Part::Value(shape.goal(index)));
                        if index > 0 {
                            parts.push(Part::Text(self.goals.separator().to_vec()));
                        }
                    }
                }
                Alternative::Object(id) => {
                    let progress = crate::goal::Progress::default();
                    let members = self.goals.solved_plan(id, &progress)?.unwrap_or_default();
                    text.push(b'{');
                    parts.push(Part::Text(b"}".to_vec()));
                    for (index, member) in members.iter().enumerate().rev() {
                        parts.push(Part::Value(member.goal));
                        let mut key = Vec::new();
                        if index > 0 {
                            key.extend(self.goals.separator());
                        }
                        key.extend(quoted(&member.name));
                        key.extend(self.goals.colon());
                        parts.push(Part::Text(key));
                    }
                }
            }
        }
        Ok(())
    }
}
