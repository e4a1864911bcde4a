//! Determinization of regular expressions with lookaround.
//!
//! The nondeterministic automaton is regex-automata's; what is added to the subset construction
//! is lookaround. A lookahead is a language that the rest of the text must be in, so the *thread*
//! that passes it takes on an *obligation*: a state of that language's own automaton, stepped
//! along with the thread and due at the end. A lookbehind is a language that the text so far must
//! be in: its automaton is *tracked* beside the threads from the start, and asked when one wants
//! to pass. Negation is complement of an automaton, so a negative lookaround is a positive one.
//!
//! ```text
//! DFA state = character before + tracked states + { (nfa state, { obligations }) … }
//! ```
//!
//! What a position's assertions need of the next byte (`$`, `\b`) is known when that byte is read:
//! the ε-closure is taken then, once for each kind of next byte.

use regex_automata::nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::{Capture, Hir};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Dfa, DfaError, DfaLimits, RawDfa, minimize::minimize};

/// What lies next to a position, as far as an assertion can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// The edge of the text.
    Edge = 0,
    /// One of `[A-Za-z0-9_]`.
    Word = 1,
    /// Any other character.
    NonWord = 2,
}

impl Neighbour {
    /// Every kind, in the order of their discriminants.
    pub(crate) const ALL: [Self; 3] = [Self::Edge, Self::Word, Self::NonWord];

    fn of(byte: u8) -> Self {
        if byte.is_ascii_alphanumeric() || byte == b'_' { Self::Word } else { Self::NonWord }
    }
}

/// A lookaround, as automata.
#[derive(Debug, Clone)]
pub(crate) enum Lookaround {
    /// What the rest of the text must be, by what is before the position.
    Ahead([Dfa; 3]),
    /// What the text so far must be, by what is after the position.
    Behind([Dfa; 3]),
}

/// Where the text of an expression lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// What is before the first byte.
    pub(crate) before: Neighbour,
    /// What is after the last byte.
    pub(crate) after: Neighbour,
    /// Whether any string may follow the match.
    pub(crate) any_suffix: bool,
}

/// The expression that stands for `lookarounds[index]` of [`determinize`].
pub(crate) fn lookaround_marker(index: usize) -> Hir {
    // An empty capture group: it matches the empty string, and survives to the automaton as a
    // state of its own. Group 0 is the whole match.
    Hir::capture(Capture { index: index as u32 + 1, name: None, sub: Box::new(Hir::empty()) })
}

/// The automaton of the texts that `hir` matches from their first byte to their last (or to any,
/// see [`Context::any_suffix`]).
///
/// `hir` must be over valid UTF-8, its assertions `Start`, `End` and ASCII word boundaries, and
/// its capture groups [`lookaround_marker`]s of `lookarounds`.
///
/// # Errors
/// The limit that was exceeded.
///
/// # Complexity
/// Exponential in the worst case, bounded by `max_states`, `max_determinize_bytes` and
/// `max_determinize_steps`.
pub(crate) fn determinize(
    hir: &Hir,
    lookarounds: &[Lookaround],
    context: Context,
    limits: &DfaLimits,
) -> Result<Dfa, DfaError> {
    let config = Config::new().nfa_size_limit(Some(limits.max_nfa_bytes)).which_captures(
        if lookarounds.is_empty() { WhichCaptures::None } else { WhichCaptures::All },
    );
    let nfa = Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        // The only other failures are more patterns or groups than fit in 31 bits.
        .map_err(|_| DfaError::NfaBytes { limit: limits.max_nfa_bytes })?;
    let raw = Determinizer::new(&nfa, lookarounds, context, limits).run()?;
    minimize(&raw, 1, limits)
}

/// The nfa state of a thread that has matched and only has obligations left.
const MATCHED: u32 = u32::MAX;

/// Index of the automaton of all strings among the obligations' automata.
const ANY_STRING: u32 = 0;

/// A thread: an nfa state and the id of a set of obligations. Set 0 is empty.
type Thread = (u32, u32);

struct Determinizer<'a> {
    nfa: &'a NFA,
    lookarounds: &'a [Lookaround],
    context: Context,
    limits: &'a DfaLimits,
    obligations: Obligations<'a>,
    /// For each lookaround: the index of its automaton among the obligations', if it is ahead, or
    /// in `tracked`, if it is behind; by the neighbour it depends on.
    automata: Vec<[u32; 3]>,
    tracked: Vec<&'a Dfa>,
    /// Whether anything depends on a neighbour being a word character.
    sees_words: bool,
    /// Whether the ε-closure of an nfa state meets an assertion.
    asserts: Vec<bool>,
    /// Ids of the states by `[before, tracked states…, threads…]`.
    ids: FxHashMap<Box<[u32]>, u32>,
    keys: Vec<Box<[u32]>>,
    bytes: usize,
    steps: usize,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    stack: Vec<Thread>,
    visited: FxHashSet<Thread>,
    closures: [Vec<Thread>; 3],
    starts: Vec<u8>,
}

impl<'a> Determinizer<'a> {
    fn new(
        nfa: &'a NFA,
        lookarounds: &'a [Lookaround],
        context: Context,
        limits: &'a DfaLimits,
    ) -> Self {
        let mut obligations = Obligations::new();
        let mut tracked: Vec<&Dfa> = Vec::new();
        let mut sees_words = nfa.look_set_any().contains_word();
        let automata = lookarounds
            .iter()
            .map(|lookaround| match lookaround {
                Lookaround::Ahead(dfas) => {
                    sees_words |= dfas[1] != dfas[2];
                    std::array::from_fn(|i| obligations.automaton(&dfas[i]))
                }
                Lookaround::Behind(dfas) => {
                    sees_words |= dfas[1] != dfas[2];
                    std::array::from_fn(|i| index_of(&mut tracked, &dfas[i]))
                }
            })
            .collect();
        Self {
            nfa,
            lookarounds,
            context,
            limits,
            obligations,
            automata,
            tracked,
            sees_words,
            asserts: asserting_states(nfa),
            ids: FxHashMap::default(),
            keys: vec![Box::default()],
            bytes: 0,
            steps: 0,
            scratch: Scratch::default(),
        }
    }

    fn run(mut self) -> Result<RawDfa, DfaError> {
        let mut raw = RawDfa::new();
        let tracked: Vec<u32> = self.tracked.iter().map(|dfa| dfa.start()).collect();
        let start = (self.nfa.start_anchored().as_u32(), 0);
        self.intern(self.context.before, &tracked, vec![start])?;
        let mut next = 1;
        while next < self.keys.len() {
            self.expand(next, &mut raw)?;
            next += 1;
        }
        Ok(raw)
    }

    /// Appends state `id` and its transitions.
    fn expand(&mut self, id: usize, raw: &mut RawDfa) -> Result<(), DfaError> {
        let key = self.keys[id].clone();
        let before = Neighbour::ALL[key[0] as usize];
        let (tracked, threads) = key[1..].split_at(self.tracked.len());
        let threads: Vec<Thread> = threads.chunks_exact(2).map(|t| (t[0], t[1])).collect();

        let asserts =
            threads.iter().any(|&(state, _)| state != MATCHED && self.asserts[state as usize]);
        let mut closures = std::mem::take(&mut self.scratch.closures);
        self.closure(&threads, before, self.context.after, tracked, &mut closures[0])?;
        if asserts {
            for kind in [Neighbour::Word, Neighbour::NonWord] {
                self.closure(&threads, before, kind, tracked, &mut closures[kind as usize])?;
            }
        }
        let accepting = closures[0]
            .iter()
            .any(|&(state, set)| self.is_match(state) && self.obligations.are_met(set));
        raw.push_state(accepting, self.limits)?;

        let starts = self.range_starts(if asserts { &closures } else { &closures[..1] }, tracked);
        for (i, &lo) in starts.iter().enumerate() {
            let hi = starts.get(i + 1).map_or(255, |&next| next - 1);
            let kind = Neighbour::of(lo);
            let closure = &closures[if asserts { kind as usize } else { 0 }];
            let threads = self.step(closure, lo)?;
            if threads.is_empty() {
                continue;
            }
            let tracked: Vec<u32> =
                self.tracked.iter().zip(tracked).map(|(dfa, &state)| dfa.step(state, lo)).collect();
            let target = self.intern(kind, &tracked, threads)?;
            raw.push_transition(lo, hi, target);
        }
        self.scratch.starts = starts;
        self.scratch.closures = closures;
        Ok(())
    }

    /// Whether a thread in this nfa state has matched.
    fn is_match(&self, state: u32) -> bool {
        state == MATCHED || matches!(self.nfa.state(state_id(state)), State::Match { .. })
    }

    /// The threads that are waiting for a byte, or have matched, given both neighbours.
    fn closure(
        &mut self,
        threads: &[Thread],
        before: Neighbour,
        after: Neighbour,
        tracked: &[u32],
        out: &mut Vec<Thread>,
    ) -> Result<(), DfaError> {
        out.clear();
        let mut visited = std::mem::take(&mut self.scratch.visited);
        let mut stack = std::mem::take(&mut self.scratch.stack);
        visited.clear();
        stack.clear();
        stack.extend(threads.iter().rev());
        while let Some((state, set)) = stack.pop() {
            if !visited.insert((state, set)) {
                continue;
            }
            self.work(1)?;
            if state == MATCHED {
                out.push((state, set));
                continue;
            }
            match self.nfa.state(state_id(state)) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    out.push((state, set));
                }
                State::Match { .. } => {
                    if set == 0 && self.context.any_suffix {
                        // Whatever follows, the text is found: other threads add nothing.
                        out.clear();
                        out.push((state, set));
                        break;
                    }
                    out.push((state, set));
                }
                State::Look { look, next } => {
                    let holds = match look {
                        Look::Start => before == Neighbour::Edge,
                        Look::End => after == Neighbour::Edge,
                        Look::WordAscii => {
                            (before == Neighbour::Word) != (after == Neighbour::Word)
                        }
                        Look::WordAsciiNegate => {
                            (before == Neighbour::Word) == (after == Neighbour::Word)
                        }
                        _ => false,
                    };
                    if holds {
                        stack.push((next.as_u32(), set));
                    }
                }
                State::Union { alternates } => {
                    stack.extend(alternates.iter().rev().map(|next| (next.as_u32(), set)));
                }
                State::BinaryUnion { alt1, alt2 } => {
                    stack.push((alt2.as_u32(), set));
                    stack.push((alt1.as_u32(), set));
                }
                State::Capture { next, group_index, slot, .. } => {
                    // A marker is a pair of slots; the first one acts.
                    let marker = group_index.as_usize().checked_sub(1);
                    let set = match marker.filter(|_| slot.as_usize() % 2 == 0) {
                        Some(index) => self.pass(index, set, before, after, tracked),
                        None => Some(set),
                    };
                    if let Some(set) = set {
                        stack.push((next.as_u32(), set));
                    }
                }
                State::Fail => {}
            }
        }
        self.scratch.visited = visited;
        self.scratch.stack = stack;
        Ok(())
    }

    /// The obligations of a thread after a lookaround, or `None` if it cannot pass.
    fn pass(
        &mut self,
        index: usize,
        set: u32,
        before: Neighbour,
        after: Neighbour,
        tracked: &[u32],
    ) -> Option<u32> {
        match &self.lookarounds[index] {
            Lookaround::Ahead(_) => {
                let automaton = self.automata[index][before as usize];
                self.obligations.add(set, automaton)
            }
            Lookaround::Behind(_) => {
                let at = self.automata[index][after as usize] as usize;
                self.tracked[at].is_accepting(tracked[at]).then_some(set)
            }
        }
    }

    /// First bytes of the ranges on which no thread of any closure, and no automaton beside them,
    /// changes its mind.
    fn range_starts(&mut self, closures: &[Vec<Thread>], tracked: &[u32]) -> Vec<u8> {
        let mut is_start = [false; 257];
        is_start[0] = true;
        let mut range = |lo: u8, hi: u8| {
            is_start[lo as usize] = true;
            is_start[hi as usize + 1] = true;
        };
        for &(state, set) in closures.iter().flatten() {
            for &(automaton, at) in self.obligations.set(set) {
                for t in self.obligations.automata[automaton as usize].transitions(at) {
                    range(t.lo, t.hi);
                }
            }
            if state == MATCHED {
                continue;
            }
            match self.nfa.state(state_id(state)) {
                State::ByteRange { trans } => range(trans.start, trans.end),
                State::Sparse(sparse) => {
                    for t in &sparse.transitions {
                        range(t.start, t.end);
                    }
                }
                State::Dense(_) => (0..=255).for_each(|byte| range(byte, byte)),
                State::Match { .. } if self.context.any_suffix && set == 0 => {
                    for t in self.obligations.automata[ANY_STRING as usize].transitions(1) {
                        range(t.lo, t.hi);
                    }
                }
                _ => {}
            }
        }
        for (dfa, &state) in self.tracked.iter().zip(tracked) {
            for t in dfa.transitions(state) {
                range(t.lo, t.hi);
            }
        }
        if self.sees_words || closures.len() > 1 {
            for (lo, hi) in [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')] {
                range(lo, hi);
            }
        }
        let mut starts = std::mem::take(&mut self.scratch.starts);
        starts.clear();
        starts.extend((0..=255u8).filter(|&byte| is_start[byte as usize]));
        starts
    }

    /// The threads after `byte`, sorted.
    fn step(&mut self, closure: &[Thread], byte: u8) -> Result<Vec<Thread>, DfaError> {
        self.work(closure.len())?;
        let mut threads = Vec::new();
        for &(state, set) in closure {
            let next = if state == MATCHED {
                Some(MATCHED)
            } else {
                match self.nfa.state(state_id(state)) {
                    State::ByteRange { trans } => {
                        trans.matches_byte(byte).then(|| trans.next.as_u32())
                    }
                    State::Sparse(sparse) => sparse.matches_byte(byte).map(|id| id.as_u32()),
                    State::Dense(dense) => dense.matches_byte(byte).map(|id| id.as_u32()),
                    State::Match { .. } if self.context.any_suffix => Some(MATCHED),
                    _ => None,
                }
            };
            let Some(next) = next else { continue };
            let set = if set == 0 && next == MATCHED { self.obligations.any_string() } else { set };
            let Some(set) = self.obligations.step(set, byte) else {
                continue;
            };
            if set == 0 && next == MATCHED {
                // Found, and between two characters: nothing else matters.
                return Ok(vec![(MATCHED, self.obligations.any_string())]);
            }
            threads.push((next, set));
        }
        threads.sort_unstable();
        // A thread without obligations accepts all that one with obligations in the same state
        // does; it sorts first.
        let mut free = None;
        threads.dedup();
        threads.retain(|&(state, set)| {
            if set == 0 {
                free = Some(state);
            }
            set == 0 || free != Some(state)
        });
        Ok(threads)
    }

    /// The id of a state, new or known.
    fn intern(
        &mut self,
        before: Neighbour,
        tracked: &[u32],
        threads: Vec<Thread>,
    ) -> Result<u32, DfaError> {
        // What is before a position matters only if some thread is about to ask.
        let asks =
            threads.iter().any(|&(state, _)| state != MATCHED && self.asserts[state as usize]);
        let before = if asks && (self.sees_words || before == Neighbour::Edge) {
            before
        } else {
            Neighbour::NonWord
        };
        let mut key = Vec::with_capacity(1 + tracked.len() + 2 * threads.len());
        key.push(before as u32);
        key.extend_from_slice(tracked);
        key.extend(threads.into_iter().flat_map(|(state, set)| [state, set]));
        let key = key.into_boxed_slice();
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        // The key is held twice, with its pointers.
        self.bytes += 2 * (size_of_val(&*key) + size_of::<Box<[u32]>>());
        if self.bytes > self.limits.max_determinize_bytes {
            return Err(DfaError::DeterminizeBytes { limit: self.limits.max_determinize_bytes });
        }
        let id = self.keys.len() as u32;
        if self.keys.len() > self.limits.max_states {
            return Err(DfaError::States { limit: self.limits.max_states });
        }
        self.ids.insert(key.clone(), id);
        self.keys.push(key);
        Ok(id)
    }

    fn work(&mut self, steps: usize) -> Result<(), DfaError> {
        self.steps += steps;
        if self.steps > self.limits.max_determinize_steps {
            return Err(DfaError::DeterminizeSteps { limit: self.limits.max_determinize_steps });
        }
        Ok(())
    }
}

/// Interned sets of obligations: pairs of an automaton and its state, all due at the end.
struct Obligations<'a> {
    automata: Vec<std::borrow::Cow<'a, Dfa>>,
    sets: Vec<Box<[(u32, u32)]>>,
    ids: FxHashMap<Box<[(u32, u32)]>, u32>,
    /// For each automaton, the state from which every string is accepted, or 0.
    universal: Vec<u32>,
}

impl<'a> Obligations<'a> {
    fn new() -> Self {
        let any = Dfa::any_string();
        Self {
            automata: vec![std::borrow::Cow::Owned(any)],
            sets: vec![Box::default()],
            ids: std::iter::once((Box::default(), 0)).collect(),
            universal: vec![1],
        }
    }

    /// The index of an automaton.
    fn automaton(&mut self, dfa: &'a Dfa) -> u32 {
        if let Some(index) = self.automata.iter().position(|known| **known == *dfa) {
            return index as u32;
        }
        self.automata.push(std::borrow::Cow::Borrowed(dfa));
        self.universal.push(dfa.universal_state());
        self.automata.len() as u32 - 1
    }

    fn set(&self, id: u32) -> &[(u32, u32)] {
        &self.sets[id as usize]
    }

    fn intern(&mut self, mut set: Vec<(u32, u32)>) -> u32 {
        set.sort_unstable();
        set.dedup();
        let set = set.into_boxed_slice();
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.ids.insert(set.clone(), id);
        self.sets.push(set);
        id
    }

    /// The set that holds the obligation to be valid UTF-8 from a character boundary on.
    fn any_string(&mut self) -> u32 {
        self.intern(vec![(ANY_STRING, 1)])
    }

    /// The set with one more obligation; `None` if nothing meets it.
    fn add(&mut self, set: u32, automaton: u32) -> Option<u32> {
        let start = self.automata[automaton as usize].start();
        if start == Dfa::DEAD {
            return None;
        }
        if start == self.universal[automaton as usize] {
            return Some(set);
        }
        let mut set = self.set(set).to_vec();
        set.push((automaton, start));
        Some(self.intern(set))
    }

    /// The set after a byte, without what is met whatever follows; `None` if one cannot be met.
    fn step(&mut self, set: u32, byte: u8) -> Option<u32> {
        if set == 0 {
            return Some(0);
        }
        let mut next = Vec::with_capacity(self.set(set).len());
        for &(automaton, state) in self.set(set) {
            let state = self.automata[automaton as usize].step(state, byte);
            if state == Dfa::DEAD {
                return None;
            }
            if state != self.universal[automaton as usize] {
                next.push((automaton, state));
            }
        }
        Some(self.intern(next))
    }

    fn are_met(&self, set: u32) -> bool {
        self.set(set)
            .iter()
            .all(|&(automaton, state)| self.automata[automaton as usize].is_accepting(state))
    }
}

/// The nfa's own id for a state whose number came from it.
fn state_id(state: u32) -> StateID {
    StateID::new_unchecked(state as usize)
}

fn index_of<'a>(automata: &mut Vec<&'a Dfa>, dfa: &'a Dfa) -> u32 {
    let index = automata.iter().position(|known| *known == dfa);
    index.unwrap_or_else(|| {
        automata.push(dfa);
        automata.len() - 1
    }) as u32
}

/// For each nfa state, whether its ε-closure can meet an assertion or a lookaround.
fn asserting_states(nfa: &NFA) -> Vec<bool> {
    let states = nfa.states();
    let mut incoming: Vec<(u32, u32)> = Vec::new();
    let mut asserts = vec![false; states.len()];
    let mut stack = Vec::new();
    for (id, state) in states.iter().enumerate() {
        let from = id as u32;
        match state {
            State::Look { .. } => {
                asserts[id] = true;
                stack.push(from);
            }
            State::Capture { next, group_index, .. } => {
                if group_index.as_usize() > 0 {
                    asserts[id] = true;
                    stack.push(from);
                }
                incoming.push((next.as_u32(), from));
            }
            State::Union { alternates } => {
                incoming.extend(alternates.iter().map(|next| (next.as_u32(), from)));
            }
            State::BinaryUnion { alt1, alt2 } => {
                incoming.push((alt1.as_u32(), from));
                incoming.push((alt2.as_u32(), from));
            }
            _ => {}
        }
    }
    incoming.sort_unstable();
    while let Some(state) = stack.pop() {
        let at = incoming.partition_point(|&(target, _)| target < state);
        for &(_, source) in incoming[at..].iter().take_while(|&&(target, _)| target == state) {
            if !std::mem::replace(&mut asserts[source as usize], true) {
                stack.push(source);
            }
        }
    }
    asserts
}
