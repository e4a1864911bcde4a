//! Guessing the next tokens from what the sequence has seen: answers that copy the document repeat
//! its tokens (prompt lookup; A. Saxena, 2023). A guess is checked by the model in one batch, so it
//! changes speed only.

use molde_vocab::TokenId;

/// Tokens that must have occurred in the same order before.
const NGRAM: usize = 3;
/// Most tokens guessed at once: more than these cost as much as the weights that they save.
pub(crate) const LONGEST: usize = 7;
/// Tokens without a guess after one that was all wrong, doubled with each in a row.
const FIRST_PAUSE: usize = 4;
const LONGEST_PAUSE: usize = 64;

/// Guesses for one sequence.
#[derive(Debug)]
pub(crate) struct Drafter {
    /// Prompt and answer so far.
    history: Vec<TokenId>,
    length: usize,
    pause: usize,
    next_pause: usize,
}

impl Drafter {
    pub(crate) fn new(prompt: &[TokenId], max_tokens: usize) -> Self {
        let mut history = Vec::with_capacity(prompt.len() + max_tokens);
        history.extend_from_slice(prompt);
        Self { history, length: LONGEST, pause: 0, next_pause: FIRST_PAUSE }
    }

    /// A token of the answer was decided.
    pub(crate) fn push(&mut self, token: TokenId) {
        self.history.push(token);
        self.pause = self.pause.saturating_sub(1);
    }

    /// The tokens that followed the last ones where these occurred before, the latest time;
    /// empty if they never did, or guessing has not paid lately.
    ///
    /// # Complexity
    /// Linear in the length of the sequence.
    pub(crate) fn guess(&self) -> &[TokenId] {
        let len = self.history.len();
        if self.pause > 0 || len <= NGRAM {
            return &[];
        }
        let last = &self.history[len - NGRAM..];
        let earlier = &self.history[..len - 1];
        let found = earlier.windows(NGRAM).rposition(|window| window == last);
        found.map_or(&[], |at| {
            let from = at + NGRAM;
            &self.history[from..len.min(from + self.length)]
        })
    }

    /// Of `guessed` tokens the first `right` were right.
    pub(crate) fn learn(&mut self, guessed: usize, right: usize) {
        if guessed == 0 {
            return;
        }
        if right == 0 {
            (self.pause, self.next_pause) =
                (self.next_pause, (self.next_pause * 2).min(LONGEST_PAUSE));
            self.length = 2;
        } else {
            self.next_pause = FIRST_PAUSE;
            self.length = if right == guessed { LONGEST } else { (right + 1).min(LONGEST) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_followed_the_last_time() {
        let mut drafter = Drafter::new(&[1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 8], 10);
        assert!(drafter.guess().is_empty());
        for token in [1, 2, 3] {
            drafter.push(token);
        }
        assert_eq!(drafter.guess(), [7, 8, 1, 2, 3]);
        drafter.learn(5, 2);
        assert_eq!(drafter.guess(), [7, 8, 1]);
    }

    #[test]
    fn sees_what_repeats_itself_at_once() {
        let mut drafter = Drafter::new(&[9, 9], 10);
        drafter.push(9);
        assert!(drafter.guess().is_empty());
        drafter.push(9);
        assert_eq!(drafter.guess(), [9]);
    }

    #[test]
    fn pauses_longer_each_time_it_is_wrong() {
        let mut drafter = Drafter::new(&[5; 20], 10);
        let mut pauses = Vec::new();
        for _ in 0..3 {
            assert!(!drafter.guess().is_empty());
            drafter.learn(1, 0);
            let mut pause = 0;
            while drafter.guess().is_empty() {
                drafter.push(5);
                pause += 1;
            }
            pauses.push(pause);
        }
        assert_eq!(pauses, [4, 8, 16]);
        drafter.learn(2, 1);
        drafter.learn(1, 0);
        assert!(drafter.guess().is_empty());
        (0..4).for_each(|_| drafter.push(5));
        assert!(!drafter.guess().is_empty());
    }
}
