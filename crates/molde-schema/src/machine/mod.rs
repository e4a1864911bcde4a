//! The automaton over bytes that accepts the texts of a schema's values, built while it is walked.
//!
//! ```text
//! text     {"a": [1, 2], "b": "x|
//! thread   stack  object(seen a, b)          leaf  inside a string, after one character
//!
//! text     {"a": [1|
//! thread   stack  object(seen a) array(0)    leaf  inside a number
//! ```
//!
//! A *thread* is one way to read the text so far: a stack of container frames and a position inside
//! the innermost value. Stacks are persistent: pushing shares the rest. A *state* is the set of all
//! threads; equal sets have equal ids, so "the inside of any string of this object" is one state
//! however the text went before.
//!
//! # Invariants
//! - Every thread can be finished: a step that leads to a thread which cannot is not taken. That is
//!   what the solved goals (see [`goal`](crate::goal)), the lengths of string languages and the
//!   member plans of objects are for. So no live state is a dead end.
//! - Frames hold counters only as far as they matter for what may follow.
//! - A step that would exceed a limit leads to [`UNDECIDED`], never to a guess.

mod compare;
mod completion;
mod content;
mod dominance;
mod explain;
mod frame;
mod outlook;
mod reading;
mod record;
mod scan;
mod settle;
mod step;
mod thread;
mod track;
mod viable;

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::CompiledSchema;
use crate::goal::{ConstantId, GoalLimit, Goals, ObjectShape, StringId};
use crate::ir::Demand;
use crate::options::Escapes;

use compare::{Comparer, ShadowsId};
use content::Keys;
use frame::Stacks;
use outlook::Outlooks;
use scan::Scans;
use thread::{Leaf, Place, Thread};
use track::Texts;
use viable::Viable;

pub use outlook::{ByteBits, StringContent, StringPosition};
pub use reading::{StringEnd, StringReading};

/// The state from which nothing is accepted.
pub const DEAD: u32 = 0;
/// The state that could not be decided within the limits.
pub const UNDECIDED: u32 = 1;

/// A successor that has not been computed.
const UNKNOWN: u32 = u32::MAX;

/// The lazily built automaton of one schema: scratch for one sequence at a time.
#[derive(Debug, Clone)]
pub struct SchemaAutomaton {
    goals: Goals,
    stacks: Stacks,
    keys: Keys,
    texts: Texts,
    comparer: Comparer,
    viable: Viable,
    /// Whether each beginning of a string can become endlessly many, by shape.
    endless: FxHashMap<StringId, bool>,
    scans: Scans,
    states: IndexSet<Box<[Thread]>, FxBuildHasher>,
    /// Successors of each state by byte, allocated when a state is first left.
    rows: Vec<Option<Box<[u32; 256]>>>,
    start: u32,
    /// Estimate of the heap bytes of `states` and `rows`.
    table_bytes: usize,
    last_limit: Option<GoalLimit>,
    /// The limit beyond which some way to take the byte that is being read is, if there is one.
    passed_over: Option<GoalLimit>,
    outlooks: Outlooks,
    /// Most alternatives that a value had so far.
    widest: usize,
}

impl SchemaAutomaton {
    /// An automaton at its start. What was worked out while compiling is shared in the beginning.
    pub fn new(schema: &Arc<CompiledSchema>) -> Self {
        Self::from_goals(schema.goals().clone())
    }

    pub(crate) fn from_goals(goals: Goals) -> Self {
        let mut automaton = Self {
            goals,
            stacks: Stacks::new(),
            keys: Keys::default(),
            texts: Texts::default(),
            comparer: Comparer::new(),
            viable: Viable::default(),
            endless: FxHashMap::default(),
            scans: Scans::default(),
            states: IndexSet::default(),
            rows: Vec::new(),
            start: DEAD,
            table_bytes: 0,
            last_limit: None,
            passed_over: None,
            outlooks: Outlooks::default(),
            widest: 1,
        };
        automaton.reset_states();
        automaton
    }

    fn reset_states(&mut self) {
        self.states.clear();
        self.rows.clear();
        self.table_bytes = 0;
        self.stacks = Stacks::new();
        self.keys = Keys::default();
        self.texts = Texts::default();
        self.viable = Viable::default();
        // No thread, and a set no step can produce, stand for the two reserved states.
        self.intern(Vec::new());
        self.intern(vec![Thread::RESERVED]);
        let root = self.goals.root();
        self.start = self.intern(vec![Thread::at_value(root)]);
    }

    /// Which escape sequences strings may contain.
    pub fn escapes(&self) -> Escapes {
        self.goals.options.escapes
    }

    /// The state before the first byte.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// The state after one more byte; [`DEAD`] and [`UNDECIDED`] lead to themselves.
    ///
    /// # Complexity
    /// O(1) once a step has been taken, else O(threads).
    #[inline]
    pub fn step(&mut self, state: u32, byte: u8) -> u32 {
        if let Some(Some(row)) = self.rows.get(state as usize) {
            let known = row[byte as usize];
            if known != UNKNOWN {
                return known;
            }
        }
        self.compute_step(state, byte)
    }

    #[cold]
    fn compute_step(&mut self, state: u32, byte: u8) -> u32 {
        if state <= UNDECIDED {
            return state;
        }
        let threads = self.states[state as usize].clone();
        let mut after = Vec::new();
        let mut result = Ok(());
        self.passed_over = None;
        for thread in &threads {
            result = self.step_thread(thread, byte, &mut after);
            if result.is_err() || after.len() > 8 * self.goals.options.limits.threads {
                break;
            }
        }
        after.sort_unstable();
        after.dedup();
        if result.is_ok() {
            result = self.drop_blocked(&mut after);
        }
        if after.len() > 1 {
            self.widest = self.widest.max(after.len().div_ceil(threads.len()));
            self.drop_dominated(&mut after);
        }
        let target = match result {
            Err(limit) => {
                self.last_limit = Some(limit);
                UNDECIDED
            }
            Ok(()) if after.len() > self.goals.options.limits.threads => {
                self.last_limit = Some(GoalLimit {
                    name: "threads",
                    limit: self.goals.options.limits.threads as u64,
                    unit: "threads",
                    pointer: String::new(),
                });
                UNDECIDED
            }
            Ok(()) if after.is_empty() && self.passed_over.is_some() => {
                self.last_limit = self.passed_over.take();
                UNDECIDED
            }
            Ok(()) => self.intern(after),
        };
        let row = self.rows[state as usize].get_or_insert_with(|| {
            self.table_bytes += size_of::<[u32; 256]>();
            Box::new([UNKNOWN; 256])
        });
        row[byte as usize] = target;
        target
    }

    /// Removes threads in which an item can only become one that is there already.
    fn drop_blocked(&mut self, threads: &mut Vec<Thread>) -> Result<(), GoalLimit> {
        let mut kept = Vec::with_capacity(threads.len());
        for &thread in &*threads {
            if self.is_viable(&thread)? {
                kept.push(thread);
            }
        }
        *threads = kept;
        Ok(())
    }

    /// The state before the first byte of one of some values.
    fn at_values(&mut self, values: &[ConstantId]) -> Result<u32, GoalLimit> {
        let node = self.goals.one_of_values(values)?;
        let goal = self.goals.goal([Demand::holds(node)]);
        Ok(self.intern(vec![Thread::at_value(goal)]))
    }

    fn intern(&mut self, threads: Vec<Thread>) -> u32 {
        let bytes = threads.len() * size_of::<Thread>() + 64;
        let (index, new) = self.states.insert_full(threads.into_boxed_slice());
        if new {
            self.table_bytes += bytes;
            self.rows.push(None);
        }
        index as u32
    }

    /// Whether the bytes read so far are a complete text.
    pub fn is_accepting(&mut self, state: u32) -> bool {
        if state <= UNDECIDED {
            return false;
        }
        let threads = self.states[state as usize].clone();
        threads.iter().any(|thread| self.thread_accepts(thread))
    }

    /// The only byte that may come next, if the state does not accept and there is exactly one.
    pub fn forced_byte(&mut self, state: u32) -> Option<u8> {
        if state <= UNDECIDED || self.is_accepting(state) {
            return None;
        }
        let mut forced = None;
        for byte in 0..=u8::MAX {
            if self.step(state, byte) != DEAD && forced.replace(byte).is_some() {
                return None;
            }
        }
        forced
    }

    /// The objects whose `{` was the last byte read, one for each alternative.
    pub(crate) fn opened_objects(&self, state: u32) -> Vec<Arc<ObjectShape>> {
        let mut shapes = Vec::new();
        if state > UNDECIDED {
            for thread in &self.states[state as usize] {
                if let Leaf::Gap { place: Place::FirstKey, .. } = thread.leaf
                    && let Some(object) = self.open_object(thread.stack)
                {
                    shapes.push(object.shape);
                }
            }
        }
        shapes
    }

    /// The limit that made the last undecided step undecided, as a sentence.
    pub fn last_limit(&self) -> Option<String> {
        self.last_limit.as_ref().map(|limit| {
            format!(
                "limit `{}` ({} {}) at `{}`",
                limit.name, limit.limit, limit.unit, limit.pointer
            )
        })
    }

    /// Estimate of the heap bytes held by states, transitions, frames and goals; the schema's own
    /// automata are shared and not counted. O(1).
    pub fn memory_usage(&self) -> usize {
        self.table_bytes
            + self.stacks.memory_usage()
            + self.keys.memory_usage()
            + self.texts.memory_usage()
            + self.comparer.memory_usage()
            + self.viable.len() * (size_of::<Thread>() + 8)
            + self.goals.memory_usage()
    }

    /// Forgets all states but the given ones and returns their new ids, in the same order. Other
    /// ids are meaningless afterwards.
    pub fn clear_cache(&mut self, keep: &[u32]) -> Vec<u32> {
        let mut kept: Vec<Box<[Thread]>> =
            keep.iter().map(|&state| self.states[state as usize].clone()).collect();
        let mut numbers: Vec<_> = kept
            .iter_mut()
            .flatten()
            .filter_map(|thread| match &mut thread.leaf {
                Leaf::Number { number, state } => Some((*number, state)),
                _ => None,
            })
            .collect();
        self.goals.clear_numbers(&mut numbers);
        let shadows: Vec<ShadowsId> =
            kept.iter().flatten().map(|thread| thread.trail.shadows).collect();
        let mut shadows = self.comparer.clear(&shadows).into_iter();
        let old_stacks = std::mem::replace(&mut self.stacks, Stacks::new());
        let old_keys = std::mem::take(&mut self.keys);
        let old_texts = std::mem::take(&mut self.texts);
        self.reset_states();
        let mut moved = frame::Moved::new(&old_stacks);
        let mut ids = Vec::with_capacity(keep.len());
        for (&state, threads) in keep.iter().zip(kept) {
            if state <= UNDECIDED {
                // The thread that stands for the undecided state.
                shadows.nth(threads.len().wrapping_sub(1));
                ids.push(state);
                continue;
            }
            let mut threads: Vec<Thread> = threads
                .iter()
                .map(|thread| {
                    let keys = (&old_keys, &mut self.keys);
                    let texts = (&old_texts, &mut self.texts);
                    let shadows = shadows.next().unwrap_or(ShadowsId::NONE);
                    thread.moved(&mut moved, &mut self.stacks, keys, texts, shadows)
                })
                .collect();
            threads.sort_unstable();
            ids.push(self.intern(threads));
        }
        ids
    }
}
