//! What an extractor does after an answer is written: scores it, and writes uncertain parts again.

use molde_constraint::{Matcher, SchemaConstraint};
use molde_infer::CancelHandle;
use molde_vocab::{TokenConstraint, TokenId};

use crate::backend::Job;
use crate::confidence::{ChoicePoint, Confidence, Scoring};
use crate::fields::{FieldScanner, push_segment};
use crate::grounding::only_null;
use crate::schema_edit::add_all_of;
use crate::writing::Answer;
use crate::{Contract, Control, Extractor, MoldeError};

impl<T> Extractor<T> {
    /// Adds to `answer` how sure the model was. `matcher` is the one that it was written under.
    pub(crate) fn score(
        &self,
        prompt: &[TokenId],
        matcher: &mut Matcher<SchemaConstraint>,
        answer: &mut Answer,
        control: &Control,
    ) -> Result<(), MoldeError> {
        let Some((_, before)) = answer.tokens.split_last() else { return Ok(()) };
        let (prefix, _) = self.prefix_of(prompt, control)?;
        matcher.reset();
        let mut scoring = Scoring::new(matcher, &answer.tokens);
        prefix.score(prompt, before, control, &mut |row| scoring.push(row))?;
        let (mut reports, choices) = scoring.finish()?;
        if self.confidence() == Confidence::Full {
            for choice in &choices {
                let pointer = reports[choice.field].pointer.clone();
                reports[choice.field].runner_up =
                    self.runner_up(prompt, matcher, &answer.tokens, choice, &pointer, control)?;
            }
        }
        answer.fields = reports;
        Ok(())
    }

    /// The value of a field if the second token had been taken.
    fn runner_up(
        &self,
        prompt: &[TokenId],
        matcher: &mut Matcher<SchemaConstraint>,
        tokens: &[TokenId],
        choice: &ChoicePoint,
        pointer: &str,
        control: &Control,
    ) -> Result<Option<String>, MoldeError> {
        let mut written: Vec<TokenId> = tokens[..choice.at].to_vec();
        written.push(choice.second);
        matcher.reset();
        for token in &written {
            if matcher.accept(*token).is_err() {
                return Ok(None);
            }
        }
        let remaining = self.max_tokens().saturating_sub(written.len());
        if matcher.completion_tokens() > remaining {
            return Ok(None);
        }
        let vocabulary = matcher.vocabulary().clone();
        let mut scanner = FieldScanner::new();
        let mut completed = Vec::new();
        for token in &written {
            scanner.push(vocabulary.token_bytes(*token).unwrap_or_default(), &mut completed);
        }
        let value_of = |scanner: &FieldScanner, completed: &[crate::fields::CompletedField]| {
            let field = completed.iter().find(|field| field.pointer == pointer)?;
            Some(String::from_utf8_lossy(&scanner.text()[field.bytes.clone()]).into_owned())
        };
        let mut found = value_of(&scanner, &completed);
        if found.is_some() || remaining == 0 {
            return Ok(found);
        }
        // Writing ends when the field does.
        let done = CancelHandle::new();
        let mut until_done = control.clone();
        until_done.interrupt.cancel = Some(done.clone());
        let (prefix, _) = self.prefix_of(prompt, control)?;
        let longer: Vec<TokenId> = prompt.iter().chain(&written).copied().collect();
        prefix.generate(Job {
            prompt: &longer,
            max_tokens: remaining,
            constraint: Some(matcher),
            control: &until_done,
            on_token: &mut |token| {
                scanner.push(token.bytes, &mut completed);
                if found.is_none() {
                    found = value_of(&scanner, &completed);
                }
                if found.is_some() || control.interrupt.check().is_err() {
                    done.cancel();
                }
            },
        })?;
        control.interrupt.check()?;
        Ok(found)
    }

    /// The answer with null for fields that are too uncertain, and what follows them written again.
    pub(crate) fn abstain(
        &self,
        contract: &Contract<T>,
        prompt: &[TokenId],
        answer: Answer,
        control: &Control,
    ) -> Result<Answer, MoldeError> {
        let mut answer = answer;
        let mut parts: Vec<String> = Vec::new();
        let mut abstained: Vec<String> = Vec::new();
        loop {
            let uncertain = answer.fields.iter().position(|report| {
                self.abstain_limits().iter().any(|(name, limit)| {
                    let mut pointer = String::new();
                    push_segment(&mut pointer, name);
                    report.pointer == pointer
                        && report.json != "null"
                        && report.probability < *limit
                        && !abstained.contains(&pointer)
                })
            });
            let Some(index) = uncertain else {
                answer.abstained = abstained;
                return Ok(answer);
            };
            let pointer = answer.fields[index].pointer.clone();
            let name = pointer[1..].replace("~1", "/").replace("~0", "~");
            parts.push(only_null(&name));
            abstained.push(pointer);
            // What was written before the field stays; with rules between fields null may be
            // impossible beside it, and then the whole answer is written again.
            let kept = Self::before(&answer, &name);
            let narrowed = [&parts[..], &kept[..]].concat();
            let compile = |parts: &[String]| {
                contract.with_schema(&add_all_of(contract.schema_text(), parts)?)
            };
            let contract = match compile(&narrowed) {
                Ok(contract) => contract,
                Err(_) => compile(&parts)?,
            };
            let mut matcher = self.new_matcher(&contract);
            let (usage, timings) = (answer.usage, answer.timings);
            answer = self.answer_with(prompt, &mut matcher, control, &mut |_| {})?;
            answer.usage.add(&usage);
            answer.timings.add(&timings);
            if answer.end.is_early() {
                return Ok(answer);
            }
            self.score(prompt, &mut matcher, &mut answer, control)?;
        }
    }

    /// That the members of the outermost object before `name` keep their values.
    fn before(answer: &Answer, name: &str) -> Vec<String> {
        let mut scanner = FieldScanner::new();
        let mut fields = Vec::new();
        scanner.push(answer.text.as_bytes(), &mut fields);
        let mut own = String::new();
        push_segment(&mut own, name);
        fields
            .iter()
            .take_while(|field| !field.pointer.starts_with(&own))
            .filter(|field| field.pointer.matches('/').count() == 1)
            .map(|field| {
                let member = field.pointer[1..].replace("~1", "/").replace("~0", "~");
                format!(
                    "{{\"properties\": {{{}: {{\"const\": {}}}}}}}",
                    serde_json::Value::from(member),
                    &answer.text[field.bytes.clone()]
                )
            })
            .collect()
    }
}
