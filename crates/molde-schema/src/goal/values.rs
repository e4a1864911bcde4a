//! Values that are known by name: those that items of arrays are compared with, and the first
//! values of goals.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::constant::{canonical, constant};
use crate::dfa::Dfa;
use crate::document::Document;
use crate::ir::{Applicator, Demand, Node, NodeId, TypeSet};
use crate::number::{Decimal, NumberAutomaton, NumberLimits, NumberSpec};
use crate::options::Limits;
use crate::text::{escape_into, quoted, short_escape};

use super::items::ItemState;
use super::{Alternative, GoalId, GoalLimit, Goals, NumberId, ObjectId, Progress, StringShape};

/// A value that has come up; equal values have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConstantId(u32);

/// All values that have come up.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// By a text that equal values share.
    ids: FxHashMap<Box<str>, ConstantId>,
    texts: Vec<Arc<[u8]>>,
    bytes: usize,
    /// The nodes of values, where a goal asks for one.
    nodes: FxHashMap<ConstantId, NodeId>,
    /// The nodes that one of some values satisfies.
    choices: FxHashMap<Box<[ConstantId]>, NodeId>,
    /// The first values of goals.
    lists: FxHashMap<GoalId, FirstValues>,
    /// How many questions for endlessly many values are being answered, one for the other.
    asking: usize,
    /// The goals of which the first values are being listed.
    listing: Vec<GoalId>,
    /// The node that arrays and objects satisfy.
    containers: Option<NodeId>,
}

impl Values {
    pub(super) fn memory_usage(&self) -> usize {
        self.bytes + self.nodes.len() * size_of::<Node>()
    }
}

/// The first values of a goal, those with the shortest texts first.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstValues {
    pub(crate) found: Arc<[ConstantId]>,
    /// Whether these are all.
    pub(crate) is_complete: bool,
}

/// Texts by length, and whether they are all there are.
type Texts = (Vec<Vec<u8>>, bool);

/// Texts of values that differ, if there are enough of them.
type Listed = Result<Option<Vec<Vec<u8>>>, GoalLimit>;

/// How far the question for endlessly many values looks into containers.
pub(super) const ENDLESS_DEPTH: usize = 4;

impl Goals {
    /// The value with a text.
    ///
    /// # Errors
    /// `distinct_values` if there are too many.
    pub(crate) fn value(&mut self, text: &[u8]) -> Result<ConstantId, GoalLimit> {
        let document = parse(text)?;
        let key = canonical(&document, document.root());
        if let Some(&known) = self.values.ids.get(key.as_str()) {
            return Ok(known);
        }
        let most = self.options.limits.distinct_values;
        if self.values.texts.len() >= most {
            return Err(GoalLimit {
                name: "distinct_values",
                limit: most as u64,
                unit: "values that items are compared with",
                pointer: String::new(),
            });
        }
        let id = ConstantId(self.values.texts.len() as u32);
        self.values.bytes += 2 * text.len() + 96;
        self.values.texts.push(text.into());
        self.values.ids.insert(key.into(), id);
        Ok(id)
    }

    /// A text of a value.
    pub(crate) fn value_text(&self, value: ConstantId) -> Arc<[u8]> {
        Arc::clone(&self.values.texts[value.0 as usize])
    }

    /// The node that only this value satisfies.
    pub(super) fn value_node(&mut self, value: ConstantId) -> Result<NodeId, GoalLimit> {
        if let Some(&known) = self.values.nodes.get(&value) {
            return Ok(known);
        }
        let document = parse(&self.value_text(value))?;
        let schema = Arc::make_mut(&mut self.schema);
        let node =
            constant(&document, "", document.root(), &NumberLimits::unbounded(), &mut schema.nodes)
                .map_err(|_| too_long())?;
        self.values.nodes.insert(value, node);
        Ok(node)
    }

    /// The node that only the value with a text satisfies.
    pub(crate) fn constant(&mut self, text: &[u8]) -> Result<NodeId, GoalLimit> {
        let value = self.value(text)?;
        self.value_node(value)
    }

    /// The node that each of these values satisfies, and nothing else.
    pub(crate) fn one_of_values(&mut self, values: &[ConstantId]) -> Result<NodeId, GoalLimit> {
        if let Some(&known) = self.values.choices.get(values) {
            return Ok(known);
        }
        let nodes =
            values.iter().map(|&value| self.value_node(value)).collect::<Result<Vec<_>, _>>()?;
        let mut node = Node::of_types(String::new(), TypeSet::ALL);
        node.applicators.push(Applicator::Constants(nodes));
        let schema = Arc::make_mut(&mut self.schema);
        schema.nodes.push(node);
        let id = NodeId(schema.nodes.len() as u32 - 1);
        self.values.choices.insert(values.into(), id);
        Ok(id)
    }

    /// At least the `count` first values of a goal, or all of them. More of them begin with the
    /// same.
    pub(super) fn first_values(
        &mut self,
        goal: GoalId,
        count: usize,
    ) -> Result<FirstValues, GoalLimit> {
        let known = self.values.lists.get(&goal);
        if let Some(known) = known
            && (known.is_complete || known.found.len() >= count)
        {
            return Ok(known.clone());
        }
        let count = count.max(known.map_or(0, |known| 2 * known.found.len()));
        if self.values.listing.contains(&goal) {
            return Err(GoalLimit {
                name: "distinct_items",
                limit: 0,
                unit: "recursions through `uniqueItems`",
                pointer: self.pointer(goal),
            });
        }
        self.values.listing.push(goal);
        let list = self.find_first_values(goal, count);
        self.values.listing.pop();
        let list = list?;
        self.values.lists.insert(goal, list.clone());
        Ok(list)
    }

    fn find_first_values(&mut self, goal: GoalId, count: usize) -> Result<FirstValues, GoalLimit> {
        let mut texts: Vec<(usize, usize, Vec<u8>)> = Vec::new();
        let mut is_complete = true;
        let mut add = |(list, complete): Texts, at: usize| {
            is_complete &= complete;
            texts.extend(list.into_iter().map(|text| (text.len(), at, text)));
        };
        let alternatives = self.solve(goal)?.alternatives;
        let mut has_containers = false;
        for (at, &alternative) in alternatives.iter().enumerate() {
            match alternative {
                Alternative::Literal(literal) => add((vec![literal.text().to_vec()], true), at),
                Alternative::Number(id) => add(self.first_numbers(id, count)?, at),
                Alternative::String(id) => {
                    let shape = Arc::clone(self.string(id));
                    let steps = self.options.limits.item_steps;
                    add(first_strings(&shape, count, steps)?, at);
                }
                Alternative::Array(_) | Alternative::Object(_) => has_containers = true,
            }
        }
        // Where scalars are enough, containers are left out.
        let mut has_endless_scalars = false;
        for &alternative in alternatives.iter() {
            has_endless_scalars |= self.is_endless(alternative, 0)?;
        }
        if has_containers && has_endless_scalars {
            add((Vec::new(), false), alternatives.len());
        } else if has_containers {
            add(self.first_containers(goal, count)?, alternatives.len());
        }
        // Of one alternative they come by length already, so the order is that of a merge.
        texts.sort_by_key(|&(length, at, _)| (length, at));
        let mut found = Vec::with_capacity(texts.len());
        for (_, _, text) in texts {
            let value = self.value(&text)?;
            if !found.contains(&value) {
                found.push(value);
            }
            if found.len() == count && !is_complete {
                break;
            }
        }
        Ok(FirstValues { found: found.into(), is_complete })
    }

    /// Numbers by the length of their shortest text.
    fn first_numbers(&mut self, id: NumberId, count: usize) -> Result<Texts, GoalLimit> {
        let specs = self.number_specs[id.0 as usize].clone();
        let mut found = Vec::new();
        let mut excluded: Vec<Decimal> = Vec::new();
        while found.len() < count {
            let rest: Vec<NumberSpec> = specs
                .iter()
                .map(|spec| {
                    let mut spec = spec.clone();
                    spec.excluded.extend(excluded.iter().cloned());
                    spec
                })
                .collect();
            let mut automaton =
                NumberAutomaton::new(&rest, self.options.number_style, &self.number_limits)
                    .map_err(|_| too_long())?;
            if automaton.is_empty() {
                return Ok((found, true));
            }
            let start = automaton.start();
            let text = automaton.shortest(start);
            let spelling = std::str::from_utf8(&text).map_err(|_| too_long())?;
            excluded.push(
                Decimal::parse(spelling, &NumberLimits::unbounded()).map_err(|_| too_long())?,
            );
            if let [only] = specs.as_slice()
                && let Some(values) = &only.one_of
                && values.len() == found.len() + 1
            {
                found.push(text);
                return Ok((found, true));
            }
            found.push(text);
        }
        Ok((found, false))
    }

    /// Whether the schema has numbers that take many digits.
    pub(crate) fn has_long_numbers(&self) -> bool {
        let mut specs = self.schema.nodes.iter().filter_map(|node| node.number.as_deref());
        specs.any(|spec| spec.numbers().any(Decimal::is_long))
    }

    /// The values that a list of numbers has.
    pub(crate) fn listed_numbers(&self, id: NumberId) -> Vec<Decimal> {
        let specs = self.number_specs[id.0 as usize].iter();
        specs.flat_map(|spec| spec.one_of.iter().flatten().cloned()).collect()
    }

    /// The numbers of an automaton without some values; `None` if none are left.
    pub(crate) fn number_without(
        &mut self,
        id: NumberId,
        values: &[Decimal],
    ) -> Result<Option<NumberId>, GoalLimit> {
        let without = NumberSpec { excluded: values.to_vec(), ..NumberSpec::default() };
        self.number_variant(id, &without)
    }

    /// Of some values those that an automaton accepts; `None` if it accepts none.
    pub(crate) fn number_within(
        &mut self,
        id: NumberId,
        values: &[Decimal],
    ) -> Result<Option<NumberId>, GoalLimit> {
        if values.is_empty() {
            return Ok(None);
        }
        self.number_variant(id, &NumberSpec::from_values(values.to_vec()))
    }

    fn number_variant(
        &mut self,
        id: NumberId,
        more: &NumberSpec,
    ) -> Result<Option<NumberId>, GoalLimit> {
        let root = self.root();
        let specs = self.number_specs[id.0 as usize].iter().map(|spec| spec.intersect(more));
        let specs = specs.collect();
        Ok(match self.number_alternative(specs, root)? {
            Some(Alternative::Number(id)) => Some(id),
            _ => None,
        })
    }

    /// A spelling of a number that begins with a byte, if the automaton accepts one.
    pub(crate) fn number_text(
        &self,
        id: NumberId,
        value: &Decimal,
        first: u8,
    ) -> Result<Option<Vec<u8>>, GoalLimit> {
        let only = NumberSpec::from_values(vec![value.clone()]);
        let specs: Vec<NumberSpec> =
            self.number_specs[id.0 as usize].iter().map(|spec| spec.intersect(&only)).collect();
        let mut automaton =
            NumberAutomaton::new(&specs, self.options.number_style, &self.number_limits)
                .map_err(|_| too_long())?;
        let start = automaton.start();
        let Some(state) = automaton.step(start, first) else { return Ok(None) };
        Ok(Some([&[first], &*automaton.shortest(state)].concat()))
    }

    /// Arrays and objects that a goal accepts, by length.
    fn first_containers(&mut self, goal: GoalId, count: usize) -> Result<Texts, GoalLimit> {
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
    fn arrays_by_length(&mut self, id: super::ArrayId, count: usize) -> Listed {
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
    fn arrays_by_items(&mut self, id: super::ArrayId, count: usize) -> Listed {
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
        let names = extra.fresh(count, None, |name| super::is_taken(name, &shape, &start));
        let mut texts = Vec::with_capacity(count);
        for (name, class) in names.into_iter().take(count) {
            let Ok(name) = String::from_utf8(name) else { continue };
            let goal = self.base_goal(extra.classes[class].rule);
            let own = super::Member { name: name.into(), goal };
            let all: Vec<super::Member> = members.iter().cloned().chain([own]).collect();
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

    /// Whether a goal is known to have more values than any array can hold.
    pub(super) fn is_endless_goal(
        &mut self,
        goal: GoalId,
        depth: usize,
    ) -> Result<bool, GoalLimit> {
        if depth == 0 || self.values.asking >= ENDLESS_DEPTH {
            return Ok(false);
        }
        for &alternative in self.solve(goal)?.alternatives.iter() {
            self.values.asking += 1;
            let answer = self.is_endless(alternative, depth);
            self.values.asking -= 1;
            // What is beyond a limit is not known to be.
            if answer.unwrap_or(false) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_endless(&mut self, alternative: Alternative, depth: usize) -> Result<bool, GoalLimit> {
        Ok(match alternative {
            Alternative::Literal(_) => false,
            Alternative::String(id) => self.string(id).is_endless(),
            Alternative::Number(id) => {
                let specs = self.number_specs[id.0 as usize].clone();
                specs.iter().any(|spec| {
                    let unbounded = spec.minimum.is_none() || spec.maximum.is_none();
                    spec.one_of.is_none()
                        && unbounded
                        && NumberAutomaton::new(
                            std::slice::from_ref(spec),
                            self.options.number_style,
                            &self.number_limits,
                        )
                        .is_ok_and(|automaton| !automaton.is_empty())
                })
            }
            Alternative::Array(_) | Alternative::Object(_) if depth == 0 => false,
            Alternative::Array(id) => {
                let shape = Arc::clone(self.array(id));
                let item = self.base_goal(shape.items);
                if shape.counters.is_empty() && shape.max_items.is_none() && !shape.is_unique {
                    return Ok(self.shortest(item)?.is_some());
                }
                // Any item that it cannot do without may have any of its values.
                let start = ItemState::start(&shape);
                let goals: Vec<GoalId> = if shape.is_unique {
                    let plan = self.distinct_plan(id, 0, &start, None)?.unwrap_or_default();
                    plan.iter().map(|&(goal, _)| goal).collect()
                } else {
                    let plan = self.solved_item_plan(&shape, 0, &start)?.unwrap_or_default();
                    plan.items.into_iter().chain(plan.repeat.map(|(goal, _)| goal)).collect()
                };
                for goal in goals {
                    if self.is_endless_goal(goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                // So may the first one, if nothing else is asked of it.
                shape.counters.is_empty() && shape.min_items == 0 && shape.max_items != Some(0) && {
                    let first = self.base_goal(shape.rule(0));
                    self.is_endless_goal(first, depth - 1)?
                }
            }
            Alternative::Object(id) => {
                let shape = Arc::clone(self.object(id));
                let Some(members) = self.solved_plan(id, &Progress::start(&shape))? else {
                    return Ok(false);
                };
                for member in members.iter() {
                    if self.is_endless_goal(member.goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                if shape.is_bounded() {
                    return Ok(false);
                }
                // Members that may be there, and names that may be.
                let costs = self.member_costs(id)?;
                for (&rule, cost) in shape.members.iter().zip(costs.iter()) {
                    let goal = self.base_goal(rule);
                    if matches!(cost, Ok(Some(_))) && self.is_endless_goal(goal, depth - 1)? {
                        return Ok(true);
                    }
                }
                let extra = self.extra_names(id)?;
                extra
                    .classes
                    .iter()
                    .any(|class| class.names_from(class.language.start()) == u64::MAX)
            }
        })
    }
}

fn parse(text: &[u8]) -> Result<Document, GoalLimit> {
    let text = std::str::from_utf8(text).map_err(|_| too_long())?;
    let limits = Limits { schema_depth: usize::MAX, schema_bytes: usize::MAX, ..Limits::default() };
    Document::parse(text, &limits).map_err(|_| too_long())
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

/// A value that is not compared.
fn too_long() -> GoalLimit {
    GoalLimit {
        name: "completion_bytes",
        limit: 0,
        unit: "bytes of a value that is compared",
        pointer: String::new(),
    }
}

/// The bytes of contents, those that are easy to read first.
fn byte_rank(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => byte - b'a',
        b'0'..=b'9' => 26 + (byte - b'0'),
        b'A'..=b'Z' => 36 + (byte - b'A'),
        _ => 62,
    }
}

/// Bytes with which a byte of a content is written.
fn written_len(byte: u8) -> usize {
    match short_escape(byte) {
        Some(_) => 2,
        None if byte < b' ' => 6,
        None => 1,
    }
}

/// The first strings of a shape, quoted, by the length of their texts.
fn first_strings(shape: &StringShape, count: usize, steps: usize) -> Result<Texts, GoalLimit> {
    let mut search =
        WordSearch { shape, steps, found: Vec::new(), count, dead: FxHashSet::default() };
    let shortest = shape.shortest_text(None).len();
    // Of a finite language no word has more bytes than there are states.
    let is_finite = shape.language.count_up_to(u64::MAX) != u64::MAX;
    let most_bytes = match (is_finite, shape.max_length) {
        (true, _) => Some(shape.language.states()),
        (false, Some(max)) => usize::try_from(max.saturating_mul(4)).ok(),
        (false, None) => None,
    };
    let longest = most_bytes.map(|bytes| bytes.saturating_mul(6));
    let mut length = shortest;
    while search.found.len() < count {
        if longest.is_some_and(|longest| length > longest) {
            return Ok((search.found, true));
        }
        search.run(length)?;
        length += 1;
    }
    Ok((search.found, false))
}

/// Lists the words of a shape that are written with a number of bytes.
struct WordSearch<'a> {
    shape: &'a StringShape,
    /// Steps that are left.
    steps: usize,
    found: Vec<Vec<u8>>,
    count: usize,
    /// States, code points and bytes left from which nothing was found.
    dead: FxHashSet<(u32, u64, usize)>,
}

/// A position in the search: what is there, and the bytes that are still to be tried.
struct Level {
    key: (u32, u64, usize),
    bytes: Vec<(u8, u32)>,
    found_before: usize,
}

impl WordSearch<'_> {
    fn run(&mut self, length: usize) -> Result<(), GoalLimit> {
        let mut word: Vec<u8> = Vec::new();
        let start = self.level((self.shape.language.start(), 0, length));
        let mut levels = vec![start];
        while let Some(level) = levels.last_mut() {
            let Some((byte, target)) = level.bytes.pop() else {
                if level.found_before == self.found.len() {
                    self.dead.insert(level.key);
                }
                levels.pop();
                word.pop();
                continue;
            };
            let (_, points, left) = level.key;
            self.steps = self.steps.checked_sub(1).ok_or_else(|| GoalLimit {
                name: "item_steps",
                limit: 0,
                unit: "steps in the search for strings that differ",
                pointer: String::new(),
            })?;
            let points = points + u64::from(byte & 0xC0 != 0x80);
            let left = left - written_len(byte);
            word.push(byte);
            if left == 0 {
                if self.shape.is_complete(target, points) && std::str::from_utf8(&word).is_ok() {
                    let mut text = b"\"".to_vec();
                    escape_into(&word, &mut text);
                    text.push(b'"');
                    self.found.push(text);
                    if self.found.len() >= self.count {
                        return Ok(());
                    }
                }
                word.pop();
                continue;
            }
            let next = self.level((target, self.shape.saturate(points), left));
            levels.push(next);
        }
        Ok(())
    }

    fn level(&mut self, key: (u32, u64, usize)) -> Level {
        let (state, points, left) = key;
        let mut level = Level { key, bytes: Vec::new(), found_before: self.found.len() };
        if left == 0 {
            // Only the empty word is asked for like this.
            if self.shape.is_complete(state, points) {
                self.found.push(b"\"\"".to_vec());
            }
            return level;
        }
        if self.dead.contains(&key) {
            return level;
        }
        for transition in self.shape.language.transitions(state) {
            let least = self.shape.language.shortest_len(transition.target) as usize;
            for byte in transition.lo..=transition.hi {
                let points = points + u64::from(byte & 0xC0 != 0x80);
                if transition.target != Dfa::DEAD
                    && left >= least.saturating_add(written_len(byte))
                    && self.shape.is_live(transition.target, points)
                {
                    level.bytes.push((byte, transition.target));
                }
            }
        }
        // A stack: what comes first is last.
        level.bytes.sort_by_key(|&(byte, _)| std::cmp::Reverse((byte_rank(byte), byte)));
        level
    }
}
