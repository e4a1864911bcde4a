//! What the model would write next, and what the mask lets through.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, Segmentation};
use molde_infer::Message;
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};
use serde::Serialize;

use crate::backend::Backend;
use crate::{Contract, Control, MoldeError};

/// One token that could come next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ViewedToken {
    /// The token.
    pub id: TokenId,
    /// Its text; bytes that are no UTF-8 are U+FFFD, a control token's is empty.
    pub text: String,
    /// The probability that the model gives it without a mask.
    pub probability: f64,
    /// Whether the mask lets it through.
    pub allowed: bool,
}

/// The step after a prefix of an answer: the model's distribution and the mask on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MaskView {
    /// The most likely tokens, most likely first.
    pub tokens: Vec<ViewedToken>,
    /// Tokens that the mask lets through.
    pub allowed_tokens: usize,
    /// The probability of all tokens that it does not let through.
    pub removed: f64,
}

/// The view after `prefix`, which an answer to `messages` begins with.
pub(crate) fn view<T>(
    backend: &dyn Backend,
    contract: &Contract<T>,
    messages: &[Message],
    prefix: &str,
    count: usize,
) -> Result<MaskView, MoldeError> {
    let vocabulary = Arc::clone(backend.vocabulary());
    // A prefix is a text, not a sequence of tokens: any segmentation of it will do.
    let options = MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
    let mut matcher = Matcher::new(contract.automaton(), Arc::clone(&vocabulary), options);
    let written = backend.encode_text(prefix)?;
    for token in &written {
        if matcher.accept(*token).is_err() {
            return Err(MoldeError::PrefixRejected { offset: matcher.text().len() });
        }
    }
    let prompt = backend.encode_chat(messages)?;
    let control = Control::new();
    let mut logits = Vec::new();
    backend.prefill(&[], &control)?.score(&prompt, &written, &control, &mut |row| {
        logits = row.to_vec();
    })?;
    let allowed = matcher.mask().map_err(molde_infer::InferError::from)?;
    Ok(from_logits(&logits, &vocabulary, count, allowed.len(), |token| allowed.contains(token)))
}

fn from_logits(
    logits: &[f32],
    vocabulary: &Vocabulary,
    count: usize,
    allowed_tokens: usize,
    is_allowed: impl Fn(TokenId) -> bool,
) -> MaskView {
    let probabilities = softmax(logits);
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|left, right| {
        probabilities[*right].total_cmp(&probabilities[*left]).then(left.cmp(right))
    });
    let removed = (0..probabilities.len())
        .filter(|index| !is_allowed(*index as TokenId))
        .map(|index| probabilities[index])
        .sum();
    let tokens = order
        .into_iter()
        .take(count)
        .map(|index| {
            let id = index as TokenId;
            let bytes = vocabulary.token_bytes(id).unwrap_or_default();
            ViewedToken {
                id,
                text: String::from_utf8_lossy(bytes).into_owned(),
                probability: probabilities[index],
                allowed: is_allowed(id),
            }
        })
        .collect();
    MaskView { tokens, allowed_tokens, removed }
}

/// Probabilities of logits, in double precision.
pub(crate) fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = logits.iter().map(|logit| f64::from(logit - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake::{Fake, Policy, SCRIPT_LOGIT};

    #[test]
    fn the_view_shows_what_the_mask_removes() {
        let engine = Fake::engine(Policy::Script(r#"{"n": 9}"#.to_owned()));
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 4}}, "required": ["n"], "additionalProperties": false}"#;
        let extractor = engine.extractor(schema).build().expect("the schema is supported");
        let view = extractor.explain("x", r#"{"n": "#, 3).expect("the prefix is allowed");
        let first = &view.tokens[0];
        assert_eq!((first.text.as_str(), first.allowed), ("9", false));
        assert_eq!(view.allowed_tokens, 4);
        let script = f64::from(SCRIPT_LOGIT).exp();
        let all = 256.0 + 28.0 + 4.0 - 1.0 + script;
        assert!((first.probability - script / all).abs() < 0.01, "{first:?}");
        assert!((view.removed - (1.0 - 4.0 / all)).abs() < 0.001, "{}", view.removed);
        let error = extractor.explain("x", r#"{"n": 5"#, 3).expect_err("above the maximum");
        assert!(matches!(error, MoldeError::PrefixRejected { offset: 6 }), "{error}");
    }

    #[test]
    fn probabilities_sum_to_one_and_follow_the_logits() {
        let found = softmax(&[0.0, 1000.0, 999.0, f32::NEG_INFINITY]);
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((found[1] / found[2] - 1f64.exp()).abs() < 1e-9);
        assert!(found[3] < f64::MIN_POSITIVE);
    }
}
