//! Small automata, each a plain transition function, and one lazy [`ByteAutomaton`] over any of
//! them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use molde_vocab::{ByteAutomaton, StateId};

/// What a byte leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<S> {
    Dead,
    Undecided,
    To(S),
}

/// A language, as a transition function from which every state that is not dead can be completed.
pub(crate) trait Language: Clone + Send {
    type State: Copy + Ord + Send + std::fmt::Debug;

    fn start(&self) -> Self::State;
    fn step(&self, state: Self::State, byte: u8) -> Next<Self::State>;
    fn accepts(&self, state: Self::State) -> bool;

    /// The state after `bytes`; the first byte that is no way on decides otherwise.
    fn read(&self, state: Self::State, bytes: &[u8]) -> Next<Self::State> {
        bytes.iter().fold(Next::To(state), |next, &byte| match next {
            Next::To(state) => self.step(state, byte),
            end => end,
        })
    }
}

/// Interns the states of a language in the order in which they are met.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<L: Language> {
    language: L,
    states: Vec<L::State>,
    ids: BTreeMap<L::State, u32>,
    pub(crate) clears: usize,
}

impl<L: Language> Lazy<L> {
    pub(crate) fn new(language: L) -> Self {
        Self { language, states: Vec::new(), ids: BTreeMap::new(), clears: 0 }
    }

    /// Number of states met since the caches were dropped.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }

    fn intern(&mut self, state: L::State) -> StateId {
        let id = *self.ids.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() as u32 + 1
        });
        StateId(id)
    }

    fn state(&self, id: StateId) -> L::State {
        self.states[id.0 as usize - 2]
    }
}

impl<L: Language> ByteAutomaton for Lazy<L> {
    fn start(&mut self) -> StateId {
        self.intern(self.language.start())
    }

    fn step(&mut self, state: StateId, byte: u8) -> StateId {
        if !state.is_live() {
            return state;
        }
        match self.language.step(self.state(state), byte) {
            Next::Dead => StateId::DEAD,
            Next::Undecided => StateId::UNDECIDED,
            Next::To(next) => self.intern(next),
        }
    }

    fn is_accepting(&mut self, state: StateId) -> bool {
        state.is_live() && self.language.accepts(self.state(state))
    }

    fn forced_byte(&mut self, state: StateId) -> Option<u8> {
        let from = self.state(state);
        let mut possible = (0..=255).filter(|&b| self.language.step(from, b) != Next::Dead);
        let only = possible.next()?;
        (possible.next().is_none() && !self.language.accepts(from)).then_some(only)
    }

    fn completion(&mut self, state: StateId) -> Vec<u8> {
        let mut queue = VecDeque::from([(self.state(state), Vec::new())]);
        let mut seen = BTreeSet::new();
        while let Some((state, path)) = queue.pop_front() {
            if self.language.accepts(state) {
                return path;
            }
            for byte in 0..=255 {
                if let Next::To(next) = self.language.step(state, byte)
                    && seen.insert(next)
                {
                    queue.push_back((next, [path.as_slice(), &[byte]].concat()));
                }
            }
        }
        panic!("a live state that cannot be completed");
    }

    fn memory_usage(&self) -> usize {
        self.states.len() * 100
    }

    fn clear_cache(&mut self, keep: &[StateId]) -> Vec<StateId> {
        let kept: Vec<_> = keep.iter().map(|&id| self.state(id)).collect();
        self.clears += 1;
        self.states.clear();
        self.ids.clear();
        // Last first, so that ids really change.
        for &state in kept.iter().rev() {
            self.intern(state);
        }
        kept.into_iter().map(|state| self.intern(state)).collect()
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, as a table: a text may be complete and still go on.
#[derive(Clone, Debug)]
pub(crate) struct Number;

impl Language for Number {
    type State = usize;

    fn start(&self) -> usize {
        0
    }

    fn step(&self, state: usize, byte: u8) -> Next<usize> {
        // Columns: '-', '0', '1' to '9', '.'. 9 is dead.
        const TABLE: [[usize; 4]; 6] = [
            [1, 2, 3, 9], // start
            [9, 2, 3, 9], // after the sign
            [9, 9, 9, 4], // 0
            [9, 3, 3, 4], // digits
            [9, 5, 5, 9], // after the point
            [9, 5, 5, 9], // fraction
        ];
        let column = match byte {
            b'-' => 0,
            b'0' => 1,
            b'1'..=b'9' => 2,
            b'.' => 3,
            _ => return Next::Dead,
        };
        match TABLE[state][column] {
            9 => Next::Dead,
            next => Next::To(next),
        }
    }

    fn accepts(&self, state: usize) -> bool {
        [2, 3, 5].contains(&state)
    }
}

/// One balanced bracket expression, such as `[[][]]`, at most `max_depth` deep. The depth is a
/// counter. Beyond `decided` the answer is "undecided".
#[derive(Clone, Debug)]
pub(crate) struct Brackets {
    pub(crate) max_depth: usize,
    pub(crate) decided: usize,
}

impl Language for Brackets {
    /// The depth, and whether a bracket was read.
    type State = (usize, bool);

    fn start(&self) -> (usize, bool) {
        (0, false)
    }

    fn step(&self, (depth, begun): (usize, bool), byte: u8) -> Next<(usize, bool)> {
        match byte {
            b'[' if begun && depth == 0 => Next::Dead,
            b'[' if depth == self.max_depth => Next::Dead,
            b'[' if depth == self.decided => Next::Undecided,
            b'[' => Next::To((depth + 1, true)),
            b']' if depth > 0 => Next::To((depth - 1, true)),
            _ => Next::Dead,
        }
    }

    fn accepts(&self, (depth, begun): (usize, bool)) -> bool {
        begun && depth == 0
    }
}

/// Any JSON string of at most `max_chars` code points, in valid UTF-8, escapes included (surrogates
/// aside).
#[derive(Clone, Debug)]
pub(crate) struct JsonString {
    pub(crate) max_chars: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InString {
    Before,
    Inside,
    Escape,
    /// So many hexadecimal digits are missing.
    Hex(u8),
    /// So many continuation bytes are missing, the first of them within these bounds.
    Utf8(u8, u8, u8),
    After,
}

impl Language for JsonString {
    /// The position, and how many code points came before it.
    type State = (InString, usize);

    fn start(&self) -> (InString, usize) {
        (InString::Before, 0)
    }

    fn step(&self, (at, chars): (InString, usize), byte: u8) -> Next<(InString, usize)> {
        use InString::{After, Before, Escape, Hex, Inside, Utf8};
        let next = match (at, byte) {
            (Before, b'"') => (Inside, 0),
            (Inside, b'"') => (After, 0),
            (Inside, 0x20..=0x7F | 0xC2..=0xF4) if chars == self.max_chars => return Next::Dead,
            (Inside, b'\\') => (Escape, chars),
            (Inside, 0xC2..=0xDF) => (Utf8(1, 0x80, 0xBF), chars),
            (Inside, 0xE0) => (Utf8(2, 0xA0, 0xBF), chars),
            (Inside, 0xED) => (Utf8(2, 0x80, 0x9F), chars),
            (Inside, 0xE1..=0xEF) => (Utf8(2, 0x80, 0xBF), chars),
            (Inside, 0xF0) => (Utf8(3, 0x90, 0xBF), chars),
            (Inside, 0xF4) => (Utf8(3, 0x80, 0x8F), chars),
            (Inside, 0xF1..=0xF3) => (Utf8(3, 0x80, 0xBF), chars),
            (Escape, b'u') => (Hex(4), chars),
            (Inside, 0x20..=0x7F)
            | (Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
            | (Hex(1), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => (Inside, chars + 1),
            (Hex(n), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => (Hex(n - 1), chars),
            (Utf8(1, low, high), _) if (low..=high).contains(&byte) => (Inside, chars + 1),
            (Utf8(n, low, high), _) if (low..=high).contains(&byte) => {
                (Utf8(n - 1, 0x80, 0xBF), chars)
            }
            _ => return Next::Dead,
        };
        Next::To(next)
    }

    fn accepts(&self, (at, _): (InString, usize)) -> bool {
        at == InString::After
    }
}

/// Pieces one after the other: forced text between choices.
#[derive(Clone, Debug)]
pub(crate) struct Sequence(pub(crate) Vec<Piece>);

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// One of these texts, none a prefix of another.
    OneOf(Vec<&'static str>),
    /// 0 to so many lower-case letters, spaces or `é`; what follows begins otherwise.
    Letters(usize),
    /// 1 to so many digits; what follows begins otherwise.
    Digits(usize),
}

impl Language for Sequence {
    /// Index of the piece; count of bytes or characters read of it; what is known of it
    /// (alternatives still possible, one bit each; or 1 inside `é`).
    type State = (usize, usize, u32);

    fn start(&self) -> Self::State {
        (0, 0, u32::MAX)
    }

    fn step(&self, (piece, read, known): Self::State, byte: u8) -> Next<Self::State> {
        match self.0.get(piece) {
            None => Next::Dead,
            Some(Piece::OneOf(texts)) => {
                let mut left = 0;
                for (i, text) in texts.iter().enumerate() {
                    if known >> i & 1 == 1 && text.as_bytes().get(read) == Some(&byte) {
                        if text.len() == read + 1 {
                            return Next::To((piece + 1, 0, u32::MAX));
                        }
                        left |= 1 << i;
                    }
                }
                if left == 0 { Next::Dead } else { Next::To((piece, read + 1, left)) }
            }
            Some(&Piece::Letters(max)) => match (byte, known) {
                (0xA9, 1) => Next::To((piece, read + 1, 0)),
                (_, 1) => Next::Dead,
                (0xC3, _) if read < max => Next::To((piece, read, 1)),
                (b'a'..=b'z' | b' ', _) if read < max => Next::To((piece, read + 1, 0)),
                _ => self.step((piece + 1, 0, u32::MAX), byte),
            },
            Some(&Piece::Digits(max)) => match byte {
                b'0'..=b'9' if read < max => Next::To((piece, read + 1, 0)),
                _ if read == 0 => Next::Dead,
                _ => self.step((piece + 1, 0, u32::MAX), byte),
            },
        }
    }

    fn accepts(&self, (piece, read, known): Self::State) -> bool {
        match self.0.get(piece) {
            None => true,
            Some(Piece::OneOf(_)) => false,
            Some(Piece::Letters(_)) => piece + 1 == self.0.len() && known != 1,
            Some(Piece::Digits(_)) => piece + 1 == self.0.len() && read > 0,
        }
    }
}

/// A small object, as a schema would make it.
pub(crate) fn record() -> Sequence {
    Sequence(vec![
        Piece::OneOf(vec!["{\"name\": \""]),
        Piece::Letters(12),
        Piece::OneOf(vec!["\", \"ok\": "]),
        Piece::OneOf(vec!["true", "false", "\"true\"", "null"]),
        Piece::OneOf(vec![", \"count\": "]),
        Piece::Digits(3),
        Piece::OneOf(vec!["}"]),
    ])
}
