//! Which numbers of characters lead from a state to acceptance.
//!
//! `minLength` and `maxLength` are counters, not copies of states: what the counter needs from the
//! automaton is whether a state still has an accepted continuation of between `a` and `b`
//! characters. For most patterns the attainable lengths of every state are an interval, which is
//! proved once and answered in constant time; the others get one bit a state and length.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{
    Dfa, DfaError, DfaLimits,
    shortest::{Incoming, starts_character},
};

/// No bound.
const INFINITE: u32 = u32::MAX;

/// The attainable lengths, in code points, of every state of one [`Dfa`].
///
/// A position inside a character counts as after it: its lead byte was counted when it was read.
#[derive(Debug, Clone)]
pub(crate) struct Lengths {
    /// Shortest continuation of each state.
    min: Box<[u32]>,
    /// Longest continuation of each state, or `INFINITE`.
    max: Box<[u32]>,
    /// States whose attainable lengths are proved to be all of `min..=max`.
    interval: Box<[bool]>,
    /// For the other states: the states that have a continuation of exactly n code points.
    layers: Option<Layers>,
}

/// Row n: the states with a continuation of exactly n code points, one bit each.
#[derive(Debug, Clone)]
struct Layers {
    rows: Vec<Box<[u64]>>,
    /// Row that follows the last one, if the rows repeat.
    repeats_from: Option<usize>,
}

impl Layers {
    fn contains(&self, state: u32, length: u64) -> bool {
        let rows = self.rows.len() as u64;
        let row = match self.repeats_from {
            _ if length < rows => length,
            Some(from) => from as u64 + (length - from as u64) % (rows - from as u64),
            None => return false,
        };
        self.rows[row as usize][state as usize / 64] >> (state % 64) & 1 == 1
    }
}

impl Lengths {
    /// Analyses `dfa` for questions with upper bounds up to `max_length` code points (`None`: none
    /// will have an upper bound).
    ///
    /// # Errors
    /// [`DfaError::LengthTable`] if some state's lengths are no interval and the table for them
    /// exceeds `max_length_table_bytes`.
    ///
    /// # Complexity
    /// O(transitions) where every state's lengths are an interval, else O(transitions x lengths
    /// until they repeat).
    pub(crate) fn new(
        dfa: &Dfa,
        max_length: Option<u64>,
        limits: &DfaLimits,
    ) -> Result<Self, DfaError> {
        let incoming = Incoming::new(&dfa.offsets, &dfa.transitions);
        let min = shortest_lengths(dfa, &incoming);
        let max = longest_lengths(dfa, &incoming);
        let interval = interval_states(dfa, &incoming, &min, &max);
        let layers = match max_length {
            Some(max_length) if interval[1..].contains(&false) => {
                Some(layers(dfa, &incoming, max_length, limits)?)
            }
            _ => None,
        };
        Ok(Self { min: min.into(), max: max.into(), interval: interval.into(), layers })
    }

    /// Fewest code points from `state` to acceptance; `None` from the dead state.
    pub(crate) fn min(&self, state: u32) -> Option<u64> {
        let min = self.min[state as usize];
        (min != INFINITE).then_some(u64::from(min))
    }

    /// Most code points from `state` to acceptance; `None` if there is no most.
    pub(crate) fn max(&self, state: u32) -> Option<u64> {
        let max = self.max[state as usize];
        (max != INFINITE).then_some(u64::from(max))
    }

    /// Fewest and most code points from `state` to acceptance (`None`: no most), if every number
    /// between is attained.
    pub(crate) fn interval(&self, state: u32) -> Option<(u64, Option<u64>)> {
        let min = self.min(state)?;
        self.interval[state as usize].then(|| (min, self.max(state)))
    }

    /// Whether some accepted continuation of `state` has at least `least` and at most `most` code
    /// points (`None`: any number). `most` must not exceed the `max_length` of
    /// [`new`](Self::new).
    ///
    /// # Complexity
    /// O(1) for states whose lengths are an interval, else O(lengths until they repeat).
    pub(crate) fn reachable(&self, state: u32, least: u64, most: Option<u64>) -> bool {
        let Some(min) = self.min(state) else {
            return false;
        };
        let max = self.max(state);
        let Some(most) = most else {
            return max.is_none_or(|max| least <= max);
        };
        let low = least.max(min);
        let high = max.map_or(most, |max| most.min(max));
        if low > high {
            return false;
        }
        if self.interval[state as usize] || low == min || Some(high) == max {
            return true;
        }
        self.layers.as_ref().is_some_and(|layers| {
            // Beyond one row each, the answers repeat.
            let last = high.min(low.saturating_add(layers.rows.len() as u64));
            (low..=last).any(|length| layers.contains(state, length))
        })
    }

    /// Heap bytes held.
    #[cfg(test)]
    pub(crate) fn memory_usage(&self) -> usize {
        size_of_val(&*self.min)
            + size_of_val(&*self.max)
            + size_of_val(&*self.interval)
            + self
                .layers
                .iter()
                .flat_map(|layers| &layers.rows)
                .map(|row| size_of_val(&**row) + size_of::<Box<[u64]>>())
                .sum::<usize>()
    }
}

fn shortest_lengths(dfa: &Dfa, incoming: &Incoming) -> Vec<u32> {
    let mut min = vec![INFINITE; dfa.states()];
    let mut queue = VecDeque::new();
    for state in 1..dfa.states() as u32 {
        if dfa.is_accepting(state) {
            min[state as usize] = 0;
            queue.push_back(state);
        }
    }
    // Steps weigh 0 or 1, so a queue with two ends keeps the order of distances.
    while let Some(state) = queue.pop_front() {
        let base = min[state as usize];
        for &(source, lead) in incoming.of(state) {
            let through = base + u32::from(lead);
            if through < min[source as usize] {
                min[source as usize] = through;
                if lead {
                    queue.push_back(source);
                } else {
                    queue.push_front(source);
                }
            }
        }
    }
    min
}

fn longest_lengths(dfa: &Dfa, incoming: &Incoming) -> Vec<u32> {
    let mut max = vec![INFINITE; dfa.states()];
    let mut open: Vec<usize> =
        (0..dfa.states() as u32).map(|state| dfa.transitions(state).len()).collect();
    // States from which no cycle is reachable, successors first; the rest have no longest word.
    let mut done: Vec<u32> =
        (0..dfa.states() as u32).filter(|&state| open[state as usize] == 0).collect();
    let mut next = 0;
    while next < done.len() {
        let state = done[next];
        next += 1;
        max[state as usize] = dfa
            .transitions(state)
            .iter()
            .map(|t| max[t.target as usize] + u32::from(starts_character(*t)))
            .max()
            .unwrap_or(0);
        for &(source, _) in incoming.of(state) {
            open[source as usize] -= 1;
            if open[source as usize] == 0 {
                done.push(source);
            }
        }
    }
    max
}

/// The states whose lengths are proved to be an interval.
///
/// Greatest fixpoint: a state stays while the intervals of its successors, shifted by the step,
/// and `0` where it accepts, leave no gap between its `min` and `max`; a successor that dropped
/// out contributes its `min` alone. That this proves it follows by induction on the length: a
/// length in the cover is attained by a shorter one of a successor, and steps of weight 0 form no
/// cycle.
fn interval_states(dfa: &Dfa, incoming: &Incoming, min: &[u32], max: &[u32]) -> Vec<bool> {
    let mut interval = vec![true; dfa.states()];
    let mut queued = vec![true; dfa.states()];
    let mut queue: Vec<u32> = (1..dfa.states() as u32).collect();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    while let Some(state) = queue.pop() {
        queued[state as usize] = false;
        if !interval[state as usize] {
            continue;
        }
        parts.clear();
        if dfa.is_accepting(state) {
            parts.push((0, 0));
        }
        for transition in dfa.transitions(state) {
            let target = transition.target as usize;
            let step = u32::from(starts_character(*transition));
            let last = if interval[target] { max[target] } else { min[target] };
            let last = if last == INFINITE { INFINITE } else { last + step };
            parts.push((min[target] + step, last));
        }
        parts.sort_unstable();
        let mut reached = min[state as usize];
        for &(first, last) in &parts {
            if reached != INFINITE && first > reached + 1 {
                break;
            }
            reached = reached.max(last);
        }
        if reached != max[state as usize] {
            interval[state as usize] = false;
            for &(source, _) in incoming.of(state) {
                if !queued[source as usize] {
                    queued[source as usize] = true;
                    queue.push(source);
                }
            }
        }
    }
    interval
}

fn layers(
    dfa: &Dfa,
    incoming: &Incoming,
    max_length: u64,
    limits: &DfaLimits,
) -> Result<Layers, DfaError> {
    let words = dfa.states().div_ceil(64);
    let mut rows: Vec<Box<[u64]>> = Vec::new();
    let mut seen: FxHashMap<Box<[u64]>, usize> = FxHashMap::default();
    let mut members: Vec<u32> =
        (1..dfa.states() as u32).filter(|&state| dfa.is_accepting(state)).collect();
    loop {
        let mut row = vec![0u64; words].into_boxed_slice();
        members.retain(|&state| insert(&mut row, state));
        // Positions inside a character reach the same acceptance with no further code point.
        let mut next = 0;
        while next < members.len() {
            let state = members[next];
            next += 1;
            for &(source, lead) in incoming.of(state) {
                if !lead && insert(&mut row, source) {
                    members.push(source);
                }
            }
        }
        if let Some(&from) = seen.get(&row) {
            return Ok(Layers { rows, repeats_from: Some(from) });
        }
        // Each row is held twice: in order, and as a key.
        if (rows.len() + 1).saturating_mul(words * 16) > limits.max_length_table_bytes {
            return Err(DfaError::LengthTable { limit: limits.max_length_table_bytes });
        }
        seen.insert(row.clone(), rows.len());
        rows.push(row);
        if rows.len() as u64 > max_length {
            return Ok(Layers { rows, repeats_from: None });
        }
        members = members
            .iter()
            .flat_map(|&state| incoming.of(state))
            .filter(|&&(_, lead)| lead)
            .map(|&(source, _)| source)
            .collect();
    }
}

/// Sets a bit; whether it was clear.
fn insert(row: &mut [u64], state: u32) -> bool {
    let word = &mut row[state as usize / 64];
    let bit = 1 << (state % 64);
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}
