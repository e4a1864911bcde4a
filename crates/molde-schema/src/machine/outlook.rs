//! What may follow a state, said without trying: for whoever runs the automaton over a vocabulary.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::dfa::{Dfa, DfaLimits};
use crate::goal::{Alternative, ExtraNames, GoalId, ObjectId, StringId};
use crate::options::{Escapes, Style};

use super::content::{KeyId, KeyState};
use super::frame::{Frame, StackId};
use super::thread::{Content, Escape, Leaf, Place, Thread};
use super::track::{TextId, Trail};
use super::{DEAD, SchemaAutomaton, UNDECIDED};

/// A set of bytes: byte `b` is bit `b % 64` of word `b / 64`.
pub type ByteBits = [u64; 4];

const ALL_BYTES: ByteBits = [u64::MAX; 4];

/// States with more threads are not taken apart: it would not pay.
const MAX_PARTS: usize = 128;

/// A position inside a string or a key, between two characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringPosition {
    /// What the string may still contain.
    pub content: StringContent,
    /// For each kind of content after which the string may end, the state after the closing quote,
    /// [`DEAD`] if it may not end so. With any content there is one kind.
    pub closed: Vec<u32>,
    /// Contents (names that are declared or taken, texts of values that are compared with) such that
    /// what was said holds neither for them nor for their beginnings. With any content of any length,
    /// beginnings are allowed as everything is.
    pub apart: Vec<Box<[u8]>>,
    /// A state whose continuations are allowed too: that of the declared names alone.
    pub beside: Option<u32>,
}

/// What a string may still contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringContent {
    /// Anything with a number of code points within bounds.
    Any {
        /// Fewest code points to come.
        least: u64,
        /// Most code points to come.
        most: u64,
    },
    /// A word of a language, see [`SchemaAutomaton::content_step`].
    Language {
        /// Which language.
        language: u32,
        /// Its state, never 0.
        state: u32,
        /// Code points read so far, as far as they matter.
        code_points: u64,
    },
}

/// Marks the number of an object that stands for the language of its undeclared names.
const NAME_LANGUAGE: u32 = 1 << 31;

/// So many names are never used up.
const MANY_NAMES: u64 = 1 << 32;

/// Of so many names each can be looked at.
const MAX_NAMES_APART: u64 = 128;

/// The undeclared names of an object as a language of contents.
#[derive(Debug, Clone)]
struct NameLanguage {
    extra: Arc<ExtraNames>,
    /// Whether every name is one.
    is_total: bool,
    /// The states of the classes together; state 0 is dead, and these begin at 1.
    states: IndexSet<Box<[u32]>, FxBuildHasher>,
}

impl NameLanguage {
    fn intern(&mut self, classes: Box<[u32]>) -> u32 {
        if classes.iter().all(|&state| state == Dfa::DEAD) {
            return Dfa::DEAD;
        }
        self.states.insert_full(classes).0 as u32 + 1
    }

    fn classes(&self, state: u32) -> &[u32] {
        state.checked_sub(1).map_or(&[], |index| &self.states[index as usize])
    }

    fn step(&mut self, state: u32, byte: u8) -> u32 {
        let classes = self.classes(state).iter().zip(&self.extra.classes);
        let next = classes.map(|(&state, class)| class.language.step(state, byte)).collect();
        self.intern(next)
    }
}

/// What is known of languages of contents: worked out when a string is first asked about.
#[derive(Debug, Clone, Default)]
pub(super) struct Outlooks {
    /// For each string language, see [`Dfa::sure_bytes`].
    sure: FxHashMap<StringId, Box<[u32]>>,
    /// For each string language, the state from which every content is allowed, or 0.
    universal: FxHashMap<StringId, u32>,
    /// For each object, whether all undeclared names are alike.
    uniform_names: FxHashMap<ObjectId, bool>,
    /// The undeclared names of objects where they are not alike.
    names: FxHashMap<ObjectId, NameLanguage>,
}

fn insert(bits: &mut ByteBits, byte: u8) {
    bits[byte as usize / 64] |= 1 << (byte % 64);
}

fn insert_all(bits: &mut ByteBits, bytes: &[u8]) {
    for &byte in bytes {
        insert(bits, byte);
    }
}

/// Every byte that can stand in a string by itself.
fn insert_plain(bits: &mut ByteBits) {
    bits[0] |= !0 << 0x20;
    bits[1..].fill(u64::MAX);
}

impl SchemaAutomaton {
    /// Bytes among which are all those that do not lead from a state to [`DEAD`].
    pub fn successors(&mut self, state: u32) -> ByteBits {
        match state {
            DEAD => [0; 4],
            UNDECIDED => ALL_BYTES,
            _ => {
                let mut bits = [0; 4];
                for index in 0..self.states[state as usize].len() {
                    let thread = self.states[state as usize][index];
                    self.thread_successors(&thread, &mut bits);
                }
                bits
            }
        }
    }

    pub(super) fn thread_successors(&mut self, thread: &Thread, bits: &mut ByteBits) {
        match thread.leaf {
            Leaf::Gap { place, .. } => self.gap_successors(thread.stack, place, bits),
            Leaf::Literal { literal, at } => {
                insert_all(bits, literal.text().get(at as usize..=at as usize).unwrap_or(b""));
            }
            Leaf::Number { number, state } => {
                insert_all(bits, b"0123456789+-.eE");
                if self.goals.number(number).is_accepting(state) {
                    match self.complete_value(thread.stack, thread.trail) {
                        Ok(Some(done)) => self.thread_successors(&done, bits),
                        Ok(None) => {}
                        Err(_) => *bits = ALL_BYTES,
                    }
                }
            }
            Leaf::Text { content, escape: Escape::None } => {
                insert_all(bits, b"\"\\");
                match content {
                    Content::String { shape, state, .. } => {
                        let shape = self.goals.string(shape);
                        if shape.is_free && shape.language.is_accepting(state) {
                            insert_plain(bits);
                        } else {
                            for transition in shape.language.transitions(state) {
                                insert_range(bits, transition.lo, transition.hi);
                            }
                        }
                    }
                    Content::Key(key) => self.key_successors(thread.stack, key, bits),
                }
            }
            Leaf::Text { escape, .. } => match escape {
                Escape::Backslash => insert_all(bits, b"\"\\/bfnrtu"),
                Escape::High { .. } => insert(bits, b'\\'),
                Escape::HighBackslash { .. } => insert(bits, b'u'),
                _ => insert_all(bits, b"0123456789abcdefABCDEF"),
            },
        }
    }

    fn gap_successors(&mut self, stack: StackId, place: Place, bits: &mut ByteBits) {
        if self.goals.options.style == Style::Flexible {
            insert_all(bits, b" \t\n\r");
        }
        match place {
            Place::Value(goal) => self.value_successors(goal, bits),
            Place::FirstItem | Place::ComparedItem => {
                if place == Place::FirstItem {
                    insert(bits, b']');
                }
                if let Some((Frame::Array { shape, count, .. }, _)) = self.stacks.top(stack) {
                    let rule = self.goals.array(shape).rule(count);
                    let goal = self.goals.base_goal(rule);
                    self.value_successors(goal, bits);
                }
            }
            Place::AfterItem => insert_all(bits, b"],"),
            Place::FirstKey => insert_all(bits, b"}\""),
            Place::AfterMember => insert_all(bits, b"},"),
            Place::Key => insert(bits, b'"'),
            Place::ItemSpace(_) | Place::ComparedSpace | Place::KeySpace | Place::ColonSpace(_) => {
                insert(bits, b' ');
            }
            Place::Colon(_) => insert(bits, b':'),
            Place::End => {}
        }
    }

    fn value_successors(&mut self, goal: GoalId, bits: &mut ByteBits) {
        let Ok(solution) = self.goals.solve(goal) else {
            *bits = ALL_BYTES;
            return;
        };
        for alternative in solution.alternatives.iter().chain(solution.too_long.iter()) {
            match alternative {
                Alternative::Literal(literal) => insert(bits, literal.text()[0]),
                Alternative::Number(_) => insert_all(bits, b"-0123456789"),
                Alternative::String(_) => insert(bits, b'"'),
                Alternative::Array(_) => insert(bits, b'['),
                Alternative::Object(_) => insert(bits, b'{'),
            }
        }
    }

    fn key_successors(&mut self, stack: StackId, key: KeyId, bits: &mut ByteBits) {
        let key = self.keys.get(key);
        if !key.classes.is_empty() {
            insert_plain(bits);
            return;
        }
        let Some((Frame::Object { shape, .. }, _)) = self.stacks.top(stack) else { return };
        let shape = self.goals.object(shape);
        for at in key.declared.0..key.declared.1 {
            let name = &shape.names[shape.sorted[at as usize] as usize];
            if let Some(&byte) = name.as_bytes().get(key.length as usize) {
                insert(bits, byte);
            }
        }
    }

    /// States that together are this one: it is live (accepting) after some bytes exactly if one of
    /// them is. Empty where taking it apart would not pay, or a limit might tell the difference.
    pub fn parts(&mut self, state: u32) -> Vec<u32> {
        if state <= UNDECIDED {
            return Vec::new();
        }
        let count = self.states[state as usize].len();
        if !(2..=MAX_PARTS).contains(&count)
            || count * self.widest > self.goals.options.limits.threads
        {
            return Vec::new();
        }
        let threads = self.states[state as usize].clone();
        threads.iter().map(|&thread| self.intern(vec![thread])).collect()
    }

    /// The string or key that the state is inside of, if it is inside of one between two
    /// characters and nothing stands against treating it as a whole.
    pub fn string_position(&mut self, state: u32) -> Option<StringPosition> {
        if state <= UNDECIDED {
            return None;
        }
        let [thread] = *self.states[state as usize] else { return None };
        let Leaf::Text { content, escape: Escape::None } = thread.leaf else { return None };
        if self.stacks.is_pending(thread.stack) {
            return None;
        }
        // Where items are compared, what may follow the text does not depend on the text, until one
        // more item begins, but for texts that values have which are compared with.
        let text =
            if self.stacks.keeps_text(thread.stack) { TextId::UNKNOWN } else { TextId::NONE };
        let trail = Trail { text, ..Trail::NONE };
        let apart = self.comparer.contents(thread.trail.shadows);
        match content {
            Content::String { shape: id, state, count } => {
                let closed = self.complete_value(thread.stack, trail).ok()??;
                let closed = self.intern(vec![closed]);
                let shape = self.goals.string(id);
                if shape.language.transitions(state).first().is_some_and(|t| t.lo & 0xC0 == 0x80) {
                    // Inside a character.
                    return None;
                }
                let goals = &self.goals;
                let universal = self
                    .outlooks
                    .universal
                    .entry(id)
                    .or_insert_with(|| goals.string(id).language.universal_state());
                let content = if *universal == state {
                    StringContent::Any {
                        least: shape.min_length.saturating_sub(count),
                        most: shape.max_length.map_or(u64::MAX, |max| max.saturating_sub(count)),
                    }
                } else {
                    StringContent::Language { language: id.0, state, code_points: count }
                };
                Some(StringPosition { content, closed: vec![closed], apart, beside: None })
            }
            Content::Key(key) => self.key_position(&thread, key, trail, apart),
        }
    }

    fn key_position(
        &mut self,
        thread: &Thread,
        id: KeyId,
        trail: Trail,
        mut apart: Vec<Box<[u8]>>,
    ) -> Option<StringPosition> {
        let stack = thread.stack;
        let object = self.open_object(stack)?;
        let key = self.keys.get(id).clone();
        if key.classes.is_empty() {
            return None;
        }
        let extra = self.goals.extra_names(object.id).ok()?;
        let uniform = self.has_uniform_names(object.id);
        let progress = self.stacks.progress(object.progress).clone();
        let mut closed = Vec::with_capacity(extra.classes.len());
        let mut classes_left = key.classes.clone();
        for (index, (class, &state)) in extra.classes.iter().zip(&*key.classes).enumerate() {
            let language = &class.language;
            let inside = language.transitions(state).first().is_some_and(|t| t.lo & 0xC0 == 0x80);
            if inside {
                return None;
            }
            if class.names_from(language.start()) < MANY_NAMES {
                // These names could run out: each one counts.
                if class.names_from(state) > MAX_NAMES_APART {
                    return None;
                }
                language.words_from(state, &mut apart);
                classes_left[index] = Dfa::DEAD;
                closed.push(DEAD);
                continue;
            }
            let end = (1..language.states() as u32).find(|&state| language.is_accepting(state))?;
            let mut classes = vec![Dfa::DEAD; extra.classes.len()];
            classes[index] = end;
            let fresh =
                KeyState { declared: (0, 0), length: 0, classes: classes.into(), typed: None };
            let fresh = self.keys.intern(fresh);
            let mut threads = Vec::new();
            self.close_content(stack, Content::Key(fresh), trail, &mut threads).ok()?;
            threads.sort_unstable();
            threads.dedup();
            self.widest = self.widest.max(threads.len());
            closed.push(if threads.is_empty() { DEAD } else { self.intern(threads) });
        }
        for at in key.declared.0..key.declared.1 {
            let name = &object.shape.names[object.shape.sorted[at as usize] as usize];
            apart.push(name.as_bytes()[key.length as usize..].into());
        }
        if let Some(typed) = key.typed.as_deref() {
            let taken = progress.extras.iter();
            apart.extend(
                taken.filter_map(|name| name.as_bytes().strip_prefix(typed)).map(Box::from),
            );
        }
        if uniform {
            let content = StringContent::Any { least: 0, most: u64::MAX };
            return Some(StringPosition { content, closed, apart, beside: None });
        }
        let beside = (key.declared.0 < key.declared.1).then(|| {
            let declared = KeyState { classes: Box::default(), typed: None, ..key.clone() };
            let content = Content::Key(self.keys.intern(declared));
            let leaf = Leaf::Text { content, escape: Escape::None };
            self.intern(vec![Thread { stack, leaf, trail: thread.trail }])
        });
        let language = object.id.0 | NAME_LANGUAGE;
        let state = self.name_language(object.id)?.intern(classes_left);
        if state == Dfa::DEAD {
            // Only single names are left: they are few.
            return None;
        }
        let content = StringContent::Language { language, state, code_points: 0 };
        Some(StringPosition { content, closed, apart, beside })
    }

    /// The language of the undeclared names of an object.
    fn name_language(&mut self, id: ObjectId) -> Option<&mut NameLanguage> {
        if !self.outlooks.names.contains_key(&id) {
            let extra = self.goals.extra_names(id).ok()?;
            let limits = DfaLimits::default();
            let mut union = Some(Dfa::empty());
            for class in &extra.classes {
                union = union.and_then(|union| union.union(&class.language, &limits).ok());
            }
            let is_total = union.is_some_and(|union| union.is_universal());
            let names = NameLanguage { extra, is_total, states: IndexSet::default() };
            self.outlooks.names.insert(id, names);
        }
        self.outlooks.names.get_mut(&id)
    }

    /// Whether all undeclared names of an object are alike, and are all there are.
    fn has_uniform_names(&mut self, id: ObjectId) -> bool {
        if let Some(&known) = self.outlooks.uniform_names.get(&id) {
            return known;
        }
        let uniform = self
            .goals
            .extra_names(id)
            .is_ok_and(|extra| matches!(&*extra.classes, [class] if class.language.is_universal()));
        self.outlooks.uniform_names.insert(id, uniform);
        uniform
    }

    /// The successor of a state of a language of contents by a byte of the decoded content; 0 is
    /// dead.
    #[inline]
    pub fn content_step(&mut self, language: u32, state: u32, byte: u8) -> u32 {
        match self.names_of(language) {
            Some(names) => names.step(state, byte),
            None => self.goals.string(StringId(language)).language.step(state, byte),
        }
    }

    fn names_of(&mut self, language: u32) -> Option<&mut NameLanguage> {
        if language & NAME_LANGUAGE == 0 {
            return None;
        }
        self.outlooks.names.get_mut(&ObjectId(language & !NAME_LANGUAGE))
    }

    /// The bytes whose successor in a language of contents is not dead.
    pub fn content_successors(&mut self, language: u32, state: u32) -> ByteBits {
        let mut bits = [0; 4];
        let mut add = |language: &Dfa, state: u32| {
            for transition in language.transitions(state) {
                insert_range(&mut bits, transition.lo, transition.hi);
            }
        };
        match self.names_of(language) {
            Some(names) => {
                for (&state, class) in names.classes(state).iter().zip(&names.extra.classes) {
                    add(&class.language, state);
                }
            }
            None => add(&self.goals.string(StringId(language)).language, state),
        }
        bits
    }

    /// Whether an escape sequence can follow a content that led to a state, between two characters,
    /// with a number of code points.
    pub fn content_can_escape(&mut self, language: u32, state: u32, code_points: u64) -> bool {
        if language & NAME_LANGUAGE == 0 {
            let content = Content::String { shape: StringId(language), state, count: code_points };
            return self.continues_escaped(StackId::EMPTY, content).unwrap_or(false);
        }
        match self.goals.options.escapes {
            Escapes::Any => self.content_successors(language, state) != [0; 4],
            Escapes::Needed => (0..b' ')
                .chain([b'"', b'\\'])
                .any(|byte| self.content_step(language, state, byte) != Dfa::DEAD),
        }
    }

    /// The least number of bytes of a content that goes on from a state, between two characters, and
    /// can no longer become one that is allowed: `u32::MAX` if there is none, 0 if that is not known.
    pub fn content_sure_bytes(&mut self, language: u32, state: u32) -> u32 {
        if let Some(names) = self.names_of(language) {
            return if names.is_total { u32::MAX } else { 0 };
        }
        let id = StringId(language);
        if self.goals.string(id).max_length.is_some() {
            return 0;
        }
        let goals = &self.goals;
        let sure =
            self.outlooks.sure.entry(id).or_insert_with(|| goals.string(id).language.sure_bytes());
        match sure[state as usize] {
            // Without an end to the contents, the shortest length is no matter.
            u32::MAX => u32::MAX,
            _ if self.goals.string(id).lengths.is_some() => 0,
            bytes => bytes,
        }
    }

    /// Bytes that begin characters which all lead from a state of a language of contents, between two
    /// characters, back to it; none is always a correct answer.
    pub fn content_looping_bytes(&mut self, language: u32, state: u32) -> ByteBits {
        match self.names_of(language) {
            Some(names) => match (&*names.extra.classes, names.classes(state)) {
                ([class], &[state]) => class.language.looping_bytes(state),
                _ => [0; 4],
            },
            None => self.goals.string(StringId(language)).language.looping_bytes(state),
        }
    }

    /// The numbers of code points with which a content that led to a state can become one that is
    /// allowed, if they are an interval: the first and the last.
    pub fn content_live_range(&mut self, language: u32, state: u32) -> Option<(u64, u64)> {
        if self.names_of(language).is_some() {
            return Some((0, u64::MAX));
        }
        let shape = self.goals.string(StringId(language));
        let Some(lengths) = &shape.lengths else { return Some((0, u64::MAX)) };
        let (min, max) = lengths.interval(state)?;
        let first = max.map_or(0, |max| shape.min_length.saturating_sub(max));
        match shape.max_length {
            None => Some((first, u64::MAX)),
            Some(most) => Some((first, most.checked_sub(min)?)),
        }
    }

    /// Whether a content that led to a state with a number of code points can become one that is
    /// allowed.
    pub fn content_is_live(&mut self, language: u32, state: u32, code_points: u64) -> bool {
        if self.names_of(language).is_some() {
            return state != Dfa::DEAD;
        }
        self.goals.string(StringId(language)).is_live(state, code_points)
    }

    /// The kind, an index of [`StringPosition::closed`], of a content that led to a state with a
    /// number of code points, if the string may end after it.
    pub fn content_kind(&mut self, language: u32, state: u32, code_points: u64) -> Option<u32> {
        if let Some(names) = self.names_of(language) {
            let mut classes = names.classes(state).iter().zip(&names.extra.classes);
            let kind = classes.position(|(&state, class)| class.language.is_accepting(state));
            return kind.map(|kind| kind as u32);
        }
        let shape = self.goals.string(StringId(language));
        shape.is_complete(state, code_points).then_some(0)
    }
}

fn insert_range(bits: &mut ByteBits, lo: u8, hi: u8) {
    for (index, word) in bits.iter_mut().enumerate() {
        let base = index * 64;
        let (low, high) = ((lo as usize).max(base), (hi as usize).min(base + 63));
        if low <= high {
            *word |= (u64::MAX >> (63 - (high - low))) << (low - base);
        }
    }
}
