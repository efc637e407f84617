//! Why a record cannot be processed as it is, and what to do about it.

use std::sync::Arc;

use lambda_idempotency_core::outcome::Rejected;
use lambda_idempotency_keys::{DocumentError, SelectionError, producer::PayloadError};

use crate::envelope::Envelope;

/// Why a record cannot be processed as it is. The message says where the problem is and what to do;
/// it never quotes the payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The payload is not JSON, but the key or the handler's type requires JSON.
    #[error(
        "the payload is {0}; send JSON, or make the key from the text with `.key_fn(..)`, or, where a source has a record \
         around the payload, from that (`record(\"...\")`)"
    )]
    Payload(#[source] DocumentError),
    /// The record does not have this member, or not in the form in which its source sends it.
    #[error("the record has no valid `{0}`; send it in the format that AWS delivers")]
    NoMember(&'static str),
    /// The event has something other than a list of records for a queue or a partition.
    #[error(
        "a queue or partition of the event does not contain a list of records; send the event in \
         the format that AWS delivers"
    )]
    NoList,
    /// This member, which contains the payload, is not text: its bytes are not UTF-8, or not base64
    /// where they should be.
    #[error(
        "`{0}` is not valid UTF-8 text; for binary payloads, let the handler take the whole record \
         with `.whole_record()`"
    )]
    NotText(&'static str),
    /// The payload's bytes are not UTF-8.
    #[error(
        "the payload is not valid UTF-8 text; for binary payloads, let the handler take the whole \
         record with `.whole_record()`"
    )]
    PayloadNotText,
    /// The value of a Kafka record was written with a schema registry.
    #[error(
        "the value begins with a zero byte and the id of a schema, as a schema registry's clients write it; configure the \
         registry in the event source mapping, so that Lambda decodes it, or let the handler take the whole record with \
         `.whole_record()`"
    )]
    Framed,
    /// The payload is not in the envelope that the operation expects.
    #[error("{}", not_in_envelope(.0))]
    NotInEnvelope(Envelope),
    /// The message is SNS's own: it asks a queue to confirm that it is subscribed to a topic, or that it no longer is.
    #[error(
        "the message is not a notification: SNS asks to confirm a subscription of the queue, or its end; open its \
         `SubscribeURL` once if that is wanted, and delete the message"
    )]
    AboutSubscription,
    /// The record does not have this member, which is unique to it and stays the same when it is
    /// delivered again.
    #[error(
        "the record has no `{0}`, so it cannot be told apart from other records; \
         choose a key with `.key(\"...\")` on the operation"
    )]
    NoIdentity(&'static str),
    /// The record does not have all of these members, which together are unique to it.
    #[error(
        "the record does not have all of `{}`, so it cannot be told apart from other records; \
         choose a key with `.key(\"...\")` on the operation", .0.join("`, `")
    )]
    PartOfIdentity(&'static [&'static str]),
    /// The invocation has no request id, which is the key of
    /// [`Invoke::by_request_id`](crate::source::Invoke::by_request_id).
    #[error(
        "the invocation has no request id, so it cannot be told apart from other invocations; \
         choose a key with `.key(\"...\")` on the operation"
    )]
    NoRequestId,
    /// The body of the HTTP request is not JSON, but the key or the fingerprint requires it.
    #[error(
        "the body of the request is {0}; send JSON, or let clients choose the key of each request with `Http::by_header()`"
    )]
    Body(#[source] DocumentError),
    /// The body of the HTTP request is compressed or binary, but the key or the fingerprint requires text.
    #[error(
        "the body of the request is not valid UTF-8 text; send JSON that is not compressed, or let clients choose the key \
         of each request with `Http::by_header()`"
    )]
    BodyNotText,
    /// The HTTP request has no idempotency key.
    #[error(
        "the request has no idempotency key in its header, so it cannot be told apart from other \
         requests; send the header, or choose a key with `.key(\"...\")` on the operation"
    )]
    NoHeader,
    /// The event is a batch of this source, which ignores a handler's result: it is not a direct invocation.
    #[error(
        "the event is a batch from {0}, which a direct invocation cannot answer; register the operation with the type of that \
         source"
    )]
    Polled(&'static str),
    /// The event came in a list with others, and no operation of the function takes it.
    #[error(
        "no operation of this function takes this event of the list; add one that does, or exclude \
         such events in the bus's rule or subscription"
    )]
    NoOperation,
    /// The key expression selects no value that can be a key.
    #[error(
        "the record has no idempotency key under `{expression}`: {error}{}; \
         correct the producer or the expression, or choose a policy with `.on_missing_key(..)`",
        inside(.expression, .error)
    )]
    Key {
        /// The expression.
        expression: Arc<str>,
        /// The fault of the selected value.
        #[source]
        error: SelectionError,
    },
    /// The fingerprint expression selects no value that can be compared.
    #[error(
        "the record has no fingerprint under `{expression}`: {error}; correct the producer or the \
         expression"
    )]
    Fingerprint {
        /// The expression.
        expression: Arc<str>,
        /// The fault of the selected value.
        #[source]
        error: SelectionError,
    },
    /// The payload does not fit the handler's type.
    #[error(
        "the payload does not fit the handler's type `{expected}`{}{} (line {line}, column {column}); correct the producer \
         or the type", at(.path), said(.problem.as_deref())
    )]
    Decode {
        /// The handler's type.
        expected: &'static str,
        /// The member, such as `customer.lines[2].price`, by names that the type declares; `*` is any other. Empty if the whole
        /// payload does not fit.
        path: String,
        /// The problem, such as ``missing field `order_id` ``, if it can be said by names that the type declares.
        problem: Option<String>,
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

/// Where paths begin, if one begins outside of the payload.
fn inside(expression: &str, error: &SelectionError) -> &'static str {
    let path = expression.trim_start_matches(['[', ' ']);
    if error.is_missing()
        && ["body.", "detail.", "Records["].iter().any(|begins| path.starts_with(begins))
    {
        " (a path begins inside of the payload: in the body of an SQS message, in the detail of an EventBridge event)"
    } else {
        ""
    }
}

/// The member that does not fit.
fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in `{path}`") }
}

/// The problem, behind the place.
fn said(problem: Option<&str>) -> String {
    problem.map(|problem| format!(": {problem}")).unwrap_or_default()
}

/// Says why a payload is not in this envelope, and what to do.
const fn not_in_envelope(expected: &Envelope) -> &'static str {
    match expected {
        Envelope::Sns => {
            "the payload is not an SNS notification, but the operation expects one because of its \
             `.envelope(Envelope::Sns)`; correct the operation, or switch off raw message delivery \
             in the topic's subscription"
        }
        Envelope::EventBridge => {
            "the payload is not an EventBridge event, but the operation expects one because of its \
             `.envelope(Envelope::EventBridge)`; correct the operation, or let the rule's target get \
             the whole event"
        }
        Envelope::S3 => {
            "the payload is not an S3 notification, but the operation expects one because of its \
             `.envelope(Envelope::S3)`; correct the operation or the bucket's notifications"
        }
    }
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

/// Reports to the consumer the error that a producer would have got.
impl From<PayloadError> for Rejection {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::NotJson(error) => Self::Payload(error),
            PayloadError::Key { expression, error } => Self::Key { expression, error },
            _ => Self::PayloadNotText,
        }
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_keys::SelectionError;

    use super::{Envelope, Rejection};

    #[test]
    fn a_path_from_outside_of_the_payload_is_told_where_paths_begin() {
        let told = |expression: &str, error| {
            let rejection = Rejection::Key { expression: expression.into(), error };
            rejection.to_string().contains("begins inside of the payload")
        };
        for expression in ["body.orderId", "[body.orderId, tenant]", "detail.order.id"] {
            assert!(told(expression, SelectionError::Missing), "{expression}");
        }
        assert!(!told("order.id", SelectionError::Missing));
        assert!(!told("body.orderId", SelectionError::InexactNumber));
    }

    /// What is wrong, and behind a semicolon what to do. The other messages are compared where records are rejected.
    #[test]
    fn a_rejection_says_what_is_wrong_and_what_to_do() {
        for rejection in [
            Rejection::NoMember("Sns.Message"),
            Rejection::NoList,
            Rejection::NotText("kinesis.data"),
            Rejection::PayloadNotText,
            Rejection::NotInEnvelope(Envelope::Sns),
            Rejection::NotInEnvelope(Envelope::EventBridge),
            Rejection::NotInEnvelope(Envelope::S3),
            Rejection::PartOfIdentity(&["scheduleArn", "scheduledTime"]),
            Rejection::NoRequestId,
            Rejection::NoHeader,
            Rejection::Polled("sqs"),
        ] {
            let text = rejection.to_string();
            let remedy = text.split_once("; ").map(|(_, remedy)| remedy);
            assert!(remedy.is_some_and(|remedy| remedy.len() > 15), "{text}");
            assert!(!text.contains("  "), "{text}");
        }
        let text = Rejection::PartOfIdentity(&["scheduleArn", "scheduledTime"]).to_string();
        assert!(text.contains("all of `scheduleArn`, `scheduledTime`,"), "{text}");
    }
}
