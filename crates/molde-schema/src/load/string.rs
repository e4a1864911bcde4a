//! `minLength`, `maxLength`, `pattern`, `format`.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaLimits};
use crate::document::{Value, ValueId};
use crate::format::Format;
use crate::ir::StringRule;
use crate::lint::{Occurrence, Verdict};
use crate::options::Formats;
use crate::pattern::{PatternError, compile, compile_dfa};

use super::{Loader, Location};

/// What a compiled language is remembered by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum LanguageKey {
    /// A pattern on a value.
    Pattern(String),
    /// A pattern on a name, whose bounds on the length cannot be kept apart.
    NamePattern(String),
    Format(Format),
}

/// A compiled language: an automaton, and bounds on the number of code points.
#[derive(Debug, Clone)]
pub(super) struct Language {
    dfa: Arc<Dfa>,
    /// All texts that the keyword means, where `dfa` has not all of them.
    outer: Option<Arc<Dfa>>,
    min_length: u64,
    max_length: Option<u64>,
}

impl Loader<'_> {
    pub(super) fn load_string_keyword(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        match keyword {
            "minLength" => {
                if let Some(count) = self.count(location, keyword, value) {
                    let rule = rule(location);
                    rule.min_length = rule.min_length.max(count);
                }
            }
            "maxLength" => {
                if let Some(count) = self.count(location, keyword, value) {
                    let rule = rule(location);
                    rule.max_length = Some(rule.max_length.map_or(count, |max| max.min(count)));
                }
            }
            _ => {
                let Value::String(text) = self.document.get(value) else {
                    return self.malform(location.pointer, keyword, "must be a string");
                };
                let language = if keyword == "pattern" {
                    self.value_pattern(location, text)
                } else {
                    self.load_format(location, text)
                };
                if let Some(language) = language {
                    let rule = rule(location);
                    let source = if keyword == "pattern" { "pattern" } else { "format" };
                    rule.sources.push((source, text.as_str().into()));
                    let outer = language.outer.unwrap_or_else(|| Arc::clone(&language.dfa));
                    rule.outer_languages.push(outer);
                    rule.languages.push(language.dfa);
                    rule.min_length = rule.min_length.max(language.min_length);
                    rule.max_length = match (rule.max_length, language.max_length) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    };
                }
            }
        }
    }

    fn value_pattern(&mut self, location: &Location<'_>, text: &str) -> Option<Language> {
        let key = LanguageKey::Pattern(text.to_owned());
        if let Some(known) = self.languages.get(&key) {
            return Some(known.clone());
        }
        match compile(text, &DfaLimits::default()) {
            Ok(pattern) => {
                let language = Language {
                    dfa: Arc::new(pattern.dfa),
                    outer: None,
                    min_length: pattern.min_chars,
                    max_length: pattern.max_chars,
                };
                self.languages.insert(key, language.clone());
                Some(language)
            }
            Err(error) => {
                self.fault_pattern(location.pointer, "pattern", &error);
                None
            }
        }
    }

    /// The names that a member of `patternProperties` at `pointer` is for.
    pub(super) fn name_pattern(&mut self, pointer: &str, text: &str) -> Option<Arc<Dfa>> {
        let key = LanguageKey::NamePattern(text.to_owned());
        if let Some(known) = self.languages.get(&key) {
            return Some(Arc::clone(&known.dfa));
        }
        match compile_dfa(text, &DfaLimits::default()) {
            Ok(dfa) => {
                let dfa = Arc::new(dfa);
                let language = Language {
                    dfa: Arc::clone(&dfa),
                    outer: None,
                    min_length: 0,
                    max_length: None,
                };
                self.languages.insert(key, language);
                Some(dfa)
            }
            Err(error) => {
                self.fault_pattern(pointer, text, &error);
                None
            }
        }
    }

    fn fault_pattern(&mut self, pointer: &str, keyword: &str, error: &PatternError) {
        match error {
            PatternError::Syntax { .. } => {
                self.malform(pointer, keyword, &format!("is no ECMA-262 pattern: {error}"));
            }
            _ => self.refuse(pointer, keyword, format!("cannot be enforced: {error}")),
        }
    }

    fn load_format(&mut self, location: &Location<'_>, name: &str) -> Option<Language> {
        let is_asserted = self.resources.get(location.scope.resource).asserts_formats;
        if self.options.formats == Formats::Annotate && !is_asserted {
            self.reconsider(location, Verdict::Annotation("formats are annotations by option"));
            return None;
        }
        let Some(format) = Format::from_name(name) else {
            self.reconsider(location, Verdict::Annotation("no known format"));
            return None;
        };
        let profile = self.options.format_profile;
        if let Some(reason) = format.subset(profile) {
            self.reconsider(location, Verdict::Subset(reason));
        }
        let key = LanguageKey::Format(format);
        if let Some(known) = self.languages.get(&key) {
            return Some(known.clone());
        }
        let pattern = format.language(profile);
        let language = Language {
            dfa: Arc::new(pattern.dfa),
            outer: format.outer(profile).map(|outer| Arc::new(outer.dfa)),
            min_length: pattern.min_chars,
            max_length: pattern.max_chars,
        };
        self.languages.insert(key, language.clone());
        Some(language)
    }

    /// Replaces the verdict on the keyword just read.
    fn reconsider(&mut self, _location: &Location<'_>, verdict: Verdict) {
        if let Some(Occurrence { verdict: known, .. }) = self.occurrences.last_mut() {
            *known = verdict;
        }
    }
}

fn rule<'a>(location: &'a mut Location<'_>) -> &'a mut StringRule {
    location.node.string.get_or_insert_default()
}
