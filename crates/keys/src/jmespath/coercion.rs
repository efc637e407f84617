//! Converts values between types as JavaScript does.

use super::{digits, numbers, text::Text, value::Value};

/// <https://tc39.es/ecma262/#sec-toboolean>
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => {
            let double = numbers::double(number);
            double != 0.0 && !double.is_nan()
        }
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// <https://tc39.es/ecma262/#sec-tostring>
pub(crate) fn text(value: &Value) -> Text {
    match value {
        Value::Undefined => "undefined".into(),
        Value::Null => "null".into(),
        Value::Bool(true) => "true".into(),
        Value::Bool(false) => "false".into(),
        Value::Number(number) => digits::javascript_text(numbers::double(number)).as_str().into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let mut units = Vec::new();
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    units.push(u16::from(b','));
                }
                if !matches!(item, Value::Undefined | Value::Null) {
                    units.extend(text(item).units());
                }
            }
            Text::from_units(&units)
        }
        Value::Object(_) => "[object Object]".into(),
    }
}

/// <https://tc39.es/ecma262/#sec-tonumber>; `None` where we do not implement it.
pub(crate) fn number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Undefined => f64::NAN,
        Value::Null | Value::Bool(false) => 0.0,
        Value::Bool(true) => 1.0,
        Value::Number(number) => numbers::double(number),
        Value::String(text) => return of_text(text),
        Value::Array(_) | Value::Object(_) => return of_text(&text(value)),
    })
}

fn of_text(text: &Text) -> Option<f64> {
    let read = text.to_str().map_or(Ok(None), numbers::javascript_number).ok()?;
    match read {
        Some(Value::Number(number)) => Some(numbers::double(&number)),
        _ => Some(f64::NAN),
    }
}

/// One side of a `<`, converted once for many comparisons.
pub(crate) struct Operand {
    /// The text, if it is one or becomes one.
    text: Option<Text>,
    /// `None` where we do not implement it.
    number: Option<f64>,
}

impl Operand {
    pub(crate) fn of(value: &Value) -> Self {
        let is_text = matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_));
        Self { text: is_text.then(|| text(value)), number: number(value) }
    }

    /// `left < right`: <https://tc39.es/ecma262/#sec-islessthan>; `None` where we do not implement
    /// it.
    pub(crate) fn is_less(&self, right: &Self) -> Option<bool> {
        match (&self.text, &right.text) {
            (Some(left), Some(right)) => Some(left.compare_units(right).is_lt()),
            _ => Some(self.number? < right.number?),
        }
    }
}
