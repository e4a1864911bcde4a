//! Makes a value that was read fit the schema, where it is clear how.

use serde_json::{Map, Value};

use super::number::{self, Wanted};
use super::reader::Node;
use super::{ChangedNumber, Repair, RepairKind, unit_of};
use crate::fields::push_segment;
use crate::validate::same;

/// Levels of schemas that are followed, `$ref`s included.
const LEVELS: usize = 64;

/// The value with what does not fit changed or left out; `None` if something in it is no value.
pub(super) fn fit(
    schema: &Value,
    node: &Node,
    repairs: &mut Vec<Repair>,
    changed: &mut Vec<ChangedNumber>,
) -> Option<Node> {
    Fit { root: schema, repairs, changed }.value(&[schema], node, "")
}

struct Fit<'s, 'l> {
    root: &'s Value,
    repairs: &'l mut Vec<Repair>,
    changed: &'l mut Vec<ChangedNumber>,
}

/// What a place of the schema may hold, over all alternatives.
#[expect(clippy::struct_excessive_bools, reason = "one for each type of JSON")]
#[derive(Default)]
struct Expected<'s> {
    null: bool,
    boolean: bool,
    number: bool,
    integer: bool,
    string: bool,
    /// The values, if the schema lists them.
    constants: Vec<&'s Value>,
    objects: Vec<&'s Map<String, Value>>,
    arrays: Vec<&'s Map<String, Value>>,
    unit: Option<i64>,
}

impl Expected<'_> {
    fn wanted(&self) -> Wanted {
        Wanted { integer: self.integer && !self.number, unit: self.unit }
    }

    fn takes_text(&self, text: &str) -> bool {
        self.string
            && (self.constants.is_empty()
                || self.constants.iter().any(|value| same(value, &Value::from(text))))
    }
}

impl<'s> Fit<'s, '_> {
    fn value(&mut self, schemas: &[&'s Value], node: &Node, at: &str) -> Option<Node> {
        let mut expected = Expected::default();
        for schema in schemas {
            self.expect(schema, &mut expected, LEVELS);
        }
        match node {
            Node::Text(text) => self.text(&expected, text, false, at),
            Node::Bare(text) => self.text(&expected, text, true, at),
            Node::Number(text) => Some(self.number(&expected, text, at)),
            Node::Array(items) => self.array(&expected, items, at),
            Node::Object(members) => self.object(&expected, members, at),
            Node::Null | Node::Boolean(_) => Some(node.clone()),
        }
    }

    fn text(&mut self, expected: &Expected<'_>, text: &str, bare: bool, at: &str) -> Option<Node> {
        let before = if bare { text.to_owned() } else { Node::Text(text.to_owned()).to_json() };
        let mut log = |kind, node: Node| {
            self.repairs.push(Repair::new(kind, at, before.clone(), node.to_json()));
            node
        };
        if expected.takes_text(text) {
            let node = Node::Text(text.to_owned());
            return Some(if bare { log(RepairKind::UnquotedText, node) } else { node });
        }
        if expected.null && says_nothing(text) {
            return Some(log(RepairKind::NullText, Node::Null));
        }
        if expected.boolean {
            let word = text.trim().to_ascii_lowercase();
            if let Ok(value) = word.parse::<bool>() {
                return Some(log(RepairKind::BooleanText, Node::Boolean(value)));
            }
        }
        let untyped = !expected.string && !expected.null && !expected.boolean;
        if (expected.number || expected.integer || (bare && untyped))
            && let Some(number) = number::read(text, expected.wanted())
        {
            let kind = if bare { RepairKind::NumberForm } else { RepairKind::NumberText };
            self.changed.push(ChangedNumber {
                pointer: at.to_owned(),
                text: number.clone(),
                unit: expected.unit,
            });
            return Some(log(kind, Node::Number(number)));
        }
        // A text that does not fit stays, and is judged; a bare one is no value.
        (!bare).then(|| Node::Text(text.to_owned()))
    }

    fn number(&mut self, expected: &Expected<'_>, text: &str, at: &str) -> Node {
        let wanted = expected.wanted();
        let read = if wanted.integer { number::read(text, wanted) } else { None };
        let Some(number) = read.filter(|number| number != text) else {
            return Node::Number(text.to_owned());
        };
        self.repairs.push(Repair::new(RepairKind::NumberForm, at, text, number.as_str()));
        self.changed.push(ChangedNumber {
            pointer: at.to_owned(),
            text: number.clone(),
            unit: expected.unit,
        });
        Node::Number(number)
    }

    fn array(&mut self, expected: &Expected<'s>, items: &[Node], at: &str) -> Option<Node> {
        let schema_of = |map: &'s Map<String, Value>, index: usize| {
            let prefix = map.get("prefixItems").and_then(Value::as_array);
            prefix.and_then(|prefix| prefix.get(index)).or_else(|| map.get("items"))
        };
        let mut fitted = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let schemas: Vec<&Value> =
                expected.arrays.iter().filter_map(|map| schema_of(map, index)).collect();
            fitted.push(self.value(&schemas, item, &format!("{at}/{index}"))?);
        }
        Some(Node::Array(fitted))
    }

    fn object(
        &mut self,
        expected: &Expected<'s>,
        members: &[(String, Node)],
        at: &str,
    ) -> Option<Node> {
        // Of several forms the one that declares most of the members.
        let declared = |map: &Map<String, Value>| {
            members.iter().filter(|(name, _)| property(map, name).is_some()).count()
        };
        let best = expected.objects.iter().map(|map| declared(map)).max().unwrap_or(0);
        let forms: Vec<&'s Map<String, Value>> =
            expected.objects.iter().copied().filter(|map| declared(map) == best).collect();
        let closed = !forms.is_empty() && forms.iter().all(|map| is_closed(map));
        let mut fitted = Vec::with_capacity(members.len());
        for (name, value) in members {
            let mut inner = at.to_owned();
            push_segment(&mut inner, name);
            let mut schemas: Vec<&'s Value> =
                expected.objects.iter().filter_map(|map| property(map, name)).collect();
            let is_known = !schemas.is_empty()
                || expected.objects.iter().any(|map| map.contains_key("patternProperties"));
            if !is_known && closed {
                self.repairs.push(Repair::new(RepairKind::UnknownKey, &inner, value.to_json(), ""));
                continue;
            }
            if schemas.is_empty() {
                schemas.extend(forms.iter().filter_map(|map| {
                    map.get("additionalProperties").filter(|schema| schema.is_object())
                }));
            }
            fitted.push((name.clone(), self.value(&schemas, value, &inner)?));
        }
        Some(Node::Object(fitted))
    }

    fn expect(&self, schema: &'s Value, expected: &mut Expected<'s>, levels: usize) {
        let (Some(map), Some(levels)) = (schema.as_object(), levels.checked_sub(1)) else { return };
        expected.unit = expected.unit.or_else(|| unit_of(schema));
        if let Some(target) = map
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.root.pointer(reference.strip_prefix('#')?))
        {
            self.expect(target, expected, levels);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for part in map.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.expect(part, expected, levels);
            }
        }
        let listed = map.get("enum").and_then(Value::as_array).into_iter().flatten();
        let constants: Vec<&Value> = listed.chain(map.get("const")).collect();
        let names: Vec<&str> = match map.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => constants.iter().map(|value| type_of(value)).collect(),
        };
        expected.constants.extend(&constants);
        for name in names {
            match name {
                "null" => expected.null = true,
                "boolean" => expected.boolean = true,
                "number" => expected.number = true,
                "integer" => expected.integer = true,
                "string" => expected.string = true,
                "array" => expected.arrays.push(map),
                "object" => expected.objects.push(map),
                _ => {}
            }
        }
        if !map.contains_key("type") && map.contains_key("properties") {
            expected.objects.push(map);
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn property<'s>(map: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    map.get("properties")?.get(name)
}

fn is_closed(map: &Map<String, Value>) -> bool {
    let forbids = |keyword: &str| map.get(keyword) == Some(&Value::Bool(false));
    forbids("additionalProperties") || forbids("unevaluatedProperties")
}

/// Whether a text is what a model writes where a value is missing.
fn says_nothing(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    matches!(
        text.as_str(),
        "" | "null"
            | "none"
            | "nil"
            | "n/a"
            | "na"
            | "n.a."
            | "n/d"
            | "nulo"
            | "ninguno"
            | "ninguna"
            | "-"
            | "—"
            | "not available"
            | "not provided"
            | "no disponible"
    )
}
