//! Whether what an expression selects is there: the whole of it, and each part that it lists.

use std::collections::BTreeSet;

use jmespath::{
    Variable,
    ast::{Ast, KeyValuePair},
};

use super::SelectionError;

/// Parts of the list that is an expression's value which may be missing: by name if it names them
/// (`{x: a}`), else by place, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) names: BTreeSet<String>,
    pub(super) places: BTreeSet<usize>,
}

impl Optional {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.places.is_empty()
    }

    /// Adds the part of this name: its own if it has one, else its path.
    ///
    /// # Errors
    /// There is no such part; with the names that there are.
    pub(super) fn add(&mut self, name: &str, ast: &Ast) -> Result<(), Vec<String>> {
        match list(ast) {
            Some(Ast::MultiHash { elements, .. }) => {
                if !elements.iter().any(|pair| pair.key == name) {
                    return Err(elements.iter().map(|pair| pair.key.clone()).collect());
                }
                self.names.insert(name.to_owned());
            }
            Some(Ast::MultiList { elements, .. }) => {
                let paths = elements.iter().map(path).collect::<Vec<_>>();
                let mut places =
                    (0..).zip(&paths).filter(|(_, path)| path.as_deref() == Some(name));
                let Some((place, _)) = places.next() else {
                    return Err(paths.into_iter().flatten().collect());
                };
                self.places.insert(place);
                self.places.extend(places.map(|(place, _)| place));
            }
            _ => return Err(vec![]),
        }
        Ok(())
    }
}

/// What the parts are called: their names, their paths, or else their places, from 1.
pub(super) fn names(ast: &Ast) -> Vec<String> {
    match list(ast) {
        Some(Ast::MultiHash { elements, .. }) => {
            elements.iter().map(|pair| pair.key.clone()).collect()
        }
        Some(Ast::MultiList { elements, .. }) => {
            let name = |(place, ast): (usize, &Ast)| path(ast).unwrap_or_else(|| place.to_string());
            (1..).zip(elements).map(name).collect()
        }
        _ => Vec::new(),
    }
}

/// The list of parts that an expression's value is, if it is one whatever the data.
fn list(ast: &Ast) -> Option<&Ast> {
    match ast {
        Ast::MultiList { .. } | Ast::MultiHash { .. } => Some(ast),
        Ast::Subexpr { rhs, .. } => list(rhs),
        _ => None,
    }
}

/// `a.b.c`, if the part is a path of fields.
fn path(ast: &Ast) -> Option<String> {
    match ast {
        Ast::Field { name, .. } => Some(name.clone()),
        Ast::Subexpr { lhs, rhs, .. } => Some(format!("{}.{}", path(lhs)?, path(rhs)?)),
        _ => None,
    }
}

/// Refuses what is missing, `null` or empty, and lists (`[a, b]`, `{x: a, y: b}`) with such a part.
///
/// Only parts that the expression lists must be there; `null` inside the data is data. Of optional
/// parts, at least one must be there if no other is.
pub(super) fn check(
    ast: &Ast,
    selected: &Variable,
    optional: &Optional,
) -> Result<(), SelectionError> {
    match presence(selected) {
        Presence::Missing => return Err(SelectionError::Missing),
        Presence::Empty => return Err(SelectionError::Empty),
        Presence::Present => {}
    }
    check_parts(ast, selected, optional).map_err(|absent| {
        let part = absent.path.into_iter().rev().collect::<Vec<_>>().join(", ");
        match absent.presence {
            Presence::Empty => SelectionError::PartEmpty { part },
            _ => SelectionError::PartMissing { part },
        }
    })?;
    let is_there = |part: &Variable| matches!(presence(part), Presence::Present);
    let any = match selected {
        _ if optional.is_empty() => true,
        Variable::Array(items) => items.iter().any(|item| is_there(item)),
        Variable::Object(members) => members.values().any(|member| is_there(member)),
        _ => true,
    };
    if any { Ok(()) } else { Err(SelectionError::AllMissing) }
}

#[derive(Clone, Copy)]
enum Presence {
    Missing,
    Empty,
    Present,
}

/// A part that is not there; its path from the innermost list outwards.
struct Absent {
    presence: Presence,
    path: Vec<String>,
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
fn check_parts(ast: &Ast, value: &Variable, optional: &Optional) -> Result<(), Absent> {
    let none = Optional::default();
    match (ast, value) {
        (Ast::MultiList { elements, .. }, Variable::Array(items)) => {
            let parts = elements.iter().zip(items).enumerate();
            parts.into_iter().try_for_each(|(at, (ast, item))| {
                let label = || (at + 1).to_string();
                check_part(ast, item, optional.places.contains(&at), label)
            })
        }
        (Ast::MultiHash { elements, .. }, Variable::Object(members)) => {
            elements.iter().try_for_each(|KeyValuePair { key, value }| match members.get(key) {
                Some(member) => {
                    let label = || format!("`{key}`");
                    check_part(value, member, optional.names.contains(key), label)
                }
                None => Ok(()),
            })
        }
        (Ast::Projection { rhs, .. }, Variable::Array(items)) => {
            items.iter().enumerate().try_for_each(|(at, item)| {
                check_parts(rhs, item, &none).map_err(|absent| absent.within((at + 1).to_string()))
            })
        }
        (Ast::Subexpr { rhs, .. } | Ast::Condition { then: rhs, .. }, value) => {
            check_parts(rhs, value, optional)
        }
        // Whichever it is from.
        (Ast::Or { lhs, rhs, .. } | Ast::And { lhs, rhs, .. }, value) => {
            check_parts(lhs, value, &none)?;
            check_parts(rhs, value, &none)
        }
        _ => Ok(()),
    }
}

fn check_part(
    ast: &Ast,
    value: &Variable,
    optional: bool,
    label: impl Fn() -> String,
) -> Result<(), Absent> {
    match presence(value) {
        Presence::Present => {
            check_parts(ast, value, &Optional::default()).map_err(|absent| absent.within(label()))
        }
        _ if optional => Ok(()),
        presence => Err(Absent { presence, path: vec![label()] }),
    }
}

impl Absent {
    fn within(mut self, label: String) -> Self {
        self.path.push(label);
        self
    }
}
