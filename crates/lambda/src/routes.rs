//! One method for each source: on the builder of a function, on [`Sources`] for operations of
//! several sources, and on [`Idempotency`] for functions of one source.

use serde::de::DeserializeOwned;

use crate::{
    error::ConfigError,
    function::Function,
    function_builder::FunctionBuilder,
    handler::Handler,
    idempotency::Idempotency,
    operation::Operation,
    source::{
        ActiveMq, DocumentDb, DynamoDb, EventBridge, Invoke, Kafka, Kinesis, Pipe, RabbitMq, S3,
        Scheduler, Sns, Sqs,
    },
    sources::Sources,
};

macro_rules! sources {
    ($($(#[$doc:meta])* $name:ident => $source:expr;)*) => {
        /// The sources. [The guide](crate::guide::sources) has a page about the identity, order and
        /// failures of each.
        impl FunctionBuilder {
            $(
                $(#[$doc])*
                pub fn $name<T, H>(self, operation: Operation, handler: H) -> Self
                where
                    T: DeserializeOwned + Send + 'static,
                    H: Handler<T>,
                {
                    self.route(Box::new($source), operation, handler)
                }
            )*
        }

        /// The sources, with the same names as the methods of [`FunctionBuilder`].
        impl Sources {
            $(
                #[doc = concat!(
                    "Adds the source of [`", stringify!($name), "`](FunctionBuilder::",
                    stringify!($name), "), with the operation as `adjust` leaves it."
                )]
                pub fn $name(self, adjust: impl FnOnce(Operation) -> Operation + 'static) -> Self {
                    self.with(Box::new($source), adjust)
                }
            )*
        }

        /// Functions of one source.
        impl Idempotency {
            $(
                #[doc = concat!(
                    "A function for one source: [`", stringify!($name), "`](FunctionBuilder::",
                    stringify!($name), ") alone."
                )]
                ///
                /// # Errors
                /// A mistake in the operation.
                pub fn $name<T, H>(
                    &self,
                    operation: Operation,
                    handler: H,
                ) -> Result<Function, ConfigError>
                where
                    T: DeserializeOwned + Send + 'static,
                    H: Handler<T>,
                {
                    self.function().$name(operation, handler).build()
                }
            )*
        }
    };
}

sources! {
    /// Handles SQS messages: those of standard queues concurrently, starting with the ones that
    /// were received most often; those of FIFO queues in the order of their groups. The response is
    /// a partial batch response: the event source mapping needs `FunctionResponseTypes:
    /// [ReportBatchItemFailures]`.
    sqs => Sqs;

    /// Handles SNS notifications.
    sns => Sns;

    /// Handles EventBridge events, alone or in the lists of a custom bus; the payload is their
    /// `detail`.
    event_bridge => EventBridge;

    /// Handles records of a Kinesis stream, in the order of their partition keys. The payload is
    /// their data as text. Needs `FunctionResponseTypes: [ReportBatchItemFailures]`.
    kinesis => Kinesis;

    /// Handles the changes of a DynamoDB table, in order for each item. The payload is the change
    /// in plain JSON: `eventName`, `keys`, `newImage`, `oldImage`. Needs `FunctionResponseTypes:
    /// [ReportBatchItemFailures]`.
    dynamodb_stream => DynamoDb;

    /// Handles the changes of a DocumentDB change stream, in order for each document. The payload
    /// is the change event, as MongoDB writes it.
    document_db => DocumentDb;

    /// Handles records of a Kafka topic, in the order of their partitions. The payload is their
    /// value as text; `null` for a tombstone. Needs provisioned mode and
    /// `FunctionResponseTypes: [ReportBatchItemFailures]`, or
    /// [`return_whole_batch`](Operation::return_whole_batch).
    kafka => Kafka;

    /// Handles S3 notifications; the payload is the notification as it is delivered. A test event
    /// is acknowledged.
    s3 => S3;

    /// Handles invocations by EventBridge Scheduler. The payload is the whole input, which has to
    /// contain the schedule (`scheduleArn`) and the time (`scheduledTime`), by Scheduler's
    /// keywords.
    scheduler => Scheduler;

    /// Handles messages of an ActiveMQ broker; the payload is their data as text.
    active_mq => ActiveMq;

    /// Handles messages of a RabbitMQ broker; the payload is their data as text. Where the producer
    /// sets no `messageId`, the operation needs a key.
    rabbit_mq => RabbitMq;

    /// Handles records that EventBridge Pipes deliver from SQS, Kinesis, DynamoDB, Kafka, ActiveMQ
    /// or RabbitMQ; payloads are those of the sources.
    pipe => Pipe;

    /// Handles every event that no other source of the function recognises, wherever this is
    /// registered: asynchronous invocations with your own JSON. The payload is the whole event.
    invoke => Invoke;
}
