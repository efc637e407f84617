//! The functions that an expression may call: the standard ones and the user's.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    jmespath::{Variant, own::OwnFunctions, signatures::named},
    user_functions,
};

/// The functions that an expression may call: the standard ones and your own.
///
/// In addition to the functions of JMESPath
/// (<https://jmespath.org/specification.html#built-in-functions>), three functions decode text:
/// `json(text)`, `base64(text)` and `base64_gzip(text)`. All calls of `base64_gzip` for a record
/// together return at most 8 MiB. `powertools_json`, `powertools_base64` and
/// `powertools_base64_gzip` are aliases of the three.
///
/// A function of your own receives its arguments as JSON values and returns a JSON value. It must
/// always return the same result for the same arguments, in every version of your program that
/// shares a table, because its result is part of the key. It may be called twice for a record.
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, Functions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let functions = Functions::standard().with("lower", 1, |arguments| match arguments {
///     [text] => text.as_str().map(|text| text.to_lowercase().into()).ok_or("it is not a string"),
///     _ => Err("one argument is needed"),
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
    pub(super) own: OwnFunctions,
}

impl Functions {
    /// Only the standard functions.
    #[must_use]
    pub fn standard() -> Self {
        Self::default()
    }

    /// Adds a function that takes `arity` arguments. If a number cannot be held exactly by a
    /// double, the function is called twice, with the double below and the double above it; if the
    /// results differ, the record is refused.
    ///
    /// A missing value is passed as `null`. A list that the expression makes, as in
    /// `lower([a, b])`, must have all its parts.
    ///
    /// Its error is a fixed text, so that no content of a record reaches a log. If it panics, the
    /// record is refused as for an error.
    ///
    /// The name must be valid in JMESPath (`[A-Za-z_][A-Za-z0-9_]*`) and must not be the name of a
    /// standard function; otherwise [`Expression::compile_with`](super::Expression::compile_with)
    /// fails.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<Arc<str>>,
        arity: usize,
        function: impl Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync + 'static,
    ) -> Self {
        self.own.insert(name.into(), user_functions::own(arity, function));
        self
    }

    /// Refuses names that an expression cannot call.
    pub(super) fn check(&self) -> Result<(), String> {
        self.own.keys().try_for_each(|name| {
            if named(Variant::Standard, name).is_some() {
                let reason =
                    format!("there is a standard function `{name}`; give yours another name");
                return Err(reason);
            }
            if !is_identifier(name) {
                return Err(format!("invalid function name {name:?}: use letters, digits and `_`, and do not begin with a digit"));
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
