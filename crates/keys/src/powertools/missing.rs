//! What each Powertools library treats as a missing key.

use crate::jmespath::value::Value;

/// As `is_missing_idempotency_key` of Powertools for Python: `null`, an empty value, or one that
/// holds only nulls.
pub(super) fn is_missing_to_python(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(Value::is_null),
        Value::Object(members) => members.iter().all(|(_, value)| value.is_null()),
    }
}

/// As `isMissingIdempotencyKey` of Powertools for TypeScript: a falsy value, or a list or object of
/// falsy values only.
pub(super) fn is_missing_to_typescript(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.iter().any(Value::is_truthy_to_javascript),
        Value::Object(members) => !members.iter().any(|(_, value)| value.is_truthy_to_javascript()),
        other => !other.is_truthy_to_javascript(),
    }
}
