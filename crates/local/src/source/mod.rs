//! The sources: what AWS does between an event and a function.
//!
//! [`parse_event`] recognises an event by its shape. A source that is polled is a [`Poller`], a state machine without
//! clock or network: [`Queue`] (SQS, standard and FIFO), [`Shards`] (Kinesis, DynamoDB, Kafka), either of them behind a
//! pipe, and [`AsyncEvents`]. A notification of SNS or S3, an EventBridge event or a scheduled event is an
//! asynchronous invocation with retries; so, here, is a batch of a message broker or of DocumentDB, which is delivered
//! again as a whole, and an HTTP request, which is sent again by its client.
//!
//! A pipe passes bare lists of records. From a queue or a stream it always reads `batchItemFailures` in the answer: message
//! ids, or the `eventID`s of a stream's records. The named records are delivered again, and the others are done. An invalid
//! answer, an error or a death returns the whole batch. A pipe from Kafka or a broker does not support partial answers: its
//! batch is delivered again as a whole, for which no poller is needed.

mod asynchronous;
mod event;
mod lane;
#[cfg(test)]
mod pipe_tests;
mod poller;
mod report;
mod sqs;
mod streams;

pub use asynchronous::AsyncEvents;
pub use event::{Event, parse_event};
pub use lane::StreamConfig;
pub use poller::{Batch, Poller};
pub use report::{DeadLetter, DeliveryReport, Disposition, InvocationReport, RecordReport};
pub use sqs::{Queue, SqsConfig};
pub use streams::Shards;

pub(crate) use report::report;

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A queue: redelivers what was not acknowledged.
    Sqs,
    /// A topic: an asynchronous invocation.
    Sns,
    /// An event bus: an asynchronous invocation.
    EventBridge,
    /// A schedule: an asynchronous invocation.
    Scheduler,
    /// A bucket's notifications: an asynchronous invocation.
    S3,
    /// A stream: delivered again from the checkpoint on.
    Kinesis,
    /// The stream of a table's changes: delivered again from the checkpoint on.
    DynamoDb,
    /// The stream of a cluster's changes: the whole batch is delivered again.
    DocumentDb,
    /// A topic's partitions: each is delivered again from its checkpoint on.
    Kafka,
    /// A broker: the whole batch comes again.
    ActiveMq,
    /// A broker: the whole batch comes again.
    RabbitMq,
    /// A pipe: if its source is a queue or a stream, it delivers the named records again, else the whole batch.
    Pipe,
    /// A client that waits for the answer, and sends its request again.
    Http,
    /// A direct, synchronous invocation: it is not retried.
    Direct,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Sqs => "sqs",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::Scheduler => "scheduler",
            Self::S3 => "s3",
            Self::Kinesis => "kinesis",
            Self::DynamoDb => "dynamodb",
            Self::DocumentDb => "documentdb",
            Self::Kafka => "kafka",
            Self::ActiveMq => "activemq",
            Self::RabbitMq => "rabbitmq",
            Self::Pipe => "pipe",
            Self::Http => "http",
            Self::Direct => "direct",
        })
    }
}
