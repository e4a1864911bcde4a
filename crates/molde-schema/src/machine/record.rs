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
        if trail.text == TextId::UNKNOWN {
            return Err(GoalLimit {
                name: "compared_values",
                limit: 0,
                unit: "values that are compared and not known yet",
                pointer: String::new(),
            });
        }
        let progress = self.stacks.progress(progress).clone();
        let start = progress.writing.map_or(0, |writing| writing.start);
        let read = self.texts.bytes(trail.text, start);
        let after = self.goals.recorded(shape, &progress, value_of(&read))?;
        let progress = self.stacks.intern_progress(after);
        let stack = self.stacks.push(parent, Frame::Object { shape, progress }, false);
        let text = if self.stacks.keeps_text(parent) { trail.text } else { TextId::NONE };
        Ok(Thread::gap(stack, Place::AfterMember, Trail { text, ..trail }))
    }
}

/// What follows the colon.
fn value_of(read: &[u8]) -> &[u8] {
    let is_between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':');
    &read[read.iter().take_while(is_between).count()..]
}
