//! A member of an object. In TypeScript, a missing member may be one that JavaScript's objects inherit.

use std::sync::Arc;

use super::{
    error::EvaluationError,
    functions::Evaluated,
    state::State,
    text::Text,
    value::{Members, Value},
};

/// The members that every JavaScript object inherits. In TypeScript, a missing field of such a name
/// is a function.
const INHERITED: [&str; 11] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// Expressions of these names seem to be in TypeScript's cache of parsed expressions, so it fails
/// for them.
pub(crate) fn is_inherited(expression: &str) -> bool {
    expression == "__proto__" || INHERITED.contains(&expression)
}

/// The member of this name, or null.
pub(super) fn field(state: &State<'_>, name: &Text, value: &Value, offset: usize) -> Evaluated {
    let Value::Object(members) = value else { return Ok(Value::Null) };
    if state.variant.is_typescript() && name.is_empty() {
        return Ok(Value::Null);
    }
    state.collisions.see_members(members);
    match members.get(name) {
        Some(value) => Ok(value.clone()),
        None if !state.variant.is_typescript() => Ok(Value::Null),
        None if name.is("__proto__") => {
            Ok(Value::Object(Arc::new(Members::new(state.variant, vec![]))))
        }
        None => match INHERITED.iter().find(|inherited| name.is(inherited)) {
            Some(name) => {
                let why = format!("`{name}` is missing, and JavaScript takes a function for it");
                Err(failed(why, offset))
            }
            None => Ok(Value::Null),
        },
    }
}

pub(super) fn failed(reason: String, offset: usize) -> EvaluationError {
    EvaluationError::Failed { reason, offset }
}
