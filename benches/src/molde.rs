//! The engine of this repository.

use std::sync::Arc;

use molde_constraint::{Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{
    CompileOptions, CompiledSchema, Escapes, Formats, NumberStyle, Order, Registry, SchemaError,
    Style,
};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use crate::engine::{Engine, Refusal, Session};

/// molde with everything legal: any segmentation, any number style, every escape.
pub(crate) struct Molde {
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) options: CompileOptions,
    pub(crate) registry: Registry,
}

impl Molde {
    pub(crate) fn new(vocabulary: &Arc<Vocabulary>, style: Style, order: Order) -> Self {
        let options = CompileOptions {
            style,
            order,
            number_style: NumberStyle::Any,
            escapes: Escapes::Any,
            formats: Formats::Assert,
            ..CompileOptions::default()
        };
        Self { vocabulary: Arc::clone(vocabulary), options, registry: metaschemas() }
    }
}

impl Engine for Molde {
    type Session = MoldeSession;

    fn compile(&self, schema: &str) -> Result<MoldeSession, Refusal> {
        let schema = CompiledSchema::compile_with(schema, &self.registry, &self.options).map_err(
            |error| match error {
                SchemaError::Unsatisfiable { .. } => Refusal::Unsatisfiable,
                error => Refusal::Refused(error.to_string()),
            },
        )?;
        let schema = Arc::new(schema);
        let options =
            MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
        let constraint = SchemaConstraint::new(&schema);
        let matcher = Matcher::new(constraint, Arc::clone(&self.vocabulary), options);
        Ok(MoldeSession { schema, matcher })
    }
}

pub(crate) struct MoldeSession {
    pub(crate) schema: Arc<CompiledSchema>,
    pub(crate) matcher: Matcher<SchemaConstraint>,
}

impl Session for MoldeSession {
    fn reset(&mut self) {
        self.matcher.reset();
    }

    #[inline]
    fn look_up(&mut self, next: TokenId, others: &[TokenId; 64]) -> Option<(bool, u64)> {
        let mask = self.matcher.mask().ok()?;
        let mut found = 0;
        for (bit, &token) in others.iter().enumerate() {
            found |= u64::from(mask.contains(token)) << bit;
        }
        Some((mask.contains(next), found))
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.matcher.accept(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_complete()
    }
}

/// The metaschemas of the drafts, which schemas may refer to.
fn metaschemas() -> Registry {
    const DRAFT_2019: &str = "https://json-schema.org/draft/2019-09/";
    const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/";
    let mut uris: Vec<String> = ["04", "06", "07"]
        .iter()
        .map(|draft| format!("http://json-schema.org/draft-{draft}/schema"))
        .collect();
    for (base, own) in [(DRAFT_2019, &[][..]), (DRAFT_2020, &["unevaluated"][..])] {
        uris.push(format!("{base}schema"));
        let common = ["core", "applicator", "validation", "meta-data", "content"];
        let format = if own.is_empty() { "format" } else { "format-annotation" };
        let vocabularies = common.iter().chain([&format]).chain(own);
        uris.extend(vocabularies.map(|name| format!("{base}meta/{name}")));
    }
    let mut registry = Registry::new();
    for uri in uris {
        let found = referencing::uri::from_str(&uri).ok().and_then(|base| {
            let resolved = referencing::SPECIFICATIONS.resolver(base).lookup(&uri).ok()?;
            Some(resolved.contents().to_string())
        });
        if let Some(text) = found {
            registry.insert(&uri, text);
        }
    }
    registry
}
