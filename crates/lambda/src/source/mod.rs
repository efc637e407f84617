//! Event sources: one type for each, with the settings that exist there.
//!
//! A source says which records are taken and how they are read; the [`Operation`](crate::Operation) says what is done once.
//! The same operation on two sources is one piece of work: what was done for one is not done again for the other.
//!
//! ```
//! use lambda_idempotency::{
//!     Operation, keys::record, source::{DynamoDbStream, EventBridge, Kafka, KeepOrder, Pipe, Sns, Sqs},
//! };
//! # use lambda_idempotency::{Call, Idempotency, MemoryStore};
//! # async fn place(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn index(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn ship(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn count(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! let order = Operation::new("place-order").key("orderId");
//! let function = idempotency
//!     .function()
//!     // One operation, three sources; the event has the key at another place.
//!     .on(Sqs::new().queue("orders"), &order, place)
//!     .on(Sns::new().topic("orders"), &order, place)
//!     .on(EventBridge::new().detail_type("OrderRequested").key("order.id"), &order, place)
//!     // Changes have ids of their own.
//!     .on(DynamoDbStream::new().table("orders"), &Operation::new("index-order"), index)
//!     // A key in the record around the payload.
//!     .on(Sns::new().topic("shipments").key(record("Sns.MessageId")), &Operation::new("ship"), ship)
//!     // Records that EventBridge Pipes deliver.
//!     .on(Pipe::of(Kafka::new().topic("clicks").order(KeepOrder::Key)), &Operation::new("count-clicks"), count)
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! [The guide](crate::guide::sources) has a page about the identity, order and failures of each.
//!
//! # Records that will never be processed
//!
//! They return to their source, which delivers them again until it discards them or moves them to a dead-letter queue; in a
//! stream or a FIFO queue they block what is behind them. A sink takes them instead:
//!
//! ```
//! use lambda_idempotency::{Failure, Operation, source::{BusyRecord, DivertedRecord, Kinesis, Sqs}};
//!
//! async fn send_to_queue(diverted: DivertedRecord) -> Result<(), Failure> {
//!     // sqs.send_message().queue_url(..).message_body(diverted.raw).send().await?;
//!     Ok(())
//! }
//! let clicks = Kinesis::new().stream("clicks").divert(send_to_queue);
//!
//! async fn hide(busy: BusyRecord) {
//!     let seconds = busy.wait.as_secs() + 1;
//!     // sqs.change_message_visibility().receipt_handle(..).visibility_timeout(seconds)
//! }
//! let orders = Sqs::new().queue("orders").on_busy(hide);
//! ```
//!
//! These records are:
//!
//! * permanent failures: [`Failure::permanent`](crate::Failure::permanent), the last failure that
//!   [`max_failed_attempts`](crate::Operation::max_failed_attempts) or
//!   [`max_lost_attempts`](crate::Operation::max_lost_attempts) allows, and timeouts that
//!   [`OnTimeout::FailPermanently`](crate::policy::OnTimeout::FailPermanently) makes permanent. **Without one of these, a record that
//!   fails is tried again at each delivery** and never given to the sink;
//! * mismatches: records whose key was used before with another [`fingerprint`](crate::Operation::fingerprint);
//! * bad records, which are not readable, have no key, or do not fit the handler's type.
//!
//! **A sink gets each of them at least once while its source delivers it, always with one [id](DivertedRecord::id), and the
//! record is acknowledged only after its `Ok`.** After the last delivery [nothing calls the sink
//! again](crate::guide::failure_modes#diverting-records), which matters for SNS, S3, EventBridge and Scheduler. It may get a
//! record again: when the batch is delivered again, or when the worker dies before the response. So let a queue, a bucket or
//! a table recognise the id. Copies in one event are given to it once.
//!
//! Sinks are called after the handlers of the invocation, 16 at a time. Where a source has a sink, its handlers are stopped two
//! seconds before the invocation deadline, or after 80 % of the time if that is later. The records behind such a record in its order group do not wait for the sink. A sink
//! that returns an error, panics or takes too long has not taken the record, which returns to its source.
//!
//! A record that runs without a claim (because it has no key or the store was unavailable, and a policy is to run it
//! unprotected), or in [mutex mode](crate::Mode::Mutex), has its handler called at each delivery. Without a claim its failures
//! are not counted, so neither [`max_failed_attempts`](crate::Operation::max_failed_attempts) above 1 nor a timeout makes them
//! permanent.
//!
//! The log has the outcome of the record (`failed`, `timed_out`, `permanently_failed`, `mismatch` or `rejected`), and a warning that it was
//! diverted, or why not. The permanent failure stays recorded: to process the record after all, delete its item from the
//! table before you send the record again.
//!
//! A sink that returns `Ok` without doing anything discards the record.

// How the code of a source is laid out:
//
// settings.rs   what a user has set: `Settings`, and the setters that several sources have: `source!`
// sink.rs       what a sink gets
// contract.rs   what every source can read: `EventSource`; the response to a source: ids, checkpoints, or an error
// any.rs        all sources, and the envelopes in their records
// record.rs     a record of any source: `Record`; reads members
// event.rs      an event's outermost members, which show its source
// <source>.rs   its type, and its records: id, identity, order group, payload

mod active_mq;
mod any;
mod attributes;
mod busy;
mod contract;
mod document_db;
mod dynamodb;
mod event;
mod event_bridge;
mod filter;
mod invoke;
mod kafka;
mod kinesis;
mod pipe;
mod rabbit_mq;
mod record;
mod s3;
mod scheduler;
mod settings;
mod sink;
mod sns;
mod sqs;

pub use crate::envelope::Envelope;
pub use active_mq::ActiveMq;
pub use busy::BusyRecord;
pub use contract::{Source, Sources};
pub use document_db::DocumentDb;
pub use dynamodb::DynamoDbStream;
pub use event_bridge::EventBridge;
pub use invoke::Invoke;
pub use kafka::Kafka;
pub use kinesis::Kinesis;
pub use lambda_idempotency_engine::{
    call::{RecordId, TraceContext},
    delivered::RecordError,
};
pub use pipe::{Pipe, Piped};
pub use rabbit_mq::RabbitMq;
pub use s3::S3;
pub use scheduler::Scheduler;
pub use settings::KeepOrder;
pub use sink::{DivertReason, DivertedRecord, SinkResult};
pub use sns::Sns;
pub use sqs::Sqs;

#[doc(hidden)]
pub use any::AnySource;
pub(crate) use any::{ALL, hidden_with, known_by, records_of};
pub(crate) use contract::{About, EventSource, Parts, all_or_error, parts_of_each};
pub(crate) use event::Event;
pub(crate) use record::{Record, messaging, share_arns};
pub(crate) use settings::Settings;
pub(crate) use sink::{RecordEnd, Sink};
