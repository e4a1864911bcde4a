//! The intermediate representation: one node for each schema location that is reached.
//!
//! A node says what its own keywords demand, type by type, and which other nodes apply to the same
//! value. Nothing is merged here: a conjunction of nodes is a *goal*, and merging is done when a
//! goal is expanded (see [`goal`](crate::goal)).

use std::sync::Arc;

use indexmap::IndexMap;

use crate::dfa::Dfa;
use crate::number::NumberSpec;

/// Index of a node in a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// Every schema location that is reachable from the root, by [`NodeId`].
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
}

impl Schema {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
}

/// What one schema location demands of a value.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// JSON Pointer of the location in the schema text.
    pub(crate) pointer: String,
    /// Types (and, of the booleans, values) that are allowed.
    pub(crate) types: TypeSet,
    /// What a number must satisfy.
    pub(crate) number: Option<Box<NumberSpec>>,
    /// What a string must satisfy.
    pub(crate) string: Option<Box<StringRule>>,
    /// What an array must satisfy.
    pub(crate) array: Option<Box<ArrayRule>>,
    /// What an object must satisfy.
    pub(crate) object: Option<Box<ObjectRule>>,
    /// Other nodes that apply to the same value, in source order.
    pub(crate) applicators: Vec<Applicator>,
}

impl Node {
    /// A node that accepts the given types and demands nothing else.
    pub(crate) fn of_types(pointer: String, types: TypeSet) -> Self {
        Self {
            pointer,
            types,
            number: None,
            string: None,
            array: None,
            object: None,
            applicators: Vec::new(),
        }
    }

    /// Whether the node accepts every value.
    pub(crate) fn is_true(&self) -> bool {
        self.types == TypeSet::ALL
            && self.number.is_none()
            && self.string.is_none()
            && self.array.is_none()
            && self.object.is_none()
            && self.applicators.is_empty()
    }
}

/// A keyword that applies other nodes to the same value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Applicator {
    /// The value must satisfy this node as well: `allOf`, `$ref`.
    All(NodeId),
    /// The value must satisfy one of these nodes: `anyOf`, `enum`.
    Any(Vec<NodeId>),
}

/// `minLength`, `maxLength`, `pattern`, `format`, and string constants.
#[derive(Debug, Clone, Default)]
pub(crate) struct StringRule {
    /// In code points.
    pub(crate) min_length: u64,
    /// In code points; `None` is unbounded.
    pub(crate) max_length: Option<u64>,
    /// The decoded string must be in each of these languages.
    pub(crate) languages: Vec<Arc<Dfa>>,
}

/// `prefixItems`, `items`, `minItems`, `maxItems`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrayRule {
    pub(crate) prefix: Vec<NodeId>,
    /// For the items after the prefix; `None` allows any.
    pub(crate) items: Option<NodeId>,
    pub(crate) min_items: u64,
    pub(crate) max_items: Option<u64>,
}

/// `properties`, `patternProperties`, `additionalProperties`, `required`, `minProperties`,
/// `maxProperties`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectRule {
    pub(crate) properties: IndexMap<Box<str>, NodeId>,
    pub(crate) patterns: Vec<(Arc<Dfa>, NodeId)>,
    /// For names that are neither declared nor matched by a pattern; `None` allows any.
    pub(crate) additional: Option<NodeId>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) min_properties: u64,
    pub(crate) max_properties: Option<u64>,
}

/// A set of JSON types; the two booleans are members of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeSet(u8);

impl TypeSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const FALSE: Self = Self(2);
    pub(crate) const TRUE: Self = Self(4);
    pub(crate) const BOOLEAN: Self = Self(2 | 4);
    pub(crate) const NUMBER: Self = Self(8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["null", "false", "true", "number", "string", "array", "object"];
        f.debug_set()
            .entries(
                names.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|x| x.1),
            )
            .finish()
    }
}
