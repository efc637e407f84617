//! Computes the key of a payload before it is sent, with the same code that the consumer uses.
//!
//! A producer can use the consumer's key to give a FIFO queue or topic a [deduplication
//! id](Message::deduplication_id), to log which work a message asks for ([`Key::hash`]), to look up
//! the idempotency record, or to report a payload without a key to its caller, before it is sent.
//!
//! ```
//! use lambda_idempotency_keys::producer::KeySpec;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let place = KeySpec::new("place-order", "[tenant, order.id]").producer()?;
//! let order = serde_json::json!({ "tenant": "acme", "order": { "id": 42, "note": "hi" } });
//! let message = place.message(&order)?;
//! // sqs.send_message().queue_url(..).message_group_id("acme")
//! //     .message_body(message.body())
//! //     .message_deduplication_id(message.deduplication_id())
//! assert_eq!(message.deduplication_id().len(), 64);
//! assert!(message.key().as_str().starts_with("place-order#"));
//!
//! let refused = place.message(&serde_json::json!({ "tenant": "acme" })).unwrap_err();
//! assert!(refused.to_string().contains("part 2 of it selects nothing"));
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`KeySpec`] | what keys are made of, shared by producer and consumer |
//! | [`Producer`] | computes the key of a payload |
//! | [`Message`] | a payload with its key and its deduplication id |
//! | [`ProducerError`], [`PayloadError`] | why a payload has no key |
//!
//! None of this needs Lambda or the AWS SDK.

mod key_spec;

use std::{cell::LazyCell, fmt, sync::Arc};

use serde::Serialize;

// For `lambda-idempotency`, which compiles an operation together with its fingerprint.
#[doc(hidden)]
pub use self::key_spec::Compiled;
pub use self::key_spec::{ExpressionUse, KeySpec, KeySpecError};
#[doc(hidden)]
pub use crate::{selection::Made, selector::Selector};

// The types in the signatures of a key specification.
#[doc(no_inline)]
pub use crate::{
    IntoPayloadPath, Key, KeyFormat, KeyPath, PayloadPath, Secret, SecretError, payload,
};

use crate::{Digest, Document, DocumentError, FieldSet, Scope, SelectionError};

/// Computes the keys of payloads as the consumer with the same [`KeySpec`] does. Cheap to clone.
///
/// Pass it the *payload*: the body of an SQS message, the message of an SNS notification, the
/// `detail` of an EventBridge event, the data of a Kinesis or Kafka record. Do not pass the
/// envelope that AWS adds.
#[derive(Clone)]
pub struct Producer {
    operation: Arc<str>,
    tenant: Option<Arc<str>>,
    keys: Arc<Keys>,
}

/// The id of a tenant may be that of a person.
impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Producer");
        shown.field("operation", &self.operation).field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Keys {
    selector: Selector,
    reads: FieldSet,
    format: KeyFormat,
}

/// Why a payload has no key. The consumer would refuse it for the same reason, unless its policy is
/// to run or skip records without a key.
///
/// The message says what is wrong and what to do; it never quotes the payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProducerError {
    /// The payload is not JSON, or its key is missing or unusable.
    #[error("the payload for operation `{operation}` has no key: {reason}")]
    Rejected {
        /// The operation.
        operation: Arc<str>,
        /// Why the consumer would refuse it.
        #[source]
        reason: PayloadError,
    },
    /// The value cannot be serialized as JSON: its `Serialize` fails, or it holds a map whose keys
    /// are not strings.
    #[error(
        "the payload for operation `{operation}` cannot be serialized as JSON; \
         correct its `Serialize`, or use strings as the keys of its maps"
    )]
    Unserializable {
        /// The operation.
        operation: Arc<str>,
    },
}

/// The reason why a payload has no key, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The payload is not JSON.
    #[error("the payload is {0}; send JSON")]
    NotJson(#[source] DocumentError),
    /// The payload's bytes are not UTF-8.
    #[error("the payload is not valid UTF-8; send JSON")]
    NotText,
    /// The key expression does not select a usable key.
    #[error(
        "the payload has no idempotency key under `{expression}`: {error}; correct the payload or the \
         expression"
    )]
    Key {
        /// The expression.
        expression: Arc<str>,
        /// The reason why the selected value is no key.
        #[source]
        error: SelectionError,
    },
}

impl KeySpec {
    /// Compiles the specification. Call it once, when the program starts.
    ///
    /// # Errors
    /// The name or the expression is invalid, settings exclude each other, or neither an expression nor a function makes
    /// the key.
    pub fn producer(&self) -> Result<Producer, KeySpecError> {
        let Compiled { operation, key_format: format, key, .. } = self.compile(None)?;
        let Some(selector) = key else {
            return Err(KeySpecError::key(format!(
                "a payload alone does not give the keys of operation `{operation}`: it has no key expression, so \
                 its keys are the ids that AWS gives records when it delivers them; select a part of the payload \
                 with `.key(\"...\")`"
            )));
        };
        let reads = FieldSet::of(selector.expression());
        Ok(Producer { operation, tenant: None, keys: Arc::new(Keys { selector, reads, format }) })
    }
}

impl Producer {
    /// Computes keys for one tenant, for a consumer that uses [tenant isolation]: Lambda passes the
    /// tenant to the consumer, which adds it to every key. Default: no tenant.
    ///
    /// [tenant isolation]: https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html
    #[must_use]
    pub fn for_tenant(&self, tenant: impl Into<Arc<str>>) -> Self {
        Self { tenant: Some(tenant.into()), ..self.clone() }
    }

    /// The key of a payload, exactly as the consumer stores it.
    ///
    /// # Errors
    /// The payload has no key: see [`ProducerError`].
    pub fn key(&self, payload: &str) -> Result<Key, ProducerError> {
        let scope = Scope { operation: &self.operation, tenant: self.tenant.as_deref() };
        self.keys.key(&scope, payload).map_err(|reason| self.rejected(reason))
    }

    /// The key of a payload of bytes, as Kinesis and Kafka carry them. They must be UTF-8.
    ///
    /// # Errors
    /// The bytes are not UTF-8, or the payload has no key.
    pub fn key_of_bytes(&self, payload: &[u8]) -> Result<Key, ProducerError> {
        match str::from_utf8(payload) {
            Ok(text) => self.key(text),
            Err(_) => Err(self.rejected(PayloadError::NotText)),
        }
    }

    /// Serializes a value as the JSON text to send, with its key. Send exactly this text: another
    /// serializer could write a number differently.
    ///
    /// # Errors
    /// The value cannot be serialized as JSON, or has no key.
    pub fn message<P: Serialize + ?Sized>(&self, payload: &P) -> Result<Message, ProducerError> {
        let body = serde_json::to_string(payload)
            // The error is dropped because it may quote the value.
            .map_err(|_| ProducerError::Unserializable {
                operation: Arc::clone(&self.operation),
            })?;
        self.message_of(body)
    }

    /// A payload that is already JSON text, with its key.
    ///
    /// # Errors
    /// The payload has no key.
    pub fn message_of(&self, body: impl Into<String>) -> Result<Message, ProducerError> {
        let body = body.into();
        let key = self.key(&body)?;
        Ok(Message { body, key })
    }

    fn rejected(&self, reason: PayloadError) -> ProducerError {
        ProducerError::Rejected { operation: Arc::clone(&self.operation), reason }
    }
}

impl Keys {
    fn key(&self, scope: &Scope<'_>, payload: &str) -> Result<Key, PayloadError> {
        let Self { selector, reads, format } = self;
        let document = LazyCell::new(|| Document::read(payload, reads));
        let made =
            selector.key(payload, || (*document).as_ref().map_err(Clone::clone), (format, scope));
        let made = made.map_err(PayloadError::NotJson)?;
        let no_key = |error| PayloadError::Key { expression: Arc::clone(&selector.text), error };
        Ok(made.map_err(no_key)?.0)
    }
}

/// Has to change whenever the ids change. A message is then delivered twice if its first copy has
/// the old id.
const SCHEME: &[u8] = b"lambda-idempotency deduplication id 1";

/// A payload to be sent, with its key. `Debug` does not show the payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    body: String,
    key: Key,
}

impl Message {
    /// The JSON text to send.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The JSON text to send, by value.
    #[must_use]
    pub fn into_body(self) -> String {
        self.body
    }

    /// The key, exactly as the consumer stores it. Log only its [`Key::hash`].
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The `MessageDeduplicationId` for a FIFO queue or topic: [`deduplication_id`] of its key.
    #[must_use]
    pub fn deduplication_id(&self) -> String {
        deduplication_id(&self.key)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The `MessageDeduplicationId` of a key, for SQS FIFO queues and SNS FIFO topics: its SHA-256 in
/// 64 hexadecimal digits. Equal keys have equal ids, and distinct keys have distinct ids. [SQS] and
/// [SNS] accept up to 128 letters, digits and punctuation marks.
///
/// # What it prevents
///
/// For five minutes after the queue or topic accepted a message, it accepts further messages with
/// the same id but does not deliver them, even if the first was received and deleted meanwhile.
/// This removes most copies that a retrying producer makes. It replaces content-based
/// deduplication, which treats two copies as two messages if one byte differs.
///
/// # What it does not prevent
///
/// * A copy that is sent **later than five minutes** after the first. The consumer's idempotency
///   record recognises it until its retention ends.
/// * **Redelivery** of one message. The consumer recognises it.
/// * Copies in **another queue, topic or message group**. An id applies within its queue or topic.
///   If the queue has `DeduplicationScope` `messageGroup`, or the topic has `FifoThroughputScope`
///   `MessageGroup`, it applies only within the message group: derive the group from the key's
///   parts too, so that copies are in the same group.
/// * A **second message with the same key and another payload**, for instance a correction: within
///   the five minutes it is dropped silently, and the consumer cannot compare fingerprints. Give
///   different work a different key.
/// * A copy that is sent **on purpose** within the five minutes, because the first message failed
///   and is in a dead-letter queue: it is dropped too. Redrive the first message instead.
///
/// [SQS]: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
/// [SNS]: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
///
/// ```
/// use lambda_idempotency_keys::producer::{KeySpec, deduplication_id};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let place = KeySpec::new("place-order", "id").producer()?;
/// let id = deduplication_id(&place.key(r#"{"id":"o-1","note":"first try"}"#)?);
/// assert_eq!(id, deduplication_id(&place.key(r#"{ "note": "second", "id": "o-1" }"#)?));
/// assert_ne!(id, deduplication_id(&place.key(r#"{"id":"o-2"}"#)?));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn deduplication_id(key: &Key) -> String {
    let mut digest = Digest::new(SCHEME);
    digest.part(key.as_str().as_bytes());
    digest.hex()
}
