//! The key specification of an operation, shared by its producer and its consumer, its mistakes, and what it compiles to.

use std::{fmt, sync::Arc};

#[cfg(feature = "powertools")]
use crate::powertools::PowertoolsKeys;
use crate::{
    Expression, IntoPayloadPath, KeyFormat, KeyPath, Secret, View, is_operation_name,
    selector::{How, KeyFn, Selector},
};

/// How the keys of an operation are made: its name, the expression that selects the key, and the
/// key format.
///
/// Define it once, in code that producer and consumer share. The producer computes keys with it
/// ([`producer`](Self::producer)), and the consumer makes its operation from it
/// (`Operation::from(spec)` in `lambda-idempotency`), so that their keys cannot diverge.
///
/// ```
/// use lambda_idempotency_keys::{payload, producer::{KeyFormat, KeySpec, SecretError}};
///
/// // In a crate that both depend on:
/// pub fn place_order() -> KeySpec {
///     KeySpec::new("place-order", "[tenant, order.id]")
/// }
/// // With all settings:
/// pub fn invite(secret: &str) -> Result<KeySpec, SecretError> {
///     let form = KeyFormat::secret(secret)?;
///     let path = payload("[email, campaign]").optional(["campaign"]);
///     Ok(KeySpec::new("invite", path).key_format(form))
/// }
/// # place_order().producer().unwrap();
/// # invite("4f1f5c0e2b7d49a8").unwrap().producer().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct KeySpec {
    pub(super) operation: Arc<str>,
    pub(super) key: Option<KeyPath>,
    pub(super) function: Option<KeyFn>,
    pub(super) key_format: KeyFormat,
    #[cfg(feature = "powertools")]
    pub(super) powertools: Option<PowertoolsKeys>,
}

impl KeySpec {
    /// The keys of the operation with this name. `key` is a JMESPath expression on the payload; `@`
    /// selects all of it. Every part must be present, and keys are hashed.
    #[must_use]
    pub fn new(operation: impl Into<Arc<str>>, key: impl IntoPayloadPath) -> Self {
        Self::without_key(operation).key(key)
    }

    /// The operation with this name and without a key expression: its records are identified by the
    /// id that their source gives them. A producer cannot know that id in advance.
    #[must_use]
    pub fn without_key(operation: impl Into<Arc<str>>) -> Self {
        Self {
            operation: operation.into(),
            key: None,
            function: None,
            key_format: KeyFormat::Hashed,
            #[cfg(feature = "powertools")]
            powertools: None,
        }
    }

    /// Replaces the expression that selects the key.
    #[must_use]
    pub fn key(mut self, key: impl IntoPayloadPath) -> Self {
        self.key = Some(key.into_path());
        self
    }

    /// Replaces the expression by that of a source, which may be on the record around the payload.
    // For `lambda-idempotency`.
    #[doc(hidden)]
    #[must_use]
    pub fn with_path(mut self, path: KeyPath) -> Self {
        self.key = Some(path);
        self
    }

    /// How the key is written: hashed (default), readable, or with a secret.
    #[must_use]
    pub fn key_format(mut self, format: KeyFormat) -> Self {
        self.key_format = format;
        self
    }

    /// Makes the key with a function, where no expression can: one that compares, computes or chooses. It gets the
    /// payload's text and returns the parts of the key.
    ///
    /// Distinct parts are distinct keys, and they are the keys of an expression `[a, b]` that selects these texts. Which
    /// payloads have the same parts is up to the function. It has to return the same parts for the same work, also in
    /// later versions of the program. A payload without a part, or with an empty one, has no key. An error says why the
    /// payload is refused, in a fixed text, so that nothing of a payload reaches a log; a panic refuses it, too.
    ///
    /// ```
    /// use lambda_idempotency_keys::producer::KeySpec;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let invite = KeySpec::without_key("invite").key_fn(|payload: &str| {
    ///     let payload: serde_json::Value = serde_json::from_str(payload).map_err(|_| "it is not JSON")?;
    ///     let email = payload["email"].as_str().ok_or("it has no e-mail address")?;
    ///     Ok(vec![email.to_lowercase()])
    /// });
    /// let keys = invite.producer()?;
    /// assert_eq!(keys.key(r#"{ "email": "Ann@b.c" }"#)?, keys.key(r#"{ "email": "ann@b.c" }"#)?);
    /// assert!(keys.key("{}").is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key_fn(
        mut self,
        function: impl Fn(&str) -> Result<Vec<String>, &'static str> + Send + Sync + 'static,
    ) -> Self {
        self.function = Some(KeyFn::new(function));
        self
    }

    /// Makes the keys of Powertools for AWS Lambda, whose prefix replaces the operation's name.
    #[cfg(feature = "powertools")]
    #[must_use]
    pub fn powertools(mut self, powertools: PowertoolsKeys) -> Self {
        self.powertools = Some(powertools);
        self
    }

    /// The operation's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.operation
    }

    /// The expression that selects the key, if there is one.
    #[must_use]
    pub const fn key_path(&self) -> Option<&KeyPath> {
        self.key.as_ref()
    }

    /// The secret of the key format, if it has one.
    #[must_use]
    pub const fn secret(&self) -> Option<&Secret> {
        match &self.key_format {
            KeyFormat::Secret(secret) => Some(secret),
            KeyFormat::Hashed | KeyFormat::Readable => None,
        }
    }

    /// Whether a function makes the keys.
    #[must_use]
    pub const fn has_function(&self) -> bool {
        self.function.is_some()
    }

    /// Whether keys are made as Powertools makes them.
    #[must_use]
    pub fn is_of_powertools(&self) -> bool {
        self.powertools_settings().is_some()
    }

    /// A text that differs between settings of Powertools keys that make different keys from the same payload.
    // For `lambda-idempotency`, which compares two sources of one operation.
    #[doc(hidden)]
    #[must_use]
    pub fn powertools_settings(&self) -> Option<String> {
        #[cfg(feature = "powertools")]
        let settings = self.powertools.as_ref().map(PowertoolsKeys::settings);
        #[cfg(not(feature = "powertools"))]
        let settings = None;
        settings
    }
}

/// The use of an expression of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionUse {
    /// It selects the key.
    Key,
    /// It selects the fingerprint.
    Fingerprint,
}

impl fmt::Display for ExpressionUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Fingerprint => "fingerprint",
        })
    }
}

/// A mistake in a [`KeySpec`], or in an operation, which contains a `KeySpec`. The text says what is
/// wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySpecError {
    /// The operation's name is invalid.
    #[error("{0}")]
    Name(Box<str>),
    /// The expression of the key or of the fingerprint has a mistake or does not distinguish records, there is none
    /// where one is needed, or a setting of the keys excludes another one.
    #[error("{0}")]
    Key(Box<str>),
}

impl KeySpecError {
    pub(super) fn name(name: &str) -> Self {
        let use_instead = "use 1 to 128 characters, without `#` and without control characters";
        Self::Name(format!("the operation name {name:?} is not valid; {use_instead}").into())
    }

    pub(super) fn key(problem: String) -> Self {
        Self::Key(problem.into())
    }
}

/// A key specification with compiled expressions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// The operation's name.
    pub operation: Arc<str>,
    /// The format of its keys.
    pub key_format: KeyFormat,
    /// Selects the key. `None`: the id that the source gives the record.
    pub key: Option<Selector>,
    /// Selects what else must agree between deliveries.
    pub fingerprint: Option<Selector>,
}

impl KeySpec {
    /// Compiles the specification for a consumer, together with the expression of its fingerprint.
    /// A producer calls [`producer`](Self::producer).
    ///
    /// # Errors
    /// The specification or the fingerprint's expression has a mistake.
    // For `lambda-idempotency`.
    #[doc(hidden)]
    pub fn compile(&self, fingerprint: Option<&KeyPath>) -> Result<Compiled, KeySpecError> {
        if !is_operation_name(&self.operation) {
            return Err(KeySpecError::name(&self.operation));
        }
        let key = match (&self.key, &self.function) {
            (Some(path), Some(_)) => {
                return Err(self.refused(&format!(
                    "has `.key_fn(..)` and the key expression `{}`, of which only one can make the key; remove one",
                    path.expression
                )));
            }
            (Some(path), None) => Some(self.selector(ExpressionUse::Key, path)?),
            (None, Some(function)) => Some(Selector::made_by(
                View::Payload,
                ".key_fn(..)",
                How::Function(function.clone()),
            )),
            (None, None) => None,
        };
        if let Some(part) = fingerprint.and_then(|path| path.optional.first()) {
            return Err(self.refused(&format!(
                "has a fingerprint whose part `{part}` is optional, which only parts of a key can be; leave \
                 `.optional(..)` out"
            )));
        }
        let fingerprint =
            fingerprint.map(|path| self.selector(ExpressionUse::Fingerprint, path)).transpose()?;
        self.check_powertools()?;
        let operation = Arc::clone(&self.operation);
        Ok(Compiled { operation, key_format: self.key_format.clone(), key, fingerprint })
    }

    fn selector(&self, what: ExpressionUse, path: &KeyPath) -> Result<Selector, KeySpecError> {
        let mistake = |source| {
            let operation = &self.operation;
            KeySpecError::key(format!(
                "the {what} of operation `{operation}` has a mistake: {source}"
            ))
        };
        #[cfg(feature = "powertools")]
        if let Some(keys) = &self.powertools {
            // Without an expression, Powertools makes the key of the whole document.
            let is_whole = path.expression.trim() == "@";
            let expression =
                if is_whole { Ok(None) } else { keys.compile(&path.expression).map(Some) };
            let expression = expression.map_err(mistake)?;
            let how = How::Powertools(keys.clone(), expression);
            return Ok(Selector::made_by(path.view, &path.expression, how));
        }
        let parts = path.optional.iter().map(String::as_str);
        let expression = Expression::compile(&path.expression);
        let expression = expression.and_then(|all| all.optional(parts)).map_err(mistake)?;
        Ok(Selector::of(path.view, expression))
    }

    /// Refuses settings that Powertools keys do not have.
    fn check_powertools(&self) -> Result<(), KeySpecError> {
        let problem = match &self.key {
            _ if !self.is_of_powertools() => return Ok(()),
            _ if self.function.is_some() => {
                "has `.key_fn(..)`, which makes no Powertools keys: they are of what an expression selects; remove it, or \
                 `.powertools(..)`"
            }
            None => {
                "has `.powertools(..)` but no key; add one with `.key(\"...\")`: `@` selects the whole payload, as \
                 Powertools does without an expression"
            }
            Some(path)
                if !path.optional.is_empty() || !matches!(self.key_format, KeyFormat::Hashed) =>
            {
                "makes the keys of another library, which have no optional parts and a fixed format; remove \
                 `.optional(..)` and `.key_format(..)`, or `.powertools(..)`"
            }
            Some(_) => return Ok(()),
        };
        Err(self.refused(problem))
    }

    fn refused(&self, problem: &str) -> KeySpecError {
        KeySpecError::key(format!("operation `{}` {problem}", self.operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;

    #[test]
    fn mistakes_are_named_with_the_operation() {
        for (spec, expected) in [
            (KeySpec::new("", "id"), "the operation name \"\" is not valid"),
            (KeySpec::new("a#b", "id"), "the operation name \"a#b\" is not valid"),
            (
                KeySpec::new("place", "id["),
                "the key of operation `place` has a mistake: invalid JMESPath",
            ),
            (KeySpec::new("place", ""), "it is empty; write `@` for the whole payload"),
            (KeySpec::new("place", "'id'"), "it is a constant, the same for every record"),
            (KeySpec::new("place", "id").key_fn(|_| Err("no")), "only one can make the key"),
            (KeySpec::new("place", payload("[id]").optional(["no"])), "it lists `id`"),
            (KeySpec::without_key("place"), "it has no key expression"),
        ] {
            let error = spec.producer().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
