//! The key specification of an operation, shared by its producer and its consumer.

use std::sync::Arc;

use super::{KeySpecError, Producer};
use crate::{Functions, IntoPayloadPath, KeyFormat, KeyPath, Secret, external::ExternalKeys};

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
    pub(super) key_format: KeyFormat,
    /// `None` means the standard functions.
    pub(super) functions: Option<Functions>,
    pub(super) powertools: Option<Arc<dyn ExternalKeys>>,
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
            key_format: KeyFormat::Hashed,
            functions: None,
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

    /// The functions that the expression may call. Default: the standard functions.
    #[must_use]
    pub fn key_functions(mut self, functions: Functions) -> Self {
        self.functions = Some(functions);
        self
    }

    /// Makes the keys of another library, whose prefix replaces the operation's name.
    /// The feature `powertools` has those of Powertools for AWS Lambda.
    #[must_use]
    pub fn powertools(mut self, powertools: impl ExternalKeys + 'static) -> Self {
        self.powertools = Some(Arc::new(powertools));
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

    /// Whether [`key_functions`](Self::key_functions) was called.
    #[must_use]
    pub const fn has_functions(&self) -> bool {
        self.functions.is_some()
    }

    /// The other library whose keys are made, if any.
    #[must_use]
    pub fn external(&self) -> Option<&dyn ExternalKeys> {
        self.powertools.as_deref()
    }

    /// Compiles the specification. Call it once, when the program starts.
    ///
    /// # Errors
    /// The name is invalid; the expression is invalid, or selects the same value or one of a few
    /// values from every payload; settings exclude each other; or there is no expression.
    pub fn producer(&self) -> Result<Producer, KeySpecError> {
        Producer::of(self.compile(None)?)
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
            (KeySpec::new("place", "'id'"), "`'id'` selects the same from every record"),
            (
                KeySpec::new("place", "length(items)"),
                "one of a few values, because of `length`, and many",
            ),
            (KeySpec::new("place", payload("[id]").optional(["no"])), "it lists `id`"),
            (KeySpec::without_key("place"), "it has no key expression"),
        ] {
            let error = spec.producer().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
