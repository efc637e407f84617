//! Event sources: how each delivers, identifies and orders records, and which response it needs.
//!
//! One file for each source, with an implementation of [`Source`]:
//!
//! ```text
//! contract.rs   the trait of all sources: `Source`
//! record.rs     a record of any source: `Record`
//! event.rs      an event's outermost members, which show its source
//! items.rs      a list among them, read in the same pass
//! <source>.rs   its records: id, identity, order group, payload
//! messaging.rs  a record in the words of OpenTelemetry
//! changes.rs    what tells the changes of one thing apart
//! response.rs   the response to a source: ids, checkpoints, or an error
//! ```

mod active_mq;
mod attributes;
mod base64;
mod changes;
mod contract;
mod document_db;
mod dynamodb;
mod envelopes;
mod event;
mod event_bridge;
mod identity;
mod invoke;
mod items;
mod kafka;
mod kinesis;
mod messaging;
mod pipe;
mod rabbit_mq;
mod record;
mod response;
mod s3;
mod scheduler;
mod shape;
mod sns;
mod sqs;

pub(crate) use active_mq::ActiveMq;
pub(crate) use changes::Changes;
pub(crate) use contract::Source;
pub(crate) use document_db::DocumentDb;
pub(crate) use dynamodb::DynamoDb;
pub(crate) use envelopes::{hidden_with, known_by, unwrap};
pub(crate) use event::Event;
pub(crate) use event_bridge::EventBridge;
pub(crate) use identity::Identity;
pub(crate) use invoke::Invoke;
pub(crate) use kafka::Kafka;
pub(crate) use kinesis::Kinesis;
pub(crate) use messaging::messaging;
pub(crate) use pipe::Pipe;
pub(crate) use rabbit_mq::RabbitMq;
pub(crate) use record::{Record, share_arns};
pub(crate) use response::all_or_error;
pub(crate) use s3::S3;
pub(crate) use scheduler::Scheduler;
pub(crate) use shape::Shape;
pub(crate) use sns::Sns;
pub(crate) use sqs::Sqs;

/// Every source, in the order in which they are tried: [`Invoke`] is the last, because it takes any
/// event.
pub(crate) const ALL: [&dyn Source; 13] = [
    &Sqs,
    &Sns,
    &S3,
    &Kinesis,
    &DynamoDb,
    &DocumentDb,
    &Kafka,
    &ActiveMq,
    &RabbitMq,
    &EventBridge,
    &Pipe,
    &Scheduler,
    &Invoke,
];
