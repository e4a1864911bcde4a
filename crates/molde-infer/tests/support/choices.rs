//! A constraint that can be checked by eye: one of a list of token sequences.
// Test code; each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stdout)]

use molde_vocab::{ConstraintError, TokenConstraint, TokenId, TokenMask, Vocabulary};

pub(crate) struct Choices {
    sequences: Vec<Vec<TokenId>>,
    accepted: Vec<TokenId>,
    ended: bool,
    end_of_turn: Vec<TokenId>,
    vocabulary_len: usize,
    mask: TokenMask,
    /// Whether `forced` tells.
    pub(crate) tells_forced: bool,
}

impl Choices {
    pub(crate) fn new(vocabulary: &Vocabulary, sequences: Vec<Vec<TokenId>>) -> Self {
        Self {
            sequences,
            accepted: Vec::new(),
            ended: false,
            end_of_turn: vocabulary.end_of_turn().to_vec(),
            vocabulary_len: vocabulary.len(),
            mask: TokenMask::new(vocabulary.len()),
            tells_forced: true,
        }
    }

    /// What is left of each sequence that is still possible.
    fn rests(&self) -> Vec<&[TokenId]> {
        if self.ended {
            return Vec::new();
        }
        self.sequences.iter().filter_map(|s| s.strip_prefix(&self.accepted[..])).collect()
    }

    /// The tokens after which the text can be completed with `limit` tokens, themselves included.
    fn allowed(&self, limit: usize) -> Vec<TokenId> {
        let rests = self.rests();
        let mut tokens: Vec<_> = rests
            .iter()
            .filter(|rest| rest.len() <= limit)
            .filter_map(|rest| rest.first().copied())
            .collect();
        if rests.iter().any(|rest| rest.is_empty()) {
            tokens.extend(&self.end_of_turn);
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    fn mask_of(&mut self, tokens: Vec<TokenId>) -> Result<&TokenMask, ConstraintError> {
        if tokens.is_empty() {
            return Err(ConstraintError::NoTokenAllowed);
        }
        self.mask = TokenMask::from_tokens(self.vocabulary_len, tokens);
        Ok(&self.mask)
    }
}

impl TokenConstraint for Choices {
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError> {
        self.mask_of(self.allowed(usize::MAX))
    }

    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError> {
        self.mask_of(self.allowed(remaining_tokens))
    }

    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool {
        self.allowed(remaining_tokens).contains(&token)
    }

    fn completion_tokens(&mut self) -> usize {
        self.rests().iter().map(|rest| rest.len()).min().unwrap_or(0)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        assert!(self.allowed(usize::MAX).contains(&token), "{token} is not in the mask");
        if self.end_of_turn.contains(&token) {
            self.ended = true;
        } else {
            self.accepted.push(token);
        }
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError> {
        self.accepted.truncate(self.accepted.len() - tokens);
        Ok(())
    }

    fn forced(&mut self) -> Option<TokenId> {
        match self.allowed(usize::MAX)[..] {
            [token] if self.tells_forced => Some(token),
            _ => None,
        }
    }

    fn is_complete(&mut self) -> bool {
        self.rests().iter().any(|rest| rest.is_empty())
    }

    fn is_finished(&mut self) -> bool {
        self.ended || self.rests().iter().all(|rest| rest.is_empty())
    }

    fn undecided(&self) -> u64 {
        3
    }
}
