//! The text of a short value.

use std::sync::Arc;

use crate::text::quoted;

use super::items::ItemState;
use super::{Alternative, ArrayId, GoalId, GoalLimit, Goals, Member, ObjectId, Progress};

/// What is left to write, in reverse.
enum Part {
    Value(GoalId),
    Text(Vec<u8>),
}

impl Goals {
    /// Appends the shortest value of a goal, or at least so much of it that the whole text has
    /// `enough` bytes. A stack of its own: nesting is as deep as the schema
    /// demands.
    pub(crate) fn write_value(
        &mut self,
        goal: GoalId,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        let mut parts = vec![Part::Value(goal)];
        while text.len() < enough
            && let Some(part) = parts.pop()
        {
            let goal = match part {
                Part::Text(bytes) => {
                    text.extend(bytes);
                    continue;
                }
                Part::Value(goal) => goal,
            };
            let Some((_, alternative)) = self.solve(goal)?.shortest else { continue };
            match alternative {
                Alternative::Literal(literal) => text.extend(literal.text()),
                Alternative::Number(id) => {
                    let automaton = self.number(id);
                    let start = automaton.start();
                    text.extend(automaton.shortest(start));
                }
                Alternative::String(id) => {
                    text.push(b'"');
                    let left = enough.saturating_sub(text.len());
                    text.extend(self.string(id).shortest_text_start(None, left));
                    text.push(b'"');
                }
                Alternative::Array(id) => {
                    let shape = Arc::clone(self.array(id));
                    let state = ItemState::start(&shape);
                    text.push(b'[');
                    parts.push(Part::Text(b"]".to_vec()));
                    let first = parts.len();
                    if shape.is_unique {
                        let plan = self.distinct_plan(id, 0, &state, None)?.unwrap_or_default();
                        for &(_, value) in plan.iter().rev() {
                            parts.push(Part::Text(self.value_text(value).to_vec()));
                            parts.push(Part::Text(self.separator().to_vec()));
                        }
                    } else {
                        let plan = self.solved_item_plan(&shape, 0, &state)?.unwrap_or_default();
                        for goal in plan.goals().rev() {
                            parts.push(Part::Value(goal));
                            parts.push(Part::Text(self.separator().to_vec()));
                        }
                    }
                    if parts.len() > first {
                        parts.pop();
                    }
                }
                Alternative::Object(id) if self.object(id).relations.is_some() => {
                    self.write_related(id, text)?;
                }
                Alternative::Object(id) => {
                    let start = Progress::start(self.object(id));
                    let members = self.solved_plan(id, &start)?;
                    text.push(b'{');
                    parts.push(Part::Text(b"}".to_vec()));
                    for (index, member) in members.unwrap_or_default().iter().enumerate().rev() {
                        parts.push(Part::Value(member.goal));
                        parts.push(Part::Text(self.key(member, index == 0)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends the items with which an open array can be finished, and nothing else.
    pub(crate) fn write_items(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
        is_first: bool,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        let shape = Arc::clone(self.array(id));
        if shape.is_unique {
            let plan = self.distinct_plan(id, count, state, None)?.unwrap_or_default();
            for (index, &(_, value)) in plan.iter().enumerate() {
                if text.len() >= enough {
                    break;
                }
                if index > 0 || !is_first {
                    text.extend(self.separator());
                }
                text.extend(&*self.value_text(value));
            }
            return Ok(());
        }
        let plan = self.solved_item_plan(&shape, count, state)?.unwrap_or_default();
        for (index, goal) in plan.goals().enumerate() {
            if text.len() >= enough {
                break;
            }
            if index > 0 || !is_first {
                text.extend(self.separator());
            }
            self.write_value(goal, enough, text)?;
        }
        Ok(())
    }

    /// Appends an item with a goal, and the items with which the array, which has counted it already,
    /// can be finished then.
    pub(crate) fn write_item(
        &mut self,
        id: ArrayId,
        count: u64,
        state: &ItemState,
        goal: GoalId,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        if self.array(id).is_unique {
            let plan = self.distinct_plan(id, count, state, Some(goal))?.unwrap_or_default();
            for (index, &(_, value)) in plan.iter().enumerate() {
                if index > 0 {
                    text.extend(self.separator());
                }
                text.extend(&*self.value_text(value));
            }
            return Ok(());
        }
        let mut item = Vec::new();
        self.write_value(goal, usize::MAX, &mut item)?;
        let value = self.value(&item)?;
        let repeated = state.repeated || state.values.contains(&value);
        let after = ItemState { repeated, ..state.with_value(value) };
        text.extend(item);
        self.write_items(id, count, &after, false, usize::MAX, text)
    }

    /// Appends an object whose members are related to each other: each is written such that what
    /// follows has a value, and what follows depends on it. Recursive in the nesting of such objects
    /// only.
    fn write_related(&mut self, id: ObjectId, text: &mut Vec<u8>) -> Result<(), GoalLimit> {
        let shape = std::sync::Arc::clone(self.object(id));
        let mut progress = Progress::start(&shape);
        let mut is_first = true;
        text.push(b'{');
        while let Some(members) = self.solved_plan(id, &progress)?
            && let Some(member) = members.first()
        {
            let index = shape.names.iter().position(|name| *name == member.name);
            let Some(index) = index else {
                // Others come last, and depend on nothing.
                self.write_members(&members, is_first, usize::MAX, text)?;
                break;
            };
            text.extend(self.key(member, is_first));
            is_first = false;
            let before = text.len();
            let ways = self.related_members(id, &progress, index as u32, 0)?;
            let Some((goal, after)) = ways.into_iter().next() else { break };
            self.write_value(goal, usize::MAX, text)?;
            progress = self.recorded(id, &after, &text[before..])?;
        }
        text.push(b'}');
        Ok(())
    }

    /// Appends members to an object.
    pub(crate) fn write_members(
        &mut self,
        members: &[Member],
        is_first: bool,
        enough: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), GoalLimit> {
        for (index, member) in members.iter().enumerate() {
            if text.len() >= enough {
                break;
            }
            text.extend(self.key(member, index == 0 && is_first));
            self.write_value(member.goal, enough, text)?;
        }
        Ok(())
    }

    /// A key with what stands around it.
    fn key(&self, member: &Member, is_first: bool) -> Vec<u8> {
        let mut key = Vec::new();
        if !is_first {
            key.extend(self.separator());
        }
        key.extend(quoted(&member.name));
        key.extend(self.colon());
        key
    }
}
