//! The automaton over the bytes of number texts.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::completion::completion;
#[cfg(test)]
use super::decimal::Decimal;
use super::exponent::{ExponentSet, ExponentState};
use super::key::PrefixKey;
use super::limits::{NumberError, NumberLimits, NumberStyle};
use super::piece::{Piece, Set, Spelling};
use super::prefix::{Phase, Prefix};
use super::spec::NumberSpec;

/// The bytes of number texts. Shorter continuations are looked for in this order.
const BYTES: &[u8; 15] = b"1234567890-.eE+";

/// A transition that has not been computed.
const UNKNOWN: u32 = u32::MAX;

/// A deterministic automaton over the bytes of JSON numbers: it accepts the texts that a
/// [`NumberStyle`] allows and whose exact value satisfies one of several [`NumberSpec`]s.
///
/// States are made while it is walked. From every live state some text leads to acceptance, and
/// [`shortest`](Self::shortest) returns a shortest one. Equal ids are equal states, until
/// [`clear`](Self::clear).
///
/// A clone is independent, and shares the compiled constraints.
#[derive(Clone)]
pub(crate) struct NumberAutomaton {
    pieces: Arc<[Piece]>,
    style: NumberStyle,
    max_exponent_digits: u32,
    /// Index 0 is dead and has no meaning; index 1 is the start.
    states: Vec<State>,
    index: FxHashMap<Key, u32>,
    empty: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Prefix(PrefixKey),
    Exponent(ExponentState),
}

#[derive(Clone, Debug)]
enum Kind {
    /// One of the prefixes that this state stands for, and the pieces that it can still satisfy.
    Prefix(Prefix, Vec<u32>),
    Exponent(ExponentState),
}

#[derive(Clone, Debug)]
struct State {
    kind: Kind,
    /// Unknown for the states before the first digit, until it is asked for.
    completion: Option<Box<[u8]>>,
    next: [u32; BYTES.len()],
}

impl State {
    fn new(kind: Kind, completion: Option<Vec<u8>>) -> Self {
        let completion = completion.map(Vec::into_boxed_slice);
        Self { kind, completion, next: [UNKNOWN; BYTES.len()] }
    }
}

impl NumberAutomaton {
    /// The state from which nothing is accepted.
    pub(crate) const DEAD: u32 = 0;

    const START: u32 = 1;

    /// The automaton of the numbers that satisfy at least one of `specs`.
    ///
    /// # Errors
    /// [`NumberError::TooManyExcludedDivisors`], [`NumberError::ExponentDigitsTooMany`], and
    /// [`NumberError::TooManyDigits`] for the common multiple of several divisors.
    ///
    /// # Complexity
    /// Linear in the constraints' digits, and `n log n` in listed values. Ranges cost the same
    /// whatever their size.
    pub(crate) fn new(
        specs: &[NumberSpec],
        style: NumberStyle,
        limits: &NumberLimits,
    ) -> Result<Self, NumberError> {
        if limits.max_exponent_digits > NumberLimits::EXPONENT_DIGITS_CEILING {
            return Err(NumberError::ExponentDigitsTooMany {
                got: limits.max_exponent_digits,
                ceiling: NumberLimits::EXPONENT_DIGITS_CEILING,
            });
        }
        let mut pieces = Vec::new();
        for spec in specs {
            pieces.extend(Piece::from_spec(spec, style, limits)?);
        }
        Ok(Self::of_pieces(pieces, style, limits))
    }

    /// The automaton of the numbers of some halves of constraints.
    pub(super) fn of_pieces(pieces: Vec<Piece>, style: NumberStyle, limits: &NumberLimits) -> Self {
        let mut automaton = Self {
            pieces: pieces.into(),
            style,
            max_exponent_digits: limits.max_exponent_digits,
            states: Vec::new(),
            index: FxHashMap::default(),
            empty: false,
        };
        automaton.reset();
        automaton.empty = !automaton.leads_on(Self::START);
        automaton
    }

    #[cfg(test)]
    /// The automaton of exactly these values, in every spelling of the style.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn from_values(
        values: Vec<Decimal>,
        style: NumberStyle,
        limits: &NumberLimits,
    ) -> Result<Self, NumberError> {
        Self::new(&[NumberSpec::from_values(values)], style, limits)
    }

    /// Whether no text is accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// The state before the first byte; [`DEAD`](Self::DEAD) if no text is accepted.
    pub(crate) fn start(&self) -> u32 {
        if self.empty { Self::DEAD } else { Self::START }
    }

    /// The state after `byte`, or `None` if nothing that begins so is accepted.
    ///
    /// # Complexity
    /// A table look-up when the transition was taken before. Otherwise arithmetic on numbers of as
    /// many digits as were read and the constraints have, for each piece that is still possible.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Option<u32> {
        let class = BYTES.iter().position(|known| *known == byte)?;
        if state == Self::DEAD {
            return None;
        }
        let mut next = self.states.get(state as usize)?.next[class];
        if next == UNKNOWN {
            next = self.compute(state, byte).unwrap_or(Self::DEAD);
            self.states[state as usize].next[class] = next;
        }
        (next != Self::DEAD).then_some(next)
    }

    /// Whether the bytes read so far are an accepted text.
    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        // The dead state has no completion, and no other is empty but an accepting state's.
        let completion =
            self.states.get(state as usize).and_then(|state| state.completion.as_ref());
        completion.is_some_and(|text| text.is_empty())
    }

    /// A shortest text that leads from `state` to acceptance; empty where it accepts, and for
    /// [`DEAD`](Self::DEAD), from which none does.
    pub(crate) fn shortest(&mut self, state: u32) -> Vec<u8> {
        match self.states.get(state as usize) {
            None => return Vec::new(),
            Some(State { completion: Some(known), .. }) => return known.to_vec(),
            Some(_) if state == Self::DEAD => return Vec::new(),
            Some(_) => {}
        }
        let mut shortest: Option<Vec<u8>> = None;
        for byte in *BYTES {
            let Some(next) = self.step(state, byte) else { continue };
            let rest = self.shortest(next);
            if shortest.as_ref().is_none_or(|text| rest.len() + 1 < text.len()) {
                shortest = Some([&[byte], rest.as_slice()].concat());
            }
        }
        let shortest = shortest.unwrap_or_default();
        self.states[state as usize].completion = Some(shortest.clone().into_boxed_slice());
        shortest
    }

    /// The number of states made so far.
    pub(crate) fn state_count(&self) -> usize {
        self.states.len() - 1
    }

    #[cfg(test)]
    /// An estimate of the heap bytes that the states hold.
    pub(crate) fn memory_usage(&self) -> usize {
        let states: usize = (self.states.iter())
            .map(|state| {
                let kind = match &state.kind {
                    Kind::Prefix(prefix, live) => {
                        prefix.digits.capacity() + live.capacity() * size_of::<u32>()
                    }
                    Kind::Exponent(exponent) => exponent.memory_usage(),
                };
                kind + state.completion.as_ref().map_or(0, |text| text.len())
            })
            .sum();
        let keys: usize = self.index.keys().map(Key::memory_usage).sum();
        states
            + keys
            + self.states.capacity() * size_of::<State>()
            + self.index.capacity() * (size_of::<(Key, u32)>() + 1)
    }

    /// Drops all states but the start and those of `keep`, and returns the new ids of the latter,
    /// in order. All other ids are invalid afterwards. [`DEAD`](Self::DEAD) stays as it is.
    pub(crate) fn clear(&mut self, keep: &[u32]) -> Vec<u32> {
        let kept: Vec<Option<State>> = (keep.iter())
            .map(|id| self.states.get(*id as usize).filter(|_| *id != Self::DEAD).cloned())
            .collect();
        self.reset();
        kept.into_iter()
            .map(|state| match state {
                None => Self::DEAD,
                Some(State { kind, completion, .. }) => {
                    let completion = completion.map(Vec::from);
                    match kind {
                        Kind::Prefix(prefix, mut live) => match prefix.phase {
                            Phase::Start => Self::START,
                            Phase::Minus => {
                                self.minus_state(State::new(Kind::Prefix(prefix, live), completion))
                            }
                            _ => {
                                let key = self.prefix_key(&prefix, &mut live);
                                self.intern(key, Kind::Prefix(prefix, live), completion)
                            }
                        },
                        Kind::Exponent(state) => {
                            let key = Key::Exponent(state.clone());
                            self.intern(key, Kind::Exponent(state), completion)
                        }
                    }
                }
            })
            .collect()
    }

    fn reset(&mut self) {
        let start = |live| State::new(Kind::Prefix(Prefix::start(), live), None);
        let all = (0..self.pieces.len() as u32).collect();
        self.states = vec![start(Vec::new()), start(all)];
        self.index = FxHashMap::default();
    }

    fn compute(&mut self, state: u32, byte: u8) -> Option<u32> {
        match &self.states[state as usize].kind {
            Kind::Exponent(exponent) => {
                let next = exponent.step(byte, self.max_exponent_digits)?;
                self.exponent_state(next)
            }
            Kind::Prefix(prefix, live) if matches!(byte, b'e' | b'E') => {
                if self.style == NumberStyle::Plain || !prefix.is_complete() {
                    return None;
                }
                let sets = live.iter().map(|id| exponents(&self.pieces[*id as usize], prefix));
                let set = ExponentSet::union(sets);
                self.exponent_state(ExponentState::mark(set, self.max_exponent_digits)?)
            }
            Kind::Prefix(prefix, live) => {
                let next = prefix.step(byte)?;
                let negative = byte == b'-';
                let mut live = live.clone();
                match (prefix.phase, next.phase) {
                    (Phase::Start, Phase::Minus) => {
                        live.retain(|id| self.pieces[*id as usize].negative == negative);
                        let minus = self.minus_state(State::new(Kind::Prefix(next, live), None));
                        return self.leads_on(minus).then_some(minus);
                    }
                    (Phase::Start, _) => {
                        live.retain(|id| self.pieces[*id as usize].negative == negative);
                    }
                    _ => {}
                }
                self.prefix_state(next, live)
            }
        }
    }

    /// The only state that is known by its transition instead of a summary.
    fn minus_state(&mut self, state: State) -> u32 {
        let class = BYTES.iter().position(|byte| *byte == b'-').expect("it is listed");
        let known = self.states[Self::START as usize].next[class];
        if known != UNKNOWN && known != Self::DEAD {
            return known;
        }
        let id = self.states.len() as u32;
        self.states.push(state);
        self.states[Self::START as usize].next[class] = id;
        id
    }

    /// Whether any byte leads on from a state before the first digit.
    fn leads_on(&mut self, state: u32) -> bool {
        BYTES.iter().any(|byte| self.step(state, *byte).is_some())
    }

    fn prefix_key(&self, prefix: &Prefix, live: &mut Vec<u32>) -> Key {
        Key::Prefix(PrefixKey::new(prefix, &self.pieces, live, self.style))
    }

    /// The state of a prefix for the pieces of `live`, of which some may have become impossible.
    fn prefix_state(&mut self, prefix: Prefix, mut live: Vec<u32>) -> Option<u32> {
        let key = self.prefix_key(&prefix, &mut live);
        if let Some(known) = self.index.get(&key) {
            return (*known != Self::DEAD).then_some(*known);
        }
        let mut shortest: Option<Vec<u8>> = None;
        let before = live.len();
        live.retain(|id| {
            let piece = &self.pieces[*id as usize];
            let found = completion(piece, &prefix, self.style, self.max_exponent_digits);
            let possible = found.is_some();
            if let Some(text) = found
                && shortest.as_ref().is_none_or(|shortest| text.len() < shortest.len())
            {
                shortest = Some(text);
            }
            possible
        });
        let state = if live.is_empty() {
            Self::DEAD
        } else if live.len() == before {
            return Some(self.intern(key, Kind::Prefix(prefix, live), shortest));
        } else {
            let reduced = self.prefix_key(&prefix, &mut live);
            self.intern(reduced, Kind::Prefix(prefix, live), shortest)
        };
        self.index.insert(key, state);
        (state != Self::DEAD).then_some(state)
    }

    fn exponent_state(&mut self, state: ExponentState) -> Option<u32> {
        let key = Key::Exponent(state.clone());
        if let Some(known) = self.index.get(&key) {
            return Some(*known);
        }
        let completion = state.completion(self.max_exponent_digits)?;
        Some(self.intern(key, Kind::Exponent(state), Some(completion)))
    }

    fn intern(&mut self, key: Key, kind: Kind, completion: Option<Vec<u8>>) -> u32 {
        let next = self.states.len() as u32;
        let id = *self.index.entry(key).or_insert(next);
        if id == next {
            self.states.push(State::new(kind, completion));
        }
        id
    }
}

impl Key {
    #[cfg(test)]
    fn memory_usage(&self) -> usize {
        match self {
            Self::Prefix(key) => key.memory_usage(),
            Self::Exponent(state) => state.memory_usage(),
        }
    }
}

impl fmt::Debug for NumberAutomaton {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NumberAutomaton")
            .field("pieces", &self.pieces.len())
            .field("style", &self.style)
            .field("states", &self.state_count())
            .finish_non_exhaustive()
    }
}

/// The exponents with which the number read so far is in the piece.
fn exponents(piece: &Piece, prefix: &Prefix) -> ExponentSet {
    if piece.spelling == Spelling::Bare {
        return ExponentSet::default();
    }
    if prefix.is_zero() {
        return if piece.contains_zero {
            ExponentSet::range(ExponentSet::LEAST, ExponentSet::GREATEST)
        } else {
            ExponentSet::default()
        };
    }
    let of_last_digit = match &piece.set {
        Set::Interval(interval) => interval.exponents(&prefix.digits, &prefix.mantissa()),
        Set::Values(values) => {
            let count = prefix.digits.len() as i64;
            ExponentSet::union(
                super::completion::starting_with(values, &prefix.digits)
                    .iter()
                    .filter(|value| value.cmp_whole(&prefix.digits).is_eq())
                    .map(|value| ExponentSet::range(value.order - count, value.order - count)),
            )
        }
    };
    of_last_digit.shifted(prefix.fraction_digits)
}
