//! From a parsed JSON text to the intermediate representation.
//!
//! Every schema location that is reachable from the root becomes a node. Loading never stops at
//! the first fault: it goes on, so that all offenders are reported at once. What a dialect gives
//! no meaning is an annotation; what has a meaning that cannot be enforced is refused.
//!
//! A location that is reached with different bindings of dynamic anchors becomes a node for each
//! of them: what `$dynamicRef` means is decided while loading.

mod applicator;
mod array;
mod constant;
mod data;
mod number;
mod object;
mod reference;
mod resource;
mod string;

use rustc_hash::FxHashMap;

use crate::dialect::{Dialect, Treatment, treatment};
use crate::document::{Document, Value, ValueId, join};
use crate::error::{Offender, Offenders, SchemaError};
use crate::ir::{Node, NodeId, Schema, TypeSet};
use crate::lint::{Occurrence, Verdict};
use crate::options::CompileOptions;

use resource::{EnvironmentId, Environments, ResourceId, Resources};

pub use resource::{DEFAULT_BASE, Registry};

/// What loading yields.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// To be used only if there is no fault.
    pub(crate) schema: Schema,
    pub(crate) dialect: Dialect,
    pub(crate) occurrences: Vec<Occurrence>,
    /// All malformed keywords if there are any, else all refused ones.
    pub(crate) fault: Option<SchemaError>,
}

/// Loads a schema text.
///
/// # Errors
/// What leaves nothing to be listed: a text that is not JSON, an identifier that is none, or the
/// limit on the number of locations.
pub(crate) fn load(
    document: &mut Document,
    registry: &Registry,
    options: &CompileOptions,
) -> Result<Loaded, SchemaError> {
    let resources = Resources::new(document, registry, &options.limits)?;
    let dialect = resources.get(ResourceId::ROOT).dialect;
    let mut loader = Loader {
        document,
        options,
        resources,
        environments: Environments::new(),
        nodes: vec![Node::of_types(String::new(), TypeSet::ALL)],
        by_value: FxHashMap::default(),
        queue: Vec::new(),
        languages: FxHashMap::default(),
        data: Vec::new(),
        malformed: Vec::new(),
        refused: Vec::new(),
        occurrences: Vec::new(),
    };
    let start = Scope {
        resource: ResourceId::ROOT,
        environment: loader.environments.enter(EnvironmentId::EMPTY, loader.resources.root()),
    };
    let root = loader.node(loader.document.root(), String::new(), start);
    while let Some(pending) = loader.queue.pop() {
        loader.load_location(&pending);
        if loader.nodes.len() > options.limits.schema_nodes {
            return Err(SchemaError::Limit {
                name: "schema_nodes",
                limit: options.limits.schema_nodes as u64,
                unit: "schema locations",
                pointer: pending.pointer,
            });
        }
    }
    loader.finish_data(root);
    let has_data = !loader.data.is_empty();
    let Loader { nodes, mut malformed, mut refused, mut occurrences, .. } = loader;
    for faults in [&mut malformed, &mut refused] {
        faults.sort_by(|a, b| (&a.pointer, &a.reason).cmp(&(&b.pointer, &b.reason)));
        faults.dedup();
    }
    let fault = if !malformed.is_empty() {
        Some(SchemaError::Malformed(Offenders(malformed)))
    } else if !refused.is_empty() {
        Some(SchemaError::Refused(Offenders(refused)))
    } else {
        None
    };
    occurrences.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    occurrences.dedup();
    Ok(Loaded { schema: Schema { nodes, root, has_data }, dialect, occurrences, fault })
}

/// Where a location stands: the resource that encloses it, and what dynamic anchors mean there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scope {
    resource: ResourceId,
    environment: EnvironmentId,
}

/// A location whose node has an id but has not been read yet.
struct Pending {
    id: NodeId,
    value: ValueId,
    pointer: String,
    scope: Scope,
}

struct Loader<'a> {
    document: &'a Document,
    options: &'a CompileOptions,
    resources: Resources,
    environments: Environments,
    nodes: Vec<Node>,
    by_value: FxHashMap<(ValueId, EnvironmentId), NodeId>,
    queue: Vec<Pending>,
    /// Compiled patterns and formats, by their text.
    languages: FxHashMap<string::LanguageKey, string::Language>,
    /// Keywords whose value is read from the instance.
    data: Vec<data::Reference>,
    malformed: Vec<Offender>,
    refused: Vec<Offender>,
    occurrences: Vec<Occurrence>,
}

impl Loader<'_> {
    /// The node of a schema location, created and queued at its first mention.
    fn node(&mut self, value: ValueId, pointer: String, scope: Scope) -> NodeId {
        let scope = self.scope_at(value, scope);
        if let Some(&id) = self.by_value.get(&(value, scope.environment)) {
            return id;
        }
        let id = self.push(Node::of_types(pointer.clone(), TypeSet::ALL));
        self.by_value.insert((value, scope.environment), id);
        self.queue.push(Pending { id, value, pointer, scope });
        id
    }

    /// The scope of a location, which is the enclosing one unless it is a resource of its own.
    fn scope_at(&mut self, value: ValueId, enclosing: Scope) -> Scope {
        match self.resources.rooted_at(value) {
            Some(resource) if resource != enclosing.resource => Scope {
                resource,
                environment: self
                    .environments
                    .enter(enclosing.environment, self.resources.get(resource)),
            },
            _ => enclosing,
        }
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }

    fn load_location(&mut self, pending: &Pending) {
        let pointer = &pending.pointer;
        match self.document.get(pending.value) {
            Value::Boolean(true) => {}
            Value::Boolean(false) => {
                self.nodes[pending.id.0 as usize].types = TypeSet::NONE;
            }
            Value::Object(_) => {
                let resource = self.resources.get(pending.scope.resource);
                let mut location = Location {
                    id: pending.id,
                    node: Node::of_types(pointer.clone(), TypeSet::ALL),
                    value: pending.value,
                    pointer,
                    scope: pending.scope,
                    dialect: resource.dialect,
                };
                self.load_keywords(&mut location);
                self.nodes[pending.id.0 as usize] = location.node;
            }
            _ => self.malformed.push(Offender {
                pointer: pointer.clone(),
                keyword: String::new(),
                reason: "a schema is an object or a boolean".to_owned(),
            }),
        }
    }

    fn load_keywords(&mut self, location: &mut Location<'_>) {
        let Value::Object(members) = self.document.get(location.value) else { return };
        let hidden = location.dialect.ref_hides_siblings() && members.contains_key("$ref");
        let resource = self.resources.get(location.scope.resource);
        let (validates, asserts_formats) = (resource.validates, resource.asserts_formats);
        for (keyword, &value) in members {
            let keyword = keyword.as_str();
            let occurrence = |verdict| Occurrence {
                pointer: join(location.pointer, keyword),
                keyword: keyword.to_owned(),
                verdict,
            };
            if hidden && keyword != "$ref" {
                self.occurrences.push(occurrence(Verdict::Annotation("ignored beside `$ref`")));
                continue;
            }
            match treatment(keyword, location.dialect) {
                Treatment::Annotation => {
                    self.occurrences
                        .push(occurrence(Verdict::Annotation("says nothing about validity")));
                }
                Treatment::Validation if !(validates || asserts_formats && keyword == "format") => {
                    self.occurrences
                        .push(occurrence(Verdict::Annotation("not in the vocabularies in use")));
                }
                Treatment::Validation | Treatment::Applicator => {
                    self.occurrences.push(occurrence(Verdict::Enforced));
                    self.load_keyword(location, keyword, value);
                }
            }
        }
        if !hidden {
            self.finish_array(location);
            self.finish_conditional(location);
        }
    }

    fn load_keyword(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        if self.is_data_reference(keyword, value) {
            return self.load_data(location, keyword, value);
        }
        match keyword {
            "type" => self.load_type(location, value),
            "enum" => self.load_enum(location, value),
            "const" => self.load_const(location, value),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependencies"
            | "dependentRequired" | "dependentSchemas" => {
                self.load_applicator(location, keyword, value);
            }
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                self.load_reference(location, keyword, value);
            }
            "minLength" | "maxLength" | "pattern" | "format" => {
                self.load_string_keyword(location, keyword, value);
            }
            "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems"
            | "uniqueItems" | "contains" | "minContains" | "maxContains" | "unevaluatedItems" => {
                self.load_array_keyword(location, keyword, value);
            }
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "propertyNames"
            | "required"
            | "minProperties"
            | "maxProperties"
            | "unevaluatedProperties" => {
                self.load_object_keyword(location, keyword, value);
            }
            _ => self.load_number_keyword(location, keyword, value),
        }
    }

    /// The node of the schema that is a keyword's value, or a member of it.
    fn child(&mut self, location: &Location<'_>, path: &[&str], value: ValueId) -> NodeId {
        let pointer =
            path.iter().fold(location.pointer.to_owned(), |pointer, token| join(&pointer, token));
        self.node(value, pointer, location.scope)
    }

    fn load_type(&mut self, location: &mut Location<'_>, value: ValueId) {
        let names: Vec<&str> = match self.document.get(value) {
            Value::String(name) => vec![name],
            Value::Array(names) => names
                .iter()
                .map(|&name| match self.document.get(name) {
                    Value::String(name) => name.as_str(),
                    _ => "",
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut types = TypeSet::NONE;
        let mut known = !names.is_empty();
        for name in &names {
            types = types.union(match *name {
                "null" => TypeSet::NULL,
                "boolean" => TypeSet::BOOLEAN,
                "integer" | "number" => TypeSet::NUMBER,
                "string" => TypeSet::STRING,
                "array" => TypeSet::ARRAY,
                "object" => TypeSet::OBJECT,
                _ => {
                    known = false;
                    TypeSet::NONE
                }
            });
        }
        if !known {
            return self.malform(
                location.pointer,
                "type",
                "must be one or more of null, boolean, integer, number, string, array, object",
            );
        }
        location.node.types = location.node.types.intersect(types);
        if names.contains(&"integer") && !names.contains(&"number") {
            number::require_integer(location);
        }
    }

    /// A count such as `minItems`: a non-negative integer, however it is written.
    fn count(&mut self, location: &Location<'_>, keyword: &str, value: ValueId) -> Option<u64> {
        let count = match self.document.get(value) {
            Value::Number(text) => number::count(text),
            _ => None,
        };
        if count.is_none() {
            self.malform(location.pointer, keyword, "must be a non-negative integer");
        }
        count
    }

    /// The member of a location's schema with the given name.
    fn sibling(&self, location: &Location<'_>, keyword: &str) -> Option<ValueId> {
        match self.document.get(location.value) {
            Value::Object(members) => members.get(keyword).copied(),
            _ => None,
        }
    }

    fn malform(&mut self, pointer: &str, keyword: &str, reason: &str) {
        self.malformed.push(Offender {
            pointer: join(pointer, keyword),
            keyword: keyword.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn refuse(&mut self, pointer: &str, keyword: &str, reason: impl Into<String>) {
        self.refused.push(Offender {
            pointer: join(pointer, keyword),
            keyword: keyword.to_owned(),
            reason: reason.into(),
        });
    }
}

/// The location being read.
struct Location<'a> {
    id: NodeId,
    node: Node,
    value: ValueId,
    pointer: &'a str,
    scope: Scope,
    dialect: Dialect,
}
