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
pub use event::{Event, Source, parse_event};
pub use lane::StreamConfig;
pub use poller::{Batch, Poller};
pub use report::{DeadLetter, DeliveryReport, Disposition, InvocationReport, RecordReport};
pub use sqs::{Queue, SqsConfig};
pub use streams::Shards;

pub(crate) use report::report;
