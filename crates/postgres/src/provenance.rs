//! A record's [`Provenance`] as a JSON object, and back.
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

/// The JSON text.
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
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, Value::from(text?))));
    let claimed_at = (CLAIMED_AT, Value::from(provenance.claimed_at.as_millis()));
    let members = [claimed_at].into_iter().chain(texts);
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
}

/// Reads the JSON text; `None` if it does not say when the key was claimed.
pub(crate) fn read(text: &str) -> Option<Provenance> {
    let members: Map<String, Value> = serde_json::from_str(text).ok()?;
    let claimed_at = members.get(CLAIMED_AT)?.as_u64()?;
    let text = |name| members.get(name)?.as_str().map(Arc::<str>::from);
    let mut worker = Worker::default();
    worker.request_id = text(REQUEST_ID);
    worker.function = text(FUNCTION);
    worker.version = text(VERSION);
    worker.log_stream = text(LOG_STREAM);
    let mut provenance = Provenance::new(Timestamp::from_millis(claimed_at), Arc::new(worker));
    provenance.source = text(SOURCE).map(|source| Cow::Owned(String::from(&*source)));
    provenance.record = text(RECORD);
    Some(provenance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for text in ["", "null", "[]", "{}", r#"{"claimed_at":"1"}"#, r#"{"claimed_at":-1}"#] {
            assert_eq!(read(text), None, "{text}");
        }
        let provenance = read(r#"{"claimed_at":7,"source":"sqs","function":1,"new":{}}"#).unwrap();
        assert_eq!(provenance.claimed_at, Timestamp::from_millis(7));
        assert_eq!(
            (&*provenance.source.unwrap(), provenance.worker.function.clone()),
            ("sqs", None)
        );
    }
}
