//! What is missing: to each library, and to us.

use jmespath::ast::{Ast, KeyValuePair};

use super::{functions::is_truthy, value::Value};
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
pub(super) fn check(ast: Option<&Ast>, selected: &Value) -> Result<(), SelectionError> {
    match presence(selected) {
        Presence::Missing => Err(SelectionError::Missing),
        Presence::Empty => Err(SelectionError::Empty),
        Presence::Present => ast.map_or(Ok(()), |ast| check_parts(ast, selected, "")),
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
fn check_parts(ast: &Ast, value: &Value, within: &str) -> Result<(), SelectionError> {
    match (ast, value) {
        (Ast::MultiList { elements, .. }, Value::Array(items)) => {
            let parts = elements.iter().zip(items.iter()).enumerate();
            parts.into_iter().try_for_each(|(at, (ast, item))| {
                check_part(ast, item, format!("{within}{}", at + 1))
            })
        }
        (Ast::MultiHash { elements, .. }, Value::Object(members)) => {
            elements.iter().try_for_each(|KeyValuePair { key, value }| match members.get(key) {
                Some(member) => check_part(value, member, format!("{within}`{key}`")),
                None => Ok(()),
            })
        }
        (Ast::Projection { rhs, .. }, Value::Array(items)) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| check_parts(rhs, item, &format!("{within}{}, ", at + 1))),
        (Ast::Subexpr { rhs, .. } | Ast::Condition { then: rhs, .. }, value) => {
            check_parts(rhs, value, within)
        }
        (Ast::Or { lhs, rhs, .. } | Ast::And { lhs, rhs, .. }, value) => {
            check_parts(lhs, value, within)?;
            check_parts(rhs, value, within)
        }
        _ => Ok(()),
    }
}

fn check_part(ast: &Ast, value: &Value, part: String) -> Result<(), SelectionError> {
    match presence(value) {
        Presence::Missing => Err(SelectionError::PartMissing { part }),
        Presence::Empty => Err(SelectionError::PartEmpty { part }),
        Presence::Present => check_parts(ast, value, &format!("{part}, ")),
    }
}
