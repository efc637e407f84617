//! What is missing: to each library, and to us.

use super::{ast::Node, coercion::is_truthy, value::Value};
use crate::key::SelectionError;

/// `is_missing_idempotency_key`: nothing, nothing in it, or nothing but nulls.
pub(super) fn is_missing_to_python(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.0.is_empty(),
        Value::Array(items) => items.iter().all(Value::is_null),
        Value::Object(members) => members.iter().all(|(_, value)| value.is_null()),
    }
}

/// `isMissingIdempotencyKey`: nothing that JavaScript takes for true, itself or in it.
pub(super) fn is_missing_to_typescript(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.iter().any(is_truthy),
        Value::Object(members) => !members.iter().any(|(_, value)| is_truthy(value)),
        other => !is_truthy(other),
    }
}

/// What our own keys refuse: what is missing, `null` or empty, and lists with such a part.
pub(super) fn check(node: Option<&Node>, selected: &Value) -> Result<(), SelectionError> {
    match presence(selected) {
        Presence::Missing => Err(SelectionError::Missing),
        Presence::Empty => Err(SelectionError::Empty),
        Presence::Present => node.map_or(Ok(()), |node| check_parts(node, selected, "")),
    }
}

enum Presence {
    Missing,
    Empty,
    Present,
}

fn presence(value: &Value) -> Presence {
    match value {
        Value::Undefined | Value::Null => Presence::Missing,
        Value::Bool(_) | Value::Number(_) => Presence::Present,
        empty if !empty.is_truthy() => Presence::Empty,
        _ => Presence::Present,
    }
}

/// Follows the expression to the lists that make up its value.
fn check_parts(node: &Node, value: &Value, within: &str) -> Result<(), SelectionError> {
    match (node, value) {
        (Node::List(parts), Value::Array(items)) => {
            parts.iter().zip(items.iter()).enumerate().try_for_each(|(at, (part, item))| {
                check_part(part, item, format!("{within}{}", at + 1))
            })
        }
        (Node::Hash(parts), Value::Object(members)) => {
            parts.iter().try_for_each(|(name, part)| match members.get(name) {
                Some(member) => check_part(part, member, format!("{within}`{}`", name.shown())),
                None => Ok(()),
            })
        }
        (
            Node::Each(_, each) | Node::Values(_, each) | Node::Filter { each, .. },
            Value::Array(items),
        ) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| check_parts(each, item, &format!("{within}{}, ", at + 1))),
        (Node::Then(_, last), value) => check_parts(last, value, within),
        (Node::Or(left, right) | Node::And(left, right), value) => {
            check_parts(left, value, within)?;
            check_parts(right, value, within)
        }
        _ => Ok(()),
    }
}

fn check_part(node: &Node, value: &Value, part: String) -> Result<(), SelectionError> {
    match presence(value) {
        Presence::Missing => Err(SelectionError::PartMissing { part }),
        Presence::Empty => Err(SelectionError::PartEmpty { part }),
        Presence::Present => check_parts(node, value, &format!("{part}, ")),
    }
}
