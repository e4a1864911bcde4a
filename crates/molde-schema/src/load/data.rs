//! Keywords whose value is read from the instance: `$data`, as ajv has it.
//!
//! A pointer starts at the root of the instance or some levels above the value. Which members it
//! leads from and to depends on where the schema location is applied, so that is worked out when
//! all locations are known: going up from the location, as many levels as the pointer says, along
//! every way in which it is reached. What both paths have in common is left out, and what remains
//! must be one step for each: a value and its target are members of the same object.

use rustc_hash::FxHashSet;

use crate::dialect::Dialect;
use crate::document::{Value, ValueId};
use crate::ir::{Applicator, DataKeyword, DataRule, Demand, Node, NodeId};
use crate::lint::Verdict;

use super::{Loader, Location};

/// A keyword whose value is read from the instance.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    node: NodeId,
    /// JSON Pointer of the schema location.
    location: String,
    /// As written; in draft 4 a boolean beside it says more.
    name: String,
    keyword: DataKeyword,
    /// Levels up from the value; `None` from the root.
    levels: Option<usize>,
    path: Vec<Box<str>>,
}

/// One step from a value to a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step<'a> {
    /// The same value: `allOf` and its like.
    Stay,
    /// The member of a name.
    Member(&'a str),
    /// Any other child.
    Elsewhere(&'static str),
}

/// The ways in which the location of a reference is reached are too many to look at, or endless.
const MAX_WAYS: usize = 4096;

impl Loader<'_> {
    /// Whether the value of a keyword that takes no schema is to be read from the instance.
    pub(super) fn is_data_reference(&self, keyword: &str, value: ValueId) -> bool {
        let takes_value = crate::dialect::treatment(keyword, Dialect::Draft202012)
            == crate::dialect::Treatment::Validation
            && keyword != "dependentRequired";
        matches!(self.document.get(value), Value::Object(members)
            if takes_value && members.contains_key("$data"))
    }

    pub(super) fn load_data(&mut self, location: &Location<'_>, keyword: &str, value: ValueId) {
        let Value::Object(members) = self.document.get(value) else { return };
        let Some(&pointer) = members.get("$data") else { return };
        let Some(kind) = self.data_keyword(location, keyword) else { return };
        if members.len() > 1 {
            let reason = "with `$data` and other members could mean either: write `enum` with one \
                          value for the constant";
            return self.refuse(location.pointer, keyword, reason);
        }
        let Value::String(pointer) = self.document.get(pointer) else {
            return self.malform(location.pointer, keyword, "`$data` must be a JSON Pointer");
        };
        let (levels, path) = match parse(pointer) {
            Ok(parsed) => parsed,
            Err(Fault::Malformed(reason)) => {
                return self.malform(location.pointer, keyword, reason);
            }
            Err(Fault::Refused(reason)) => {
                return self.refuse(location.pointer, keyword, reason);
            }
        };
        if let Some(known) = self.occurrences.last_mut() {
            known.verdict = Verdict::EnforcedWithData;
        }
        self.data.push(Reference {
            node: location.id,
            location: location.pointer.to_owned(),
            name: keyword.to_owned(),
            keyword: kind,
            levels,
            path,
        });
    }

    /// What a keyword compares; refused if its value must be known when the schema is.
    fn data_keyword(&mut self, location: &Location<'_>, keyword: &str) -> Option<DataKeyword> {
        let exclusive = |loader: &Self, keyword| loader.is_exclusive(location, keyword);
        Some(match keyword {
            "minimum" => DataKeyword::Minimum { exclusive: exclusive(self, "exclusiveMinimum") },
            "maximum" => DataKeyword::Maximum { exclusive: exclusive(self, "exclusiveMaximum") },
            "exclusiveMinimum" if location.dialect != Dialect::Draft4 => {
                DataKeyword::Minimum { exclusive: true }
            }
            "exclusiveMaximum" if location.dialect != Dialect::Draft4 => {
                DataKeyword::Maximum { exclusive: true }
            }
            "minLength" => DataKeyword::MinLength,
            "maxLength" => DataKeyword::MaxLength,
            "minItems" => DataKeyword::MinItems,
            "maxItems" => DataKeyword::MaxItems,
            "minProperties" => DataKeyword::MinProperties,
            "maxProperties" => DataKeyword::MaxProperties,
            "const" => DataKeyword::Const,
            _ => {
                let reason = "takes no `$data`: only bounds on numbers, lengths and counts do, and \
                              `const`";
                self.refuse(location.pointer, keyword, reason);
                return None;
            }
        })
    }

    /// Gives each node the rules that read from the instance, once all nodes are known.
    pub(super) fn finish_data(&mut self, root: NodeId) {
        if self.data.is_empty() {
            return;
        }
        let mut resolved = Vec::with_capacity(self.data.len());
        let ways = Ways::new(&self.nodes, root);
        for reference in &self.data {
            resolved.push(ways.target(reference));
        }
        for (reference, target) in self.data.clone().into_iter().zip(resolved) {
            match target {
                // Nothing leads here, so nothing asks for it.
                Ok(None) => {}
                Ok(Some(target)) => {
                    let rule = DataRule { keyword: reference.keyword, target };
                    let rules = &mut self.nodes[reference.node.0 as usize].data;
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
                Err(reason) => self.refuse(&reference.location, &reference.name, reason),
            }
        }
    }
}

enum Fault {
    Malformed(&'static str),
    Refused(&'static str),
}

/// The levels up (`None`: from the root) and the names of a pointer.
fn parse(pointer: &str) -> Result<(Option<usize>, Vec<Box<str>>), Fault> {
    const SYNTAX: &str = "`$data` must be a JSON Pointer, absolute (`/a`) or relative (`1/a`)";
    let digits = pointer.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = pointer.split_at(digits);
    let levels = if number.is_empty() {
        None
    } else if number.len() > 1 && number.starts_with('0') {
        return Err(Fault::Malformed(SYNTAX));
    } else {
        Some(number.parse::<usize>().unwrap_or(usize::MAX))
    };
    if rest == "#" && levels.is_some() {
        return Err(Fault::Refused("with `$data` that is a name or an index is not supported"));
    }
    let Some(rest) = rest.strip_prefix('/') else {
        return Err(if rest.is_empty() {
            Fault::Refused("with `$data` that is a value around this one is not supported")
        } else {
            Fault::Malformed(SYNTAX)
        });
    };
    let mut path = Vec::new();
    for token in rest.split('/') {
        if token.is_empty() {
            return Err(Fault::Refused("with `$data` that names an empty member is not supported"));
        }
        let unescaped = token.replace("~1", "/").replace("~0", "~");
        if token.replace("~1", "").replace("~0", "").contains('~') {
            return Err(Fault::Malformed(SYNTAX));
        }
        path.push(unescaped.into_boxed_str());
    }
    Ok((levels, path))
}

/// How nodes are reached from each other, backwards.
struct Ways<'a> {
    root: NodeId,
    /// For each node, from where and by which step.
    sources: Vec<Vec<(NodeId, Step<'a>)>>,
}

impl<'a> Ways<'a> {
    fn new(nodes: &'a [Node], root: NodeId) -> Self {
        let mut sources = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            for (target, step) in steps(node) {
                sources[target.0 as usize].push((NodeId(index as u32), step));
            }
        }
        let mut ways = Self { root, sources };
        ways.keep_reachable(nodes);
        ways
    }

    /// Forgets what the root does not lead to.
    fn keep_reachable(&mut self, nodes: &[Node]) {
        let mut reached = vec![false; nodes.len()];
        let mut open = vec![self.root];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node.0 as usize], true) {
                open.extend(steps(&nodes[node.0 as usize]).into_iter().map(|(target, _)| target));
            }
        }
        for sources in &mut self.sources {
            sources.retain(|(source, _)| reached[source.0 as usize]);
        }
    }

    /// The sibling that a reference is about; `None` if its location is never reached.
    fn target(&self, reference: &Reference) -> Result<Option<Box<str>>, String> {
        let mut found: Option<Box<str>> = None;
        // From the value upwards: the node, and the names so far, innermost first.
        let mut open: Vec<(NodeId, Vec<&str>)> = vec![(reference.node, Vec::new())];
        let mut seen: FxHashSet<(NodeId, Vec<&str>)> = FxHashSet::default();
        while let Some((node, names)) = open.pop() {
            if !seen.insert((node, names.clone())) {
                continue;
            }
            if seen.len() > MAX_WAYS {
                return Err("with `$data` is not supported where the schema location applies to \
                            values at too many places"
                    .to_owned());
            }
            let is_top = reference.levels.map_or(node == self.root, |levels| names.len() == levels);
            if is_top {
                let target = sibling(&names, &reference.path)?;
                if found.as_ref().is_some_and(|known| *known != target) {
                    return Err("with `$data` means different members where the schema location \
                                is reached in different ways"
                        .to_owned());
                }
                found = Some(target);
                if reference.levels.is_some() {
                    continue;
                }
            }
            if node == self.root && reference.levels.is_some() {
                return Err("with `$data` that points above the root of the instance".to_owned());
            }
            for &(source, step) in &self.sources[node.0 as usize] {
                match step {
                    Step::Stay => open.push((source, names.clone())),
                    Step::Member(name) => {
                        let mut names = names.clone();
                        names.push(name);
                        open.push((source, names));
                    }
                    Step::Elsewhere(what) => {
                        return Err(format!("with `$data` is not supported for {what}"));
                    }
                }
            }
        }
        Ok(found)
    }
}

/// The member that a pointer leads to, next to the value that `names` leads to, innermost first.
fn sibling(names: &[&str], path: &[Box<str>]) -> Result<Box<str>, String> {
    let own: Vec<&str> = names.iter().rev().copied().collect();
    let common = own.iter().zip(path).take_while(|(one, two)| **one == &***two).count();
    match (&own[common..], &path[common..]) {
        ([_], [target]) => Ok(target.clone()),
        (_, []) => {
            Err("with `$data` that is a value around this one, or the value itself, is not \
                        supported"
                .to_owned())
        }
        ([], _) => {
            Err("with `$data` that is a part of the value itself is not supported".to_owned())
        }
        _ => Err("with `$data` that is no member of the same object is not supported".to_owned()),
    }
}

/// The nodes that a node applies, and to what.
fn steps(node: &Node) -> Vec<(NodeId, Step<'_>)> {
    let mut steps = Vec::new();
    let stay = |nodes: &mut Vec<(NodeId, Step<'_>)>, demands: &[Demand]| {
        nodes.extend(demands.iter().map(|demand| (demand.node(), Step::Stay)));
    };
    for applicator in &node.applicators {
        match applicator {
            Applicator::All(demand) => stay(&mut steps, &[*demand]),
            Applicator::Any(nodes) | Applicator::One(nodes) | Applicator::Constants(nodes) => {
                steps.extend(nodes.iter().map(|&node| (node, Step::Stay)));
            }
            Applicator::Cases(cases) => {
                for case in cases {
                    stay(&mut steps, case);
                }
            }
        }
    }
    let elsewhere = |what: &'static str| move |node: NodeId| (node, Step::Elsewhere(what));
    let items = "the items of an array";
    if let Some(rule) = &node.array {
        steps.extend(rule.prefix.iter().copied().chain(rule.items).map(elsewhere(items)));
        steps.extend(rule.contains.map(|contains| contains.node).map(elsewhere(items)));
    }
    if let Some(rule) = &node.object {
        steps.extend(rule.properties.iter().map(|(name, &node)| (node, Step::Member(name))));
        let others = "members that are not declared by name";
        let patterns = rule.patterns.iter().map(|(_, node)| *node);
        steps.extend(patterns.chain(rule.additional).map(elsewhere(others)));
        steps.extend(rule.names.map(elsewhere("names")));
    }
    steps.extend(node.unevaluated_items.map(elsewhere(items)));
    steps.extend(
        node.unevaluated_properties.map(elsewhere("members that are not declared by name")),
    );
    steps
}
