//! Whether a value is there.

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
        match value {
            Value::Undefined | Value::Null => Self::Missing,
            Value::Bool(_) | Value::Number(_) => Self::Present,
            empty if !empty.is_truthy() => Self::Empty,
            _ => Self::Present,
        }
    }

    pub(crate) fn is_present(self) -> bool {
        self == Self::Present
    }
}
