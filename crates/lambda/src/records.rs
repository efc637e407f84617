//! How records are taken from an event: in which order, and out of which envelopes.

/// Which records of a stream or topic wait for each other.
///
/// Records that wait for each other are an *order group*: they are processed one at a time, in the
/// order of the event, and after one that goes back none is started. Groups go side by side. SQS FIFO
/// queues have groups of their own, and other sources keep no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Those of one key: Kinesis' partition key, the key of a DynamoDB item, a DocumentDB document's
    /// key, a Kafka message's key. The default for Kinesis, DynamoDB and DocumentDB.
    Key,
    /// All of a shard or partition. The default for Kafka.
    Shard,
    /// None: each record goes by itself, and nothing waits behind one that goes back. For Kafka in
    /// queue mode (share groups), which keeps no order and counts deliveries: a record that waits for
    /// others until it was delivered too often is given up without ever having been tried.
    None,
}

/// What a payload is wrapped in, where another service passed it on.
///
/// A queue that is subscribed to a topic delivers messages whose bodies are SNS notifications, with
/// the payload in a member of theirs. Taking envelopes off is said, and never guessed: a body that
/// happens to look like a notification must not change its key.
///
/// The inner record's identity takes the place of the outer one's as the default key: it survives a
/// redrive from a dead-letter queue, and a second delivery to the queue, both of which give the outer
/// message a new id.
///
/// ```
/// use lambda_idempotency::{Envelope, Operation};
/// // S3 notifies a topic, to which the queue is subscribed; from the outside to the inside:
/// let index = Operation::new("index").envelope(Envelope::Sns).envelope(Envelope::S3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Envelope {
    /// An SNS notification; the payload is its `Message`. Only where raw message delivery is off:
    /// where it is on, there is no envelope.
    Sns,
    /// An EventBridge event; the payload is its `detail`.
    EventBridge,
    /// S3 notifications; the payload is each of them. All of one message come and go together. A
    /// test event of S3 is acknowledged without a call of the handler.
    S3,
}
