//! Goals: what a value must satisfy, as a conjunction of demands, and the typed alternatives that
//! satisfy it.
//!
//! ```text
//! goal {A, B}     A = {"type": ["object", "null"], "properties": {"x": C}}
//!                 B = {"anyOf": [{"properties": {"x": D}}, {"required": ["y"]}]}
//!
//! expand ──▶ null | object { x: goal {C, D}, others: any } | object { x: goal {C}, y: any, … }
//! ```
//!
//! A demand is a node of the schema that the value must satisfy, or one that it must not satisfy.
//! A goal is a list of demands without repetition; its order is the order in which members are
//! written, so it is kept. Expansion walks the nodes' applicators: `allOf` and `$ref` add
//! conjuncts, `anyOf` forks, and `oneOf` forks into one branch that holds and others that fail.
//! Each fork ends as a *partial*, a set of rules for one value, from which one alternative for
//! each type is made. Children are goals again and are expanded when a text reaches them:
//! recursion in the schema is recursion between goal ids, and costs nothing until it is used.
//!
//! # How a node fails
//! A scalar fails a node by being in the complement of what the node accepts, which is another
//! automaton. A container fails it if *some* of its children fails, or if some name is missing: a
//! [condition](condition) on the members, of which the frame of an open object remembers what is
//! left to be met. Arrays remember more: how many items a counter has found, which is what
//! `contains` asks.
//! So each negation becomes a demand on children, and nothing is ever run backwards.
//!
//! # Disjoint branches
//! `oneOf` with n branches that exclude each other is `anyOf`; only branches that overlap need the
//! others to fail. Whether two overlap is asked of a second set of goals, the *upper bound*, in
//! which what is hard is left out: `oneOf` is `anyOf` there, and conditions and counters do not
//! count. If even the upper bound of both has no value, they are disjoint. Nothing is asked of the
//! upper bound while it is worked out, so this cannot go in circles.
//!
//! A demand that comes up twice on one path is applied once: that is what idempotence of
//! conjunction allows, and it is what ends `{"$ref": "#"}`.

mod condition;
mod discriminator;
mod distinct;
mod expand;
mod formula;
mod items;
mod language;
mod meet;
mod member;
mod names;
mod partial;
mod plan;
mod relation;
mod rule;
mod shape;
mod solve;
mod values;
mod violation;
mod write;

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::dfa::{Dfa, DfaError, DfaLimits};
use crate::ir::{Demand, NodeId, Schema, TypeSet};
use crate::number::{NumberAutomaton, NumberLimits, NumberSpec};
use crate::options::CompileOptions;

pub(crate) use formula::FormulaId;
pub(crate) use items::ItemState;
pub(crate) use names::{ExtraNames, NameClass, word_counts};
pub(crate) use plan::{Member, Progress, is_taken};
pub(crate) use rule::{ChildOption, RuleId};
pub(crate) use shape::{ArrayShape, ObjectShape, StringShape};
pub(crate) use values::ConstantId;

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
    /// No limit, but a value or name that has ended and is not recorded yet: what follows depends
    /// on it, and only the text can tell.
    pub(crate) fn unsettled() -> Self {
        Self { name: "unsettled", limit: 0, unit: "unrecorded values", pointer: String::new() }
    }

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
    /// It is being expanded.
    Pending,
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
    /// Alternatives whose shortest text is beyond the limit on completions: not offered.
    pub(crate) too_long: Arc<[Alternative]>,
}

/// Estimate of the heap bytes of one state of a number automaton.
const NUMBER_STATE_BYTES: usize = 320;

/// All goals of one schema that have come up so far: scratch, grows while texts are read.
#[derive(Debug, Clone)]
pub(crate) struct Goals {
    pub(crate) schema: Arc<Schema>,
    pub(crate) options: CompileOptions,
    dfa_limits: DfaLimits,
    pub(crate) number_limits: NumberLimits,
    ids: IndexSet<Box<[Demand]>, FxBuildHasher>,
    known: Vec<Known>,
    numbers: Vec<NumberAutomaton>,
    number_specs: IndexSet<Vec<NumberSpec>, FxBuildHasher>,
    strings: IndexSet<Arc<StringShape>, FxBuildHasher>,
    arrays: IndexSet<Arc<ArrayShape>, FxBuildHasher>,
    objects: IndexSet<Arc<ObjectShape>, FxBuildHasher>,
    /// The names that are not declared, for each object shape: worked out at first use.
    extra_names: Vec<Option<Result<Arc<ExtraNames>, GoalLimit>>>,
    /// All classes of names, for each object shape that was asked for them.
    name_classes: FxHashMap<ObjectId, names::Classes>,
    /// The shortest values of the declared members, for each object shape: likewise.
    member_costs: Vec<Option<plan::MemberCosts>>,
    rules: IndexSet<rule::ChildRule, FxBuildHasher>,
    rule_options: FxHashMap<(RuleId, rule::Counts, rule::Counts), rule::Options>,
    formulas: formula::Formulas,
    literals: IndexSet<condition::Literal, FxBuildHasher>,
    /// Conditions for a value of one type to meet a demand.
    conditions: FxHashMap<(Demand, TypeSet), condition::Condition>,
    /// Demands whose conditions are being worked out.
    open_conditions: Vec<Demand>,
    /// The strings that meet a demand, where a choice of strings is one language.
    demanded_languages: FxHashMap<Demand, language::Language>,
    /// Demands whose languages are being worked out.
    open_languages: Vec<Demand>,
    /// How objects with conditions can be finished.
    plans: FxHashMap<(ObjectId, Progress), Option<Arc<[Member]>>>,
    /// What meets a part of a condition, by the names it may still use.
    met_parts: meet::MetParts,
    /// Names with which objects may be filled up.
    planned_names: FxHashMap<(ObjectId, Progress), Arc<[Box<str>]>>,
    /// Complements of languages, by the address of the language, which is kept alive here.
    complements: FxHashMap<usize, (Arc<Dfa>, Arc<Dfa>)>,
    /// The values that items are compared with.
    values: values::Values,
    /// How arrays whose items must differ can be finished.
    distinct_plans: FxHashMap<distinct::PlanKey, Option<distinct::DistinctPlan>>,
    /// Disjunctions made up while expanding, by their members.
    choices: FxHashMap<Box<[NodeId]>, NodeId>,
    /// The languages of names that satisfy a node.
    name_languages: FxHashMap<NodeId, Arc<Dfa>>,
    /// What was found of members that are related by `$data`.
    related: relation::Found,
    /// The goals in which what is hard is left out; made at the first question.
    upper: Option<Box<Goals>>,
    is_upper: bool,
}

impl Goals {
    pub(crate) fn new(schema: Arc<Schema>, options: CompileOptions) -> Self {
        Self {
            schema,
            options,
            dfa_limits: DfaLimits::default(),
            number_limits: NumberLimits::default(),
            ids: IndexSet::default(),
            known: Vec::new(),
            numbers: Vec::new(),
            number_specs: IndexSet::default(),
            strings: IndexSet::default(),
            arrays: IndexSet::default(),
            objects: IndexSet::default(),
            extra_names: Vec::new(),
            name_classes: FxHashMap::default(),
            member_costs: Vec::new(),
            rules: IndexSet::default(),
            rule_options: FxHashMap::default(),
            formulas: formula::Formulas::new(),
            literals: IndexSet::default(),
            conditions: FxHashMap::default(),
            open_conditions: Vec::new(),
            demanded_languages: FxHashMap::default(),
            open_languages: Vec::new(),
            plans: FxHashMap::default(),
            met_parts: meet::MetParts::default(),
            planned_names: FxHashMap::default(),
            complements: FxHashMap::default(),
            values: values::Values::default(),
            distinct_plans: FxHashMap::default(),
            choices: FxHashMap::default(),
            name_languages: FxHashMap::default(),
            related: relation::Found::default(),
            upper: None,
            is_upper: false,
        }
    }

    /// The upper bound.
    fn upper(&mut self) -> &mut Self {
        let (schema, options) = (&self.schema, self.options);
        let upper = self.upper.get_or_insert_with(|| {
            let goals = Self::new(Arc::clone(schema), options);
            Box::new(Self { is_upper: true, ..goals })
        });
        // Nodes that were made up since are only here.
        if upper.schema.nodes.len() < schema.nodes.len() {
            upper.schema = Arc::clone(schema);
        }
        upper
    }

    /// Whether no value meets all of these demands, as far as the upper bound tells.
    fn is_impossible(&mut self, demands: impl IntoIterator<Item = Demand>) -> bool {
        let upper = self.upper();
        let goal = upper.goal(demands);
        matches!(upper.shortest(goal), Ok(None))
    }

    /// Whether a value of this goal is certainly neither an array nor an object.
    fn is_scalar(&mut self, demands: &[Demand]) -> bool {
        if self.is_impossible(demands.iter().copied()) {
            return true;
        }
        let Some(upper) = &mut self.upper else { return false };
        let goal = upper.goal(demands.iter().copied());
        upper.solve(goal).is_ok_and(|solution| {
            !solution.alternatives.iter().any(|alternative| {
                matches!(alternative, Alternative::Array(_) | Alternative::Object(_))
            })
        })
    }

    /// The goal of meeting all of `demands`. Those that every value meets are left out, later
    /// repetitions too.
    pub(crate) fn goal(&mut self, demands: impl IntoIterator<Item = Demand>) -> GoalId {
        let mut list: Vec<Demand> = Vec::new();
        for demand in demands {
            let node = self.schema.node(demand.node());
            let trivial = if demand.is_negated() { node.is_false() } else { node.is_true() };
            if !trivial && !list.contains(&demand) {
                list.push(demand);
            }
        }
        let (index, new) = self.ids.insert_full(list.into_boxed_slice());
        if new {
            self.known.push(Known::Nothing);
        }
        GoalId(index as u32)
    }

    /// A goal with further demands.
    pub(crate) fn extended(
        &mut self,
        goal: GoalId,
        more: impl IntoIterator<Item = Demand>,
    ) -> GoalId {
        let demands = self.ids[goal.0 as usize].to_vec();
        self.goal(demands.into_iter().chain(more))
    }

    /// The goal of the whole schema.
    pub(crate) fn root(&mut self) -> GoalId {
        let root = self.schema.root;
        self.goal([Demand::holds(root)])
    }

    /// JSON Pointer of the first schema location of a goal, for messages.
    pub(crate) fn pointer(&self, goal: GoalId) -> String {
        self.ids[goal.0 as usize]
            .first()
            .map_or_else(String::new, |demand| self.schema.node(demand.node()).pointer.clone())
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
        let upper = self.upper.as_ref().map_or(0, |upper| upper.memory_usage());
        self.ids.len() * 160
            + numbers * NUMBER_STATE_BYTES
            + self.plans.len() * 256
            + self.related.memory_usage()
            + self.distinct_plans.len() * 192
            + self.values.memory_usage()
            + self.met_parts.len() * 128
            + self.formulas.memory_usage()
            + upper
    }
}
