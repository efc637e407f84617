//! Which records an operation takes, and how: from where, in which order, out of which envelopes.

use std::future::Future;

use lambda_idempotency_core::batch::AfterFailure;

use crate::{
    busy::{BusyRecord, Hook},
    operation::{Kind, Operation},
};

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

impl Operation {
    /// Which records of a stream or topic wait for each other. Default: by [`Order`]. Queues keep the
    /// order that they have: see [`after_failure`](Self::after_failure).
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// What is not started any more after a record that goes back to its source. Default:
    /// [`AfterFailure::Group`], the rest of its order group.
    ///
    /// ```
    /// use lambda_idempotency::{AfterFailure, Operation};
    /// // Nothing of a FIFO batch is started after a failure, not even of other groups.
    /// let place = Operation::new("place-order").after_failure(AfterFailure::Batch);
    /// ```
    #[must_use]
    pub fn after_failure(mut self, after: AfterFailure) -> Self {
        self.after_failure = after;
        self
    }

    /// Calls `hook` with each record that goes back because another worker holds its key, before the
    /// source is told. On SQS it can set the message's visibility timeout to the end of the lease, so
    /// that the message does not come again, and count as received again, for nothing.
    ///
    /// All hooks of an invocation run side by side, and are dropped after two seconds, or half of
    /// the time that is left.
    ///
    /// ```
    /// use lambda_idempotency::{BusyRecord, Operation};
    ///
    /// async fn hide(busy: BusyRecord) {
    ///     let seconds = busy.wait.as_secs() + 1;
    ///     // sqs.change_message_visibility().receipt_handle(..).visibility_timeout(seconds)
    /// }
    /// let place = Operation::new("place-order").key("orderId").on_busy(hide);
    /// ```
    #[must_use]
    pub fn on_busy<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(BusyRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.on_busy = Some(Hook::new(hook));
        self
    }

    /// Takes an envelope off the payload; several from the outside to the inside. See [`Envelope`].
    #[must_use]
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.envelopes.push(envelope);
        self
    }

    /// Calls the handler with the whole record as AWS delivers it, not with its payload: for payloads
    /// that are bytes. **Key expressions then see the record too**, and no longer what is in its
    /// payload. A handler that needs the record *beside* its payload has it in the
    /// [`Call`](crate::Call): `call.attribute(..)`, `call.record_as()`. The types of the
    /// `aws_lambda_events` crate fit, such as its `SqsMessage`.
    ///
    /// Kafka's records have their key, value and headers as text:
    /// `{"topic":"orders",..,"key":"k","value":"v","headers":{"name":"text"}}`.
    #[must_use]
    pub fn whole_record(mut self) -> Self {
        self.whole_record = true;
        self
    }

    /// Only records from this queue of SQS, by name or ARN. The name of a FIFO queue ends in `.fifo`.
    /// Queues of ActiveMQ and RabbitMQ go by their broker: [`from_broker`](Self::from_broker).
    #[must_use]
    pub fn from_queue(self, queue: impl Into<String>) -> Self {
        self.only_from(Kind::Queue, queue.into())
    }

    /// Only records from this topic: of SNS, by name or ARN; of Kafka, by name, and together with
    /// [`from_broker`](Self::from_broker) where clusters have topics of one name.
    #[must_use]
    pub fn from_topic(self, topic: impl Into<String>) -> Self {
        self.only_from(Kind::Topic, topic.into())
    }

    /// Only records from this Kinesis stream, by name or ARN.
    #[must_use]
    pub fn from_stream(self, stream: impl Into<String>) -> Self {
        self.only_from(Kind::Stream, stream.into())
    }

    /// Only changes of this DynamoDB table, by its name or ARN, or by the ARN of its stream.
    #[must_use]
    pub fn from_table(self, table: impl Into<String>) -> Self {
        self.only_from(Kind::Table, table.into())
    }

    /// Only notifications of this S3 bucket, by name or ARN.
    #[must_use]
    pub fn from_bucket(self, bucket: impl Into<String>) -> Self {
        self.only_from(Kind::Bucket, bucket.into())
    }

    /// Only messages from this broker (ActiveMQ, RabbitMQ) or Kafka cluster, by name or ARN.
    #[must_use]
    pub fn from_broker(self, broker: impl Into<String>) -> Self {
        self.only_from(Kind::Broker, broker.into())
    }

    /// Only changes of this DocumentDB cluster, by name or ARN.
    #[must_use]
    pub fn from_cluster(self, cluster: impl Into<String>) -> Self {
        self.only_from(Kind::Cluster, cluster.into())
    }

    /// Only events of this schedule, by name or ARN.
    #[must_use]
    pub fn from_schedule(self, schedule: impl Into<String>) -> Self {
        self.only_from(Kind::Schedule, schedule.into())
    }

    /// Only EventBridge events from this `source`; together with
    /// [`detail_type`](Self::detail_type) only those of both.
    #[must_use]
    pub fn from_source(self, source: impl Into<String>) -> Self {
        self.only_from(Kind::EventSource, source.into())
    }

    /// Only EventBridge events of this `detail-type`.
    #[must_use]
    pub fn detail_type(self, detail_type: impl Into<String>) -> Self {
        self.only_from(Kind::DetailType, detail_type.into())
    }
}
