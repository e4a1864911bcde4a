//! The tokenizer's own way to cut a text, as far as a constraint needs it.

use crate::TokenId;

/// Cuts plain text into tokens the way the model's tokenizer does.
///
/// A constraint that forces a text asks for the segmentation the model was trained on. An
/// implementor adds no tokens of its own (beginning of text, prefix space), takes control tokens
/// spelled in the text for plain text, and gives the same answer for the same text every time. An
/// answer whose tokens do not spell the text is ignored, never trusted.
pub trait Segmenter: Send + Sync {
    /// The tokens of `text`, in order; empty for an empty text or if it cannot be segmented.
    fn segment(&self, text: &str) -> Vec<TokenId>;
}

impl<F: Fn(&str) -> Vec<TokenId> + Send + Sync> Segmenter for F {
    fn segment(&self, text: &str) -> Vec<TokenId> {
        self(text)
    }
}
