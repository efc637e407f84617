//! What is missing to each library.

use crate::jmespath::{coercion::is_truthy, value::Value};

/// `is_missing_idempotency_key`: nothing, nothing in it, or nothing but nulls.
pub(crate) fn is_missing_to_python(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(Value::is_null),
        Value::Object(members) => members.iter().all(|(_, value)| value.is_null()),
    }
}

/// `isMissingIdempotencyKey`: nothing that JavaScript takes for true, itself or in it.
pub(crate) fn is_missing_to_typescript(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.iter().any(is_truthy),
        Value::Object(members) => !members.iter().any(|(_, value)| is_truthy(value)),
        other => !is_truthy(other),
    }
}
