//! Conditions on a value as formulas over its members, in place of one alternative for each way to
//! meet them.
//!
//! Most schemas offer few choices, and multiplying them out gives objects of which each is simple.
//! Where there are many, the choices of an object are kept as a formula instead (see
//! [`formula`](super::formula)). Only what can be said about the members one by one has a formula;
//! bounds on their number and `unevaluated…` have none, and such choices are multiplied out always.

use std::sync::Arc;

use crate::dfa::Dfa;
use crate::ir::{ALWAYS, Applicator, Demand, Node, NodeId, TypeSet};

use super::formula::{FormulaId, LiteralId};
use super::names::ClassView;
use super::partial::{Evaluation, Selector};
use super::{GoalLimit, Goals};

/// A fact about the members of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Literal {
    /// Some member with a name of one of these kinds meets its demand.
    Some(Box<[(Selector, Demand)]>),
    /// Every member with a name of this kind meets the demand.
    Every(Selector, Demand),
    /// Every member is as `properties`, `patternProperties` and `additionalProperties` of a node
    /// say.
    EveryOf(NodeId),
    /// There is no member of this name.
    No(Box<str>),
}

/// A formula, if there is one.
pub(super) type Condition = Option<FormulaId>;

/// Nesting of choices beyond which no formula is looked for.
const MAX_DEPTH: usize = 48;

/// Formulas made for one schema beyond which choices are multiplied out.
const MAX_FORMULAS: usize = 100_000;

/// Nodes that evaluate members under conditions, for one choice.
const MAX_EVALUATORS: usize = 1_000;

/// Branches of `oneOf` beyond which no formula is looked for: it is quadratic in them.
const MAX_EXCLUSIVE: usize = 64;

impl Goals {
    pub(super) fn literal(&mut self, literal: Literal) -> FormulaId {
        let (index, _) = self.literals.insert_full(literal);
        self.formulas.literal(LiteralId(index as u32))
    }

    /// That the object has a member of this name.
    pub(super) fn has_member(&mut self, name: &str) -> FormulaId {
        let kind = (Selector::Name(name.into()), Demand::holds(ALWAYS));
        self.literal(Literal::Some(Box::new([kind])))
    }

    /// The condition for a value of one type to meet a demand.
    ///
    /// For scalars and arrays it is known only where it is met or lost by the type alone.
    pub(super) fn condition(
        &mut self,
        demand: Demand,
        kind: TypeSet,
    ) -> Result<Condition, GoalLimit> {
        let key = (demand, kind);
        if let Some(&known) = self.conditions.get(&key) {
            return Ok(known);
        }
        if self.open_conditions.len() > MAX_DEPTH
            || self.open_conditions.contains(&demand)
            || self.conditions.len() > MAX_FORMULAS
        {
            return Ok(None);
        }
        self.open_conditions.push(demand);
        let schema = Arc::clone(&self.schema);
        let node = schema.node(demand.node());
        let found = if demand.is_negated() {
            self.failing(demand.node(), node, kind)
        } else {
            self.holding(demand.node(), node, kind)
        };
        self.open_conditions.pop();
        let found = found?;
        self.conditions.insert(key, found);
        Ok(found)
    }

    fn holding(&mut self, id: NodeId, node: &Node, kind: TypeSet) -> Result<Condition, GoalLimit> {
        if !node.types.has(kind) {
            return Ok(Some(FormulaId::LOST));
        }
        let mut parts = vec![own_rules_matter(node, kind)];
        if let Some(rule) = node.object.as_deref().filter(|_| kind == TypeSet::OBJECT) {
            if rule.min_properties > 0 || rule.max_properties.is_some() {
                parts.push(None);
            }
            let says = |node: NodeId| !self.schema.node(node).is_true();
            if rule.properties.values().any(|&node| says(node))
                || rule.patterns.iter().any(|&(_, node)| says(node))
                || rule.additional.is_some_and(says)
            {
                parts.push(Some(self.literal(Literal::EveryOf(id))));
            }
            if let Some(names) = rule.names {
                let language = self.name_language(names)?;
                if !language.is_universal() {
                    let outside = Selector::Outside(language);
                    parts.push(Some(self.literal(Literal::Every(outside, Demand::fails(ALWAYS)))));
                }
            }
            for name in &rule.required {
                parts.push(Some(self.has_member(name)));
            }
        }
        for applicator in &node.applicators {
            parts.push(self.applied(applicator, kind)?);
        }
        Ok(self.all_of(parts))
    }

    fn failing(&mut self, id: NodeId, node: &Node, kind: TypeSet) -> Result<Condition, GoalLimit> {
        if !node.types.has(kind) {
            return Ok(Some(FormulaId::MET));
        }
        let mut parts = Vec::new();
        // What the rules for this type may be violated by is not known.
        if own_rules_matter(node, kind).is_none() {
            parts.push(None);
        }
        if let Some(rule) = node.object.as_deref().filter(|_| kind == TypeSet::OBJECT) {
            if rule.min_properties > 0 || rule.max_properties.is_some() {
                parts.push(None);
            }
            parts.push(Some(self.members_fail(id, rule)?));
        }
        for applicator in &node.applicators {
            parts.push(self.not_applied(applicator, kind)?);
        }
        Ok(self.any_one(parts))
    }

    /// The condition for what an applicator demands.
    pub(super) fn applied(
        &mut self,
        applicator: &Applicator,
        kind: TypeSet,
    ) -> Result<Condition, GoalLimit> {
        match applicator {
            Applicator::All(demand) => self.condition(*demand, kind),
            Applicator::Any(branches) | Applicator::Constants(branches) => {
                let parts = self.each(branches.iter().map(|&node| Demand::holds(node)), kind)?;
                Ok(self.any_one(parts))
            }
            Applicator::One(branches) => {
                let holds = self.each(branches.iter().map(|&node| Demand::holds(node)), kind)?;
                let any = self.any_one(holds);
                if self.is_upper || self.have_discriminator(branches) {
                    return Ok(any);
                }
                if branches.len() > MAX_EXCLUSIVE {
                    return Ok(any.filter(|&any| any == FormulaId::LOST));
                }
                let mut parts = vec![any];
                for (at, &one) in branches.iter().enumerate() {
                    for &two in &branches[at + 1..] {
                        if self.is_impossible([Demand::holds(one), Demand::holds(two)]) {
                            continue;
                        }
                        let fails = self.each([Demand::fails(one), Demand::fails(two)], kind)?;
                        parts.push(self.any_one(fails));
                    }
                }
                Ok(self.all_of(parts))
            }
            Applicator::Cases(cases) => match &**cases {
                // Said as two implications, each of which is met where it demands nothing.
                [one, two] if one.first().is_some_and(|&guard| two.first() == Some(&!guard)) => {
                    let mut parts = Vec::new();
                    for case in [one, two] {
                        let fails = self.condition(!case[0], kind)?;
                        let rest = self.each(case[1..].iter().copied(), kind)?;
                        let rest = self.all_of(rest);
                        parts.push(self.any_one(vec![fails, rest]));
                    }
                    Ok(self.all_of(parts))
                }
                _ => {
                    let mut parts = Vec::new();
                    for case in cases {
                        let demands = self.each(case.iter().copied(), kind)?;
                        parts.push(self.all_of(demands));
                    }
                    Ok(self.any_one(parts))
                }
            },
        }
    }

    fn not_applied(
        &mut self,
        applicator: &Applicator,
        kind: TypeSet,
    ) -> Result<Condition, GoalLimit> {
        match applicator {
            Applicator::All(demand) => self.condition(!*demand, kind),
            Applicator::Any(branches) | Applicator::Constants(branches) => {
                let parts = self.each(branches.iter().map(|&node| Demand::fails(node)), kind)?;
                Ok(self.all_of(parts))
            }
            Applicator::One(branches) => {
                if branches.len() > MAX_EXCLUSIVE {
                    return Ok(None);
                }
                let fails = self.each(branches.iter().map(|&node| Demand::fails(node)), kind)?;
                let mut parts = vec![self.all_of(fails)];
                for (at, &one) in branches.iter().enumerate() {
                    for &two in &branches[at + 1..] {
                        let holds = self.each([Demand::holds(one), Demand::holds(two)], kind)?;
                        parts.push(self.all_of(holds));
                    }
                }
                Ok(self.any_one(parts))
            }
            Applicator::Cases(cases) => {
                let mut parts = Vec::new();
                for case in cases {
                    parts.push(self.one_fails(case, kind)?);
                }
                Ok(self.all_of(parts))
            }
        }
    }

    /// The condition for one of some demands not to be met.
    pub(super) fn one_fails(
        &mut self,
        demands: &[Demand],
        kind: TypeSet,
    ) -> Result<Condition, GoalLimit> {
        let fails = self.each(demands.iter().map(|&demand| !demand), kind)?;
        Ok(self.any_one(fails))
    }

    /// The nodes whose rules evaluate members through an applicator, each with the condition under
    /// which it does; `false` if that cannot be said.
    pub(super) fn evaluators(
        &mut self,
        applicator: &Applicator,
        around: FormulaId,
        found: &mut Vec<(FormulaId, NodeId)>,
    ) -> Result<bool, GoalLimit> {
        let cases: Vec<Vec<Demand>> = match applicator {
            Applicator::All(demand) => vec![vec![*demand]],
            Applicator::Any(branches) | Applicator::One(branches) => {
                branches.iter().map(|&node| vec![Demand::holds(node)]).collect()
            }
            Applicator::Constants(_) => Vec::new(),
            Applicator::Cases(cases) => cases.iter().map(|case| case.to_vec()).collect(),
        };
        for case in cases {
            let parts = self.each(case.iter().copied(), TypeSet::OBJECT)?;
            let Some(guard) = self.all_of(parts) else { return Ok(false) };
            let guard = self.formulas.all([around, guard]);
            if guard == FormulaId::LOST {
                continue;
            }
            for demand in case.into_iter().filter(|demand| !demand.is_negated()) {
                let schema = Arc::clone(&self.schema);
                let node = schema.node(demand.node());
                if node.object.is_some() {
                    found.push((guard, demand.node()));
                }
                if found.len() > MAX_EVALUATORS {
                    return Ok(false);
                }
                // That this ends is what the condition of the demand has shown.
                for applicator in &node.applicators {
                    if !self.evaluators(applicator, guard, found)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// What members must meet of which it depends on conditions whether they are evaluated.
    pub(super) fn unevaluated(
        &mut self,
        scope: &Evaluation,
        pointer: &str,
    ) -> Result<FormulaId, GoalLimit> {
        let patterns: Vec<(Arc<Dfa>, Option<NodeId>)> = {
            let mut patterns: Vec<(Arc<Dfa>, Option<NodeId>)> = Vec::new();
            for &(_, node) in &scope.guarded {
                let rule = self.schema.node(node).object.as_deref();
                for (language, _) in rule.into_iter().flat_map(|rule| &rule.patterns) {
                    if !patterns.iter().any(|(known, _)| Arc::ptr_eq(known, language)) {
                        patterns.push((Arc::clone(language), Some(node)));
                    }
                }
            }
            patterns
        };
        let schema = Arc::clone(&self.schema);
        let of_node = |node: NodeId| schema.node(node).object.as_deref();
        let mut names: Vec<&str> = scope
            .guarded
            .iter()
            .filter_map(|&(_, node)| of_node(node))
            .flat_map(|rule| rule.properties.keys().map(|name| &**name))
            .collect();
        names.sort_unstable();
        names.dedup();
        // Names are alike where the same nodes evaluate them.
        let mut kinds: Vec<Vec<bool>> = Vec::new();
        let mut push = |kind: Vec<bool>| {
            if kind.contains(&true) && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        };
        for name in names {
            push(scope.guarded.iter().map(|&(_, node)| self.evaluates(node, &name)).collect());
        }
        for (_, matched) in self.split_names(&patterns, pointer)? {
            let view = ClassView { patterns: &patterns, matched: &matched };
            push(scope.guarded.iter().map(|&(_, node)| self.evaluates(node, &view)).collect());
        }
        let mut parts = Vec::new();
        for kind in kinds {
            let others = scope.guarded.iter().zip(&kind).filter(|(_, evaluates)| !**evaluates);
            let mut nodes = scope.nodes.clone();
            nodes.extend(others.map(|((_, node), _)| *node));
            let selector = Selector::Unevaluated(nodes.into());
            let rest = self.literal(Literal::Every(selector, Demand::holds(scope.rest)));
            let guards = scope.guarded.iter().zip(&kind).filter(|(_, evaluates)| **evaluates);
            let guards: Vec<FormulaId> = guards.map(|((guard, _), _)| *guard).collect();
            parts.push(self.formulas.any(guards.into_iter().chain([rest])));
        }
        Ok(self.formulas.all(parts))
    }

    /// Whether a condition asks only which members there are.
    pub(super) fn is_about_presence(&self, condition: FormulaId) -> bool {
        self.formulas.literals(condition).iter().all(|literal| {
            match &self.literals[literal.0 as usize] {
                Literal::No(_) => true,
                Literal::Some(kinds) => kinds.iter().all(|(selector, demand)| {
                    matches!(selector, Selector::Name(_)) && *demand == Demand::holds(ALWAYS)
                }),
                Literal::Every(..) | Literal::EveryOf(_) => false,
            }
        })
    }

    fn each(
        &mut self,
        demands: impl IntoIterator<Item = Demand>,
        kind: TypeSet,
    ) -> Result<Vec<Condition>, GoalLimit> {
        demands.into_iter().map(|demand| self.condition(demand, kind)).collect()
    }

    /// A conjunction of which parts are not known: lost where one part is.
    fn all_of(&mut self, parts: Vec<Condition>) -> Condition {
        if parts.contains(&Some(FormulaId::LOST)) {
            return Some(FormulaId::LOST);
        }
        let parts: Option<Vec<FormulaId>> = parts.into_iter().collect();
        parts.map(|parts| self.formulas.all(parts))
    }

    /// A disjunction of which parts are not known: met where one part is.
    fn any_one(&mut self, parts: Vec<Condition>) -> Condition {
        if parts.contains(&Some(FormulaId::MET)) {
            return Some(FormulaId::MET);
        }
        let parts: Option<Vec<FormulaId>> = parts.into_iter().collect();
        parts.map(|parts| self.formulas.any(parts))
    }
}

/// Whether a node has rules of its own for a type that no formula says: then `None`.
fn own_rules_matter(node: &Node, kind: TypeSet) -> Condition {
    // Rules of `$data` are decided by whoever asks for the value.
    let matters = !node.data.is_empty()
        || kind == TypeSet::NUMBER && node.number.is_some()
        || kind == TypeSet::STRING && node.string.is_some()
        || kind == TypeSet::ARRAY && (node.array.is_some() || node.unevaluated_items.is_some())
        || kind == TypeSet::OBJECT && node.unevaluated_properties.is_some();
    (!matters).then_some(FormulaId::MET)
}
