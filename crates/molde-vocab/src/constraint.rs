//! The token side: what the decoding loop sees of a constraint.

use crate::TokenMask;

/// The id of a model token, as the tokenizer and the output head number them.
pub type TokenId = u32;

/// Why a constraint could not go on. Never a reason to continue without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The token is not in the mask of the current state.
    #[error("token {token} is not allowed here: its byte {byte_offset} has no continuation")]
    TokenNotAllowed {
        /// The token that was offered.
        token: TokenId,
        /// Index, in the token's bytes, of the first byte that cannot follow.
        byte_offset: usize,
    },
    /// The token's bytes could follow, but the text that is forced here is written in the
    /// tokenizer's own segmentation, which begins with another token.
    #[error("token {token} is not how the tokenizer writes the forced text: expected {expected}")]
    NotCanonical {
        /// The token that was offered.
        token: TokenId,
        /// The only token in the mask.
        expected: TokenId,
    },
    /// The token has no text (control, unused, unknown, or empty), and it is not an end-of-turn
    /// token that could end the text here.
    #[error(
        "token {token} has no text: only text tokens, and end-of-turn tokens where the text is \
         complete, are allowed"
    )]
    NotText {
        /// The token that was offered.
        token: TokenId,
    },
    /// No token of the vocabulary continues the text, although it is not complete.
    #[error("no token of the vocabulary continues the text, although it is not complete")]
    NoTokenAllowed,
    /// More tokens were to be taken back than had been accepted.
    #[error("cannot roll back {requested} tokens: only {accepted} were accepted")]
    RollbackTooFar {
        /// Tokens to take back.
        requested: usize,
        /// Tokens accepted so far.
        accepted: usize,
    },
}

/// A constraint on the tokens of one sequence: scratch state behind `&mut`.
///
/// The decoding loop asks for the [`mask`](Self::mask), applies it to the logits, takes the best
/// token left and [`accept`](Self::accept)s it, until [`is_complete`](Self::is_complete) and the
/// model ends its turn, or nothing can follow ([`is_finished`](Self::is_finished)).
///
/// End-of-turn tokens are in the mask exactly when the text is complete; accepting one finishes
/// the constraint.
pub trait TokenConstraint: Send {
    /// The tokens that may come next.
    ///
    /// # Errors
    /// [`ConstraintError::NoTokenAllowed`] if nothing can follow an incomplete text.
    fn mask(&mut self) -> Result<&TokenMask, ConstraintError>;

    /// The tokens that may come next such that the text can still be completed with at most
    /// `remaining_tokens` tokens, the next one included (an end-of-turn token is not counted).
    ///
    /// Never empty while `remaining_tokens >= self.completion_tokens()`.
    ///
    /// # Errors
    /// [`ConstraintError::NoTokenAllowed`] if no token fits.
    fn mask_within(&mut self, remaining_tokens: usize) -> Result<&TokenMask, ConstraintError>;

    /// Whether, after `token`, the text can still be completed with `remaining_tokens` tokens,
    /// `token` included. Cheaper than [`mask_within`](Self::mask_within): the loop asks for the
    /// token it has chosen, and only when the answer is no for the whole mask.
    fn fits(&mut self, token: TokenId, remaining_tokens: usize) -> bool;

    /// Number of tokens with which the text can be completed from here: 0 where it is complete,
    /// `usize::MAX` where the vocabulary cannot spell any completion.
    ///
    /// A promise, not only an estimate: while it is positive, some token of the mask leads to a
    /// state where it is at least one less.
    fn completion_tokens(&mut self) -> usize;

    /// Advances by one token.
    ///
    /// # Errors
    /// [`ConstraintError::TokenNotAllowed`], [`NotCanonical`](ConstraintError::NotCanonical) or
    /// [`NotText`](ConstraintError::NotText) if the token is not in the mask; the state is then
    /// unchanged.
    fn accept(&mut self, token: TokenId) -> Result<(), ConstraintError>;

    /// Takes the last `tokens` tokens back.
    ///
    /// # Errors
    /// [`ConstraintError::RollbackTooFar`] if fewer were accepted; the state is then unchanged.
    fn rollback(&mut self, tokens: usize) -> Result<(), ConstraintError>;

    /// The only token that may come next, if there is exactly one. Accepting it needs no model.
    fn forced(&mut self) -> Option<TokenId>;

    /// Whether the text so far is a whole value.
    fn is_complete(&mut self) -> bool;

    /// Whether the text is a whole value that nothing but the end of the turn can follow.
    fn is_finished(&mut self) -> bool;

    /// Number of times a token was masked out because its successor could not be decided within
    /// the limits. Anything above 0 is reported with the answer.
    fn undecided(&self) -> u64;
}
