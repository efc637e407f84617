//! The functions that an expression may call, and the user's own among them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use super::{
    jmespath::{Variant, signatures::named},
    own::Own,
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
