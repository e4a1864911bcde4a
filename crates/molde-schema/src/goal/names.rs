//! The names that an object may have beyond the declared ones.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaError};
use crate::ir::NodeId;

use super::{GoalId, GoalLimit, Goals, ObjectId};

/// Undeclared names, as disjoint classes. A class whose members can have no value is left out.
///
/// Declared names are *not* left out of the languages: whoever reads a key knows them anyway.
#[derive(Debug)]
pub(crate) struct ExtraNames {
    pub(crate) classes: Box<[NameClass]>,
}

/// Names to which the same rules apply.
#[derive(Debug)]
pub(crate) struct NameClass {
    pub(crate) language: Dfa,
    pub(crate) goal: GoalId,
    /// Bytes of the shortest value.
    pub(crate) value_bytes: u64,
    /// Number of names from each state of the language; `u64::MAX` for infinitely many.
    word_counts: Box<[u64]>,
}

/// Nodes visited at most when names are listed: far more than any schema in use needs.
const NAME_SEARCH_STEPS: usize = 400_000;

impl NameClass {
    fn new(language: Dfa, goal: GoalId, value_bytes: u64) -> Self {
        let word_counts = word_counts(&language);
        Self { language, goal, value_bytes, word_counts }
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
fn word_counts(language: &Dfa) -> Box<[u64]> {
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
        for (language, nodes) in self.name_classes(id)? {
            let goal = self.goal(nodes);
            if let Some((value_bytes, _)) = self.solve(goal)?.shortest {
                classes.push(NameClass::new(language, goal, value_bytes));
            }
        }
        Ok(ExtraNames { classes: classes.into() })
    }

    /// The extra names with what a fixpoint knows so far; `None` where the object needs none.
    pub(super) fn extra_names_so_far(
        &mut self,
        id: ObjectId,
        bytes: impl Fn(GoalId) -> Option<u64>,
    ) -> Option<ExtraNames> {
        let shape = self.object(id);
        let required = shape.is_required.iter().filter(|&&required| required).count() as u64;
        if shape.min_properties <= required {
            return None;
        }
        let mut classes = Vec::new();
        // A limit was reported when the goals that this object needs were collected.
        for (language, nodes) in self.name_classes(id).ok()? {
            let goal = self.goal(nodes);
            if let Some(value_bytes) = bytes(goal) {
                classes.push(NameClass::new(language, goal, value_bytes));
            }
        }
        Some(ExtraNames { classes: classes.into() })
    }

    /// Splits all names by which patterns they match, and collects the nodes that apply to each.
    pub(super) fn name_classes(&self, id: ObjectId) -> Result<Vec<(Dfa, Vec<NodeId>)>, GoalLimit> {
        let shape = Arc::clone(self.object(id));
        let mut classes = vec![(Dfa::any_string(), Vec::new())];
        for &node in &shape.extra_rules {
            let Some(rule) = self.schema.node(node).object.as_deref() else { continue };
            // Each class is split by this rule's patterns; what no pattern takes goes on to
            // `additionalProperties`.
            let mut split: Vec<(Dfa, Vec<NodeId>, bool)> =
                classes.into_iter().map(|(language, nodes)| (language, nodes, false)).collect();
            for (pattern, target) in &rule.patterns {
                let mut next = Vec::with_capacity(split.len() + 1);
                for (language, nodes, matched) in split {
                    let inside = language.intersect(pattern, &self.dfa_limits);
                    let outside = language.difference(pattern, &self.dfa_limits);
                    for (part, is_inside) in [(inside, true), (outside, false)] {
                        let part = part.map_err(|error| self.name_limit(&error, node))?;
                        if part.is_empty() {
                            continue;
                        }
                        let mut nodes = nodes.clone();
                        if is_inside {
                            nodes.push(*target);
                        }
                        next.push((part, nodes, matched || is_inside));
                    }
                }
                split = next;
                if split.len() > self.options.limits.alternatives {
                    return Err(GoalLimit {
                        name: "alternatives",
                        limit: self.options.limits.alternatives as u64,
                        unit: "classes of names",
                        pointer: self.schema.node(node).pointer.clone(),
                    });
                }
            }
            classes = split
                .into_iter()
                .map(|(language, mut nodes, matched)| {
                    if !matched {
                        nodes.extend(rule.additional);
                    }
                    (language, nodes)
                })
                .collect();
        }
        Ok(classes)
    }

    fn name_limit(&self, error: &DfaError, node: NodeId) -> GoalLimit {
        GoalLimit::from_dfa(error, self.schema.node(node).pointer.clone())
    }
}
