//! From a parsed pattern to the automaton of the strings it finds.

use regex_syntax::hir::{Class, Dot, Hir, Look as HirLook, Repetition};

use super::{
    ast::{Assertion, Look, Node},
    error::{Construct, PatternError},
    parser::parse,
};
use crate::dfa::{
    Context, Dfa, DfaError, DfaLimits, Lookaround, Neighbour, determinize, lookaround_marker,
};

/// Repetitions of one character set beyond this many times become bounds on the length.
const COUNTED_FROM: u64 = 16;

/// The strings that a pattern finds: those of `dfa` with a number of code points within bounds.
///
/// Bounds are only used where the whole string is a bounded repetition of one character set
/// (`^[a-z]{1,65536}$`, `^(?=.{8,100}$)…`): counters then take the place of copies. Otherwise they
/// are 0 and `None`, and `dfa` alone is the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The automaton, without the bounds.
    pub(crate) dfa: Dfa,
    /// Fewest code points.
    pub(crate) min_chars: u64,
    /// Most code points; `None`: any number.
    pub(crate) max_chars: Option<u64>,
}

impl Pattern {
    #[cfg(test)]
    /// Whether the automaton alone is the language.
    pub(crate) fn is_plain(&self) -> bool {
        self.min_chars == 0 && self.max_chars.is_none()
    }

    #[cfg(test)]
    /// The language as one automaton.
    ///
    /// # Errors
    /// [`DfaError`] if the automaton times its bounds exceeds a limit.
    pub(crate) fn into_dfa(self, limits: &DfaLimits) -> Result<Dfa, DfaError> {
        if self.is_plain() {
            return Ok(self.dfa);
        }
        let bounds = Dfa::with_chars(self.min_chars, self.max_chars, limits)?;
        self.dfa.intersect(&bounds, limits)
    }
}

impl From<Dfa> for Pattern {
    fn from(dfa: Dfa) -> Self {
        Self { dfa, min_chars: 0, max_chars: None }
    }
}

/// Compiles a pattern, its bounds on the whole string's length kept apart.
///
/// # Errors
/// [`PatternError`].
pub(crate) fn compile(text: &str, limits: &DfaLimits) -> Result<Pattern, PatternError> {
    let mut node = parse(text)?;
    let (min_chars, max_chars) = take_length_bounds(&mut node);
    Ok(Pattern { dfa: search(node, limits)?, min_chars, max_chars })
}

/// Compiles a pattern to one automaton, whatever its size: the form that can be complemented.
///
/// # Errors
/// [`PatternError`].
pub(crate) fn compile_dfa(text: &str, limits: &DfaLimits) -> Result<Dfa, PatternError> {
    search(parse(text)?, limits)
}

/// Compiles a pattern to the automaton of the strings that it matches as a whole.
///
/// # Errors
/// [`PatternError`].
pub(crate) fn compile_whole(text: &str, limits: &DfaLimits) -> Result<Dfa, PatternError> {
    let (start, end) = (Node::Assertion(Assertion::Start), Node::Assertion(Assertion::End));
    search(Node::Concat(vec![start, parse(text)?, end]), limits)
}

/// The strings in which `node` is found.
fn search(mut node: Node, limits: &DfaLimits) -> Result<Dfa, PatternError> {
    let anchored = strip_start(&mut node);
    let mut translator = Translator::new(limits, Inside::Nothing);
    let hir = translator.translate(&node)?;
    let hir = if anchored { hir } else { Hir::concat(vec![any_string(), hir]) };
    let context = Context { before: Neighbour::Edge, after: Neighbour::Edge, any_suffix: true };
    Ok(determinize(&hir, &translator.lookarounds, context, limits)?)
}

/// Removes a leading `^`, so that nothing has to be searched; whether there was one.
fn strip_start(node: &mut Node) -> bool {
    match node {
        Node::Assertion(Assertion::Start) => {
            *node = Node::Empty;
            true
        }
        Node::Concat(nodes) if nodes[0] == Node::Assertion(Assertion::Start) => {
            nodes.remove(0);
            true
        }
        Node::Alternation(nodes)
            if nodes.iter().all(|node| match node {
                Node::Assertion(assertion) => *assertion == Assertion::Start,
                Node::Concat(nodes) => nodes[0] == Node::Assertion(Assertion::Start),
                _ => false,
            }) =>
        {
            for node in nodes {
                strip_start(node);
            }
            true
        }
        _ => false,
    }
}

/// Turns bounded repetitions of one set that span the whole string into unbounded ones, and
/// returns the bounds on its length that they stood for.
fn take_length_bounds(node: &mut Node) -> (u64, Option<u64>) {
    let (mut min, mut max) = (0, None);
    let Node::Concat(nodes) = node else {
        return (min, max);
    };
    if nodes[0] != Node::Assertion(Assertion::Start) {
        return (min, max);
    }
    let mut take = |repeat: &mut Node| {
        if let Node::Repeat { node, min: least, max: most } = repeat
            && matches!(**node, Node::Class(_))
            && (*least > COUNTED_FROM || most.is_some_and(|most| most > COUNTED_FROM))
        {
            min = min.max(*least);
            max = match (max, *most) {
                (Some(a), Some(b)) => Some(u64::min(a, b)),
                (a, b) => a.or(b),
            };
            *least = 0;
            *most = None;
        }
    };
    let mut at = 1;
    while let Some(Node::Look(look)) = nodes.get_mut(at)
        && look.ahead
    {
        if !look.negative
            && let Node::Concat(inner) = &mut look.node
            && let [repeat, Node::Assertion(Assertion::End)] = &mut inner[..]
        {
            take(repeat);
        }
        at += 1;
    }
    if let [repeat, Node::Assertion(Assertion::End)] = &mut nodes[at..] {
        take(repeat);
    }
    (min, max)
}

fn any_string() -> Hir {
    Hir::repetition(Repetition {
        min: 0,
        max: None,
        greedy: true,
        sub: Box::new(Hir::dot(Dot::AnyChar)),
    })
}

/// The lookaround that is being translated, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Lookahead,
    Lookbehind,
}

struct Translator<'a> {
    limits: &'a DfaLimits,
    inside: Inside,
    lookarounds: Vec<Lookaround>,
}

impl<'a> Translator<'a> {
    fn new(limits: &'a DfaLimits, inside: Inside) -> Self {
        Self { limits, inside, lookarounds: Vec::new() }
    }

    fn translate(&mut self, node: &Node) -> Result<Hir, PatternError> {
        Ok(match node {
            Node::Empty => Hir::empty(),
            Node::Class(class) => Hir::class(Class::Unicode(class.clone())),
            Node::Assertion(assertion) => Hir::look(match assertion {
                Assertion::Start => HirLook::Start,
                Assertion::End => HirLook::End,
                Assertion::WordBoundary => HirLook::WordAscii,
                Assertion::NotWordBoundary => HirLook::WordAsciiNegate,
            }),
            Node::Concat(nodes) => Hir::concat(self.translate_all(nodes)?),
            Node::Alternation(nodes) => Hir::alternation(self.translate_all(nodes)?),
            Node::Repeat { node, min, max } => {
                let sub = Box::new(self.translate(node)?);
                Hir::repetition(Repetition {
                    min: self.count(*min)?,
                    max: max.map(|max| self.count(max)).transpose()?,
                    greedy: true,
                    sub,
                })
            }
            Node::Look(look) => {
                let lookaround = self.lookaround(look)?;
                self.lookarounds.push(lookaround);
                lookaround_marker(self.lookarounds.len() - 1)
            }
        })
    }

    fn translate_all(&mut self, nodes: &[Node]) -> Result<Vec<Hir>, PatternError> {
        nodes.iter().map(|node| self.translate(node)).collect()
    }

    /// A repetition count. One that 32 bits cannot hold is beyond any memory.
    fn count(&self, count: u64) -> Result<u32, DfaError> {
        u32::try_from(count).map_err(|_| DfaError::NfaBytes { limit: self.limits.max_nfa_bytes })
    }

    fn lookaround(&self, look: &Look) -> Result<Lookaround, PatternError> {
        let refused = match (self.inside, look.ahead) {
            (Inside::Lookahead, false) => Some(Construct::LookbehindInLookahead),
            (Inside::Lookbehind, true) => Some(Construct::LookaheadInLookbehind),
            _ => None,
        };
        if let Some(construct) = refused {
            return Err(PatternError::Unsupported { offset: look.offset, construct });
        }
        let inside = if look.ahead { Inside::Lookahead } else { Inside::Lookbehind };
        let mut inner = Translator::new(self.limits, inside);
        let hir = inner.translate(&look.node)?;
        let (hir, depends) = if look.ahead {
            (hir, look.node.depends_on_previous())
        } else {
            (Hir::concat(vec![any_string(), hir]), look.node.depends_on_next())
        };
        let automaton = |neighbour| -> Result<Dfa, DfaError> {
            let context = if look.ahead {
                Context { before: neighbour, after: Neighbour::Edge, any_suffix: true }
            } else {
                Context { before: Neighbour::Edge, after: neighbour, any_suffix: false }
            };
            let dfa = determinize(&hir, &inner.lookarounds, context, self.limits)?;
            if look.negative { dfa.complement(self.limits) } else { Ok(dfa) }
        };
        let dfas = if depends {
            let [edge, word, other] = Neighbour::ALL;
            [automaton(edge)?, automaton(word)?, automaton(other)?]
        } else {
            let dfa = automaton(Neighbour::NonWord)?;
            [dfa.clone(), dfa.clone(), dfa]
        };
        Ok(if look.ahead { Lookaround::Ahead(dfas) } else { Lookaround::Behind(dfas) })
    }
}
