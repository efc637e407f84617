//! Items and slices of lists.

use super::value::Value;

/// The item at an index; from the end, if that is negative.
pub(super) fn at(value: &Value, index: i64) -> Value {
    let Value::Array(items) = value else { return Value::Null };
    let position = usize::try_from(index.unsigned_abs()).ok();
    let position =
        if index < 0 { position.and_then(|back| items.len().checked_sub(back)) } else { position };
    match position.and_then(|at| items.get(at)) {
        Some(Value::Undefined) | None => Value::Null,
        Some(item) => item.clone(),
    }
}

/// <https://jmespath.org/specification.html#slices>
pub(super) fn slice(items: &[Value], start: Option<i64>, stop: Option<i64>, step: i64) -> Value {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let (lowest, highest) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let cap = |bound: Option<i64>, otherwise: i64| match bound {
        None => otherwise,
        Some(bound) if bound < 0 => (bound + length).max(lowest),
        Some(bound) => bound.min(highest),
    };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let (mut at, stop) = (cap(start, first), cap(stop, last));
    let mut taken = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        taken.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at = at.saturating_add(step);
    }
    Value::array(taken)
}
