//! Goals: what a value must satisfy, as a conjunction of schema locations, and the typed
//! alternatives that satisfy it.
//!
//! ```text
//! goal {A, B}     A = {"type": ["object", "null"], "properties": {"x": C}}
//!                 B = {"anyOf": [{"properties": {"x": D}}, {"required": ["y"]}]}
//!
//! expand ──▶ null | object { x: goal {C, D}, others: any } | object { x: goal {C}, y: any, … }
//! ```
//!
//! A goal is a list of nodes without repetition; its order is the order in which members are
//! written, so it is kept. Expansion walks the nodes' applicators: `allOf` and `$ref` add
//! conjuncts, `anyOf` forks. Each fork ends as a *partial*, a set of rules for one value, from
//! which one alternative for each type is made. Children are goals again and are expanded when a
//! text reaches them: recursion in the schema is recursion between goal ids, and costs nothing
//! until it is used.
//!
//! A node that comes up twice on one path is applied once: that is what idempotence of conjunction
//! allows, and it is what ends `{"$ref": "#"}`.

mod expand;
mod names;
mod plan;
mod shape;
mod solve;

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::dfa::{DfaError, DfaLimits};
use crate::ir::{NodeId, Schema};
use crate::number::{NumberAutomaton, NumberSpec};
use crate::options::CompileOptions;

pub(crate) use names::ExtraNames;
pub(crate) use plan::{Member, Progress, is_taken};
pub(crate) use shape::{ArrayShape, ObjectShape, StringShape};

/// Index of a goal in [`Goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GoalId(pub(crate) u32);

/// Index of a number automaton in [`Goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NumberId(pub(crate) u32);

/// Index of a string shape in [`Goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(pub(crate) u32);

/// Index of an array shape in [`Goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ArrayId(pub(crate) u32);

/// Index of an object shape in [`Goals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId(pub(crate) u32);

/// One of the three texts that are values by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Literal {
    Null,
    False,
    True,
}

impl Literal {
    pub(crate) fn text(self) -> &'static [u8] {
        match self {
            Self::Null => b"null",
            Self::False => b"false",
            Self::True => b"true",
        }
    }
}

/// One way for a value to satisfy a goal, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alternative {
    Literal(Literal),
    Number(NumberId),
    String(StringId),
    Array(ArrayId),
    Object(ObjectId),
}

/// Why a goal could not be worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalLimit {
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
    pub(crate) unit: &'static str,
    /// Where it was exceeded.
    pub(crate) pointer: String,
}

impl GoalLimit {
    fn from_dfa(error: &DfaError, pointer: String) -> Self {
        let (name, limit, unit) = match *error {
            DfaError::States { limit } => ("max_states", limit, "states"),
            DfaError::Transitions { limit } => ("max_transitions", limit, "transitions"),
            DfaError::NfaBytes { limit } => ("max_nfa_bytes", limit, "bytes"),
            DfaError::DeterminizeBytes { limit } => ("max_determinize_bytes", limit, "bytes"),
            DfaError::DeterminizeSteps { limit } => ("max_determinize_steps", limit, "threads"),
            DfaError::LengthTable { limit } => ("max_length_table_bytes", limit, "bytes"),
        };
        Self { name, limit: limit as u64, unit, pointer }
    }
}

/// What is known of a goal.
#[derive(Debug, Clone)]
enum Known {
    Nothing,
    /// Its alternatives, not yet checked for ones that nothing satisfies.
    Expanded(Arc<[Alternative]>),
    /// Its satisfiable alternatives, the bytes of the shortest text, and which alternative that is.
    Solved(Solution),
    Exceeded(GoalLimit),
}

/// The satisfiable alternatives of a goal.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) alternatives: Arc<[Alternative]>,
    /// Bytes of the shortest text and the alternative it belongs to; `None` if nothing satisfies
    /// the goal.
    pub(crate) shortest: Option<(u64, Alternative)>,
}

/// Estimate of the heap bytes of one state of a number automaton.
const NUMBER_STATE_BYTES: usize = 320;

/// All goals of one schema that have come up so far: scratch, grows while texts are read.
#[derive(Debug, Clone)]
pub(crate) struct Goals {
    pub(crate) schema: Arc<Schema>,
    pub(crate) options: CompileOptions,
    dfa_limits: DfaLimits,
    ids: IndexSet<Box<[NodeId]>, FxBuildHasher>,
    known: Vec<Known>,
    numbers: Vec<NumberAutomaton>,
    number_specs: Vec<Vec<NumberSpec>>,
    strings: IndexSet<Arc<StringShape>, FxBuildHasher>,
    arrays: IndexSet<Arc<ArrayShape>, FxBuildHasher>,
    objects: IndexSet<Arc<ObjectShape>, FxBuildHasher>,
    /// The names that are not declared, for each object shape: worked out at first use.
    extra_names: Vec<Option<Result<Arc<ExtraNames>, GoalLimit>>>,
    /// The shortest values of the declared members, for each object shape: likewise.
    member_costs: Vec<Option<Arc<[Option<u64>]>>>,
}

impl Goals {
    pub(crate) fn new(schema: Arc<Schema>, options: CompileOptions) -> Self {
        Self {
            schema,
            options,
            dfa_limits: DfaLimits::default(),
            ids: IndexSet::default(),
            known: Vec::new(),
            numbers: Vec::new(),
            number_specs: Vec::new(),
            strings: IndexSet::default(),
            arrays: IndexSet::default(),
            objects: IndexSet::default(),
            extra_names: Vec::new(),
            member_costs: Vec::new(),
        }
    }

    /// The goal of satisfying all of `nodes`. Nodes that accept everything are left out, later
    /// repetitions too.
    pub(crate) fn goal(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> GoalId {
        let mut list: Vec<NodeId> = Vec::new();
        for node in nodes {
            if !self.schema.node(node).is_true() && !list.contains(&node) {
                list.push(node);
            }
        }
        let (index, new) = self.ids.insert_full(list.into_boxed_slice());
        if new {
            self.known.push(Known::Nothing);
        }
        GoalId(index as u32)
    }

    /// The goal of the whole schema.
    pub(crate) fn root(&mut self) -> GoalId {
        let root = self.schema.root;
        self.goal([root])
    }

    /// JSON Pointer of the first schema location of a goal, for messages.
    pub(crate) fn pointer(&self, goal: GoalId) -> String {
        self.ids[goal.0 as usize]
            .first()
            .map_or_else(String::new, |&node| self.schema.node(node).pointer.clone())
    }

    pub(crate) fn string(&self, id: StringId) -> &Arc<StringShape> {
        &self.strings[id.0 as usize]
    }

    pub(crate) fn array(&self, id: ArrayId) -> &Arc<ArrayShape> {
        &self.arrays[id.0 as usize]
    }

    pub(crate) fn object(&self, id: ObjectId) -> &Arc<ObjectShape> {
        &self.objects[id.0 as usize]
    }

    pub(crate) fn number(&mut self, id: NumberId) -> &mut NumberAutomaton {
        &mut self.numbers[id.0 as usize]
    }

    /// Forgets the states of all number automata but the given ones, which get new ids in place.
    pub(crate) fn clear_numbers(&mut self, keep: &mut [(NumberId, &mut u32)]) {
        for (index, automaton) in self.numbers.iter_mut().enumerate() {
            let id = NumberId(index as u32);
            let mut own: Vec<&mut u32> = Vec::new();
            for (number, state) in keep.iter_mut() {
                if *number == id {
                    own.push(state);
                }
            }
            let old: Vec<u32> = own.iter().map(|state| **state).collect();
            for (state, new) in own.into_iter().zip(automaton.clear(&old)) {
                *state = new;
            }
        }
    }

    /// Estimate of the heap bytes held, without the automata of strings.
    pub(crate) fn memory_usage(&self) -> usize {
        let numbers: usize = self.numbers.iter().map(NumberAutomaton::state_count).sum();
        self.ids.len() * 160 + numbers * NUMBER_STATE_BYTES
    }
}
