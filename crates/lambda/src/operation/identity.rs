//! An operation's name, and the settings of its keys.

use std::sync::Arc;

use lambda_idempotency_core::policy::Policy;
use lambda_idempotency_engine::batch::AfterFailure;
use lambda_idempotency_keys::{
    Functions, KeyFormat, KeyPath,
    producer::{KeySpec, KeySpecError, Producer},
};

use super::Operation;
use crate::{error::ConfigError, on_missing_key::OnMissingKey};

/// # Name and key
///
/// Two deliveries are the same work if they have the same idempotency key. The key is made of the
/// operation's name, the tenant of the invocation (where Lambda names one), and the parts of the record
/// that [`key`](Operation::key) selects.
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
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::of(KeySpec::without_key(name))
    }

    /// The operation's name.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// assert_eq!(Operation::new("place-order").name(), "place-order");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.keys.name()
    }

    /// Where the idempotency key is: a JMESPath expression on the payload or, with
    /// [`record`](crate::record), on the record around it. Default: the record's own id.
    ///
    /// `[a, b]` makes a key of several parts. Each part must be present and neither `null` nor
    /// empty, unless it is [`optional`](Self::optional). [`on_missing_key`](Self::on_missing_key)
    /// sets what happens to a record without a key.
    ///
    /// Values are compared as they are written in JSON: `"42"` and `42` are two keys, and so are
    /// `1` and `1.0`, which other languages distinguish (`1.0`, `1.00` and `1e0` are one key). The
    /// values that an expression reads may be nested 127 levels deep; a record with deeper values
    /// is rejected.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: an expression with a
    /// mistake, an expression that selects the same value or one of a few values from every record
    /// or from all that lack a field (``id || 'none'``), and an expression that selects a value that
    /// differs on each delivery.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, record};
    ///
    /// let by_field = Operation::new("place-order").key("orderId");
    /// let by_two = Operation::new("place-order").key("[tenant, order.id]");
    /// let by_record = Operation::new("place-order").key(record("Sns.MessageId"));
    /// # for operation in [by_field, by_two, by_record] { operation.check().unwrap(); }
    /// // A string in single quotes is a JMESPath constant, the same for every record.
    /// assert!(Operation::new("place-order").key("'orderId'").check().is_err());
    /// ```
    #[must_use]
    pub fn key(mut self, path: impl Into<KeyPath>) -> Self {
        self.keys = self.keys.key(path);
        self.changed()
    }

    /// Takes the key expression from an environment variable. If the variable is not set,
    /// [`key`](Self::key) applies. Default: no variable.
    ///
    /// A value that begins with `record:` is applied to the record around the payload. The variable is
    /// read once, when the function starts.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: a variable that is not set
    /// if there is no [`key`](Self::key) either, and an expression with a mistake in the variable.
    /// A variable that is empty or not valid UTF-8 is a mistake; it does not count as unset.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// // `orderId`, unless the variable is set.
    /// let place = Operation::new("place-order").key("orderId").key_from_env("ORDER_KEY");
    /// assert_eq!(place.check(), Ok(()));
    /// // Without `key` the variable has to be set.
    /// assert!(Operation::new("place-order").key_from_env("ORDER_KEY").check().is_err());
    /// ```
    #[must_use]
    pub fn key_from_env(mut self, variable: impl Into<String>) -> Self {
        self.key_variable = Some(variable.into());
        self.changed()
    }

    /// Allows these parts of the [`key`](Self::key) to be missing, `null` or empty: name a part of
    /// `{id: order.id, by: user}` by its name, and a part of `[order.id, user]` by its path. At
    /// least one part must still be present. Default: every part must be present.
    ///
    /// A missing part is hashed as missing, which is distinct from every value. The keys of records
    /// that have all parts do not change.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: a name that is not a part of the
    /// key, and an optional part without a [`key`](Self::key).
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let place = Operation::new("place-order").key("[order.id, coupon]").optional(["coupon"]);
    /// let keys = place.producer()?;
    /// let without = keys.key(r#"{ "order": { "id": 7 } }"#)?;
    /// let with = keys.key(r#"{ "order": { "id": 7 }, "coupon": "SPRING" }"#)?;
    /// assert_ne!(without, with);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn optional<'n>(mut self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        self.keys = self.keys.optional(parts);
        self.changed()
    }

    /// Sets custom functions for the expressions of [`key`](Self::key) and
    /// [`fingerprint`](Self::fingerprint). Default: [`Functions::standard`], those of JMESPath.
    ///
    /// A function has to return the same result for the same arguments, also after an upgrade: if
    /// its result changes, the key changes, and earlier completions are not found.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built, if no expression could call them.
    ///
    /// ```
    /// use lambda_idempotency::{Functions, Operation};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let functions = Functions::standard().with("lower", 1, |arguments| match arguments {
    ///     [text] => text.as_str().map(|text| text.to_lowercase().into()).ok_or("it is not a text"),
    ///     _ => Err("it takes one text"),
    /// });
    /// let invite = Operation::new("invite").key("lower(email)").key_functions(functions);
    /// let keys = invite.producer()?;
    /// assert_eq!(keys.key(r#"{ "email": "A@b.c" }"#)?, keys.key(r#"{ "email": "a@B.C" }"#)?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key_functions(mut self, functions: Functions) -> Self {
        self.keys = self.keys.key_functions(functions);
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
    /// use lambda_idempotency::{KeyFormat, Operation};
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
    #[must_use]
    pub fn key_format(mut self, format: KeyFormat) -> Self {
        self.keys = self.keys.key_format(format);
        self.changed()
    }

    /// The values that must also agree between two deliveries with the same key: a JMESPath
    /// expression, as for [`key`](Self::key). Default: none.
    ///
    /// If they differ, the later delivery is a [`Mismatch`](crate::Outcome::Mismatch): it returns
    /// to its source (or is given to the sink of [`divert`](Self::divert)) instead of being
    /// answered with the result of other work.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: an expression with a
    /// mistake, and one that selects the same value from every record or a value that differs on
    /// each delivery.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// // A second charge for a payment, with another amount, is not treated as a duplicate.
    /// let charge = Operation::new("charge").key("paymentId").fingerprint("[amount, currency]");
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn fingerprint(mut self, path: impl Into<KeyPath>) -> Self {
        self.fingerprint = Some(path.into());
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

    /// Computes the keys of payloads before they are sent; see [`producer`](crate::producer). Use
    /// it in programs that already have the operation; for others, a
    /// [`KeySpec`](crate::producer::KeySpec) does not need Lambda's crates.
    ///
    /// # Errors
    /// A mistake in the operation; a key that a payload alone does not give, because it is taken from
    /// the record that AWS creates around the payload.
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
        if self.whole_record {
            return Err(KeySpecError::RecordKey { operation: self.shared_name() }.into());
        }
        Ok(self.spec()?.producer()?)
    }

    /// An operation with these keys, and every other setting at its default.
    pub(super) fn of(keys: KeySpec) -> Self {
        Self {
            keys,
            key_variable: None,
            fingerprint: None,
            policy: Policy::default(),
            on_conflict: None,
            on_missing_key: OnMissingKey::Return,
            bad_record: None,
            sink: None,
            filters: Vec::new(),
            envelopes: Vec::new(),
            whole_record: false,
            order: None,
            after_failure: AfterFailure::Group,
            returns_whole_batch: false,
            on_busy: None,
            recoverable: None,
            prepared: Arc::default(),
        }
    }
}
