//! Minimal deterministic automata over bytes: the languages of scalars.
//!
//! A language is a set of *decoded* string contents in UTF-8, or of raw number texts. A [`Dfa`] is
//! immutable, minimal, trimmed and canonically numbered, so two of them are equal exactly when
//! their languages are, and can be interned by value.
//!
//! ```text
//! states 1 (start) ─a─▶ 2 ─b─▶ 3 (accepts)      0 is dead and has no transitions;
//!                                               every other state leads to acceptance
//! ```
//!
//! # Invariants
//! - State 0 is dead; the start state is 1, or 0 if the language is empty.
//! - Every state but 0 is reachable and co-accessible.
//! - Transitions are sparse: sorted disjoint byte ranges, none to state 0, neighbours merged.
//! - Numbering is breadth first by byte order.
//! - Every construction is bounded by [`DfaLimits`] and says which limit stopped it.

mod determinize;
mod lengths;
mod limits;
mod minimize;
mod ops;
mod raw;
mod shortest;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod words;

use rustc_hash::FxHashMap;

pub(crate) use determinize::{Context, Lookaround, Neighbour, determinize, lookaround_marker};
pub(crate) use lengths::Lengths;
pub(crate) use limits::{DfaError, DfaLimits};
pub(crate) use minimize::minimize;
pub(crate) use raw::{RawDfa, Transition};

/// A minimal, trimmed, canonically numbered deterministic automaton over bytes.
///
/// `Eq` and `Hash` are equality of languages. Cloning copies the tables: share it behind `Arc`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Dfa {
    /// `transitions[offsets[s]..offsets[s + 1]]` belong to state `s`.
    offsets: Box<[u32]>,
    transitions: Box<[Transition]>,
    accepting: Box<[bool]>,
    /// Fewest bytes to acceptance: a function of the rest, kept because every witness asks for it.
    distance: Box<[u32]>,
}

impl Dfa {
    /// The dead state.
    pub(crate) const DEAD: u32 = 0;

    /// The automaton that accepts nothing.
    pub(crate) fn empty() -> Self {
        Self::from_canonical(RawDfa::new())
    }

    /// Every string: all valid UTF-8, the empty one included.
    ///
    /// Its accepting state is at every character boundary, and only there.
    pub(crate) fn any_string() -> Self {
        // Table 3-7 of the Unicode Standard: well-formed UTF-8 byte sequences. State 1 is the
        // start, 2, 3 and 4 await one, two and three plain continuation bytes, the others await
        // a second byte from a narrower range.
        let mut raw = RawDfa::new();
        let mut state = |accepting: bool, transitions: &[(u8, u8, u32)]| {
            raw.accepting.push(accepting);
            raw.offsets.push(raw.transitions.len() as u32);
            for &(lo, hi, target) in transitions {
                raw.push_transition(lo, hi, target);
            }
        };
        state(
            true,
            &[
                (0x00, 0x7F, 1),
                (0xC2, 0xDF, 2),
                (0xE0, 0xE0, 5),
                (0xE1, 0xEC, 3),
                (0xED, 0xED, 6),
                (0xEE, 0xEF, 3),
                (0xF0, 0xF0, 7),
                (0xF1, 0xF3, 4),
                (0xF4, 0xF4, 8),
            ],
        );
        state(false, &[(0x80, 0xBF, 1)]);
        state(false, &[(0x80, 0xBF, 2)]);
        state(false, &[(0x80, 0xBF, 3)]);
        state(false, &[(0xA0, 0xBF, 2)]);
        state(false, &[(0x80, 0x9F, 2)]);
        state(false, &[(0x90, 0xBF, 3)]);
        state(false, &[(0x80, 0x8F, 3)]);
        minimize(&raw, 1, &DfaLimits::default()).expect("eight states are within every limit")
    }

    /// Every string of at least `min` and at most `max` (`None`: any number of) code points.
    ///
    /// # Errors
    /// [`DfaError::States`]: it needs up to eight states for each code point of the larger bound.
    pub(crate) fn with_chars(
        min: u64,
        max: Option<u64>,
        limits: &DfaLimits,
    ) -> Result<Self, DfaError> {
        let any = Self::any_string();
        // Layer n: n code points are read, or being read. The last one is kept, or led out of.
        let block = any.states() as u64 - 1;
        let last = max.unwrap_or(min);
        if last.saturating_mul(block) > limits.max_states as u64 {
            return Err(DfaError::States { limit: limits.max_states });
        }
        let mut raw = RawDfa::new();
        for read in 0..=last {
            for state in 1..any.states() as u32 {
                let at_boundary = any.is_accepting(state);
                raw.push_state(at_boundary && read >= min, limits)?;
                for t in any.transitions(state) {
                    let layer = match (shortest::starts_character(*t), max) {
                        (false, _) => read,
                        (true, Some(max)) if read == max => continue,
                        (true, None) if read == last => read,
                        (true, _) => read + 1,
                    };
                    raw.push_transition(t.lo, t.hi, (layer * block) as u32 + t.target);
                }
            }
        }
        minimize(&raw, 1, limits)
    }

    /// Takes over an automaton that already is minimal, trimmed and numbered.
    fn from_canonical(raw: RawDfa) -> Self {
        Self {
            distance: shortest::distances(&raw).into_boxed_slice(),
            offsets: raw.offsets.into_boxed_slice(),
            transitions: raw.transitions.into_boxed_slice(),
            accepting: raw.accepting.into_boxed_slice(),
        }
    }

    /// The state before the first byte: 1, or 0 if the language is empty.
    pub(crate) fn start(&self) -> u32 {
        u32::from(self.accepting.len() > 1)
    }

    /// The state after `byte`; 0 leads to itself. O(log ranges of the state).
    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> u32 {
        let transitions = self.transitions(state);
        let at = transitions.partition_point(|t| t.hi < byte);
        match transitions.get(at) {
            Some(transition) if transition.lo <= byte => transition.target,
            _ => Self::DEAD,
        }
    }

    /// The state after all of `bytes`.
    pub(crate) fn step_all(&self, state: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(state, |s, &byte| self.step(s, byte))
    }

    /// Whether what led to `state` is a word of the language.
    #[inline]
    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Whether `word` is in the language.
    pub(crate) fn accepts(&self, word: impl AsRef<[u8]>) -> bool {
        self.is_accepting(self.step_all(self.start(), word.as_ref()))
    }

    /// The transitions of a state in byte order: disjoint ranges, each to a live state.
    pub(crate) fn transitions(&self, state: u32) -> &[Transition] {
        let state = state as usize;
        &self.transitions[self.offsets[state] as usize..self.offsets[state + 1] as usize]
    }

    /// Number of states, the dead one included: valid states are `0..states()`.
    pub(crate) fn states(&self) -> usize {
        self.accepting.len()
    }

    /// Whether nothing is accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.accepting.len() == 1
    }

    /// Whether every string (all valid UTF-8) is accepted.
    pub(crate) fn is_universal(&self) -> bool {
        // The minimal automaton of all strings has eight live states: cheap to build and compare.
        self.states() == 9 && *self == Self::any_string()
    }

    /// The state from which every string is accepted, or 0 if there is none.
    pub(crate) fn universal_state(&self) -> u32 {
        // In a minimal automaton it is the accepting state whose characters all lead back to it,
        // and ASCII alone already singles out candidates.
        let any = Self::any_string();
        (1..self.states() as u32)
            .find(|&state| self.is_accepting(state) && self.simulates_any(state, &any))
            .unwrap_or(Self::DEAD)
    }

    /// Whether the automaton from `state` on is `any`, an automaton of all strings.
    fn simulates_any(&self, state: u32, any: &Self) -> bool {
        let mut image = vec![Self::DEAD; any.states()];
        image[any.start() as usize] = state;
        let mut stack = vec![any.start()];
        while let Some(from) = stack.pop() {
            let here = self.transitions(image[from as usize]);
            let there = any.transitions(from);
            if self.is_accepting(image[from as usize]) != any.is_accepting(from)
                || here.len() != there.len()
            {
                return false;
            }
            for (a, b) in here.iter().zip(there) {
                if (a.lo, a.hi) != (b.lo, b.hi) {
                    return false;
                }
                let known = &mut image[b.target as usize];
                if *known == Self::DEAD {
                    *known = a.target;
                    stack.push(b.target);
                } else if *known != a.target {
                    return false;
                }
            }
        }
        true
    }

    /// The bytes that begin characters which all lead from a state, between two characters, back to
    /// it: byte `b` is bit `b % 64` of word `b / 64`.
    pub(crate) fn looping_bytes(&self, state: u32) -> [u64; 4] {
        let any = Self::any_string();
        let mut bits = [0; 4];
        let mut known: FxHashMap<(u32, u32), bool> = FxHashMap::default();
        known.insert((any.start(), state), true);
        for expected in any.transitions(any.start()) {
            for byte in expected.lo..=expected.hi {
                let target = self.step(state, byte);
                if self.leads_back(target, &any, expected.target, &mut known) {
                    bits[byte as usize / 64] |= 1 << (byte % 64);
                }
            }
        }
        bits
    }

    /// Whether all that completes a character leads from `at`, which goes along with state `role` of
    /// `any`, to the pair that is known to be a good one. At most four levels deep.
    fn leads_back(
        &self,
        at: u32,
        any: &Self,
        role: u32,
        known: &mut FxHashMap<(u32, u32), bool>,
    ) -> bool {
        if let Some(&known) = known.get(&(role, at)) {
            return known;
        }
        let back = at != Self::DEAD
            && role != any.start()
            && any.transitions(role).iter().all(|expected| {
                (expected.lo..=expected.hi).all(|byte| {
                    let target = self.step(at, byte);
                    self.leads_back(target, any, expected.target, known)
                })
            });
        known.insert((role, at), back);
        back
    }

    /// For each state between two characters, the least number of bytes of a string that is dead
    /// after them, `u32::MAX` if none ever is; 0 for the other states.
    pub(crate) fn sure_bytes(&self) -> Box<[u32]> {
        let any = Self::any_string();
        // The state of `any` that each state goes along with. Where there are two, one of them asks
        // for more than the state, which never leaves valid UTF-8, can have.
        let mut role = vec![Self::DEAD; self.states()];
        let mut order = vec![self.start()];
        role[self.start() as usize] = any.start();
        let mut incoming: Vec<(u32, u32)> = Vec::new();
        let mut sure = vec![u32::MAX; self.states()];
        let mut failed = Vec::new();
        let mut next = 0;
        while next < order.len() {
            let state = order[next];
            next += 1;
            let own = self.transitions(state);
            let mut fails = false;
            for expected in any.transitions(role[state as usize]) {
                let mut byte = u16::from(expected.lo);
                for transition in own.iter().filter(|t| t.hi >= expected.lo && t.lo <= expected.hi)
                {
                    if u16::from(transition.lo) > byte {
                        break;
                    }
                    byte = u16::from(transition.hi) + 1;
                    incoming.push((transition.target, state));
                    let known = &mut role[transition.target as usize];
                    if *known == Self::DEAD {
                        *known = expected.target;
                        order.push(transition.target);
                    } else if *known != expected.target && sure[transition.target as usize] > 1 {
                        sure[transition.target as usize] = 1;
                        failed.push(transition.target);
                    }
                }
                fails |= byte <= u16::from(expected.hi);
            }
            if fails && sure[state as usize] > 1 {
                sure[state as usize] = 1;
                failed.push(state);
            }
        }
        incoming.sort_unstable();
        let mut next = 0;
        while next < failed.len() {
            let state = failed[next];
            next += 1;
            let at = incoming.partition_point(|&(target, _)| target < state);
            for &(_, source) in incoming[at..].iter().take_while(|&&(target, _)| target == state) {
                if sure[source as usize] == u32::MAX {
                    sure[source as usize] = sure[state as usize] + 1;
                    failed.push(source);
                }
            }
        }
        for (sure, &role) in sure.iter_mut().zip(&role) {
            if role != any.start() {
                *sure = 0;
            }
        }
        sure.into()
    }

    /// Heap bytes held by the tables.
    #[cfg(test)]
    pub(crate) fn memory_usage(&self) -> usize {
        size_of_val(&*self.offsets)
            + size_of_val(&*self.transitions)
            + size_of_val(&*self.accepting)
            + size_of_val(&*self.distance)
    }
}
