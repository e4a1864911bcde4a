//! Shapes: the merged rules for one string, array or object.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::dfa::{Dfa, DfaError, DfaLimits, Lengths};
use crate::ir::{ArrayRule, DataRule, Demand, NodeId, ObjectRule};
use crate::text::escape_into;

use super::condition::Literal;
use super::formula::{FormulaId, LiteralId};
use super::member::NameRule;
use super::partial::{ArrayRules, ItemAtom, ItemCounter, ObjectRules, Selector, least};
use super::relation::Relations;
use super::rule::{ChildRule, RuleId, Wanted};
use super::{ArrayId, GoalId, GoalLimit, Goals, ObjectId};

/// A string: a language of decoded contents and a number of code points.
#[derive(Debug)]
pub(crate) struct StringShape {
    pub(crate) language: Dfa,
    pub(crate) min_length: u64,
    pub(crate) max_length: Option<u64>,
    /// Absent where the bounds say nothing.
    pub(crate) lengths: Option<Lengths>,
    /// Any content at all.
    pub(crate) is_free: bool,
}

// Lengths follow from the rest.
impl PartialEq for StringShape {
    fn eq(&self, other: &Self) -> bool {
        (self.min_length, self.max_length) == (other.min_length, other.max_length)
            && self.language == other.language
    }
}

impl Eq for StringShape {}

impl std::hash::Hash for StringShape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.min_length, self.max_length).hash(state);
        self.language.hash(state);
    }
}

impl StringShape {
    /// `None` if no string fits.
    pub(super) fn new(
        language: Dfa,
        min_length: u64,
        max_length: Option<u64>,
        limits: &DfaLimits,
    ) -> Result<Option<Self>, DfaError> {
        if language.is_empty() {
            return Ok(None);
        }
        let unbounded = min_length == 0 && max_length.is_none();
        let lengths =
            if unbounded { None } else { Some(Lengths::new(&language, max_length, limits)?) };
        let is_free = unbounded && language.is_universal();
        let shape = Self { language, min_length, max_length, lengths, is_free };
        let start = shape.language.start();
        Ok(shape.is_live(start, 0).then_some(shape))
    }

    /// Whether every number of code points between two that strings have is one that some string
    /// has; `false` if that is not known.
    pub(super) fn has_all_lengths(&self) -> bool {
        let start = self.language.start();
        match &self.lengths {
            Some(lengths) => lengths.interval(start).is_some(),
            None => Lengths::new(&self.language, None, &DfaLimits::default())
                .is_ok_and(|lengths| lengths.interval(start).is_some()),
        }
    }

    /// Whether there are infinitely many strings, or so many that no array can hold them.
    pub(super) fn is_endless(&self) -> bool {
        let many = self.max_length.is_none_or(|max| max >= 3);
        many && (self.language.is_universal()
            || self.max_length.is_none() && self.language.count_up_to(u64::MAX) == u64::MAX)
    }

    /// Whether a state of the language, reached with `count` code points, can still end well.
    pub(crate) fn is_live(&self, state: u32, count: u64) -> bool {
        if state == Dfa::DEAD {
            return false;
        }
        let Some(lengths) = &self.lengths else { return true };
        let most = match self.max_length {
            Some(max) if count > max => return false,
            Some(max) => Some(max - count),
            None => None,
        };
        lengths.reachable(state, self.min_length.saturating_sub(count), most)
    }

    /// Whether the content may end here.
    pub(crate) fn is_complete(&self, state: u32, count: u64) -> bool {
        self.language.is_accepting(state)
            && count >= self.min_length
            && self.max_length.is_none_or(|max| count <= max)
    }

    /// The count to carry on: above the minimum, and without a maximum, it no longer matters.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_length {
            Some(_) => count,
            None => count.min(self.min_length),
        }
    }

    /// The shortest text between the quotes that goes on from a state reached with `count` code
    /// points, or from the start: close to the fewest bytes, exact without length bounds.
    pub(crate) fn shortest_text(&self, from: Option<(u32, u64)>) -> Vec<u8> {
        self.shortest_text_start(from, usize::MAX)
    }

    /// As [`shortest_text`](Self::shortest_text), or its first bytes, at least so many.
    pub(crate) fn shortest_text_start(&self, from: Option<(u32, u64)>, enough: usize) -> Vec<u8> {
        let (mut state, mut count) = from.unwrap_or((self.language.start(), 0));
        let mut text = Vec::new();
        if self.lengths.is_none() {
            escape_into(&self.language.shortest(state), &mut text);
            return text;
        }
        let mut content = Vec::new();
        while !self.is_complete(state, count) && content.len() < enough {
            // Among the live successors the one closest to acceptance; the count bounds the loop.
            let step = self
                .language
                .transitions(state)
                .iter()
                .filter_map(|transition| {
                    let next = count + u64::from(transition.lo & 0xC0 != 0x80);
                    let byte = readable(transition.lo, transition.hi);
                    self.is_live(transition.target, next).then_some((
                        self.language.shortest_len(transition.target),
                        byte,
                        transition.target,
                        next,
                    ))
                })
                .min();
            let Some((_, byte, target, next)) = step else { break };
            content.push(byte);
            (state, count) = (target, next);
        }
        escape_into(&content, &mut text);
        text
    }
}

/// A byte of a range that needs no escape and is easy to read, if there is one.
fn readable(lo: u8, hi: u8) -> u8 {
    [b'a', b'0', b'A', b' ']
        .into_iter()
        .find(|&byte| lo <= byte && byte <= hi)
        .unwrap_or(if lo < b' ' { b' '.min(hi) } else { lo })
}

/// Counters that one array can have: more than any schema in use needs.
const MAX_COUNTERS: usize = 60;

/// Facts that the condition of one object can speak of.
const MAX_LITERALS: usize = 20_000;

/// An array: what each item must satisfy, a number of items, and counters of items of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ArrayShape {
    pub(crate) prefix: Box<[RuleId]>,
    pub(crate) items: RuleId,
    pub(crate) min_items: u64,
    pub(crate) max_items: Option<u64>,
    /// The least and the greatest count of each counter.
    pub(crate) counters: Box<[(u64, Option<u64>)]>,
    /// No two items are equal.
    pub(crate) is_unique: bool,
    /// Some two items are equal.
    pub(crate) repeats: bool,
}

impl ArrayShape {
    fn merge(goals: &mut Goals, rules: &ArrayRules, pointer: &str) -> Result<Self, GoalLimit> {
        let schema = Arc::clone(&goals.schema);
        let nodes: Vec<&ArrayRule> =
            rules.nodes.iter().filter_map(|&node| schema.node(node).array.as_deref()).collect();
        let mut counters: Vec<ItemCounter> = Vec::new();
        let mut is_unique = false;
        let repeats = rules.repeats && !goals.is_upper;
        if !goals.is_upper {
            counters.extend(rules.counters.iter().cloned());
            is_unique = nodes.iter().any(|rule| rule.unique);
            for contains in nodes.iter().filter_map(|rule| rule.contains) {
                let demand = Demand::holds(contains.node);
                let counter = ItemCounter {
                    atoms: vec![ItemAtom { from: 0, to: None, demand }],
                    min: contains.min,
                    max: contains.max,
                };
                if (counter.min, counter.max) != (0, None) && !counters.contains(&counter) {
                    counters.push(counter);
                }
            }
        }
        // What is left by `unevaluatedItems`: from a position on, what no `contains` has found.
        let mut rest: Vec<(u64, Demand)> = Vec::new();
        for scope in &rules.scopes {
            let evaluators: Vec<&ArrayRule> =
                scope.nodes.iter().filter_map(|&node| schema.node(node).array.as_deref()).collect();
            if scope.is_complete || evaluators.iter().any(|rule| rule.items.is_some()) {
                if scope.is_violated {
                    counters.push(ItemCounter { atoms: Vec::new(), min: 1, max: None });
                }
                continue;
            }
            let from = evaluators.iter().map(|rule| rule.prefix.len()).max().unwrap_or(0) as u64;
            let found = evaluators.iter().filter_map(|rule| rule.contains);
            let choice = goals.any_of(
                found.filter(|contains| contains.evaluates).map(|contains| contains.node),
                scope.rest,
            );
            if scope.is_violated {
                let atoms = vec![ItemAtom { from, to: None, demand: Demand::fails(choice) }];
                counters.push(ItemCounter { atoms, min: 1, max: None });
            } else {
                rest.push((from, Demand::holds(choice)));
            }
        }
        if counters.len() > MAX_COUNTERS {
            return Err(too_many("counters", MAX_COUNTERS, "counters of items", pointer));
        }
        let ends = counters.iter().flat_map(|counter| &counter.atoms);
        let prefix_len = nodes
            .iter()
            .map(|rule| rule.prefix.len() as u64)
            .chain(ends.map(|atom| atom.to.unwrap_or(atom.from)))
            .chain(rest.iter().map(|(from, _)| *from))
            .max()
            .unwrap_or(0);
        let mut rule = |at: u64| {
            let base = nodes
                .iter()
                .filter_map(|rule| {
                    let own = usize::try_from(at).ok().and_then(|at| rule.prefix.get(at)).copied();
                    own.or(rule.items).map(Demand::holds)
                })
                .chain(rest.iter().filter(|(from, _)| at >= *from).map(|(_, demand)| *demand));
            let wanted = counters.iter().enumerate().filter_map(|(index, counter)| {
                let inside = |atom: &&ItemAtom| at >= atom.from && atom.to.is_none_or(|to| at < to);
                let atom = counter.atoms.iter().find(inside)?;
                Some(Wanted {
                    bit: 1 << index,
                    demands: Box::new([atom.demand]),
                    is_all: false,
                    is_exact: counter.max.is_some(),
                })
            });
            goals.rule(ChildRule {
                base: base.collect(),
                wanted: wanted.collect(),
                literals: Box::default(),
                present: Box::default(),
            })
        };
        Ok(Self {
            prefix: (0..prefix_len).map(&mut rule).collect(),
            items: rule(prefix_len),
            min_items: nodes
                .iter()
                .map(|rule| rule.min_items)
                .fold(rules.min_items, std::cmp::Ord::max)
                .max(if repeats { 2 } else { 0 }),
            max_items: nodes.iter().map(|rule| rule.max_items).fold(rules.max_items, least),
            counters: counters.iter().map(|counter| (counter.min, counter.max)).collect(),
            is_unique,
            repeats,
        })
    }

    /// What the item at `index` must be.
    pub(crate) fn rule(&self, index: u64) -> RuleId {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index))
            .copied()
            .unwrap_or(self.items)
    }

    /// Whether the next item depends on those before it by more than their number.
    pub(crate) fn remembers(&self) -> bool {
        self.compares() || !self.counters.is_empty()
    }

    /// Whether it matters which items are equal.
    pub(crate) fn compares(&self) -> bool {
        self.is_unique || self.repeats
    }

    /// The count to carry on: where all further items are alike, it no longer matters.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_items {
            Some(_) => count,
            None => count.min(self.min_items.max(self.prefix.len() as u64)).max(count.min(1)),
        }
    }
}

fn too_many(name: &'static str, limit: usize, unit: &'static str, pointer: &str) -> GoalLimit {
    GoalLimit { name, limit: limit as u64, unit, pointer: pointer.to_owned() }
}

/// An object: what each declared member must satisfy, rules for all other names, a number of
/// members, and a condition on them together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectShape {
    /// Declared names in the order in which they are written, then required names that no schema
    /// declares, then names that only the condition knows.
    pub(crate) names: Box<[Box<str>]>,
    /// What the member of each name must be.
    pub(crate) members: Box<[RuleId]>,
    pub(crate) is_required: Box<[bool]>,
    /// For each index, and one past the last, the first required one that is not before it;
    /// `names.len()` if there is none.
    pub(crate) next_required: Box<[u32]>,
    /// Indices of `names` in byte order of the names.
    pub(crate) sorted: Box<[u32]>,
    /// What has something to say about other names.
    pub(super) rules: Box<[NameRule]>,
    /// What the members together must meet.
    pub(crate) condition: FormulaId,
    /// What the literals of the condition are about, by literal.
    pub(super) reaches: Box<[(LiteralId, Reach)]>,
    pub(crate) min_properties: u64,
    pub(crate) max_properties: Option<u64>,
    /// Members that are related to each other by `$data`.
    pub(crate) relations: Option<Arc<Relations>>,
}

/// The members that can decide a literal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Reach {
    /// Indices of declared names, ascending.
    pub(super) names: Box<[u32]>,
    /// Whether names that are not declared can as well.
    pub(super) others: bool,
}

impl Goals {
    /// The array of these rules; `None` if nothing can satisfy them.
    pub(super) fn array_alternative(
        &mut self,
        rules: &ArrayRules,
        goal: GoalId,
    ) -> Result<Option<ArrayId>, GoalLimit> {
        let pointer = self.pointer(goal);
        let shape = ArrayShape::merge(self, rules, &pointer)?;
        let is_empty = |(min, max): (u64, Option<u64>)| max.is_some_and(|max| max < min);
        if is_empty((shape.min_items, shape.max_items))
            || shape.is_unique && shape.repeats
            || shape.counters.iter().any(|&bounds| is_empty(bounds))
        {
            return Ok(None);
        }
        let (index, _) = self.arrays.insert_full(Arc::new(shape));
        Ok(Some(ArrayId(index as u32)))
    }

    /// The object of these rules; `None` if nothing can satisfy them.
    pub(super) fn object_alternative(
        &mut self,
        rules: &ObjectRules,
        goal: GoalId,
    ) -> Result<Option<ObjectId>, GoalLimit> {
        let pointer = self.pointer(goal);
        let shape = ObjectShape::merge(self, rules, &pointer)?;
        if shape.max_properties.is_some_and(|max| max < shape.min_properties)
            || shape.condition == FormulaId::LOST
        {
            return Ok(None);
        }
        let (index, new) = self.objects.insert_full(Arc::new(shape));
        if new {
            self.extra_names.push(None);
            self.member_costs.push(None);
        }
        Ok(Some(ObjectId(index as u32)))
    }

    /// A node that is satisfied by what satisfies one of `nodes` or `last`.
    fn any_of(&mut self, nodes: impl Iterator<Item = NodeId>, last: NodeId) -> NodeId {
        let mut branches: Vec<NodeId> = nodes.collect();
        if branches.is_empty() {
            return last;
        }
        branches.push(last);
        if let Some(&known) = self.choices.get(branches.as_slice()) {
            return known;
        }
        let schema = Arc::make_mut(&mut self.schema);
        let pointer = schema.node(last).pointer.clone();
        let mut node = crate::ir::Node::of_types(pointer, crate::ir::TypeSet::ALL);
        node.applicators.push(crate::ir::Applicator::Any(branches.clone()));
        schema.nodes.push(node);
        let id = NodeId(schema.nodes.len() as u32 - 1);
        self.choices.insert(branches.into(), id);
        id
    }
}

impl ObjectShape {
    fn merge(goals: &mut Goals, rules: &ObjectRules, pointer: &str) -> Result<Self, GoalLimit> {
        let schema = Arc::clone(&goals.schema);
        let nodes: Vec<&ObjectRule> =
            rules.nodes.iter().filter_map(|&node| schema.node(node).object.as_deref()).collect();
        let mut name_rules: Vec<NameRule> =
            rules.nodes.iter().map(|&n| NameRule::Node(n)).collect();
        for names in nodes.iter().filter_map(|rule| rule.names) {
            let language = goals.name_language(names)?;
            if !language.is_universal() {
                name_rules.push(NameRule::Names(language));
            }
        }
        let mut conditions: Vec<FormulaId> = Vec::new();
        if !goals.is_upper {
            conditions.extend(&rules.conditions);
        }
        for scope in &rules.scopes {
            let nodes: Box<[NodeId]> = scope.nodes.clone().into();
            match (scope.is_complete, scope.is_violated) {
                (true, false) => {}
                // Nothing is left that could violate it.
                (true, true) => conditions.push(FormulaId::LOST),
                (false, true) => {
                    let kind = (Selector::Unevaluated(nodes), Demand::fails(scope.rest));
                    conditions.push(goals.literal(Literal::Some(Box::new([kind]))));
                }
                (false, false) => {
                    let guarded = scope.guarded.iter().map(|(_, node)| *node);
                    let nodes = nodes.iter().copied().chain(guarded).collect();
                    name_rules.push(NameRule::Unevaluated(nodes, scope.rest));
                    if !goals.is_upper {
                        conditions.push(goals.unevaluated(scope, pointer)?);
                    }
                }
            }
        }
        let mut required: Vec<Box<str>> =
            nodes.iter().flat_map(|rule| rule.required.iter().cloned()).collect();
        let condition = goals.formulas.all(conditions);
        let condition = goals.settle_condition(condition, &mut required, &mut name_rules);
        let literals: Vec<LiteralId> = goals.formulas.literals(condition).to_vec();
        if literals.len() > MAX_LITERALS {
            return Err(too_many("conditions", MAX_LITERALS, "conditions on an object", pointer));
        }
        let mut declared: IndexMap<Box<str>, bool> = IndexMap::new();
        for name in nodes.iter().flat_map(|rule| rule.properties.keys()) {
            declared.entry(name.clone()).or_insert(false);
        }
        for name in required {
            declared.insert(name, true);
        }
        for rule in &name_rules {
            match rule {
                NameRule::Node(node) => {
                    let rule = schema.node(*node).object.as_deref();
                    for name in rule.into_iter().flat_map(|rule| rule.properties.keys()) {
                        declared.entry(name.clone()).or_insert(false);
                    }
                }
                NameRule::No(name) => {
                    declared.entry(name.clone()).or_insert(false);
                }
                NameRule::Names(_) | NameRule::Unevaluated(..) => {}
            }
        }
        for &literal in &literals {
            for name in goals.names_of_literal(literal) {
                declared.entry(name).or_insert(false);
            }
        }
        let wants = goals.wants(condition);
        let targets = goals.data_targets(&name_rules, &wants, declared.keys());
        for name in &targets {
            declared.entry(name.clone()).or_insert(false);
        }
        let members: Box<[RuleId]> =
            declared.keys().map(|name| goals.member_rule(&name_rules, &wants, &&**name)).collect();
        let mut reach_names: Vec<Vec<u32>> = vec![Vec::new(); literals.len()];
        for (index, rule) in members.iter().enumerate() {
            let rule = goals.child_rule(*rule);
            for literal in rule.literals.iter().chain(&rule.present) {
                if let Ok(at) = literals.binary_search(literal) {
                    reach_names[at].push(index as u32);
                }
            }
        }
        for (at, literal) in literals.iter().enumerate() {
            if let Literal::No(name) = &goals.literals[literal.0 as usize]
                && let Some(index) = declared.get_index_of(name)
            {
                reach_names[at].push(index as u32);
            }
        }
        let reaches: Box<[(LiteralId, Reach)]> = literals
            .iter()
            .zip(reach_names)
            .map(|(&literal, names)| {
                let others = goals.reaches_others(literal);
                (literal, Reach { names: names.into(), others })
            })
            .collect();
        let names: Box<[Box<str>]> = declared.keys().cloned().collect();
        let relations = if targets.is_empty() {
            None
        } else {
            let rules: Vec<(u32, Vec<DataRule>)> = members
                .iter()
                .enumerate()
                .map(|(index, &rule)| (index as u32, goals.data_rules(&goals.all_demands(rule))))
                .collect();
            let index_of = |name: &str| declared.get_index_of(name).map(|at| at as u32);
            Relations::new(&rules, index_of, pointer)?.map(Arc::new)
        };
        let mut sorted: Box<[u32]> = (0..names.len() as u32).collect();
        sorted.sort_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
        let is_required: Box<[bool]> = declared.values().copied().collect();
        let mut next_required = vec![names.len() as u32; names.len() + 1];
        for index in (0..names.len()).rev() {
            next_required[index] =
                if is_required[index] { index as u32 } else { next_required[index + 1] };
        }
        name_rules.retain(|rule| match rule {
            NameRule::Node(node) => schema
                .node(*node)
                .object
                .as_deref()
                .is_some_and(|rule| rule.additional.is_some() || !rule.patterns.is_empty()),
            _ => true,
        });
        Ok(Self {
            members,
            is_required,
            next_required: next_required.into(),
            sorted,
            names,
            rules: name_rules.into(),
            condition,
            reaches,
            min_properties: nodes
                .iter()
                .map(|rule| rule.min_properties)
                .fold(rules.min_properties, std::cmp::Ord::max),
            max_properties: nodes
                .iter()
                .map(|rule| rule.max_properties)
                .fold(rules.max_properties, least),
            relations,
        })
    }

    /// Whether a declared member is related to others by `$data`.
    pub(crate) fn is_end(&self, member: u32) -> bool {
        self.relations.as_ref().is_some_and(|relations| relations.end_of(member).is_some())
    }

    /// The members that can decide a literal of the condition.
    pub(super) fn reach(&self, literal: LiteralId) -> Option<&Reach> {
        let at = self.reaches.binary_search_by_key(&literal, |(literal, _)| *literal).ok()?;
        Some(&self.reaches[at].1)
    }

    /// The count to carry on: beyond what the bounds ask about, it no longer matters. Zero and one
    /// differ always, since the first member has no comma before it.
    pub(crate) fn saturate(&self, count: u64) -> u64 {
        match self.max_properties {
            Some(_) => count,
            None => count.min(self.min_properties.max(1)),
        }
    }

    /// Whether choosing one more member can go wrong: the number of members is bounded, or there
    /// is a condition or a relation.
    pub(crate) fn is_bounded(&self) -> bool {
        self.min_properties > 0
            || self.max_properties.is_some()
            || self.condition != FormulaId::MET
            || self.relations.is_some()
    }
}
