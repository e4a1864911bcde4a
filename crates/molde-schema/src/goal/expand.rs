//! From a goal to its typed alternatives.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaError};
use crate::ir::{Applicator, Demand, Node, NodeId, TypeSet};
use crate::number::{NumberAutomaton, NumberError, NumberSpec};

use super::formula::FormulaId;
use super::partial::{Evaluation, Partial, Scopes, Todo, least};
use super::shape::StringShape;
use super::violation::Fork;
use super::{
    Alternative, ArrayId, GoalId, GoalLimit, Goals, Literal, NumberId, ObjectId, StringId,
};

/// `minLength` and `maxLength`.
type LengthBounds = (u64, Option<u64>);

/// Branches of an `anyOf` of which every subset is tried, where what they evaluate matters.
const MAX_EVALUATING_BRANCHES: usize = 12;

/// Scopes of one kind that one value can be in.
pub(super) const MAX_SCOPES: usize = 32;

/// As long as there are no more alternatives than this, choices are multiplied out: each is simple
/// then, and a text soon tells which it is.
const FEW_PARTIALS: usize = 64;

/// Steps after which multiplying out is given up where there is another way.
const FEW_STEPS: usize = 4_000;

/// A choice of so many branches is kept apart even where multiplying it out might do.
const SHORT_BRANCHES: usize = 4;

/// The bits of scopes of members among [`Scopes`].
const MEMBER_SCOPES: Scopes = 0xAAAA_AAAA_AAAA_AAAA;

/// How much one expansion may cost.
#[derive(Clone, Copy)]
struct Bounds {
    partials: usize,
    steps: usize,
}

/// Which choices of objects are kept apart from each other instead of being multiplied out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    Nothing,
    /// Those of few branches, and those that ask only which members there are.
    Short,
    All,
}

/// Why an expansion was given up.
enum Exceeded {
    /// There are too many alternatives to multiply out.
    Bound(GoalLimit),
    Other(GoalLimit),
}

impl From<GoalLimit> for Exceeded {
    fn from(limit: GoalLimit) -> Self {
        Self::Other(limit)
    }
}

/// The scalars of all partials, before they are united.
#[derive(Default)]
struct Scalars {
    literals: Vec<Literal>,
    numbers: Vec<NumberSpec>,
    /// Languages by their length bounds, in order of appearance.
    strings: Vec<(LengthBounds, Vec<Dfa>)>,
    /// Words that are listed.
    words: Vec<Box<str>>,
}

impl Goals {
    /// The alternatives of a goal, in schema order; some may turn out to be satisfied by nothing.
    pub(super) fn expand(&mut self, goal: GoalId) -> Result<Arc<[Alternative]>, GoalLimit> {
        let demands = self.ids[goal.0 as usize].clone();
        let partials = self.partials(&demands, TypeSet::ALL)?;
        let mut scalars = Scalars::default();
        let mut arrays: Vec<ArrayId> = Vec::new();
        let mut objects: Vec<ObjectId> = Vec::new();
        for partial in partials {
            for (types, literal) in [
                (TypeSet::NULL, Literal::Null),
                (TypeSet::FALSE, Literal::False),
                (TypeSet::TRUE, Literal::True),
            ] {
                if partial.types.has(types) && !scalars.literals.contains(&literal) {
                    scalars.literals.push(literal);
                }
            }
            if partial.types.has(TypeSet::NUMBER) {
                let number = partial.number.clone().unwrap_or_default();
                if !scalars.numbers.contains(&number) {
                    scalars.numbers.push(number);
                }
            }
            if partial.types.has(TypeSet::STRING)
                && let Some(words) = partial.listed_words()
            {
                scalars.words.extend(words);
            } else if partial.types.has(TypeSet::STRING) {
                let language =
                    self.language_of(&partial).map_err(|error| self.dfa_limit(&error, goal))?;
                let bounds = (partial.min_length, partial.max_length);
                match scalars.strings.iter_mut().find(|(known, _)| *known == bounds) {
                    Some((_, languages)) => languages.push(language),
                    None => scalars.strings.push((bounds, vec![language])),
                }
            }
            if partial.types.has(TypeSet::ARRAY)
                && let Some(id) = self.array_alternative(&partial.arrays, goal)?
                && !arrays.contains(&id)
            {
                arrays.push(id);
            }
            if partial.types.has(TypeSet::OBJECT)
                && let Some(id) = self.object_alternative(&partial.objects, goal)?
                && !objects.contains(&id)
            {
                objects.push(id);
            }
        }
        let mut alternatives: Vec<Alternative> = Vec::new();
        alternatives.extend(scalars.literals.into_iter().map(Alternative::Literal));
        if !scalars.numbers.is_empty() {
            alternatives.extend(self.number_alternative(scalars.numbers, goal)?);
        }
        if !scalars.words.is_empty() {
            let words = Dfa::from_words(scalars.words.iter().map(|word| &**word), &self.dfa_limits)
                .map_err(|error| self.dfa_limit(&error, goal))?;
            match scalars.strings.iter_mut().find(|(bounds, _)| *bounds == (0, None)) {
                Some((_, languages)) => languages.push(words),
                None => scalars.strings.push(((0, None), vec![words])),
            }
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

    /// The names that satisfy a node.
    pub(super) fn name_language(&mut self, node: NodeId) -> Result<Arc<Dfa>, GoalLimit> {
        if let Some(known) = self.name_languages.get(&node) {
            return Ok(Arc::clone(known));
        }
        let mut union = Vec::new();
        for partial in self.partials(&[Demand::holds(node)], TypeSet::STRING)? {
            let limit = |error: DfaError| {
                GoalLimit::from_dfa(&error, self.schema.node(node).pointer.clone())
            };
            if let Some(words) = partial.listed_words() {
                let words = words.iter().map(|word| &**word);
                union.push(Dfa::from_words(words, &self.dfa_limits).map_err(limit)?);
                continue;
            }
            let language = self.language_of(&partial).map_err(limit)?;
            let bounds = Dfa::with_chars(partial.min_length, partial.max_length, &self.dfa_limits)
                .and_then(|lengths| language.intersect(&lengths, &self.dfa_limits));
            union.push(bounds.map_err(limit)?);
        }
        let language = self
            .union(union)
            .map_err(|error| GoalLimit::from_dfa(&error, self.schema.node(node).pointer.clone()))?;
        let language = Arc::new(language);
        self.name_languages.insert(node, Arc::clone(&language));
        Ok(language)
    }

    /// Every way to meet some demands, as sets of rules.
    ///
    /// Choices are multiplied out as long as there are few. Where they are many, each type is looked
    /// at by itself, since most choices are about one type, and the choices of objects become
    /// conditions that stay apart: first those that are said in a few words, then all.
    fn partials(&mut self, demands: &[Demand], types: TypeSet) -> Result<Vec<Partial>, GoalLimit> {
        let limits = self.options.limits;
        let few = Bounds {
            partials: FEW_PARTIALS.min(limits.alternatives),
            steps: FEW_STEPS.min(limits.expansion_steps),
        };
        let most = Bounds { partials: limits.alternatives, steps: limits.expansion_steps };
        match self.multiply(demands, types, few, Apart::Nothing) {
            Err(Exceeded::Bound(_)) => {}
            Err(Exceeded::Other(limit)) => return Err(limit),
            Ok(partials) => return Ok(partials),
        }
        let mut all = Vec::new();
        for kind in types.each() {
            let mut found = self.multiply(demands, kind, few, Apart::Nothing);
            for apart in [Apart::Short, Apart::All] {
                if matches!(found, Err(Exceeded::Bound(_))) {
                    found = self.multiply(demands, kind, most, apart);
                }
            }
            match found {
                Ok(found) => all.extend(found),
                Err(Exceeded::Bound(limit) | Exceeded::Other(limit)) => return Err(limit),
            }
        }
        Ok(all)
    }

    /// Multiplies choices out, but for those that stay apart. Depth first, so that partials come in
    /// schema order.
    fn multiply(
        &mut self,
        demands: &[Demand],
        types: TypeSet,
        bounds: Bounds,
        apart: Apart,
    ) -> Result<Vec<Partial>, Exceeded> {
        let schema = Arc::clone(&self.schema);
        let pointer = || {
            demands
                .first()
                .map_or_else(String::new, |first| schema.node(first.node()).pointer.clone())
        };
        let exceeded = |name, limit: usize, unit| GoalLimit {
            name,
            limit: limit as u64,
            unit,
            pointer: pointer(),
        };
        let mut first = Partial::new(demands);
        first.types = types;
        let mut open = vec![first];
        let mut finished = Vec::new();
        let mut steps = 0;
        while let Some(mut partial) = open.pop() {
            loop {
                steps += 1;
                if steps > bounds.steps {
                    return Err(Exceeded::Bound(exceeded(
                        "expansion_steps",
                        bounds.steps,
                        "steps",
                    )));
                }
                let Some(todo) = partial.todo.pop().or_else(|| partial.later.pop()) else {
                    finished.push(partial);
                    if finished.len() > bounds.partials {
                        let limit = exceeded("alternatives", bounds.partials, "alternatives");
                        return Err(Exceeded::Bound(limit));
                    }
                    break;
                };
                if let Todo::Demand(demand, scopes) = todo {
                    let node = schema.node(demand.node());
                    if !node.data.is_empty() && !self.is_upper {
                        // Whoever asks for the value decides its rules first.
                        let limit = exceeded("data", 0, "rules of `$data` left open");
                        let pointer = node.pointer.clone();
                        return Err(Exceeded::Other(GoalLimit { pointer, ..limit }));
                    }
                    if !self.apply(&mut partial, demand, scopes) {
                        break;
                    }
                    if partial.has_too_many_scopes() {
                        let limit = exceeded("scopes", MAX_SCOPES, "`unevaluated…`");
                        return Err(Exceeded::Other(limit));
                    }
                    continue;
                }
                if apart != Apart::Nothing
                    && partial.types == TypeSet::STRING
                    && let Some(language) = self.language_of_choice(&todo)
                {
                    if language.is_empty() {
                        break;
                    }
                    if !language.is_universal() {
                        partial.languages.push(language);
                    }
                    continue;
                }
                match self.kept_apart(&mut partial, &todo, apart)? {
                    Some(FormulaId::MET) => continue,
                    Some(FormulaId::LOST) => break,
                    Some(condition) => {
                        partial.objects.conditions.push(condition);
                        continue;
                    }
                    None => {}
                }
                let forks = match todo {
                    Todo::Demand(..) => Vec::new(),
                    Todo::Choice(node, applicator, scopes) => {
                        match self.choice(&partial, node, applicator, scopes) {
                            Err(limit) if limit.name == "evaluating_branches" => {
                                return Err(Exceeded::Bound(limit));
                            }
                            forks => forks?,
                        }
                    }
                    Todo::Violation(node) => {
                        let forks = self.violations(node, partial.types)?;
                        forks.into_iter().map(|fork| (fork, 0)).collect()
                    }
                    Todo::NotAll(demands) => {
                        demands.iter().map(|&demand| (Fork::Demands(vec![!demand]), 0)).collect()
                    }
                };
                // A way that demands nothing more makes the others superfluous.
                if forks.iter().any(|(fork, scopes)| *scopes == 0 && partial.has(fork)) {
                    continue;
                }
                steps += forks.len();
                for (fork, scopes) in forks.into_iter().rev() {
                    let mut forked = partial.clone();
                    if self.take(&mut forked, fork, scopes) {
                        open.push(forked);
                    }
                }
                break;
            }
        }
        Ok(finished)
    }

    /// A choice as a condition on one type, where it is to stay apart. What the type alone decides
    /// is met or lost.
    fn kept_apart(
        &mut self,
        partial: &mut Partial,
        todo: &Todo,
        apart: Apart,
    ) -> Result<Option<FormulaId>, GoalLimit> {
        let kind = partial.types;
        if apart == Apart::Nothing || !kind.is_single() {
            return Ok(None);
        }
        let schema = Arc::clone(&self.schema);
        let mut evaluates = false;
        let (condition, branches) = match todo {
            Todo::Demand(..) => return Ok(None),
            Todo::Choice(node, index, scopes) => {
                let applicator = &schema.node(*node).applicators[*index];
                let branches = match applicator {
                    Applicator::All(_) => 1,
                    Applicator::Any(list) | Applicator::Constants(list) | Applicator::One(list) => {
                        list.len()
                    }
                    Applicator::Cases(list) => list.len(),
                };
                let condition = self.applied(applicator, kind)?;
                // Of the scopes, only those that evaluate children of this type matter.
                let scopes = match kind {
                    TypeSet::OBJECT => scopes & MEMBER_SCOPES,
                    TypeSet::ARRAY => scopes & !MEMBER_SCOPES,
                    _ => 0,
                };
                if scopes != 0 && condition.is_some() && condition != Some(FormulaId::LOST) {
                    evaluates = true;
                    if !self.evaluate_apart(partial, applicator, scopes)? {
                        return Ok(None);
                    }
                }
                (condition, branches)
            }
            Todo::Violation(node) => (self.condition(Demand::fails(*node), kind)?, 1),
            Todo::NotAll(demands) => (self.one_fails(demands, kind)?, demands.len()),
        };
        let Some(condition) = condition else { return Ok(None) };
        let is_short = evaluates || branches <= SHORT_BRANCHES || self.is_about_presence(condition);
        Ok((apart == Apart::All || is_short || condition <= FormulaId::LOST).then_some(
            // The upper bound leaves out what members must meet together.
            if self.is_upper && condition != FormulaId::LOST { FormulaId::MET } else { condition },
        ))
    }

    /// Notes for the scopes around a choice what its branches evaluate, each under the condition
    /// that it holds; `false` if that cannot be said.
    fn evaluate_apart(
        &mut self,
        partial: &mut Partial,
        applicator: &Applicator,
        scopes: Scopes,
    ) -> Result<bool, GoalLimit> {
        let inside = |at: usize| is_in(scopes, at, 1);
        let is_violated = |(at, scope): (usize, &Evaluation)| inside(at) && scope.is_violated;
        if scopes & MEMBER_SCOPES == 0 || partial.objects.scopes.iter().enumerate().any(is_violated)
        {
            return Ok(false);
        }
        let mut found = Vec::new();
        if !self.evaluators(applicator, FormulaId::MET, &mut found)? {
            return Ok(false);
        }
        for (_, scope) in partial.objects.scopes.iter_mut().enumerate().filter(|x| inside(x.0)) {
            for &(guard, node) in &found {
                if guard == FormulaId::MET {
                    push_new(&mut scope.nodes, node);
                } else if !scope.guarded.contains(&(guard, node)) {
                    scope.guarded.push((guard, node));
                }
            }
        }
        Ok(true)
    }

    /// Adds one demand's own rules and queues what it applies; `false` if nothing is left.
    fn apply(&self, partial: &mut Partial, demand: Demand, scopes: Scopes) -> bool {
        match partial.note(demand, scopes) {
            None => return false,
            Some(false) => return true,
            Some(true) => {}
        }
        let id = demand.node();
        if demand.is_negated() {
            partial.later.push(Todo::Violation(id));
            return !self.schema.node(id).is_true();
        }
        let node = self.schema.node(id);
        if !partial.restrict(node.types) {
            return false;
        }
        if let Some(number) = &node.number {
            partial.restrict_number(number);
        }
        if let Some(string) = &node.string {
            if !partial.restrict_length(string.min_length, string.max_length) {
                return false;
            }
            let languages = if self.is_upper { &string.outer_languages } else { &string.languages };
            partial.languages.extend(languages.iter().cloned());
            if string.words.as_ref().is_some_and(|words| !partial.restrict_words(words)) {
                return false;
            }
        }
        let scopes =
            if demand.is_bare() { 0 } else { open_scopes(partial, id, node, scopes, false) };
        if node.array.is_some() {
            push_new(&mut partial.arrays.nodes, id);
        }
        if node.object.is_some() {
            push_new(&mut partial.objects.nodes, id);
        }
        if demand.is_bare() {
            return true;
        }
        for (index, applicator) in node.applicators.iter().enumerate().rev() {
            match applicator {
                Applicator::All(demand) if demand.is_negated() => partial.demand(*demand, 0),
                Applicator::All(demand) => partial.demand(*demand, scopes),
                _ => partial.todo.push(Todo::Choice(id, index, scopes)),
            }
        }
        true
    }

    /// The branches of an applicator that offers a choice, with the scopes they stand in.
    fn choice(
        &mut self,
        partial: &Partial,
        id: NodeId,
        applicator: usize,
        scopes: Scopes,
    ) -> Result<Vec<(Fork, Scopes)>, GoalLimit> {
        let schema = Arc::clone(&self.schema);
        let node = schema.node(id);
        let holds = |branch: &NodeId| Demand::holds(*branch);
        Ok(match &node.applicators[applicator] {
            Applicator::All(_) => Vec::new(),
            Applicator::Constants(branches) => {
                branches.iter().map(|branch| (Fork::Demands(vec![holds(branch)]), 0)).collect()
            }
            Applicator::Any(branches) if scopes == 0 => {
                branches.iter().map(|branch| (Fork::Demands(vec![holds(branch)]), 0)).collect()
            }
            Applicator::Any(branches) => {
                if branches.len() > MAX_EVALUATING_BRANCHES {
                    return Err(GoalLimit {
                        name: "evaluating_branches",
                        limit: MAX_EVALUATING_BRANCHES as u64,
                        unit: "branches of `anyOf` below `unevaluated…`",
                        pointer: node.pointer.clone(),
                    });
                }
                // Every branch that holds evaluates: all sets of branches are tried, and where
                // evaluating is unwelcome the others must fail.
                let is_exact = partial
                    .arrays
                    .scopes
                    .iter()
                    .enumerate()
                    .map(|(at, scope)| (2 * at, scope))
                    .chain(partial.objects.scopes.iter().enumerate().map(|(at, s)| (2 * at + 1, s)))
                    .any(|(bit, scope)| scope.is_violated && scopes >> bit & 1 == 1);
                let mut subsets: Vec<u32> = (1..1u32 << branches.len()).collect();
                subsets.sort_by_key(|subset| subset.count_ones());
                subsets
                    .into_iter()
                    .map(|subset| {
                        let demands = branches.iter().enumerate().filter_map(|(at, branch)| {
                            if subset >> at & 1 == 1 {
                                Some(holds(branch))
                            } else {
                                is_exact.then(|| !holds(branch))
                            }
                        });
                        (Fork::Demands(demands.collect()), scopes)
                    })
                    .collect()
            }
            Applicator::One(branches) => {
                let mut forks = Vec::with_capacity(branches.len());
                let are_apart = self.is_upper || self.have_discriminator(branches);
                for (at, &branch) in branches.iter().enumerate() {
                    let mut demands = vec![Demand::holds(branch)];
                    for (other_at, &other) in branches.iter().enumerate() {
                        if !are_apart
                            && other_at != at
                            && !self.are_disjoint(partial, branch, other)
                        {
                            demands.push(Demand::fails(other));
                        }
                    }
                    forks.push((Fork::Demands(demands), scopes));
                }
                forks
            }
            // An `if` that nothing follows from is of interest only to who asks what it evaluated.
            Applicator::Cases(cases) if scopes == 0 && is_certain(cases) => {
                vec![(Fork::Demands(Vec::new()), 0)]
            }
            Applicator::Cases(cases) => {
                cases.iter().map(|case| (Fork::Demands(case.to_vec()), scopes)).collect()
            }
        })
    }

    /// Whether two nodes are known to have no value in common, at least in the company of what
    /// else the value must satisfy.
    fn are_disjoint(&mut self, partial: &Partial, one: NodeId, two: NodeId) -> bool {
        let both = [Demand::holds(one), Demand::holds(two)];
        self.is_impossible(both) || self.is_impossible(partial.company().chain(both))
    }

    /// Adds one branch of a choice; `false` if nothing is left.
    fn take(&self, partial: &mut Partial, fork: Fork, scopes: Scopes) -> bool {
        match fork {
            Fork::Demands(demands) => {
                for demand in demands.into_iter().rev() {
                    partial.demand(demand, if demand.is_negated() { 0 } else { scopes });
                }
                true
            }
            Fork::Types(types) => partial.restrict(types),
            Fork::Number(spec) => {
                partial.restrict_number(&spec);
                partial.restrict(TypeSet::NUMBER)
            }
            Fork::Length(min, max) => {
                partial.restrict_length(min, max) && partial.restrict(TypeSet::STRING)
            }
            Fork::Language(language) => {
                partial.languages.push(language);
                partial.restrict(TypeSet::STRING)
            }
            Fork::NotWords(words) => {
                partial.excluded.push(words);
                partial.restrict(TypeSet::STRING)
            }
            Fork::ItemCount(min, max) => {
                let rules = &mut partial.arrays;
                rules.min_items = rules.min_items.max(min);
                rules.max_items = least(rules.max_items, max);
                rules.max_items.is_none_or(|max| rules.min_items <= max)
                    && partial.restrict(TypeSet::ARRAY)
            }
            Fork::Items(counter) => {
                if !partial.arrays.counters.contains(&counter) {
                    partial.arrays.counters.push(counter);
                }
                partial.restrict(TypeSet::ARRAY)
            }
            Fork::Repeats => {
                partial.arrays.repeats = true;
                partial.restrict(TypeSet::ARRAY)
            }
            Fork::MemberCount(min, max) => {
                let rules = &mut partial.objects;
                rules.min_properties = rules.min_properties.max(min);
                rules.max_properties = least(rules.max_properties, max);
                rules.max_properties.is_none_or(|max| rules.min_properties <= max)
                    && partial.restrict(TypeSet::OBJECT)
            }
            Fork::Members(condition) => {
                partial.objects.conditions.push(condition);
                partial.restrict(TypeSet::OBJECT)
            }
            Fork::UnevaluatedItem(node) => {
                partial.restrict(TypeSet::ARRAY) && self.apply_unevaluated(partial, node)
            }
            Fork::UnevaluatedMember(node) => {
                partial.restrict(TypeSet::OBJECT) && self.apply_unevaluated(partial, node)
            }
            Fork::NoCase(cases) => {
                partial.later.extend(cases.into_iter().rev().map(Todo::NotAll));
                true
            }
        }
    }

    /// Applies a node of which only an `unevaluated…` keyword is not met.
    fn apply_unevaluated(&self, partial: &mut Partial, id: NodeId) -> bool {
        let node = self.schema.node(id);
        if !partial.restrict(node.types) {
            return false;
        }
        let scopes = open_scopes(partial, id, node, 0, true);
        if node.array.is_some() {
            push_new(&mut partial.arrays.nodes, id);
        }
        if node.object.is_some() {
            push_new(&mut partial.objects.nodes, id);
        }
        for (index, applicator) in node.applicators.iter().enumerate().rev() {
            match applicator {
                Applicator::All(demand) => {
                    partial.demand(*demand, if demand.is_negated() { 0 } else { scopes });
                }
                _ => partial.todo.push(Todo::Choice(id, index, scopes)),
            }
        }
        true
    }

    pub(super) fn number_alternative(
        &mut self,
        specs: Vec<NumberSpec>,
        goal: GoalId,
    ) -> Result<Option<Alternative>, GoalLimit> {
        if let Some(index) = self.number_specs.get_index_of(&specs) {
            return Ok(Some(Alternative::Number(NumberId(index as u32))));
        }
        let style = self.options.number_style;
        let automaton = NumberAutomaton::new(&specs, style, &self.number_limits)
            .map_err(|error| self.number_limit(&error, goal))?;
        if automaton.is_empty() {
            return Ok(None);
        }
        self.number_specs.insert(specs);
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

    /// The strings of a partial that lists no words, but for their lengths.
    fn language_of(&self, partial: &Partial) -> Result<Dfa, DfaError> {
        let mut languages = partial.languages.iter();
        let first = languages.next().map_or_else(Dfa::any_string, |first| (**first).clone());
        let language = languages.try_fold(first, |language, next| {
            if language == **next {
                Ok(language)
            } else {
                language.intersect(next, &self.dfa_limits)
            }
        })?;
        if partial.excluded.is_empty() {
            return Ok(language);
        }
        let words = partial.excluded.iter().flat_map(|list| list.iter());
        let words = Dfa::from_words(words.map(|word| &**word), &self.dfa_limits)?;
        language.difference(&words, &self.dfa_limits)
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

/// Whether one of the cases is that of every value: a demand and its negation, and nothing else.
fn is_certain(cases: &[Box<[Demand]>]) -> bool {
    matches!(cases, [one, two] if matches!((&**one, &**two), (&[one], &[two]) if one == !two))
}

/// The scopes that are open inside a node: those around it and its own. Notes in all of them that
/// the node's rules evaluate children.
///
/// Bit 2n is scope n of the items, bit 2n + 1 scope n of the members.
fn open_scopes(
    partial: &mut Partial,
    id: NodeId,
    node: &Node,
    around: Scopes,
    is_violated: bool,
) -> Scopes {
    let mut scopes = around;
    let kinds = [
        (&mut partial.arrays.scopes, node.unevaluated_items, node.array.is_some()),
        (&mut partial.objects.scopes, node.unevaluated_properties, node.object.is_some()),
    ];
    for (kind, (list, rest, evaluates)) in kinds.into_iter().enumerate() {
        if let Some(rest) = rest {
            for (at, scope) in list.iter_mut().enumerate() {
                // Whatever is left, this keyword takes it.
                scope.is_complete |= is_in(around, at, kind);
            }
            let known =
                list.iter().position(|scope| scope.owner == id && scope.is_violated == is_violated);
            let at = known.unwrap_or_else(|| {
                list.push(Evaluation {
                    owner: id,
                    rest,
                    is_violated,
                    nodes: Vec::new(),
                    guarded: Vec::new(),
                    is_complete: false,
                });
                list.len() - 1
            });
            // Beyond the limit the whole expansion fails: see `Partial::has_too_many_scopes`.
            scopes |= 1u64.checked_shl((2 * at + kind) as u32).unwrap_or(0);
        }
        if evaluates {
            for (at, scope) in list.iter_mut().enumerate() {
                if is_in(scopes, at, kind) {
                    push_new(&mut scope.nodes, id);
                }
            }
        }
    }
    scopes
}

fn is_in(scopes: Scopes, at: usize, kind: usize) -> bool {
    scopes.checked_shr((2 * at + kind) as u32).is_some_and(|bits| bits & 1 == 1)
}

fn push_new(list: &mut Vec<NodeId>, node: NodeId) {
    if !list.contains(&node) {
        list.push(node);
    }
}
