//! The token trie: every token's bytes, shared prefixes once, in one flat array.
//!
//! The vocabulary `0:"a" 1:"ab" 2:"abc" 3:"b" 4:"ba" 5:"ab"` (two ids for one text) makes
//!
//! ```text
//!              index  byte  depth  token  subtree
//!  a ── 0         0     a      0      0        3
//!  └─ ab ── 1,5   1     b      1      1        2      equal texts: 1 → 5
//!     └─ abc ─ 2  2     c      2      2        1
//!  b ── 3         3     b      0      3        2
//!  └─ ba ── 4     4     a      1      4        1
//! ```
//!
//! Nodes stand in depth-first order, so the children of a node follow it, and a node whose byte is
//! rejected is left behind with all its descendants by adding its subtree size to the index. The
//! recognizer's states are kept in a stack indexed by depth: entering a node reads the state of
//! its depth and writes the next one, and nothing is ever popped.

use crate::{ByteSet, TokenId, VocabularyError};

/// The longest text of a token, in bytes: a node keeps its depth in ten bits.
pub(crate) const MAX_TOKEN_BYTES: usize = (1 << DEPTH_BITS) - 1;
/// The largest number of tokens: a node keeps its token in 24 bits, one value means none.
pub(crate) const MAX_TOKENS: usize = NO_TOKEN as usize;
/// The largest number of nodes: a node keeps its subtree size in 22 bits.
const MAX_NODES: usize = (1 << (u32::BITS - DEPTH_BITS)) - 1;

const DEPTH_BITS: u32 = 10;
const NO_TOKEN: u32 = (1 << 24) - 1;

/// All texts of a vocabulary, shared prefixes once. Immutable.
#[derive(Clone, Debug)]
pub struct TokenTrie {
    nodes: Vec<Node>,
    /// Ascending `(first, other)`: a token whose text equals that of `first`, the one in the node.
    duplicates: Vec<(TokenId, TokenId)>,
    /// Length of the longest text, in bytes.
    max_depth: usize,
    /// The children of the root, and of each child of the root, by byte: where most of the
    /// siblings are. `NO_NODE` where there is none.
    wide: Vec<[u32; 256]>,
    /// For each child of the root, by byte, its place in `wide`.
    wide_of: Box<[u16; 256]>,
}

const NO_NODE: u32 = u32::MAX;

/// `token << 8 | byte` and `subtree << DEPTH_BITS | depth`.
#[derive(Clone, Copy, Debug)]
struct Node {
    label: u32,
    place: u32,
}

impl Node {
    const fn new(byte: u8, depth: usize, token: u32) -> Self {
        Self { label: token << 8 | byte as u32, place: depth as u32 }
    }

    const fn byte(self) -> u8 {
        self.label as u8
    }

    const fn token(self) -> Option<TokenId> {
        let token = self.label >> 8;
        if token == NO_TOKEN { None } else { Some(token) }
    }

    const fn depth(self) -> usize {
        (self.place & ((1 << DEPTH_BITS) - 1)) as usize
    }

    const fn subtree(self) -> usize {
        (self.place >> DEPTH_BITS) as usize
    }
}

/// What is run over the trie by [`TokenTrie::walk`].
pub trait TrieVisitor {
    /// What is known after some bytes; copied into a stack, once a node.
    type State: Copy;

    /// The state after `byte`, or `None` to leave every token that goes on this way behind.
    fn enter(&mut self, state: Self::State, byte: u8) -> Option<Self::State>;

    /// `token`'s bytes lead from the start to `state`.
    fn token(&mut self, token: TokenId, state: Self::State);
}

/// A visitor that knows beforehand which bytes are worth entering, for
/// [`TokenTrie::walk_guided`].
pub trait GuidedVisitor: TrieVisitor {
    /// Bytes among which are all those that [`enter`](TrieVisitor::enter) may take from a state.
    fn successors(&mut self, state: Self::State) -> ByteSet;
}

impl TokenTrie {
    /// Builds the trie of the non-empty `texts`, given with their ids in any order. A text is at
    /// most 1,023 bytes long, an id less than 2^24 - 1.
    ///
    /// # Errors
    /// [`VocabularyError::TrieTooLarge`]; the lengths and ids are the caller's to check.
    pub fn new(mut texts: Vec<(&[u8], TokenId)>) -> Result<Self, VocabularyError> {
        texts.sort_unstable();
        let mut nodes: Vec<Node> = Vec::with_capacity(texts.len() * 2);
        let mut duplicates = Vec::new();
        // Indices of the nodes from depth 0 down to the text before, whose subtrees are open.
        let mut open: Vec<usize> = Vec::new();
        let mut previous: Option<(&[u8], TokenId)> = None;
        let mut max_depth = 0;
        for (text, token) in texts {
            let shared = match previous {
                Some((before, first)) if before == text => {
                    duplicates.push((first, token));
                    continue;
                }
                Some((before, _)) => before.iter().zip(text).take_while(|(a, b)| a == b).count(),
                None => 0,
            };
            previous = Some((text, token));
            max_depth = max_depth.max(text.len());
            close(&mut nodes, &mut open, shared);
            for (depth, &byte) in text.iter().enumerate().skip(shared) {
                open.push(nodes.len());
                let own = if depth + 1 == text.len() { token } else { NO_TOKEN };
                nodes.push(Node::new(byte, depth, own));
            }
            if nodes.len() > MAX_NODES {
                return Err(VocabularyError::TrieTooLarge { nodes: nodes.len(), max: MAX_NODES });
            }
        }
        close(&mut nodes, &mut open, 0);
        nodes.shrink_to_fit();
        duplicates.sort_unstable();
        let (wide, wide_of) = wide_tables(&nodes);
        Ok(Self { nodes, duplicates, max_depth, wide, wide_of })
    }

    /// Number of nodes: distinct non-empty prefixes of the texts.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Length of the longest text, in bytes.
    pub const fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Runs `visitor` from `start` over every text, depth first in byte order, each shared prefix
    /// once. `stack` is scratch: its content does not matter, its memory is reused.
    ///
    /// # Complexity
    /// One [`enter`](TrieVisitor::enter) per child of every node that was entered. No allocation
    /// once `stack` holds [`max_depth`](Self::max_depth) + 1 states.
    pub fn walk<V: TrieVisitor>(
        &self,
        visitor: &mut V,
        start: V::State,
        stack: &mut Vec<V::State>,
    ) {
        stack.clear();
        stack.resize(self.max_depth + 1, start);
        let stack = stack.as_mut_slice();
        let mut index = 0;
        while let Some(&node) = self.nodes.get(index) {
            let depth = node.depth();
            let Some(next) = visitor.enter(stack[depth], node.byte()) else {
                index += node.subtree();
                continue;
            };
            stack[depth + 1] = next;
            if let Some(token) = node.token() {
                visitor.token(token, next);
                if !self.duplicates.is_empty() {
                    self.equal_texts(token).for_each(|other| visitor.token(other, next));
                }
            }
            index += 1;
        }
    }

    /// As [`walk`](Self::walk), along the bytes that the visitor asks for; the order of the tokens
    /// is the same.
    ///
    /// # Complexity
    /// In the first two levels one step for each byte asked for, below one look for each child of a
    /// node that was entered.
    pub fn walk_guided<V: GuidedVisitor>(
        &self,
        visitor: &mut V,
        start: V::State,
        stack: &mut Vec<(V::State, ByteSet)>,
    ) {
        let first = visitor.successors(start);
        for byte in first.iter() {
            let index = self.wide[0][byte as usize];
            if index == NO_NODE {
                continue;
            }
            let index = index as usize;
            let Some(state) = self.enter(visitor, start, index) else { continue };
            if self.nodes[index].subtree() == 1 {
                continue;
            }
            let second = visitor.successors(state);
            let table = &self.wide[usize::from(self.wide_of[byte as usize])];
            for byte in second.iter() {
                let index = table[byte as usize];
                if index != NO_NODE
                    && let Some(state) = self.enter(visitor, state, index as usize)
                    && self.nodes[index as usize].subtree() > 1
                {
                    self.walk_below(visitor, index as usize, state, stack);
                }
            }
        }
    }

    /// Enters a node and reports its token.
    fn enter<V: TrieVisitor>(
        &self,
        visitor: &mut V,
        state: V::State,
        index: usize,
    ) -> Option<V::State> {
        let node = self.nodes[index];
        let next = visitor.enter(state, node.byte())?;
        if let Some(token) = node.token() {
            visitor.token(token, next);
            if !self.duplicates.is_empty() {
                self.equal_texts(token).for_each(|other| visitor.token(other, next));
            }
        }
        Some(next)
    }

    /// The part of a guided walk below a node that was entered.
    fn walk_below<V: GuidedVisitor>(
        &self,
        visitor: &mut V,
        top: usize,
        state: V::State,
        stack: &mut Vec<(V::State, ByteSet)>,
    ) {
        let own_depth = self.nodes[top].depth();
        let end = top + self.nodes[top].subtree();
        stack.clear();
        stack.push((state, visitor.successors(state)));
        let mut index = top + 1;
        while index < end {
            let node = self.nodes[index];
            let depth = node.depth() - own_depth;
            stack.truncate(depth);
            let (state, successors) = stack[depth - 1];
            if successors.contains(node.byte())
                && let Some(next) = self.enter(visitor, state, index)
            {
                if node.subtree() > 1 {
                    stack.push((next, visitor.successors(next)));
                }
                index += 1;
            } else {
                index += node.subtree();
            }
        }
    }

    /// The tokens whose text is a prefix of `bytes`, as `(length in bytes, token)`, shortest first;
    /// of equal texts the lowest id.
    ///
    /// # Complexity
    /// At most 256 nodes are looked at for each byte.
    pub fn prefixes<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, TokenId)> + 'a {
        let mut siblings = 0..self.nodes.len();
        let mut depth = 0;
        std::iter::from_fn(move || {
            loop {
                let &byte = bytes.get(depth)?;
                let index = self.child(siblings.clone(), byte)?;
                let node = self.nodes[index];
                siblings = index + 1..index + node.subtree();
                depth += 1;
                if let Some(token) = node.token() {
                    return Some((depth, token));
                }
            }
        })
    }

    /// The heap bytes held.
    pub fn memory_usage(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.duplicates.capacity() * size_of::<(TokenId, TokenId)>()
            + self.wide.capacity() * size_of::<[u32; 256]>()
    }

    /// The node of `siblings`, a run of whole subtrees, that has `byte`.
    fn child(&self, mut siblings: std::ops::Range<usize>, byte: u8) -> Option<usize> {
        while siblings.start < siblings.end {
            let node = self.nodes[siblings.start];
            if node.byte() >= byte {
                return (node.byte() == byte).then_some(siblings.start);
            }
            siblings.start += node.subtree();
        }
        None
    }

    /// The further ids whose text is that of `first`, the lowest of them.
    pub fn equal_texts(&self, first: TokenId) -> impl Iterator<Item = TokenId> + '_ {
        let from = self.duplicates.partition_point(|&(token, _)| token < first);
        self.duplicates[from..]
            .iter()
            .take_while(move |&&(token, _)| token == first)
            .map(|&(_, other)| other)
    }
}

/// The children of the root by byte, then those of each child of the root; and where those are.
fn wide_tables(nodes: &[Node]) -> (Vec<[u32; 256]>, Box<[u16; 256]>) {
    let mut wide = vec![[NO_NODE; 256]];
    let mut wide_of = Box::new([0; 256]);
    let mut index = 0;
    while let Some(node) = nodes.get(index) {
        wide[0][node.byte() as usize] = index as u32;
        wide_of[node.byte() as usize] = wide.len() as u16;
        let mut table = [NO_NODE; 256];
        let end = index + node.subtree();
        let mut child = index + 1;
        while child < end {
            table[nodes[child].byte() as usize] = child as u32;
            child += nodes[child].subtree();
        }
        wide.push(table);
        index = end;
    }
    (wide, wide_of)
}

/// Writes the subtree sizes of the open nodes from `depth` down, which end here.
fn close(nodes: &mut [Node], open: &mut Vec<usize>, depth: usize) {
    let end = nodes.len();
    for index in open.drain(depth..) {
        nodes[index].place |= ((end - index) as u32) << DEPTH_BITS;
    }
}
