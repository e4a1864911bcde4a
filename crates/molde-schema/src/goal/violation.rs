//! The ways in which a value can fail a node.

use std::sync::Arc;

use crate::dfa::Dfa;
use crate::ir::{Applicator, ArrayRule, Demand, Node, NodeId, ObjectRule, TypeSet};
use crate::number::NumberSpec;

use super::condition::Literal;
use super::formula::FormulaId;
use super::partial::{ItemAtom, ItemCounter, Selector};
use super::{GoalLimit, Goals};
use crate::ir::ALWAYS;

/// One branch of a choice: what is added to a partial.
#[derive(Debug, Clone)]
pub(super) enum Fork {
    Demands(Vec<Demand>),
    Types(TypeSet),
    Number(NumberSpec),
    Length(u64, Option<u64>),
    Language(Arc<Dfa>),
    NotWords(Arc<[Box<str>]>),
    ItemCount(u64, Option<u64>),
    Items(ItemCounter),
    Repeats,
    MemberCount(u64, Option<u64>),
    Members(FormulaId),
    /// The node holds but for its `unevaluatedItems`.
    UnevaluatedItem(NodeId),
    /// The node holds but for its `unevaluatedProperties`.
    UnevaluatedMember(NodeId),
    /// For each of these lists, one of its demands is not met.
    NoCase(Vec<Box<[Demand]>>),
}

/// Branches of a negated `oneOf`: it is met by any two of them.
const MAX_PAIRED: usize = 1_000;

impl Goals {
    /// Every way in which a value of one of `types` can fail a node.
    pub(super) fn violations(
        &mut self,
        id: NodeId,
        types: TypeSet,
    ) -> Result<Vec<Fork>, GoalLimit> {
        let schema = Arc::clone(&self.schema);
        let node = schema.node(id);
        let mut forks = Vec::new();
        let others = types.without(node.types);
        if others != TypeSet::NONE {
            forks.push(Fork::Types(others));
        }
        let types = types.intersect(node.types);
        if types.has(TypeSet::NUMBER)
            && let Some(spec) = &node.number
        {
            forks.extend(negations(spec).into_iter().map(Fork::Number));
        }
        if types.has(TypeSet::STRING) {
            self.string_violations(node, &mut forks)?;
        }
        if types.has(TypeSet::ARRAY)
            && let Some(rule) = &node.array
        {
            array_violations(rule, self.is_upper, &mut forks);
        }
        if types.has(TypeSet::OBJECT)
            && let Some(rule) = &node.object
        {
            self.object_violations(id, rule, &mut forks)?;
        }
        if types.has(TypeSet::ARRAY) && node.unevaluated_items.is_some() {
            forks.push(if self.is_upper {
                Fork::Types(TypeSet::ARRAY)
            } else {
                Fork::UnevaluatedItem(id)
            });
        }
        if types.has(TypeSet::OBJECT) && node.unevaluated_properties.is_some() {
            forks.push(if self.is_upper {
                Fork::Types(TypeSet::OBJECT)
            } else {
                Fork::UnevaluatedMember(id)
            });
        }
        for rule in &node.data {
            // Rules are decided before their node is asked for, but for upper bounds.
            let types = types.intersect(rule.keyword.measured());
            if types != TypeSet::NONE {
                forks.push(Fork::Types(types));
            }
        }
        for applicator in &node.applicators {
            if let Applicator::One(branches) = applicator
                && branches.len() > MAX_PAIRED
                && !self.have_discriminator(branches)
            {
                return Err(GoalLimit {
                    name: "exclusive_branches",
                    limit: MAX_PAIRED as u64,
                    unit: "branches of a negated `oneOf`",
                    pointer: node.pointer.clone(),
                });
            }
            self.applicator_violations(applicator, &mut forks);
        }
        Ok(forks)
    }

    fn string_violations(&mut self, node: &Node, forks: &mut Vec<Fork>) -> Result<(), GoalLimit> {
        let Some(rule) = &node.string else { return Ok(()) };
        if rule.min_length > 0 {
            forks.push(Fork::Length(0, Some(rule.min_length - 1)));
        }
        if let Some(more) = rule.max_length.and_then(|max| max.checked_add(1)) {
            forks.push(Fork::Length(more, None));
        }
        forks.extend(rule.words.clone().map(Fork::NotWords));
        for language in &rule.outer_languages {
            let complement = self
                .complement(language)
                .map_err(|error| GoalLimit::from_dfa(&error, node.pointer.clone()))?;
            forks.push(Fork::Language(complement));
        }
        Ok(())
    }

    fn object_violations(
        &mut self,
        id: NodeId,
        rule: &ObjectRule,
        forks: &mut Vec<Fork>,
    ) -> Result<(), GoalLimit> {
        if rule.min_properties > 0 {
            forks.push(Fork::MemberCount(0, Some(rule.min_properties - 1)));
        }
        if let Some(more) = rule.max_properties.and_then(|max| max.checked_add(1)) {
            forks.push(Fork::MemberCount(more, None));
        }
        let fails = self.members_fail(id, rule)?;
        if fails != FormulaId::LOST {
            forks.push(if self.is_upper {
                Fork::Types(TypeSet::OBJECT)
            } else {
                Fork::Members(fails)
            });
        }
        Ok(())
    }

    /// That some member is not as a node's own rules say, or a required one is missing.
    pub(super) fn members_fail(
        &mut self,
        id: NodeId,
        rule: &ObjectRule,
    ) -> Result<FormulaId, GoalLimit> {
        let mut kinds: Vec<(Selector, Demand)> = Vec::new();
        let fails = |node: NodeId| {
            (!self.schema.node(node).is_true()).then(|| {
                // What nothing satisfies fails by being there.
                if self.schema.node(node).is_false() {
                    Demand::holds(ALWAYS)
                } else {
                    Demand::fails(node)
                }
            })
        };
        for (name, &node) in &rule.properties {
            kinds.extend(fails(node).map(|demand| (Selector::Name(name.clone()), demand)));
        }
        for (language, node) in &rule.patterns {
            let selector = Selector::Pattern(Arc::clone(language));
            kinds.extend(fails(*node).map(|demand| (selector, demand)));
        }
        if let Some(node) = rule.additional {
            kinds.extend(fails(node).map(|demand| (Selector::Rest(id), demand)));
        }
        if let Some(names) = rule.names {
            // A name fails outside of whatever may satisfy the node.
            let language = if self.is_upper {
                self.name_language(names)?
            } else {
                self.upper().name_language(names)?
            };
            if !language.is_universal() {
                kinds.push((Selector::Outside(language), Demand::holds(ALWAYS)));
            }
        }
        let mut ways = Vec::new();
        if !kinds.is_empty() {
            ways.push(self.literal(Literal::Some(kinds.into())));
        }
        for name in &rule.required {
            ways.push(self.literal(Literal::No(name.clone())));
        }
        Ok(self.formulas.any(ways))
    }

    fn applicator_violations(&self, applicator: &Applicator, forks: &mut Vec<Fork>) {
        match applicator {
            Applicator::All(demand) => forks.push(Fork::Demands(vec![!*demand])),
            Applicator::Any(branches) | Applicator::Constants(branches) => {
                forks.push(Fork::Demands(
                    branches.iter().map(|&node| Demand::fails(node)).collect(),
                ));
            }
            Applicator::One(branches) => {
                forks.push(Fork::Demands(
                    branches.iter().map(|&node| Demand::fails(node)).collect(),
                ));
                if self.have_discriminator(branches) {
                    return;
                }
                for (index, &one) in branches.iter().enumerate() {
                    for &two in &branches[index + 1..] {
                        forks.push(Fork::Demands(vec![Demand::holds(one), Demand::holds(two)]));
                    }
                }
            }
            Applicator::Cases(cases) => forks.push(Fork::NoCase(cases.clone())),
        }
    }

    fn complement(&mut self, language: &Arc<Dfa>) -> Result<Arc<Dfa>, crate::dfa::DfaError> {
        let address = Arc::as_ptr(language) as usize;
        if let Some((_, known)) = self.complements.get(&address) {
            return Ok(Arc::clone(known));
        }
        let complement = Arc::new(language.complement(&self.dfa_limits)?);
        self.complements.insert(address, (Arc::clone(language), Arc::clone(&complement)));
        Ok(complement)
    }
}

fn array_violations(rule: &ArrayRule, is_upper: bool, forks: &mut Vec<Fork>) {
    if rule.min_items > 0 {
        forks.push(Fork::ItemCount(0, Some(rule.min_items - 1)));
    }
    if let Some(more) = rule.max_items.and_then(|max| max.checked_add(1)) {
        forks.push(Fork::ItemCount(more, None));
    }
    let before = forks.len();
    let mut atoms: Vec<ItemAtom> = rule
        .prefix
        .iter()
        .enumerate()
        .map(|(at, &node)| ItemAtom {
            from: at as u64,
            to: Some(at as u64 + 1),
            demand: Demand::fails(node),
        })
        .collect();
    let from = rule.prefix.len() as u64;
    atoms.extend(rule.items.map(|node| ItemAtom { from, to: None, demand: Demand::fails(node) }));
    if !atoms.is_empty() {
        forks.push(Fork::Items(ItemCounter { atoms, min: 1, max: None }));
    }
    if let Some(contains) = rule.contains {
        let demand = Demand::holds(contains.node);
        let atoms = vec![ItemAtom { from: 0, to: None, demand }];
        if contains.min > 0 {
            let max = Some(contains.min - 1);
            forks.push(Fork::Items(ItemCounter { atoms: atoms.clone(), min: 0, max }));
        }
        if let Some(min) = contains.max.and_then(|max| max.checked_add(1)) {
            forks.push(Fork::Items(ItemCounter { atoms, min, max: None }));
        }
    }
    if rule.unique {
        forks.push(Fork::Repeats);
    }
    if is_upper && forks.len() > before {
        forks.truncate(before);
        forks.push(Fork::Types(TypeSet::ARRAY));
    }
}

/// The specs of which a number that is outside of `spec` satisfies one.
fn negations(spec: &NumberSpec) -> Vec<NumberSpec> {
    let mut negations = Vec::new();
    let mut push = |change: &dyn Fn(&mut NumberSpec)| {
        let mut negation = NumberSpec::default();
        change(&mut negation);
        negations.push(negation);
    };
    if spec.integer_only {
        push(&|n| n.not_integer = true);
    }
    if spec.not_integer {
        push(&|n| n.integer_only = true);
    }
    if spec.draft4_integer {
        push(&|n| n.not_draft4_integer = true);
    }
    if spec.not_draft4_integer {
        push(&|n| n.draft4_integer = true);
    }
    if let Some(bound) = &spec.minimum {
        let mut bound = bound.clone();
        bound.exclusive = !bound.exclusive;
        push(&|n| n.maximum = Some(bound.clone()));
    }
    if let Some(bound) = &spec.maximum {
        let mut bound = bound.clone();
        bound.exclusive = !bound.exclusive;
        push(&|n| n.minimum = Some(bound.clone()));
    }
    for divisor in &spec.multiple_of {
        push(&|n| n.not_multiple_of.push(divisor.clone()));
    }
    for divisor in &spec.not_multiple_of {
        push(&|n| n.multiple_of.push(divisor.clone()));
    }
    if !spec.excluded.is_empty() {
        push(&|n| n.one_of = Some(spec.excluded.clone()));
    }
    if let Some(values) = &spec.one_of {
        push(&|n| n.excluded.clone_from(values));
    }
    negations
}
