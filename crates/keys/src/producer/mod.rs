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

mod compile;
mod key_spec;
mod message;

// For `lambda-idempotency`, which compiles an operation together with its fingerprint.
#[doc(hidden)]
pub use crate::{selection::Made, selector::Selector};
#[doc(hidden)]
pub use compile::Compiled;
pub use key_spec::{ExpressionUse, KeySpec, KeySpecError};
pub use message::{Message, deduplication_id};

// The types in the signatures of a key specification.
#[doc(no_inline)]
pub use crate::{
    IntoPayloadPath, Key, KeyFormat, KeyPath, PayloadPath, Secret, SecretError, payload,
};

use std::{cell::LazyCell, fmt, sync::Arc};

use serde::Serialize;

use crate::{Document, DocumentError, FieldSet, Scope, SelectionError};

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
