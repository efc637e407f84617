//! Equality and order of values in each variant.

use std::{cmp::Ordering, collections::HashMap};

use super::{
    Variant,
    ast::Comparator,
    decimal::Decimal,
    value::{Kind, Members, Number, Value},
};

/// Why two values have no order.
pub(crate) enum Incomparable {
    /// The comparison is `null`.
    Null,
    /// The comparison has no value.
    Undefined,
    /// The comparison is an error.
    Raises,
}

/// `==` of an expression.
pub(crate) fn equal(variant: Variant, left: &Value, right: &Value) -> bool {
    match (variant, left, right) {
        // In Python `1 == True`. jmespath.py corrects that for the two values, but not inside lists
        // and objects.
        (Variant::Python(_), Value::Bool(_), Value::Number(_))
        | (Variant::Python(_), Value::Number(_), Value::Bool(_)) => false,
        _ => same(variant, left, right),
    }
}

pub(crate) fn same(variant: Variant, left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => numbers(a, b) == Some(Ordering::Equal),
        (Value::Bool(flag), Value::Number(number)) | (Value::Number(number), Value::Bool(flag)) => {
            let flag = Kind::Integer(if *flag { "1" } else { "0" }.into());
            let flag = Number { kind: flag, exact: true };
            variant.is_python() && numbers(&flag, number) == Some(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(variant, a, b))
        }
        (Value::Object(a), Value::Object(b)) => same_members(variant, a, b),
        _ => false,
    }
}

fn same_members(variant: Variant, a: &Members, b: &Members) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let in_b: HashMap<_, _> = b.iter().map(|(name, value)| (name, value)).collect();
    a.iter().all(|(name, value)| in_b.get(name).is_some_and(|b| same(variant, value, b)))
}

/// `<`, `<=`, `>`, `>=` of an expression; `None` where one side is not a number at all.
pub(crate) fn order(
    variant: Variant,
    left: &Value,
    right: &Value,
) -> Result<Option<Ordering>, Incomparable> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Ok(numbers(a, b)),
        (Value::String(a), Value::String(b)) if variant.is_python() => Ok(Some(a.cmp(b))),
        (Value::Number(_), Value::String(_)) | (Value::String(_), Value::Number(_))
            if variant.is_python() =>
        {
            Err(Incomparable::Raises)
        }
        _ if variant.is_typescript() => Err(Incomparable::Undefined),
        _ => Err(Incomparable::Null),
    }
}

pub(crate) fn holds(comparator: Comparator, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return matches!(comparator, Comparator::NotEqual) };
    match comparator {
        Comparator::Equal => order.is_eq(),
        Comparator::NotEqual => order.is_ne(),
        Comparator::Less => order.is_lt(),
        Comparator::LessOrEqual => order.is_le(),
        Comparator::Greater => order.is_gt(),
        Comparator::GreaterOrEqual => order.is_ge(),
    }
}

/// The exact order of two numbers; JavaScript has doubles only.
pub(crate) fn numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (&a.kind, &b.kind) {
        (Kind::Double(a), Kind::Double(b)) => a.partial_cmp(b),
        (Kind::Integer(a), Kind::Integer(b)) => Some(integers(a, b)),
        (Kind::Integer(a), Kind::Double(b)) => integer_and_double(a, *b),
        (Kind::Double(a), Kind::Integer(b)) => integer_and_double(b, *a).map(Ordering::reverse),
        (Kind::Decimal(a), Kind::Decimal(b)) => Some(a.compare(b)),
        (Kind::Decimal(a), _) => Some(a.compare(&decimal(b))),
        (_, Kind::Decimal(b)) => Some(decimal(a).compare(b)),
    }
}

pub(crate) fn decimal(number: &Number) -> Decimal {
    match &number.kind {
        Kind::Integer(digits) => Decimal::of(digits),
        Kind::Decimal(decimal) => (**decimal).clone(),
        Kind::Double(double) => Decimal::of(&format!("{double:e}")),
    }
}

fn integers(a: &str, b: &str) -> Ordering {
    let by_size = |a: &str, b: &str| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    match (a.strip_prefix('-'), b.strip_prefix('-')) {
        (None, None) => by_size(a, b),
        (Some(a), Some(b)) => by_size(b, a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

fn integer_and_double(integer: &str, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.is_infinite() {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let whole = whole(double.trunc());
    Some(integers(integer, &whole).then_with(|| {
        // The whole parts are equal, so the fraction of the double decides.
        0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)
    }))
}

/// The digits of a whole, finite double.
pub(crate) fn whole(double: f64) -> String {
    let digits = format!("{double:.0}");
    if digits == "-0" { "0".to_owned() } else { digits }
}
