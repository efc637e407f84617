//! Functions of the user's own.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::{Number, Value};

use super::{
    Document, SelectionError,
    document::MOST_BYTES,
    jmespath::{
        Variant,
        functions::named,
        value::{self, Kind},
    },
};

/// The functions that an expression may call: the standard ones, and your own.
///
/// Beside those of JMESPath (<https://jmespath.org/specification.html#built-in-functions>) there
/// are three that read text: `json(text)`, `base64(text)`, and `base64_gzip(text)`, which gives at
/// most 8 MiB in all of its calls for a record. `powertools_json`, `powertools_base64` and
/// `powertools_base64_gzip` are other names for them.
///
/// A function of your own gets its arguments as JSON values and returns one. It must return the
/// same for the same arguments, always and in every version of your program that shares a table:
/// its result is part of the key. It may be called twice for a record.
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, Functions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let functions = Functions::standard().with("lower", 1, |arguments| match arguments {
///     [text] => text.as_str().map(|text| text.to_lowercase().into()).ok_or("it is no text"),
///     _ => Err("one text is needed"),
/// });
/// let by_email = Expression::compile_with("lower(email)", &functions)?;
/// let one = by_email.select(&Document::parse(r#"{"email":"Ann@example.com"}"#)?)?;
/// let other = by_email.select(&Document::parse(r#"{"email":"ann@example.com"}"#)?)?;
/// assert_eq!(one, other);
/// assert!(Expression::compile_with("lower(email, 1)", &functions).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Functions {
    own: BTreeMap<Arc<str>, Own>,
}

/// A function of the user's own.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) arity: usize,
    call: Arc<Call>,
}

type Call = dyn Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync;

impl Functions {
    /// The standard functions alone.
    #[must_use]
    pub fn standard() -> Self {
        Self::default()
    }

    /// Adds a function that takes `arity` arguments. Numbers that no double holds exactly come a
    /// little smaller than they are, and in a second call a little larger; if the results differ,
    /// the record is refused.
    ///
    /// What is missing comes as `null`; but a list that the expression puts together, as in
    /// `lower([a, b])`, must have all its parts.
    ///
    /// Its error is a fixed text, so that nothing of a record can find its way into a log. If it
    /// panics, the record is refused as for an error.
    ///
    /// The name must be one that JMESPath can call (`[A-Za-z_][A-Za-z0-9_]*`) and not that of a
    /// standard function; [`Expression::compile_with`](super::Expression::compile_with) refuses
    /// any other.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<Arc<str>>,
        arity: usize,
        function: impl Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync + 'static,
    ) -> Self {
        self.own.insert(name.into(), Own { arity, call: Arc::new(function) });
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<(&Arc<str>, &Own)> {
        self.own.get_key_value(name)
    }

    /// What is wrong with the name of one.
    pub(super) fn check(&self) -> Result<(), String> {
        self.own.keys().try_for_each(|name| {
            if named(Variant::Standard, name).is_some() {
                let reason =
                    format!("there is a standard function `{name}`; give yours another name");
                return Err(reason);
            }
            if !is_identifier(name) {
                return Err(format!("a function cannot be called {name:?}"));
            }
            Ok(())
        })
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.own.keys()).finish()
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Numbers that are not exact come from below and from above; what is the same for both does not
/// depend on them.
pub(super) fn call(own: &Own, arguments: &[value::Value]) -> Result<value::Value, SelectionError> {
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
        // What one record makes a function do must not end the invocation of all.
        let returned = catch_unwind(AssertUnwindSafe(|| (own.call)(&values)));
        let returned = returned.unwrap_or(Err("it panicked")).map_err(str::to_owned);
        Ok((returned, met_inexact))
    };
    let (returned, met_inexact) = from(0)?;
    if met_inexact && from(1)?.0 != returned {
        return Err(SelectionError::InexactNumber);
    }
    // What `Value` holds depends on features of `serde_json`; its text does not.
    returned
        .and_then(|returned| Document::parse(&returned.to_string()).map_err(|e| e.to_string()))
        .map(|document| document.value)
        .map_err(|reason| SelectionError::Evaluation { reason, offset: 0 })
}

/// As `serde_json` has it, unless a number in it is not exact, or it is larger than any document.
pub(super) fn value(value: &value::Value) -> Result<Value, SelectionError> {
    let mut room = MOST_BYTES;
    copied(value, &mut room, &mut |_| None)
}

/// `room` is for values and bytes of text: an expression can list one value many times over.
fn copied(
    value: &value::Value,
    room: &mut usize,
    inexact: &mut impl FnMut(&value::Number) -> Option<Number>,
) -> Result<Value, SelectionError> {
    let mut take = |size: usize| {
        *room = room.checked_sub(size).ok_or(SelectionError::TooLong)?;
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
            Value::Number(number.ok_or(SelectionError::InexactNumber)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_called_are_refused() {
        let named = |name: &str| Functions::standard().with(name, 0, |_| Ok(Value::Null)).check();
        for name in ["length", "json", "powertools_json", "", "1a", "a-b", "é", "a b"] {
            assert!(named(name).is_err(), "{name}");
        }
        for name in ["a", "_A1"] {
            assert!(named(name).is_ok(), "{name}");
        }
    }
}
