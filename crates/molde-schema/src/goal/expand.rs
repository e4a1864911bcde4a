//! From a goal to its typed alternatives.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaError};
use crate::ir::{Applicator, NodeId, TypeSet};
use crate::number::{NumberAutomaton, NumberError, NumberLimits, NumberSpec};

use super::shape::{ArrayShape, ObjectShape, StringShape};
use super::{
    Alternative, ArrayId, GoalId, GoalLimit, Goals, Literal, NumberId, ObjectId, StringId,
};

/// What is left to apply to a partial.
#[derive(Debug, Clone)]
enum Todo {
    Node(NodeId),
    /// Applicator `.1` of a node, an `anyOf`.
    Choice(NodeId, usize),
}

/// The rules collected on one path through the choices: a conjunction for one value.
#[derive(Debug, Clone, Default)]
struct Partial {
    done: Vec<NodeId>,
    /// A stack: what comes first in the schema is on top.
    todo: Vec<Todo>,
    types: Option<TypeSet>,
    number: Option<NumberSpec>,
    min_length: u64,
    max_length: Option<u64>,
    languages: Vec<Arc<Dfa>>,
    arrays: Vec<NodeId>,
    objects: Vec<NodeId>,
}

impl Partial {
    fn types(&self) -> TypeSet {
        self.types.unwrap_or(TypeSet::ALL)
    }
}

/// `minLength` and `maxLength`.
type LengthBounds = (u64, Option<u64>);

/// The scalars of all partials, before they are united.
#[derive(Default)]
struct Scalars {
    literals: Vec<Literal>,
    numbers: Vec<NumberSpec>,
    /// Languages by their length bounds, in order of appearance.
    strings: Vec<(LengthBounds, Vec<Dfa>)>,
}

impl Goals {
    /// The alternatives of a goal, in schema order; some may turn out to be satisfied by nothing.
    pub(super) fn expand(&mut self, goal: GoalId) -> Result<Arc<[Alternative]>, GoalLimit> {
        let nodes = self.ids[goal.0 as usize].clone();
        let partials = self.partials(&nodes)?;
        let mut scalars = Scalars::default();
        let mut arrays: Vec<ArrayId> = Vec::new();
        let mut objects: Vec<ObjectId> = Vec::new();
        for partial in partials {
            for (types, literal) in [
                (TypeSet::NULL, Literal::Null),
                (TypeSet::FALSE, Literal::False),
                (TypeSet::TRUE, Literal::True),
            ] {
                if partial.types().has(types) && !scalars.literals.contains(&literal) {
                    scalars.literals.push(literal);
                }
            }
            if partial.types().has(TypeSet::NUMBER) {
                let number = partial.number.clone().unwrap_or_default();
                if !scalars.numbers.contains(&number) {
                    scalars.numbers.push(number);
                }
            }
            if partial.types().has(TypeSet::STRING) {
                let language = self
                    .intersection(&partial.languages)
                    .map_err(|error| self.dfa_limit(&error, goal))?;
                let bounds = (partial.min_length, partial.max_length);
                match scalars.strings.iter_mut().find(|(known, _)| *known == bounds) {
                    Some((_, languages)) => languages.push(language),
                    None => scalars.strings.push((bounds, vec![language])),
                }
            }
            if partial.types().has(TypeSet::ARRAY) {
                let shape = ArrayShape::merge(self, &partial.arrays);
                let (index, _) = self.arrays.insert_full(Arc::new(shape));
                if !arrays.contains(&ArrayId(index as u32)) {
                    arrays.push(ArrayId(index as u32));
                }
            }
            if partial.types().has(TypeSet::OBJECT) {
                let shape = ObjectShape::merge(self, &partial.objects);
                let (index, new) = self.objects.insert_full(Arc::new(shape));
                if new {
                    self.extra_names.push(None);
                    self.member_costs.push(None);
                }
                if !objects.contains(&ObjectId(index as u32)) {
                    objects.push(ObjectId(index as u32));
                }
            }
        }
        let mut alternatives: Vec<Alternative> = Vec::new();
        alternatives.extend(scalars.literals.into_iter().map(Alternative::Literal));
        if !scalars.numbers.is_empty() {
            alternatives.extend(self.number_alternative(scalars.numbers, goal)?);
        }
        for ((min_length, max_length), languages) in scalars.strings {
            let shape = self
                .union(languages)
                .and_then(|language| {
                    StringShape::new(language, min_length, max_length, &self.dfa_limits)
                })
                .map_err(|error| self.dfa_limit(&error, goal))?;
            if let Some(shape) = shape {
                let (index, _) = self.strings.insert_full(Arc::new(shape));
                alternatives.push(Alternative::String(StringId(index as u32)));
            }
        }
        let most = self.options.limits.threads;
        if arrays.len().max(objects.len()) > most {
            return Err(GoalLimit {
                name: "threads",
                limit: most as u64,
                unit: "alternatives of one type",
                pointer: self.pointer(goal),
            });
        }
        alternatives.extend(arrays.into_iter().map(Alternative::Array));
        alternatives.extend(objects.into_iter().map(Alternative::Object));
        Ok(alternatives.into())
    }

    /// Multiplies the choices out. Depth first, so that partials come in schema order.
    fn partials(&self, nodes: &[NodeId]) -> Result<Vec<Partial>, GoalLimit> {
        let limits = &self.options.limits;
        let exceeded = |name, limit: usize, unit| GoalLimit {
            name,
            limit: limit as u64,
            unit,
            pointer: nodes
                .first()
                .map_or_else(String::new, |&node| self.schema.node(node).pointer.clone()),
        };
        let first = Partial {
            todo: nodes.iter().rev().map(|&node| Todo::Node(node)).collect(),
            ..Partial::default()
        };
        let mut open = vec![first];
        let mut finished = Vec::new();
        let mut steps = 0;
        while let Some(mut partial) = open.pop() {
            loop {
                steps += 1;
                if steps > limits.expansion_steps {
                    return Err(exceeded("expansion_steps", limits.expansion_steps, "steps"));
                }
                match partial.todo.pop() {
                    None => {
                        finished.push(partial);
                        if finished.len() > limits.alternatives {
                            return Err(exceeded(
                                "alternatives",
                                limits.alternatives,
                                "alternatives",
                            ));
                        }
                        break;
                    }
                    Some(Todo::Node(node)) => {
                        if !self.apply(&mut partial, node) {
                            break;
                        }
                    }
                    Some(Todo::Choice(node, applicator)) => {
                        let branches = match &self.schema.node(node).applicators[applicator] {
                            Applicator::Any(branches) => branches.as_slice(),
                            Applicator::All(_) => &[],
                        };
                        steps += branches.len();
                        if steps > limits.expansion_steps {
                            let limit = limits.expansion_steps;
                            return Err(exceeded("expansion_steps", limit, "steps"));
                        }
                        for &branch in branches.iter().rev() {
                            let mut fork = partial.clone();
                            fork.todo.push(Todo::Node(branch));
                            open.push(fork);
                        }
                        break;
                    }
                }
            }
        }
        Ok(finished)
    }

    /// Adds one node's own rules and queues its applicators; `false` if nothing is left.
    fn apply(&self, partial: &mut Partial, id: NodeId) -> bool {
        if partial.done.contains(&id) {
            return true;
        }
        partial.done.push(id);
        let node = self.schema.node(id);
        let mut types = partial.types().intersect(node.types);
        if let Some(number) = &node.number {
            let number = match &partial.number {
                Some(known) => known.intersect(number),
                None => (**number).clone(),
            };
            partial.number = Some(number);
        }
        if let Some(string) = &node.string {
            partial.min_length = partial.min_length.max(string.min_length);
            partial.max_length = match (partial.max_length, string.max_length) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            if partial.max_length.is_some_and(|max| max < partial.min_length) {
                types = types.without(TypeSet::STRING);
            }
            partial.languages.extend(string.languages.iter().cloned());
        }
        if node.array.is_some() {
            partial.arrays.push(id);
        }
        if node.object.is_some() {
            partial.objects.push(id);
        }
        partial.types = Some(types);
        for (index, applicator) in node.applicators.iter().enumerate().rev() {
            partial.todo.push(match applicator {
                Applicator::All(target) => Todo::Node(*target),
                Applicator::Any(_) => Todo::Choice(id, index),
            });
        }
        types != TypeSet::NONE
    }

    fn number_alternative(
        &mut self,
        specs: Vec<NumberSpec>,
        goal: GoalId,
    ) -> Result<Option<Alternative>, GoalLimit> {
        if let Some(index) = self.number_specs.iter().position(|known| *known == specs) {
            return Ok(Some(Alternative::Number(NumberId(index as u32))));
        }
        let style = self.options.number_style;
        let automaton = NumberAutomaton::new(&specs, style, &NumberLimits::default())
            .map_err(|error| self.number_limit(&error, goal))?;
        if automaton.is_empty() {
            return Ok(None);
        }
        self.number_specs.push(specs);
        self.numbers.push(automaton);
        Ok(Some(Alternative::Number(NumberId(self.numbers.len() as u32 - 1))))
    }

    fn number_limit(&self, error: &NumberError, goal: GoalId) -> GoalLimit {
        let (name, limit, unit) = match error {
            NumberError::TooManyExcludedDivisors { limit, .. } => {
                ("max_excluded_divisors", u64::from(*limit), "divisors")
            }
            _ => ("max_decimal_digits", 0, "digits"),
        };
        GoalLimit { name, limit, unit, pointer: self.pointer(goal) }
    }

    fn intersection(&self, languages: &[Arc<Dfa>]) -> Result<Dfa, DfaError> {
        match languages {
            [] => Ok(Dfa::any_string()),
            [first, rest @ ..] => rest.iter().try_fold((**first).clone(), |language, next| {
                if language == **next {
                    Ok(language)
                } else {
                    language.intersect(next, &self.dfa_limits)
                }
            }),
        }
    }

    fn union(&self, languages: Vec<Dfa>) -> Result<Dfa, DfaError> {
        let mut languages = languages.into_iter();
        let first = languages.next().unwrap_or_else(Dfa::empty);
        languages.try_fold(first, |language, next| {
            if language == next || language.is_universal() {
                Ok(language)
            } else {
                language.union(&next, &self.dfa_limits)
            }
        })
    }

    fn dfa_limit(&self, error: &DfaError, goal: GoalId) -> GoalLimit {
        GoalLimit::from_dfa(error, self.pointer(goal))
    }
}
