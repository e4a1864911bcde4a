//! Why a pattern could not become an automaton.

use std::fmt;

use crate::dfa::DfaError;

/// A pattern is no regular expression, or none that can be decided.
///
/// Offsets are in bytes of the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// The text is not in the grammar.
    #[error("invalid regular expression at byte {offset}: expected {expected}, got {}", Got(*.got))]
    Syntax {
        /// Where.
        offset: usize,
        /// What the grammar allows there.
        expected: Expected,
        /// The character there; `None` at the end.
        got: Option<char>,
    },
    /// The text is in the grammar, but what it matches is not decided.
    #[error("unsupported {construct} at byte {offset}: {}", .construct.advice())]
    Unsupported {
        /// Where it starts.
        offset: usize,
        /// What it is.
        construct: Construct,
    },
    /// Groups nested too deeply.
    #[error("groups nest deeper than {limit} at byte {offset}; flatten the pattern")]
    Nesting {
        /// Where the first group beyond the limit starts.
        offset: usize,
        /// The limit, in groups.
        limit: usize,
    },
    /// The automaton exceeds a limit.
    #[error(transparent)]
    Limit(#[from] DfaError),
}

/// What the grammar allows where something else was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is spelled out in its Display")]
pub(crate) enum Expected {
    Atom,
    ClosingParenthesis,
    ClosingBracket,
    Escape,
    ControlLetter,
    HexDigits,
    CodePoint,
    GroupKind,
    GroupName,
    UniqueGroupName,
    Property,
    AscendingRange,
    AscendingCounts,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atom => "something to repeat before a quantifier, or no `)` here",
            Self::ClosingParenthesis => "`)`",
            Self::ClosingBracket => "`]`",
            Self::Escape => "an escape of ECMA-262 (a letter stands for itself without `\\`)",
            Self::ControlLetter => "a letter after `\\c`",
            Self::HexDigits => "hexadecimal digits",
            Self::CodePoint => "a code point up to 10FFFF in braces",
            Self::GroupKind => "`:`, `=`, `!`, `<=`, `<!` or `<name>` after `(?`",
            Self::GroupName => "a group name and `>`",
            Self::UniqueGroupName => "a group name not used before",
            Self::Property => "a known Unicode property in braces",
            Self::AscendingRange => "a class range in ascending order",
            Self::AscendingCounts => "repetition counts in ascending order",
        })
    }
}

/// A construct of the grammar that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Construct {
    /// `\1`, `\k<name>`.
    Backreference,
    /// `(?i:…)`.
    Modifiers,
    /// A lookbehind inside a lookahead.
    LookbehindInLookahead,
    /// A lookahead inside a lookbehind.
    LookaheadInLookbehind,
}

impl Construct {
    fn advice(self) -> &'static str {
        match self {
            Self::Backreference => {
                "what it matches is no regular language; write the alternatives out"
            }
            Self::Modifiers => "write the cases out in a character class",
            Self::LookbehindInLookahead | Self::LookaheadInLookbehind => {
                "move it out, or split the pattern with `allOf`"
            }
        }
    }
}

impl fmt::Display for Construct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backreference => "backreference",
            Self::Modifiers => "inline modifiers",
            Self::LookbehindInLookahead => "lookbehind inside a lookahead",
            Self::LookaheadInLookbehind => "lookahead inside a lookbehind",
        })
    }
}

struct Got(Option<char>);

impl fmt::Display for Got {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(c) => write!(f, "{c:?}"),
            None => f.write_str("the end"),
        }
    }
}
