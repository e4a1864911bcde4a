//! What one member of an object must be, and which facts about the members it can decide.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::dfa::Dfa;
use crate::ir::{ALWAYS, Demand, NodeId, ObjectRule};

use super::Goals;
use super::condition::Literal;
use super::formula::{Formula, FormulaId, LiteralId};
use super::partial::Selector;
use super::rule::{ChildRule, Counts, RuleId, Wanted};

/// What the literals of a condition ask of members.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// Of the member of a name.
    named: FxHashMap<Box<str>, Vec<(LiteralId, Demand)>>,
    /// Of members of a kind.
    kinds: Vec<(LiteralId, Selector, Demand)>,
    /// Of all members that a node's rules speak of.
    nodes: Vec<(LiteralId, NodeId)>,
}

/// A rule for members by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum NameRule {
    /// `properties`, `patternProperties` and `additionalProperties` of a node.
    Node(NodeId),
    /// The names that are allowed at all.
    Names(Arc<Dfa>),
    /// What members that none of the nodes evaluates must satisfy.
    Unevaluated(Box<[NodeId]>, NodeId),
    /// That there is no member of a name.
    No(Box<str>),
}

/// One name, or many names that all rules treat alike.
pub(super) trait NameView {
    /// The name, if it is one that is declared.
    fn declared(&self) -> Option<&str>;
    /// Whether it is in a language.
    fn matches(&self, language: &Arc<Dfa>) -> bool;
}

impl NameView for &str {
    fn declared(&self) -> Option<&str> {
        Some(self)
    }

    fn matches(&self, language: &Arc<Dfa>) -> bool {
        language.accepts(self)
    }
}

impl Goals {
    /// What a member must satisfy whatever it counts for.
    fn member_demands(&self, rules: &[NameRule], name: &impl NameView) -> Vec<Demand> {
        let mut demands = Vec::new();
        for rule in rules {
            match rule {
                NameRule::Node(node) => {
                    if let Some(rule) = self.schema.node(*node).object.as_deref() {
                        demands.extend(applicable(rule, name).into_iter().map(Demand::holds));
                    }
                }
                NameRule::Names(language) => {
                    if !name.matches(language) {
                        demands.push(Demand::fails(ALWAYS));
                    }
                }
                NameRule::Unevaluated(nodes, rest) => {
                    if !nodes.iter().any(|&node| self.evaluates(node, name)) {
                        demands.push(Demand::holds(*rest));
                    }
                }
                NameRule::No(own) => {
                    if name.declared() == Some(own) {
                        demands.push(Demand::fails(ALWAYS));
                    }
                }
            }
        }
        demands
    }

    /// What a member must be, and which of some literals it can decide.
    pub(super) fn member_rule(
        &mut self,
        rules: &[NameRule],
        wants: &Wants,
        name: &impl NameView,
    ) -> RuleId {
        let base: Box<[Demand]> = self.member_demands(rules, name).into();
        let found = self.wanted_of(wants, name);
        let mut by_literal: IndexMap<LiteralId, Vec<Demand>> = IndexMap::new();
        for (literal, demand) in found {
            let demands = by_literal.entry(literal).or_default();
            if !demands.contains(&demand) {
                demands.push(demand);
            }
        }
        by_literal.sort_unstable_keys();
        let mut rule = (Vec::new(), Vec::new(), Vec::new());
        let (wanted, literals, present) = (&mut rule.0, &mut rule.1, &mut rule.2);
        for (literal, mut demands) in by_literal {
            let is_all = !matches!(self.literals[literal.0 as usize], Literal::Some(_));
            let is_trivial = |goals: &Self, demand: &Demand| goals.holds_always(*demand);
            if is_all {
                demands.retain(|demand| !is_trivial(self, demand));
                if demands.is_empty() {
                    continue;
                }
            } else if demands.iter().any(|demand| is_trivial(self, demand)) {
                present.push(literal);
                continue;
            }
            // Beyond the last bit the rule has no options: see `Goals::options`.
            let bit = Counts::from(1u8).checked_shl(literals.len() as u32).unwrap_or(0);
            literals.push(literal);
            wanted.push(Wanted { bit, demands: demands.into(), is_all, is_exact: false });
        }
        let (wanted, literals, present) = rule;
        self.rule(ChildRule {
            base,
            wanted: wanted.into(),
            literals: literals.into(),
            present: present.into(),
        })
    }

    /// The names that `$data` rules of members with declared names are about, each once.
    pub(super) fn data_targets<'n>(
        &self,
        rules: &[NameRule],
        wants: &Wants,
        names: impl Iterator<Item = &'n Box<str>>,
    ) -> Vec<Box<str>> {
        let mut targets: Vec<Box<str>> = Vec::new();
        if !self.schema.has_data || self.is_upper {
            return targets;
        }
        for name in names {
            let mut demands = self.member_demands(rules, &&**name);
            demands.extend(self.wanted_of(wants, &&**name).into_iter().map(|(_, demand)| demand));
            for rule in self.data_rules(&demands) {
                if !targets.contains(&rule.target) {
                    targets.push(rule.target);
                }
            }
        }
        targets
    }

    /// The demands by which a member can decide literals.
    fn wanted_of(&self, wants: &Wants, name: &impl NameView) -> Vec<(LiteralId, Demand)> {
        let mut found: Vec<(LiteralId, Demand)> = Vec::new();
        if let Some(own) = name.declared().and_then(|name| wants.named.get(name)) {
            found.extend(own);
        }
        for (literal, selector, demand) in &wants.kinds {
            if self.selects(selector, name) {
                found.push((*literal, *demand));
            }
        }
        for &(literal, node) in &wants.nodes {
            if let Some(rule) = self.schema.node(node).object.as_deref() {
                let demands = applicable(rule, name).into_iter().map(Demand::holds);
                found.extend(demands.map(|demand| (literal, demand)));
            }
        }
        found
    }

    /// What some literals ask of members.
    pub(super) fn wants(&self, condition: FormulaId) -> Wants {
        let mut wants = Wants::default();
        for &literal in self.formulas.literals(condition) {
            let kinds = match &self.literals[literal.0 as usize] {
                Literal::No(_) => continue,
                Literal::EveryOf(node) => {
                    wants.nodes.push((literal, *node));
                    continue;
                }
                Literal::Every(selector, demand) => &[(selector.clone(), *demand)][..],
                Literal::Some(kinds) => kinds,
            };
            for (selector, demand) in kinds {
                match selector {
                    Selector::Name(name) => {
                        wants.named.entry(name.clone()).or_default().push((literal, *demand));
                    }
                    selector => wants.kinds.push((literal, selector.clone(), *demand)),
                }
            }
        }
        wants
    }

    /// Whether names that are not declared can decide a literal.
    pub(super) fn reaches_others(&self, literal: LiteralId) -> bool {
        let other = |(selector, _): &(Selector, Demand)| !matches!(selector, Selector::Name(_));
        match &self.literals[literal.0 as usize] {
            Literal::No(_) => false,
            Literal::Some(kinds) => kinds.iter().any(other),
            Literal::Every(selector, demand) => other(&(selector.clone(), *demand)),
            Literal::EveryOf(node) => self
                .schema
                .node(*node)
                .object
                .as_deref()
                .is_some_and(|rule| rule.additional.is_some() || !rule.patterns.is_empty()),
        }
    }

    /// Every name that a literal speaks of.
    pub(super) fn names_of_literal(&self, literal: LiteralId) -> Vec<Box<str>> {
        let of_node = |node: NodeId| {
            let rule = self.schema.node(node).object.as_deref();
            rule.into_iter().flat_map(|rule| rule.properties.keys().cloned()).collect::<Vec<_>>()
        };
        let of_selector = |selector: &Selector| match selector {
            Selector::Name(name) => vec![name.clone()],
            Selector::Rest(node) => of_node(*node),
            Selector::Unevaluated(nodes) => nodes.iter().flat_map(|&node| of_node(node)).collect(),
            Selector::Pattern(_) | Selector::Outside(_) => Vec::new(),
        };
        match &self.literals[literal.0 as usize] {
            Literal::No(name) => vec![name.clone()],
            Literal::Some(kinds) => {
                kinds.iter().flat_map(|(selector, _)| of_selector(selector)).collect()
            }
            Literal::Every(selector, _) => of_selector(selector),
            Literal::EveryOf(node) => of_node(*node),
        }
    }

    /// Takes what a condition demands in any case out of it: required names, and rules for all
    /// members.
    pub(super) fn settle_condition(
        &mut self,
        condition: FormulaId,
        required: &mut Vec<Box<str>>,
        rules: &mut Vec<NameRule>,
    ) -> FormulaId {
        let mut condition = condition;
        loop {
            let mut met: Vec<LiteralId> = Vec::new();
            for part in self.formulas.conjuncts(condition) {
                let Formula::Literal(literal) = *self.formulas.get(part) else { continue };
                match &self.literals[literal.0 as usize] {
                    Literal::Some(kinds) => match &**kinds {
                        [(Selector::Name(name), demand)] if self.holds_always(*demand) => {
                            required.push(name.clone());
                        }
                        _ => continue,
                    },
                    Literal::EveryOf(node) => rules.push(NameRule::Node(*node)),
                    Literal::Every(Selector::Outside(language), demand)
                        if *demand == Demand::fails(ALWAYS) =>
                    {
                        rules.push(NameRule::Names(Arc::clone(language)));
                    }
                    Literal::Every(Selector::Unevaluated(nodes), demand)
                        if !demand.is_negated() =>
                    {
                        rules.push(NameRule::Unevaluated(nodes.clone(), demand.node()));
                    }
                    Literal::Every(..) => continue,
                    Literal::No(name) => rules.push(NameRule::No(name.clone())),
                }
                met.push(literal);
            }
            let Self { formulas, literals, .. } = self;
            let settled = formulas.assign(condition, &mut |literal| {
                if met.contains(&literal) {
                    return Some(true);
                }
                match &literals[literal.0 as usize] {
                    Literal::No(name) if required.contains(name) => Some(false),
                    Literal::Some(kinds) => {
                        let is_there = |(selector, demand): &(Selector, Demand)| {
                            matches!(selector, Selector::Name(name) if required.contains(name))
                                && *demand == Demand::holds(ALWAYS)
                        };
                        kinds.iter().any(is_there).then_some(true)
                    }
                    _ => None,
                }
            });
            if settled == condition {
                return condition;
            }
            condition = settled;
        }
    }

    fn selects(&self, selector: &Selector, name: &impl NameView) -> bool {
        match selector {
            Selector::Name(own) => name.declared() == Some(own),
            Selector::Pattern(language) => name.matches(language),
            Selector::Outside(language) => !name.matches(language),
            Selector::Rest(node) => self
                .schema
                .node(*node)
                .object
                .as_deref()
                .is_some_and(|rule| is_additional(rule, name)),
            Selector::Unevaluated(nodes) => !nodes.iter().any(|&node| self.evaluates(node, name)),
        }
    }

    /// Whether a node's object rules evaluate a member.
    pub(super) fn evaluates(&self, node: NodeId, name: &impl NameView) -> bool {
        self.schema
            .node(node)
            .object
            .as_deref()
            .is_some_and(|rule| rule.additional.is_some() || !is_additional(rule, name))
    }
}

/// The nodes of one schema location that apply to a member.
fn applicable(rule: &ObjectRule, name: &impl NameView) -> Vec<NodeId> {
    let own = name.declared().and_then(|name| rule.properties.get(name));
    let mut nodes: Vec<NodeId> = own.copied().into_iter().collect();
    nodes.extend(rule.patterns.iter().filter(|(language, _)| name.matches(language)).map(|x| x.1));
    if nodes.is_empty() {
        nodes.extend(rule.additional);
    }
    nodes
}

/// Whether a member is left to `additionalProperties`.
fn is_additional(rule: &ObjectRule, name: &impl NameView) -> bool {
    !name.declared().is_some_and(|name| rule.properties.contains_key(name))
        && !rule.patterns.iter().any(|(language, _)| name.matches(language))
}
