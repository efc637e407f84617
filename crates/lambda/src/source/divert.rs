//! Putting aside the records that will never be processed.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{
    clock::BoxFuture, failure::Failure, outcome::DivertReason, record::Fingerprint,
};
use lambda_idempotency_engine::{
    batch::{Aside, Divert, Job, Returned},
    call::RecordId,
};
use lambda_idempotency_keys::{Key, KeyFormat, Scope};

use crate::source::Record;

/// A record that was not processed and never will be, as a sink receives it.
#[derive(Clone)]
#[non_exhaustive]
pub struct DivertedRecord {
    /// The operation's name.
    pub operation: Arc<str>,
    /// Which record.
    pub record: RecordId,
    /// The hash of its idempotency key, as in the log. For a bad record, the hash of the key under
    /// which the store records that it was put aside. Delete the item with this key before you send
    /// the record again. `None` if the record ran without a key: then the store has no item.
    pub key_hash: Option<String>,
    /// The record as AWS delivers it. For Kafka, as key expressions see it: key, value and headers
    /// are decoded, and bytes that are not text are `{"base64": ".."}` (in a header, a list of
    /// numbers). Contains the payload: do not log it.
    pub raw: String,
    /// Why it is not processed. The text contains no payload.
    pub reason: DivertReason,
}

/// The user's function that puts records aside.
#[derive(Clone)]
pub(crate) struct Sink(Arc<SinkFn>);

type SinkFn = dyn Fn(DivertedRecord) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync;

impl Sink {
    pub(crate) fn new<F, Fut, E>(sink: F) -> Self
    where
        F: Fn(DivertedRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure>,
    {
        Self(Arc::new(move |diverted| {
            let sending = sink(diverted);
            Box::pin(async move { sending.await.map_err(|error| error.into()) })
        }))
    }

    /// Putting a record aside, as a job for the engine.
    pub(crate) fn job<'a>(&self, diverted: DivertedRecord) -> Job<'a> {
        let Self(sink) = self.clone();
        Box::new(move |_| {
            Box::pin(async move {
                let reason = diverted.reason.clone();
                sink(diverted).await?;
                Ok(Returned::Diverted(reason))
            })
        })
    }

    /// How `record` is put aside once the reason is known. This work has its own key. The key
    /// contains the idempotency key and the fence of its final record, so that a record that was
    /// sent again and has failed again is put aside again. It contains the record's identity *and*
    /// its content, because a producer may give one id to different messages.
    pub(crate) fn divert<'a>(
        &self,
        (operation, key_format): (&'a Arc<str>, &'a KeyFormat),
        tenant: Option<&'a str>,
        record: &'a Record<'a>,
        key: Option<Key>,
        fingerprint: Option<Fingerprint>,
    ) -> Divert<'a> {
        let sink = self.clone();
        Box::new(move |reason, fence| {
            let kind = match reason {
                DivertReason::Mismatch => "mismatch",
                _ => "permanent failure",
            };
            let RecordId { source, id, arn, .. } = &record.id;
            let key_text = key.as_ref().map_or("", Key::as_str);
            let fence = fence.map(|fence| fence.to_string()).unwrap_or_default();
            let fingerprint = fingerprint.as_ref().map_or("", Fingerprint::as_str);
            let arn = arn.as_deref().unwrap_or_default();
            let mut parts =
                vec![kind, key_text, &fence, fingerprint, record.content(), source, arn, id];
            match &record.identity {
                Ok(identity) => parts.extend(identity.iter().map(|part| &**part)),
                // The raw record may differ at each delivery, so the record may be put aside twice;
                // that is better than losing one.
                Err(_) => parts.push(&record.raw),
            }
            let scope = Scope { operation, tenant };
            let diverted = DivertedRecord {
                operation: Arc::clone(operation),
                record: record.id.clone(),
                key_hash: key.as_ref().map(|key| key.hash().to_owned()),
                raw: record.raw.clone().into_owned(),
                reason,
            };
            Aside { key: key_format.identity(&scope, &parts), job: sink.job(diverted) }
        })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

/// Without the record itself: that is for no log.
impl fmt::Debug for DivertedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DivertedRecord")
            .field("operation", &self.operation)
            .field("record", &self.record)
            .field("key", &self.key_hash)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}
