//! Minimization and canonical numbering.
//!
//! Partition refinement over states and transitions together, so that a sparse automaton with `m`
//! transitions costs O(m log m): A. Valmari, "Fast brief practical DFA minimization",
//! Information Processing Letters 112 (2012).

use super::{Dfa, DfaError, DfaLimits, RawDfa};

/// A partition of `0..n` that can be refined by marking elements and splitting off the marked.
struct Partition {
    /// Elements, the members of one set next to each other.
    elements: Vec<u32>,
    /// Position of each element in `elements`.
    location: Vec<u32>,
    /// Set of each element.
    set: Vec<u32>,
    /// First position of each set.
    first: Vec<u32>,
    /// Position after the last of each set.
    past: Vec<u32>,
    /// Marked members of each set; they come first in it.
    marked: Vec<u32>,
    /// Sets with marked members.
    touched: Vec<u32>,
}

impl Partition {
    /// One set with all of `0..n`, or none if `n` is 0.
    fn new(n: usize) -> Self {
        let elements: Vec<u32> = (0..n as u32).collect();
        Self {
            location: elements.clone(),
            elements,
            set: vec![0; n],
            first: if n == 0 { Vec::new() } else { vec![0] },
            past: if n == 0 { Vec::new() } else { vec![n as u32] },
            marked: if n == 0 { Vec::new() } else { vec![0] },
            touched: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.first.len()
    }

    fn members(&self, set: usize) -> std::ops::Range<usize> {
        self.first[set] as usize..self.past[set] as usize
    }

    fn mark(&mut self, element: u32) {
        let set = self.set[element as usize] as usize;
        let from = self.location[element as usize];
        let to = self.first[set] + self.marked[set];
        if from < to {
            return;
        }
        let other = self.elements[to as usize];
        self.elements[from as usize] = other;
        self.location[other as usize] = from;
        self.elements[to as usize] = element;
        self.location[element as usize] = to;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Splits every touched set in marked and unmarked; the smaller half becomes a new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let set = set as usize;
            let middle = self.first[set] + self.marked[set];
            let marked = std::mem::take(&mut self.marked[set]);
            if middle == self.past[set] {
                continue;
            }
            let new = self.first.len() as u32;
            if marked <= self.past[set] - middle {
                self.first.push(self.first[set]);
                self.past.push(middle);
                self.first[set] = middle;
            } else {
                self.first.push(middle);
                self.past.push(self.past[set]);
                self.past[set] = middle;
            }
            self.marked.push(0);
            for position in self.members(new as usize) {
                let element = self.elements[position];
                self.set[element as usize] = new;
            }
        }
    }
}

/// The minimal, trimmed, canonically numbered automaton of `raw`'s language from `start`.
///
/// # Errors
/// [`DfaError::Transitions`] if the transitions, refined to byte classes, exceed the limit.
///
/// # Complexity
/// O(m log m) for m transitions after refining ranges to the byte classes of the whole automaton.
pub(crate) fn minimize(raw: &RawDfa, start: u32, limits: &DfaLimits) -> Result<Dfa, DfaError> {
    let live = live_states(raw, start);
    if start == 0 || !live[start as usize] {
        return Ok(Dfa::empty());
    }
    // Dense ids for the live states only.
    let mut dense = vec![u32::MAX; raw.len()];
    let mut states = Vec::new();
    for (state, &is_live) in live.iter().enumerate() {
        if is_live {
            dense[state] = states.len() as u32;
            states.push(state as u32);
        }
    }
    let classes = byte_classes(raw, &states);
    let mut tails = Vec::new();
    let mut heads = Vec::new();
    let mut labels: Vec<u16> = Vec::new();
    for &state in &states {
        for transition in raw.transitions(state) {
            let head = dense[transition.target as usize];
            if head == u32::MAX {
                continue;
            }
            for class in classes[transition.lo as usize]..=classes[transition.hi as usize] {
                tails.push(dense[state as usize]);
                heads.push(head);
                labels.push(class);
            }
            if tails.len() > limits.max_transitions {
                return Err(DfaError::Transitions { limit: limits.max_transitions });
            }
        }
    }
    let blocks = refine(raw, &states, &tails, &heads, &labels);
    Ok(canonical(
        raw,
        start,
        |state| {
            let element = dense[state as usize];
            (element != u32::MAX).then(|| blocks.set[element as usize])
        },
        |block| states[blocks.elements[blocks.first[block as usize] as usize] as usize],
    ))
}

/// The coarsest partition of the states that acceptance and transitions respect.
fn refine(raw: &RawDfa, states: &[u32], tails: &[u32], heads: &[u32], labels: &[u16]) -> Partition {
    let mut blocks = Partition::new(states.len());
    for (element, &state) in states.iter().enumerate() {
        if raw.accepting[state as usize] {
            blocks.mark(element as u32);
        }
    }
    blocks.split();

    // One cord a label at first: sort the transitions by label, then cut.
    let mut cords = Partition::new(tails.len());
    if !tails.is_empty() {
        cords.elements.sort_by_key(|&t| labels[t as usize]);
        cords.first.clear();
        cords.past.clear();
        cords.marked.clear();
        let mut previous = None;
        for position in 0..cords.elements.len() {
            let transition = cords.elements[position] as usize;
            if previous != Some(labels[transition]) {
                if previous.is_some() {
                    cords.past.push(position as u32);
                }
                cords.first.push(position as u32);
                cords.marked.push(0);
                previous = Some(labels[transition]);
            }
            cords.set[transition] = cords.first.len() as u32 - 1;
            cords.location[transition] = position as u32;
        }
        cords.past.push(cords.elements.len() as u32);
    }

    // Incoming transitions of each state, in one flat array.
    let mut incoming_offsets = vec![0u32; states.len() + 1];
    for &head in heads {
        incoming_offsets[head as usize + 1] += 1;
    }
    for i in 0..states.len() {
        incoming_offsets[i + 1] += incoming_offsets[i];
    }
    let mut cursor = incoming_offsets.clone();
    let mut incoming = vec![0u32; heads.len()];
    for (transition, &head) in heads.iter().enumerate() {
        incoming[cursor[head as usize] as usize] = transition as u32;
        cursor[head as usize] += 1;
    }

    let mut next_block = 1;
    let mut next_cord = 0;
    while next_cord < cords.len() {
        for position in cords.members(next_cord) {
            blocks.mark(tails[cords.elements[position] as usize]);
        }
        blocks.split();
        next_cord += 1;
        while next_block < blocks.len() {
            for position in blocks.members(next_block) {
                let state = blocks.elements[position] as usize;
                for &transition in &incoming
                    [incoming_offsets[state] as usize..incoming_offsets[state + 1] as usize]
                {
                    cords.mark(transition);
                }
            }
            cords.split();
            next_block += 1;
        }
    }
    blocks
}

/// Numbers blocks of states breadth first from the start state's, which becomes 1.
///
/// `block_of` gives the block of a state, `None` for a dead one; `member_of` gives some state of a
/// block. The blocks must be those of the minimal automaton, and the start state live.
pub(super) fn canonical(
    raw: &RawDfa,
    start: u32,
    block_of: impl Fn(u32) -> Option<u32>,
    member_of: impl Fn(u32) -> u32,
) -> Dfa {
    let mut ids = vec![0u32; raw.len()];
    let start_block = block_of(start).expect("the start state is live");
    ids[start_block as usize] = 1;
    let mut order = vec![start_block];
    let mut out = RawDfa::new();
    let mut next = 0;
    while next < order.len() {
        let member = member_of(order[next]);
        next += 1;
        out.accepting.push(raw.accepting[member as usize]);
        out.offsets.push(out.transitions.len() as u32);
        for transition in raw.transitions(member) {
            let Some(target) = block_of(transition.target) else {
                continue;
            };
            let id = &mut ids[target as usize];
            if *id == 0 {
                order.push(target);
                *id = order.len() as u32;
            }
            out.push_transition(transition.lo, transition.hi, *id);
        }
    }
    Dfa::from_canonical(out)
}

/// Which states are reachable from `start` and lead to acceptance.
fn live_states(raw: &RawDfa, start: u32) -> Vec<bool> {
    let mut reachable = vec![false; raw.len()];
    let mut stack = vec![start];
    reachable[start as usize] = true;
    let mut incoming: Vec<(u32, u32)> = Vec::new();
    while let Some(state) = stack.pop() {
        for transition in raw.transitions(state) {
            incoming.push((transition.target, state));
            if !reachable[transition.target as usize] {
                reachable[transition.target as usize] = true;
                stack.push(transition.target);
            }
        }
    }
    incoming.sort_unstable();
    let mut live = vec![false; raw.len()];
    for state in 0..raw.len() {
        if reachable[state] && raw.accepting[state] {
            live[state] = true;
            stack.push(state as u32);
        }
    }
    while let Some(state) = stack.pop() {
        let from = incoming.partition_point(|&(target, _)| target < state);
        for &(_, source) in incoming[from..].iter().take_while(|&&(target, _)| target == state) {
            if !live[source as usize] {
                live[source as usize] = true;
                stack.push(source);
            }
        }
    }
    live
}

/// Class of each byte: bytes that no transition of `states` tells apart share one.
fn byte_classes(raw: &RawDfa, states: &[u32]) -> [u16; 256] {
    let mut starts = [false; 257];
    starts[0] = true;
    for &state in states {
        for transition in raw.transitions(state) {
            starts[transition.lo as usize] = true;
            starts[transition.hi as usize + 1] = true;
        }
    }
    let mut classes = [0u16; 256];
    let mut class = 0;
    for byte in 1..256 {
        if starts[byte] {
            class += 1;
        }
        classes[byte] = class;
    }
    classes
}
