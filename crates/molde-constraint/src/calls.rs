//! Text that may turn into calls of tools: the constraint of a whole answer.

use std::sync::Arc;

use molde_vocab::{
    ByteAutomaton, ConstraintError, TokenConstraint, TokenId, TokenMask, Vocabulary,
};

use crate::Matcher;

/// How a model writes a call: `open gap value gap close`, and a gap between two calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallMarkers {
    /// The control token before a call, such as `<tool_call>`.
    pub open: TokenId,
    /// The control token after a call, such as `</tool_call>`.
    pub close: TokenId,
    /// The tokens of the white space around a call's value; may be none.
    pub gap: Vec<TokenId>,
}

/// What may be written before the first call, or instead of one.
pub enum Content {
    /// Nothing: the answer begins with a call.
    Nothing,
    /// Any text; the model calls by writing the marker.
    Free,
    /// A text under a constraint of its own; a call only in place of all of it.
    Constrained(Box<dyn TokenConstraint>),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Free => "Free",
            Self::Constrained(_) => "Constrained",
        })
    }
}

/// An answer of text, calls, or both.
///
/// ```text
/// Free ──any text──▶ Free ──open──▶ gap ──▶ value ──▶ gap ──close──▶ (end) ──gap──▶ open …
/// ```
///
/// Once a call has begun nothing but calls follows. The values are those of one automaton, whose
/// complete texts nothing can follow: JSON objects, for example.
#[derive(Debug)]
pub struct Calls<A> {
    vocabulary: Arc<Vocabulary>,
    markers: CallMarkers,
    content: Content,
    most: usize,
    value: Matcher<A>,
    /// Tokens that complete a value from its beginning.
    value_tokens: usize,
    stage: Stage,
    /// Calls that are complete.
    done: usize,
    accepted: Vec<TokenId>,
    /// How many tokens were accepted before the value that is being written.
    value_begins: usize,
    /// Of calls that are complete.
    undecided: u64,
    /// Every token with a text, and the marker.
    text_tokens: Option<TokenMask>,
    mask: TokenMask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Content,
    /// So many tokens of the opening have been written.
    Opening(usize),
    Value,
    Closing(usize),
    /// After a call: so many tokens of the gap to the next one.
    Between(usize),
    Ended,
}

impl<A: ByteAutomaton + Send> Calls<A> {
    /// The constraint before the first token: at most `most_calls` calls, at least one if there is
    /// no other content.
    pub fn new(
        content: Content,
        mut value: Matcher<A>,
        markers: CallMarkers,
        most_calls: usize,
    ) -> Self {
        let vocabulary = Arc::clone(value.vocabulary());
        let value_tokens = value.completion_tokens();
        let stage = Self::first_stage(&content);
        Self {
            mask: TokenMask::new(vocabulary.len()),
            vocabulary,
            markers,
            content,
            most: most_calls.max(1),
            value,
            value_tokens,
            stage,
            done: 0,
            accepted: Vec::new(),
            value_begins: 0,
            undecided: 0,
            text_tokens: None,
        }
    }

    /// The matcher of the values, to be used again.
    pub fn into_matcher(self) -> Matcher<A> {
        self.value
    }

    fn first_stage(content: &Content) -> Stage {
        if matches!(content, Content::Nothing) { Stage::Opening(0) } else { Stage::Content }
    }

    fn opening(&self, at: usize) -> Option<TokenId> {
        match at {
            0 => Some(self.markers.open),
            at => self.markers.gap.get(at - 1).copied(),
        }
    }

    fn closing(&self, at: usize) -> Option<TokenId> {
        let gap = &self.markers.gap;
        gap.get(at).copied().or((at == gap.len()).then_some(self.markers.close))
    }

    fn closing_tokens(&self) -> usize {
        self.markers.gap.len() + 1
    }

    /// Tokens of a whole call.
    fn call_tokens(&self) -> usize {
        let around = self.closing_tokens().saturating_mul(2);
        self.value_tokens.saturating_add(around)
    }

    /// The token that is written next where there is no choice.
    fn literal(&self) -> Option<TokenId> {
        match self.stage {
            Stage::Opening(at) => self.opening(at),
            Stage::Closing(at) => self.closing(at),
            Stage::Between(at) if at > 0 => self.between(at),
            _ => None,
        }
    }

    fn between(&self, at: usize) -> Option<TokenId> {
        let gap = &self.markers.gap;
        gap.get(at).copied().or((at == gap.len()).then_some(self.markers.open))
    }

    /// Whether the whole answer may still become a call.
    fn can_open(&self) -> bool {
        match self.content {
            Content::Nothing => false,
            Content::Free => true,
            Content::Constrained(_) => self.accepted.is_empty(),
        }
    }

    fn one(&mut self, token: TokenId) -> &TokenMask {
        self.mask = TokenMask::from_tokens(self.vocabulary.len(), [token]);
        &self.mask
    }

    fn ends(&self) -> impl Iterator<Item = TokenId> + use<A> {
        self.vocabulary.end_of_turn().to_vec().into_iter()
    }

    fn text_tokens(&mut self) -> &TokenMask {
        let vocabulary = &self.vocabulary;
        self.text_tokens.get_or_insert_with(|| {
            let texts = (0..vocabulary.len() as TokenId)
                .filter(|&token| vocabulary.token_bytes(token).is_some_and(|b| !b.is_empty()));
            let mut mask = TokenMask::from_tokens(vocabulary.len(), texts);
            mask.insert(self.markers.open);
            for &end in vocabulary.end_of_turn() {
                mask.insert(end);
            }
            mask
        })
    }

    /// The mask, of tokens after which `remaining` are enough.
    fn mask_of(&mut self, remaining: usize) -> Result<&TokenMask, ConstraintError> {
        if let Some(token) = self.literal() {
            if self.completion_tokens() > remaining {
                return Err(ConstraintError::NoTokenAllowed);
            }
            return Ok(self.one(token));
        }
        let opens = self.can_open() && self.call_tokens() <= remaining;
        let len = self.vocabulary.len();
        match self.stage {
            Stage::Content => match &mut self.content {
                Content::Constrained(content) => {
                    let inner = if remaining == usize::MAX {
                        content.mask()
                    } else {
                        content.mask_within(remaining)
                    };
                    match inner {
                        Ok(mask) => self.mask = mask.clone(),
                        Err(_) if opens => self.mask = TokenMask::new(len),
                        Err(error) => return Err(error),
                    }
                    if opens {
                        self.mask.insert(self.markers.open);
                    }
                }
                _ => {
                    if remaining == 0 {
                        self.mask = TokenMask::from_tokens(len, self.ends());
                    } else if opens {
                        return Ok(self.text_tokens());
                    } else {
                        self.mask = self.text_tokens().clone();
                        self.mask.remove(self.markers.open);
                    }
                }
            },
            Stage::Value => {
                if self.value.is_complete() {
                    // Something could follow the value: what `value` is documented not to allow.
                    return Err(ConstraintError::NoTokenAllowed);
                }
                if remaining == usize::MAX {
                    return self.value.mask();
                }
                let left = remaining.checked_sub(self.closing_tokens());
                return self.value.mask_within(left.ok_or(ConstraintError::NoTokenAllowed)?);
            }
            Stage::Between(_) => {
                self.mask = TokenMask::from_tokens(len, self.ends());
                let next = self.markers.gap.len().saturating_add(self.call_tokens());
                if self.done < self.most
                    && next <= remaining
                    && let Some(token) = self.between(0)
                {
                    self.mask.insert(token);
                }
            }
            Stage::Opening(_) | Stage::Closing(_) | Stage::Ended => {
                self.mask = TokenMask::new(len);
            }
        }
        Ok(&self.mask)
    }

    fn begin_value(&mut self) {
        self.undecided += self.value.undecided();
        self.value.reset();
        // The token that leads there is not counted yet.
        self.value_begins = self.accepted.len() + 1;
        self.stage = Stage::Value;
    }

    fn step(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        let refused = ConstraintError::NotText { token };
        if self.vocabulary.is_end_of_turn(token) {
            if !self.is_complete() {
                return Err(refused);
            }
            if let (Stage::Content, Content::Constrained(content)) = (self.stage, &mut self.content)
            {
                content.accept(token)?;
            }
            self.stage = Stage::Ended;
            return Ok(());
        }
        if let Some(expected) = self.literal() {
            if token != expected {
                return Err(ConstraintError::NotCanonical { token, expected });
            }
            match self.stage {
                Stage::Opening(at) if self.opening(at + 1).is_none() => self.begin_value(),
                Stage::Opening(at) => self.stage = Stage::Opening(at + 1),
                Stage::Closing(at) if self.closing(at + 1).is_none() => {
                    self.done += 1;
                    self.stage = Stage::Between(0);
                }
                Stage::Closing(at) => self.stage = Stage::Closing(at + 1),
                Stage::Between(at) => self.step_between(at),
                Stage::Content | Stage::Value | Stage::Ended => return Err(refused),
            }
            return Ok(());
        }
        match self.stage {
            Stage::Content if token == self.markers.open && self.can_open() => {
                self.stage = Stage::Opening(0);
                return self.step(token);
            }
            Stage::Content => match &mut self.content {
                Content::Constrained(content) => content.accept(token)?,
                _ if self.vocabulary.token_bytes(token).is_some_and(|b| !b.is_empty()) => {}
                _ => return Err(refused),
            },
            Stage::Value => {
                self.value.accept(token)?;
                if self.value.is_finished() {
                    self.stage = Stage::Closing(0);
                }
            }
            Stage::Between(at) if self.done < self.most && self.between(at) == Some(token) => {
                self.step_between(at);
            }
            _ => return Err(refused),
        }
        Ok(())
    }

    fn step_between(&mut self, at: usize) {
        if at < self.markers.gap.len() {
            self.stage = Stage::Between(at + 1);
        } else if self.opening(1).is_none() {
            self.begin_value();
        } else {
            self.stage = Stage::Opening(1);
        }
    }
}

impl<A: ByteAutomaton + Send> TokenConstraint for Calls<A> {
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError> {
        self.mask_of(usize::MAX)
    }

    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError> {
        self.mask_of(remaining_tokens)
    }

    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool {
        if self.stage == Stage::Value && !self.vocabulary.is_end_of_turn(token) {
            let after = self.closing_tokens();
            return remaining_tokens
                .checked_sub(after)
                .is_some_and(|left| self.value.fits(token, left));
        }
        if let (Stage::Content, Content::Constrained(content)) = (self.stage, &mut self.content)
            && token != self.markers.open
        {
            return content.fits(token, remaining_tokens);
        }
        self.mask_of(remaining_tokens).is_ok_and(|mask| mask.contains(token))
    }

    fn completion_tokens(&mut self) -> usize {
        let call = self.call_tokens();
        match self.stage {
            Stage::Content => match &mut self.content {
                Content::Constrained(content) => {
                    let content = content.completion_tokens();
                    if self.accepted.is_empty() { content.min(call) } else { content }
                }
                _ => 0,
            },
            Stage::Opening(at) => call.saturating_sub(at),
            Stage::Value => self.value.completion_tokens().saturating_add(self.closing_tokens()),
            Stage::Closing(at) => self.closing_tokens() - at,
            Stage::Between(0) | Stage::Ended => 0,
            Stage::Between(at) => call.saturating_add(self.markers.gap.len() - at),
        }
    }

    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError> {
        self.step(token)?;
        self.accepted.push(token);
        Ok(())
    }

    /// Linear in the tokens that stay, which are read again, unless all that are taken back are of
    /// the text or of the value that is being written.
    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError> {
        let accepted = self.accepted.len();
        let Some(kept) = accepted.checked_sub(tokens) else {
            return Err(ConstraintError::RollbackTooFar { requested: tokens, accepted });
        };
        if tokens == 0 {
            return Ok(());
        }
        if let Content::Constrained(content) = &mut self.content {
            // Its tokens are the first ones: all of them, unless calls came in their place.
            if self.accepted.first() != Some(&self.markers.open) {
                self.accepted.truncate(kept);
                self.stage = Stage::Content;
                return content.rollback(tokens);
            }
        }
        if self.stage == Stage::Content {
            self.accepted.truncate(kept);
            return Ok(());
        }
        if self.stage == Stage::Value && kept >= self.value_begins {
            self.accepted.truncate(kept);
            return self.value.rollback(tokens);
        }
        let again: Vec<TokenId> = self.accepted[..kept].to_vec();
        self.undecided += self.value.undecided();
        self.value.reset();
        self.accepted.clear();
        self.done = 0;
        self.stage = Self::first_stage(&self.content);
        again.into_iter().try_for_each(|token| self.accept(token))
    }

    fn forced(&mut self) -> Option<TokenId> {
        if self.is_complete() {
            return None;
        }
        match (self.stage, &mut self.content) {
            (Stage::Content, Content::Constrained(content)) if !self.accepted.is_empty() => {
                content.forced()
            }
            (Stage::Content, _) => None,
            _ => self.mask().ok()?.forced(),
        }
    }

    fn is_complete(&mut self) -> bool {
        match (self.stage, &mut self.content) {
            (Stage::Content, Content::Constrained(content)) => content.is_complete(),
            (Stage::Content | Stage::Between(0) | Stage::Ended, _) => true,
            _ => false,
        }
    }

    fn is_finished(&mut self) -> bool {
        match (self.stage, &mut self.content) {
            (Stage::Content, Content::Constrained(content)) => content.is_finished(),
            (Stage::Between(0), _) => self.done >= self.most,
            (stage, _) => stage == Stage::Ended,
        }
    }

    fn undecided(&self) -> u64 {
        let content = match &self.content {
            Content::Constrained(content) => content.undecided(),
            _ => 0,
        };
        self.undecided + self.value.undecided() + content
    }
}
