//! Event sources: how each delivers records, identifies them, orders them, and is told what became
//! of them.
//!
//! One file a source, each an implementation of [`Source`]:
//!
//! ```text
//! event.rs      an event's outermost members: whose is it?
//! <source>.rs   its records: id, identity, order group, payload
//! response.rs   what a source is told: ids, checkpoints, or an error
//! ```

mod active_mq;
mod attributes;
mod base64;
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
mod response;
mod s3;
mod scheduler;
mod shape;
mod sns;
mod sqs;
mod unwrap;

pub(crate) use active_mq::ActiveMq;
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
pub(crate) use s3::S3;
pub(crate) use scheduler::Scheduler;
pub(crate) use shape::Shape;
pub(crate) use sns::Sns;
pub(crate) use sqs::Sqs;
pub(crate) use unwrap::{hidden_with, known_by, unwrap};

use std::{borrow::Cow, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    outcome::{Outcome, Rejection},
    policy::Conflict,
};
use lambda_idempotency_engine::{call::RecordId, delivered::ReadAttribute};
use serde_json::value::RawValue;

use self::response::{Item, all_or_error};
use crate::{error::InvocationError, operation::Operation};

/// One kind of event source.
pub(crate) trait Source: Send + Sync {
    /// Its name in logs, errors and default keys.
    fn name(&self) -> &'static str;

    /// What a record's default key is made of, and what that is good for.
    fn identity(&self) -> &'static Identity;

    /// The members of a raw record that differ when it is delivered again, by their paths: keys and
    /// fingerprints must not hold them.
    fn volatile(&self, _: &Operation) -> &'static [&'static str] {
        &[]
    }

    /// What becomes of a delivery whose key is held elsewhere, if the user does not say.
    ///
    /// It waits, except where it costs little to have it back: most sources try again only a few
    /// times, perhaps each time inside the lease of a call that died, or stand still until they are
    /// answered.
    fn conflict(&self) -> Conflict {
        Conflict::Wait { up_to: Duration::MAX }
    }

    /// Whether the event is from this source, and from where `operation` takes its records.
    fn recognises(&self, event: &Event<'_>, operation: &Operation) -> bool;

    /// Takes from an event that it [recognises](Self::recognises) what is the operation's, and leaves
    /// the rest, if there is any, to the operations that are asked next.
    fn divide<'e>(&self, event: Event<'e>, _: &Operation) -> (Event<'e>, Option<Event<'e>>) {
        (event, None)
    }

    /// Whether it takes any event, and so is asked last.
    fn takes_anything(&self) -> bool {
        false
    }

    /// The event's records, in its order. One that cannot be read has no payload; the others are
    /// none the worse for it.
    fn records<'e>(&self, event: &Event<'e>, operation: &Operation) -> Vec<Record<'e>>;

    /// What the source is told. One without partial responses: nothing if all is acknowledged, else
    /// an error.
    fn respond(
        &self,
        _event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(self.name(), records, outcomes)
    }
}

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

/// One record of an event.
#[derive(Clone)]
pub(crate) struct Record<'e> {
    pub(crate) id: RecordId,
    /// The record as AWS delivers it; of Kafka, as key expressions see it.
    pub(crate) raw: Cow<'e, str>,
    /// What the handler is called with.
    pub(crate) payload: Result<Cow<'e, str>, Rejection>,
    /// What the payload is made of, where the payload cannot stand for it: base64, what an envelope was
    /// looked for in, what the whole record was taken instead of.
    pub(crate) body: Option<Cow<'e, str>>,
    /// What stays the same when the record is delivered again, and is no other's.
    pub(crate) identity: Result<Vec<Cow<'e, str>>, Rejection>,
    /// Its order group, where the source keeps an order.
    pub(crate) group: Option<Arc<str>>,
    /// How often it was received, this time included, if its source counts that. Among records without
    /// a group, what was received most often starts first: it is closest to being given up.
    pub(crate) receives: Option<u32>,
    /// How the handler finds what the sender attached to it, where the source has that.
    pub(crate) attributes: Option<ReadAttribute>,
    /// What it is called in a partial batch response, if it can be named in one.
    pub(crate) item: Option<Item>,
}

impl<'e> Record<'e> {
    /// A record with this id, in no order, which no partial batch response names.
    fn new(id: RecordId, raw: &'e RawValue, payload: Result<Cow<'e, str>, Rejection>) -> Self {
        Self {
            id,
            raw: Cow::Borrowed(raw.get()),
            payload,
            body: None,
            identity: Err(Rejection::NoIdentity("id")),
            group: None,
            receives: None,
            attributes: None,
            item: None,
        }
    }

    /// What the record says, whether it can be read or not; the same at each delivery. The whole record
    /// is not: receipt handles and counts differ. It is taken only where there is nothing else, since to
    /// put a record aside twice is better than to take it for another.
    pub(crate) fn content(&self) -> &str {
        self.body.as_deref().or(self.payload.as_deref().ok()).unwrap_or(&self.raw)
    }
}

/// What a record is called in logs and errors: its id, if it has one, and where it is from.
fn record_id(source: &'static str, id: Option<&str>, arn: &str) -> RecordId {
    RecordId::new(source, id.unwrap_or_default()).from_arn(Some(Arc::from(arn)))
}
