//! Checks that the value an expression selects is present, and each part that the expression lists.

use std::collections::BTreeSet;

use super::{
    jmespath::{
        ast::Node,
        defects::{Absent, Optional},
        value::{Presence, Value},
    },
    selection::SelectionError,
};

impl Optional {
    /// Adds the part with this name. A part without a name is identified by its path.
    ///
    /// # Errors
    /// There is no such part. Returns the names that exist.
    pub(super) fn add(&mut self, name: &str, node: &Node) -> Result<(), Vec<String>> {
        let parts = labels(node);
        let positions = (0..).zip(&parts).filter(|(_, label)| label.as_deref() == Some(name));
        let positions: Vec<usize> = positions.map(|(position, _)| position).collect();
        if positions.is_empty() {
            return Err(parts.into_iter().flatten().collect());
        }
        if matches!(node.listed(), Some(Node::Hash(_))) {
            self.names.insert(name.to_owned());
        } else {
            self.positions.extend(positions);
        }
        Ok(())
    }
}

/// The names of the parts: their names in the expression, their paths, or else their positions,
/// from 1.
pub(super) fn names(node: &Node) -> Vec<String> {
    let name = |(at, label): (usize, Option<String>)| label.unwrap_or_else(|| at.to_string());
    (1..).zip(labels(node)).map(name).collect()
}

/// The name or the path of each part, if it has one.
fn labels(node: &Node) -> Vec<Option<String>> {
    match node.listed() {
        Some(Node::Hash(parts)) => parts.iter().map(|(name, _)| Some(name.shown())).collect(),
        Some(Node::List(parts)) => parts.iter().map(path).collect(),
        _ => Vec::new(),
    }
}

/// How the parts of a key are combined. Keys of different shapes are never equal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A single value: `order.id`.
    Value,
    /// A list with this number of parts: `[tenant, order.id]`.
    List(usize),
    /// Named parts: `{tenant: account, id: order.id}`.
    Named(BTreeSet<String>),
}

impl Shape {
    pub(super) fn of(node: &Node) -> Self {
        match node.listed() {
            Some(Node::Hash(parts)) => {
                Self::Named(parts.iter().map(|(name, _)| name.shown()).collect())
            }
            Some(Node::List(parts)) => Self::List(parts.len()),
            _ => Self::Value,
        }
    }
}

/// `a.b.c`, if the part is a path of fields.
fn path(node: &Node) -> Option<String> {
    match node {
        Node::Field(name) => Some(name.shown()),
        Node::Then(first, last) => Some(format!("{}.{}", path(first)?, path(last)?)),
        _ => None,
    }
}

/// Refuses a value that is missing, `null` or empty, or that was made with a missing part. At least one part must be
/// present, even if all are optional.
pub(super) fn check(
    selected: &Value,
    absent: Option<Absent>,
    optional: &Optional,
) -> Result<(), SelectionError> {
    match (Presence::of(selected), absent) {
        (Presence::Missing, _) => return Err(SelectionError::Missing),
        (Presence::Empty, None) => return Err(SelectionError::Empty),
        (_, Some(absent)) => return Err(absent.into()),
        (Presence::Present, None) => {}
    }
    let is_there = |part: &Value| Presence::of(part) == Presence::Present;
    let any = match selected {
        _ if *optional == Optional::default() => true,
        Value::Array(items) => items.iter().any(is_there),
        Value::Object(members) => members.iter().any(|(_, member)| is_there(member)),
        _ => true,
    };
    if any { Ok(()) } else { Err(SelectionError::AllMissing) }
}
