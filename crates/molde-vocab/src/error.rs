//! Why a vocabulary could not be built.

use crate::TokenId;

/// Why the entries of a tokenizer make no [`Vocabulary`](crate::Vocabulary).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// More tokens than an id of the trie can number.
    #[error("the vocabulary has more than {max} tokens: a token id must fit 24 bits")]
    TooManyTokens {
        /// The largest number of tokens.
        max: usize,
    },
    /// A token's bytes are longer than the trie is deep.
    #[error(
        "token {token} has {bytes} bytes, expected at most {max}: declare it a control token if \
         the model never writes it"
    )]
    TokenTooLong {
        /// The token.
        token: TokenId,
        /// Length of its text, in bytes.
        bytes: usize,
        /// The longest text a token can have, in bytes.
        max: usize,
    },
    /// All texts together are longer than an offset can say.
    #[error("the texts of the vocabulary have {bytes} bytes together, expected at most {max}")]
    TextTooLarge {
        /// Length of the texts so far, in bytes.
        bytes: usize,
        /// The longest total, in bytes.
        max: usize,
    },
    /// The trie over the texts has more nodes than a subtree size can count.
    #[error("the texts of the vocabulary make a trie of {nodes} nodes, expected at most {max}")]
    TrieTooLarge {
        /// Number of distinct non-empty prefixes of the texts.
        nodes: usize,
        /// The largest number of nodes.
        max: usize,
    },
    /// An end-of-turn id that no entry has.
    #[error(
        "end-of-turn token {token} is not in the vocabulary of {vocabulary_len} tokens: take the \
         ids from the same model as the entries"
    )]
    EndOfTurnUnknown {
        /// The id.
        token: TokenId,
        /// Number of tokens.
        vocabulary_len: usize,
    },
    /// An end-of-turn id whose entry is not a control token, so a text could contain it.
    #[error("end-of-turn token {token} is not a control token: declare its entry as one")]
    EndOfTurnNotControl {
        /// The id.
        token: TokenId,
    },
}
