//! A backend without weights: a small vocabulary, and choices by script or by chance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use molde_infer::{Message, Role, TextStream, TokenEvent};
use molde_vocab::{Segmenter, TokenConstraint, TokenEntry, TokenId, Vocabulary};

use crate::backend::{Backend, Job, Prefix, Stop, Written};
use crate::{CancelHandle, Control, Engine, MoldeError, Timings, Usage};

/// How the fake chooses among the tokens that are allowed.
#[derive(Debug, Clone)]
pub(crate) enum Policy {
    /// Any of them, by a generator that goes on from call to call.
    Random(u64),
    /// The longest that continues this text, else the first; after its end, the end of the turn
    /// where that is allowed.
    Script(String),
    /// A script for each document that contains the key.
    ByDocument(BTreeMap<&'static str, &'static str>),
}

#[derive(Debug)]
pub(crate) struct Fake {
    tokenizer: Arc<Tokens>,
    vocabulary: Arc<Vocabulary>,
    context_tokens: usize,
    policy: Mutex<Policy>,
    /// Lengths of the prefixes that were read.
    pub(crate) prefills: Mutex<Vec<usize>>,
    /// Cancelled by the fake itself once so many tokens are written.
    pub(crate) cancel_after: Option<(usize, CancelHandle)>,
}

/// The logit of the token that a script would write next.
pub(crate) const SCRIPT_LOGIT: f32 = 8.0;

const SYSTEM: &str = "<system>";
const USER: &str = "<user>";
const ANSWER: &str = "<answer>";

impl Fake {
    pub(crate) fn new(policy: Policy, context_tokens: usize) -> Self {
        let mut entries: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for merged in [
            "{\"", "\": ", ", \"", "\": \"", "\", \"", "\"}", "}", "null", "true", "false", "nu",
            "ll", "12", "00", "999", "-1", ".5", "[", "]", "], \"", "the", " the", "él", "日本",
            "\\u", "\\n", "😀",
        ] {
            entries.push(merged.as_bytes().to_vec());
        }
        let text_tokens = entries.len();
        let tokenizer = Arc::new(Tokens(entries.clone()));
        let mut all: Vec<TokenEntry> = entries.into_iter().map(TokenEntry::Text).collect();
        all.extend([
            TokenEntry::Control,
            TokenEntry::Control,
            TokenEntry::Control,
            TokenEntry::Control,
        ]);
        let end_of_turn = vec![text_tokens as TokenId];
        let segmenter: Arc<dyn Segmenter> = tokenizer.clone();
        let vocabulary = Vocabulary::new(all, end_of_turn, Some(segmenter))
            .expect("the toy vocabulary is sound");
        Self {
            tokenizer,
            vocabulary: Arc::new(vocabulary),
            context_tokens,
            policy: Mutex::new(policy),
            prefills: Mutex::default(),
            cancel_after: None,
        }
    }

    pub(crate) fn engine(policy: Policy) -> Engine {
        Engine::new(Arc::new(Arc::new(Self::new(policy, 100_000))))
    }

    fn control(&self, spelling: &str) -> TokenId {
        let index = [SYSTEM, USER, ANSWER]
            .iter()
            .position(|known| *known == spelling)
            .expect("known marker");
        self.vocabulary.len() as TokenId - 3 + index as TokenId
    }
}

#[derive(Debug)]
struct Tokens(Vec<Vec<u8>>);

impl Segmenter for Tokens {
    /// The longest token at each place.
    fn segment(&self, text: &str) -> Vec<TokenId> {
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let (token, bytes) = self
                .0
                .iter()
                .enumerate()
                .filter(|(_, bytes)| rest.starts_with(bytes))
                .max_by_key(|(_, bytes)| bytes.len())
                .expect("every byte is a token");
            tokens.push(token as TokenId);
            rest = &rest[bytes.len()..];
        }
        tokens
    }
}

impl Backend for Arc<Fake> {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn context_tokens(&self) -> usize {
        self.context_tokens
    }

    fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, MoldeError> {
        Ok(self.tokenizer.segment(text))
    }

    fn encode_chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, MoldeError> {
        let mut tokens = Vec::new();
        for message in messages {
            tokens.push(self.control(match message.role {
                Role::System => SYSTEM,
                Role::User | Role::Tool => USER,
                Role::Assistant => ANSWER,
            }));
            tokens.extend(self.tokenizer.segment(&message.content));
        }
        tokens.push(self.control(ANSWER));
        Ok(tokens)
    }

    fn prefill(
        &self,
        tokens: &[TokenId],
        control: &Control,
    ) -> Result<Arc<dyn Prefix>, MoldeError> {
        control.interrupt.check()?;
        self.prefills.lock().expect("no test panics with the lock").push(tokens.len());
        Ok(Arc::new(FakePrefix { fake: Arc::clone(self), tokens: tokens.to_vec() }))
    }
}

#[derive(Debug)]
struct FakePrefix {
    fake: Arc<Fake>,
    tokens: Vec<TokenId>,
}

impl Prefix for FakePrefix {
    fn score(
        &self,
        prompt: &[TokenId],
        continuation: &[TokenId],
        _: &Control,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<(), MoldeError> {
        (0..=continuation.len()).for_each(|read| each(&self.row(prompt, &continuation[..read])));
        Ok(())
    }

    fn generate(&self, mut job: Job<'_>) -> Result<Written, MoldeError> {
        assert!(job.prompt.starts_with(&self.tokens), "the prompt begins with its prefix");
        let vocabulary = &self.fake.vocabulary;
        let mut written = Written {
            stop: Stop::TokenLimit,
            closed_at: Vec::new(),
            usage: Usage {
                prompt_tokens: job.prompt.len(),
                cached_prompt_tokens: self.tokens.len(),
                ..Usage::default()
            },
            timings: Timings::default(),
        };
        let mut chooser =
            Chooser { fake: &self.fake, script: self.script(job.prompt), bytes: Vec::new() };
        let mut stream = TextStream::new();
        let mut index = 0;
        loop {
            if let Err(error) = job.control.interrupt.check() {
                written.stop = match MoldeError::from(error) {
                    MoldeError::Cancelled => Stop::Cancelled,
                    _ => Stop::DeadlineExceeded,
                };
                return Ok(written);
            }
            let remaining = job.max_tokens - index;
            let mut forced = false;
            let token = if let Some(constraint) = job.constraint.as_deref_mut() {
                if constraint.is_finished() {
                    written.stop = Stop::Complete;
                    return Ok(written);
                }
                forced = constraint.forced().is_some();
                if let Some(token) = chooser.constrained(constraint, remaining, &mut written, index)
                {
                    token
                } else {
                    written.stop = Stop::Complete;
                    return Ok(written);
                }
            } else {
                if remaining == 0 {
                    return Ok(written);
                }
                chooser.choose(&(0..vocabulary.len() as TokenId).collect::<Vec<_>>())
            };
            if vocabulary.is_end_of_turn(token) {
                written.stop = Stop::Complete;
                return Ok(written);
            }
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            chooser.bytes.extend_from_slice(bytes);
            let text = stream.push(bytes);
            (job.on_token)(TokenEvent { index, token, bytes, text: &text, forced, scores: None });
            index += 1;
            written.usage.output_tokens += 1;
            written.usage.forced_tokens += usize::from(forced);
            if let Some((after, handle)) = &self.fake.cancel_after
                && index == *after
            {
                handle.cancel();
            }
        }
    }
}

impl FakePrefix {
    /// The token that a script would write next has [`SCRIPT_LOGIT`], all others 0.
    fn row(&self, prompt: &[TokenId], written: &[TokenId]) -> Vec<f32> {
        let vocabulary = &self.fake.vocabulary;
        // An answer that the prompt has begun counts as written.
        let answer = self.fake.control(ANSWER);
        let begun =
            prompt.iter().rposition(|token| *token == answer).map_or(prompt.len(), |at| at + 1);
        let bytes = prompt[begun..]
            .iter()
            .chain(written)
            .flat_map(|token| vocabulary.token_bytes(*token).unwrap_or_default())
            .copied()
            .collect();
        let chooser = Chooser { fake: &self.fake, script: self.script(prompt), bytes };
        let all: Vec<TokenId> = (0..vocabulary.len() as TokenId).collect();
        let mut row = vec![0.0; all.len()];
        row[chooser.choose(&all) as usize] = SCRIPT_LOGIT;
        row
    }

    fn script(&self, prompt: &[TokenId]) -> Option<Vec<u8>> {
        match &*self.fake.policy.lock().expect("no test panics with the lock") {
            Policy::Random(_) => None,
            Policy::Script(script) => Some(script.clone().into_bytes()),
            Policy::ByDocument(scripts) => {
                let user = self.fake.control(USER);
                let from = prompt.iter().position(|token| *token == user).unwrap_or(0);
                let bytes: Vec<u8> = prompt[from..]
                    .iter()
                    .flat_map(|token| self.fake.vocabulary.token_bytes(*token).unwrap_or_default())
                    .copied()
                    .collect();
                let document = String::from_utf8_lossy(&bytes).into_owned();
                let script = scripts
                    .iter()
                    .find(|(key, _)| document.contains(**key))
                    .map(|(_, script)| *script);
                Some(script.unwrap_or_default().as_bytes().to_vec())
            }
        }
    }
}

struct Chooser<'a> {
    fake: &'a Fake,
    script: Option<Vec<u8>>,
    /// What has been written.
    bytes: Vec<u8>,
}

impl Chooser<'_> {
    fn constrained(
        &self,
        constraint: &mut dyn TokenConstraint,
        remaining: usize,
        written: &mut Written,
        index: usize,
    ) -> Option<TokenId> {
        let mask =
            constraint.mask().expect("the vocabulary has every byte").iter().collect::<Vec<_>>();
        let mut token = self.choose(&mask);
        let vocabulary = &self.fake.vocabulary;
        if !vocabulary.is_end_of_turn(token) && !constraint.fits(token, remaining) {
            written.closed_at.push(index);
            if remaining == 0 {
                assert!(constraint.is_complete(), "the budget never ends inside a value");
                return None;
            }
            let mask = constraint
                .mask_within(remaining)
                .expect("the completion fits")
                .iter()
                .collect::<Vec<_>>();
            token = self.choose(&mask);
        }
        constraint.accept(token).expect("the mask allows it");
        Some(token)
    }

    fn choose(&self, allowed: &[TokenId]) -> TokenId {
        assert!(!allowed.is_empty(), "no dead ends");
        let vocabulary = &self.fake.vocabulary;
        let Some(script) = &self.script else {
            let mut policy = self.fake.policy.lock().expect("no test panics with the lock");
            let Policy::Random(seed) = &mut *policy else { unreachable!("no script means chance") };
            return allowed[(next(seed) % allowed.len() as u64) as usize];
        };
        let rest = script.strip_prefix(self.bytes.as_slice()).unwrap_or_default();
        if rest.is_empty()
            && let Some(end) = allowed.iter().find(|token| vocabulary.is_end_of_turn(**token))
        {
            return *end;
        }
        allowed
            .iter()
            .filter(|token| {
                vocabulary
                    .token_bytes(**token)
                    .is_some_and(|bytes| !rest.is_empty() && rest.starts_with(bytes))
            })
            .max_by_key(|token| vocabulary.token_bytes(**token).map_or(0, <[u8]>::len))
            .copied()
            .unwrap_or(allowed[0])
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
