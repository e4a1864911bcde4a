//! What the automaton offers to whoever explains it.

use crate::ir::Demand;

use super::SchemaAutomaton;
use super::thread::Thread;

impl SchemaAutomaton {
    /// The state before the first byte of a value that must meet some demands. It may be one from
    /// which every byte is dead.
    pub(crate) fn at_demands(&mut self, demands: &[Demand]) -> u32 {
        let goal = self.goals.goal(demands.iter().copied());
        self.intern(vec![Thread::at_value(goal)])
    }

    /// The state after the last byte of `text`, `state` being the one before it, with the names and
    /// items that have ended.
    pub(crate) fn read_byte(&mut self, state: u32, text: &[u8]) -> u32 {
        let Some((&byte, _)) = text.split_last() else { return state };
        let after = self.step(state, byte);
        self.settle(after, text)
    }
}
