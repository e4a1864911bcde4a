//! The choice of a token from logits.

use std::collections::BTreeMap;

use molde_kernels::Kernels;
use molde_vocab::{TokenId, TokenMask};

use crate::InferError;

/// Candidates among which the nucleus of [`Sampling::top_p`] is looked for first: a full sort of a
/// vocabulary costs more than the model's step on small machines.
const NUCLEUS_FIRST: usize = 1024;

/// How a token is chosen among those that may come next. Whatever the settings, only tokens of the
/// mask are ever looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// What logits are divided by before they become probabilities. Default: 0, which takes the
    /// most probable token, of equal ones the lowest id.
    pub temperature: f32,
    /// The least probable candidates are left out as long as those that stay have at least this
    /// probability together, in (0, 1]. Default: 1, all stay.
    pub top_p: f32,
    /// Number of most probable candidates that stay. Default: 0, all stay.
    pub top_k: usize,
    /// Where the random numbers begin: the same seed writes the same text. Default: 0.
    pub seed: u64,
    /// Taken from a token's logit for each time that the answer holds it already. Default: 0.
    pub frequency_penalty: f32,
    /// Taken from a token's logit if the answer holds it already. Default: 0.
    pub presence_penalty: f32,
    /// Added to the logits of some tokens; ids that no candidate has change nothing. Default: none.
    pub logit_bias: Vec<(TokenId, f32)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            seed: 0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            logit_bias: Vec::new(),
        }
    }
}

/// Logits of all tokens, or of some.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Logits<'a> {
    /// Of every token, by id.
    All(&'a [f32]),
    /// Of the listed tokens, which ascend.
    Rows { tokens: &'a [TokenId], logits: &'a [f32] },
}

impl Logits<'_> {
    fn of(&self, token: TokenId) -> Result<f32, InferError> {
        let (logit, vocabulary) = match self {
            Self::All(logits) => return logit_of(logits, token),
            Self::Rows { tokens, logits } => {
                let index = tokens.binary_search(&token).ok();
                (index.and_then(|index| logits.get(index)), tokens.len())
            }
        };
        let &logit = logit.ok_or(InferError::TokenOutOfRange { token, vocabulary })?;
        if logit.is_nan() { Err(InferError::NotANumber { token }) } else { Ok(logit) }
    }
}

/// The choices of one sequence: settings, random numbers, and what was written.
#[derive(Debug, Clone)]
pub struct Sampler {
    settings: Sampling,
    random: SplitMix64,
    bias: BTreeMap<TokenId, f32>,
    /// How often each token was written. Kept only where a penalty asks for it.
    written: BTreeMap<TokenId, u32>,
    kernels: Kernels,
}

impl Sampler {
    /// A sampler before the first token.
    pub fn new(settings: &Sampling) -> Self {
        let mut bias = BTreeMap::new();
        for &(token, value) in &settings.logit_bias {
            *bias.entry(token).or_insert(0.0) += value;
        }
        Self {
            random: SplitMix64(settings.seed),
            bias,
            written: BTreeMap::new(),
            kernels: Kernels::detect(),
            settings: settings.clone(),
        }
    }

    /// Whether the same logits and the same text before always give the same token.
    pub(crate) fn is_greedy(&self) -> bool {
        self.settings.temperature == 0.0
    }

    /// As [`choose`](Self::choose), among the tokens of a mask.
    pub(crate) fn choose_allowed(
        &mut self,
        logits: Logits<'_>,
        allowed: &TokenMask,
    ) -> Result<Option<TokenId>, InferError> {
        if self.is_greedy()
            && self.bias.is_empty()
            && self.written.is_empty()
            && let (Logits::All(values), Some(words)) = (logits, allowed.words())
            && let Some(token) = self.largest(values, words)
        {
            return Ok(Some(token));
        }
        self.choose_from(logits, allowed)
    }

    /// The largest of many logits, if all are numbers.
    fn largest(&self, values: &[f32], words: &[u64]) -> Option<TokenId> {
        // Undefined if any logit is: whether that one is allowed, the slow way finds out.
        if self.kernels.dot(values, values).ok()?.is_nan() {
            return None;
        }
        let index = self.kernels.argmax(values, Some(words)).ok()??;
        TokenId::try_from(index).ok()
    }

    /// Notes that `token` has been written, forced or chosen.
    pub fn note(&mut self, token: TokenId) {
        if self.settings.frequency_penalty != 0.0 || self.settings.presence_penalty != 0.0 {
            *self.written.entry(token).or_insert(0) += 1;
        }
    }

    /// One of `candidates`, which are ascending; `None` without candidates. Draws one random
    /// number, unless the temperature is 0.
    ///
    /// # Errors
    /// [`InferError::TokenOutOfRange`] for a candidate without a logit, [`InferError::NotANumber`]
    /// for a candidate whose logit is none.
    ///
    /// # Complexity
    /// Linear in the candidates; a sort of them where `top_p` keeps more than 1,024.
    pub fn choose(
        &mut self,
        logits: &[f32],
        candidates: impl IntoIterator<Item = TokenId>,
    ) -> Result<Option<TokenId>, InferError> {
        self.choose_from(Logits::All(logits), candidates)
    }

    fn choose_from(
        &mut self,
        logits: Logits<'_>,
        candidates: impl IntoIterator<Item = TokenId>,
    ) -> Result<Option<TokenId>, InferError> {
        if self.settings.temperature == 0.0 {
            if self.bias.is_empty() && self.written.is_empty() {
                return greedy(logits, candidates);
            }
            return best(candidates.into_iter().map(|token| self.weighed(logits, token)));
        }
        let mut weighed = Vec::new();
        for token in candidates {
            weighed.push(self.weighed(logits, token)?);
        }
        Ok(self.draw(weighed))
    }

    /// A candidate with its logit after bias and penalties.
    fn weighed(&self, logits: Logits<'_>, token: TokenId) -> Result<(TokenId, f32), InferError> {
        let mut logit = logits.of(token)?;
        if let Some(bias) = self.bias.get(&token) {
            logit += bias;
        }
        if let Some(&times) = self.written.get(&token) {
            logit -= self.settings.frequency_penalty * times as f32;
            logit -= self.settings.presence_penalty;
        }
        Ok((token, logit))
    }

    fn draw(&mut self, mut weighed: Vec<(TokenId, f32)>) -> Option<TokenId> {
        let number = self.random.next_unit();
        let (top, largest) = best(weighed.iter().copied().map(Ok::<_, InferError>))
            .ok()
            .flatten()
            .and_then(|top| weighed.iter().find(|(token, _)| *token == top).copied())?;
        if !largest.is_finite() {
            return Some(top);
        }
        let by_weight = |a: &(TokenId, f32), b: &(TokenId, f32)| {
            b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0))
        };
        let keep = self.settings.top_k;
        if keep > 0 && keep < weighed.len() {
            weighed.select_nth_unstable_by(keep - 1, by_weight);
            weighed.truncate(keep);
        }
        let temperature = f64::from(self.settings.temperature);
        let mass = |logit: f32| ((f64::from(logit) - f64::from(largest)) / temperature).exp();
        if self.settings.top_p < 1.0 {
            let total: f64 = weighed.iter().map(|&(_, logit)| mass(logit)).sum();
            let wanted = f64::from(self.settings.top_p) * total;
            let nucleus = |sorted: &[(TokenId, f32)]| {
                let mut sum = 0.0;
                sorted.iter().position(|&(_, logit)| {
                    sum += mass(logit);
                    sum >= wanted
                })
            };
            let mut first = weighed.clone();
            if first.len() > NUCLEUS_FIRST {
                first.select_nth_unstable_by(NUCLEUS_FIRST, by_weight);
                first.truncate(NUCLEUS_FIRST);
            }
            first.sort_unstable_by(by_weight);
            if nucleus(&first).is_none() && first.len() < weighed.len() {
                weighed.sort_unstable_by(by_weight);
                first.clone_from(&weighed);
            }
            let kept = nucleus(&first).map_or(first.len(), |last| last + 1);
            first.truncate(kept);
            weighed = first;
        }
        // One order whatever the selections above did, so that sums round alike.
        weighed.sort_unstable_by_key(|&(token, _)| token);
        let total: f64 = weighed.iter().map(|&(_, logit)| mass(logit)).sum();
        let mut rest = number * total;
        for &(token, logit) in &weighed {
            rest -= mass(logit);
            if rest < 0.0 {
                return Some(token);
            }
        }
        Some(top)
    }
}

/// How probable the model found a chosen token and its rivals: at temperature 1, before bias and
/// penalties. Natural logarithms.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenScores {
    /// Of the token among all tokens that the tokenizer has, as if there were no mask.
    pub logprob: f32,
    /// Of all tokens in the mask together: 0 without a mask. `logprob - allowed` is the logarithm
    /// of the token's probability under the mask.
    pub allowed: f32,
    /// The most probable tokens, and the most probable ones of the mask: each once, descending.
    pub candidates: Vec<Candidate>,
}

/// A token that could have been chosen, or that the mask forbade.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: TokenId,
    /// Of the token among all tokens, as if there were no mask. Natural logarithm.
    pub logprob: f32,
    /// Whether it is in the mask.
    pub allowed: bool,
}

/// Scores `token`. `used` are all tokens of the tokenizer, ascending; `is_allowed` is the mask.
/// `count` tokens of each kind become candidates.
pub(crate) fn scores(
    logits: &[f32],
    used: impl Iterator<Item = TokenId>,
    is_allowed: impl Fn(TokenId) -> bool,
    token: TokenId,
    count: usize,
) -> Result<TokenScores, InferError> {
    let mut all = Vec::new();
    for token in used {
        all.push((token, logit_of(logits, token)?));
    }
    let largest = all.iter().fold(f32::NEG_INFINITY, |largest, &(_, logit)| largest.max(logit));
    let mass = |logit: f32| (f64::from(logit) - f64::from(largest)).exp();
    let mut total = 0.0;
    let mut allowed_mass = 0.0;
    for &(token, logit) in &all {
        total += mass(logit);
        if is_allowed(token) {
            allowed_mass += mass(logit);
        }
    }
    // Finite, whatever the logits are: JSON has no infinities.
    let log = |mass: f64| (mass / total).ln().clamp(f64::from(LEAST_LOGPROB), 0.0) as f32;
    let logprob = log(mass(logit_of(logits, token)?));
    let by_weight =
        |a: &(TokenId, f32), b: &(TokenId, f32)| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    let best = |keep: &dyn Fn(TokenId) -> bool| {
        let mut some: Vec<_> = all.iter().copied().filter(|&(token, _)| keep(token)).collect();
        if count < some.len() {
            some.select_nth_unstable_by(count, by_weight);
            some.truncate(count);
        }
        some
    };
    let mut candidates = best(&|_| true);
    candidates.extend(best(&|token| is_allowed(token)));
    candidates.sort_unstable_by(by_weight);
    candidates.dedup_by_key(|&mut (token, _)| token);
    Ok(TokenScores {
        logprob,
        allowed: log(allowed_mass),
        candidates: candidates
            .into_iter()
            .map(|(token, logit)| Candidate {
                token,
                logprob: log(mass(logit)),
                allowed: is_allowed(token),
            })
            .collect(),
    })
}

/// The logarithm that stands for a probability of zero.
const LEAST_LOGPROB: f32 = -9999.0;

fn logit_of(logits: &[f32], token: TokenId) -> Result<f32, InferError> {
    let Some(&logit) = logits.get(token as usize) else {
        return Err(InferError::TokenOutOfRange { token, vocabulary: logits.len() });
    };
    if logit.is_nan() {
        return Err(InferError::NotANumber { token });
    }
    Ok(logit)
}

/// The candidate with the largest logit; of equal ones the lowest id. `None` without candidates.
///
/// `candidates` are ascending. Only their logits are looked at: whoever applies a mask passes its
/// tokens, so what is masked out can never win.
fn greedy(
    logits: Logits<'_>,
    candidates: impl IntoIterator<Item = TokenId>,
) -> Result<Option<TokenId>, InferError> {
    best(candidates.into_iter().map(|token| Ok((token, logits.of(token)?))))
}

fn best(
    weighed: impl IntoIterator<Item = Result<(TokenId, f32), InferError>>,
) -> Result<Option<TokenId>, InferError> {
    let mut best: Option<(TokenId, f32)> = None;
    for weighed in weighed {
        let (token, logit) = weighed?;
        if best.is_none_or(|(_, largest)| logit > largest) {
            best = Some((token, logit));
        }
    }
    Ok(best.map(|(token, _)| token))
}

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, every seed is good.
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    /// Uniform in [0, 1), with 53 random bits.
    fn next_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: usize = 5000;

    fn mask(tokens: impl IntoIterator<Item = TokenId>) -> TokenMask {
        TokenMask::from_tokens(VOCABULARY, tokens)
    }

    fn choose(logits: &[f32], allowed: &TokenMask) -> Result<Option<TokenId>, InferError> {
        Sampler::new(&Sampling::default()).choose_allowed(Logits::All(logits), allowed)
    }

    #[test]
    fn takes_the_lowest_id_of_equal_logits() {
        let mut logits = vec![0.5; VOCABULARY];
        (logits[2100], logits[3000]) = (2.0, 2.0);
        assert_eq!(choose(&logits, &mask(0..5000)).unwrap(), Some(2100));
        assert_eq!(choose(&logits, &mask(2101..5000)).unwrap(), Some(3000));
        assert_eq!(choose(&logits, &mask([3000, 2100, 7])).unwrap(), Some(2100));
        assert_eq!(choose(&logits, &mask([9, 8])).unwrap(), Some(8));
    }

    #[test]
    fn ignores_what_is_not_a_candidate_even_if_it_is_not_a_number() {
        let mut logits = vec![f32::NEG_INFINITY; VOCABULARY];
        (logits[0], logits[1], logits[2], logits[3]) = (f32::NAN, f32::INFINITY, -1.0, -2.0);
        assert_eq!(choose(&logits, &mask([2, 3])).unwrap(), Some(2));
        assert_eq!(choose(&logits, &mask(2..5000)).unwrap(), Some(2));
        assert_eq!(choose(&logits, &mask(3000..3003)).unwrap(), Some(3000));
        assert_eq!(choose(&logits, &mask([])).unwrap(), None);
        for allowed in [mask([0, 2]), mask(0..5000)] {
            let error = choose(&logits, &allowed).unwrap_err();
            assert!(matches!(error, InferError::NotANumber { token: 0 }), "{error}");
        }
    }

    #[test]
    fn refuses_a_candidate_without_a_logit() {
        let expected = |error| matches!(error, InferError::TokenOutOfRange { token: 1, .. });
        assert!(expected(choose(&[1.0], &mask([1])).unwrap_err()));
        let rows = Logits::Rows { tokens: &[0, 2], logits: &[0.0, 0.0] };
        let mut sampler = Sampler::new(&Sampling::default());
        assert!(expected(sampler.choose_allowed(rows, &mask([1])).unwrap_err()));
    }

    #[test]
    fn rows_and_all_logits_give_the_same_token() {
        let tokens = [3, 9, 700, 701];
        let mut logits = vec![9.0; VOCABULARY];
        let mut random = SplitMix64(1);
        for seed in 0..50 {
            let some: Vec<f32> = tokens.map(|_| random.next_unit() as f32).to_vec();
            for (&token, &logit) in tokens.iter().zip(&some) {
                logits[token as usize] = logit;
            }
            let rows = Logits::Rows { tokens: &tokens, logits: &some };
            let drawing = Sampling { temperature: 0.7, seed, ..Sampling::default() };
            for sampling in [Sampling::default(), drawing] {
                let pick =
                    |logits| Sampler::new(&sampling).choose_allowed(logits, &mask(tokens)).unwrap();
                assert_eq!(pick(rows), pick(Logits::All(&logits)));
            }
        }
    }

    /// How often each of four candidates is drawn, in 20,000 draws.
    fn shares(settings: &Sampling, logits: &[f32; 4], candidates: &[TokenId]) -> [f64; 4] {
        let mut sampler = Sampler::new(settings);
        let mut counts = [0.0; 4];
        for _ in 0..20_000 {
            let token = sampler.choose(logits, candidates.iter().copied()).unwrap().unwrap();
            counts[token as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    fn assert_close(found: [f64; 4], expected: [f64; 4]) {
        for (found, expected) in found.into_iter().zip(expected) {
            // Four standard deviations of a share of 20,000 draws are below 0.015.
            assert!((found - expected).abs() < 0.015, "{found} instead of {expected}");
        }
    }

    #[test]
    fn draws_with_the_probabilities_of_the_candidates_only() {
        let logits = [4f32.ln(), 2f32.ln(), 1f32.ln(), 100.0];
        let warm = Sampling { temperature: 1.0, seed: 7, ..Sampling::default() };
        let of_seven = |parts: [f64; 4]| parts.map(|part| part / 7.0);
        assert_close(shares(&warm, &logits, &[0, 1, 2]), of_seven([4.0, 2.0, 1.0, 0.0]));
        let hot = Sampling { temperature: 2.0, ..warm.clone() };
        let roots = [2.0, 2f64.sqrt(), 1.0, 0.0];
        let sum: f64 = roots.iter().sum();
        assert_close(shares(&hot, &logits, &[0, 1, 2]), roots.map(|root| root / sum));
        let two = Sampling { top_k: 2, ..warm.clone() };
        assert_close(shares(&two, &logits, &[0, 1, 2]), [4.0 / 6.0, 2.0 / 6.0, 0.0, 0.0]);
        let nucleus = Sampling { top_p: 0.8, ..warm.clone() };
        assert_close(shares(&nucleus, &logits, &[0, 1, 2]), [4.0 / 6.0, 2.0 / 6.0, 0.0, 0.0]);
        let narrow = Sampling { top_p: 0.01, ..warm };
        assert_close(shares(&narrow, &logits, &[0, 1, 2]), [1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens_and_another_one_others() {
        let logits = [0.0; 64];
        let draw = |seed| {
            let mut sampler =
                Sampler::new(&Sampling { temperature: 1.0, seed, ..Sampling::default() });
            (0..40).map(|_| sampler.choose(&logits, 0..64).unwrap().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn a_nucleus_beyond_the_first_candidates_is_found_by_sorting_all() {
        let logits = vec![0.0; 4000];
        let settings = Sampling { temperature: 1.0, top_p: 0.9, seed: 1, ..Sampling::default() };
        let mut sampler = Sampler::new(&settings);
        let drawn: Vec<_> =
            (0..2000).map(|_| sampler.choose(&logits, 0..4000).unwrap().unwrap()).collect();
        // Equal logits: the nucleus is the 3,600 lowest ids.
        assert!(drawn.iter().all(|&token| token < 3600));
        assert!(drawn.iter().any(|&token| token > 3400));
    }

    #[test]
    fn bias_and_penalties_move_the_greedy_choice() {
        let logits = [1.0, 2.0, 3.0];
        let biased = Sampling { logit_bias: vec![(0, 5.0), (99, 1.0)], ..Sampling::default() };
        assert_eq!(Sampler::new(&biased).choose(&logits, 0..3).unwrap(), Some(0));
        let settings = Sampling { frequency_penalty: 0.6, ..Sampling::default() };
        let mut sampler = Sampler::new(&settings);
        sampler.note(2);
        assert_eq!(sampler.choose(&logits, 0..3).unwrap(), Some(2));
        sampler.note(2);
        assert_eq!(sampler.choose(&logits, 0..3).unwrap(), Some(1));
    }

    #[test]
    fn infinite_logits_still_draw_a_candidate() {
        let warm = Sampling { temperature: 1.0, top_p: 0.5, ..Sampling::default() };
        let least = [f32::NEG_INFINITY; 3];
        assert_eq!(Sampler::new(&warm).choose(&least, 0..3).unwrap(), Some(0));
        let one = [0.0, f32::INFINITY, 0.0];
        assert_eq!(Sampler::new(&warm).choose(&one, 0..3).unwrap(), Some(1));
    }

    #[test]
    fn scores_are_those_of_a_softmax_and_tell_what_the_mask_removed() {
        let logits = [8f32.ln(), 4f32.ln(), 2f32.ln(), 2f32.ln()];
        let found = scores(&logits, 0..4, |token| token > 0, 1, 2).unwrap();
        let close = |left: f32, right: f32| (left - right).abs() < 1e-5;
        assert!(close(found.logprob, 0.25f32.ln()), "{found:?}");
        assert!(close(found.allowed, 0.5f32.ln()), "{found:?}");
        let candidates: Vec<_> =
            found.candidates.iter().map(|candidate| (candidate.token, candidate.allowed)).collect();
        assert_eq!(candidates, [(0, false), (1, true), (2, true)]);
        let none = scores(&[0.0, f32::NEG_INFINITY], 0..2, |_| true, 1, 0).unwrap();
        assert!(close(none.logprob, LEAST_LOGPROB), "{none:?}");
    }
}
