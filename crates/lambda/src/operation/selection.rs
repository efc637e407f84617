//! Which records an operation takes, and which part of them its handler gets.

use super::{Operation, filter::Kind};
use crate::{
    bad_record::OnBadRecord, envelope::Envelope, keep_order::KeepOrder,
    on_missing_key::OnMissingKey,
};

/// # Which records
///
/// An operation takes all records of its sources, unless it has filters. Filters are for functions
/// with several operations: a record goes to the first operation that takes it.
///
/// Refused when the function is built: a filter with a name that no resource can have, two filters
/// that no record can pass together, and a setting that has no effect for a source.
impl Operation {
    /// Takes only records of this SQS queue, by its name or ARN. The name of a FIFO queue ends in `.fifo`.
    /// Default: all queues. Queues of ActiveMQ and RabbitMQ are selected by their broker:
    /// [`broker`](Self::broker).
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let place = Operation::new("place-order").key("orderId").queue("orders.fifo");
    /// assert_eq!(place.check(), Ok(()));
    /// // Records do not contain the queue's URL.
    /// let url = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders";
    /// assert!(Operation::new("place-order").queue(url).check().is_err());
    /// ```
    #[must_use]
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.only_from(Kind::Queue, queue.into())
    }

    /// Takes only records of this topic: of SNS by its name or ARN, of Kafka by its name. Default:
    /// all topics. If two Kafka clusters have topics of the same name, add
    /// [`broker`](Self::broker).
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let topic = "arn:aws:sns:eu-west-1:111122223333:orders";
    /// assert_eq!(Operation::new("place-order").topic(topic).check(), Ok(()));
    /// ```
    #[must_use]
    pub fn topic(self, topic: impl Into<String>) -> Self {
        self.only_from(Kind::Topic, topic.into())
    }

    /// Takes only records of this Kinesis stream, by its name or ARN. Default: all streams.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let count = Operation::new("count-clicks").key("clickId").stream("clicks");
    /// assert_eq!(count.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn stream(self, stream: impl Into<String>) -> Self {
        self.only_from(Kind::Stream, stream.into())
    }

    /// Takes only changes of this DynamoDB table, by its name or ARN, or by the ARN of its stream.
    /// Default: all tables.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let index = Operation::new("index-orders").source_table("orders");
    /// assert_eq!(index.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn source_table(self, table: impl Into<String>) -> Self {
        self.only_from(Kind::Table, table.into())
    }

    /// Takes only notifications of this S3 bucket, by its name or ARN. Default: all buckets.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let resize = Operation::new("resize").bucket("uploads");
    /// assert_eq!(resize.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn bucket(self, bucket: impl Into<String>) -> Self {
        self.only_from(Kind::Bucket, bucket.into())
    }

    /// Takes only messages of this ActiveMQ or RabbitMQ broker or Kafka cluster, by its name or ARN.
    /// Default: all brokers and clusters.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let place = Operation::new("place-order").broker("shop").topic("orders");
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn broker(self, broker: impl Into<String>) -> Self {
        self.only_from(Kind::Broker, broker.into())
    }

    /// Takes only changes of this DocumentDB cluster, by its name or ARN. Default: all clusters.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let index = Operation::new("index-orders").cluster("shop");
    /// assert_eq!(index.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn cluster(self, cluster: impl Into<String>) -> Self {
        self.only_from(Kind::Cluster, cluster.into())
    }

    /// Takes only invocations by this schedule of EventBridge Scheduler, by its name or ARN. Default: all
    /// schedules.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let bill = Operation::new("bill").schedule("monthly");
    /// assert_eq!(bill.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn schedule(self, schedule: impl Into<String>) -> Self {
        self.only_from(Kind::Schedule, schedule.into())
    }

    /// Takes only EventBridge events with this `source`; together with
    /// [`detail_type`](Self::detail_type), only events with both. Default: all events.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let place = Operation::new("place-order").event_source("shop.checkout").detail_type("Placed");
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn event_source(self, source: impl Into<String>) -> Self {
        self.only_from(Kind::EventSource, source.into())
    }

    /// Takes only EventBridge events with this `detail-type`. Default: all events.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let cancel = Operation::new("cancel-order").key("orderId").detail_type("OrderCancelled");
    /// assert_eq!(cancel.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn detail_type(self, detail_type: impl Into<String>) -> Self {
        self.only_from(Kind::DetailType, detail_type.into())
    }

    /// Removes an envelope from the payload, such as the SNS notification in the body of an SQS
    /// message. Call it once for each envelope, outermost first. Default: none. See [`Envelope`].
    ///
    /// A record that is not in the envelope is a bad record: see [`on_bad_record`](Self::on_bad_record).
    ///
    /// # Errors
    /// [`check`](Self::check) and the building of a function refuse an envelope that is named twice, or in a
    /// notification of S3.
    ///
    /// ```
    /// use lambda_idempotency::{Envelope, Operation};
    ///
    /// // The queue is subscribed to a topic, without raw message delivery.
    /// let place = Operation::new("place-order").key("orderId").envelope(Envelope::Sns);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.envelopes.push(envelope);
        self.changed()
    }

    /// Calls the handler with the whole record as AWS delivers it, instead of its payload: for
    /// binary payloads. **Key expressions are then applied to the record too**, and no longer to
    /// its payload. Default: the payload.
    ///
    /// A handler that needs the record *in addition to* its payload gets it from its
    /// [`Call`](crate::Call): `call.attribute(..)`, `call.record_as()`. The types of the
    /// `aws_lambda_events` crate can be used, such as its `SqsMessage`.
    ///
    /// Kafka's records have their key, value and headers as text:
    /// `{"topic":"orders",..,"key":"k","value":"v","headers":{"name":"text"}}`.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let store = Operation::new("store-images").key("[eventSourceARN, eventID]").whole_record();
    /// assert_eq!(store.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn whole_record(mut self) -> Self {
        self.whole_record = true;
        self
    }

    /// What happens to a record in which the [`key`](Self::key) expression finds no key or, without an expression, that
    /// has no default key. Default: [`OnMissingKey::Return`], it is a bad record, for which
    /// [`on_bad_record`](Self::on_bad_record) applies.
    ///
    /// # Errors
    /// [`check`](Self::check) and the building of a function refuse [`OnMissingKey::Skip`] without an expression: an event
    /// without a default key is not what the operation is for, and to acknowledge it would lose it.
    ///
    /// ```
    /// use lambda_idempotency::{OnMissingKey, Operation};
    ///
    /// // Messages without an order id are processed at each delivery.
    /// let place = Operation::new("place-order")
    ///     .key("orderId")
    ///     .on_missing_key(OnMissingKey::RunUnprotected);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_missing_key(mut self, policy: OnMissingKey) -> Self {
        self.on_missing_key = policy;
        self.changed()
    }

    /// What happens to a record that cannot be processed as it is, because it is not readable, has
    /// no key, or does not fit the handler's type. Default: it is given to the sink of
    /// [`divert`](Self::divert), or returns to its source if there is no sink.
    ///
    /// ```
    /// use lambda_idempotency::{BadRecord, Failure, OnBadRecord, Operation};
    ///
    /// async fn keep_for_later(bad: BadRecord) -> Result<(), Failure> {
    ///     // s3.put_object().bucket(..).key(..).body(bad.raw.into_bytes().into()).send().await?;
    ///     Ok(())
    /// }
    /// let place = Operation::new("place-order").on_bad_record(OnBadRecord::divert(keep_for_later));
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_bad_record(mut self, bad_record: OnBadRecord) -> Self {
        self.bad_record = Some(bad_record);
        self.changed()
    }

    /// Which records of a stream or topic wait for each other. Default: [`KeepOrder::Key`] for Kinesis,
    /// DynamoDB and DocumentDB, [`KeepOrder::Shard`] for Kafka. SQS FIFO queues have message groups instead,
    /// which always keep their order.
    ///
    /// ```
    /// use lambda_idempotency::{KeepOrder, Operation};
    ///
    /// // Records of one Kafka partition with different keys are processed concurrently.
    /// let place = Operation::new("place-order").key("orderId").order(KeepOrder::Key);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn order(mut self, order: KeepOrder) -> Self {
        self.order = Some(order);
        self
    }
}
