//! The choice of a token from logits.

use molde_vocab::TokenId;

use crate::InferError;

/// The candidate with the largest logit; of equal ones the lowest id. `None` without candidates.
///
/// `candidates` are ascending. Only their logits are looked at: whoever applies a mask passes its
/// tokens, so what is masked out can never win.
pub(crate) fn greedy(
    logits: &[f32],
    candidates: impl IntoIterator<Item = TokenId>,
) -> Result<Option<TokenId>, InferError> {
    let mut best: Option<(TokenId, f32)> = None;
    for token in candidates {
        let Some(&logit) = logits.get(token as usize) else {
            return Err(InferError::TokenOutOfRange { token, vocabulary: logits.len() });
        };
        if logit.is_nan() {
            return Err(InferError::NotANumber { token });
        }
        if best.is_none_or(|(_, largest)| logit > largest) {
            best = Some((token, logit));
        }
    }
    Ok(best.map(|(token, _)| token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_lowest_id_of_equal_logits() {
        let logits = [0.5, 2.0, 2.0, 1.0];
        assert_eq!(greedy(&logits, 0..4).unwrap(), Some(1));
        assert_eq!(greedy(&logits, [2, 3]).unwrap(), Some(2));
    }

    #[test]
    fn ignores_what_is_not_a_candidate_even_if_it_is_not_a_number() {
        let logits = [f32::NAN, f32::INFINITY, -1.0, f32::NEG_INFINITY];
        assert_eq!(greedy(&logits, [2, 3]).unwrap(), Some(2));
        assert_eq!(greedy(&logits, [3]).unwrap(), Some(3));
        assert_eq!(greedy(&logits, []).unwrap(), None);
        let error = greedy(&logits, [0, 2]).unwrap_err();
        assert!(matches!(error, InferError::NotANumber { token: 0 }), "{error}");
    }

    #[test]
    fn refuses_a_candidate_without_a_logit() {
        let error = greedy(&[1.0], [1]).unwrap_err();
        assert!(
            matches!(error, InferError::TokenOutOfRange { token: 1, vocabulary: 1 }),
            "{error}"
        );
    }
}
