//! Boolean operations, by the product construction.

use rustc_hash::FxHashMap;

use super::{Dfa, DfaError, DfaLimits, RawDfa, minimize::minimize};

/// Which pairs of a product accept, and which can be dropped at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

impl Operation {
    fn accepts(self, left: bool, right: bool) -> bool {
        match self {
            Self::Intersection => left && right,
            Self::Union => left || right,
            Self::Difference => left && !right,
        }
    }

    /// Whether nothing is accepted from a pair, given that state 0 is dead.
    fn is_dead(self, left: u32, right: u32) -> bool {
        match self {
            Self::Intersection => left == 0 || right == 0,
            Self::Union => left == 0 && right == 0,
            Self::Difference => left == 0,
        }
    }
}

impl Dfa {
    /// What both accept.
    ///
    /// # Errors
    /// A limit of `limits`, as every operation here. O(product of the numbers of states).
    pub(crate) fn intersect(&self, other: &Self, limits: &DfaLimits) -> Result<Self, DfaError> {
        if self == other || other.is_universal() || self.is_empty() {
            return Ok(self.clone());
        }
        if self.is_universal() || other.is_empty() {
            return Ok(other.clone());
        }
        product(self, other, Operation::Intersection, limits)
    }

    /// What at least one accepts.
    ///
    /// # Errors
    /// A limit of `limits`.
    pub(crate) fn union(&self, other: &Self, limits: &DfaLimits) -> Result<Self, DfaError> {
        if self == other || other.is_empty() {
            return Ok(self.clone());
        }
        if self.is_empty() {
            return Ok(other.clone());
        }
        product(self, other, Operation::Union, limits)
    }

    /// What `self` accepts and `other` does not.
    ///
    /// # Errors
    /// A limit of `limits`.
    pub(crate) fn difference(&self, other: &Self, limits: &DfaLimits) -> Result<Self, DfaError> {
        if self.is_empty() || other.is_empty() {
            return Ok(self.clone());
        }
        product(self, other, Operation::Difference, limits)
    }

    /// The strings (valid UTF-8) that `self` does not accept.
    ///
    /// # Errors
    /// A limit of `limits`.
    pub(crate) fn complement(&self, limits: &DfaLimits) -> Result<Self, DfaError> {
        Self::any_string().difference(self, limits)
    }
}

fn product(
    left: &Dfa,
    right: &Dfa,
    operation: Operation,
    limits: &DfaLimits,
) -> Result<Dfa, DfaError> {
    let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut pairs = vec![(0, 0), (left.start(), right.start())];
    ids.insert(pairs[1], 1);
    let mut raw = RawDfa::new();
    let mut next = 1;
    while next < pairs.len() {
        let (l, r) = pairs[next];
        next += 1;
        raw.push_state(operation.accepts(left.is_accepting(l), right.is_accepting(r)), limits)?;
        merge(left, l, right, r, |lo, hi, l, r| {
            if !operation.is_dead(l, r) {
                let id = *ids.entry((l, r)).or_insert_with(|| {
                    pairs.push((l, r));
                    pairs.len() as u32 - 1
                });
                raw.push_transition(lo, hi, id);
            }
        });
    }
    minimize(&raw, 1, limits)
}

/// Calls `each(lo, hi, left, right)` for the common refinement of the ranges of two states, in
/// ascending order; bytes on which both are dead are left out.
fn merge(left: &Dfa, l: u32, right: &Dfa, r: u32, mut each: impl FnMut(u8, u8, u32, u32)) {
    let (ls, rs) = (left.transitions(l), right.transitions(r));
    let (mut i, mut j) = (0, 0);
    let mut byte = 0u16;
    while i < ls.len() || j < rs.len() {
        let (l_lo, l_hi, l_target) = bounds(ls.get(i));
        let (r_lo, r_hi, r_target) = bounds(rs.get(j));
        let lo = byte.max(l_lo.min(r_lo));
        // Up to where neither side changes.
        let hi =
            if lo < l_lo { l_lo - 1 } else { l_hi }.min(if lo < r_lo { r_lo - 1 } else { r_hi });
        let l_target = if lo < l_lo { 0 } else { l_target };
        let r_target = if lo < r_lo { 0 } else { r_target };
        each(lo as u8, hi as u8, l_target, r_target);
        byte = hi + 1;
        if hi == l_hi {
            i += 1;
        }
        if hi == r_hi {
            j += 1;
        }
    }
}

/// Bounds of a range, or a range beyond all bytes.
fn bounds(transition: Option<&super::Transition>) -> (u16, u16, u32) {
    transition.map_or((256, 257, 0), |t| (u16::from(t.lo), u16::from(t.hi), t.target))
}
