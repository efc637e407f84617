//! The envelope around the payload of a record.

/// The envelope around a payload that another service forwarded.
///
/// A queue that is subscribed to a topic delivers messages whose bodies are SNS notifications, with
/// the payload in one of their members. The library never guesses envelopes: name them, so that a
/// body that happens to look like a notification does not change its key.
///
/// The inner record's identity replaces the outer one's as the default key. It stays the same after
/// a redrive from a dead-letter queue and after a second delivery to the queue; both give the outer
/// message a new id.
///
/// ```
/// use lambda_idempotency::source::{Envelope, Sqs};
/// // S3 notifies a topic to which the queue is subscribed. The outermost envelope comes first:
/// let uploads = Sqs::new().envelope(Envelope::Sns).envelope(Envelope::S3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Envelope {
    /// An SNS notification; the payload is its `Message`. With raw message delivery there is no
    /// envelope.
    Sns,
    /// An EventBridge event; the payload is its `detail`.
    EventBridge,
    /// S3 notifications; the payload is each of them. All notifications of one message are
    /// acknowledged or returned together. A test event of S3 is acknowledged without a call of the
    /// handler.
    S3,
}
