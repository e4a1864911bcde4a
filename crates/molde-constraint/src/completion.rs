//! The number of tokens that complete the text.
//!
//! The count of a state is 0 where it accepts; otherwise it is one more than the least count after
//! a token that the mask allows and that begins a shortest completion of the state (under canonical
//! segmentation often a single one, so what is counted is what will be written). Such a token makes
//! the shortest completion shorter, so the counts are well-founded; and since the counts of the
//! states it leads to are defined in the same way, the promise of
//! [`TokenConstraint::completion_tokens`](molde_vocab::TokenConstraint::completion_tokens) holds.

use std::sync::Arc;

use molde_vocab::{ByteAutomaton, StateId, TokenId};

use crate::table::{StateTable, Step};

/// What is known of the completion of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It is being counted. Met again, it is no way to finish.
    Pending,
    /// No tokens spell a completion.
    Unspellable,
    /// Complete as it is.
    Complete,
    /// With `tokens` tokens, the first of which is `first`.
    After { tokens: u32, first: TokenId },
}

/// A state whose count waits for those of the states after the tokens in `candidates`.
struct Frame {
    state: StateId,
    candidates: Vec<(TokenId, StateId)>,
    /// Candidates before this one have been counted.
    next: usize,
    best: Completion,
}

impl<A: ByteAutomaton> StateTable<A> {
    /// The number of tokens that complete the text from a live state; `None` if it cannot be
    /// spelled.
    ///
    /// # Complexity
    /// Each state on the way is counted once and remembered.
    pub(crate) fn completion_tokens(&mut self, state: StateId) -> Option<usize> {
        let mut answer = match self.known_completion(state) {
            Some(known) => return tokens(known),
            None => Completion::Unspellable,
        };
        // A stack of our own: completions may be long.
        let mut stack = vec![self.open(state)];
        while let Some(frame) = stack.last_mut() {
            if let Some(&(first, after)) = frame.candidates.get(frame.next) {
                match self.known_completion(after) {
                    None => stack.push(self.open(after)),
                    Some(known) => {
                        frame.next += 1;
                        if let Some(rest) = tokens(known)
                            && tokens(frame.best).is_none_or(|best| rest + 1 < best)
                        {
                            // More than 2^32 tokens would need a longer completion than memory.
                            let tokens = u32::try_from(rest + 1).unwrap_or(u32::MAX);
                            frame.best = Completion::After { tokens, first };
                        }
                    }
                }
            } else {
                answer = frame.best;
                let state = frame.state;
                self.facts_mut(state).completion = Some(answer);
                stack.pop();
            }
        }
        tokens(answer)
    }

    /// The number of tokens that complete `text`, which leads to `state`, where the state alone does
    /// not tell: a completion that writes several names which only the text can tell apart has to be
    /// settled token by token. `None` if the vocabulary cannot spell it.
    ///
    /// What is found is remembered for the states on the way, so the promise holds for them.
    pub(crate) fn completion_by_text(&mut self, state: StateId, text: &[u8]) -> Option<usize> {
        let rest = self.automaton.completion(state);
        // Whole tokens first; if one goes on too far to be settled, byte by byte.
        for longest in [usize::MAX, 1] {
            if let Some(plan) = self.fewest_tokens(&rest, longest)
                && let Some(states) = self.settled_states(state, text, &plan)
            {
                for (index, (&first, &state)) in plan.iter().zip(&states).enumerate() {
                    let tokens = u32::try_from(plan.len() - index).unwrap_or(u32::MAX);
                    let known = self.known_completion(state).and_then(self::tokens);
                    if known.is_none_or(|known| known > tokens as usize) {
                        self.facts_mut(state).completion =
                            Some(Completion::After { tokens, first });
                    }
                }
                return Some(plan.len());
            }
        }
        None
    }

    /// The fewest tokens, of at most `longest` bytes each, that spell `text`.
    fn fewest_tokens(&self, text: &[u8], longest: usize) -> Option<Vec<TokenId>> {
        // At each offset, the fewest tokens from there on and the first of them with its length.
        let mut best: Vec<Option<(usize, TokenId, usize)>> = vec![None; text.len() + 1];
        best[text.len()] = Some((0, 0, 0));
        for at in (0..text.len()).rev() {
            for (len, token) in self.vocabulary.trie().prefixes(&text[at..]) {
                if len <= longest
                    && let Some((rest, ..)) = best[at + len]
                    && best[at].is_none_or(|(known, ..)| rest < known)
                {
                    best[at] = Some((rest + 1, token, len));
                }
            }
        }
        let mut plan = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (_, token, len) = best[at]?;
            plan.push(token);
            at += len;
        }
        Some(plan)
    }

    /// The states before each token of a plan, settled; `None` if one does not lead on.
    fn settled_states(
        &mut self,
        state: StateId,
        text: &[u8],
        plan: &[TokenId],
    ) -> Option<Vec<StateId>> {
        let mut text = text.to_vec();
        let mut state = state;
        let mut states = Vec::with_capacity(plan.len());
        for &token in plan {
            states.push(state);
            if self.canonical_token(state).is_some_and(|expected| expected != token) {
                return None;
            }
            let Some(Step::To(after)) = self.step_text(state, &text, token) else { return None };
            text.extend(self.vocabulary.token_bytes(token)?);
            state = after;
        }
        self.automaton.is_accepting(state).then_some(states)
    }

    /// The tokens that complete the text as they were counted; empty if they were not, or if no
    /// token is needed.
    pub(crate) fn completion_plan(&mut self, state: StateId) -> Vec<TokenId> {
        let mut plan = Vec::new();
        let mut state = state;
        while let Some(Completion::After { first, .. }) = self.known_completion(state)
            && let Some(Step::To(after)) = self.step_token(state, first)
        {
            plan.push(first);
            state = after;
        }
        plan
    }

    /// Takes a plan as the count of the states along it, where they have no lower one.
    pub(crate) fn restore_completion_plan(&mut self, state: StateId, plan: &[TokenId]) {
        let mut state = state;
        for (index, &first) in plan.iter().enumerate() {
            let count = plan.len() - index;
            let known = self.known_completion(state).and_then(tokens);
            let Some(Step::To(after)) = self.step_token(state, first) else { return };
            if known.is_none_or(|known| count < known) {
                let tokens = u32::try_from(count).unwrap_or(u32::MAX);
                self.facts_mut(state).completion = Some(Completion::After { tokens, first });
            }
            state = after;
        }
    }

    fn known_completion(&self, state: StateId) -> Option<Completion> {
        self.facts.get(&state).and_then(|facts| facts.completion)
    }

    /// Starts to count a state.
    fn open(&mut self, state: StateId) -> Frame {
        self.facts_mut(state).completion = Some(Completion::Pending);
        if self.automaton.is_accepting(state) {
            return Frame { state, candidates: Vec::new(), next: 0, best: Completion::Complete };
        }
        let candidates = match self.canonical_token(state) {
            Some(token) => match self.step_token(state, token) {
                Some(Step::To(after)) => vec![(token, after)],
                _ => Vec::new(),
            },
            None => self.completion_candidates(state),
        };
        Frame { state, candidates, next: 0, best: Completion::Unspellable }
    }

    /// The tokens that begin the shortest completion of a state, with the states they lead to.
    /// The longest comes first, so that of equal counts it is the one that is kept.
    fn completion_candidates(&mut self, state: StateId) -> Vec<(TokenId, StateId)> {
        let start = self.completion_start(state);
        let mut candidates = Vec::new();
        let mut state = state;
        let mut read = 0;
        for (len, token) in self.vocabulary.trie().prefixes(&start) {
            for &byte in &start[read..len] {
                state = self.automaton.step(state, byte);
            }
            if !state.is_live() {
                break;
            }
            read = len;
            candidates.push((token, state));
        }
        candidates.reverse();
        candidates
    }

    /// The first bytes of a shortest completion, as many as a token can have.
    ///
    /// Every completion begins with the bytes that are forced, so the automaton is asked for one
    /// only where there is a choice, and once for each such state: completions may be long.
    fn completion_start(&mut self, state: StateId) -> Vec<u8> {
        let max_bytes = self.vocabulary.trie().max_depth();
        let (mut start, end) = self.forced_run(state, max_bytes);
        if start.len() < max_bytes {
            let known = self.facts.get(&end).and_then(|facts| facts.completion_start.clone());
            let rest = known.unwrap_or_else(|| {
                let rest: Arc<[u8]> = self.automaton.completion_start(end, max_bytes).into();
                self.cache_bytes += rest.len();
                self.facts_mut(end).completion_start = Some(Arc::clone(&rest));
                rest
            });
            start.extend_from_slice(&rest);
        }
        start
    }
}

fn tokens(completion: Completion) -> Option<usize> {
    match completion {
        Completion::Pending | Completion::Unspellable => None,
        Completion::Complete => Some(0),
        Completion::After { tokens, .. } => Some(tokens as usize),
    }
}
