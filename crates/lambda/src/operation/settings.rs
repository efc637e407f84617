//! The settings of an [`Operation`], in the order in which its documentation shows them: its name, its key, its policies.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::policy::{Lease, Mode, OnConflict, OnOutage, OnTimeout};
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
    /// [`KeySpec`] does not need Lambda's crates.
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

/// # Policies
///
/// With the default of each policy no record is lost: a record that was not processed returns to its source.
impl Operation {
    /// How keys are held, and what is kept of an attempt. Default: [`Mode::Claim`]. Guarantees and cost of each:
    /// [choosing a mode](crate::guide::choosing_a_mode).
    ///
    /// * [`Mode::Claim`]: the key is claimed, the handler makes its effects itself, and its completion is recorded.
    /// * [`Mode::Transactional`]: the handler collects effects with [`CallExt::transact`](crate::CallExt::transact) or
    ///   `execute`, which are committed in one transaction with the completion of the key: both or neither, whatever
    ///   fails.
    /// * [`Mode::Optimistic`]: the same without a claim. It saves the claim's write and its round trip. Duplicates cost
    ///   more, because their handlers may run, and nothing is recorded of attempts that fail, time out or die.
    /// * [`Mode::Mutex`]: keys exclude each other, and nothing more: **each delivery calls the handler**, and no two
    ///   handlers of a key run at the same time. For work that must not overlap but may be repeated, such as a nightly
    ///   import; the key names what is protected, not the record.
    ///
    /// All uses of a name have the same mode. Give an operation that becomes a mutex a new name: a key that was
    /// completed before is answered from its completion until that expires.
    ///
    /// # Errors
    /// When a function is built, and by [`check`](Self::check):
    ///
    /// * with effects: a store without transactions; `RunUnprotected` for [`on_outage`](Self::on_outage) or
    ///   [`on_missing_key`](Self::on_missing_key), and `IDEMPOTENCY_DISABLED`, because without a claim there is no
    ///   completion to commit with;
    /// * without a claim: [`lease`](Self::lease), [`max_failed_attempts`](Self::max_failed_attempts) and
    ///   [`max_lost_attempts`](Self::max_lost_attempts), which have no effect; a [`retention`](Self::retention) of
    ///   less than 15 minutes, because a request that arrives late could be applied after it; records that are kept for [recovery](crate::source::Sqs::recoverable);
    /// * for a mutex: no [`key`](Self::key), because each record would have its own; [`retention`](Self::retention),
    ///   [`result_retention`](Self::result_retention), [`fingerprint`](Self::fingerprint), [`on_timeout`](Self::on_timeout),
    ///   [`max_failed_attempts`](Self::max_failed_attempts) and [`max_lost_attempts`](Self::max_lost_attempts), which
    ///   have no effect; records that are kept for [recovery](crate::source::Sqs::recoverable), because the next
    ///   record of a key replaces them.
    ///
    /// ```
    /// use lambda_idempotency::{Mode, Operation};
    ///
    /// let deposit = Operation::new("deposit").key("depositId").mode(Mode::Transactional);
    /// assert_eq!(deposit.check(), Ok(()));
    /// // One import of a tenant at a time.
    /// let import = Operation::new("import").key("tenant").mode(Mode::Mutex);
    /// assert_eq!(import.check(), Ok(()));
    /// assert!(import.max_failed_attempts(3).check().is_err());
    /// ```
    pub fn mode(mut self, mode: Mode) -> Self {
        self.policy.mode = mode;
        self.changed()
    }

    /// How long a completion or a permanent failure answers later deliveries of its key, rounded up
    /// to a whole second. Default: 24 hours.
    ///
    /// **A duplicate that arrives later is processed again.** Choose the longest time between two
    /// deliveries of the same work. 24 hours cover Lambda's own retries of an asynchronous event,
    /// which end after 6 hours. A queue keeps messages for 4 days by default and for 14 at most.
    /// That time begins again in a dead-letter queue that is FIFO, and after a redrive. If you redrive, set
    /// a retention that covers it all, and a [`key`](Self::key) from the payload, because a redriven
    /// message has another id. A longer retention costs storage: one item for each key.
    ///
    /// # Errors
    /// Zero is refused by [`check`](Self::check) and when a function is built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// // A queue and a dead-letter queue that each keep messages for 14 days.
    /// let place = Operation::new("place-order").key("orderId").retention(Duration::from_hours(24 * 28));
    /// assert_eq!(place.check(), Ok(()));
    /// assert!(Operation::new("place-order").retention(Duration::ZERO).check().is_err());
    /// ```
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self.changed()
    }

    /// How long a duplicate is answered with the *result*, counted from when the work was done. After that the key still
    /// answers: the work is not done again, and the duplicate is answered as if the result had not been kept
    /// ([`ResultLost::NotKept`](crate::error::ResultLost::NotKept) from [`run`](crate::Idempotency::run) and
    /// [`kept_result`](crate::Idempotency::kept_result)). Default: as long as the key answers; a time
    /// that is not shorter than the [`retention`](Self::retention) is refused.
    ///
    /// For results that must not be given for as long as duplicates have to be recognised, such as a response with a
    /// session cookie. It is compared when a duplicate is answered, so a change applies to the records that are
    /// there. **The result stays in the store** until its record is deleted: no store deletes a part of a record.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// // Duplicates are recognised for 14 days, and answered with the result for 10 minutes.
    /// let sign_in = Operation::new("sign-in")
    ///     .key("requestId")
    ///     .retention(Duration::from_hours(24 * 14))
    ///     .result_retention(Duration::from_mins(10));
    /// assert_eq!(sign_in.check(), Ok(()));
    /// ```
    pub fn result_retention(mut self, retention: Duration) -> Self {
        self.policy.result_retention = Some(retention);
        self.changed()
    }

    /// How long a claim holds its key, and so how long other workers wait if its worker dies.
    /// Default: [`Lease::Invocation`], until a second after the invocation's deadline, because Lambda may stop a function
    /// some tenths of a second late. Another worker takes the key over one more second later, by which clocks may differ.
    ///
    /// [`Lease::Renewed`] is for functions with timeouts of many minutes. It costs one write to the
    /// store for each third of its length; handlers that finish within a third cost nothing.
    ///
    /// # Errors
    /// A renewed lease of less than 1 second or more than 24 hours is refused by [`check`](Self::check) and when a
    /// function is built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{Operation, policy::Lease};
    ///
    /// let length = Duration::from_secs(30);
    /// let export = Operation::new("export").key("exportId").lease(Lease::Renewed { length });
    /// assert_eq!(export.check(), Ok(()));
    /// ```
    pub fn lease(mut self, lease: Lease) -> Self {
        self.policy.lease = lease;
        self.changed()
    }

    /// The treatment of a delivery while another worker holds its key. The default depends on the
    /// source: [`OnConflict::Return`] for SQS, whose queue delivers the message again (also to a pipe), and for HTTP
    /// requests and [`run`](crate::Idempotency::run), whose callers get an error;
    /// [`OnConflict::Wait`] for all other sources, which retry only a few times or deliver nothing
    /// else until they get a response.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{Operation, policy::OnConflict};
    ///
    /// let up_to = Duration::from_secs(5);
    /// let charge = Operation::new("charge").key("paymentId").on_conflict(OnConflict::Wait { up_to });
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn on_conflict(mut self, policy: OnConflict) -> Self {
        self.on_conflict = Some(policy);
        self.changed()
    }

    /// The treatment of a key whose handler was stopped shortly before the invocation's deadline.
    /// Its effect may still happen. Default: [`OnTimeout::Return`], a later delivery calls the
    /// handler again once the lease has expired.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, policy::OnTimeout};
    ///
    /// // A person has to find out whether the payment went out.
    /// let pay = Operation::new("pay-out").key("payoutId").on_timeout(OnTimeout::FailPermanently);
    /// assert_eq!(pay.check(), Ok(()));
    /// ```
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.policy.on_timeout = on_timeout;
        self.changed()
    }

    /// The treatment of a record whose key cannot be claimed because the store does not answer.
    /// Default: [`OnOutage::Return`], it returns to its source.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, policy::OnOutage};
    ///
    /// // A second notification is better than none.
    /// let notify = Operation::new("notify").key("id").on_outage(OnOutage::RunUnprotected);
    /// assert_eq!(notify.check(), Ok(()));
    /// ```
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self.changed()
    }

    /// After how many failed attempts a key fails permanently, so that its handler is not called again; 0
    /// counts as 1, the first failure. Default: no limit, the source decides how often it delivers.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let charge = Operation::new("charge").key("paymentId").max_failed_attempts(3);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn max_failed_attempts(mut self, most: u32) -> Self {
        self.policy.max_failed_attempts = Some(most);
        self.changed()
    }

    /// After how many lost attempts in a row a key fails permanently, so that its handler is not called again; 0 counts
    /// as 1. An attempt is lost if its worker was killed, lost the store, or dropped the call of
    /// [`run`](crate::Idempotency::run); an attempt that fails, or is stopped at its deadline, ends the row. Default: no limit,
    /// the source decides how often it delivers.
    ///
    /// For work that ends its process each time: a call of `run` has no [quarantine](crate::guide::failure_modes#quarantine)
    /// beside it, and nothing but its caller limits how often it is made. **For sources with batches choose at least 3, and at
    /// least 6 on Managed Instances**: records that came with one that kills are lost with it, up to so often.
    ///
    /// The delivery that finds so many losses is `failed`, with an error of the type `lost attempts`; later ones are
    /// `permanently_failed`.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let charge = Operation::new("charge").key("paymentId").max_lost_attempts(3);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn max_lost_attempts(mut self, most: u32) -> Self {
        self.policy.max_lost_attempts = Some(most);
        self.changed()
    }
}
