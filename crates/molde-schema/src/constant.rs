//! Values as nodes: equality by value, so that `1`, `1.0` and `1e0` are one value and the members
//! of an object come in any order.

use crate::document::{Document, Value, ValueId};
use crate::ir::{ArrayRule, Node, NodeId, ObjectRule, StringRule, TypeSet};
use crate::number::{Decimal, NumberError, NumberLimits, NumberSpec};

/// Why a value cannot be compared with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConstantError {
    #[error("cannot be enforced: {0}")]
    Number(#[from] NumberError),
}

/// One node for a list of scalars; containers in the list are passed over.
pub(crate) fn scalars(
    document: &Document,
    pointer: &str,
    values: &[ValueId],
    limits: &NumberLimits,
) -> Result<Node, ConstantError> {
    let mut types = TypeSet::NONE;
    let mut numbers = Vec::new();
    let mut strings: Vec<&str> = Vec::new();
    for &value in values {
        types = types.union(match document.get(value) {
            Value::Null => TypeSet::NULL,
            Value::Boolean(false) => TypeSet::FALSE,
            Value::Boolean(true) => TypeSet::TRUE,
            Value::Number(text) => {
                numbers.push(Decimal::parse(text, limits)?);
                TypeSet::NUMBER
            }
            Value::String(text) => {
                strings.push(text);
                TypeSet::STRING
            }
            Value::Array(_) | Value::Object(_) => TypeSet::NONE,
        });
    }
    let mut node = Node::of_types(pointer.to_owned(), types);
    if !numbers.is_empty() {
        node.number = Some(Box::new(NumberSpec::from_values(numbers)));
    }
    if !strings.is_empty() {
        strings.sort_unstable();
        strings.dedup();
        let words = Some(strings.into_iter().map(Box::from).collect());
        node.string = Some(Box::new(StringRule { words, ..StringRule::default() }));
    }
    Ok(node)
}

/// A node that accepts exactly one value. Appends it, after the nodes of its parts, to `nodes`.
pub(crate) fn constant(
    document: &Document,
    pointer: &str,
    value: ValueId,
    limits: &NumberLimits,
    nodes: &mut Vec<Node>,
) -> Result<NodeId, ConstantError> {
    let node = match document.get(value) {
        Value::Array(items) => {
            let mut prefix = Vec::with_capacity(items.len());
            for &item in items {
                prefix.push(constant(document, pointer, item, limits, nodes)?);
            }
            let mut node = Node::of_types(pointer.to_owned(), TypeSet::ARRAY);
            node.array = Some(Box::new(ArrayRule {
                prefix,
                min_items: items.len() as u64,
                max_items: Some(items.len() as u64),
                ..ArrayRule::default()
            }));
            node
        }
        Value::Object(members) => {
            let mut rule = ObjectRule::default();
            for (name, &member) in members {
                let member = constant(document, pointer, member, limits, nodes)?;
                rule.properties.insert(name.as_str().into(), member);
                rule.required.push(name.as_str().into());
            }
            rule.additional = Some(push(nodes, Node::of_types(pointer.to_owned(), TypeSet::NONE)));
            let mut node = Node::of_types(pointer.to_owned(), TypeSet::OBJECT);
            node.object = Some(Box::new(rule));
            node
        }
        _ => scalars(document, pointer, &[value], limits)?,
    };
    Ok(push(nodes, node))
}

fn push(nodes: &mut Vec<Node>, node: Node) -> NodeId {
    nodes.push(node);
    NodeId(nodes.len() as u32 - 1)
}

/// A JSON string; it ends where the next part begins, so that no two lists of parts look alike.
fn quoted(text: &str) -> String {
    format!("{text:?}:")
}

/// A text that equal values share and different ones do not.
pub(crate) fn canonical(document: &Document, value: ValueId) -> String {
    match document.get(value) {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Number(text) => {
            let number = Decimal::parse(text, &NumberLimits::unbounded())
                .expect("the parser of the document has seen that it is a number");
            format!("{}e{}", number.mantissa(), number.exponent())
        }
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|&item| canonical(document, item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort();
            let mut text = String::from("{");
            for (name, &member) in sorted {
                text.push_str(&quoted(name));
                text.push_str(&canonical(document, member));
                text.push(',');
            }
            text + "}"
        }
    }
}
