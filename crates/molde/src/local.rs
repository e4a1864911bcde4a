//! The backend that this crate comes with: a model of `molde-infer`, run in this process.

use std::path::Path;
use std::sync::Arc;

use molde_infer::{
    End, GenerateRequest, Interrupt, KvCache, LoadedModel, Message, ModelOptions, SharedSteps,
};
use molde_vocab::{TokenId, Vocabulary};

use crate::backend::{Backend, Job, Prefix, Stop, Written};
use crate::{Control, MoldeError, Timings, Usage};

/// Tokens whose logits are held at once: each has one of four bytes for every token of the vocabulary.
const SCORED_TOKENS: usize = 32;

/// A loaded model.
#[derive(Debug)]
pub(crate) struct LocalModel {
    loaded: LoadedModel,
    /// What is written at the same time shares the model's steps.
    steps: Arc<SharedSteps>,
    context_tokens: usize,
}

impl LocalModel {
    /// Loads a GGUF file or a model folder. `context_tokens` can only lower what the model has.
    pub(crate) fn load(
        path: &Path,
        options: &ModelOptions,
        context_tokens: Option<usize>,
        interrupt: &Interrupt,
    ) -> Result<Self, MoldeError> {
        let loaded = LoadedModel::load_unless(path, options, interrupt)?;
        let own = loaded.model.config().context_tokens;
        let steps = Arc::new(SharedSteps::new(Arc::clone(&loaded.model)));
        Ok(Self {
            loaded,
            steps,
            context_tokens: context_tokens.map_or(own, |limit| limit.min(own)),
        })
    }
}

impl Backend for LocalModel {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.loaded.tokenizer.vocabulary()
    }

    fn context_tokens(&self) -> usize {
        self.context_tokens
    }

    fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, MoldeError> {
        Ok(self.loaded.tokenizer.encode_text(text)?)
    }

    fn encode_chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, MoldeError> {
        let template = self.loaded.chat_template.as_ref().ok_or(MoldeError::NoChatTemplate)?;
        Ok(template.encode(&self.loaded.tokenizer, messages)?)
    }

    fn prefill(
        &self,
        tokens: &[TokenId],
        control: &Control,
    ) -> Result<Arc<dyn Prefix>, MoldeError> {
        let mut cache = self.loaded.model.new_cache(tokens.len());
        if !tokens.is_empty() {
            self.loaded.model.prefill(tokens, &mut cache, &control.interrupt)?;
        }
        let (loaded, steps) = (self.loaded.clone(), Arc::clone(&self.steps));
        Ok(Arc::new(LocalPrefix { loaded, steps, cache }))
    }
}

#[derive(Debug)]
struct LocalPrefix {
    loaded: LoadedModel,
    steps: Arc<SharedSteps>,
    cache: KvCache,
}

impl Prefix for LocalPrefix {
    fn generate(&self, job: Job<'_>) -> Result<Written, MoldeError> {
        let request = GenerateRequest {
            interrupt: job.control.interrupt.clone(),
            ..GenerateRequest::new(job.prompt.to_vec(), job.max_tokens)
        };
        let generation = self.steps.generate(
            &self.loaded.tokenizer,
            &request,
            &mut self.cache.clone(),
            job.constraint,
            job.on_token,
        )?;
        Ok(Written {
            stop: match generation.end {
                End::EndOfTurn | End::ConstraintComplete => Stop::Complete,
                End::Cancelled => Stop::Cancelled,
                End::DeadlineExceeded => Stop::DeadlineExceeded,
                // The enumeration may grow; an end that is not known here is not a whole answer.
                End::TokenLimit | _ => Stop::TokenLimit,
            },
            closed_at: generation.closed_by_budget,
            usage: Usage {
                prompt_tokens: generation.usage.prompt_tokens,
                cached_prompt_tokens: generation.usage.cached_prompt_tokens,
                output_tokens: generation.usage.generated_tokens,
                forced_tokens: generation.usage.forced_tokens,
            },
            timings: Timings {
                total: generation.timings.prefill
                    + generation.timings.decode
                    + generation.timings.mask,
                prefill: generation.timings.prefill,
                decode: generation.timings.decode,
                head: generation.timings.head,
                mask: generation.timings.mask,
            },
        })
    }

    fn score(
        &self,
        prompt: &[TokenId],
        continuation: &[TokenId],
        control: &Control,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<(), MoldeError> {
        let model = &self.loaded.model;
        let mut cache = self.cache.clone();
        let Some((last, before)) = prompt.split_last() else {
            return Err(molde_infer::InferError::EmptyPrompt.into());
        };
        let known = cache.common_prefix(before);
        cache.truncate(known);
        if known < before.len() {
            model.prefill(&before[known..], &mut cache, &control.interrupt)?;
        }
        let tokens: Vec<TokenId> =
            std::iter::once(*last).chain(continuation.iter().copied()).collect();
        for chunk in tokens.chunks(SCORED_TOKENS) {
            control.interrupt.check()?;
            model.forward_all(chunk, &mut cache)?.iter().for_each(|row| each(row));
        }
        Ok(())
    }
}
