//! Whether what an expression selects is there: the whole of it, and each part that it lists.

use jmespath::{
    Variable,
    ast::{Ast, KeyValuePair},
};

use super::SelectionError;

/// Refuses what is missing, `null` or empty, and lists (`[a, b]`, `{x: a, y: b}`) with such a part.
///
/// Only parts that the expression lists must be there; `null` inside the data is data.
pub(super) fn check(ast: &Ast, selected: &Variable) -> Result<(), SelectionError> {
    match presence(selected) {
        Presence::Missing => Err(SelectionError::Missing),
        Presence::Empty => Err(SelectionError::Empty),
        Presence::Present => check_parts(ast, selected, ""),
    }
}

enum Presence {
    Missing,
    Empty,
    Present,
}

fn presence(value: &Variable) -> Presence {
    match value {
        Variable::Null => Presence::Missing,
        Variable::String(text) if text.is_empty() => Presence::Empty,
        Variable::Array(items) if items.is_empty() => Presence::Empty,
        Variable::Object(members) if members.is_empty() => Presence::Empty,
        _ => Presence::Present,
    }
}

/// Follows the expression to the lists that make up its value.
fn check_parts(ast: &Ast, value: &Variable, within: &str) -> Result<(), SelectionError> {
    match (ast, value) {
        (Ast::MultiList { elements, .. }, Variable::Array(items)) => {
            let parts = elements.iter().zip(items).enumerate();
            parts.into_iter().try_for_each(|(at, (ast, item))| {
                check_part(ast, item, format!("{within}{}", at + 1))
            })
        }
        (Ast::MultiHash { elements, .. }, Variable::Object(members)) => {
            elements.iter().try_for_each(|KeyValuePair { key, value }| match members.get(key) {
                Some(member) => check_part(value, member, format!("{within}`{key}`")),
                None => Ok(()),
            })
        }
        (Ast::Projection { rhs, .. }, Variable::Array(items)) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| check_parts(rhs, item, &format!("{within}{}, ", at + 1))),
        (Ast::Subexpr { rhs, .. } | Ast::Condition { then: rhs, .. }, value) => {
            check_parts(rhs, value, within)
        }
        // Whichever it is from.
        (Ast::Or { lhs, rhs, .. } | Ast::And { lhs, rhs, .. }, value) => {
            check_parts(lhs, value, within)?;
            check_parts(rhs, value, within)
        }
        _ => Ok(()),
    }
}

fn check_part(ast: &Ast, value: &Variable, part: String) -> Result<(), SelectionError> {
    match presence(value) {
        Presence::Missing => Err(SelectionError::PartMissing { part }),
        Presence::Empty => Err(SelectionError::PartEmpty { part }),
        Presence::Present => check_parts(ast, value, &format!("{part}, ")),
    }
}
