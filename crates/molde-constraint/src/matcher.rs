//! One sequence under a constraint.

use std::sync::Arc;

use molde_vocab::{
    ByteAutomaton, ByteSet, ConstraintError, StateId, TokenConstraint, TokenId, TokenMask,
    Vocabulary,
};

use crate::table::{StateTable, Step};
use crate::{Explanation, MatcherOptions};

/// A byte automaton run over a vocabulary: the masks of one sequence of tokens.
///
/// What is found out about a state (its mask, its forced token, its completion) is kept, within
/// [`Limits`](crate::Limits), and serves the next sequence after [`reset`](Self::reset) too. A
/// clone starts with what is known so far and goes its own way.
#[derive(Clone, Debug)]
pub struct Matcher<A> {
    table: StateTable<A>,
    /// The start state, and the state after each text token that was accepted.
    history: Vec<StateId>,
    /// The bytes of the text tokens that were accepted, and how many there were after each.
    text: Vec<u8>,
    text_ends: Vec<usize>,
    /// Whether an end-of-turn token was accepted, after all the others.
    ended: bool,
    /// The mask of the current position, once it was asked for.
    current: Option<Arc<TokenMask>>,
    /// The last mask within a budget.
    within: TokenMask,
    /// Tokens of the current position that could not be decided, once its mask was asked for.
    undecided: u64,
    /// The same of all positions up to each text token that was accepted.
    undecided_before: Vec<u64>,
}

impl<A: ByteAutomaton> Matcher<A> {
    /// A matcher before the first token.
    ///
    /// If the vocabulary lacks single bytes ([`Vocabulary::missing_bytes`]), the matcher may meet
    /// a text that no token continues, and says so with [`ConstraintError::NoTokenAllowed`].
    pub fn new(mut automaton: A, vocabulary: Arc<Vocabulary>, options: MatcherOptions) -> Self {
        let start = automaton.start();
        let within = TokenMask::new(vocabulary.len());
        Self {
            table: StateTable::new(automaton, vocabulary, options),
            history: vec![start],
            text: Vec::new(),
            text_ends: Vec::new(),
            ended: false,
            current: None,
            within,
            undecided: 0,
            undecided_before: Vec::new(),
        }
    }

    /// Back to before the first token; the count of undecided tokens starts again at 0. What was
    /// found out about states is kept.
    pub fn reset(&mut self) {
        self.history.truncate(1);
        self.text.clear();
        self.text_ends.clear();
        self.ended = false;
        self.current = None;
        self.undecided = 0;
        self.undecided_before.clear();
    }

    /// The automaton.
    pub const fn automaton(&self) -> &A {
        &self.table.automaton
    }

    /// The vocabulary.
    pub const fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.table.vocabulary
    }

    /// The options it was built with.
    pub const fn options(&self) -> &MatcherOptions {
        &self.table.options
    }

    /// The state of the automaton after the tokens accepted so far. Ids are stable until the next
    /// `&mut` call: dropping caches renames them.
    pub fn state(&self) -> StateId {
        *self.history.last().expect("the start state is never removed")
    }

    /// The bytes of the tokens accepted so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Number of tokens accepted, an end-of-turn token included.
    pub fn accepted_tokens(&self) -> usize {
        self.history.len() - 1 + usize::from(self.ended)
    }

    /// Estimate of the heap bytes held for states: masks and other facts, and the automaton's
    /// tables. The vocabulary is shared and not counted.
    pub fn memory_usage(&self) -> usize {
        self.table.cache_bytes + self.table.automaton.memory_usage()
    }

    /// Why `token` is or is not in the mask. Says `Allowed` exactly for the tokens of the mask.
    pub fn explain(&mut self, token: TokenId) -> Explanation {
        if self.ended {
            return Explanation::Ended;
        }
        let state = self.state();
        if self.table.vocabulary.is_end_of_turn(token) {
            return if self.table.automaton.is_accepting(state) {
                Explanation::Allowed
            } else {
                Explanation::NotComplete
            };
        }
        match self.table.step_text(state, &self.text, token) {
            None => Explanation::NotText,
            Some(Step::To(_)) => match self.table.canonical_token(state) {
                Some(expected) if expected != token => Explanation::NotCanonical { expected },
                _ => Explanation::Allowed,
            },
            Some(Step::Dead { byte_offset }) => {
                let state = self.state_inside(token, byte_offset);
                Explanation::Rejected { byte_offset, state }
            }
            Some(Step::Undecided { byte_offset }) => {
                let state = self.state_inside(token, byte_offset);
                Explanation::Undecided { byte_offset, state }
            }
        }
    }

    /// The bytes that can follow a state, one that [`state`](Self::state) or
    /// [`explain`](Self::explain) returned since the last token.
    pub fn live_bytes(&mut self, state: StateId) -> ByteSet {
        let automaton = &mut self.table.automaton;
        let is_live = |byte: &u8| automaton.step(state, *byte).is_live();
        (0..=u8::MAX).filter(is_live).collect()
    }

    /// The state after the first `bytes` bytes of `token`.
    fn state_inside(&mut self, token: TokenId, bytes: usize) -> StateId {
        let mut state = self.state();
        let mut text = self.text.clone();
        let own = self.table.vocabulary.token_bytes(token).unwrap_or_default();
        let automaton = &mut self.table.automaton;
        for &byte in own.iter().take(bytes) {
            text.push(byte);
            let after = automaton.step(state, byte);
            state = automaton.settle(after, &text);
        }
        state
    }

    fn is_accepting(&mut self) -> bool {
        let state = self.state();
        self.table.automaton.is_accepting(state)
    }

    /// The mask of the current position.
    fn load_mask(&mut self) -> &Arc<TokenMask> {
        if self.current.is_none() && !self.ended {
            self.table.enforce_limits(&mut self.history);
            let found = self.table.mask(self.state(), &self.text);
            self.undecided = u64::from(found.undecided);
            self.current = Some(found.mask);
        }
        self.current.get_or_insert_with(|| Arc::new(TokenMask::new(self.table.vocabulary.len())))
    }
}

impl<A: ByteAutomaton + Send> TokenConstraint for Matcher<A> {
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError> {
        if self.load_mask().is_empty() && !self.is_complete() {
            return Err(ConstraintError::NoTokenAllowed);
        }
        Ok(self.load_mask())
    }

    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError> {
        // Also counts what is undecided at this position.
        let vocabulary_len = self.load_mask().vocabulary_len();
        self.within = if self.ended {
            TokenMask::new(vocabulary_len)
        } else {
            self.table.mask_within(self.state(), &self.text, remaining_tokens)
        };
        if self.within.is_empty() && !self.is_complete() {
            return Err(ConstraintError::NoTokenAllowed);
        }
        Ok(&self.within)
    }

    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool {
        if self.ended {
            return false;
        }
        if self.table.vocabulary.is_end_of_turn(token) {
            return self.is_accepting();
        }
        let state = self.state();
        // As in `mask_within`: what is not recorded yet does not matter for how the text can end,
        // unless the text has to be asked.
        let after = match self.table.step_token(state, token) {
            Some(Step::To(after)) => after,
            Some(Step::Undecided { .. }) => match self.table.step_text(state, &self.text, token) {
                Some(Step::To(after)) => after,
                _ => return false,
            },
            _ => return false,
        };
        if self.table.canonical_token(state).is_some_and(|expected| expected != token) {
            return false;
        }
        self.table.completes_within(after, &self.text, token, remaining_tokens)
    }

    fn completion_tokens(&mut self) -> usize {
        if self.ended {
            return 0;
        }
        self.table.completion_with(self.state(), &self.text).unwrap_or(usize::MAX)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        if self.ended {
            return Err(ConstraintError::NotText { token });
        }
        let state = self.state();
        match self.table.step_text(state, &self.text, token) {
            Some(Step::To(after)) => {
                if let Some(expected) = self.table.canonical_token(state)
                    && expected != token
                {
                    return Err(ConstraintError::NotCanonical { token, expected });
                }
                // What was promised without the text holds with it.
                let promised = match self.table.step_token(state, token) {
                    Some(Step::To(end)) if end != after => self.table.completion_plan(end),
                    _ => Vec::new(),
                };
                self.table.restore_completion_plan(after, &promised);
                let bytes = self.table.vocabulary.token_bytes(token).unwrap_or_default();
                self.text.extend(bytes);
                self.text_ends.push(self.text.len());
                self.history.push(after);
                let undecided = TokenConstraint::undecided(self);
                self.undecided_before.push(undecided);
                self.undecided = 0;
            }
            Some(Step::Dead { byte_offset } | Step::Undecided { byte_offset }) => {
                return Err(ConstraintError::TokenNotAllowed { token, byte_offset });
            }
            None if self.table.vocabulary.is_end_of_turn(token) && self.is_accepting() => {
                self.ended = true;
            }
            None => return Err(ConstraintError::NotText { token }),
        }
        self.current = None;
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError> {
        let accepted = self.accepted_tokens();
        if tokens > accepted {
            return Err(ConstraintError::RollbackTooFar { requested: tokens, accepted });
        }
        if tokens > 0 {
            let kept = accepted - tokens;
            self.history.truncate(kept + 1);
            self.text_ends.truncate(kept);
            self.undecided_before.truncate(kept);
            self.undecided = 0;
            self.text.truncate(self.text_ends.last().copied().unwrap_or(0));
            self.ended = false;
            self.current = None;
        }
        Ok(())
    }

    fn forced(&mut self) -> Option<TokenId> {
        if self.is_complete() { None } else { self.load_mask().forced() }
    }

    fn is_complete(&mut self) -> bool {
        self.ended || self.is_accepting()
    }

    fn is_finished(&mut self) -> bool {
        self.ended || (self.is_accepting() && !self.table.can_go_on(self.state()))
    }

    fn undecided(&self) -> u64 {
        self.undecided_before.last().unwrap_or(&0) + self.undecided
    }
}
