//! The names that an object may have beyond the declared ones.

use std::sync::Arc;

use crate::dfa::Dfa;
use crate::ir::NodeId;

use super::condition::Literal;
use super::items::Bytes;
use super::member::{NameRule, NameView};
use super::partial::Selector;
use super::rule::RuleId;

use super::{GoalLimit, Goals, ObjectId, ObjectShape};

/// Undeclared names, as disjoint classes. A class whose members can have no value is left out.
///
/// Declared names are *not* left out of the languages: whoever reads a key knows them anyway.
#[derive(Debug)]
pub(crate) struct ExtraNames {
    pub(crate) classes: Box<[Arc<NameClass>]>,
    /// The limit that a class was beyond which is left out for it.
    pub(crate) beyond: Option<GoalLimit>,
}

/// Names to which the same rules apply.
#[derive(Debug)]
pub(crate) struct NameClass {
    pub(crate) language: Dfa,
    /// What a member must be.
    pub(crate) rule: RuleId,
    /// Number of names from each state of the language; `u64::MAX` for infinitely many.
    word_counts: Box<[u64]>,
}

/// All classes of the names of an object, or why they cannot be told apart.
pub(super) type Classes = Result<Arc<[Arc<NameClass>]>, GoalLimit>;

/// Nodes visited at most when names are listed: far more than any schema in use needs.
const NAME_SEARCH_STEPS: usize = 400_000;

impl NameClass {
    fn new(language: Dfa, rule: RuleId) -> Self {
        let word_counts = word_counts(&language);
        Self { language, rule, word_counts }
    }

    /// Number of names that go on from `state`; `u64::MAX` if there are infinitely many.
    pub(crate) fn names_from(&self, state: u32) -> u64 {
        self.word_counts[state as usize]
    }
}

impl ExtraNames {
    /// Up to `count` of the shortest names of each class that `is_taken` does not rule out, with the
    /// class they belong to.
    /// `continues` restricts the names to those that begin with bytes already read: the states
    /// after these bytes, one for each class. The names returned are the bytes that follow.
    pub(crate) fn fresh(
        &self,
        count: usize,
        continues: Option<&[u32]>,
        mut is_taken: impl FnMut(&[u8]) -> bool,
    ) -> Vec<(Vec<u8>, usize)> {
        let mut found = Vec::new();
        for (index, class) in self.classes.iter().enumerate() {
            let state = continues.map_or(class.language.start(), |states| states[index]);
            if state == Dfa::DEAD {
                continue;
            }
            // Control characters need a long escape in JSON: such names only where there are no
            // others.
            for least in [b' ', 0] {
                let mut names = Vec::new();
                let mut steps = 0;
                let mut length = 0;
                while names.len() < count
                    && steps < NAME_SEARCH_STEPS
                    && (class.names_from(state) == u64::MAX || length <= class.language.states())
                {
                    let language = &class.language;
                    let mut search =
                        Search { language, length, least, word: Vec::new(), steps: &mut steps };
                    search.run(state, &mut |word| {
                        if !is_taken(word) {
                            names.push((word.to_vec(), index));
                        }
                        names.len() < count
                    });
                    length += 1;
                }
                if names.len() >= count || least == 0 {
                    found.extend(names);
                    break;
                }
            }
        }
        found
    }
}

/// Lists the words of exactly one length, in byte order.
struct Search<'a> {
    language: &'a Dfa,
    length: usize,
    /// The first byte that is looked at.
    least: u8,
    word: Vec<u8>,
    steps: &'a mut usize,
}

impl Search<'_> {
    /// Calls `visit` for each word until it answers `false`; then answers `false` as well.
    fn run(&mut self, state: u32, visit: &mut impl FnMut(&[u8]) -> bool) -> bool {
        *self.steps += 1;
        if *self.steps > NAME_SEARCH_STEPS {
            return false;
        }
        if self.word.len() == self.length {
            return !self.language.is_accepting(state) || visit(&self.word);
        }
        let left = self.length - self.word.len();
        for transition in self.language.transitions(state) {
            if self.language.shortest_len(transition.target) as usize >= left {
                continue;
            }
            for byte in transition.lo.max(self.least)..=transition.hi {
                self.word.push(byte);
                let go_on = self.run(transition.target, visit);
                self.word.pop();
                if !go_on {
                    return false;
                }
            }
        }
        true
    }
}

/// Number of words from each state of a language; `u64::MAX` where there are infinitely many.
pub(crate) fn word_counts(language: &Dfa) -> Box<[u64]> {
    let states = language.states();
    let mut incoming: Vec<Vec<u32>> = vec![Vec::new(); states];
    let mut open = vec![0u32; states];
    let mut counts = vec![u64::MAX; states];
    for state in 0..states as u32 {
        for transition in language.transitions(state) {
            incoming[transition.target as usize].push(state);
            open[state as usize] += 1;
        }
    }
    // A state is counted when all its successors are: those that reach a cycle never are.
    let mut done: Vec<u32> = (0..states as u32).filter(|&s| open[s as usize] == 0).collect();
    while let Some(state) = done.pop() {
        let through = |total: u64, transition: &crate::dfa::Transition| {
            let bytes = u64::from(transition.hi - transition.lo) + 1;
            total.saturating_add(counts[transition.target as usize].saturating_mul(bytes))
        };
        let own = u64::from(language.is_accepting(state));
        let count = language.transitions(state).iter().fold(own, through);
        counts[state as usize] = count.min(u64::MAX - 1);
        for &source in &incoming[state as usize] {
            open[source as usize] -= 1;
            if open[source as usize] == 0 {
                done.push(source);
            }
        }
    }
    counts.into()
}

impl Goals {
    /// The names beyond the declared ones that an object may have.
    pub(crate) fn extra_names(&mut self, id: ObjectId) -> Result<Arc<ExtraNames>, GoalLimit> {
        if let Some(known) = &self.extra_names[id.0 as usize] {
            return known.clone();
        }
        let names = self.find_extra_names(id).map(Arc::new);
        self.extra_names[id.0 as usize] = Some(names.clone());
        names
    }

    fn find_extra_names(&mut self, id: ObjectId) -> Result<ExtraNames, GoalLimit> {
        let mut classes = Vec::new();
        let mut beyond = None;
        for class in self.name_classes(id)?.iter() {
            let base = self.base_goal(class.rule);
            match self.shortest(base) {
                Ok(Some(_)) => classes.push(Arc::clone(class)),
                Ok(None) => {}
                Err(limit) => beyond = beyond.or(Some(limit)),
            }
        }
        Ok(ExtraNames { classes: classes.into(), beyond })
    }

    /// The extra names with what a fixpoint knows so far; `None` where the object needs none.
    pub(super) fn extra_names_so_far(
        &mut self,
        id: ObjectId,
        bytes: Bytes<'_>,
    ) -> Result<Option<ExtraNames>, GoalLimit> {
        if !needs_extra_names(self.object(id)) {
            return Ok(None);
        }
        let mut classes = Vec::new();
        for class in self.name_classes(id)?.iter() {
            let options = self.plan_options(class.rule)?;
            if options.iter().any(|option| bytes(option.goal).is_some()) {
                classes.push(Arc::clone(class));
            }
        }
        Ok(Some(ExtraNames { classes: classes.into(), beyond: None }))
    }

    /// Splits all names by which patterns they match, and collects what a member of each class must
    /// be.
    pub(super) fn name_classes(&mut self, id: ObjectId) -> Classes {
        if let Some(known) = self.name_classes.get(&id) {
            return known.clone();
        }
        let classes = self.find_name_classes(id);
        self.name_classes.insert(id, classes.clone());
        classes
    }

    fn find_name_classes(&mut self, id: ObjectId) -> Classes {
        let shape = Arc::clone(self.object(id));
        let patterns = self.patterns(&shape);
        let wants = self.wants(shape.condition);
        let classes = self.split_names(&patterns, "")?;
        Ok(classes
            .into_iter()
            .map(|(language, matched)| {
                let view = ClassView { patterns: &patterns, matched: &matched };
                let rule = self.member_rule(&shape.rules, &wants, &view);
                Arc::new(NameClass::new(language, rule))
            })
            .collect())
    }

    /// Splits all names by which of some languages they are in.
    pub(super) fn split_names(
        &self,
        patterns: &[(Arc<Dfa>, Option<NodeId>)],
        around: &str,
    ) -> Result<Vec<(Dfa, Vec<bool>)>, GoalLimit> {
        let mut classes: Vec<(Dfa, Vec<bool>)> = vec![(Dfa::any_string(), Vec::new())];
        for (pattern, owner) in patterns {
            let pointer = || {
                owner.map_or_else(
                    || around.to_owned(),
                    |node| self.schema.node(node).pointer.clone(),
                )
            };
            let mut split = Vec::with_capacity(classes.len() + 1);
            for (language, matched) in classes {
                let inside = language.intersect(pattern, &self.dfa_limits);
                let outside = language.difference(pattern, &self.dfa_limits);
                for (part, is_inside) in [(inside, true), (outside, false)] {
                    let part = part.map_err(|error| GoalLimit::from_dfa(&error, pointer()))?;
                    if !part.is_empty() {
                        let mut matched = matched.clone();
                        matched.push(is_inside);
                        split.push((part, matched));
                    }
                }
            }
            classes = split;
            if classes.len() > self.options.limits.alternatives {
                return Err(GoalLimit {
                    name: "alternatives",
                    limit: self.options.limits.alternatives as u64,
                    unit: "classes of names",
                    pointer: pointer(),
                });
            }
        }
        Ok(classes)
    }

    /// Every language of names that an object's rules and condition ask about, once, with the node it
    /// is from.
    fn patterns(&self, shape: &ObjectShape) -> Vec<(Arc<Dfa>, Option<NodeId>)> {
        let mut patterns: Vec<(Arc<Dfa>, Option<NodeId>)> = Vec::new();
        let mut push = |language: &Arc<Dfa>, owner| {
            if !patterns.iter().any(|(known, _)| Arc::ptr_eq(known, language)) {
                patterns.push((Arc::clone(language), owner));
            }
        };
        let mut of_nodes = Vec::new();
        for rule in &shape.rules {
            match rule {
                NameRule::Node(node) => of_nodes.push(*node),
                NameRule::Names(language) => push(language, None),
                NameRule::Unevaluated(nodes, _) => of_nodes.extend(nodes),
                NameRule::No(_) => {}
            }
        }
        for (literal, _) in &shape.reaches {
            let kinds = match &self.literals[literal.0 as usize] {
                Literal::No(_) => continue,
                Literal::EveryOf(node) => {
                    of_nodes.push(*node);
                    continue;
                }
                Literal::Every(selector, demand) => &[(selector.clone(), *demand)][..],
                Literal::Some(kinds) => kinds,
            };
            for (selector, _) in kinds {
                match selector {
                    Selector::Name(_) => {}
                    Selector::Pattern(language) | Selector::Outside(language) => {
                        push(language, None);
                    }
                    Selector::Rest(node) => of_nodes.push(*node),
                    Selector::Unevaluated(nodes) => of_nodes.extend(nodes),
                }
            }
        }
        for node in of_nodes {
            for (language, _) in
                self.schema.node(node).object.as_deref().map_or(&[][..], |rule| &rule.patterns)
            {
                push(language, Some(node));
            }
        }
        patterns
    }
}

/// Whether members with names that are not declared may be needed to finish an object.
pub(super) fn needs_extra_names(shape: &ObjectShape) -> bool {
    let required = shape.is_required.iter().filter(|&&required| required).count() as u64;
    shape.min_properties > required || shape.reaches.iter().any(|(_, reach)| reach.others)
}

/// The names of one class.
pub(super) struct ClassView<'a> {
    pub(super) patterns: &'a [(Arc<Dfa>, Option<NodeId>)],
    pub(super) matched: &'a [bool],
}

impl NameView for ClassView<'_> {
    fn declared(&self) -> Option<&str> {
        None
    }

    fn matches(&self, language: &Arc<Dfa>) -> bool {
        self.patterns
            .iter()
            .zip(self.matched)
            .any(|((pattern, _), matched)| *matched && Arc::ptr_eq(pattern, language))
    }
}
