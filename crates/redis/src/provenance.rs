//! A record's [`Provenance`] as one field, and back.
//!
//! It is for people, and nothing is decided by it. What cannot be read of it is therefore left out, and
//! does not make the record unreadable.

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Provenance, Worker},
};
use serde_json::{Map, Value};

const CLAIMED_AT: &str = "claimed_at";
const REQUEST_ID: &str = "request_id";
const FUNCTION: &str = "function";
const VERSION: &str = "version";
const LOG_STREAM: &str = "log_stream";
const SOURCE: &str = "source";
const RECORD: &str = "record";

/// The field's value: a JSON object.
pub(crate) fn text(provenance: &Provenance) -> String {
    let worker = &provenance.worker;
    let texts = [
        (REQUEST_ID, worker.request_id.as_deref()),
        (FUNCTION, worker.function.as_deref()),
        (VERSION, worker.version.as_deref()),
        (LOG_STREAM, worker.log_stream.as_deref()),
        (SOURCE, provenance.source.as_deref()),
        (RECORD, provenance.record.as_deref()),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    let claimed_at = (CLAIMED_AT.to_owned(), provenance.claimed_at.as_millis().into());
    Value::Object(texts.chain([claimed_at]).collect()).to_string()
}

/// Reads the field; `None` if it does not say when the key was claimed.
pub(crate) fn read(text: &str) -> Option<Provenance> {
    let members: Map<String, Value> = serde_json::from_str(text).ok()?;
    let claimed_at = members.get(CLAIMED_AT)?.as_u64()?;
    let mut worker = Worker::default();
    worker.request_id = member(&members, REQUEST_ID);
    worker.function = member(&members, FUNCTION);
    worker.version = member(&members, VERSION);
    worker.log_stream = member(&members, LOG_STREAM);
    let mut provenance = Provenance::new(Timestamp::from_millis(claimed_at), Arc::new(worker));
    provenance.source = member(&members, SOURCE).map(|source| Cow::Owned(String::from(&*source)));
    provenance.record = member(&members, RECORD);
    Some(provenance)
}

fn member(members: &Map<String, Value>, name: &str) -> Option<Arc<str>> {
    members.get(name)?.as_str().map(Arc::from)
}
