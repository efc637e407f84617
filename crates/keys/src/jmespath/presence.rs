//! Whether a value is there, and which part of it is not.

use std::collections::BTreeSet;

use super::value::Value;

/// Whether a value is there, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// `null`, or nothing.
    Missing,
    /// `""`, `[]` or `{}`.
    Empty,
    Present,
}

impl Presence {
    pub(crate) fn of(value: &Value) -> Self {
        let is_empty = match value {
            Value::Undefined | Value::Null => return Self::Missing,
            Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.len() == 0,
        };
        if is_empty { Self::Empty } else { Self::Present }
    }

    pub(crate) fn is_present(self) -> bool {
        self == Self::Present
    }
}

/// A part that is missing or empty, with its place from the innermost list outwards.
pub(crate) struct Absent {
    pub(crate) presence: Presence,
    place: Vec<String>,
}

impl Absent {
    pub(super) fn at(presence: Presence, label: String) -> Self {
        Self { presence, place: vec![label] }
    }

    pub(super) fn within(mut self, label: String) -> Self {
        self.place.push(label);
        self
    }

    /// Its place, from the outermost list inwards.
    pub(crate) fn place(self) -> String {
        self.place.into_iter().rev().collect::<Vec<_>>().join(", ")
    }
}

/// The parts of an expression that may be missing: by name if the expression names its parts (`{x: a}`), otherwise by
/// index, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Optional {
    pub(crate) names: BTreeSet<String>,
    pub(crate) positions: BTreeSet<usize>,
}
