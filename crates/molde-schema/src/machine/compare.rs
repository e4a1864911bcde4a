//! Items that are compared with values.
//!
//! While an item of an array with `uniqueItems` is written, automata of the values that it must not
//! be, or that matter otherwise, read along with it: its *shadows*. A shadow that dies is forgotten,
//! and once all have, the item is a value of its own whatever follows: its text no longer makes a
//! difference, and it is a state like that of any other array.
//!
//! ```text
//! text     ["abc", "abd", "ab|            shadows  abc or abd
//! text     ["abc", "abd", "abx|           shadows  none
//! ```
//!
//! The shadows are states of an automaton of constants which reads every spelling of a value:
//! members in any order, numbers and strings with any escape and exponent. So equality is by value.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::goal::{ConstantId, GoalLimit, Goals};
use crate::ir::{ALWAYS, Node, Schema, TypeSet};
use crate::number::{Decimal, NumberLimits};
use crate::options::{CompileOptions, Escapes, NumberStyle, Order, Style};

use super::thread::{Content, Escape, Leaf};
use super::{DEAD, SchemaAutomaton, UNDECIDED};

/// Values that one shadow stands for, at most. A larger set is several shadows, which are kept from
/// item to item as far as they stay the same.
const BLOCK: usize = 256;

/// Shadows of a thread; equal ids are equal shadows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ShadowsId(u32);

impl ShadowsId {
    pub(super) const NONE: Self = Self(0);
}

/// Values that the item being written may still become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shadow {
    /// Number of frames from the bottom of the stack up to that of the array.
    pub(super) depth: u32,
    /// The value, if it is one that is known by name; else the values are those of earlier items.
    pub(super) value: Option<ConstantId>,
    /// State of the automaton of constants.
    pub(super) state: u32,
}

/// All shadows that have come up, and the automaton of constants.
#[derive(Debug, Clone)]
pub(super) struct Comparer {
    sets: IndexSet<Box<[Shadow]>, FxBuildHasher>,
    /// Made when the first value is compared.
    constants: Option<Box<SchemaAutomaton>>,
    /// Start states by values.
    starts: FxHashMap<Box<[ConstantId]>, u32>,
}

impl Comparer {
    pub(super) fn new() -> Self {
        let mut sets = IndexSet::default();
        sets.insert(Box::default());
        Self { sets, constants: None, starts: FxHashMap::default() }
    }

    pub(super) fn get(&self, id: ShadowsId) -> &[Shadow] {
        &self.sets[id.0 as usize]
    }

    pub(super) fn intern(&mut self, shadows: Vec<Shadow>) -> ShadowsId {
        ShadowsId(self.sets.insert_full(shadows.into()).0 as u32)
    }

    pub(super) fn memory_usage(&self) -> usize {
        let constants = self.constants.as_ref().map_or(0, |constants| constants.memory_usage());
        self.sets.len() * 96 + self.starts.len() * 96 + constants
    }

    /// After one more byte.
    pub(super) fn step(&mut self, id: ShadowsId, byte: u8) -> Result<ShadowsId, GoalLimit> {
        if id == ShadowsId::NONE {
            return Ok(id);
        }
        let mut after = Vec::with_capacity(self.get(id).len());
        for shadow in self.get(id).to_vec() {
            after.extend(self.stepped(shadow, byte)?);
        }
        Ok(self.intern(after))
    }

    fn stepped(&mut self, shadow: Shadow, byte: u8) -> Result<Option<Shadow>, GoalLimit> {
        let Some(constants) = &mut self.constants else { return Ok(None) };
        match constants.step(shadow.state, byte) {
            DEAD => Ok(None),
            UNDECIDED => Err(constants.last_limit.clone().unwrap_or_else(GoalLimit::unsettled)),
            state => Ok(Some(Shadow { state, ..shadow })),
        }
    }

    /// Whether the value that a shadow stands for, or one of them, has been read.
    pub(super) fn is_equal(&mut self, shadow: Shadow) -> bool {
        self.constants.as_mut().is_some_and(|constants| constants.is_accepting(shadow.state))
    }

    /// The shadows of an item that begins with `byte`, of values that are taken and of others by
    /// name, after those around it.
    pub(super) fn begin(
        &mut self,
        goals: &Goals,
        around: ShadowsId,
        depth: u32,
        byte: u8,
        (taken, pool): (&[ConstantId], &[ConstantId]),
    ) -> Result<ShadowsId, GoalLimit> {
        let mut shadows = self.get(around).to_vec();
        let mut rest = taken;
        while !rest.is_empty() {
            // Blocks of powers of two: the first ones are as before when a value has been added.
            let block = (1usize << rest.len().ilog2()).min(BLOCK);
            let (block, after) = rest.split_at(block);
            rest = after;
            let state = self.start(goals, block)?;
            shadows.extend(self.stepped(Shadow { depth, value: None, state }, byte)?);
        }
        for &value in pool {
            let state = self.start(goals, &[value])?;
            shadows.extend(self.stepped(Shadow { depth, value: Some(value), state }, byte)?);
        }
        Ok(self.intern(shadows))
    }

    /// The state before the first byte of one of some values.
    fn start(&mut self, goals: &Goals, values: &[ConstantId]) -> Result<u32, GoalLimit> {
        if let Some(&known) = self.starts.get(values) {
            return Ok(known);
        }
        let constants = self.constants.get_or_insert_with(|| Box::new(constants(goals)));
        let mut own = Vec::with_capacity(values.len());
        for &value in values {
            own.push(constants.goals.value(&goals.value_text(value))?);
        }
        let start = constants.at_values(&own)?;
        self.starts.insert(values.into(), start);
        Ok(start)
    }

    /// The contents with which the string or key that is being read goes on to be one that some
    /// shadow has.
    pub(super) fn contents(&self, id: ShadowsId) -> Vec<Box<[u8]>> {
        let mut contents = Vec::new();
        let Some(constants) = &self.constants else { return contents };
        for shadow in self.get(id) {
            for thread in &*constants.states[shadow.state as usize] {
                let Leaf::Text { content, escape: Escape::None } = thread.leaf else { continue };
                match content {
                    Content::String { shape, state, .. } => {
                        constants.goals.string(shape).language.words_from(state, &mut contents);
                    }
                    Content::Key(key) => {
                        let key = constants.keys.get(key);
                        let Some(object) = constants.open_object(thread.stack) else { continue };
                        contents.extend((key.declared.0..key.declared.1).map(|at| {
                            let index = object.shape.sorted[at as usize];
                            let name = object.shape.names[index as usize].as_bytes();
                            Box::from(&name[key.length as usize..])
                        }));
                    }
                }
            }
        }
        contents.sort_unstable();
        contents.dedup();
        contents
    }

    /// The numbers that shadows have which are inside of one, each with its shadow; of several, that
    /// of the innermost array.
    pub(super) fn numbers(&self, id: ShadowsId) -> Vec<(Decimal, Shadow)> {
        let mut numbers: Vec<(Decimal, Shadow)> = Vec::new();
        let Some(constants) = &self.constants else { return numbers };
        for &shadow in self.get(id) {
            for thread in &*constants.states[shadow.state as usize] {
                let Leaf::Number { number, .. } = thread.leaf else { continue };
                for value in constants.goals.listed_numbers(number) {
                    match numbers.iter_mut().find(|(known, _)| *known == value) {
                        Some((_, known)) if known.depth < shadow.depth => *known = shadow,
                        Some(_) => {}
                        None => numbers.push((value, shadow)),
                    }
                }
            }
        }
        numbers
    }

    /// Bytes with which some shadow goes on.
    pub(super) fn successors(&mut self, id: ShadowsId) -> super::ByteBits {
        let mut bits = [0; 4];
        let shadows = self.get(id).to_vec();
        if let Some(constants) = &mut self.constants {
            for shadow in shadows {
                let own = constants.successors(shadow.state);
                bits.iter_mut().zip(own).for_each(|(bits, own)| *bits |= own);
            }
        }
        bits
    }

    /// Forgets everything but some shadows, which get the ids that are returned.
    pub(super) fn clear(&mut self, keep: &[ShadowsId]) -> Vec<ShadowsId> {
        let kept: Vec<Vec<Shadow>> = keep.iter().map(|&id| self.get(id).to_vec()).collect();
        let states: Vec<u32> = kept.iter().flatten().map(|shadow| shadow.state).collect();
        let mut states = match &mut self.constants {
            Some(constants) => constants.clear_cache(&states).into_iter(),
            None => Vec::new().into_iter(),
        };
        self.starts = FxHashMap::default();
        self.sets = IndexSet::default();
        self.sets.insert(Box::default());
        kept.into_iter()
            .map(|mut shadows| {
                for shadow in &mut shadows {
                    shadow.state = states.next().unwrap_or(DEAD);
                }
                self.intern(shadows)
            })
            .collect()
    }
}

/// The automaton of constants, before there are any.
fn constants(compared: &Goals) -> SchemaAutomaton {
    let options = compared.options;
    let options = CompileOptions {
        // Whitespace is not read.
        style: if options.style == Style::Spaced { Style::Spaced } else { Style::Compact },
        order: Order::Any,
        number_style: NumberStyle::Any,
        escapes: Escapes::Any,
        ..options
    };
    let always = Node::of_types(String::new(), TypeSet::ALL);
    let schema = Schema { nodes: vec![always], root: ALWAYS, has_data: false };
    let mut goals = Goals::new(std::sync::Arc::new(schema), options);
    // Whatever spelling the schema lets through must be read.
    goals.number_limits = if compared.has_long_numbers() {
        NumberLimits::long_texts()
    } else {
        NumberLimits::unbounded()
    };
    SchemaAutomaton::from_goals(goals)
}
