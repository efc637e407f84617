//! Which records of an event wait for each other.

/// Which records of a stream or topic wait for each other.
///
/// Records that wait for each other are an *order group*: they are processed one at a time, in the
/// order of the event, and once one returns to its source, none of the later ones is started.
/// Groups are processed concurrently. SQS FIFO queues have message groups instead; the remaining
/// sources keep no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepOrder {
    /// Records with the same key: Kinesis' partition key, the key of a DynamoDB item, a DocumentDB
    /// document's key, a Kafka message's key. The default for Kinesis, DynamoDB and DocumentDB.
    Key,
    /// All records of a shard or partition. The default for Kafka.
    Shard,
    /// No order: no record waits for another, also when one returns to its source. For Kafka in
    /// queue mode (share groups), which keeps no order and limits the number of deliveries: a
    /// record that waited for others at every delivery would reach that limit without ever having
    /// been processed.
    None,
}
