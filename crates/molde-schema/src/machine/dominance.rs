//! Threads that others make superfluous.
//!
//! Where the members of an object may count for a condition, a thread for each way to count follows the
//! text. Once a member has ended, threads differ only in what is still open, and one that has met
//! more can do all that one which has met less can do.

use super::SchemaAutomaton;
use super::frame::{Frame, StackId};
use super::thread::Thread;

impl SchemaAutomaton {
    /// Removes threads that can do nothing which another one cannot. `threads` are sorted.
    ///
    /// # Complexity
    /// O(n²) for n threads at the same place.
    pub(super) fn drop_dominated(&self, threads: &mut Vec<Thread>) {
        let all = threads.clone();
        let mut index = 0;
        threads.retain(|thread| {
            let own = index;
            index += 1;
            !all.iter().enumerate().any(|(at, other)| {
                at != own
                    && other.leaf == thread.leaf
                    && other.trail == thread.trail
                    && self.stack_dominates(other.stack, thread.stack)
            })
        });
    }

    /// Whether everything that may follow in `lesser` may follow in `greater`. Different stacks
    /// never dominate each other mutually.
    fn stack_dominates(&self, greater: StackId, lesser: StackId) -> bool {
        let (mut greater, mut lesser) = (greater, lesser);
        while greater != lesser {
            let (Some((g, g_parent)), Some((l, l_parent))) =
                (self.stacks.top(greater), self.stacks.top(lesser))
            else {
                return false;
            };
            if !self.frame_dominates(g, l) {
                return false;
            }
            (greater, lesser) = (g_parent, l_parent);
        }
        true
    }

    fn frame_dominates(&self, greater: Frame, lesser: Frame) -> bool {
        if greater == lesser {
            return true;
        }
        match (greater, lesser) {
            (
                Frame::Object { shape: g_shape, progress: g },
                Frame::Object { shape: l_shape, progress: l },
            ) => {
                let (g, l) = (self.stacks.progress(g), self.stacks.progress(l));
                g_shape == l_shape
                    && self.goals.implies(l.condition, g.condition)
                    && g.next == l.next
                    && g.count == l.count
                    && g.pending == l.pending
                    && g.seen == l.seen
                    && g.extras == l.extras
                    && g.writing == l.writing
                    && g.records == l.records
            }
            (
                Frame::Array { shape: g_shape, count: g_count, items: g, start: g_start },
                Frame::Array { shape: l_shape, count: l_count, items: l, start: l_start },
            ) => {
                let (g, l) = (self.stacks.items(g), self.stacks.items(l));
                let bounds = &self.goals.array(g_shape).counters;
                (g_shape, g_count, g_start) == (l_shape, l_count, l_start)
                    && (&g.values, g.pending) == (&l.values, l.pending)
                    && (g.repeated || !l.repeated)
                    && g.counters
                        .iter()
                        .zip(&l.counters)
                        .zip(bounds)
                        .all(|((g, l), (_, max))| g == l || max.is_none() && g > l)
            }
            _ => false,
        }
    }
}
