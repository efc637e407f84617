//! What the keys of an operation are made of, in one place for who sends and who processes.

use std::sync::Arc;

use super::{KeySpecError, Producer};
use crate::{Functions, KeyFormat, KeyPath, Secret, external::ExternalKeys};

/// How the keys of an operation are made: its name, where the key is in the payload, and the form.
///
/// Make it once, in code that producer and consumer share. The producer computes keys with it
/// ([`producer`](Self::producer)), the consumer makes its operation of it
/// (`Operation::from(spec)` in `lambda-idempotency`), and neither can change it alone.
///
/// ```
/// use lambda_idempotency_keys::producer::{KeyFormat, KeySpec, SecretError};
///
/// // In a crate of the two:
/// pub fn place_order() -> KeySpec {
///     KeySpec::new("place-order", "[tenant, order.id]")
/// }
/// // With all there is:
/// pub fn invite(secret: &str) -> Result<KeySpec, SecretError> {
///     let form = KeyFormat::secret(secret)?;
///     Ok(KeySpec::new("invite", "[email, campaign]").optional(["campaign"]).key_format(form))
/// }
/// # place_order().producer().unwrap();
/// # invite("4f1f5c0e2b7d49a8").unwrap().producer().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct KeySpec {
    pub(super) operation: Arc<str>,
    pub(super) key: Option<KeyPath>,
    pub(super) optional: Vec<String>,
    pub(super) key_format: KeyFormat,
    /// `None` is the standard ones.
    pub(super) functions: Option<Functions>,
    pub(super) powertools: Option<Arc<dyn ExternalKeys>>,
}

impl KeySpec {
    /// Keys of the operation with this name, which are what `key` selects from the payload:
    /// JMESPath, `@` for the whole of it. Every part must be there; keys are hashed.
    ///
    /// An expression on the record *around* the payload ([`record`](crate::record)) is for consumers only:
    /// AWS makes that record when the message is delivered.
    #[must_use]
    pub fn new(operation: impl Into<Arc<str>>, key: impl Into<KeyPath>) -> Self {
        Self::without_key(operation).key(key)
    }

    /// The operation with this name, whose records are known by what their source calls them. No producer
    /// can know that before.
    #[must_use]
    pub fn without_key(operation: impl Into<Arc<str>>) -> Self {
        Self {
            operation: operation.into(),
            key: None,
            optional: Vec::new(),
            key_format: KeyFormat::Hashed,
            functions: None,
            powertools: None,
        }
    }

    /// Another expression for the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<KeyPath>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Allows these parts of the key to be missing, `null` or empty, as
    /// [`Expression::optional`](crate::Expression::optional) does. Default: none.
    #[must_use]
    pub fn optional<'n>(mut self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        self.optional.extend(parts.into_iter().map(str::to_owned));
        self
    }

    /// How the key is written: hashed (default), readable, or with a secret.
    #[must_use]
    pub fn key_format(mut self, format: KeyFormat) -> Self {
        self.key_format = format;
        self
    }

    /// Functions of your own, for the expression. Default: the standard ones.
    #[must_use]
    pub fn key_functions(mut self, functions: Functions) -> Self {
        self.functions = Some(functions);
        self
    }

    /// Makes the keys of another library, whose prefix then takes the place of the operation's name:
    /// those of Powertools for AWS Lambda are in `lambda-idempotency-powertools`.
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

    /// Where the key is, if that is said.
    #[must_use]
    pub const fn key_path(&self) -> Option<&KeyPath> {
        self.key.as_ref()
    }

    /// The parts of the key that may be missing.
    #[must_use]
    pub fn optional_parts(&self) -> &[String] {
        &self.optional
    }

    /// The secret that keys are made with, if there is one.
    #[must_use]
    pub const fn secret(&self) -> Option<&Secret> {
        match &self.key_format {
            KeyFormat::Secret(secret) => Some(secret),
            KeyFormat::Hashed | KeyFormat::Readable => None,
        }
    }

    /// Whether it has functions of the user's own.
    #[must_use]
    pub const fn has_functions(&self) -> bool {
        self.functions.is_some()
    }

    /// The library whose keys they are, if they are not ours.
    #[must_use]
    pub fn external(&self) -> Option<&dyn ExternalKeys> {
        self.powertools.as_deref()
    }

    /// Compiles the specification. Do it once, when the program starts.
    ///
    /// # Errors
    /// A mistake in it: a name that cannot be used, an expression with a mistake, one that
    /// selects the same, or one of a few values, from everything, settings that exclude one another, a key
    /// that is not taken from the payload.
    pub fn producer(&self) -> Result<Producer, KeySpecError> {
        Producer::of(self.compile(None)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    #[test]
    fn mistakes_are_named_with_the_operation() {
        for (spec, expected) in [
            (KeySpec::new("", "id"), "operation name \"\""),
            (KeySpec::new("a#b", "id"), "operation name \"a#b\""),
            (KeySpec::new("place", "id["), "operation `place`: invalid JMESPath"),
            (KeySpec::new("place", ""), "it is empty; `@` stands for the whole payload"),
            (KeySpec::new("place", "'id'"), "`'id'` selects the same from every record"),
            (
                KeySpec::new("place", "length(items)"),
                "one of a few values, by `length`, which many",
            ),
            (KeySpec::new("place", "[id]").optional(["no"]), "it lists `id`"),
            (KeySpec::without_key("place").optional(["id"]), "part `id` of its key is optional"),
            (KeySpec::without_key("place"), "names no key"),
            (KeySpec::new("place", record("id")), "the record around the payload"),
        ] {
            let error = spec.producer().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
