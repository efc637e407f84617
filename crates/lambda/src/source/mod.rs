//! Event sources: how each delivers records, identifies them, orders them, and is told what became
//! of them.
//!
//! One file a source, each an implementation of [`Source`]:
//!
//! ```text
//! contract.rs   what each of them does: `Source`
//! record.rs     what each of them gives: `Record`
//! event.rs      an event's outermost members: whose is it?
//! <source>.rs   its records: id, identity, order group, payload
//! response.rs   what a source is told: ids, checkpoints, or an error
//! ```

mod active_mq;
mod attributes;
mod base64;
mod contract;
mod document_db;
mod dynamodb;
mod event;
mod event_bridge;
mod identity;
mod invoke;
mod kafka;
mod kinesis;
mod pipe;
mod rabbit_mq;
mod record;
mod response;
mod s3;
mod scheduler;
mod shape;
mod sns;
mod sqs;
mod unwrap;

pub(crate) use active_mq::ActiveMq;
pub(crate) use contract::Source;
pub(crate) use document_db::DocumentDb;
pub(crate) use dynamodb::DynamoDb;
pub(crate) use event::Event;
pub(crate) use event_bridge::EventBridge;
pub(crate) use identity::Identity;
pub(crate) use invoke::Invoke;
pub(crate) use kafka::Kafka;
pub(crate) use kinesis::Kinesis;
pub(crate) use pipe::Pipe;
pub(crate) use rabbit_mq::RabbitMq;
pub(crate) use record::Record;
pub(crate) use s3::S3;
pub(crate) use scheduler::Scheduler;
pub(crate) use shape::Shape;
pub(crate) use sns::Sns;
pub(crate) use sqs::Sqs;
pub(crate) use unwrap::{hidden_with, known_by, unwrap};

/// Every source, in the order in which an event is held against them: [`Invoke`] takes anything.
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
