//! Why a record cannot be processed as it is, and what to do about it.

use std::sync::Arc;

use lambda_idempotency_core::outcome::Rejected;
use lambda_idempotency_keys::{DocumentError, SelectionError, producer::PayloadError};

/// Why an event of some kind has no default key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoDefaultKey {
    /// The default key would be the request id of the invocation, and a retry has another one.
    #[error("it gets a new request id each time it is delivered again")]
    NewRequestId,
    /// The default key would be the whole event, and it differs when it is delivered again.
    #[error("parts of it differ each time it is delivered again")]
    Differs,
    /// The default key would be the whole event, and it can be the same for other work.
    #[error("it has neither an id nor a time, so that another event can be the same JSON")]
    Repeats,
}

/// Why a record cannot be processed as it is. Says where and what to do, never what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The payload is not JSON, though the key or the handler's type needs it to be.
    #[error(
        "the payload is {0}; send JSON, or take the key from the raw record \
         (`record(\"...\")`)"
    )]
    Payload(#[source] DocumentError),
    /// The record has no payload where its source keeps it.
    #[error("the record has no {0}; is it in the shape that AWS delivers?")]
    NoPayload(&'static str),
    /// The payload is not text: its bytes are not UTF-8, or not base64 where they should be.
    #[error(
        "{0} is not valid UTF-8 text; take the whole record (`.whole_record()`) for payloads that are bytes"
    )]
    NotText(&'static str),
    /// The payload is not in the envelope that the operation expects it in.
    #[error(
        "the payload is not {0}, though the operation has `.envelope(..)` for one; \
         correct the operation, or what the source is subscribed to"
    )]
    Envelope(&'static str),
    /// Nothing in the record stays the same when it is delivered again, and no other record has.
    #[error(
        "the record has no {0}, so it cannot be told apart from other records; \
         choose a key with `.key(\"...\")` on the operation"
    )]
    NoIdentity(&'static str),
    /// The event is of a kind that has no default key.
    #[error("{event}: {reason}; {advice}, or choose a key with `.key(\"...\")`")]
    NoDefaultKey {
        /// Why it has none.
        reason: NoDefaultKey,
        /// Of which kind it is, as a sentence.
        event: &'static str,
        /// What to do, as a sentence.
        advice: &'static str,
    },
    /// The event came in a list with others, and no operation of the function is for it.
    #[error(
        "no operation of this function takes this event of the list; add one that does, or exclude \
         such events where the list is put together (in the rule or subscription of the bus)"
    )]
    NoOperation,
    /// The key expression selects nothing that can be a key.
    #[error(
        "no idempotency key under `{expression}`: {error}; \
         correct the producer or the expression, or choose a policy for missing keys"
    )]
    Key {
        /// The expression.
        expression: Arc<str>,
        /// What is wrong with what it selects.
        #[source]
        error: SelectionError,
    },
    /// The fingerprint expression selects nothing that can be compared.
    #[error("no fingerprint under `{expression}`: {error}; correct the producer or the expression")]
    Fingerprint {
        /// The expression.
        expression: Arc<str>,
        /// What is wrong with what it selects.
        #[source]
        error: SelectionError,
    },
    /// The payload does not fit the handler's type.
    #[error(
        "the payload does not fit the handler's type `{expected}` \
         (at line {line}, column {column}); correct the producer or the type"
    )]
    Decode {
        /// The handler's type.
        expected: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// Decoding the payload panicked.
    #[error("decoding the payload as `{expected}` panicked; correct its `Deserialize`")]
    DecodePanicked {
        /// The handler's type.
        expected: &'static str,
    },
    /// Something other than this crate rejected the record: a reason that is not of this type.
    #[error(transparent)]
    Other(Rejected),
}

impl From<Rejection> for Rejected {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Other(rejected) => rejected,
            rejection => Self::new(rejection),
        }
    }
}

/// What an outcome or a reason to divert carries is nearly always of this type.
impl From<Rejected> for Rejection {
    fn from(rejected: Rejected) -> Self {
        match rejected.reason::<Self>() {
            Some(rejection) => rejection.clone(),
            None => Self::Other(rejected),
        }
    }
}

/// As the consumer says what a producer would be told.
impl From<PayloadError> for Rejection {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::NotJson(error) => Self::Payload(error),
            PayloadError::Key { expression, error } => Self::Key { expression, error },
            _ => Self::NotText("the payload"),
        }
    }
}
