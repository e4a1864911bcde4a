//! From a parsed JSON text to the intermediate representation.
//!
//! Every schema location that is reachable from the root becomes a node. Loading never stops at
//! the first fault: it goes on, so that all offenders are reported at once. What a dialect gives
//! no meaning is an annotation; what has a meaning that cannot be enforced is refused.

mod array;
mod constant;
mod number;
mod object;
mod reference;
mod string;

use rustc_hash::FxHashMap;

use crate::dialect::{Dialect, Treatment, treatment};
use crate::document::{Document, Value, ValueId, join};
use crate::error::{Offender, Offenders, SchemaError};
use crate::ir::{Applicator, Node, NodeId, Schema, TypeSet};
use crate::lint::{Occurrence, Verdict};
use crate::options::CompileOptions;

/// What loading yields.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) schema: Schema,
    pub(crate) dialect: Dialect,
    pub(crate) occurrences: Vec<Occurrence>,
}

/// Loads a schema text.
///
/// # Errors
/// All malformed keywords if there are any, else all refused ones, or the limit on the number of
/// locations.
pub(crate) fn load(document: &Document, options: &CompileOptions) -> Result<Loaded, SchemaError> {
    let dialect = match document.get(document.root()) {
        Value::Object(members) => members
            .get("$schema")
            .and_then(|&id| match document.get(id) {
                Value::String(uri) => Dialect::from_uri(uri),
                _ => None,
            })
            .unwrap_or(Dialect::Draft202012),
        _ => Dialect::Draft202012,
    };
    let mut loader = Loader {
        document,
        options,
        dialect,
        nodes: Vec::new(),
        by_value: FxHashMap::default(),
        queue: Vec::new(),
        languages: FxHashMap::default(),
        malformed: Vec::new(),
        refused: Vec::new(),
        occurrences: Vec::new(),
    };
    let root = loader.node(document.root(), String::new(), document.root());
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
    let Loader { nodes, mut malformed, mut refused, mut occurrences, .. } = loader;
    if !malformed.is_empty() {
        malformed.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        return Err(SchemaError::Malformed(Offenders(malformed)));
    }
    if !refused.is_empty() {
        refused.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        return Err(SchemaError::Refused(Offenders(refused)));
    }
    occurrences.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    Ok(Loaded { schema: Schema { nodes, root }, dialect, occurrences })
}

/// A location whose node has an id but has not been read yet.
struct Pending {
    id: NodeId,
    value: ValueId,
    pointer: String,
    /// Root of the schema resource: what `#` means here.
    resource: ValueId,
}

struct Loader<'a> {
    document: &'a Document,
    options: &'a CompileOptions,
    dialect: Dialect,
    nodes: Vec<Node>,
    by_value: FxHashMap<ValueId, NodeId>,
    queue: Vec<Pending>,
    /// Compiled patterns and formats, by their text.
    languages: FxHashMap<string::LanguageKey, string::Language>,
    malformed: Vec<Offender>,
    refused: Vec<Offender>,
    occurrences: Vec<Occurrence>,
}

impl Loader<'_> {
    /// The node of a schema location, created and queued at its first mention.
    fn node(&mut self, value: ValueId, pointer: String, resource: ValueId) -> NodeId {
        if let Some(&id) = self.by_value.get(&value) {
            return id;
        }
        let id = self.push(Node::of_types(pointer.clone(), TypeSet::ALL));
        self.by_value.insert(value, id);
        self.queue.push(Pending { id, value, pointer, resource });
        id
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
                let mut location = Location {
                    node: Node::of_types(pointer.clone(), TypeSet::ALL),
                    value: pending.value,
                    pointer,
                    resource: self.resource_at(pending.value, pending.resource),
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
        let hidden = self.dialect.ref_hides_siblings() && members.contains_key("$ref");
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
            match treatment(keyword, self.dialect) {
                Treatment::Annotation => {
                    self.occurrences
                        .push(occurrence(Verdict::Annotation("says nothing about validity")));
                }
                Treatment::Unsupported => self.load_unsupported(location, keyword, value),
                Treatment::Enforced => {
                    self.occurrences.push(occurrence(Verdict::Enforced));
                    self.load_keyword(location, keyword, value);
                }
            }
        }
        self.finish_array(location);
    }

    fn load_keyword(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        match keyword {
            "type" => self.load_type(location, value),
            "enum" => self.load_enum(location, value),
            "const" => self.load_const(location, value),
            "allOf" | "anyOf" => self.load_applicator(location, keyword, value),
            "$ref" => self.load_ref(location, value),
            "minLength" | "maxLength" | "pattern" | "format" => {
                self.load_string_keyword(location, keyword, value);
            }
            "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" => {
                self.load_array_keyword(location, keyword, value);
            }
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "minProperties"
            | "maxProperties" => {
                self.load_object_keyword(location, keyword, value);
            }
            _ => self.load_number_keyword(location, keyword, value),
        }
    }

    /// Keywords that cannot be enforced yet are refused, except in the forms that demand nothing.
    fn load_unsupported(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        let Value::Object(members) = self.document.get(location.value) else { return };
        let vacuous = match (keyword, self.document.get(value)) {
            ("uniqueItems", Value::Boolean(false))
            | (
                "unevaluatedItems" | "unevaluatedProperties" | "propertyNames",
                Value::Boolean(true),
            ) => true,
            ("if", _) => !members.contains_key("then") && !members.contains_key("else"),
            ("minContains" | "maxContains", _) => !members.contains_key("contains"),
            ("dependencies" | "dependentRequired" | "dependentSchemas", Value::Object(entries)) => {
                entries.is_empty()
            }
            // A choice among one is no choice.
            ("oneOf", Value::Array(branches)) if branches.len() == 1 => {
                self.load_applicator(location, "allOf", value);
                true
            }
            _ => false,
        };
        if vacuous {
            self.occurrences.push(Occurrence {
                pointer: join(location.pointer, keyword),
                keyword: keyword.to_owned(),
                verdict: Verdict::Enforced,
            });
        } else {
            self.refuse(location.pointer, keyword, "is not supported");
        }
    }

    fn load_applicator(&mut self, location: &mut Location<'_>, keyword: &str, value: ValueId) {
        let Value::Array(branches) = self.document.get(value) else {
            return self.malform(location.pointer, keyword, "must be an array of schemas");
        };
        if branches.is_empty() {
            return self.malform(location.pointer, keyword, "must not be empty");
        }
        let at = join(location.pointer, keyword);
        let nodes: Vec<NodeId> = branches
            .iter()
            .enumerate()
            .map(|(index, &branch)| {
                self.node(branch, join(&at, &index.to_string()), location.resource)
            })
            .collect();
        if keyword == "anyOf" {
            location.node.applicators.push(Applicator::Any(nodes));
        } else {
            location.node.applicators.extend(nodes.into_iter().map(Applicator::All));
        }
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
            self.require_integer(location);
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
    node: Node,
    value: ValueId,
    pointer: &'a str,
    resource: ValueId,
}
