//! What a parsed pattern is.

use regex_syntax::hir::ClassUnicode;

/// A part of a pattern. Groups leave no trace: nothing refers back to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// The empty string.
    Empty,
    /// One character of a set; the empty set matches nothing.
    Class(ClassUnicode),
    /// A condition on the two neighbours of a position.
    Assertion(Assertion),
    /// One after the other.
    Concat(Vec<Node>),
    /// Any one of them.
    Alternation(Vec<Node>),
    /// Between `min` and `max` (`None`: any number) times. Greed changes no language.
    Repeat {
        /// What is repeated.
        node: Box<Node>,
        /// Fewest times.
        min: u64,
        /// Most times.
        max: Option<u64>,
    },
    /// A condition on what follows or precedes a position.
    Look(Box<Look>),
}

/// A condition on the two neighbours of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assertion {
    /// `^`
    Start,
    /// `$`
    End,
    /// `\b`
    WordBoundary,
    /// `\B`
    NotWordBoundary,
}

/// A lookahead or lookbehind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Whether it is about what follows.
    pub(super) ahead: bool,
    /// Whether it must *not* match.
    pub(super) negative: bool,
    /// What is looked for.
    pub(super) node: Node,
    /// Byte of the pattern where it starts.
    pub(super) offset: usize,
}

impl Node {
    /// The set of one character.
    pub(super) fn literal(c: char) -> Self {
        Self::Class(ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(c, c)]))
    }

    /// Whether what it matches can depend on what is before it.
    pub(super) fn depends_on_previous(&self) -> bool {
        match self {
            Self::Empty | Self::Class(_) => false,
            Self::Assertion(assertion) => *assertion != Assertion::End,
            Self::Concat(nodes) | Self::Alternation(nodes) => {
                nodes.iter().any(Self::depends_on_previous)
            }
            Self::Repeat { node, .. } => node.depends_on_previous(),
            Self::Look(look) => !look.ahead || look.node.depends_on_previous(),
        }
    }

    /// Whether what it matches can depend on what is after it.
    pub(super) fn depends_on_next(&self) -> bool {
        match self {
            Self::Empty | Self::Class(_) => false,
            Self::Assertion(assertion) => *assertion != Assertion::Start,
            Self::Concat(nodes) | Self::Alternation(nodes) => {
                nodes.iter().any(Self::depends_on_next)
            }
            Self::Repeat { node, .. } => node.depends_on_next(),
            Self::Look(look) => look.ahead || look.node.depends_on_next(),
        }
    }
}
