//! Recording the values that other members of an object are compared with.

use crate::goal::{GoalLimit, ObjectId};

use super::SchemaAutomaton;
use super::frame::{Frame, ProgressId, StackId};
use super::thread::{Place, Thread};
use super::track::{TextId, Trail};

impl SchemaAutomaton {
    /// The thread after the value of a member that others are compared with, `trail` included.
    pub(super) fn complete_end(
        &mut self,
        shape: ObjectId,
        progress: ProgressId,
        parent: StackId,
        trail: Trail,
    ) -> Result<Thread, GoalLimit> {
        let known = progress;
        let progress = self.stacks.progress(progress).clone();
        if trail.text == TextId::UNKNOWN {
            // Until another value is compared with this one, it need not be known.
            if !self.goals.ends_alike(shape, &progress)? {
                return Err(unknown_value());
            }
            let frame = Frame::Object { shape, progress: known };
            return Ok(Thread::gap(
                self.stacks.push(parent, frame, true),
                Place::AfterMember,
                trail,
            ));
        }
        let start = progress.writing.map_or(0, |writing| writing.start);
        let read = self.texts.bytes(trail.text, start);
        let after = self.goals.recorded(shape, &progress, value_of(&read))?;
        let progress = self.stacks.intern_progress(after);
        let stack = self.stacks.push(parent, Frame::Object { shape, progress }, false);
        let text = if self.stacks.keeps_text(parent) { trail.text } else { TextId::NONE };
        Ok(Thread::gap(stack, Place::AfterMember, Trail { text, ..trail }))
    }
}

/// A value is compared with one that is not known: only a real text tells.
pub(super) fn unknown_value() -> GoalLimit {
    GoalLimit {
        name: "compared_values",
        limit: 0,
        unit: "values that are compared with one in the same token",
        pointer: String::new(),
    }
}

/// What follows the colon.
fn value_of(read: &[u8]) -> &[u8] {
    let is_between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':');
    &read[read.iter().take_while(is_between).count()..]
}
