//! Keywords whose value is read from the instance, with the value that the text has.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::constant::constant;
use crate::document::{Document, Value, join};
use crate::ir::{
    Applicator, ArrayRule, DataKeyword, DataRule, Demand, Node, NodeId, ObjectRule, StringRule,
    TypeSet,
};
use crate::number::{Decimal, NumberBound, NumberLimits, NumberSpec};
use crate::options::Limits;

use super::Explainer;

/// Bytes of a value that are told.
const TOLD_BYTES: usize = 40;

/// What stands beside a member: the object's pointer in the instance, and the texts of the members
/// that have ended.
pub(super) struct Siblings<'a> {
    pub(super) instance: &'a str,
    pub(super) values: Vec<(String, &'a [u8])>,
}

impl Siblings<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, text)| *text)
    }
}

/// A made-up node that stands for one keyword.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) keyword: &'static str,
    pub(super) expected: String,
}

impl Explainer<'_> {
    /// Demands on a member with what their keywords read from its siblings put in. A keyword about
    /// a member that is not there says nothing.
    pub(super) fn with_values(
        &mut self,
        demands: Vec<Demand>,
        siblings: &Siblings<'_>,
    ) -> Vec<Demand> {
        if !self.schema.has_data {
            return demands;
        }
        let mut copies = FxHashMap::default();
        demands
            .into_iter()
            .map(|demand| demand.at(self.with_values_at(demand.node(), siblings, &mut copies)))
            .collect()
    }

    fn with_values_at(
        &mut self,
        id: NodeId,
        siblings: &Siblings<'_>,
        copies: &mut FxHashMap<NodeId, NodeId>,
    ) -> NodeId {
        if let Some(&known) = copies.get(&id) {
            return known;
        }
        let mut node = self.schema.node(id).clone();
        if node.data.is_empty() && node.applicators.is_empty() {
            return id;
        }
        // Schemas may refer to themselves: the copy is known before it is filled.
        let copy = self.push(node.clone()).node();
        copies.insert(id, copy);
        let before = node.clone();
        let mut moved = |explainer: &mut Self, demand: Demand| {
            demand.at(explainer.with_values_at(demand.node(), siblings, copies))
        };
        for applicator in &mut node.applicators {
            match applicator {
                Applicator::All(demand) => *demand = moved(self, *demand),
                Applicator::Any(nodes) | Applicator::One(nodes) => {
                    for node in nodes {
                        *node = moved(self, Demand::holds(*node)).node();
                    }
                }
                Applicator::Constants(_) => {}
                Applicator::Cases(cases) => {
                    for demand in cases.iter_mut().flat_map(|case| case.iter_mut()) {
                        *demand = moved(self, *demand);
                    }
                }
            }
        }
        for rule in std::mem::take(&mut node.data) {
            let Some(text) = siblings.value(&rule.target) else { continue };
            let target = join(siblings.instance, &rule.target);
            if let Some((own, told)) = self.read(&rule, &node.pointer, &target, text) {
                let demand = self.push(own);
                self.told.insert(demand.node(), told);
                node.applicators.push(Applicator::All(demand));
            }
        }
        if node.applicators == before.applicators && before.data.is_empty() {
            copies.insert(id, id);
            return id;
        }
        self.automaton = None;
        Arc::make_mut(&mut self.schema).nodes[copy.0 as usize] = node;
        copy
    }

    /// What a keyword comes to with a value, as a node of its own.
    fn read(
        &mut self,
        rule: &DataRule,
        pointer: &str,
        target: &str,
        text: &[u8],
    ) -> Option<(Node, Told)> {
        let document = Document::parse(std::str::from_utf8(text).ok()?, &Limits::default()).ok()?;
        let keyword = rule.keyword;
        let told = |expected| Told { keyword: keyword.name(), expected };
        let shown = String::from_utf8_lossy(&text[..text.len().min(TOLD_BYTES)]);
        if keyword == DataKeyword::Const {
            let mut nodes = std::mem::take(&mut Arc::make_mut(&mut self.schema).nodes);
            let value = constant(
                &document,
                pointer,
                document.root(),
                &crate::number::NumberLimits::default(),
                &mut nodes,
            );
            Arc::make_mut(&mut self.schema).nodes = nodes;
            let mut node = Node::of_types(pointer.to_owned(), TypeSet::ALL);
            node.applicators.push(Applicator::All(Demand::holds(value.ok()?)));
            return Some((node, told(format!("the value of {target}"))));
        }
        let Value::Number(number) = document.get(document.root()) else {
            let types = TypeSet::ALL.without(keyword.measured());
            let node = Node::of_types(pointer.to_owned(), types);
            let what = measured(keyword);
            return Some((
                node,
                told(format!("no {what}, since the value of {target} is no number")),
            ));
        };
        let value = Decimal::parse(number, &NumberLimits::default()).ok()?;
        let bound = NumberBound { value, exclusive: keyword.is_exclusive() };
        let (least, most) =
            if keyword.is_lower_bound() { (Some(bound), None) } else { (None, Some(bound)) };
        let mut node = Node::of_types(pointer.to_owned(), TypeSet::ALL);
        let amount = match (keyword.is_lower_bound(), keyword.is_exclusive()) {
            (true, false) => "at least",
            (true, true) => "more than",
            (false, false) => "at most",
            (false, true) => "less than",
        };
        let value = format!("the value of {target}, which is {shown}");
        let expected = match keyword {
            DataKeyword::Minimum { .. } | DataKeyword::Maximum { .. } => {
                format!("a number {amount} {value}")
            }
            _ => format!("{amount} as many {} as {value}", counted(keyword)),
        };
        if matches!(keyword, DataKeyword::Minimum { .. } | DataKeyword::Maximum { .. }) {
            let spec = NumberSpec { minimum: least, maximum: most, ..NumberSpec::default() };
            node.number = Some(Box::new(spec));
            return Some((node, told(expected)));
        }
        let (min, max) = match (least, most) {
            (Some(least), _) => (ceiling(&least.value), None),
            (_, Some(most)) => {
                let Some(max) = floor(&most.value) else {
                    node.types = TypeSet::ALL.without(keyword.measured());
                    return Some((node, told(expected)));
                };
                (0, Some(max))
            }
            _ => (0, None),
        };
        match keyword {
            DataKeyword::MinLength | DataKeyword::MaxLength => {
                node.string = Some(Box::new(StringRule {
                    min_length: min,
                    max_length: max,
                    ..StringRule::default()
                }));
            }
            DataKeyword::MinItems | DataKeyword::MaxItems => {
                node.array = Some(Box::new(ArrayRule {
                    min_items: min,
                    max_items: max,
                    ..ArrayRule::default()
                }));
            }
            _ => {
                node.object = Some(Box::new(ObjectRule {
                    min_properties: min,
                    max_properties: max,
                    ..ObjectRule::default()
                }));
            }
        }
        Some((node, told(expected)))
    }
}

fn measured(keyword: DataKeyword) -> &'static str {
    match keyword {
        DataKeyword::MinLength | DataKeyword::MaxLength => "string",
        DataKeyword::MinItems | DataKeyword::MaxItems => "array",
        DataKeyword::MinProperties | DataKeyword::MaxProperties => "object",
        _ => "number",
    }
}

fn counted(keyword: DataKeyword) -> &'static str {
    match keyword {
        DataKeyword::MinItems | DataKeyword::MaxItems => "items",
        DataKeyword::MinProperties | DataKeyword::MaxProperties => "members",
        _ => "characters",
    }
}

/// The least natural number that is not less; saturated.
fn ceiling(value: &Decimal) -> u64 {
    if value.is_negative() {
        return 0;
    }
    let floor = floor(value).unwrap_or(0);
    if Decimal::from(floor) == *value { floor } else { floor.saturating_add(1) }
}

/// The greatest natural number that is not greater, if there is one; saturated.
fn floor(value: &Decimal) -> Option<u64> {
    if value.is_negative() {
        return None;
    }
    let mut whole = value.clone();
    while !whole.is_integer() {
        whole = Decimal::new(whole.mantissa() / 10, whole.exponent() + 1);
    }
    Some(whole.to_u64().unwrap_or(u64::MAX))
}
