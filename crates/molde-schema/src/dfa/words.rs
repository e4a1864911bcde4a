//! Automata of finite sets of words, minimal from the start.
//!
//! Words enter in sorted order; a node is frozen, and shared with an equal one, as soon as no later
//! word can change it: J. Daciuk et al., "Incremental construction of minimal acyclic finite-state
//! automata", Computational Linguistics 26 (2000). Memory stays near that of the minimal automaton.

use rustc_hash::FxHashMap;

use super::{Dfa, DfaError, DfaLimits, RawDfa, minimize::canonical};

/// A node on the path of the last word: it may still change.
#[derive(Default)]
struct OpenNode {
    accepting: bool,
    /// Frozen children; the child on the path is not among them.
    children: Vec<(u8, u32)>,
}

/// Whether a node accepts, and its children.
type Content = (bool, Box<[(u8, u32)]>);

/// Frozen nodes, by content.
struct Frozen {
    raw: RawDfa,
    ids: FxHashMap<Content, u32>,
}

impl Frozen {
    fn freeze(&mut self, node: OpenNode, limits: &DfaLimits) -> Result<u32, DfaError> {
        let key = (node.accepting, node.children.into_boxed_slice());
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        let id = self.raw.push_state(key.0, limits)?;
        for &(byte, target) in &key.1 {
            self.raw.push_transition(byte, byte, target);
        }
        self.ids.insert(key, id);
        Ok(id)
    }
}

impl Dfa {
    /// Appends the words that go on from `state`, of which there must be finitely many.
    pub(crate) fn words_from(&self, state: u32, words: &mut Vec<Box<[u8]>>) {
        let mut open = vec![(state, Vec::new())];
        while let Some((state, word)) = open.pop() {
            if state != Self::DEAD && self.is_accepting(state) {
                words.push(word.as_slice().into());
            }
            for transition in self.transitions(state) {
                for byte in transition.lo..=transition.hi {
                    let mut longer: Vec<u8> = word.clone();
                    longer.push(byte);
                    open.push((transition.target, longer));
                }
            }
        }
    }

    /// Exactly these words, in any order, repeated or not.
    ///
    /// # Errors
    /// [`DfaError::Transitions`] if the minimal automaton needs more than `max_transitions` of
    /// them. `max_states` does not apply: a trie costs memory proportional to its words, which the
    /// caller already holds.
    ///
    /// # Complexity
    /// O(n log n) for n bytes of words.
    pub(crate) fn from_words<I, W>(words: I, limits: &DfaLimits) -> Result<Self, DfaError>
    where
        I: IntoIterator<Item = W>,
        W: AsRef<[u8]>,
    {
        let limits = &DfaLimits { max_states: limits.max_transitions, ..*limits };
        let mut words: Vec<W> = words.into_iter().collect();
        if words.is_empty() {
            return Ok(Self::empty());
        }
        words.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        let mut frozen = Frozen { raw: RawDfa::new(), ids: FxHashMap::default() };
        let mut path = vec![OpenNode::default()];
        let mut previous: &[u8] = &[];
        for word in &words {
            let word = word.as_ref();
            let common = common_prefix(previous, word);
            close(&mut path, previous, common, &mut frozen, limits)?;
            path.extend(word[common..].iter().map(|_| OpenNode::default()));
            path.last_mut().expect("the root is never closed here").accepting = true;
            previous = word;
        }
        close(&mut path, previous, 0, &mut frozen, limits)?;
        let root = path.pop().expect("the root is still open");
        let start = frozen.freeze(root, limits)?;
        // Already minimal, and every state leads to the word it was made for.
        Ok(canonical(&frozen.raw, start, Some, |state| state))
    }

    /// Exactly one word.
    #[cfg(test)]
    pub(crate) fn literal(word: &str) -> Self {
        let unlimited = DfaLimits {
            max_states: usize::MAX,
            max_transitions: usize::MAX,
            ..DfaLimits::default()
        };
        Self::from_words([word], &unlimited).expect("no limit applies to one word")
    }
}

/// Freezes the open nodes below depth `keep` of the path that spells `word`.
fn close(
    path: &mut Vec<OpenNode>,
    word: &[u8],
    keep: usize,
    frozen: &mut Frozen,
    limits: &DfaLimits,
) -> Result<(), DfaError> {
    while path.len() > keep + 1 {
        let node = path.pop().expect("longer than one");
        let id = frozen.freeze(node, limits)?;
        let byte = word[path.len() - 1];
        path.last_mut().expect("the root stays").children.push((byte, id));
    }
    Ok(())
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
