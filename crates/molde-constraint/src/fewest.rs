//! The fewest tokens that complete the text.
//!
//! The count of [`completion`](crate::completion) is that of a shortest text, which is enough but not
//! always the least: a longer text may have fewer tokens, as `"true"` in one token beside `"ab"` in
//! two. So where it matters all token sequences are tried, shortest first, each state once:
//!
//! ```text
//! depth 0   start                          a state is left out where the bytes that must follow it
//! depth 1   states after one token         take more tokens than could still make a difference
//! depth 2   …                   ──▶ the first depth with a complete text is the minimum
//! ```
//!
//! That takes as many steps as there are states within reach, so it has a limit; beyond it the count
//! of the shortest text stands.

use molde_vocab::{ByteAutomaton, StateId, TokenId};
use rustc_hash::FxHashSet;

use crate::completion::Completion;
use crate::table::{StateTable, Step};

/// Forced bytes that are looked at to see how many tokens they take.
const MAX_FORCED_BYTES: usize = 48;

/// Steps that it takes to settle a state, which reads the whole text again.
const SETTLE_STEPS: usize = 64;

/// A state that was reached, and how.
struct Node {
    state: StateId,
    /// Index of the node before it, and the token between the two.
    from: Option<(usize, TokenId)>,
}

impl<A: ByteAutomaton> StateTable<A> {
    /// The number of tokens that complete `text`, which leads to `state`, if some sequence of fewer
    /// than `most` does and is found within `steps`, which is what is left of an allowance.
    ///
    /// What is found is remembered for the states along the sequence.
    pub(crate) fn fewer_tokens(
        &mut self,
        state: StateId,
        text: &[u8],
        most: usize,
        steps: &mut usize,
    ) -> Option<usize> {
        let mut nodes = vec![Node { state, from: None }];
        let mut seen = FxHashSet::from_iter([state]);
        let mut layer = 0;
        for tokens in 1..most {
            let end = nodes.len();
            for index in layer..end {
                let from = nodes[index].state;
                if tokens - 1 + self.least_for_forced(from) >= most {
                    continue;
                }
                for (token, after) in self.token_ends(from) {
                    // What only the text tells is recorded byte by byte.
                    let asks = after.is_none_or(|after| self.automaton.needs_settling(after));
                    *steps = steps.checked_sub(if asks { SETTLE_STEPS } else { 1 })?;
                    let after = match after {
                        Some(after) if !asks => after,
                        _ => {
                            let text = self.text_of(text, &nodes, index);
                            match self.step_text(from, &text, token) {
                                Some(Step::To(after)) => after,
                                _ => continue,
                            }
                        }
                    };
                    let found = self.automaton.is_accepting(after);
                    if found || seen.insert(after) {
                        nodes.push(Node { state: after, from: Some((index, token)) });
                    }
                    if found {
                        self.remember(&nodes, tokens);
                        return Some(tokens);
                    }
                }
            }
            layer = end;
            if layer == nodes.len() {
                break;
            }
        }
        None
    }

    /// The tokens that the mask of a state allows, with the states they lead to before settling;
    /// without one where the text has to be asked.
    fn token_ends(&mut self, state: StateId) -> Vec<(TokenId, Option<StateId>)> {
        if let Some(token) = self.canonical_token(state) {
            return match self.step_token(state, token) {
                Some(Step::To(after)) => vec![(token, Some(after))],
                _ => Vec::new(),
            };
        }
        let known = self.ends(state).into_iter().map(|(token, after)| (token, Some(after)));
        let mut ends: Vec<_> = known.collect();
        ends.extend(self.state_mask(state).ask.iter().map(|&token| (token, None)));
        ends
    }

    /// The text that leads to a node, after `text`.
    fn text_of(&self, text: &[u8], nodes: &[Node], index: usize) -> Vec<u8> {
        let mut tokens = Vec::new();
        let mut node = &nodes[index];
        while let Some((before, token)) = node.from {
            tokens.push(token);
            node = &nodes[before];
        }
        let bytes =
            tokens.iter().rev().filter_map(|&token| self.vocabulary.token_bytes(token)).flatten();
        text.iter().chain(bytes).copied().collect()
    }

    /// Takes the sequence to the last node, of so many tokens, as the count of its states.
    fn remember(&mut self, nodes: &[Node], tokens: usize) {
        let mut node = nodes.last();
        let mut rest = 0;
        while let Some((before, first)) = node.and_then(|node| node.from) {
            rest += 1;
            let state = nodes[before].state;
            // No more than the first count, which fits.
            let tokens = u32::try_from(rest).unwrap_or(u32::MAX);
            let facts = self.facts_mut(state);
            facts.completion = Some(Completion::After { tokens, first });
            facts.is_least = true;
            node = nodes.get(before);
        }
        debug_assert_eq!(rest, tokens, "a sequence has a token for each depth");
    }

    /// The fewest tokens that cover the bytes that must follow a state which does not accept, the
    /// last of which may reach beyond them: at least so many are to come.
    fn least_for_forced(&mut self, state: StateId) -> usize {
        let (run, _) = self.forced_run(state, MAX_FORCED_BYTES);
        // At each offset, the fewest tokens from there on.
        let mut least = vec![usize::MAX; run.len() + 1];
        least[run.len()] = 0;
        for at in (0..run.len()).rev() {
            if self.vocabulary.trie().has_prefix(&run[at..]) {
                least[at] = 1;
                continue;
            }
            for (len, _) in self.vocabulary.trie().prefixes(&run[at..]) {
                least[at] = least[at].min(least[at + len].saturating_add(1));
            }
        }
        least[0].max(1)
    }
}
