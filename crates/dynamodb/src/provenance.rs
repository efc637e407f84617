//! A record's [`Provenance`] as one attribute, and back.
//!
//! It is for people, and nothing is decided by it. What cannot be read of it is therefore left out, and
//! does not make the record unreadable.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Provenance, Worker},
};

use crate::scalar::{millis, scaled};

const CLAIMED_AT: &str = "claimed_at";
const REQUEST_ID: &str = "request_id";
const FUNCTION: &str = "function";
const VERSION: &str = "version";
const LOG_STREAM: &str = "log_stream";
const SOURCE: &str = "source";
const RECORD: &str = "record";

/// The attribute's value.
pub(crate) fn attribute(provenance: &Provenance) -> AttributeValue {
    let worker = &provenance.worker;
    let texts = [
        (REQUEST_ID, worker.request_id.as_deref()),
        (FUNCTION, worker.function.as_deref()),
        (VERSION, worker.version.as_deref()),
        (LOG_STREAM, worker.log_stream.as_deref()),
        (SOURCE, provenance.source.as_deref()),
        (RECORD, provenance.record.as_deref()),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), AttributeValue::S(text?.to_owned()))));
    let claimed_at = (CLAIMED_AT.to_owned(), millis(provenance.claimed_at));
    AttributeValue::M(texts.chain([claimed_at]).collect())
}

/// Reads the attribute; `None` if it does not say when the key was claimed.
pub(crate) fn read(value: &AttributeValue) -> Option<Provenance> {
    let members = value.as_m().ok()?;
    let claimed_at = scaled(members.get(CLAIMED_AT)?.as_n().ok()?, 0)?;
    let mut worker = Worker::default();
    worker.request_id = text(members, REQUEST_ID);
    worker.function = text(members, FUNCTION);
    worker.version = text(members, VERSION);
    worker.log_stream = text(members, LOG_STREAM);
    let mut provenance = Provenance::new(Timestamp::from_millis(claimed_at), Arc::new(worker));
    provenance.source = text(members, SOURCE).map(|source| Cow::Owned(String::from(&*source)));
    provenance.record = text(members, RECORD);
    Some(provenance)
}

fn text(members: &HashMap<String, AttributeValue>, name: &str) -> Option<Arc<str>> {
    members.get(name)?.as_s().ok().map(|text| Arc::from(text.as_str()))
}
