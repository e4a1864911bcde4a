//! What is left to be met by an object: positive formulas over facts about its members.
//!
//! ```text
//! dependentRequired {"a": ["b"], "c": ["d"]}     all(any(no a, some b), any(no c, some d))
//! after the member a                             all(some b,            any(no c, some d))
//! ```
//!
//! Conditions that do not depend on each other stay apart in a conjunction: n of them cost n, where
//! multiplied out they would cost 2^n. A formula is never negated: a literal that has become true
//! can only help, so what a member is not known to do may be taken as not done.
//!
//! Formulas are hash-consed and simplified when they are made: an open object's formula with what
//! has been decided put in *is* what it remembers, and two objects that must meet the same are alike.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Index of a literal: see [`Literal`](super::condition::Literal).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LiteralId(pub(super) u32);

/// Index of a formula; equal formulas have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FormulaId(u32);

impl FormulaId {
    /// What is met already.
    pub(crate) const MET: Self = Self(0);
    /// What cannot be met.
    pub(crate) const LOST: Self = Self(1);
}

impl Default for FormulaId {
    fn default() -> Self {
        Self::MET
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Formula {
    Met,
    Lost,
    Literal(LiteralId),
    /// At least two, ascending, none of them another `All`.
    All(Box<[FormulaId]>),
    /// At least two, ascending, none of them another `Any`.
    Any(Box<[FormulaId]>),
}

/// All formulas that have come up.
#[derive(Debug, Clone)]
pub(super) struct Formulas {
    nodes: IndexSet<Formula, FxBuildHasher>,
    /// The literals of each formula, ascending.
    literals: Vec<Box<[LiteralId]>>,
    bytes: usize,
}

impl Formulas {
    pub(super) fn new() -> Self {
        let mut formulas = Self { nodes: IndexSet::default(), literals: Vec::new(), bytes: 0 };
        formulas.intern(Formula::Met);
        formulas.intern(Formula::Lost);
        formulas
    }

    pub(super) fn get(&self, id: FormulaId) -> &Formula {
        &self.nodes[id.0 as usize]
    }

    /// The literals that still matter, ascending.
    pub(super) fn literals(&self, id: FormulaId) -> &[LiteralId] {
        &self.literals[id.0 as usize]
    }

    pub(super) fn has(&self, id: FormulaId, literal: LiteralId) -> bool {
        self.literals(id).binary_search(&literal).is_ok()
    }

    /// What must all be met, apart from each other.
    pub(super) fn conjuncts(&self, id: FormulaId) -> Vec<FormulaId> {
        match self.get(id) {
            Formula::Met => Vec::new(),
            Formula::All(parts) => parts.to_vec(),
            _ => vec![id],
        }
    }

    /// Whether a literal must be met whatever else is.
    pub(super) fn needs(&self, id: FormulaId, literal: LiteralId) -> bool {
        let is_it = |id: &FormulaId| *self.get(*id) == Formula::Literal(literal);
        match self.get(id) {
            Formula::All(parts) => parts.iter().any(is_it),
            _ => is_it(&id),
        }
    }

    pub(super) fn literal(&mut self, literal: LiteralId) -> FormulaId {
        self.intern(Formula::Literal(literal))
    }

    pub(super) fn all(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let mut list = Vec::new();
        for part in parts {
            match self.get(part) {
                Formula::Met => {}
                Formula::Lost => return FormulaId::LOST,
                Formula::All(inner) => list.extend(inner.iter().copied()),
                _ => list.push(part),
            }
        }
        list.sort_unstable();
        list.dedup();
        self.absorb(&mut list, |formula| match formula {
            Formula::Any(parts) => Some(parts),
            _ => None,
        });
        match *list {
            [] => FormulaId::MET,
            [only] => only,
            _ => self.intern(Formula::All(list.into())),
        }
    }

    pub(super) fn any(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let mut list = Vec::new();
        for part in parts {
            match self.get(part) {
                Formula::Lost => {}
                Formula::Met => return FormulaId::MET,
                Formula::Any(inner) => list.extend(inner.iter().copied()),
                _ => list.push(part),
            }
        }
        list.sort_unstable();
        list.dedup();
        self.absorb(&mut list, |formula| match formula {
            Formula::All(parts) => Some(parts),
            _ => None,
        });
        match *list {
            [] => FormulaId::LOST,
            [only] => only,
            _ => self.intern(Formula::Any(list.into())),
        }
    }

    /// Drops what follows from another part: in `all(x, any(x, y))` the second, and likewise in the
    /// other kind.
    fn absorb(&self, list: &mut Vec<FormulaId>, parts: impl Fn(&Formula) -> Option<&[FormulaId]>) {
        let known = list.clone();
        list.retain(|&id| {
            parts(self.get(id))
                .is_none_or(|parts| parts.iter().all(|part| known.binary_search(part).is_err()))
        });
    }

    /// The formula with some literals decided.
    ///
    /// # Complexity
    /// O(the size of the formula).
    pub(super) fn assign(
        &mut self,
        id: FormulaId,
        decide: &mut dyn FnMut(LiteralId) -> Option<bool>,
    ) -> FormulaId {
        let mut decided: Vec<(LiteralId, bool)> = Vec::new();
        for &literal in &*self.literals[id.0 as usize] {
            decided.extend(decide(literal).map(|value| (literal, value)));
        }
        if decided.is_empty() {
            return id;
        }
        self.put(id, &decided, &mut FxHashMap::default())
    }

    fn put(
        &mut self,
        id: FormulaId,
        decided: &[(LiteralId, bool)],
        known: &mut FxHashMap<FormulaId, FormulaId>,
    ) -> FormulaId {
        let value = |literal: &LiteralId| {
            decided.binary_search_by_key(literal, |(literal, _)| *literal).ok()
        };
        if !self.literals(id).iter().any(|literal| value(literal).is_some()) {
            return id;
        }
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let after = match self.get(id).clone() {
            Formula::Met | Formula::Lost => id,
            Formula::Literal(literal) => match value(&literal) {
                Some(at) if decided[at].1 => FormulaId::MET,
                Some(_) => FormulaId::LOST,
                None => id,
            },
            // Nesting is that of the choices in a schema, which loading bounds.
            Formula::All(parts) => {
                let parts: Vec<_> =
                    parts.iter().map(|&part| self.put(part, decided, known)).collect();
                self.all(parts)
            }
            Formula::Any(parts) => {
                let parts: Vec<_> =
                    parts.iter().map(|&part| self.put(part, decided, known)).collect();
                self.any(parts)
            }
        };
        known.insert(id, after);
        after
    }

    /// Whether a formula certainly holds where another one does; `false` if that is not seen.
    pub(super) fn implies(&self, given: FormulaId, then: FormulaId) -> bool {
        if given == then || then == FormulaId::MET || given == FormulaId::LOST {
            return true;
        }
        match (self.get(given), self.get(then)) {
            (_, Formula::All(parts)) => parts.iter().all(|&part| self.implies(given, part)),
            (Formula::Any(parts), _) => parts.iter().all(|&part| self.implies(part, then)),
            (Formula::All(parts), _) if parts.binary_search(&then).is_ok() => true,
            (Formula::All(parts), _) => {
                let shares = |part: &&FormulaId| {
                    self.literals(**part).iter().any(|&literal| self.has(then, literal))
                };
                parts.iter().filter(shares).any(|&part| self.implies(part, then))
            }
            (Formula::Literal(_), Formula::Any(parts)) => {
                parts.iter().any(|&part| self.implies(given, part))
            }
            _ => false,
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.bytes
    }

    fn intern(&mut self, formula: Formula) -> FormulaId {
        if let Some(known) = self.nodes.get_index_of(&formula) {
            return FormulaId(known as u32);
        }
        let mut literals: Vec<LiteralId> = Vec::new();
        match &formula {
            Formula::Met | Formula::Lost => {}
            Formula::Literal(literal) => literals.push(*literal),
            Formula::All(parts) | Formula::Any(parts) => {
                for &part in parts {
                    literals.extend_from_slice(self.literals(part));
                }
                literals.sort_unstable();
                literals.dedup();
                self.bytes += parts.len() * 8;
            }
        }
        self.bytes += 96 + literals.len() * 4;
        self.literals.push(literals.into());
        FormulaId(self.nodes.insert_full(formula).0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A formula and all that can be made of its literals, judged by a truth table.
    fn value(formulas: &Formulas, id: FormulaId, world: u32) -> bool {
        match formulas.get(id) {
            Formula::Met => true,
            Formula::Lost => false,
            Formula::Literal(literal) => world >> literal.0 & 1 == 1,
            Formula::All(parts) => parts.iter().all(|&part| value(formulas, part, world)),
            Formula::Any(parts) => parts.iter().any(|&part| value(formulas, part, world)),
        }
    }

    /// Every formula of up to three layers over four literals that a small generator makes.
    fn samples(formulas: &mut Formulas) -> Vec<FormulaId> {
        let mut list: Vec<FormulaId> = (0..4).map(|at| formulas.literal(LiteralId(at))).collect();
        let mut seed = 7u32;
        let mut next = |bound: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % bound
        };
        for round in 0..200 {
            let parts: Vec<FormulaId> =
                (0..2 + round % 2).map(|_| list[next(list.len())]).collect();
            let made = if next(2) == 0 { formulas.all(parts) } else { formulas.any(parts) };
            list.push(made);
        }
        list
    }

    #[test]
    fn simplifying_and_deciding_keep_the_truth_table() {
        let mut formulas = Formulas::new();
        let list = samples(&mut formulas);
        for &one in &list {
            for &two in list.iter().step_by(7) {
                let (all, any) = (formulas.all([one, two]), formulas.any([one, two]));
                for world in 0..16 {
                    let (a, b) = (value(&formulas, one, world), value(&formulas, two, world));
                    assert_eq!(value(&formulas, all, world), a && b);
                    assert_eq!(value(&formulas, any, world), a || b);
                    assert!(!formulas.implies(one, two) || !a || b);
                }
            }
            for literal in 0..4 {
                for decided in [false, true] {
                    let after =
                        formulas.assign(one, &mut |id| (id.0 == literal).then_some(decided));
                    assert!(!formulas.has(after, LiteralId(literal)));
                    for world in 0..16u32 {
                        let with = world & !(1 << literal) | u32::from(decided) << literal;
                        assert_eq!(value(&formulas, after, world), value(&formulas, one, with));
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_met_more_implies_what_has_met_less() {
        let mut formulas = Formulas::new();
        let [a, b, c] = [0, 1, 2].map(|at| formulas.literal(LiteralId(at)));
        let either = formulas.any([a, b]);
        let both = formulas.all([either, c]);
        for (given, then) in [(both, either), (both, c), (a, either), (FormulaId::LOST, both)] {
            assert!(formulas.implies(given, then));
        }
        for (given, then) in [(either, both), (either, a), (FormulaId::MET, c)] {
            assert!(!formulas.implies(given, then));
        }
    }
}
