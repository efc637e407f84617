//! Calls a function of the user, with `serde_json` values.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::{Number, Value};

use super::jmespath::{
    Variant,
    error::EvaluationError,
    limits::MOST_BYTES,
    own::Own,
    read::read,
    value::{self, Kind},
};

/// A function of the user, for the evaluator.
pub(super) fn own(
    arity: usize,
    function: impl Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync + 'static,
) -> Own {
    Own { arity, call: Arc::new(move |arguments| call(&function, arguments)) }
}

/// If an argument holds an inexact number, the function is called with the doubles below and above
/// it. A result that is the same for both does not depend on the rounding.
fn call(
    function: &impl Fn(&[Value]) -> Result<Value, &'static str>,
    arguments: &[value::Value],
) -> Result<value::Value, EvaluationError> {
    let from = |side| {
        let mut met_inexact = false;
        let values = arguments.iter().map(|argument| {
            let mut room = MOST_BYTES;
            copied(argument, &mut room, &mut |number: &value::Number| {
                let Kind::Decimal(decimal) = &number.kind else { return None };
                met_inexact = true;
                let [below, above] = decimal.neighbours();
                Number::from_f64(if side == 0 { below } else { above })
            })
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        // A panic for one record must not end the invocation for all of them.
        let returned = catch_unwind(AssertUnwindSafe(|| function(&values)));
        let returned = returned.unwrap_or(Err("it panicked")).map_err(str::to_owned);
        Ok((returned, met_inexact))
    };
    let (returned, met_inexact) = from(0)?;
    if met_inexact && from(1)?.0 != returned {
        return Err(EvaluationError::InexactNumber);
    }
    // The representation in `Value` depends on features of `serde_json`; its text does not.
    returned
        .and_then(|returned| {
            read(Variant::Standard, &returned.to_string()).map_err(|error| error.to_string())
        })
        .map_err(|reason| EvaluationError::Failed { reason, offset: 0 })
}

/// The value as a `serde_json` value; an error if it holds an inexact number, or is larger than a
/// document may be.
pub(super) fn value(value: &value::Value) -> Result<Value, EvaluationError> {
    let mut room = MOST_BYTES;
    copied(value, &mut room, &mut |_| None)
}

/// `room` limits the number of values and bytes of text, because an expression can list one value
/// many times.
fn copied(
    value: &value::Value,
    room: &mut usize,
    inexact: &mut impl FnMut(&value::Number) -> Option<Number>,
) -> Result<Value, EvaluationError> {
    let mut take = |size: usize| {
        *room = room.checked_sub(size).ok_or(EvaluationError::TooLong)?;
        Ok(())
    };
    take(1)?;
    Ok(match value {
        value::Value::Null | value::Value::Undefined => Value::Null,
        value::Value::Bool(value) => Value::Bool(*value),
        value::Value::Number(number) => {
            let exact = match &number.kind {
                Kind::Integer(digits) => (digits.parse::<u64>().map(Number::from))
                    .or_else(|_| digits.parse::<i64>().map(Number::from))
                    .ok(),
                Kind::Decimal(decimal) => decimal.exact().and_then(Number::from_f64),
                Kind::Double(double) => Number::from_f64(*double),
            };
            let number = exact.or_else(|| inexact(number));
            Value::Number(number.ok_or(EvaluationError::InexactNumber)?)
        }
        value::Value::String(text) => {
            let text = text.shown();
            take(text.len())?;
            Value::String(text)
        }
        value::Value::Array(items) => {
            let items = items.iter().map(|item| copied(item, room, inexact));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        value::Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| Ok((name.shown(), copied(member, room, inexact)?)));
            Value::Object(members.collect::<Result<_, _>>()?)
        }
    })
}
