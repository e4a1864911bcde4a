//! Shortest words, and how many words there are.

use super::{Dfa, RawDfa, Transition};

/// Incoming transitions of each state, in one flat array.
pub(super) struct Incoming {
    offsets: Vec<u32>,
    /// Source state, and whether the byte range starts a character.
    sources: Vec<(u32, bool)>,
}

impl Incoming {
    pub(super) fn new(offsets: &[u32], transitions: &[Transition]) -> Self {
        let states = offsets.len() - 1;
        let mut counts = vec![0u32; states + 1];
        for transition in transitions {
            counts[transition.target as usize + 1] += 1;
        }
        for state in 0..states {
            counts[state + 1] += counts[state];
        }
        let mut cursor = counts.clone();
        let mut sources = vec![(0, false); transitions.len()];
        for state in 0..states {
            for transition in &transitions[offsets[state] as usize..offsets[state + 1] as usize] {
                let at = &mut cursor[transition.target as usize];
                sources[*at as usize] = (state as u32, starts_character(*transition));
                *at += 1;
            }
        }
        Self { offsets: counts, sources }
    }

    pub(super) fn of(&self, state: u32) -> &[(u32, bool)] {
        let state = state as usize;
        &self.sources[self.offsets[state] as usize..self.offsets[state + 1] as usize]
    }
}

/// Whether the bytes of a range are no UTF-8 continuation bytes. A range never mixes the two in a
/// language of valid UTF-8.
pub(super) fn starts_character(transition: Transition) -> bool {
    transition.lo & 0xC0 != 0x80
}

/// Fewest bytes from each state to acceptance; `u32::MAX` for the dead state.
pub(super) fn distances(raw: &RawDfa) -> Vec<u32> {
    let incoming = Incoming::new(&raw.offsets, &raw.transitions);
    let mut distance = vec![u32::MAX; raw.len()];
    let mut queue: Vec<u32> =
        (0..raw.len() as u32).filter(|&state| raw.accepting[state as usize]).collect();
    for &state in &queue {
        distance[state as usize] = 0;
    }
    let mut next = 0;
    while next < queue.len() {
        let state = queue[next];
        next += 1;
        for &(source, _) in incoming.of(state) {
            if distance[source as usize] == u32::MAX {
                distance[source as usize] = distance[state as usize] + 1;
                queue.push(source);
            }
        }
    }
    distance
}

impl Dfa {
    /// Fewest bytes from `state` to acceptance; `u32::MAX` from the dead state.
    pub(crate) fn shortest_len(&self, state: u32) -> u32 {
        self.distance[state as usize]
    }

    /// A shortest accepted continuation of `state`, in bytes; empty where it accepts, and from the
    /// dead state, which has none.
    ///
    /// Among equally short ones: lower-case letters, then digits, then capitals, then other
    /// printable ASCII that needs no escape in JSON, then the rest; the first in byte order.
    pub(crate) fn shortest(&self, mut state: u32) -> Vec<u8> {
        let mut word = Vec::new();
        while state != Self::DEAD && self.distance[state as usize] > 0 {
            let left = self.distance[state as usize] - 1;
            let (_, byte, target) = self
                .transitions(state)
                .iter()
                .filter(|t| self.distance[t.target as usize] == left)
                .map(|t| {
                    let (rank, byte) = preferred_byte(t.lo, t.hi);
                    (rank, byte, t.target)
                })
                .min()
                .expect("a state at distance d has a successor at d - 1");
            word.push(byte);
            state = target;
        }
        word
    }

    /// Number of words, or `cap` if there are at least that many. O(states + transitions).
    pub(crate) fn count_up_to(&self, cap: u64) -> u64 {
        let incoming = Incoming::new(&self.offsets, &self.transitions);
        let mut open: Vec<u32> =
            (0..self.states()).map(|state| self.offsets[state + 1] - self.offsets[state]).collect();
        let mut count: Vec<u64> = self.accepting.iter().map(|&a| u64::from(a)).collect();
        // A state is done when all its successors are; one that never is reaches a cycle.
        let mut done: Vec<u32> =
            (1..self.states() as u32).filter(|&state| open[state as usize] == 0).collect();
        let mut next = 0;
        while next < done.len() {
            let state = done[next];
            next += 1;
            for transition in self.transitions(state) {
                let bytes = u64::from(transition.hi - transition.lo) + 1;
                count[state as usize] = count[state as usize]
                    .saturating_add(bytes.saturating_mul(count[transition.target as usize]));
            }
            for &(source, _) in incoming.of(state) {
                open[source as usize] -= 1;
                if open[source as usize] == 0 {
                    done.push(source);
                }
            }
        }
        if next + 1 < self.states() {
            return cap;
        }
        count[self.start() as usize].min(cap)
    }
}

/// The byte of a range to show to a reader, and its rank among others: lower is better.
fn preferred_byte(lo: u8, hi: u8) -> (u8, u8) {
    const PREFERRED: [(u8, u8); 7] = [
        (b'a', b'z'),
        (b'0', b'9'),
        (b'A', b'Z'),
        (b'#', b'['),
        (b']', b'~'),
        (b'!', b'!'),
        (b' ', b' '),
    ];
    for (rank, &(first, last)) in PREFERRED.iter().enumerate() {
        if lo <= last && first <= hi {
            return (rank as u8, lo.max(first));
        }
    }
    (PREFERRED.len() as u8, lo)
}
