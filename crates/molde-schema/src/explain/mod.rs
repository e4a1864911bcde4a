//! Why a text is no text of a schema's values, and what may follow one that is a beginning.
//!
//! The automaton knows *that* a byte cannot follow; by then the keywords of all schema locations
//! that apply are merged. To find the ones responsible, the demands on a value are taken apart
//! into *atoms*, demands of one keyword each, and automata of some of them read the same text:
//!
//! ```text
//! {"anyOf": [{"type": "integer", "maximum": 4}, {"type": "null"}]}       text  7
//!
//! value      one atom, a choice; alone it stops at 7
//! branch 0   type: goes on     maximum: stops at 7     ──▶ `maximum` at /anyOf/0
//! branch 1   type: stops at 7, since it is no text of that type: said only if all branches say so
//! ```
//!
//! - An atom that stops at the same byte by itself is a reason. If there is none, the reason is a
//!   set of atoms that stops there and no part of which does, found by leaving out one at a time.
//! - Of a choice, the branches matter that read as far as the text goes; each is looked into
//!   together with the other atoms of the set.
//! - An atom about children leads to the child in which the text ends, and the demands on it.
//!
//! So an explanation is never a guess about the machine: each reason is a fact about what the
//! keywords alone accept, in the same style and under the same limits.

mod atom;
mod data;
mod scan;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::dialect::Dialect;
use crate::document::join;
use crate::goal::Goals;
use crate::ir::{Demand, Node, NodeId, Schema, TypeSet};
use crate::lint::Occurrence;
use crate::options::{CompileOptions, Order, Style};
use crate::{ByteBits, CompiledSchema, DEAD, Escapes, NumberStyle, SchemaAutomaton, UNDECIDED};

use atom::{Atom, Choice, Kind, Parts};
use data::{Siblings, Told};
use scan::{Contents, Part, Step};

/// Why a text is no text of a schema's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Index of the first byte that cannot follow; the length of the text if it only cannot end
    /// there.
    pub offset: usize,
    /// The bytes that can come there.
    pub next: ByteBits,
    /// Whether the text could end there.
    pub may_end: bool,
    /// What forbids it. Each is enough by itself, unless they are said to be
    /// [together](Reason::is_joint).
    pub reasons: Vec<Reason>,
}

/// What forbids a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// JSON Pointer of the value or container in the text.
    pub instance: String,
    /// JSON Pointer of the schema location; empty for the root, and where no keyword is to blame.
    pub location: String,
    /// The keyword at that location; empty where JSON itself, or how it is to be written, forbids
    /// the byte.
    pub keyword: String,
    /// What was expected, as a phrase such as "a number at most 4".
    pub expected: String,
    /// Whether it takes the other joint reasons as well to forbid the byte.
    pub is_joint: bool,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.keyword.is_empty() {
            return write!(f, "expected {}", self.expected);
        }
        let location = if self.location.is_empty() { "the root" } else { &self.location };
        write!(f, "`{}` at {location}: expected {}", self.keyword, self.expected)
    }
}

/// A keyword that has a say about what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveKeyword {
    /// JSON Pointer of the value in the text.
    pub instance: String,
    /// JSON Pointer of the schema location.
    pub location: String,
    /// The keyword.
    pub keyword: String,
    /// What it demands, as a phrase.
    pub expected: String,
}

/// Automata run for one explanation at most, and bytes read by them: far more than any schema in
/// use needs. What is not found by then is not said.
const MAX_RUNS: usize = 4_000;
const MAX_BYTES: usize = 1 << 21;
/// Choices and containers inside each other that are looked into.
const MAX_DEPTH: usize = 200;
/// Reasons that are told.
const MAX_REASONS: usize = 64;

impl CompiledSchema {
    /// Why `text` is no beginning of a text of this schema's values, or, if `is_whole`, no text of
    /// one. `None` if it is.
    ///
    /// # Complexity
    /// Tens to thousands of readings of the text, within fixed limits: for messages, not for the
    /// way of every token.
    pub fn explain(&self, text: &[u8], is_whole: bool) -> Option<Rejection> {
        let mut automaton = SchemaAutomaton::from_goals(self.goals().clone());
        let mut state = automaton.start();
        let mut offset = text.len();
        for at in 0..text.len() {
            let after = automaton.read_byte(state, &text[..=at]);
            if after <= UNDECIDED {
                offset = at;
                break;
            }
            state = after;
        }
        let may_end = automaton.is_accepting(state);
        if offset == text.len() && (may_end || !is_whole) {
            return None;
        }
        let mut next = ByteBits::default();
        for byte in 0..=u8::MAX {
            if automaton.step(state, byte) > UNDECIDED {
                next[usize::from(byte / 64)] |= 1 << (byte % 64);
            }
        }
        let is_ended = offset == text.len();
        let read = &text[..text.len().min(offset + 1)];
        let part = Part { text: read, is_ended };
        let mut explainer = Explainer::new(self);
        let mut reasons = if !is_ended && automaton.read_byte(state, read) == UNDECIDED {
            let limit = automaton.last_limit().unwrap_or_else(|| "some limit".to_owned());
            vec![general(format!("a byte whose effect is decided within {limit}"))]
        } else {
            explainer.reasons(self, part)
        };
        reasons.truncate(MAX_REASONS);
        Some(Rejection { offset, next, may_end, reasons })
    }

    /// The keywords that apply where `text` ends, those of the innermost value first. Of schemas
    /// that are alternatives, those that can still hold.
    ///
    /// # Complexity
    /// As for [`explain`](Self::explain).
    pub fn live_keywords(&self, text: &[u8]) -> Vec<LiveKeyword> {
        let mut explainer = Explainer::new(self);
        let mut found = Vec::new();
        let root = [Demand::holds(self.goals().schema.root)];
        explainer.live(&root, text, "", 0, &mut found);
        found
    }
}

fn general(expected: String) -> Reason {
    Reason {
        instance: String::new(),
        location: String::new(),
        keyword: String::new(),
        expected,
        is_joint: false,
    }
}

/// What one demand alone makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It stops at this offset.
    Stops(usize),
    /// It goes on, or that cannot be decided.
    GoesOn,
}

/// A reason, and whether it only says that a branch is for other values: of another type, or
/// those that fail a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    reason: Reason,
    is_weak: bool,
}

struct Explainer<'s> {
    /// With a node for each atom so far.
    schema: Arc<Schema>,
    options: CompileOptions,
    dialect: Dialect,
    occurrences: &'s [Occurrence],
    parts: FxHashMap<Demand, Parts>,
    /// Nodes that are made up for `dependentRequired` and its like, with the keyword.
    dependencies: FxHashMap<NodeId, String>,
    /// Nodes that are made up for keywords with `$data`.
    told: FxHashMap<NodeId, Told>,
    /// Made anew when the schema has grown.
    automaton: Option<SchemaAutomaton>,
    runs: usize,
    bytes: usize,
}

impl<'s> Explainer<'s> {
    fn new(schema: &'s CompiledSchema) -> Self {
        Self {
            schema: Arc::clone(&schema.goals().schema),
            // One keyword alone knows nothing of the order that all of them make up together.
            options: CompileOptions { order: Order::Any, ..*schema.options() },
            dialect: schema.dialect(),
            occurrences: schema.occurrences(),
            parts: FxHashMap::default(),
            dependencies: FxHashMap::default(),
            told: FxHashMap::default(),
            automaton: None,
            runs: 0,
            bytes: 0,
        }
    }

    /// The demand of satisfying a node that is not part of the schema.
    fn push(&mut self, node: Node) -> Demand {
        // It shares the schema, which could then not be changed in place.
        self.automaton = None;
        let nodes = &mut Arc::make_mut(&mut self.schema).nodes;
        nodes.push(node);
        Demand::holds(NodeId(nodes.len() as u32 - 1))
    }

    /// What some demands make of a text, without any other.
    fn fate(&mut self, demands: &[Demand], part: Part<'_>) -> Fate {
        if self.runs >= MAX_RUNS || self.bytes >= MAX_BYTES {
            return Fate::GoesOn;
        }
        self.runs += 1;
        let (schema, options) = (&self.schema, self.options);
        let automaton = self.automaton.get_or_insert_with(|| {
            SchemaAutomaton::from_goals(Goals::new(Arc::clone(schema), options))
        });
        let mut state = automaton.at_demands(demands);
        for at in 0..part.text.len() {
            self.bytes += 1;
            state = automaton.read_byte(state, &part.text[..=at]);
            match state {
                DEAD => return Fate::Stops(at),
                UNDECIDED => return Fate::GoesOn,
                _ => {}
            }
        }
        if part.is_ended && !automaton.is_accepting(state) {
            return Fate::Stops(part.text.len());
        }
        Fate::GoesOn
    }

    fn stops(&mut self, demands: &[Demand], part: Part<'_>) -> bool {
        self.fate(demands, part) <= Fate::Stops(part.last())
    }

    /// The reasons for which a text of the schema stops at its end.
    fn reasons(&mut self, schema: &CompiledSchema, part: Part<'_>) -> Vec<Reason> {
        let root = [Demand::holds(self.schema.root)];
        if self.stops(&[], part) {
            return vec![general(self.rule_of_writing(part).to_owned())];
        }
        if self.stops(&root, part) {
            let found = self.explain(&root, part, "", 0);
            return found.into_iter().map(|found| found.reason).collect();
        }
        if schema.options().order == Order::Schema {
            return self.reasons_of_order(part);
        }
        Vec::new()
    }

    /// What is said where only the order of the members forbids the byte: which of those that are
    /// required have been passed over, if any have.
    fn reasons_of_order(&mut self, part: Part<'_>) -> Vec<Reason> {
        let read = &part.text[..part.text.len().saturating_sub(1)];
        let mut demands = vec![Demand::holds(self.schema.root)];
        let mut instance = String::new();
        let mut text = read;
        loop {
            let part = Part { text, is_ended: false };
            let atoms = self.open_atoms(&demands, part);
            let contents = Contents::of(part);
            if let Some(child) =
                contents.child.filter(|child| !child.is_closed && !atoms.is_empty())
            {
                let siblings = Siblings { instance: &instance, values: contents.values };
                demands = self.child_demands(&atoms, &child.step, &siblings);
                instance = child_pointer(&instance, &child.step);
                text = child.part.text;
                continue;
            }
            let mut reasons = Vec::new();
            for atom in atoms.iter().filter(|atom| atom.keyword == "required") {
                let rule = self.schema.node(atom.demand.node()).object.as_deref();
                let required = rule.map_or(&[][..], |rule| &rule.required);
                let missing: Vec<Box<str>> = required
                    .iter()
                    .filter(|name| !contents.names.iter().any(|written| **written == ***name))
                    .cloned()
                    .collect();
                if !missing.is_empty() {
                    reasons.push(Reason {
                        instance: instance.clone(),
                        location: atom.location.clone(),
                        keyword: atom.keyword.clone(),
                        expected: format!("the members {} first", atom::list(&missing)),
                        is_joint: false,
                    });
                }
            }
            if reasons.is_empty() {
                let order = "the members in schema order: those that are declared, as they first \
                             appear in the schema, then required ones, then others";
                reasons.push(Reason { instance, ..general(order.to_owned()) });
            }
            return reasons;
        }
    }

    /// What a text that the schema `true` stops at fails to be.
    fn rule_of_writing(&mut self, part: Part<'_>) -> &'static str {
        let own = self.options;
        let mut writes = |options: CompileOptions| {
            self.automaton = None;
            self.options = options;
            !self.stops(&[], part)
        };
        let style = writes(CompileOptions { style: Style::Flexible, ..own });
        let number_style = writes(CompileOptions { number_style: NumberStyle::Any, ..own });
        let escapes = writes(CompileOptions { escapes: Escapes::Any, ..own });
        self.automaton = None;
        self.options = own;
        if style {
            match own.style {
                Style::Spaced => "one space after each comma and colon, and no other whitespace",
                Style::Compact => "no whitespace",
                Style::Flexible => "less whitespace in one place",
            }
        } else if number_style {
            "a plain number: no exponent, and at most 15 significant digits if it is no integer"
        } else if escapes {
            "escapes only where JSON demands them"
        } else if Contents::repeats_name(part.text) {
            "each name once in an object"
        } else if part.is_ended {
            "more: the JSON text is not complete"
        } else {
            "what JSON allows here"
        }
    }

    /// The reasons for which demands together stop at the end of a text, and no sooner.
    fn explain(
        &mut self,
        demands: &[Demand],
        part: Part<'_>,
        instance: &str,
        depth: usize,
    ) -> Vec<Found> {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let atoms = self.atoms(demands);
        let alone: Vec<&Atom> = atoms
            .iter()
            .filter(|atom| !matches!(atom.kind, Kind::Whole) && self.stops(&[atom.demand], part))
            .collect();
        let sets: Vec<Vec<Atom>> = if alone.is_empty() {
            self.least_set(&atoms, part).into_iter().collect()
        } else {
            alone.into_iter().map(|atom| vec![atom.clone()]).collect()
        };
        let mut found = Vec::new();
        for set in sets {
            add_new(&mut found, self.reasons_of(&set, part, instance, depth));
        }
        found
    }

    /// Atoms that together stop at the end of the text, none of which can be left out.
    fn least_set(&mut self, atoms: &[Atom], part: Part<'_>) -> Option<Vec<Atom>> {
        let mut set: Vec<Atom> = atoms.to_vec();
        let demands =
            |set: &[Atom]| -> Vec<Demand> { set.iter().map(|atom| atom.demand).collect() };
        if !self.stops(&demands(&set), part) {
            return None;
        }
        // What is tried first is left out first. The type goes without saying, so it stays where
        // it can take the place of something that does not.
        let rank = |atom: &Atom| match atom.kind {
            Kind::Whole => 0,
            Kind::Negation => 1,
            Kind::Choice(_) => 2,
            Kind::Constant(_) | Kind::Children | Kind::Value => 3,
            Kind::Type => 4,
        };
        for wanted in 0..=4 {
            let mut at = 0;
            while at < set.len() {
                if rank(&set[at]) == wanted && set.len() > 1 {
                    let atom = set.remove(at);
                    if self.stops(&demands(&set), part) {
                        continue;
                    }
                    set.insert(at, atom);
                }
                at += 1;
            }
        }
        Some(set)
    }

    /// The reasons in a set of atoms that together stop at the end of the text.
    fn reasons_of(
        &mut self,
        set: &[Atom],
        part: Part<'_>,
        instance: &str,
        depth: usize,
    ) -> Vec<Found> {
        let choice = set.iter().enumerate().find_map(|(at, atom)| match &atom.kind {
            Kind::Choice(choice) => Some((at, choice.clone())),
            _ => None,
        });
        let mut reasons = Vec::new();
        if let Some((at, choice)) = choice {
            let mut others: Vec<Demand> = set.iter().map(|atom| atom.demand).collect();
            others.remove(at);
            reasons = self.reasons_in_branches(&choice, &others, part, instance, depth);
        } else if set.iter().all(|atom| matches!(atom.kind, Kind::Children)) {
            reasons = self.reasons_in_child(set, part, instance, depth);
        }
        if !reasons.is_empty() {
            return reasons;
        }
        let is_joint = |atom: &&Atom| set.len() == 1 || !matches!(atom.kind, Kind::Type);
        let told: Vec<&Atom> = set.iter().filter(is_joint).collect();
        let told = if told.is_empty() { set.iter().collect() } else { told };
        let is_joint = told.len() > 1;
        told.into_iter()
            .map(|atom| Found {
                is_weak: is_weak(atom, part),
                reason: Reason {
                    instance: instance.to_owned(),
                    location: atom.location.clone(),
                    keyword: atom.keyword.clone(),
                    expected: atom.expected.clone(),
                    is_joint,
                },
            })
            .collect()
    }

    /// Looks into the branches of a choice that read as far as the text goes.
    fn reasons_in_branches(
        &mut self,
        choice: &Choice,
        others: &[Demand],
        part: Part<'_>,
        instance: &str,
        depth: usize,
    ) -> Vec<Found> {
        let mut strong = Vec::new();
        let mut weak = Vec::new();
        for branch in &choice.branches {
            let demands: Vec<Demand> = others.iter().chain(branch).copied().collect();
            match self.fate(&demands, part) {
                // Nothing in the branches forbids it but that too many of them hold.
                Fate::GoesOn => return Vec::new(),
                Fate::Stops(at) if at < part.last() => continue,
                Fate::Stops(_) => {}
            }
            let mut found = self.explain(&demands, part, instance, depth + 1);
            if let Some(condition) = &choice.condition {
                found.retain(|found| !found.reason.location.starts_with(condition.as_str()));
            }
            let is_weak = found.iter().all(|found| found.is_weak);
            add_new(if is_weak { &mut weak } else { &mut strong }, found);
        }
        if strong.is_empty() { weak } else { strong }
    }

    /// Goes on in the child in which the text ends, if that is where it is wrong.
    fn reasons_in_child(
        &mut self,
        set: &[Atom],
        part: Part<'_>,
        instance: &str,
        depth: usize,
    ) -> Vec<Found> {
        let contents = Contents::of(part);
        let Some(child) = contents.child else { return Vec::new() };
        let siblings = Siblings { instance, values: contents.values };
        let demands = self.child_demands(set, &child.step, &siblings);
        if child.part.text.is_empty()
            || self.fate(&demands, child.part) != Fate::Stops(child.part.last())
        {
            return Vec::new();
        }
        let instance = child_pointer(instance, &child.step);
        self.explain(&demands, child.part, &instance, depth + 1)
    }

    /// What atoms demand of a child.
    fn child_demands(&mut self, set: &[Atom], step: &Step, siblings: &Siblings<'_>) -> Vec<Demand> {
        let mut demands = Vec::new();
        for atom in set.iter().filter(|atom| matches!(atom.kind, Kind::Children)) {
            let node = self.schema.node(atom.demand.node());
            match step {
                Step::Item(index) => {
                    let Some(rule) = &node.array else { continue };
                    let own = usize::try_from(*index).ok().and_then(|at| rule.prefix.get(at));
                    demands.extend(own.copied().or(rule.items).map(Demand::holds));
                }
                Step::Member(name) => {
                    let Some(rule) = &node.object else { continue };
                    let own = rule.properties.get(name.as_str()).copied();
                    let found = rule.patterns.iter().filter(|(names, _)| names.accepts(name));
                    let mut nodes: Vec<NodeId> =
                        own.into_iter().chain(found.map(|x| x.1)).collect();
                    if nodes.is_empty() {
                        nodes.extend(rule.additional);
                    }
                    demands.extend(nodes.into_iter().map(Demand::holds));
                }
            }
        }
        self.with_values(demands, siblings)
    }

    /// The atoms of some demands, those of the branches of choices included that read the text.
    fn open_atoms(&mut self, demands: &[Demand], part: Part<'_>) -> Vec<Atom> {
        let mut atoms = Vec::new();
        let mut open = vec![demands.to_vec()];
        let mut choices = 0;
        while let Some(demands) = open.pop() {
            for atom in self.atoms(&demands) {
                if let Kind::Choice(choice) = &atom.kind {
                    choices += 1;
                    for branch in choice.branches.iter().rev() {
                        if choices < MAX_DEPTH && self.fate(branch, part) == Fate::GoesOn {
                            open.push(branch.clone());
                        }
                    }
                }
                atoms.push(atom);
            }
        }
        atoms
    }

    /// Appends the keywords that apply where the text ends.
    fn live(
        &mut self,
        demands: &[Demand],
        text: &[u8],
        instance: &str,
        depth: usize,
        found: &mut Vec<LiveKeyword>,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        let part = Part { text, is_ended: false };
        let atoms = self.open_atoms(demands, part);
        let contents = Contents::of(part);
        if let Some(child) = contents.child.filter(|child| !child.is_closed) {
            let siblings = Siblings { instance, values: contents.values };
            let demands = self.child_demands(&atoms, &child.step, &siblings);
            let instance = child_pointer(instance, &child.step);
            self.live(&demands, child.part.text, &instance, depth + 1, found);
        }
        for atom in atoms {
            let keyword = LiveKeyword {
                instance: instance.to_owned(),
                location: atom.location,
                keyword: atom.keyword,
                expected: atom.expected,
            };
            if !found.contains(&keyword) {
                found.push(keyword);
            }
        }
    }
}

fn add_new(found: &mut Vec<Found>, more: Vec<Found>) {
    for one in more {
        if !found.contains(&one) {
            found.push(one);
        }
    }
}

fn is_weak(atom: &Atom, part: Part<'_>) -> bool {
    match &atom.kind {
        Kind::Type => true,
        Kind::Constant(types) => part.text.first().is_some_and(|&first| !types.has(type_of(first))),
        Kind::Negation => atom.keyword != "not",
        Kind::Value => atom.keyword == "false",
        Kind::Children | Kind::Choice(_) | Kind::Whole => false,
    }
}

fn child_pointer(instance: &str, step: &Step) -> String {
    match step {
        Step::Member(name) => join(instance, name),
        Step::Item(index) => format!("{instance}/{index}"),
    }
}

/// The type of the values whose text begins with a byte.
fn type_of(byte: u8) -> TypeSet {
    match byte {
        b'n' => TypeSet::NULL,
        b't' => TypeSet::TRUE,
        b'f' => TypeSet::FALSE,
        b'"' => TypeSet::STRING,
        b'[' => TypeSet::ARRAY,
        b'{' => TypeSet::OBJECT,
        _ => TypeSet::NUMBER,
    }
}
