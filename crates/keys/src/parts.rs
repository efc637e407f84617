//! Checks that the value an expression selects is present, and each part that the expression lists.

use std::collections::BTreeSet;

use super::{
    SelectionError,
    jmespath::{ast::Node, presence::Presence, value::Value},
};

/// The optional parts of an expression: by name if the expression names its parts (`{x: a}`),
/// otherwise by index, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) names: BTreeSet<String>,
    pub(super) positions: BTreeSet<usize>,
}

impl Optional {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.positions.is_empty()
    }

    /// Adds the part with this name. A part without a name is identified by its path.
    ///
    /// # Errors
    /// There is no such part. Returns the names that exist.
    pub(super) fn add(&mut self, name: &str, node: &Node) -> Result<(), Vec<String>> {
        match node.listed() {
            Some(Node::Hash(parts)) => {
                if !parts.iter().any(|(own, _)| own.is(name)) {
                    return Err(parts.iter().map(|(own, _)| own.shown()).collect());
                }
                self.names.insert(name.to_owned());
            }
            Some(Node::List(parts)) => {
                let paths = parts.iter().map(path).collect::<Vec<_>>();
                let mut positions =
                    (0..).zip(&paths).filter(|(_, path)| path.as_deref() == Some(name));
                let Some((position, _)) = positions.next() else {
                    return Err(paths.into_iter().flatten().collect());
                };
                self.positions.insert(position);
                self.positions.extend(positions.map(|(position, _)| position));
            }
            _ => return Err(vec![]),
        }
        Ok(())
    }
}

/// The names of the parts: their names in the expression, their paths, or else their positions,
/// from 1.
pub(super) fn names(node: &Node) -> Vec<String> {
    match node.listed() {
        Some(Node::Hash(parts)) => parts.iter().map(|(name, _)| name.shown()).collect(),
        Some(Node::List(parts)) => {
            let name = |(position, part): (usize, &Node)| {
                path(part).unwrap_or_else(|| position.to_string())
            };
            (1..).zip(parts).map(name).collect()
        }
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
        Node::Field { name, .. } => Some(name.shown()),
        Node::Then(first, last) => Some(format!("{}.{}", path(first)?, path(last)?)),
        _ => None,
    }
}

/// Refuses a value that is missing, `null` or empty, and a list (`[a, b]`, `{x: a, y: b}`) with
/// such a part.
///
/// Every part that the expression lists must be present, unless the list only decides what is
/// selected (a condition, a comparison, an order). A `null` inside the data is allowed. At least
/// one part must be present, even if all are optional.
pub(super) fn check(
    node: &Node,
    selected: &Value,
    optional: &Optional,
) -> Result<(), SelectionError> {
    match Presence::of(selected) {
        Presence::Missing => return Err(SelectionError::Missing),
        Presence::Empty => return Err(SelectionError::Empty),
        Presence::Present => {}
    }
    check_parts(node, selected, optional).map_err(|absent| {
        let part = absent.path.into_iter().rev().collect::<Vec<_>>().join(", ");
        SelectionError::of_part(absent.presence, part)
    })?;
    let is_there = |part: &Value| Presence::of(part).is_present();
    let any = match selected {
        _ if optional.is_empty() => true,
        Value::Array(items) => items.iter().any(is_there),
        Value::Object(members) => members.iter().any(|(_, member)| is_there(member)),
        _ => true,
    };
    if any { Ok(()) } else { Err(SelectionError::AllMissing) }
}

/// A part that is missing or empty, with its path from the innermost list outwards.
struct Absent {
    presence: Presence,
    path: Vec<String>,
}

/// Follows the expression to the lists that make up its value, as far as possible, so that an error
/// names the whole path of the part. Lists that it does not reach were checked during the
/// evaluation.
fn check_parts(node: &Node, value: &Value, optional: &Optional) -> Result<(), Absent> {
    let none = Optional::default();
    match (node, value) {
        (Node::List(parts), Value::Array(items)) => {
            parts.iter().zip(items.iter()).enumerate().try_for_each(|(at, (part, item))| {
                let label = || (at + 1).to_string();
                check_part(part, item, optional.positions.contains(&at), label)
            })
        }
        (Node::Hash(parts), Value::Object(members)) => {
            parts.iter().try_for_each(|(name, part)| match members.get(name) {
                Some(member) => {
                    let label = || format!("`{}`", name.shown());
                    check_part(part, member, optional.names.contains(&name.shown()), label)
                }
                None => Ok(()),
            })
        }
        (
            Node::Each(_, each) | Node::Values { each, .. } | Node::Filter { each, .. },
            Value::Array(items),
        ) => items.iter().enumerate().try_for_each(|(at, item)| {
            check_parts(each, item, &none).map_err(|absent| absent.within((at + 1).to_string()))
        }),
        (Node::Then(_, last), value) => check_parts(last, value, optional),
        // The value can be from either side.
        (Node::Or(left, right) | Node::And(left, right), value) => {
            check_parts(left, value, &none)?;
            check_parts(right, value, &none)
        }
        _ => Ok(()),
    }
}

fn check_part(
    node: &Node,
    value: &Value,
    optional: bool,
    label: impl Fn() -> String,
) -> Result<(), Absent> {
    match Presence::of(value) {
        Presence::Present => {
            check_parts(node, value, &Optional::default()).map_err(|absent| absent.within(label()))
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
