//! Nodes in which every keyword that reads from the instance has been decided.

use std::sync::Arc;

use crate::ir::{Applicator, DataRule, Demand, Node, NodeId, Schema, TypeSet};
use crate::number::{Decimal, NumberBound, NumberLimits, NumberSpec};

use crate::goal::Goals;

/// Which rules hold and which do not. What is not among them is left as it is.
pub(super) type Truth = Box<[(DataRule, bool)]>;

impl Goals {
    /// The rules of the nodes of some demands, those of what they apply to the same value included,
    /// each once.
    pub(in crate::goal) fn data_rules(&self, demands: &[Demand]) -> Vec<DataRule> {
        let mut rules = Vec::new();
        let mut done: Vec<NodeId> = Vec::new();
        let mut open: Vec<NodeId> = demands.iter().rev().map(|demand| demand.node()).collect();
        while let Some(id) = open.pop() {
            if done.contains(&id) {
                continue;
            }
            done.push(id);
            let node = self.schema.node(id);
            for rule in &node.data {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
            open.extend(applied(node).into_iter().rev());
        }
        rules
    }

    /// Some demands with rules decided: one that holds says nothing, one that does not hold fails
    /// every value that it has a say about.
    pub(super) fn decided(&mut self, demands: &[Demand], truth: &Truth) -> Vec<Demand> {
        if truth.is_empty() {
            return demands.to_vec();
        }
        let nodes: Vec<NodeId> = demands.iter().map(|demand| demand.node()).collect();
        let nodes = self.decided_nodes(&nodes, truth);
        demands.iter().zip(nodes).map(|(demand, node)| demand.at(node)).collect()
    }

    fn decided_nodes(&mut self, roots: &[NodeId], truth: &Truth) -> Vec<NodeId> {
        // Every node that is reached, and whether it leads to a rule.
        let mut order: Vec<NodeId> = Vec::new();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if !order.contains(&id) {
                order.push(id);
                open.extend(applied(self.schema.node(id)));
            }
        }
        let mut concerned: Vec<NodeId> = Vec::new();
        loop {
            let before = concerned.len();
            for &id in &order {
                let node = self.schema.node(id);
                let leads = !node.data.is_empty()
                    || applied(node).iter().any(|child| concerned.contains(child));
                if leads && !concerned.contains(&id) {
                    concerned.push(id);
                }
            }
            if concerned.len() == before {
                break;
            }
        }
        // Ids first: schemas may refer to themselves.
        let mut made: Vec<(NodeId, NodeId)> = Vec::new();
        let mut new: Vec<NodeId> = Vec::new();
        for &id in &concerned {
            let key = (id, truth.clone());
            if let Some(&known) = self.related.decided.get(&key) {
                made.push((id, known));
                continue;
            }
            let copy = self.schema.node(id).clone();
            let copy = push(&mut self.schema, copy);
            self.related.decided.insert(key, copy);
            made.push((id, copy));
            new.push(copy);
        }
        let moved =
            |id: NodeId| made.iter().find(|(old, _)| *old == id).map_or(id, |(_, new)| *new);
        let schema = Arc::make_mut(&mut self.schema);
        for id in new {
            let node = &mut schema.nodes[id.0 as usize];
            for rule in std::mem::take(&mut node.data) {
                match truth.iter().find(|(known, _)| *known == rule) {
                    Some((_, true)) => {}
                    Some((_, false)) => node.types = node.types.without(rule.keyword.measured()),
                    None => node.data.push(rule),
                }
            }
            let move_demand = |demand: &mut Demand| *demand = demand.at(moved(demand.node()));
            for applicator in &mut node.applicators {
                match applicator {
                    Applicator::All(demand) => move_demand(demand),
                    Applicator::Any(nodes)
                    | Applicator::One(nodes)
                    | Applicator::Constants(nodes) => {
                        for node in nodes {
                            *node = moved(*node);
                        }
                    }
                    Applicator::Cases(cases) => {
                        for demand in cases.iter_mut().flat_map(|case| case.iter_mut()) {
                            move_demand(demand);
                        }
                    }
                }
            }
        }
        roots.iter().map(|&root| moved(root)).collect()
    }

    /// A node that is not part of the schema, made up once for each content.
    pub(super) fn made_up(&mut self, key: MadeUp) -> NodeId {
        if let Some(&known) = self.related.made_up.get(&key) {
            return known;
        }
        let node = match &key {
            MadeUp::Types(types) => Node::of_types(String::new(), *types),
            MadeUp::Choice(goals) => {
                let mut branches = Vec::with_capacity(goals.len());
                for goal in goals.clone() {
                    let mut branch = Node::of_types(String::new(), TypeSet::ALL);
                    let demands = self.ids[goal.0 as usize].iter();
                    branch.applicators.extend(demands.map(|&demand| Applicator::All(demand)));
                    branches.push(push(&mut self.schema, branch));
                }
                let mut node = Node::of_types(String::new(), TypeSet::ALL);
                node.applicators.push(Applicator::Any(branches));
                node
            }
            MadeUp::Bounds(bounds) => bounds.node(),
            MadeUp::Integers => integers(),
            MadeUp::Comparable => {
                let mut node = Node::of_types(String::new(), TypeSet::ALL);
                let branches = comparable().map(|spec| {
                    let mut branch = Node::of_types(String::new(), TypeSet::NUMBER);
                    branch.number = Some(Box::new(spec));
                    push(&mut self.schema, branch)
                });
                node.applicators.push(Applicator::Any(branches.into()));
                node
            }
        };
        let id = push(&mut self.schema, node);
        self.related.made_up.insert(key, id);
        id
    }
}

/// What a made-up node is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum MadeUp {
    /// All values of some types.
    Types(TypeSet),
    /// What satisfies one of some goals.
    Choice(Box<[crate::goal::GoalId]>),
    /// What lies within bounds.
    Bounds(super::measure::Bounds),
    /// Integers.
    Integers,
    /// Numbers of an order of magnitude that a bound can have: in a style with exponents there are
    /// others.
    Comparable,
}

fn integers() -> Node {
    let mut node = Node::of_types(String::new(), TypeSet::NUMBER);
    node.number = Some(Box::new(NumberSpec { integer_only: true, ..NumberSpec::default() }));
    node
}

/// Negative numbers, zero and positive numbers that can be compared.
fn comparable() -> [NumberSpec; 3] {
    let order = NumberLimits::default().max_decimal_order - 1;
    let end = |sign: i64, exponent: i64| {
        Some(NumberBound { value: Decimal::new(sign.into(), exponent), exclusive: false })
    };
    let between = |minimum, maximum| NumberSpec { minimum, maximum, ..NumberSpec::default() };
    [
        between(end(-1, order), end(-1, -order)),
        NumberSpec::from_values(vec![Decimal::zero()]),
        between(end(1, -order), end(1, order)),
    ]
}

fn push(schema: &mut Arc<Schema>, node: Node) -> NodeId {
    let nodes = &mut Arc::make_mut(schema).nodes;
    nodes.push(node);
    NodeId(nodes.len() as u32 - 1)
}

/// The nodes that a node applies to the same value.
fn applied(node: &Node) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for applicator in &node.applicators {
        match applicator {
            Applicator::All(demand) => nodes.push(demand.node()),
            Applicator::Any(branches) | Applicator::One(branches) => nodes.extend(branches),
            // Constants read nothing.
            Applicator::Constants(_) => {}
            Applicator::Cases(cases) => {
                nodes.extend(cases.iter().flat_map(|case| case.iter()).map(|demand| demand.node()));
            }
        }
    }
    nodes
}
