//! One record of an event, as every source gives it.

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_engine::{call::RecordId, delivered::ReadAttribute};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::rejection::Rejection;

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
    pub(super) fn new(
        id: RecordId,
        raw: &'e RawValue,
        payload: Result<Cow<'e, str>, Rejection>,
    ) -> Self {
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
pub(super) fn record_id(source: &'static str, id: Option<&str>, arn: &str) -> RecordId {
    RecordId::new(source, id.unwrap_or_default()).with_arn(Some(Arc::from(arn)))
}

/// What a record is called in a partial batch response.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    /// A message id, a sequence number, or the event id of a stream's record in a pipe.
    Id(String),
    /// A place in a partition of Kafka.
    Offset {
        /// Topic and partition, as the event writes them: `orders-0`.
        partition: String,
        /// The place.
        offset: u64,
    },
}
