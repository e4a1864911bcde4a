//! Schema resources: what has a URI of its own, and what dynamic anchors mean.
//!
//! The texts that take part are the schema itself and those documents of the [`Registry`] that are
//! referred to, directly or not. Each is scanned once, along the keywords that hold schemas: an
//! `$id` inside a constant or an unknown keyword is no identifier.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluent_uri::{Iri, IriRef};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::dialect::Dialect;
use crate::document::{Document, Value, ValueId, join};
use crate::error::{Offender, Offenders, SchemaError};
use crate::options::Limits;

/// Documents that a schema may refer to, by URI. Nothing is ever fetched: what is not here, and
/// not in the schema itself, cannot be referred to.
///
/// Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    documents: BTreeMap<String, Arc<str>>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a JSON text under a URI, an absolute one without fragment; replaces what was there. The
    /// text is parsed when a schema refers to it.
    pub fn insert(&mut self, uri: &str, text: impl Into<Arc<str>>) {
        self.documents.insert(uri.trim_end_matches('#').to_owned(), text.into());
    }

    fn get(&self, uri: &str) -> Option<&Arc<str>> {
        self.documents.get(uri)
    }
}

/// Index of a [`Resource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ResourceId(u32);

impl ResourceId {
    /// The schema that is compiled.
    pub(super) const ROOT: Self = Self(0);
}

/// A schema with a URI of its own, or the root of a text.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) root: ValueId,
    /// Pointer from the root of its text, after the URI of the text where that is another one.
    pub(super) pointer: String,
    pub(super) dialect: Dialect,
    /// Whether the validation keywords count: a dialect of the user's may leave them out.
    pub(super) validates: bool,
    /// Whether its dialect says that formats are assertions, whatever the options say.
    pub(super) asserts_formats: bool,
    uri: String,
    anchors: FxHashMap<String, Anchor>,
    /// Names with their locations, in source order; the empty name is `$recursiveAnchor`.
    dynamic_anchors: Vec<(String, ValueId)>,
}

/// What a plain name in a fragment stands for.
#[derive(Debug, Clone)]
enum Anchor {
    At { value: ValueId, pointer: String },
    Ambiguous,
}

/// The target of a reference.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) value: ValueId,
    pub(super) resource: ResourceId,
    pub(super) pointer: String,
    /// The name of the dynamic anchor that the reference names, if it does.
    pub(super) dynamic: Option<String>,
}

/// The URI that relative references are relative to where the schema has none: `other.json` is
/// looked up in the [`Registry`] as `molde:///other.json`.
pub const DEFAULT_BASE: &str = "molde:///";

/// All resources that take part in one schema.
#[derive(Debug)]
pub(super) struct Resources {
    list: Vec<Resource>,
    by_root: FxHashMap<ValueId, ResourceId>,
    by_uri: FxHashMap<String, ResourceId>,
    /// Whether any text was scanned: else the schema has no identifier but perhaps its own.
    is_scanned: bool,
}

impl Resources {
    pub(super) fn new(
        document: &mut Document,
        registry: &Registry,
        limits: &Limits,
    ) -> Result<Self, SchemaError> {
        let mut resources = Self {
            list: Vec::new(),
            by_root: FxHashMap::default(),
            by_uri: FxHashMap::default(),
            is_scanned: false,
        };
        let root = document.root();
        let mut wanted = Vec::new();
        if needs_scan(document) {
            resources.is_scanned = true;
            resources.scan(document, root, DEFAULT_BASE, "", &mut wanted)?;
        } else {
            let uri = own_uri(document, root, Dialect::Draft202012, DEFAULT_BASE);
            resources.add(document, root, uri, String::new(), None)?;
        }
        // A dialect that is known needs no metaschema to be read.
        wanted.extend(schema_uri(document, root).filter(|uri| Dialect::from_uri(uri).is_none()));
        while let Some(uri) = wanted.pop() {
            if resources.by_uri.contains_key(&uri) {
                continue;
            }
            let Some(text) = registry.get(&uri) else { continue };
            let added = document.append(text, limits).map_err(|error| within(&uri, error))?;
            resources.scan(document, added, &uri, &format!("{uri}#"), &mut wanted)?;
            // The document goes by the name it was asked for, whatever it calls itself.
            let id = resources.by_root[&added];
            resources.by_uri.entry(uri).or_insert(id);
        }
        resources.apply_vocabularies(document);
        Ok(resources)
    }

    pub(super) fn get(&self, id: ResourceId) -> &Resource {
        &self.list[id.0 as usize]
    }

    pub(super) fn root(&self) -> &Resource {
        &self.list[0]
    }

    /// The resource whose root is this value.
    pub(super) fn rooted_at(&self, value: ValueId) -> Option<ResourceId> {
        self.by_root.get(&value).copied()
    }

    fn add(
        &mut self,
        document: &Document,
        root: ValueId,
        uri: String,
        pointer: String,
        dialect: Option<Dialect>,
    ) -> Result<ResourceId, SchemaError> {
        let own = declared_dialect(document, root, &pointer)?;
        let dialect = own.or(dialect).unwrap_or(Dialect::Draft202012);
        let id = ResourceId(self.list.len() as u32);
        self.list.push(Resource {
            root,
            pointer,
            dialect,
            validates: true,
            asserts_formats: false,
            uri: uri.clone(),
            anchors: FxHashMap::default(),
            dynamic_anchors: Vec::new(),
        });
        self.by_root.insert(root, id);
        self.by_uri.entry(uri).or_insert(id);
        Ok(id)
    }

    /// Finds the resources and anchors of one text, and the URIs it refers to.
    fn scan(
        &mut self,
        document: &Document,
        root: ValueId,
        base: &str,
        prefix: &str,
        wanted: &mut Vec<String>,
    ) -> Result<(), SchemaError> {
        let uri = own_uri(document, root, Dialect::Draft202012, base);
        let inherited = self.list.first().map(|first| first.dialect);
        let first = self.add(document, root, uri, prefix.to_owned(), inherited)?;
        let mut open = vec![(root, first, prefix.to_owned())];
        while let Some((value, enclosing, pointer)) = open.pop() {
            let Value::Object(members) = document.get(value) else { continue };
            let mut resource = enclosing;
            let Resource { dialect, uri, .. } = self.get(enclosing);
            let (dialect, base) = (*dialect, uri.clone());
            let text_of = |keyword: &str| match members.get(keyword).map(|&id| document.get(id)) {
                Some(Value::String(text)) => Some(text.as_str()),
                _ => None,
            };
            let hidden = dialect.ref_hides_siblings() && members.contains_key("$ref");
            if let Some(id) = text_of(dialect.id_keyword()).filter(|_| !hidden) {
                if let Some(name) = id.strip_prefix('#').filter(|name| !name.is_empty()) {
                    if dialect <= Dialect::Draft7 {
                        self.anchor(resource, name, value, &pointer);
                    }
                } else if value != root {
                    let uri = resolve_uri(&base, id).unwrap_or_else(|| id.to_owned());
                    let uri = uri.split('#').next().unwrap_or_default().to_owned();
                    resource = self.add(document, value, uri, pointer.clone(), Some(dialect))?;
                }
            }
            if let Some(name) = text_of("$anchor").filter(|_| dialect >= Dialect::Draft201909) {
                self.anchor(resource, name, value, &pointer);
            }
            if let Some(name) =
                text_of("$dynamicAnchor").filter(|_| dialect == Dialect::Draft202012)
            {
                self.anchor(resource, name, value, &pointer);
                self.list[resource.0 as usize].dynamic_anchors.push((name.to_owned(), value));
            }
            if dialect == Dialect::Draft201909
                && let Some(&id) = members.get("$recursiveAnchor")
                && *document.get(id) == Value::Boolean(true)
            {
                self.list[resource.0 as usize].dynamic_anchors.push((String::new(), value));
            }
            for keyword in ["$ref", "$dynamicRef"] {
                let base = &self.get(resource).uri;
                if let Some(uri) = text_of(keyword).and_then(|text| resolve_uri(base, text)) {
                    wanted.push(uri.split('#').next().unwrap_or_default().to_owned());
                }
            }
            each_subschema(document, value, |path, child| {
                let pointer = path.iter().fold(pointer.clone(), |at, token| join(&at, token));
                open.push((child, resource, pointer));
            });
        }
        Ok(())
    }

    fn anchor(&mut self, resource: ResourceId, name: &str, value: ValueId, pointer: &str) {
        let anchors = &mut self.list[resource.0 as usize].anchors;
        let anchor = match anchors.get(name) {
            Some(Anchor::At { value: known, .. }) if *known == value => return,
            Some(_) => Anchor::Ambiguous,
            None => Anchor::At { value, pointer: pointer.to_owned() },
        };
        anchors.insert(name.to_owned(), anchor);
    }

    /// A dialect of the user's is what its metaschema says, if that is in the registry.
    fn apply_vocabularies(&mut self, document: &Document) {
        for index in 0..self.list.len() {
            let Some(uri) = schema_uri(document, self.list[index].root) else { continue };
            if Dialect::from_uri(&uri).is_some() {
                continue;
            }
            let Some(&meta) = self.by_uri.get(&uri) else { continue };
            let meta = self.get(meta);
            let dialect = meta.dialect;
            let Value::Object(members) = document.get(meta.root) else { continue };
            // What a vocabulary is required for makes no difference to who knows it.
            let (validates, asserts_formats) =
                match members.get("$vocabulary").map(|&id| document.get(id)) {
                    Some(Value::Object(vocabularies)) => {
                        let has = |name| vocabularies.keys().any(|uri| uri.ends_with(name));
                        (has("/vocab/validation"), has("/vocab/format-assertion"))
                    }
                    _ => (true, false),
                };
            let root = &mut self.list[index];
            root.dialect = dialect;
            (root.validates, root.asserts_formats) = (validates, asserts_formats);
        }
    }

    /// Where a reference that stands in `resource` leads.
    pub(super) fn resolve(
        &self,
        document: &Document,
        from: ResourceId,
        reference: &str,
    ) -> Result<Target, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if uri.is_empty() {
            from
        } else {
            let known = resolve_uri(&self.get(from).uri, uri);
            let known = known.and_then(|uri| self.by_uri.get(uri.trim_end_matches('#')));
            *known.ok_or_else(|| {
                format!("points to `{reference}`, which is neither in the schema nor registered")
            })?
        };
        let fragment = percent_decode(fragment)
            .ok_or_else(|| format!("has an invalid percent-encoding in `{reference}`"))?;
        let root = self.get(resource);
        if fragment.is_empty() || fragment.starts_with('/') {
            let value = document
                .resolve(root.root, &fragment)
                .ok_or_else(|| format!("points to `{reference}`, where there is nothing"))?;
            return Ok(Target {
                value,
                resource: self.innermost(document, resource, &fragment),
                pointer: format!("{}{fragment}", root.pointer),
                dynamic: None,
            });
        }
        match root.anchors.get(&fragment) {
            Some(Anchor::At { value, pointer }) => Ok(Target {
                value: *value,
                resource,
                pointer: pointer.clone(),
                dynamic: root
                    .dynamic_anchors
                    .iter()
                    .any(|(name, _)| *name == fragment)
                    .then_some(fragment),
            }),
            Some(Anchor::Ambiguous) => {
                Err(format!("points to the anchor `{fragment}`, which is defined twice"))
            }
            None => Err(format!("points to the anchor `{fragment}`, which is not defined")),
        }
    }

    /// Where `$recursiveRef` leads before the dynamic scope is looked at.
    pub(super) fn recursive(&self, from: ResourceId) -> Target {
        let root = self.get(from);
        let is_dynamic =
            root.dynamic_anchors.iter().any(|(name, at)| name.is_empty() && *at == root.root);
        Target {
            value: root.root,
            resource: from,
            pointer: root.pointer.clone(),
            dynamic: is_dynamic.then(String::new),
        }
    }

    /// The resource that has a dynamic anchor at this value.
    pub(super) fn with_dynamic_anchor(&self, value: ValueId) -> Option<ResourceId> {
        let has = |resource: &Resource| resource.dynamic_anchors.iter().any(|(_, at)| *at == value);
        self.list.iter().position(has).map(|index| ResourceId(index as u32))
    }

    /// The resource that encloses the target of a pointer: references there are relative to it.
    fn innermost(&self, document: &Document, resource: ResourceId, pointer: &str) -> ResourceId {
        if !self.is_scanned {
            return resource;
        }
        let root = self.get(resource).root;
        let ends = pointer.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
        ends.filter_map(|end| document.resolve(root, &pointer[..end]))
            .fold(resource, |enclosing, value| self.rooted_at(value).unwrap_or(enclosing))
    }
}

/// Index of an environment in [`Environments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EnvironmentId(u32);

impl EnvironmentId {
    pub(super) const EMPTY: Self = Self(0);
}

/// The bindings of dynamic anchors that have come up. The outermost resource that has an anchor
/// decides, so a binding, once made, stays.
#[derive(Debug)]
pub(super) struct Environments {
    list: IndexSet<Vec<(String, ValueId)>, FxBuildHasher>,
}

impl Environments {
    pub(super) fn new() -> Self {
        let mut list = IndexSet::default();
        list.insert(Vec::new());
        Self { list }
    }

    /// The environment inside a resource.
    pub(super) fn enter(&mut self, outer: EnvironmentId, resource: &Resource) -> EnvironmentId {
        if resource.dynamic_anchors.is_empty() {
            return outer;
        }
        let mut bindings = self.list[outer.0 as usize].clone();
        for (name, value) in &resource.dynamic_anchors {
            // `$recursiveAnchor` counts at the root of a resource only.
            if name.is_empty() && *value != resource.root {
                continue;
            }
            if !bindings.iter().any(|(bound, _)| bound == name) {
                bindings.push((name.clone(), *value));
            }
        }
        bindings.sort();
        EnvironmentId(self.list.insert_full(bindings).0 as u32)
    }

    pub(super) fn binding(&self, environment: EnvironmentId, name: &str) -> Option<ValueId> {
        let bindings = &self.list[environment.0 as usize];
        bindings.iter().find(|(bound, _)| bound == name).map(|(_, value)| *value)
    }
}

/// Whether the text has identifiers beyond its root's, or references that leave it.
fn needs_scan(document: &Document) -> bool {
    document.values().any(|(id, value)| {
        let Value::Object(members) = value else { return false };
        let text = |keyword: &str| match members.get(keyword).map(|&id| document.get(id)) {
            Some(Value::String(text)) => Some(text.as_str()),
            _ => None,
        };
        ["$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"]
            .iter()
            .any(|keyword| members.contains_key(*keyword))
            || (id != document.root() && (text("$id").is_some() || text("id").is_some()))
            || text("$ref").is_some_and(|text| !text.starts_with('#') || is_anchor(text))
    })
}

fn is_anchor(reference: &str) -> bool {
    !matches!(reference.as_bytes().get(1), None | Some(b'/' | b'%'))
}

/// The URI under which a location is known.
fn own_uri(document: &Document, root: ValueId, default: Dialect, base: &str) -> String {
    let Value::Object(members) = document.get(root) else { return base.to_owned() };
    let dialect = declared_dialect(document, root, "").ok().flatten().unwrap_or(default);
    match members.get(dialect.id_keyword()).map(|&id| document.get(id)) {
        Some(Value::String(id)) => {
            let uri = resolve_uri(base, id).unwrap_or_else(|| id.clone());
            uri.split('#').next().unwrap_or_default().to_owned()
        }
        _ => base.to_owned(),
    }
}

fn schema_uri(document: &Document, root: ValueId) -> Option<String> {
    let Value::Object(members) = document.get(root) else { return None };
    match document.get(*members.get("$schema")?) {
        Value::String(uri) => Some(uri.trim_end_matches('#').to_owned()),
        _ => None,
    }
}

/// The dialect that a location names, if it names one that is known.
fn declared_dialect(
    document: &Document,
    root: ValueId,
    pointer: &str,
) -> Result<Option<Dialect>, SchemaError> {
    let Value::Object(members) = document.get(root) else { return Ok(None) };
    match members.get("$schema").map(|&id| document.get(id)) {
        None => Ok(None),
        Some(Value::String(uri)) => Ok(Dialect::from_uri(uri)),
        Some(_) => Err(SchemaError::Malformed(Offenders(vec![Offender {
            pointer: join(pointer, "$schema"),
            keyword: "$schema".to_owned(),
            reason: "must be a URI as a string".to_owned(),
        }]))),
    }
}

/// Resolves a reference as RFC 3986, section 5, says; `None` if one of the two is no URI.
fn resolve_uri(base: &str, reference: &str) -> Option<String> {
    let reference = IriRef::parse(reference).ok()?;
    if let Ok(absolute) = Iri::try_from(reference) {
        return Some(absolute.normalize().into_string());
    }
    let base = Iri::parse(base).ok()?;
    let resolved = reference.resolve_against(&base.strip_fragment()).ok()?;
    Some(resolved.normalize().into_string())
}

/// Calls `visit` with every schema that is the value of a keyword, or inside of one.
fn each_subschema(document: &Document, value: ValueId, mut visit: impl FnMut(&[&str], ValueId)) {
    let Value::Object(members) = document.get(value) else { return };
    for (keyword, &value) in members {
        match keyword.as_str() {
            "additionalItems"
            | "additionalProperties"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "prefixItems" => match document.get(value) {
                Value::Array(items) => {
                    for (index, &item) in items.iter().enumerate() {
                        visit(&[keyword, &index.to_string()], item);
                    }
                }
                _ => visit(&[keyword], value),
            },
            "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas"
            | "dependencies" => {
                if let Value::Object(entries) = document.get(value) {
                    for (name, &entry) in entries {
                        visit(&[keyword, name], entry);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Says in which document an error is.
fn within(uri: &str, error: SchemaError) -> SchemaError {
    match error {
        SchemaError::Syntax { message, line, column } => {
            SchemaError::Syntax { message: format!("{message}, in `{uri}`"), line, column }
        }
        other => other,
    }
}

/// Decodes `%HH` in a URI fragment; `None` if it is malformed or not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::{percent_decode, resolve_uri};

    #[test]
    fn fragments_are_percent_decoded() {
        assert_eq!(percent_decode("/a%25b/%C3%B1").as_deref(), Some("/a%b/ñ"));
        for broken in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decode(broken), None, "{broken}");
        }
    }

    #[test]
    fn references_resolve_against_their_base() {
        for (base, reference, expected) in [
            ("http://a.example/b/c", "d", "http://a.example/b/d"),
            ("http://a.example/b/c", "/d#e", "http://a.example/d#e"),
            ("http://a.example/b/", "../d", "http://a.example/d"),
            ("molde:///", "node", "molde:///node"),
            ("http://a.example/", "urn:uuid:1", "urn:uuid:1"),
        ] {
            assert_eq!(resolve_uri(base, reference).as_deref(), Some(expected));
        }
    }
}
