//! The name and the key of an [`Operation`].

use std::sync::Arc;

#[cfg(feature = "powertools")]
use lambda_idempotency_keys::powertools::PowertoolsKeys;
use lambda_idempotency_keys::{
    IntoPayloadPath, KeyFormat,
    producer::{KeySpec, Producer},
};

use super::{OnMissingKey, Operation};
use crate::error::ConfigError;

/// # Name and key
impl Operation {
    /// An operation with this name and every setting at its default.
    ///
    /// The name has 1 to 128 characters, none of them `#` or a control character. It is part of
    /// every key: if you rename an operation, its earlier completions are no longer found.
    ///
    /// Without [`key`](Self::key), the record's own id is the key. It recognises a record that its
    /// source delivers again, but not one that its producer sent twice.
    ///
    /// # Errors
    /// None here. An invalid name is refused by [`check`](Self::check), and when a function is
    /// built with the operation.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// assert_eq!(Operation::new("place-order").check(), Ok(()));
    /// assert!(Operation::new("place#order").check().is_err());
    /// ```
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::of(KeySpec::without_key(name))
    }

    /// The operation's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.keys.name()
    }

    /// Where the idempotency key is: an expression on the payload, [the part of
    /// JMESPath](crate::guide::keys#expressions) that selects and decodes. Default: the record's own id or, where there
    /// is none, the whole payload. [`key_fn`](Self::key_fn) makes keys that have to be computed.
    ///
    /// `[a, b]` makes a key of several parts. Each part must be present and neither `null` nor empty, unless it is
    /// [optional](lambda_idempotency_keys::PayloadPath::optional): `payload("[a, b]").optional(["b"])`. A source
    /// whose payloads have the key at another place, or in the record around the payload, has
    /// [a path of its own](crate::source::Sqs::key).
    ///
    /// Values are compared as they are written in JSON: `"42"` and `42` are two keys, and so are
    /// `1` and `1.0`, which other languages distinguish (`1.0`, `1.00` and `1e0` are one key). The
    /// values that an expression reads may be nested 127 levels deep; a record with deeper values
    /// is rejected.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: an expression with a
    /// mistake, an expression that compares, computes or chooses, and an expression that reads a value that
    /// differs on each delivery.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, keys::payload};
    ///
    /// let by_field = Operation::new("place-order").key("orderId");
    /// let by_two = Operation::new("place-order").key("[tenant, order.id]");
    /// let optional = Operation::new("place-order").key(payload("[id, coupon]").optional(["coupon"]));
    /// # for operation in [by_field, by_two, optional] { operation.check().unwrap(); }
    /// // A string in single quotes is a constant in JMESPath, the same for every record.
    /// assert!(Operation::new("place-order").key("'orderId'").check().is_err());
    /// ```
    pub fn key(mut self, path: impl IntoPayloadPath) -> Self {
        self.keys = self.keys.key(path);
        self.changed()
    }

    /// The values that must also agree between two deliveries with the same key: an
    /// expression, as for [`key`](Self::key). Default: none.
    ///
    /// If they differ, the later delivery is a [`Mismatch`](crate::Outcome::Mismatch): it returns
    /// to its source (or is given to its [sink](crate::source::Sqs::divert)) instead of being
    /// answered with the result of other work.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: an expression with a
    /// mistake, and one that reads a value that differs on each delivery.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// // A second charge for a payment, with another amount, is not treated as a duplicate.
    /// let charge = Operation::new("charge").key("paymentId").fingerprint("[amount, currency]");
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn fingerprint(mut self, path: impl IntoPayloadPath) -> Self {
        self.fingerprint = Some(path.into_path());
        self.changed()
    }

    /// The treatment of a record in which the [`key`](Self::key) expression finds no key or, without an expression, that
    /// has no default key. Default: [`OnMissingKey::Return`], it is a bad record.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, policy::OnMissingKey};
    ///
    /// // Messages without an order id are processed at each delivery.
    /// let place = Operation::new("place-order")
    ///     .key("orderId")
    ///     .on_missing_key(OnMissingKey::RunUnprotected);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    pub fn on_missing_key(mut self, policy: OnMissingKey) -> Self {
        self.on_missing_key = policy;
        self.changed()
    }

    /// Makes the key with a function, where no expression can: one that compares, computes or chooses. It gets the
    /// payload's text and returns the parts of the key.
    ///
    /// Distinct parts are distinct keys; which payloads have the same parts is up to the function. It has to return the
    /// same parts for the same work, also after an upgrade: other parts are another key, and earlier completions are not
    /// found.
    ///
    /// A record for which it returns no part, or an empty one, has no key, as
    /// [`on_missing_key`](Self::on_missing_key) says. An error makes a bad record of it: a fixed text, so that nothing of
    /// the payload gets into a log. A panic does so, too.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built, together with [`key`](Self::key), with a key of the
    /// source, and with `powertools`.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(serde::Deserialize)]
    /// struct Invite { email: String }
    ///
    /// let invite = Operation::new("invite").key_fn(|payload: &str| {
    ///     let Invite { email } = serde_json::from_str(payload).map_err(|_| "it is not an invitation")?;
    ///     Ok(vec![email.to_lowercase()])
    /// });
    /// let keys = invite.producer()?;
    /// assert_eq!(keys.key(r#"{ "email": "A@b.c" }"#)?, keys.key(r#"{ "email": "a@B.C" }"#)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_fn(
        mut self,
        function: impl Fn(&str) -> Result<Vec<String>, &'static str> + Send + Sync + 'static,
    ) -> Self {
        self.keys = self.keys.key_fn(function);
        self.changed()
    }

    /// How keys are written in the store. Default: [`KeyFormat::Hashed`], from which no value can
    /// be read.
    ///
    /// * [`KeyFormat::Readable`] stores keys such as `place-order#~/acme/+42` if their parts are
    ///   short and have only safe characters, and hashes all others. **Everyone who can read the
    ///   table's keys can then read these parts.** Logs still show a hash.
    /// * [`KeyFormat::secret`] makes keys and fingerprints with HMAC-SHA256 and a secret, for keys
    ///   that are personal data: a person who has the table, but not the secret, cannot recover
    ///   values by hashing guesses. All functions that share the operation need the same secret.
    ///
    /// Another format or another secret makes other keys: until the retention has passed,
    /// duplicates of earlier records are not recognised.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, keys::KeyFormat};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let place = Operation::new("place-order").key("[tenant, id]").key_format(KeyFormat::Readable);
    /// let key = place.producer()?.key(r#"{ "tenant": "acme", "id": 42 }"#)?;
    /// assert!(key.as_str().starts_with("place-order#~/"), "{}", key.as_str());
    /// # let secret = [7; 32];
    /// // The secret is from AWS Secrets Manager, for example.
    /// let invite = Operation::new("invite").key("email").key_format(KeyFormat::secret(secret)?);
    /// assert_eq!(invite.check(), Ok(()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_format(mut self, format: KeyFormat) -> Self {
        self.keys = self.keys.key_format(format);
        self.changed()
    }

    /// Makes keys, fingerprints and results as Powertools for AWS Lambda does, so that a table can
    /// be shared with, or taken over from, a Python or TypeScript function. Read [the page about
    /// it](crate::guide::powertools) before two functions share a table.
    ///
    /// [`key`](Self::key) is then Powertools' `event_key_jmespath` (`@` if Powertools has none),
    /// and [`fingerprint`](Self::fingerprint) its `payload_validation_jmespath`. Keys contain the
    /// prefix of Powertools, but neither the operation's name nor the tenant. Powertools keeps
    /// records for an hour by default: set [`retention`](Self::retention) to the same time on both
    /// sides.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, keys::powertools::PowertoolsKeys};
    ///
    /// let place = Operation::new("place-order")
    ///     .key("order_id")
    ///     .powertools(PowertoolsKeys::python("orders-fn.app.process"));
    /// # place.check().unwrap();
    /// ```
    #[cfg(feature = "powertools")]
    pub fn powertools(mut self, powertools: PowertoolsKeys) -> Self {
        self.keys = self.keys.powertools(powertools);
        self.changed()
    }

    /// Checks the operation, as building a function does. Call it for an operation of
    /// [`run`](crate::Idempotency::run), which otherwise reports a mistake only at the first call.
    ///
    /// # Errors
    /// A mistake in the settings; see [`ConfigError`].
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let mistaken = Operation::new("charge").key("payment.").check().unwrap_err();
    /// assert!(mistaken.to_string().starts_with("the key of operation `charge` has a mistake"), "{mistaken}");
    /// ```
    pub fn check(&self) -> Result<(), ConfigError> {
        self.prepared().map(|_| ())
    }

    /// Computes the keys of payloads before they are sent; see [`producer`](crate::keys::producer). Use
    /// it in programs that already have the operation; for others, a
    /// [`KeySpec`](crate::keys::producer::KeySpec) does not need Lambda's crates.
    ///
    /// # Errors
    /// A mistake in the operation; an operation without a [`key`](Self::key), whose keys are the ids that AWS gives
    /// records.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let place = Operation::new("place-order").key("orderId");
    /// let message = place.producer()?.message(&serde_json::json!({ "orderId": 7 }))?;
    /// assert_eq!(message.body(), r#"{"orderId":7}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn producer(&self) -> Result<Producer, ConfigError> {
        self.prepared()?;
        Ok(self.keys.producer()?)
    }
}

/// An operation whose keys follow this specification, which its producers share.
///
/// ```
/// use lambda_idempotency::{Operation, keys::producer::KeySpec};
///
/// let spec = KeySpec::new("place-order", "[tenant, order.id]");
/// // The consumer; settings that do not concern the producer are made here:
/// let operation = Operation::from(spec.clone()).max_failed_attempts(3);
/// // The producer:
/// let producer = spec.producer().unwrap();
/// # operation.check().unwrap();
/// ```
impl From<KeySpec> for Operation {
    fn from(spec: KeySpec) -> Self {
        Self::of(spec)
    }
}
