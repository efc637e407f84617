//! Why a record cannot be processed as it is, and what to do about it.

use std::sync::Arc;

use lambda_idempotency_core::outcome::Rejected;
use lambda_idempotency_keys::{DocumentError, SelectionError, producer::PayloadError};

/// Why a kind of event has no default key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoDefaultKey {
    /// The default key would be the invocation's request id, but a retry has another one.
    #[error("it gets a new request id each time it is delivered again")]
    NewRequestId,
    /// The default key would be the whole event, but the event changes when it is delivered again.
    #[error("parts of it differ each time it is delivered again")]
    Differs,
    /// The default key would be the whole event, but events for different work can be equal.
    #[error("it has neither an id nor a time, so another event can be the same JSON")]
    Repeats,
}

/// Why a record cannot be processed as it is. The message says where the problem is and what to do;
/// it never quotes the payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The payload is not JSON, but the key or the handler's type requires JSON.
    #[error(
        "the payload is {0}; send JSON, or take the key from the raw record \
         (`record(\"...\")`)"
    )]
    Payload(#[source] DocumentError),
    /// The record has no payload in the place where its source puts it.
    #[error("the record has no {0}; send it in the format that AWS delivers")]
    NoPayload(&'static str),
    /// The payload is not text: its bytes are not UTF-8, or not base64 where they should be.
    #[error(
        "{0} is not valid UTF-8 text; for binary payloads, let the handler take the whole record \
         with `.whole_record()`"
    )]
    NotText(&'static str),
    /// The payload is not in the envelope that the operation expects.
    #[error(
        "the payload is not {0}, but the operation expects one because of its `.envelope(..)`; \
         correct the operation or the source's subscription"
    )]
    Envelope(&'static str),
    /// The record has no part that is unique to it and stays the same when it is delivered again.
    #[error(
        "the record has no {0}, so it cannot be told apart from other records; \
         choose a key with `.key(\"...\")` on the operation"
    )]
    NoIdentity(&'static str),
    /// The event's kind has no default key.
    #[error("{event}: {reason}; {advice}, or choose a key with `.key(\"...\")`")]
    NoDefaultKey {
        /// Why it has none.
        reason: NoDefaultKey,
        /// The kind of event, as a sentence.
        event: &'static str,
        /// What to do, as a sentence.
        advice: &'static str,
    },
    /// The event came in a list with others, and no operation of the function takes it.
    #[error(
        "no operation of this function takes this event of the list; add one that does, or exclude \
         such events in the bus's rule or subscription"
    )]
    NoOperation,
    /// The key expression selects no value that can be a key.
    #[error(
        "no idempotency key under `{expression}`: {error}; \
         correct the producer or the expression, or choose a policy for missing keys"
    )]
    Key {
        /// The expression.
        expression: Arc<str>,
        /// What is wrong with the selected value.
        #[source]
        error: SelectionError,
    },
    /// The fingerprint expression selects no value that can be compared.
    #[error("no fingerprint under `{expression}`: {error}; correct the producer or the expression")]
    Fingerprint {
        /// The expression.
        expression: Arc<str>,
        /// What is wrong with the selected value.
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
    /// Code outside this crate rejected the record, with a reason of another type.
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

/// The `Rejected` of an outcome or of a diverted record nearly always contains a `Rejection`.
impl From<Rejected> for Rejection {
    fn from(rejected: Rejected) -> Self {
        match rejected.reason::<Self>() {
            Some(rejection) => rejection.clone(),
            None => Self::Other(rejected),
        }
    }
}

/// Reports to the consumer what a producer would have been told.
impl From<PayloadError> for Rejection {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::NotJson(error) => Self::Payload(error),
            PayloadError::Key { expression, error } => Self::Key { expression, error },
            _ => Self::NotText("the payload"),
        }
    }
}
