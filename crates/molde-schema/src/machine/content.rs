//! The decoded content of strings and keys, one UTF-8 byte at a time.

use std::sync::Arc;

use indexmap::IndexSet;
use regex_syntax::utf8::{Utf8Range, Utf8Sequences};
use rustc_hash::FxBuildHasher;

use crate::dfa::Dfa;
use crate::goal::{
    ExtraNames, FormulaId, GoalId, GoalLimit, NameClass, ObjectId, ObjectShape, Progress,
};
use crate::options::Order;

use super::SchemaAutomaton;
use super::frame::{Frame, ProgressId, StackId};
use super::thread::{Content, Place, Thread};
use super::track::Trail;

/// Index of a [`KeyState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyId(u32);

/// The content of a key so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyState {
    /// The declared names that begin like this: a range of [`ObjectShape::sorted`].
    pub(super) declared: (u32, u32),
    /// Number of bytes so far.
    pub(super) length: u32,
    /// The state of each class of extra names; empty where no extra name may be written.
    pub(super) classes: Box<[u32]>,
    /// The bytes so far, as long as they could become a name that is taken: afterwards any
    /// continuation is a new name, and its text no longer makes a difference.
    pub(super) typed: Option<Box<[u8]>>,
}

/// All contents of keys that have come up.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    states: IndexSet<KeyState, FxBuildHasher>,
    bytes: usize,
}

impl Keys {
    pub(super) fn intern(&mut self, key: KeyState) -> KeyId {
        let bytes = 96 + key.classes.len() * 4 + key.typed.as_ref().map_or(0, |typed| typed.len());
        let (index, new) = self.states.insert_full(key);
        self.bytes += if new { bytes } else { 0 };
        KeyId(index as u32)
    }

    pub(super) fn get(&self, id: KeyId) -> &KeyState {
        &self.states[id.0 as usize]
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.bytes
    }
}

/// The object on top of a stack.
pub(super) struct OpenObject {
    pub(super) id: ObjectId,
    pub(super) shape: Arc<ObjectShape>,
    pub(super) progress: ProgressId,
    pub(super) parent: StackId,
}

/// Whether a byte begins a character in UTF-8.
fn begins_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

impl SchemaAutomaton {
    /// The content after one more byte, if it can still become one that is allowed.
    pub(super) fn step_content(
        &mut self,
        stack: StackId,
        content: Content,
        byte: u8,
    ) -> Result<Option<Content>, GoalLimit> {
        match content {
            Content::String { shape: id, state, count } => {
                let shape = self.goals.string(id);
                let state = shape.language.step(state, byte);
                let count = count.saturating_add(u64::from(begins_character(byte)));
                Ok(shape.is_live(state, count).then(|| Content::String {
                    shape: id,
                    state,
                    count: shape.saturate(count),
                }))
            }
            Content::Key(key) => self.step_key(stack, key, byte),
        }
    }

    /// The content after one more character.
    pub(super) fn step_character(
        &mut self,
        stack: StackId,
        content: Content,
        character: char,
    ) -> Result<Option<Content>, GoalLimit> {
        let mut content = content;
        for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
            match self.step_content(stack, content, byte)? {
                Some(next) => content = next,
                None => return Ok(None),
            }
        }
        Ok(Some(content))
    }

    /// Whether some character can come next. Inside a character none can.
    pub(super) fn continues(
        &mut self,
        stack: StackId,
        content: Content,
    ) -> Result<bool, GoalLimit> {
        if let Content::String { shape, state, .. } = content
            && self.goals.string(shape).is_free
        {
            return Ok(self.goals.string(shape).language.is_accepting(state));
        }
        self.continues_within(stack, content, '\0', char::MAX)
    }

    /// Whether some character of a range can come next.
    pub(super) fn continues_within(
        &mut self,
        stack: StackId,
        content: Content,
        first: char,
        last: char,
    ) -> Result<bool, GoalLimit> {
        for sequence in Utf8Sequences::new(first, last) {
            if self.continues_with(stack, content, sequence.as_slice())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn continues_with(
        &mut self,
        stack: StackId,
        content: Content,
        ranges: &[Utf8Range],
    ) -> Result<bool, GoalLimit> {
        let Some((range, rest)) = ranges.split_first() else { return Ok(true) };
        for byte in range.start..=range.end {
            if let Some(next) = self.step_content(stack, content, byte)?
                && self.continues_with(stack, next, rest)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends the threads after the closing quote, if the content may end here. `trail` has the
    /// quote already.
    pub(super) fn close_content(
        &mut self,
        stack: StackId,
        content: Content,
        trail: Trail,
        after: &mut Vec<Thread>,
    ) -> Result<(), GoalLimit> {
        match content {
            Content::String { shape, state, count } => {
                if self.goals.string(shape).is_complete(state, count) {
                    after.extend(self.complete_value(stack, trail)?);
                }
            }
            Content::Key(key) => {
                // The value that follows may be one that is remembered.
                let start =
                    if self.stacks.keeps_text(stack) { self.texts.len(trail.text) } else { 0 };
                for (goal, stack) in self.close_key(stack, key, start)? {
                    after.push(Thread::gap(stack, Place::Colon(goal), trail));
                }
            }
        }
        Ok(())
    }

    pub(super) fn open_object(&self, stack: StackId) -> Option<OpenObject> {
        match self.stacks.top(stack)? {
            (Frame::Object { shape: id, progress }, parent) => {
                Some(OpenObject { id, shape: Arc::clone(self.goals.object(id)), progress, parent })
            }
            (Frame::Array { .. }, _) => None,
        }
    }

    /// The start of a key, if some key can be written.
    pub(super) fn start_key(&mut self, stack: StackId) -> Result<Option<Content>, GoalLimit> {
        let Some(object) = self.open_object(stack) else { return Ok(None) };
        let progress = self.stacks.progress(object.progress).clone();
        let mut classes: Box<[u32]> = Box::default();
        if self.may_be_extra(&object, &progress) {
            let extra = self.goals.extra_names(object.id)?;
            let mut states = Vec::with_capacity(extra.classes.len());
            for class in &extra.classes {
                let members = self.extra_members(&object, &progress, class, None)?;
                states.push(if members.is_empty() { Dfa::DEAD } else { class.language.start() });
            }
            if states.iter().any(|&state| state != Dfa::DEAD) {
                classes = states.into();
            }
        }
        let key = KeyState {
            declared: (0, object.shape.names.len() as u32),
            length: 0,
            classes,
            typed: Some(Box::default()),
        };
        self.live_key(&object, &progress, key)
    }

    fn step_key(
        &mut self,
        stack: StackId,
        id: KeyId,
        byte: u8,
    ) -> Result<Option<Content>, GoalLimit> {
        let Some(object) = self.open_object(stack) else { return Ok(None) };
        let key = self.keys.get(id);
        let at = key.length as usize;
        let (low, high) = key.declared;
        let names = &object.shape.sorted[low as usize..high as usize];
        let next_byte =
            |index: &u32| object.shape.names[*index as usize].as_bytes().get(at).copied();
        let first = names.partition_point(|index| next_byte(index) < Some(byte));
        let last = names.partition_point(|index| next_byte(index) <= Some(byte));
        let mut typed = key.typed.as_ref().map(|typed| typed.to_vec());
        if let Some(typed) = &mut typed {
            typed.push(byte);
        }
        let mut next = KeyState {
            declared: (low + first as u32, low + last as u32),
            length: key.length + 1,
            classes: key.classes.clone(),
            typed: typed.map(Vec::into_boxed_slice),
        };
        if !next.classes.is_empty() {
            let extra = self.goals.extra_names(object.id)?;
            for (state, class) in next.classes.iter_mut().zip(&extra.classes) {
                *state = class.language.step(*state, byte);
            }
            if next.classes.iter().all(|&state| state == Dfa::DEAD) {
                next.classes = Box::default();
            }
        }
        if next.declared.0 == next.declared.1 {
            next.declared = (0, 0);
        }
        let progress = self.stacks.progress(object.progress).clone();
        self.live_key(&object, &progress, next)
    }

    /// Interns a key if it can still become one that may be written.
    fn live_key(
        &mut self,
        object: &OpenObject,
        progress: &Progress,
        mut key: KeyState,
    ) -> Result<Option<Content>, GoalLimit> {
        let mut live = false;
        // Undecided is only what leads to nothing that is decided.
        let mut beyond: Option<GoalLimit> = None;
        for at in key.declared.0..key.declared.1 {
            match self.allows_declared(object, progress, object.shape.sorted[at as usize]) {
                Ok(true) => {
                    live = true;
                    break;
                }
                Ok(false) => {}
                Err(limit) => beyond = beyond.or(Some(limit)),
            }
        }
        if key.classes.is_empty() {
            key.typed = None;
        } else {
            let extra = self.goals.extra_names(object.id)?;
            live = live || has_fresh_name(&key, object, progress, &extra)?;
            let could_be_taken = key.typed.as_deref().is_some_and(|typed| {
                key.declared.0 < key.declared.1
                    || progress.extras.iter().any(|name| name.as_bytes().starts_with(typed))
            });
            let is_finite =
                key.classes.iter().zip(&extra.classes).any(|(&state, class)| {
                    state != Dfa::DEAD && class.names_from(state) != u64::MAX
                });
            // While members are missing, the plan of how to finish has names for them: a key that
            // is none of these changes nothing about it.
            let is_planned = key
                .typed
                .as_deref()
                .is_some_and(|typed| self.goals.is_planned(object.id, progress, &extra, typed));
            if !could_be_taken && !is_finite && !is_planned {
                key.typed = None;
                // The text is a new name whatever follows: its length says nothing either.
                if key.declared.0 == key.declared.1 {
                    key.length = 0;
                }
            }
        }
        if live {
            return Ok(Some(Content::Key(self.keys.intern(key))));
        }
        if beyond.is_none() && self.may_be_extra(object, progress) {
            beyond.clone_from(&self.goals.extra_names(object.id)?.beyond);
        }
        beyond.map_or(Ok(None), Err)
    }

    /// What may follow a key that ends here: the goal of its value, and the object that has it.
    fn close_key(
        &mut self,
        stack: StackId,
        id: KeyId,
        start: u32,
    ) -> Result<Vec<(GoalId, StackId)>, GoalLimit> {
        let Some(object) = self.open_object(stack) else { return Ok(Vec::new()) };
        let key = self.keys.get(id).clone();
        let progress = self.stacks.progress(object.progress).clone();
        // Among the names that begin like this, the one that ends here is the first.
        if key.declared.0 < key.declared.1 {
            let index = object.shape.sorted[key.declared.0 as usize];
            if object.shape.names[index as usize].len() == key.length as usize {
                if progress.writing.is_some() && object.shape.is_end(index) {
                    return Err(super::record::unknown_value());
                }
                let members = self.declared_members(&object, &progress, index, start)?;
                if progress.pending && !members.is_empty() {
                    return Err(GoalLimit::unsettled());
                }
                return Ok(self.with_members(&object, members));
            }
        }
        if key.classes.is_empty() {
            return Ok(Vec::new());
        }
        let extra = self.goals.extra_names(object.id)?;
        let class = key
            .classes
            .iter()
            .zip(&extra.classes)
            .position(|(state, class)| class.language.is_accepting(*state));
        let Some(class) = class else { return Ok(Vec::new()) };
        let mut recorded = None;
        if let Some(typed) = &key.typed {
            let Ok(name) = std::str::from_utf8(typed) else { return Ok(Vec::new()) };
            if progress.extras.binary_search_by(|extra| (**extra).cmp(name)).is_ok() {
                return Ok(Vec::new());
            }
            recorded = Some(name);
        }
        if progress.pending {
            return Err(GoalLimit::unsettled());
        }
        let members = self.extra_members(&object, &progress, &extra.classes[class], recorded)?;
        Ok(self.with_members(&object, members))
    }

    pub(super) fn with_members(
        &mut self,
        object: &OpenObject,
        members: Vec<(GoalId, Progress)>,
    ) -> Vec<(GoalId, StackId)> {
        members
            .into_iter()
            .map(|(goal, after)| {
                let compares = after.writing.is_some();
                let progress = self.stacks.intern_progress(after);
                let frame = Frame::Object { shape: object.id, progress };
                (goal, self.stacks.push(object.parent, frame, compares))
            })
            .collect()
    }

    /// The ways to write the declared name `index` next: the goal of its value, and the progress
    /// afterwards.
    fn declared_members(
        &mut self,
        object: &OpenObject,
        progress: &Progress,
        index: u32,
        start: u32,
    ) -> Result<Vec<(GoalId, Progress)>, GoalLimit> {
        let order = self.goals.options.order;
        let shape = Arc::clone(&object.shape);
        if !progress.is_open(index, order)
            || order == Order::Schema && index > shape.next_required[progress.next as usize]
        {
            return Ok(Vec::new());
        }
        if !shape.is_bounded() {
            match &self.goals.member_costs(object.id)?[index as usize] {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Vec::new()),
                Err(limit) => return Err(limit.clone()),
            }
            let goal = self.goals.base_goal(shape.members[index as usize]);
            return Ok(vec![(goal, progress.with_declared(index, FormulaId::MET, &shape, order))]);
        }
        if shape.relations.is_some() {
            return self.goals.related_members(object.id, progress, index, start);
        }
        let mut members = Vec::new();
        let rule = shape.members[index as usize];
        let before = self.goals.condition_at(&shape, progress, Some(index));
        for option in self.goals.member_options(rule, before)?.iter() {
            if self.goals.shortest(option.goal)?.is_none() {
                continue;
            }
            let decided = (rule, option.counts);
            let left = self.goals.condition_after(&shape, progress, before, Some(index), decided);
            let after = progress.with_declared(index, left, &shape, order);
            if self.can_finish(object, &after)? {
                members.push((option.goal, after));
            }
        }
        Ok(members)
    }

    /// The ways to write a name of a class next, whose text is recorded now or later.
    fn extra_members(
        &mut self,
        object: &OpenObject,
        progress: &Progress,
        class: &NameClass,
        name: Option<&str>,
    ) -> Result<Vec<(GoalId, Progress)>, GoalLimit> {
        let mut members = Vec::new();
        let order = self.goals.options.order;
        let before = self.goals.condition_at(&object.shape, progress, None);
        for option in self.goals.member_options(class.rule, before)?.iter() {
            if self.goals.shortest(option.goal)?.is_none() {
                continue;
            }
            let decided = (class.rule, option.counts);
            let left = self.goals.condition_after(&object.shape, progress, before, None, decided);
            let mut after = progress.with_pending(left, &object.shape, order);
            if let Some(name) = name {
                after = after.recorded(name);
                after.pending = progress.pending;
            }
            if !object.shape.is_bounded() || self.can_finish(object, &after)? {
                members.push((option.goal, after));
            }
        }
        Ok(members)
    }

    /// Whether the declared name `index` may be written next.
    pub(super) fn allows_declared(
        &mut self,
        object: &OpenObject,
        progress: &Progress,
        index: u32,
    ) -> Result<bool, GoalLimit> {
        Ok(!self.declared_members(object, progress, index, 0)?.is_empty())
    }

    /// Whether the order allows a name that is not declared next.
    fn may_be_extra(&self, object: &OpenObject, progress: &Progress) -> bool {
        let shape = &object.shape;
        self.goals.options.order == Order::Any
            || shape.next_required[progress.next as usize] == shape.names.len() as u32
    }

    /// Whether the object can be finished from here within its bounds on the number of members.
    fn can_finish(&mut self, object: &OpenObject, progress: &Progress) -> Result<bool, GoalLimit> {
        if object.shape.max_properties.is_some_and(|max| progress.count > max) {
            return Ok(false);
        }
        Ok(self.goals.solved_plan(object.id, progress)?.is_some())
    }

    /// Whether `}` may come next.
    pub(super) fn is_closable(&mut self, object: &OpenObject) -> bool {
        let progress = self.stacks.progress(object.progress);
        let condition = progress.condition;
        let shape = &object.shape;
        let has_required =
            match self.goals.options.order {
                Order::Schema => {
                    shape.next_required[progress.next as usize] == shape.names.len() as u32
                }
                Order::Any => shape.is_required.iter().enumerate().all(|(index, required)| {
                    !required || !progress.is_open(index as u32, Order::Any)
                }),
            };
        has_required
            && progress.count >= shape.min_properties
            && self.goals.is_met_at_end(condition)
            && self.goals.relations_may_end(shape, progress)
    }

    /// Bytes of the members that an object still needs.
    fn finish_bytes(&mut self, object: &OpenObject, after: &Progress) -> Result<u64, GoalLimit> {
        let between = (self.goals.separator().len() + self.goals.colon().len()) as u64;
        let mut total = 0;
        for member in self.goals.solved_plan(object.id, after)?.iter().flat_map(|plan| &**plan) {
            let value = self.goals.shortest(member.goal)?.unwrap_or(0);
            total += between + member.key_bytes() + value;
        }
        Ok(total)
    }

    /// The shortest way to go on with a key, up to but without the closing quote.
    pub(super) fn shortest_key(
        &mut self,
        stack: StackId,
        id: KeyId,
    ) -> Result<Option<Vec<u8>>, GoalLimit> {
        let Some(object) = self.open_object(stack) else { return Ok(None) };
        let key = self.keys.get(id).clone();
        let progress = self.stacks.progress(object.progress).clone();
        let mut best: Option<(u64, Vec<u8>)> = None;
        for at in key.declared.0..key.declared.1 {
            let index = object.shape.sorted[at as usize];
            let name = object.shape.names[index as usize].as_bytes();
            let rest = &name[key.length as usize..];
            for (goal, after) in self.declared_members(&object, &progress, index, 0)? {
                let value = self.goals.shortest(goal)?.unwrap_or(0);
                let cost = value + rest.len() as u64 + self.finish_bytes(&object, &after)?;
                if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                    best = Some((cost, rest.to_vec()));
                }
            }
        }
        if !key.classes.is_empty() {
            let extra = self.goals.extra_names(object.id)?;
            let typed = key.typed.clone();
            let fresh = extra.fresh(1, Some(&key.classes), |rest| {
                typed.as_deref().is_some_and(|typed| {
                    let name = [typed, rest].concat();
                    crate::goal::is_taken(&name, &object.shape, &progress)
                })
            });
            for (rest, class) in fresh {
                let class = &extra.classes[class];
                for (goal, after) in self.extra_members(&object, &progress, class, None)? {
                    let value = self.goals.shortest(goal)?.unwrap_or(0);
                    let cost = value + rest.len() as u64 + self.finish_bytes(&object, &after)?;
                    if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                        best = Some((cost, rest.clone()));
                    }
                }
            }
        }
        Ok(best.map(|(_, rest)| rest))
    }
}

/// Whether some name that begins like this is neither declared nor taken.
///
/// # Errors
/// If it depends on a name that is not recorded yet.
fn has_fresh_name(
    key: &KeyState,
    object: &OpenObject,
    progress: &Progress,
    extra: &ExtraNames,
) -> Result<bool, GoalLimit> {
    let mut depends = false;
    for (&state, class) in key.classes.iter().zip(&extra.classes) {
        let names = class.names_from(state);
        if names == 0 {
            continue;
        }
        if names == u64::MAX {
            return Ok(true);
        }
        let taken = match key.typed.as_deref() {
            // A key that can no longer equal a name that is taken is free to go on.
            None => 0,
            Some(typed) => {
                let declared = (key.declared.0..key.declared.1)
                    .map(|at| &*object.shape.names[object.shape.sorted[at as usize] as usize]);
                let written = progress.extras.iter().map(|name| &**name);
                let written = written.filter(|name| name.as_bytes().starts_with(typed));
                declared.chain(written).filter(|name| class.language.accepts(name)).count() as u64
            }
        };
        if names > taken + u64::from(progress.pending) {
            return Ok(true);
        }
        // The name that is not recorded yet may be the last one.
        depends |= names > taken;
    }
    if depends { Err(GoalLimit::unsettled()) } else { Ok(false) }
}
