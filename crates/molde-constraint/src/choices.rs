//! A list of texts as a byte automaton.
//!
//! `no`, `none`, `yes` make
//!
//! ```text
//! 2 ─n─▶ 3 ─o─▶ (4) ─n─▶ 5 ─e─▶ (6)
//!   └y─▶ 7 ─e─▶ 8 ─s─▶ (9)
//! ```
//!
//! The numbers are the [`StateId`]s: 0 and 1 are taken by "dead" and "undecided", accepting states
//! are in parentheses, the edges of a state stand together, ascending by byte.

use std::sync::Arc;

use molde_vocab::{ByteAutomaton, StateId};

/// The number of ids that the trait reserves.
const RESERVED: u32 = 2;

/// Why a list of texts makes no constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoicesError {
    /// There is nothing to choose from.
    #[error("the list of choices is empty, expected at least one text")]
    Empty,
    /// The texts have more distinct prefixes than there are state ids.
    #[error("the choices have more than {max} distinct prefixes: give fewer or shorter texts")]
    TooLarge {
        /// The largest number of prefixes, the empty one included.
        max: usize,
    },
}

/// The texts of a list, and nothing else. Compiled and immutable: a clone shares it.
#[derive(Clone, Debug)]
pub struct Choices {
    trie: Arc<Trie>,
}

#[derive(Debug, Default)]
struct Trie {
    nodes: Vec<Node>,
    /// The edges of all nodes; node `i` has those from `nodes[i].edges` up to the next node's.
    edges: Vec<(u8, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Index of its first edge.
    edges: u32,
    accepts: bool,
    /// Number of bytes to the nearest accepting node, itself included.
    distance: u32,
    /// The first byte on that way, the smallest of several; meaningless where it accepts.
    nearest: u8,
}

impl Choices {
    /// The automaton that accepts exactly `texts`: bytes, in any order, repetitions allowed.
    ///
    /// # Errors
    /// [`ChoicesError::Empty`] for no text, [`ChoicesError::TooLarge`] for more than 2^31 prefixes.
    ///
    /// # Complexity
    /// A sort, then linear in the bytes of the texts. Independent of how many alternatives a state
    /// has, a step is a binary search among them.
    pub fn new<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Result<Self, ChoicesError> {
        let texts: Vec<T> = texts.into_iter().collect();
        let mut texts: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
        texts.sort_unstable();
        texts.dedup();
        if texts.is_empty() {
            return Err(ChoicesError::Empty);
        }
        Ok(Self { trie: Arc::new(Trie::new(&texts)?) })
    }

    fn node(&self, state: StateId) -> Option<&Node> {
        self.trie.nodes.get(state.0.checked_sub(RESERVED)? as usize)
    }
}

impl Trie {
    /// The largest number of nodes, so that ids and edge indices fit.
    const MAX_NODES: usize = 1 << 31;

    fn new(texts: &[&[u8]]) -> Result<Self, ChoicesError> {
        // Nodes in depth-first order: the byte that leads to each, and its parent.
        let mut arrivals: Vec<(u8, u32)> = vec![(0, 0)];
        let mut nodes = vec![Node::default()];
        let mut path: Vec<u32> = vec![0];
        let mut previous: &[u8] = &[];
        for &text in texts {
            let shared = previous.iter().zip(text).take_while(|(a, b)| a == b).count();
            path.truncate(shared + 1);
            for &byte in &text[shared..] {
                if nodes.len() == Self::MAX_NODES {
                    return Err(ChoicesError::TooLarge { max: Self::MAX_NODES });
                }
                arrivals.push((byte, path[path.len() - 1]));
                path.push(nodes.len() as u32);
                nodes.push(Node::default());
            }
            nodes[path[path.len() - 1] as usize].accepts = true;
            previous = text;
        }

        // Counting sort of the edges by parent keeps the bytes ascending.
        for &(_, parent) in &arrivals[1..] {
            nodes[parent as usize].edges += 1;
        }
        let mut total = 0;
        for node in &mut nodes {
            total += node.edges;
            node.edges = total;
        }
        let mut edges = vec![(0, 0); arrivals.len() - 1];
        for (index, &(byte, parent)) in arrivals.iter().enumerate().skip(1).rev() {
            let parent = &mut nodes[parent as usize];
            parent.edges -= 1;
            edges[parent.edges as usize] = (byte, index as u32);
        }

        let mut trie = Self { nodes, edges };
        // Children come after their parent.
        for index in (0..trie.nodes.len()).rev() {
            if trie.nodes[index].accepts {
                continue;
            }
            let nearest = trie
                .edges_of(index)
                .iter()
                .map(|&(byte, child)| (trie.nodes[child as usize].distance, byte))
                .min()
                .expect("a node that does not accept is on the way to a longer text");
            trie.nodes[index].distance = nearest.0 + 1;
            trie.nodes[index].nearest = nearest.1;
        }
        Ok(trie)
    }

    fn edges_of(&self, index: usize) -> &[(u8, u32)] {
        let from = self.nodes[index].edges as usize;
        let to = self.nodes.get(index + 1).map_or(self.edges.len(), |next| next.edges as usize);
        &self.edges[from..to]
    }
}

impl ByteAutomaton for Choices {
    fn start(&mut self) -> StateId {
        StateId(RESERVED)
    }

    fn step(&mut self, state: StateId, byte: u8) -> StateId {
        if self.node(state).is_none() {
            return state;
        }
        let edges = self.trie.edges_of((state.0 - RESERVED) as usize);
        match edges.binary_search_by_key(&byte, |&(byte, _)| byte) {
            Ok(at) => StateId(edges[at].1 + RESERVED),
            Err(_) => StateId::DEAD,
        }
    }

    fn is_accepting(&mut self, state: StateId) -> bool {
        self.node(state).is_some_and(|node| node.accepts)
    }

    fn forced_byte(&mut self, state: StateId) -> Option<u8> {
        let node = self.node(state).filter(|node| !node.accepts)?;
        let edges = self.trie.edges_of((state.0 - RESERVED) as usize);
        (edges.len() == 1).then_some(node.nearest)
    }

    fn completion(&mut self, state: StateId) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut state = state;
        while let Some(node) = self.node(state).filter(|node| !node.accepts) {
            let byte = node.nearest;
            bytes.push(byte);
            state = self.step(state, byte);
        }
        bytes
    }

    fn memory_usage(&self) -> usize {
        self.trie.nodes.capacity() * size_of::<Node>()
            + self.trie.edges.capacity() * size_of::<(u8, u32)>()
    }

    /// Nothing is cached: all ids stay.
    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId> {
        keep.to_vec()
    }
}
