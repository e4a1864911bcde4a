//! Texts into labels, with the exact probability of every label.

use std::collections::BTreeSet;

use molde_vocab::TokenId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::backend::Prefix;
use crate::explain::softmax;
use crate::outcome::RawJson;
use crate::{
    Contract, Control, Engine, Extractor, Language, MoldeError, PromptTemplate, SignatureLimits,
};

/// Labels that a classifier takes.
pub const MAX_LABELS: usize = 10_000;

/// Tokens of one answer of a classifier.
const MAX_TOKENS: usize = 256;

/// Characters of the reasoning that a model may write.
const REASONING_CHARACTERS: usize = 200;

/// The settings of a [`Classifier`].
#[derive(Debug)]
#[must_use]
pub struct ClassifierBuilder {
    engine: Engine,
    labels: Vec<String>,
    fallback: Option<String>,
    min_probability: f64,
    asks: bool,
    language: Language,
    instructions: Option<String>,
}

impl ClassifierBuilder {
    pub(crate) fn new(engine: Engine, labels: Vec<String>) -> Self {
        Self {
            engine,
            labels,
            fallback: None,
            min_probability: 0.0,
            asks: true,
            language: Language::default(),
            instructions: None,
        }
    }

    /// The label of texts whose most probable label is not probable enough. It need not be one of the
    /// labels. Default: none, the most probable label stands.
    pub fn fallback(mut self, label: impl Into<String>, min_probability: f64) -> Self {
        self.fallback = Some(label.into());
        self.min_probability = min_probability;
        self
    }

    /// Whether the model is asked to write its own confidence and its reasoning as well. They cost an
    /// answer of a few tokens. Default: it is.
    pub fn ask_confidence(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// Language of the instructions. Default: English.
    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// What is to be classified, and by what. Default: a general sentence.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Makes the classifier. Runs no model.
    ///
    /// # Errors
    /// [`MoldeError::Labels`] for labels that are none, empty, or come twice, and those of
    /// [`ExtractorBuilder::build`](crate::ExtractorBuilder::build).
    pub fn build(self) -> Result<Classifier, MoldeError> {
        let distinct: BTreeSet<&str> = self.labels.iter().map(String::as_str).collect();
        let reason = if self.labels.is_empty() {
            Some("there are none")
        } else if self.labels.iter().any(|label| label.trim().is_empty()) {
            Some("one is empty")
        } else if distinct.len() < self.labels.len() {
            Some("one comes twice")
        } else if self.labels.len() > MAX_LABELS {
            Some("there are more than 10,000")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(MoldeError::Labels { reason });
        }
        let limits = SignatureLimits {
            characters: 40_000,
            enum_values: self.labels.len(),
            ..SignatureLimits::default()
        };
        let task = self.instructions.unwrap_or_else(|| {
            match self.language {
                Language::English => "Classify the message by its intent.",
                Language::Spanish => "Clasifica el mensaje según su intención.",
            }
            .to_owned()
        });
        let template = PromptTemplate::new(self.language)
            .instructions(task)
            .no_data("")
            .signature_limits(limits);
        let extractor = self
            .engine
            .extractor_with(Contract::from_schema(&schema(&json!({ "enum": self.labels })))?)
            .prompt(template)
            .max_tokens(MAX_TOKENS)
            .build()?;
        // How the beginning of an answer with each label is written.
        let backend = self.engine.backend();
        let vocabulary = backend.vocabulary();
        let written = self
            .labels
            .iter()
            .map(|label| {
                let text = format!("{{\"intent_name\": {}", Value::from(label.as_str()));
                // With what follows, so that the end of the string is written as it will be.
                let tokens = backend.encode_text(&format!("{text}, \"confidence\": "))?;
                let mut bytes = 0;
                let kept = tokens.iter().take_while(|token| {
                    let is_inside = bytes < text.len();
                    bytes += vocabulary.token_bytes(**token).map_or(0, <[u8]>::len);
                    is_inside
                });
                Ok(kept.copied().collect::<Vec<TokenId>>())
            })
            .collect::<Result<Vec<_>, MoldeError>>()?;
        let shared = match written.as_slice() {
            [only] => only.len(),
            [first, others @ ..] => others.iter().fold(first.len(), |shared, other| {
                first
                    .iter()
                    .zip(other)
                    .take(shared)
                    .take_while(|(left, right)| left == right)
                    .count()
            }),
            [] => 0,
        };
        let head = written.first().map(|tokens| tokens[..shared].to_vec()).unwrap_or_default();
        let tails = written.into_iter().map(|tokens| tokens[shared..].to_vec()).collect();
        Ok(Classifier {
            engine: self.engine,
            labels: self.labels,
            fallback: self.fallback,
            min_probability: self.min_probability,
            asks: self.asks,
            extractor,
            head,
            tails,
        })
    }
}

/// Sorts texts into labels.
#[derive(Debug)]
pub struct Classifier {
    engine: Engine,
    labels: Vec<String>,
    fallback: Option<String>,
    min_probability: f64,
    asks: bool,
    extractor: Extractor,
    /// The tokens with which every answer begins.
    head: Vec<TokenId>,
    /// The tokens of each label after those, up to the end of its string.
    tails: Vec<Vec<TokenId>>,
}

/// What a text was classified as.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Classification {
    /// The most probable label, or the fallback.
    pub intent: String,
    /// Why it is the fallback: `low_probability`; `None` if it is the most probable label.
    pub fallback: Option<&'static str>,
    /// Every label with its probability, most probable first. They sum to 1: what the model gives
    /// the texts of the labels, relative to each other.
    pub probabilities: Vec<(String, f64)>,
    /// What the model writes as its confidence in the most probable label, from 0 to 1; `None` if it
    /// was not asked. Not to be mistaken for the probability.
    pub confidence: Option<f64>,
    /// What the model writes as its reason.
    pub reasoning: Option<String>,
}

impl Classification {
    /// The probability of the most probable label.
    pub fn probability(&self) -> f64 {
        self.probabilities.first().map_or(0.0, |(_, probability)| *probability)
    }
}

impl Classifier {
    /// The labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// What the model is told before each text.
    pub fn system_message(&self) -> &str {
        self.extractor.system_message()
    }

    /// Classifies one text.
    ///
    /// # Errors
    /// Those of [`Extractor::extract`].
    ///
    /// # Complexity
    /// One pass of the model over the text, one over the tokens of each label that has several, and
    /// the answer if the model is asked for its confidence.
    pub fn classify(&self, text: &str, control: &Control) -> Result<Classification, MoldeError> {
        if text.trim().is_empty() {
            return Err(MoldeError::EmptyDocument);
        }
        let mut probabilities = self.probabilities(text, control)?;
        // Stable: of equal ones the first in the caller's order.
        probabilities.sort_by(|left, right| right.1.total_cmp(&left.1));
        let best = probabilities.first().map_or_else(String::new, |(label, _)| label.clone());
        let (confidence, reasoning) =
            if self.asks { self.ask(text, &best, control)? } else { (None, None) };
        let is_low = probabilities.first().is_none_or(|(_, share)| *share < self.min_probability);
        let (intent, fallback) = match &self.fallback {
            Some(fallback) if is_low => (fallback.clone(), Some("low_probability")),
            _ => (best, None),
        };
        Ok(Classification { intent, fallback, probabilities, confidence, reasoning })
    }

    /// The normalised probability of each label, in the order of the labels.
    fn probabilities(
        &self,
        text: &str,
        control: &Control,
    ) -> Result<Vec<(String, f64)>, MoldeError> {
        let backend = self.engine.backend();
        let mut prompt = backend.encode_chat(&self.extractor.messages(text))?;
        let (prompt_tokens, context_tokens) = (prompt.len(), backend.context_tokens());
        if prompt_tokens + MAX_TOKENS > context_tokens {
            return Err(MoldeError::ContextOverflow {
                prompt_tokens,
                max_tokens: MAX_TOKENS,
                context_tokens,
            });
        }
        prompt.extend_from_slice(&self.head);
        let read = backend.prefill(&prompt[..prompt.len() - 1], control)?;
        let logarithms = self
            .tails
            .iter()
            .map(|tail| log_probability(&*read, &prompt, tail, control))
            .collect::<Result<Vec<f64>, _>>()?;
        let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logarithms.iter().map(|log| (log - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        Ok(self
            .labels
            .iter()
            .cloned()
            .zip(weights.into_iter().map(|weight| weight / sum))
            .collect())
    }

    /// The model's own words about a label.
    fn ask(
        &self,
        text: &str,
        label: &str,
        control: &Control,
    ) -> Result<(Option<f64>, Option<String>), MoldeError> {
        let contract: Contract<RawJson> =
            self.extractor.contract().with_schema(&schema(&json!({ "const": label })))?;
        let outcome = self.extractor.extract_under(&contract, text, control)?;
        let value: Value = outcome.into_value_or_closed()?.to_value()?;
        let reasoning = value["reasoning"].as_str().map(ToOwned::to_owned);
        Ok((value["confidence"].as_f64(), reasoning))
    }
}

/// The logarithm of the probability that `tail` follows the prompt.
fn log_probability(
    read: &dyn Prefix,
    prompt: &[TokenId],
    tail: &[TokenId],
    control: &Control,
) -> Result<f64, MoldeError> {
    let Some((_, before)) = tail.split_last() else { return Ok(0.0) };
    let mut tokens = tail.iter();
    let mut sum = 0.0;
    read.score(prompt, before, control, &mut |row| {
        if let Some(token) = tokens.next() {
            sum += softmax(row).get(*token as usize).copied().unwrap_or(0.0).ln();
        }
    })?;
    Ok(sum)
}

/// The form of an answer about one of some labels.
fn schema(label: &Value) -> String {
    let mut label = label.clone();
    label["type"] = json!("string");
    json!({
        "type": "object",
        "properties": {
            "intent_name": label,
            "confidence": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01},
            "reasoning": {"anyOf": [{"type": "string", "maxLength": REASONING_CHARACTERS}, {"type": "null"}]},
        },
        "required": ["intent_name", "confidence", "reasoning"],
        "additionalProperties": false,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake::{Fake, Policy, SCRIPT_LOGIT};

    fn classifier(script: &str) -> ClassifierBuilder {
        let labels = ["book", "cancel", "can", "other thing"].map(str::to_owned).to_vec();
        ClassifierBuilder::new(Fake::engine(Policy::Script(script.to_owned())), labels)
    }

    const ANSWER: &str =
        r#"{"intent_name": "cancel", "confidence": 0.92, "reasoning": "it says so"}"#;

    #[test]
    fn the_label_that_the_model_would_write_is_the_most_probable_one() {
        let found = classifier(ANSWER)
            .build()
            .expect("the labels are fine")
            .classify("please cancel", &Control::new())
            .expect("the fake works");
        assert_eq!((found.intent.as_str(), found.fallback), ("cancel", None));
        assert_eq!(found.probabilities.len(), 4);
        let sum: f64 = found.probabilities.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert_eq!(found.confidence, Some(0.92));
        assert_eq!(found.reasoning.as_deref(), Some("it says so"));
    }

    #[test]
    fn probabilities_are_those_of_the_texts_of_the_labels() {
        // The fake gives the next token of its script the logit 2 and every other one 0: what a label
        // shares with the script counts, and its length.
        let engine = Fake::engine(Policy::Script(ANSWER.to_owned()));
        let tokens = |label: &str| {
            let text = format!("{{\"intent_name\": \"{label}\", \"confidence\": ");
            let mut tokens = engine.backend().encode_text(&text).expect("tokens");
            // The end of the string and what follows it is one token of the toy vocabulary.
            let end = engine.backend().encode_text("\", \"").expect("one token");
            let at = tokens.iter().rposition(|token| [*token] == end[..]).expect("the end");
            tokens.truncate(at + 1);
            tokens
        };
        let script = tokens("cancel");
        let count = engine.backend().vocabulary().len() as f64;
        let normal = (count - 1.0 + f64::from(SCRIPT_LOGIT).exp()).ln();
        let log = |label: &str| -> f64 {
            let own = tokens(label);
            (0..own.len())
                .map(|index| {
                    let follows = own[..index] == script[..index.min(script.len())]
                        && own.get(index) == script.get(index);
                    if follows { f64::from(SCRIPT_LOGIT) - normal } else { -normal }
                })
                .sum()
        };
        let labels = ["book", "cancel", "can", "other thing"];
        let weights: Vec<f64> = labels.iter().map(|label| log(label).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let found = classifier(ANSWER)
            .ask_confidence(false)
            .build()
            .expect("the labels are fine")
            .classify("x", &Control::new())
            .expect("the fake works");
        assert_eq!((found.confidence, found.reasoning), (None, None));
        for (label, weight) in labels.iter().zip(weights) {
            let (_, share) =
                found.probabilities.iter().find(|(own, _)| own == label).expect("every label");
            // Off the script the fake writes its first token, whose logit is 2 as well.
            assert!((share.ln() - (weight / sum).ln()).abs() < 0.01, "{label}: {share}");
        }
    }

    #[test]
    fn what_is_not_probable_enough_is_the_fallback_with_its_reason() {
        let found = classifier(ANSWER)
            .fallback("default", 0.999_999_999)
            .build()
            .expect("the labels are fine")
            .classify("x", &Control::new())
            .expect("the fake works");
        assert_eq!((found.intent.as_str(), found.fallback), ("default", Some("low_probability")));
        assert_eq!(found.probabilities[0].0, "cancel");
    }

    #[test]
    fn labels_that_cannot_be_told_apart_are_an_error() {
        for labels in [vec![], vec!["a", " "], vec!["a", "b", "a"]] {
            let labels = labels.into_iter().map(str::to_owned).collect();
            let engine = Fake::engine(Policy::Random(1));
            let error = ClassifierBuilder::new(engine, labels).build().expect_err("no labels");
            assert_eq!(error.kind(), "labels");
        }
    }

    #[test]
    fn one_label_is_certain() {
        let engine = Fake::engine(Policy::Random(1));
        let found = ClassifierBuilder::new(engine, vec!["only".to_owned()])
            .build()
            .expect("one is enough")
            .classify("x", &Control::new())
            .expect("the fake works");
        assert_eq!(found.probabilities, [("only".to_owned(), 1.0)]);
    }
}
