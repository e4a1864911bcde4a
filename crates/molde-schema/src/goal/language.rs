//! Conditions on a string as one language, in place of one alternative for each way to meet them.
//!
//! Languages are closed under all that schemas can say: a choice of n languages is one union, which
//! is often no larger than its largest part, where multiplying n choices out would make 2^n
//! intersections. The lengths that `minLength` and `maxLength` ask for are languages here as well, as
//! long as they are short.

use std::sync::Arc;

use crate::dfa::{Dfa, DfaError};
use crate::ir::{Applicator, Demand, Node, StringRule, TypeSet};

use super::Goals;
use super::partial::Todo;

/// The language of the strings that meet a demand; `None` where that is not said as one.
pub(super) type Language = Option<Arc<Dfa>>;

/// Nesting of choices beyond which no language is looked for.
const MAX_DEPTH: usize = 48;

/// Code points up to which a bound on the length becomes part of a language.
const MAX_LENGTH: u64 = 256;

/// States beyond which languages are not combined: multiplying out may do with less.
const MAX_STATES: usize = 20_000;

impl Goals {
    /// The strings that meet what is left to apply, where it offers a choice.
    pub(super) fn language_of_choice(&mut self, todo: &Todo) -> Language {
        let schema = Arc::clone(&self.schema);
        match todo {
            Todo::Demand(..) => None,
            Todo::Choice(node, index, _) => {
                self.language_applied(&schema.node(*node).applicators[*index])
            }
            Todo::Violation(node) => self.demanded_language(Demand::fails(*node)),
            Todo::NotAll(demands) => self.language_of_any(demands.iter().map(|&demand| !demand)),
        }
    }

    /// The strings that meet a demand.
    fn demanded_language(&mut self, demand: Demand) -> Language {
        if let Some(known) = self.demanded_languages.get(&demand) {
            return known.clone();
        }
        if self.open_languages.len() > MAX_DEPTH || self.open_languages.contains(&demand) {
            return None;
        }
        self.open_languages.push(demand);
        let schema = Arc::clone(&self.schema);
        let node = schema.node(demand.node());
        let found = if demand.is_negated() {
            self.failing_language(node)
        } else {
            self.holding_language(node)
        };
        self.open_languages.pop();
        self.demanded_languages.insert(demand, found.clone());
        found
    }

    fn holding_language(&mut self, node: &Node) -> Language {
        if !node.types.has(TypeSet::STRING) {
            return Some(Arc::new(Dfa::empty()));
        }
        if node.data.iter().any(|rule| rule.keyword.measured().has(TypeSet::STRING)) {
            return None;
        }
        let mut language = Dfa::any_string();
        if let Some(rule) = node.string.as_deref() {
            language = self.both(&language, &self.lengths(rule)?)?;
            for own in &rule.languages {
                language = self.both(&language, own)?;
            }
            if let Some(words) = &rule.words {
                language = self.both(&language, &self.words(words)?)?;
            }
        }
        for applicator in &node.applicators {
            let next = self.language_applied(applicator)?;
            language = self.both(&language, &next)?;
        }
        Some(Arc::new(language))
    }

    fn failing_language(&mut self, node: &Node) -> Language {
        if !node.types.has(TypeSet::STRING) {
            return Some(Arc::new(Dfa::any_string()));
        }
        if node.data.iter().any(|rule| rule.keyword.measured().has(TypeSet::STRING)) {
            return None;
        }
        let mut language = Dfa::empty();
        if let Some(rule) = node.string.as_deref() {
            language = self.either(&language, &self.outside(&self.lengths(rule)?)?)?;
            for own in &rule.outer_languages {
                language = self.either(&language, &self.outside(own)?)?;
            }
            if let Some(words) = &rule.words {
                language = self.either(&language, &self.outside(&self.words(words)?)?)?;
            }
        }
        for applicator in &node.applicators {
            let next = self.language_not_applied(applicator)?;
            language = self.either(&language, &next)?;
        }
        Some(Arc::new(language))
    }

    fn language_applied(&mut self, applicator: &Applicator) -> Language {
        match applicator {
            Applicator::All(demand) => self.demanded_language(*demand),
            Applicator::Any(branches) | Applicator::Constants(branches) => {
                self.language_of_any(branches.iter().map(|&node| Demand::holds(node)))
            }
            Applicator::One(branches) => {
                // Of the branches so far: none holds, exactly one does.
                let (mut none, mut one) = (Dfa::any_string(), Dfa::empty());
                for &node in branches {
                    let holds = self.demanded_language(Demand::holds(node))?;
                    let fails = self.demanded_language(Demand::fails(node))?;
                    one = self.either(&self.both(&one, &fails)?, &self.both(&none, &holds)?)?;
                    none = self.both(&none, &fails)?;
                }
                Some(Arc::new(one))
            }
            Applicator::Cases(cases) => {
                let mut any = Dfa::empty();
                for case in cases {
                    let next = self.language_of_all(case.iter().copied())?;
                    any = self.either(&any, &next)?;
                }
                Some(Arc::new(any))
            }
        }
    }

    fn language_not_applied(&mut self, applicator: &Applicator) -> Language {
        match applicator {
            Applicator::All(demand) => self.demanded_language(!*demand),
            Applicator::Any(branches) | Applicator::Constants(branches) => {
                self.language_of_all(branches.iter().map(|&node| Demand::fails(node)))
            }
            Applicator::One(branches) => {
                // Of the branches so far: some holds, two do.
                let (mut some, mut two) = (Dfa::empty(), Dfa::empty());
                for &node in branches {
                    let holds = self.demanded_language(Demand::holds(node))?;
                    two = self.either(&two, &self.both(&some, &holds)?)?;
                    some = self.either(&some, &holds)?;
                }
                let none =
                    self.language_of_all(branches.iter().map(|&node| Demand::fails(node)))?;
                Some(Arc::new(self.either(&none, &two)?))
            }
            Applicator::Cases(cases) => {
                let mut all = Dfa::any_string();
                for case in cases {
                    let fails = self.language_of_any(case.iter().map(|&demand| !demand))?;
                    all = self.both(&all, &fails)?;
                }
                Some(Arc::new(all))
            }
        }
    }

    fn language_of_any(&mut self, demands: impl Iterator<Item = Demand>) -> Language {
        let mut any = Dfa::empty();
        for demand in demands {
            let next = self.demanded_language(demand)?;
            any = self.either(&any, &next)?;
        }
        Some(Arc::new(any))
    }

    fn language_of_all(&mut self, demands: impl Iterator<Item = Demand>) -> Language {
        let mut all = Dfa::any_string();
        for demand in demands {
            let next = self.demanded_language(demand)?;
            all = self.both(&all, &next)?;
        }
        Some(Arc::new(all))
    }

    /// The strings whose length a rule allows.
    fn lengths(&self, rule: &StringRule) -> Option<Dfa> {
        let longest = rule.max_length.unwrap_or(0).max(rule.min_length);
        if longest > MAX_LENGTH {
            return None;
        }
        small(Dfa::with_chars(rule.min_length, rule.max_length, &self.dfa_limits))
    }

    fn words(&self, words: &[Box<str>]) -> Option<Dfa> {
        small(Dfa::from_words(words.iter().map(|word| &**word), &self.dfa_limits))
    }

    fn outside(&self, language: &Dfa) -> Option<Dfa> {
        small(language.complement(&self.dfa_limits))
    }

    fn both(&self, one: &Dfa, two: &Dfa) -> Option<Dfa> {
        if one.is_universal() || two.is_empty() {
            return Some(two.clone());
        }
        if two.is_universal() || one.is_empty() || one == two {
            return Some(one.clone());
        }
        small(one.intersect(two, &self.dfa_limits))
    }

    fn either(&self, one: &Dfa, two: &Dfa) -> Option<Dfa> {
        if one.is_empty() || two.is_universal() {
            return Some(two.clone());
        }
        if two.is_empty() || one.is_universal() || one == two {
            return Some(one.clone());
        }
        small(one.union(two, &self.dfa_limits))
    }
}

/// A language that is worth having. One beyond a limit is none: there is another way.
fn small(language: Result<Dfa, DfaError>) -> Option<Dfa> {
    language.ok().filter(|language| language.states() <= MAX_STATES)
}
