//! The demands on one value, taken apart by keyword.

use crate::dialect::Dialect;
use crate::document::join;
use crate::ir::{
    ALWAYS, Applicator, ArrayRule, Demand, Node, NodeId, ObjectRule, StringRule, TypeSet,
};
use crate::number::NumberSpec;

use super::Explainer;

/// What one keyword demands by itself, as a demand on a node that has nothing else.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    pub(super) demand: Demand,
    /// JSON Pointer of the schema location, and the keyword there.
    pub(super) location: String,
    pub(super) keyword: String,
    pub(super) expected: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `type`: beside other keywords it says of what kind the value is that they speak of.
    Type,
    /// What is decided by looking at the value itself.
    Value,
    /// What must be one of some values.
    Constant(TypeSet),
    /// What speaks of children: rules for members, or for items.
    Children,
    /// One of several lists of demands must be met.
    Choice(Choice),
    /// A negation.
    Negation,
    /// A keyword that depends on all others of its location.
    Whole,
}

#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) branches: Vec<Vec<Demand>>,
    /// Location of what only decides between the branches: nothing there is demanded.
    pub(super) condition: Option<String>,
}

/// What one demand comes to: atoms, and demands that apply as well.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    atoms: Vec<Atom>,
    further: Vec<Demand>,
}

impl Explainer<'_> {
    /// The atoms of a conjunction, in schema order.
    pub(super) fn atoms(&mut self, demands: &[Demand]) -> Vec<Atom> {
        let mut atoms = Vec::new();
        let mut done: Vec<Demand> = Vec::new();
        let mut open: Vec<Demand> = demands.iter().rev().copied().collect();
        while let Some(demand) = open.pop() {
            if done.contains(&demand) {
                continue;
            }
            done.push(demand);
            if !self.parts.contains_key(&demand) {
                let parts = self.take_apart(demand);
                self.parts.insert(demand, parts);
            }
            let parts = &self.parts[&demand];
            atoms.extend(parts.atoms.iter().cloned());
            open.extend(parts.further.iter().rev());
        }
        atoms
    }

    fn take_apart(&mut self, demand: Demand) -> Parts {
        let node = self.schema.node(demand.node()).clone();
        let mut parts = Parts::default();
        if let Some(told) = self.told.get(&demand.node()) {
            let kind = if demand.is_negated() { Kind::Negation } else { Kind::Value };
            parts.atoms.push(Atom {
                demand,
                location: node.pointer,
                keyword: told.keyword.to_owned(),
                expected: told.expected.clone(),
                kind,
            });
            return parts;
        }
        let (parent, token) = split(&node.pointer);
        if let Some(keyword) = self.dependencies.get(&demand.node()) {
            let names = node.object.as_deref().map_or(&[][..], |rule| &rule.required);
            let names = list(names);
            let (expected, kind) = if demand.is_negated() {
                (format!("no member {names}"), Kind::Negation)
            } else {
                (format!("the members {names}"), Kind::Value)
            };
            let keyword = keyword.clone();
            parts.atoms.push(Atom { demand, location: node.pointer, keyword, expected, kind });
            return parts;
        }
        if demand.is_negated() {
            let is_own = matches!(token, "not" | "if");
            let (location, keyword) =
                if is_own { (parent, token) } else { (&*node.pointer, "not") };
            parts.atoms.push(Atom {
                demand,
                location: location.to_owned(),
                keyword: keyword.to_owned(),
                expected: format!("a value that fails `{}`", node.pointer),
                kind: Kind::Negation,
            });
            return parts;
        }
        if self.is_constant(&node.pointer) {
            parts.atoms.push(constant(demand, &node.pointer, node.types));
            return parts;
        }
        let mut own = Own { explainer: self, pointer: &node.pointer, atoms: Vec::new() };
        own.kind_of_value(&node);
        if let Some(number) = &node.number {
            own.number(number);
        }
        if let Some(string) = &node.string {
            own.string(string);
        }
        if let Some(array) = &node.array {
            own.array(array);
        }
        if let Some(object) = &node.object {
            own.object(object);
        }
        parts.atoms = own.atoms;
        for applicator in &node.applicators {
            self.applicator(&node.pointer, applicator, &mut parts);
        }
        for (keyword, rest) in [
            ("unevaluatedItems", node.unevaluated_items),
            ("unevaluatedProperties", node.unevaluated_properties),
        ] {
            if rest.is_some() {
                parts.atoms.push(Atom {
                    demand,
                    location: node.pointer.clone(),
                    keyword: keyword.to_owned(),
                    expected: "only what another keyword evaluates, or what this one allows"
                        .to_owned(),
                    kind: Kind::Whole,
                });
            }
        }
        parts
    }

    fn applicator(&mut self, pointer: &str, applicator: &Applicator, parts: &mut Parts) {
        let alone = || {
            let mut node = Node::of_types(pointer.to_owned(), TypeSet::ALL);
            node.applicators.push(applicator.clone());
            node
        };
        let holds = |branch: &NodeId| vec![Demand::holds(*branch)];
        let (keyword, choice, expected) = match applicator {
            Applicator::All(demand) => return parts.further.push(*demand),
            Applicator::Constants(branches) => {
                let types = branches
                    .iter()
                    .map(|&branch| self.schema.node(branch).types)
                    .fold(TypeSet::NONE, TypeSet::union);
                let at = branches.first().map(|&first| self.schema.node(first).pointer.clone());
                let demand = self.push(alone());
                let atom = constant(demand, &at.unwrap_or_default(), types);
                return parts.atoms.push(atom);
            }
            Applicator::Any(branches) => {
                let branches = branches.iter().map(holds).collect();
                ("anyOf", Choice { branches, condition: None }, "one of the schemas to hold")
            }
            Applicator::One(branches) => {
                let branches = branches.iter().map(holds).collect();
                let expected = "exactly one of the schemas to hold";
                ("oneOf", Choice { branches, condition: None }, expected)
            }
            Applicator::Cases(cases) => {
                let branches: Vec<Vec<Demand>> = cases.iter().map(|case| case.to_vec()).collect();
                let condition = branches.iter().flatten().next().map(|demand| demand.node());
                let at = condition.map(|node| self.schema.node(node).pointer.clone());
                if let Some(at) = at.filter(|at| *at == join(pointer, "if")) {
                    let choice = Choice { branches, condition: Some(at) };
                    ("if", choice, "`then` to hold where `if` does, else `else`")
                } else {
                    let keyword = ["dependentRequired", "dependentSchemas", "dependencies"]
                        .into_iter()
                        .find(|keyword| self.has_keyword(&join(pointer, keyword)))
                        .unwrap_or("dependencies");
                    for demand in branches.iter().flatten() {
                        // What is made up for a list of names stands at the location itself.
                        if self.schema.node(demand.node()).pointer == pointer {
                            self.dependencies.insert(demand.node(), keyword.to_owned());
                        }
                    }
                    (keyword, Choice { branches, condition: None }, "what the member depends on")
                }
            }
        };
        let demand = self.push(alone());
        parts.atoms.push(Atom {
            demand,
            location: pointer.to_owned(),
            keyword: keyword.to_owned(),
            expected: expected.to_owned(),
            kind: Kind::Choice(choice),
        });
    }

    fn is_constant(&self, pointer: &str) -> bool {
        matches!(split(pointer).1, "enum" | "const") && self.has_keyword(pointer)
    }

    /// Whether the keyword at a pointer is one that the schema has.
    pub(super) fn has_keyword(&self, pointer: &str) -> bool {
        self.occurrences.binary_search_by(|known| known.pointer.as_str().cmp(pointer)).is_ok()
    }
}

/// Takes the rules of one node apart.
struct Own<'e, 's> {
    explainer: &'e mut Explainer<'s>,
    pointer: &'e str,
    atoms: Vec<Atom>,
}

impl Own<'_, '_> {
    fn has(&self, keyword: &str) -> bool {
        self.explainer.has_keyword(&join(self.pointer, keyword))
    }

    fn add(&mut self, keyword: &str, expected: String, kind: Kind, fill: impl FnOnce(&mut Node)) {
        let mut node = Node::of_types(self.pointer.to_owned(), TypeSet::ALL);
        fill(&mut node);
        let demand = self.explainer.push(node);
        let (location, keyword) = (self.pointer.to_owned(), keyword.to_owned());
        self.atoms.push(Atom { demand, location, keyword, expected, kind });
    }

    fn kind_of_value(&mut self, node: &Node) {
        let number = node.number.as_deref();
        let integer = NumberSpec {
            integer_only: number.is_some_and(|number| number.integer_only),
            draft4_integer: number.is_some_and(|number| number.draft4_integer),
            ..NumberSpec::default()
        };
        let is_integer = integer != NumberSpec::default();
        if node.types == TypeSet::ALL && !is_integer {
            return;
        }
        if node.is_false() && !self.has("type") {
            let (parent, token) = split(self.pointer);
            // `additionalProperties: false` is a keyword, the member `a: false` of `properties`
            // is a schema.
            let is_keyword = self.explainer.has_keyword(self.pointer);
            let (location, keyword) =
                if is_keyword { (parent, token) } else { (self.pointer, "false") };
            let (location, keyword) = (location.to_owned(), keyword.to_owned());
            self.add("", "nothing".to_owned(), Kind::Value, |node| node.types = TypeSet::NONE);
            if let Some(atom) = self.atoms.last_mut() {
                (atom.location, atom.keyword) = (location, keyword);
            }
            return;
        }
        let types = node.types;
        self.add("type", names_of(types, is_integer), Kind::Type, |node| {
            node.types = types;
            node.number = is_integer.then(|| Box::new(integer));
        });
    }

    fn number(&mut self, number: &NumberSpec) {
        let draft4 = self.explainer.dialect == Dialect::Draft4;
        let none = NumberSpec::default;
        for (bound, keywords, words) in [
            (&number.minimum, ["minimum", "exclusiveMinimum"], ["at least", "more than"]),
            (&number.maximum, ["maximum", "exclusiveMaximum"], ["at most", "less than"]),
        ] {
            let Some(bound) = bound else { continue };
            let exclusive = usize::from(bound.exclusive);
            let keyword = keywords[if draft4 { 0 } else { exclusive }];
            let is_lower = keywords[0] == "minimum";
            let expected = format!("a number {} {}", words[exclusive], bound.value);
            let own = Some(bound.clone());
            let spec = if is_lower {
                NumberSpec { minimum: own, ..none() }
            } else {
                NumberSpec { maximum: own, ..none() }
            };
            self.add(keyword, expected, Kind::Value, |node| node.number = Some(Box::new(spec)));
        }
        for divisor in &number.multiple_of {
            let expected = format!("a multiple of {divisor}");
            let spec = NumberSpec { multiple_of: vec![divisor.clone()], ..none() };
            self.add("multipleOf", expected, Kind::Value, |node| {
                node.number = Some(Box::new(spec));
            });
        }
    }

    fn string(&mut self, string: &StringRule) {
        let (min_length, max_length) = (string.min_length, string.max_length);
        // A pattern or format can bring bounds of its own.
        let source = string.sources.first().map_or("pattern", |(keyword, _)| *keyword);
        if min_length > 0 {
            let keyword = if self.has("minLength") { "minLength" } else { source };
            let expected = format!("at least {min_length} characters");
            self.add(keyword, expected, Kind::Value, |node| {
                node.string = Some(Box::new(StringRule { min_length, ..StringRule::default() }));
            });
        }
        if let Some(max) = max_length {
            let keyword = if self.has("maxLength") { "maxLength" } else { source };
            self.add(keyword, format!("at most {max} characters"), Kind::Value, |node| {
                node.string = Some(Box::new(StringRule { max_length, ..StringRule::default() }));
            });
        }
        for (index, language) in string.languages.iter().enumerate() {
            let (keyword, expected) = match string.sources.get(index) {
                Some(&("pattern", ref text)) => ("pattern", format!("what matches {text}")),
                Some((keyword, text)) => (*keyword, format!("a text of the format {text}")),
                None => ("enum", "one of the listed values".to_owned()),
            };
            let languages = vec![language.clone()];
            self.add(keyword, expected, Kind::Value, |node| {
                let outer_languages = vec![string.outer_languages[index].clone()];
                node.string = Some(Box::new(StringRule {
                    languages,
                    outer_languages,
                    ..StringRule::default()
                }));
            });
        }
    }

    fn array(&mut self, rule: &ArrayRule) {
        let none = ArrayRule::default;
        let mut add = |keyword: &str, expected: String, kind, own: ArrayRule| {
            self.add(keyword, expected, kind, |node| node.array = Some(Box::new(own)));
        };
        if !rule.prefix.is_empty() {
            let own = ArrayRule { prefix: rule.prefix.clone(), ..none() };
            add("prefixItems", "the listed items".to_owned(), Kind::Children, own);
        }
        if rule.items.is_some() {
            let prefix = vec![ALWAYS; rule.prefix.len()];
            let own = ArrayRule { prefix, items: rule.items, ..none() };
            add("items", "items that the schema allows".to_owned(), Kind::Children, own);
        }
        if rule.min_items > 0 {
            let own = ArrayRule { min_items: rule.min_items, ..none() };
            add("minItems", format!("at least {} items", rule.min_items), Kind::Value, own);
        }
        if let Some(max) = rule.max_items {
            let own = ArrayRule { max_items: Some(max), ..none() };
            add("maxItems", format!("at most {max} items"), Kind::Value, own);
        }
        if let Some(contains) = rule.contains {
            let own = |min, max| ArrayRule {
                contains: Some(crate::ir::Contains { min, max, ..contains }),
                ..none()
            };
            if contains.min > 0 {
                let expected = format!("at least {} such items", contains.min);
                let keyword = if contains.min > 1 { "minContains" } else { "contains" };
                add(keyword, expected, Kind::Value, own(contains.min, None));
            }
            if let Some(max) = contains.max {
                let expected = format!("at most {max} such items");
                add("maxContains", expected, Kind::Value, own(0, Some(max)));
            }
        }
        if rule.unique {
            let own = ArrayRule { unique: true, ..none() };
            add("uniqueItems", "no two equal items".to_owned(), Kind::Value, own);
        }
        // The names that the keywords had before draft 2020-12.
        if !self.has("prefixItems") && !rule.prefix.is_empty() {
            for atom in &mut self.atoms {
                match atom.keyword.as_str() {
                    "prefixItems" => "items".clone_into(&mut atom.keyword),
                    "items" => "additionalItems".clone_into(&mut atom.keyword),
                    _ => {}
                }
            }
        }
    }

    fn object(&mut self, rule: &ObjectRule) {
        let none = ObjectRule::default;
        let mut add = |keyword: &str, expected: String, kind, own: ObjectRule| {
            self.add(keyword, expected, kind, |node| node.object = Some(Box::new(own)));
        };
        if !rule.properties.is_empty() {
            let own = ObjectRule { properties: rule.properties.clone(), ..none() };
            add(
                "properties",
                "members with values that the schema allows".to_owned(),
                Kind::Children,
                own,
            );
        }
        if !rule.patterns.is_empty() {
            let own = ObjectRule { patterns: rule.patterns.clone(), ..none() };
            add(
                "patternProperties",
                "members with values that the schema allows".to_owned(),
                Kind::Children,
                own,
            );
        }
        if rule.additional.is_some() {
            let own = ObjectRule {
                properties: rule.properties.keys().map(|name| (name.clone(), ALWAYS)).collect(),
                patterns: rule.patterns.iter().map(|(names, _)| (names.clone(), ALWAYS)).collect(),
                additional: rule.additional,
                ..none()
            };
            let names: Vec<Box<str>> = rule.properties.keys().cloned().collect();
            let patterns =
                if rule.patterns.is_empty() { "" } else { ", or one that a pattern finds" };
            let expected = match names.as_slice() {
                [] => format!("no other member{patterns}"),
                names => format!("a name among {}{patterns}", list(names)),
            };
            add("additionalProperties", expected, Kind::Children, own);
        }
        if rule.names.is_some() {
            let own = ObjectRule { names: rule.names, ..none() };
            add("propertyNames", "a name that the schema allows".to_owned(), Kind::Value, own);
        }
        if !rule.required.is_empty() {
            let own = ObjectRule { required: rule.required.clone(), ..none() };
            add("required", format!("the members {}", list(&rule.required)), Kind::Value, own);
        }
        if rule.min_properties > 0 {
            let own = ObjectRule { min_properties: rule.min_properties, ..none() };
            let expected = format!("at least {} members", rule.min_properties);
            add("minProperties", expected, Kind::Value, own);
        }
        if let Some(max) = rule.max_properties {
            let own = ObjectRule { max_properties: Some(max), ..none() };
            add("maxProperties", format!("at most {max} members"), Kind::Value, own);
        }
    }
}

/// The atom of `enum` or `const` at a pointer, for values of some types.
fn constant(demand: Demand, pointer: &str, types: TypeSet) -> Atom {
    let (location, keyword) = split(pointer);
    let expected = if keyword == "const" { "the constant" } else { "one of the listed values" };
    Atom {
        demand,
        location: location.to_owned(),
        keyword: keyword.to_owned(),
        expected: expected.to_owned(),
        kind: Kind::Constant(types),
    }
}

/// The parent of a JSON Pointer, and its last token as it is written.
pub(super) fn split(pointer: &str) -> (&str, &str) {
    pointer.rsplit_once('/').unwrap_or(("", pointer))
}

/// Names as a list, cut where it gets long.
pub(super) fn list(names: &[Box<str>]) -> String {
    const MOST: usize = 8;
    let mut text: Vec<String> =
        names.iter().take(MOST).map(|name| format!("`{}`", name.escape_debug())).collect();
    if names.len() > MOST {
        text.push(format!("and {} more", names.len() - MOST));
    }
    text.join(", ")
}

fn names_of(types: TypeSet, is_integer: bool) -> String {
    let number = if is_integer { "integer" } else { "number" };
    let names = [
        (TypeSet::NULL, "null"),
        (TypeSet::FALSE, "false"),
        (TypeSet::TRUE, "true"),
        (TypeSet::NUMBER, number),
        (TypeSet::STRING, "string"),
        (TypeSet::ARRAY, "array"),
        (TypeSet::OBJECT, "object"),
    ];
    let names: Vec<&str> =
        names.into_iter().filter(|(each, _)| types.has(*each)).map(|(_, name)| name).collect();
    names.join(", ").replace("false, true", "boolean")
}
