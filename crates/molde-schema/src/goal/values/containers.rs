//! The first arrays and objects of a goal.

use std::sync::Arc;

use crate::ir::{Demand, Node, NodeId, TypeSet};
use crate::text::quoted;

use super::super::items::ItemState;
use super::super::{
    Alternative, ArrayId, GoalId, GoalLimit, Goals, Member, ObjectId, Progress, is_taken,
};
use super::{ConstantId, Texts};

/// Texts of values that differ, if there are enough of them.
type Listed = Result<Option<Vec<Vec<u8>>>, GoalLimit>;

impl Goals {
    /// Arrays and objects that a goal accepts, by length.
    pub(super) fn first_containers(
        &mut self,
        goal: GoalId,
        count: usize,
    ) -> Result<Texts, GoalLimit> {
        let containers = if let Some(known) = self.values.containers {
            known
        } else {
            let types = TypeSet::ARRAY.union(TypeSet::OBJECT);
            let schema = Arc::make_mut(&mut self.schema);
            schema.nodes.push(Node::of_types(String::new(), types));
            let node = NodeId(schema.nodes.len() as u32 - 1);
            self.values.containers = Some(node);
            node
        };
        let mut rest = self.extended(goal, [Demand::holds(containers)]);
        for &alternative in self.solve(rest)?.alternatives.iter() {
            // Short cuts: what is beyond a limit for them may be found one by one.
            let ways: [fn(&mut Self, Alternative, usize) -> Listed; 2] =
                [Self::containers_by_size, Self::containers_by_parts];
            for way in ways {
                if let Ok(Some(texts)) = way(self, alternative, count) {
                    return Ok((texts, false));
                }
            }
        }
        let mut found = Vec::new();
        while found.len() < count {
            if self.solve(rest)?.shortest.is_none() {
                return Ok((found, true));
            }
            let mut text = Vec::new();
            self.write_value(rest, usize::MAX, &mut text)?;
            let value = self.value(&text)?;
            let node = self.value_node(value)?;
            rest = self.extended(rest, [Demand::fails(node)]);
            found.push(text);
        }
        Ok((found, false))
    }

    fn containers_by_size(&mut self, alternative: Alternative, count: usize) -> Listed {
        match alternative {
            Alternative::Array(id) => self.arrays_by_length(id, count),
            Alternative::Object(id) => self.objects_by_names(id, count),
            _ => Ok(None),
        }
    }

    fn containers_by_parts(&mut self, alternative: Alternative, count: usize) -> Listed {
        match alternative {
            Alternative::Array(id) => self.arrays_by_items(id, count),
            Alternative::Object(id) => self.objects_by_members(id, count),
            _ => Ok(None),
        }
    }

    /// Arrays that differ in their number of items; `None` where those are bounded or counted.
    fn arrays_by_length(&mut self, id: ArrayId, count: usize) -> Listed {
        let shape = Arc::clone(self.array(id));
        if !shape.counters.is_empty() || shape.max_items.is_some() {
            return Ok(None);
        }
        // The items that it cannot do without, and more.
        let mut items: Vec<Vec<u8>> = Vec::new();
        let start = ItemState::start(&shape);
        let more = self.base_goal(shape.items);
        if shape.is_unique {
            let plan = self.distinct_plan(id, 0, &start, None)?.unwrap_or_default();
            if plan.len() < shape.prefix.len() {
                return Ok(None);
            }
            let own: Vec<ConstantId> = plan.iter().map(|&(_, value)| value).collect();
            let others = self.first_values(more, count + own.len())?.found;
            let others = others.iter().copied().filter(|value| !own.contains(value));
            let all: Vec<ConstantId> = own.iter().copied().chain(others.take(count)).collect();
            if all.len() < own.len() + count {
                return Ok(None);
            }
            items.extend(all.into_iter().map(|value| self.value_text(value).to_vec()));
        } else {
            let Some(plan) = self.solved_item_plan(&shape, 0, &start)? else { return Ok(None) };
            let mut goals: Vec<GoalId> = plan.goals().collect();
            for at in goals.len()..shape.prefix.len() {
                goals.push(self.base_goal(shape.rule(at as u64)));
            }
            goals.extend(std::iter::repeat_n(more, count));
            for goal in goals {
                if self.shortest(goal)?.is_none() {
                    return Ok(None);
                }
                let mut text = Vec::new();
                self.write_value(goal, usize::MAX, &mut text)?;
                items.push(text);
            }
        }
        let separator = self.separator();
        let least = items.len() - count;
        let text = |length: usize| [b"[", &*items[..length].join(separator), b"]"].concat();
        Ok(Some((least..least + count).map(text).collect()))
    }

    /// Arrays that differ in the values of the items which they cannot do without; `None` if there
    /// are not so many, or all items must differ.
    fn arrays_by_items(&mut self, id: ArrayId, count: usize) -> Listed {
        let shape = Arc::clone(self.array(id));
        if shape.is_unique {
            return Ok(None);
        }
        let start = ItemState::start(&shape);
        let Some(plan) = self.solved_item_plan(&shape, 0, &start)? else { return Ok(None) };
        let mut goals: Vec<GoalId> = plan.goals().collect();
        let mut texts: Vec<Vec<u8>> = Vec::new();
        loop {
            // Where two items must be equal, items with the same goal stay so.
            let mut lists: Vec<Arc<[ConstantId]>> = Vec::new();
            let mut places = Vec::with_capacity(goals.len());
            for (at, &goal) in goals.iter().enumerate() {
                match goals[..at].iter().position(|&known| known == goal) {
                    Some(first) if shape.repeats => places.push(places[first]),
                    _ => {
                        places.push(lists.len());
                        lists.push(self.first_values(goal, count)?.found);
                    }
                }
            }
            for row in choices(&lists, count - texts.len()) {
                let items = places.iter().map(|&at| self.value_text(row[at]).to_vec());
                let items: Vec<Vec<u8>> = items.collect();
                texts.push([b"[", &*items.join(self.separator()), b"]"].concat());
            }
            // One more item makes another array, where nothing is asked of it.
            let length = goals.len() as u64;
            let is_last = !shape.counters.is_empty()
                || shape.repeats
                || shape.max_items.is_some_and(|max| length >= max);
            if texts.len() >= count || is_last {
                break;
            }
            goals.push(self.base_goal(shape.rule(length)));
        }
        Ok((texts.len() >= count).then_some(texts))
    }

    /// Objects that differ in the name of one member; `None` where members are bounded or names
    /// few.
    fn objects_by_names(&mut self, id: ObjectId, count: usize) -> Listed {
        let shape = Arc::clone(self.object(id));
        if shape.is_bounded() {
            return Ok(None);
        }
        let start = Progress::start(&shape);
        let members = self.solved_plan(id, &start)?.unwrap_or_default();
        let extra = self.extra_names(id)?;
        let names = extra.fresh(count, None, |name| is_taken(name, &shape, &start));
        let mut texts = Vec::with_capacity(count);
        for (name, class) in names.into_iter().take(count) {
            let Ok(name) = String::from_utf8(name) else { continue };
            let goal = self.base_goal(extra.classes[class].rule);
            let own = Member { name: name.into(), goal };
            let all: Vec<Member> = members.iter().cloned().chain([own]).collect();
            let mut text = b"{".to_vec();
            self.write_members(&all, true, usize::MAX, &mut text)?;
            text.push(b'}');
            texts.push(text);
        }
        Ok((texts.len() == count).then_some(texts))
    }

    /// Objects that differ in the values of the members which they cannot do without; `None` if
    /// there are not so many.
    fn objects_by_members(&mut self, id: ObjectId, count: usize) -> Listed {
        let start = Progress::start(self.object(id));
        let Some(members) = self.solved_plan(id, &start)? else { return Ok(None) };
        let mut lists: Vec<Arc<[ConstantId]>> = Vec::with_capacity(members.len());
        for member in members.iter() {
            lists.push(self.first_values(member.goal, count)?.found);
        }
        let rows = choices(&lists, count);
        if rows.len() < count {
            return Ok(None);
        }
        let mut texts = Vec::with_capacity(count);
        for row in rows {
            let mut text = b"{".to_vec();
            for (index, (member, value)) in members.iter().zip(row).enumerate() {
                if index > 0 {
                    text.extend(self.separator());
                }
                text.extend(quoted(&member.name));
                text.extend(self.colon());
                text.extend(&*self.value_text(value));
            }
            text.push(b'}');
            texts.push(text);
        }
        Ok(Some(texts))
    }
}

/// Ways to choose one of each list, so many or all.
fn choices(lists: &[Arc<[ConstantId]>], count: usize) -> Vec<Vec<ConstantId>> {
    let total = lists.iter().fold(1, |total: usize, list| total.saturating_mul(list.len()));
    (0..total.min(count))
        .map(|mut number| {
            let mut row = Vec::with_capacity(lists.len());
            for list in lists {
                row.push(list[number % list.len()]);
                number /= list.len();
            }
            row
        })
        .collect()
}
