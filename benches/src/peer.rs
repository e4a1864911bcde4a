//! llguidance, the peer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use molde_schema::Style;
use molde_vocab::TokenId;
use serde_json::{Value, json};
use tokenizers::Tokenizer;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use crate::engine::{Engine, Refusal, Session};
use crate::tokenizer::BenchTokenizer;

/// llguidance with its default slices.
pub(crate) struct Llguidance {
    factory: ParserFactory,
    style: Style,
}

struct Environment {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer
                .encode_fast(text, false)
                .map(|encoding| encoding.get_ids().to_vec())
                .unwrap_or_default()
        })
    }
}

impl Llguidance {
    pub(crate) fn new(tokenizer: &BenchTokenizer, style: Style) -> anyhow::Result<Self> {
        let vocabulary = &tokenizer.vocabulary;
        let words: Vec<Vec<u8>> = (0..vocabulary.len() as TokenId)
            .map(|token| match vocabulary.token_bytes(token) {
                Some(bytes) => bytes.to_vec(),
                // A leading 0xFF marks what is no text.
                None if vocabulary.is_control(token) => {
                    let mut word = vec![0xFF];
                    word.extend(format!("<|{token}|>").into_bytes());
                    word
                }
                None => Vec::new(),
            })
            .collect();
        let end = vocabulary.end_of_turn().last().copied().unwrap_or(0);
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary.len() as u32, end), &words);
        let environment: TokEnv =
            Arc::new(Environment { trie, tokenizer: Arc::clone(&tokenizer.tokenizer) });
        let mut factory = ParserFactory::new_simple(&environment)?;
        factory.quiet();
        Ok(Self { factory, style })
    }
}

impl Engine for Llguidance {
    type Session = PeerSession;

    fn compile(&self, schema: &str) -> Result<PeerSession, Refusal> {
        let refused = |error: String| {
            if error.contains("Unsatisfiable schema") {
                Refusal::Unsatisfiable
            } else {
                Refusal::Refused(error)
            }
        };
        let mut schema: Value =
            serde_json::from_str(schema).map_err(|error| Refusal::Refused(error.to_string()))?;
        let (item, key) = match self.style {
            Style::Compact => (",", ":"),
            Style::Spaced | Style::Flexible => (", ", ": "),
        };
        let options = json!({
            "whitespace_flexible": false, "item_separator": item, "key_separator": key,
        });
        match &mut schema {
            Value::Object(members) => {
                members.insert("x-guidance".to_owned(), options);
            }
            Value::Bool(true) => schema = json!({ "x-guidance": options }),
            _ => return Err(Refusal::Unsatisfiable),
        }
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let parser = catch_unwind(AssertUnwindSafe(|| self.factory.create_parser(grammar)))
            .map_err(|_| Refusal::Refused("panic".to_owned()))?
            .map_err(|error| refused(error.to_string()))?;
        Ok(PeerSession { matcher: Matcher::new(Ok(parser)) })
    }
}

pub(crate) struct PeerSession {
    matcher: Matcher,
}

impl Session for PeerSession {
    fn reset(&mut self) {
        // A failure shows at the next mask.
        let _ = self.matcher.reset();
    }

    fn look_up(&mut self, next: TokenId, others: &[TokenId; 64]) -> Option<(bool, u64)> {
        let mask = self.matcher.compute_mask_or_eos().ok()?;
        let mut found = 0;
        for (bit, &token) in others.iter().enumerate() {
            found |= u64::from(mask.is_allowed(token)) << bit;
        }
        Some((mask.is_allowed(next), found))
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.matcher.consume_token(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }
}
