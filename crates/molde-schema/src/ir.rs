//! The intermediate representation: one node for each schema location that is reached.
//!
//! A node says what its own keywords demand, type by type, and which other nodes apply to the same
//! value. Nothing is merged here: a conjunction of nodes is a *goal*, and merging is done when a
//! goal is expanded (see [`goal`](crate::goal)).

use std::sync::Arc;

use indexmap::IndexMap;

use crate::dfa::Dfa;
use crate::number::NumberSpec;

/// Index of a node in a [`Schema`]; below 2^30.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// A demand on a value: that it satisfies a node, or that it does not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Demand(u32);

impl Demand {
    /// That the value satisfies the node.
    pub(crate) const fn holds(node: NodeId) -> Self {
        Self(node.0 << 2)
    }

    /// That the value does not satisfy the node.
    pub(crate) const fn fails(node: NodeId) -> Self {
        Self(node.0 << 2 | 1)
    }

    /// That the value satisfies the node's own rules, whatever it offers a choice of.
    pub(crate) const fn own_rules(node: NodeId) -> Self {
        Self(node.0 << 2 | 2)
    }

    pub(crate) const fn node(self) -> NodeId {
        NodeId(self.0 >> 2)
    }

    /// The same demand of another node.
    pub(crate) const fn at(self, node: NodeId) -> Self {
        Self(node.0 << 2 | self.0 & 3)
    }

    pub(crate) const fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether it is about the node's own rules only.
    pub(crate) const fn is_bare(self) -> bool {
        self.0 & 2 == 2
    }
}

impl std::ops::Not for Demand {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl std::fmt::Debug for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_negated() { "!" } else { "" }, self.node().0)
    }
}

/// Every schema location that is reachable from the root, by [`NodeId`].
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// Whether any node has a bound or constant that is read from the instance.
    pub(crate) has_data: bool,
}

/// The node that accepts every value; every schema begins with it.
pub(crate) const ALWAYS: NodeId = NodeId(0);

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
    /// Bounds and constants that are read from the instance: `$data`.
    pub(crate) data: Vec<DataRule>,
    /// Other nodes that apply to the same value, in source order.
    pub(crate) applicators: Vec<Applicator>,
    /// For the items that neither this node nor what it applies has evaluated.
    pub(crate) unevaluated_items: Option<NodeId>,
    /// For the members that neither this node nor what it applies has evaluated.
    pub(crate) unevaluated_properties: Option<NodeId>,
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
            data: Vec::new(),
            applicators: Vec::new(),
            unevaluated_items: None,
            unevaluated_properties: None,
        }
    }

    /// Whether the node accepts every value.
    pub(crate) fn is_true(&self) -> bool {
        self.types == TypeSet::ALL
            && self.number.is_none()
            && self.string.is_none()
            && self.array.is_none()
            && self.object.is_none()
            && self.data.is_empty()
            && self.applicators.is_empty()
            && self.unevaluated_items.is_none()
            && self.unevaluated_properties.is_none()
    }

    /// Whether the node accepts nothing, by its types alone.
    pub(crate) fn is_false(&self) -> bool {
        self.types == TypeSet::NONE
    }
}

/// A keyword whose value is another member of the object that the value is a member of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DataRule {
    pub(crate) keyword: DataKeyword,
    /// The name of that member. Without it the keyword says nothing.
    pub(crate) target: Box<str>,
}

/// What a [`DataRule`] compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum DataKeyword {
    /// `minimum`, `exclusiveMinimum`.
    Minimum {
        exclusive: bool,
    },
    /// `maximum`, `exclusiveMaximum`.
    Maximum {
        exclusive: bool,
    },
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
    /// Equal values.
    Const,
}

impl DataKeyword {
    /// The values that the keyword has a say about.
    pub(crate) const fn measured(self) -> TypeSet {
        match self {
            Self::Minimum { .. } | Self::Maximum { .. } => TypeSet::NUMBER,
            Self::MinLength | Self::MaxLength => TypeSet::STRING,
            Self::MinItems | Self::MaxItems => TypeSet::ARRAY,
            Self::MinProperties | Self::MaxProperties => TypeSet::OBJECT,
            Self::Const => TypeSet::ALL,
        }
    }

    /// Whether the value is compared as the greater one.
    pub(crate) const fn is_lower_bound(self) -> bool {
        matches!(
            self,
            Self::Minimum { .. } | Self::MinLength | Self::MinItems | Self::MinProperties
        )
    }

    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Minimum { exclusive: true } | Self::Maximum { exclusive: true })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Minimum { exclusive: false } => "minimum",
            Self::Minimum { exclusive: true } => "exclusiveMinimum",
            Self::Maximum { exclusive: false } => "maximum",
            Self::Maximum { exclusive: true } => "exclusiveMaximum",
            Self::MinLength => "minLength",
            Self::MaxLength => "maxLength",
            Self::MinItems => "minItems",
            Self::MaxItems => "maxItems",
            Self::MinProperties => "minProperties",
            Self::MaxProperties => "maxProperties",
            Self::Const => "const",
        }
    }
}

/// A keyword that applies other nodes to the same value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Applicator {
    /// The value must meet this demand as well: `allOf`, `$ref`, `not`.
    All(Demand),
    /// The value must satisfy at least one of these nodes: `anyOf`.
    Any(Vec<NodeId>),
    /// The value must be one of these: `enum`, `const`. Constants evaluate nothing.
    Constants(Vec<NodeId>),
    /// The value must satisfy exactly one of these nodes: `oneOf`.
    One(Vec<NodeId>),
    /// The value must meet all demands of one of these lists, no two of which it can meet at the
    /// same time: `if`, `dependentSchemas`.
    Cases(Vec<Box<[Demand]>>),
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
    /// For each of them, what a string must be outside of to fail: the same language, or a larger
    /// one where what is enforced is a subset of what the keyword means.
    pub(crate) outer_languages: Vec<Arc<Dfa>>,
    /// Which keyword each language is of, and its text; empty for constants.
    pub(crate) sources: Vec<(&'static str, Box<str>)>,
    /// The decoded string must be one of these words, ascending.
    pub(crate) words: Option<Arc<[Box<str>]>>,
}

/// `prefixItems`, `items`, `minItems`, `maxItems`, `contains`, `uniqueItems`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrayRule {
    pub(crate) prefix: Vec<NodeId>,
    /// For the items after the prefix; `None` allows any.
    pub(crate) items: Option<NodeId>,
    pub(crate) min_items: u64,
    pub(crate) max_items: Option<u64>,
    pub(crate) contains: Option<Contains>,
    /// No two items are equal.
    pub(crate) unique: bool,
}

/// `contains`, `minContains`, `maxContains`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contains {
    pub(crate) node: NodeId,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Whether the items it finds are evaluated, as drafts since 2020-12 say.
    pub(crate) evaluates: bool,
}

/// `properties`, `patternProperties`, `additionalProperties`, `propertyNames`, `required`,
/// `minProperties`, `maxProperties`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectRule {
    pub(crate) properties: IndexMap<Box<str>, NodeId>,
    pub(crate) patterns: Vec<(Arc<Dfa>, NodeId)>,
    /// For names that are neither declared nor matched by a pattern; `None` allows any.
    pub(crate) additional: Option<NodeId>,
    /// For the names themselves, as strings.
    pub(crate) names: Option<NodeId>,
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

    /// Whether it has one member.
    pub(crate) const fn is_single(self) -> bool {
        self.0.is_power_of_two()
    }

    /// Its members, each by itself.
    pub(crate) fn each(self) -> impl Iterator<Item = Self> {
        (0..7).map(|bit| Self(1 << bit)).filter(move |&one| self.has(one))
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
