//! Looking at an event without processing it: its records, their identities and their keys.
//!
//! For tools and tests. Unlike the rest of this crate it returns payloads and raw keys: do not log
//! them.
//!
//! ```
//! use lambda_idempotency::{Operation, keys::inspect};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let event = r#"{"Records":[{"messageId":"m-1","eventSource":"aws:sqs","body":"{\"id\":7}",
//!     "eventSourceARN":"arn:aws:sqs:eu-west-1:111122223333:orders"}]}"#;
//! let records = inspect::event(event, Some(&Operation::new("place-order").key("id")))?;
//! let record = &records[0];
//! assert_eq!((record.source, &*record.id), ("sqs", "m-1"));
//! assert_eq!(record.payload.as_deref(), Ok(r#"{"id":7}"#));
//! let identity = ["sqs", "arn:aws:sqs:eu-west-1:111122223333:orders", "m-1"];
//! assert_eq!(record.identity.as_deref().unwrap(), identity);
//! let key = record.key.as_ref().unwrap();
//! assert_eq!(key.selected.as_deref(), Some("7"));
//! assert_eq!(key.parts, [("id".to_owned(), 7.into())]);
//! assert!(key.key.as_ref().unwrap().as_str().starts_with("place-order#"));
//! # Ok(())
//! # }
//! ```

use std::{borrow::Cow, fmt};

use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::call::RecordId;
pub use lambda_idempotency_keys::View;
use lambda_idempotency_keys::{Key, KeyPath, Selection};

#[doc(inline)]
pub use crate::source::AnySource;
use lambda_runtime::Context;
use serde_json::{Value, value::RawValue};

use crate::{
    error::ConfigError,
    find_key::{Extraction, Inspected, Missing, Texts},
    operation::{Operation, Prepared},
    rejection::Rejection,
    source::{self, About, Event, records_of},
};

/// A record of an event. Its `Debug` omits everything that may be payload.
#[derive(Clone)]
#[non_exhaustive]
pub struct Record {
    /// The source that the event is from: `sqs`, `sns`, `eventbridge`, ...
    pub source: &'static str,
    /// The record's id in its source, as logs show it: a hash if an application has chosen the id;
    /// empty if there is no id.
    pub id: String,
    /// The queue, topic, stream, ... that delivered it.
    pub arn: Option<String>,
    /// The record as AWS delivers it, which `record("..")` expressions are applied to.
    pub raw: String,
    /// The payload for the handler and for expressions, or why there is none.
    pub payload: Result<String, Rejection>,
    /// The values that the default key is made of, or why there is no default key.
    pub identity: Result<Vec<String>, Rejection>,
    /// The names of these values in the source, or in the innermost envelope.
    pub identity_parts: &'static str,
    /// Which duplicates the default key recognises.
    pub catches: &'static str,
    /// Which duplicates it does not recognise.
    pub misses: &'static str,
    /// Its order group, if the source keeps an order.
    pub group: Option<String>,
    /// Its key, if an operation is given.
    pub key: Option<RecordKey>,
}

/// The key of a record for an operation. Its `Debug` omits the selected values.
#[derive(Clone)]
#[non_exhaustive]
pub struct RecordKey {
    /// The key as the store keeps it, or why there is none.
    pub key: Result<Key, NoKey>,
    /// The expression that selects it; `None` for the default key.
    pub path: Option<KeyPath>,
    /// The selected value, as canonical JSON; `None` for the default key.
    pub selected: Option<String>,
    /// The selected parts, each with its name, its path, or its position; a missing part is `null`.
    /// An expression that is not a list of parts is one part. Empty for the default key, for Powertools keys and for keys
    /// of a function.
    pub parts: Vec<(String, Value)>,
    /// The fingerprint that a later delivery of the key is compared with, if the operation has one.
    pub fingerprint: Option<Fingerprint>,
}

/// Why a record has no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoKey {
    /// The record is rejected.
    #[error(transparent)]
    Refused(#[from] Rejection),
    /// The record has no key, and the operation's policy is to run the handler without protection.
    #[error("no key; the operation runs such records unprotected")]
    Unprotected,
    /// HTTP requests of this method are not deduplicated.
    #[cfg(feature = "http")]
    #[error("a {0} request is not deduplicated: it has no key, and is handled each time")]
    PassesBy(String),
    /// The HTTP request is answered with this problem.
    #[cfg(feature = "http")]
    #[error("the client gets {0}")]
    Problem(String),
}

/// Why an event cannot be inspected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The text is not JSON.
    #[error("the event is not JSON (line {line}, column {column})")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// `lambda_http` panics on the HTTP request, as it would in the function.
    #[cfg(feature = "http")]
    #[error(
        "lambda_http cannot convert the event to a request, and would panic in the function: check \
         that its host and path form a valid URL"
    )]
    Request,
    /// The operation has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("source", &self.source)
            .field("id", &self.id)
            .field("arn", &self.arn)
            .field("rejection", &self.payload.as_ref().err().or(self.identity.as_ref().err()))
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The records of an event, in its order. Each source is tried in turn; an event that no source
/// recognises is treated as a direct invocation, whose identity is the request id.
///
/// Without an operation, the records have no keys.
///
/// # Errors
/// The text is not JSON; the operation has a mistake.
pub fn event(event: &str, operation: Option<&Operation>) -> Result<Vec<Record>, InspectError> {
    invocation(event, &AnySource::new(), operation, &Context::default())
}

/// The records of an event as a source with these settings reads them, for an invocation with this context: its request id
/// is the identity of a direct invocation, and its tenant is part of every key.
///
/// # Errors
/// As [`event()`]; the source has a mistake.
pub fn invocation(
    event: &str,
    AnySource(settings): &AnySource,
    operation: Option<&Operation>,
    context: &Context,
) -> Result<Vec<Record>, InspectError> {
    let raw: &RawValue = serde_json::from_str(event).map_err(|error| InspectError::json(&error))?;
    let prepared = operation.map(|operation| operation.prepared_for(settings)).transpose()?;
    let event = Event::read(raw, &context.request_id);
    let Some(source) = source::ALL.iter().find(|source| source.recognises(&event, settings)) else {
        return Ok(Vec::new());
    };
    // From a list of events, only those that the source takes.
    let event = if settings.is_filtered() { source.divide(event, settings).0 } else { event };
    if let Some(problem) = settings.mistake(source.name()) {
        return Err(ConfigError::source(problem).into());
    }
    let secret = operation.and_then(Operation::secret);
    let records = records_of(*source, &event, settings, secret);
    let tenant = context.tenant_id.as_deref();
    let extraction = prepared.as_ref().map(|operation| Extraction { operation, tenant });
    let about = source::known_by(*source, settings);
    let inspect = |record| inspect(source.name(), about, record, extraction.as_ref());
    Ok(records.iter().map(inspect).collect())
}

/// The names of all sources (see [`Record::source`]), in the order in which they are tried.
pub fn sources() -> impl Iterator<Item = &'static str> {
    source::ALL.iter().map(|source| source.name())
}

/// Checks the operation for a source with these settings, as when a function starts.
///
/// # Errors
/// The operation has a mistake.
pub fn check(AnySource(settings): &AnySource, operation: &Operation) -> Result<(), ConfigError> {
    operation.prepared_for(settings).map(drop)
}

impl InspectError {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        Self::Json { line: error.line(), column: error.column() }
    }
}

fn inspect(
    source: &'static str,
    about: &About,
    record: &source::Record<'_>,
    extraction: Option<&Extraction<'_>>,
) -> Record {
    let RecordId { arn, .. } = &record.id;
    let owned = |parts: &Vec<Cow<'_, str>>| parts.iter().map(|part| part.to_string()).collect();
    Record {
        source,
        id: record.id.label().to_owned(),
        arn: arn.as_deref().map(ToOwned::to_owned),
        raw: record.raw.to_string(),
        payload: record.payload.as_ref().map(ToString::to_string).map_err(Clone::clone),
        identity: record.identity.as_ref().map(owned).map_err(Clone::clone),
        identity_parts: about.identity,
        catches: about.catches,
        misses: about.misses,
        group: record.group.as_deref().map(ToOwned::to_owned),
        key: extraction.map(|extraction| match &record.payload {
            Ok(payload) => RecordKey::of(extraction, record.texts(payload)),
            Err(rejection) => RecordKey::none(extraction.operation, rejection.clone().into()),
        }),
    }
}

impl RecordKey {
    pub(crate) fn of(extraction: &Extraction<'_>, texts: Texts<'_>) -> Self {
        let operation = extraction.operation;
        let Inspected { key, selection, parts, fingerprint } = match extraction.inspect(texts) {
            Ok(inspected) => inspected,
            Err(Missing::Reject(rejection)) => return Self::none(operation, rejection.into()),
            Err(Missing::RunUnprotected) => return Self::none(operation, NoKey::Unprotected),
        };
        let text = |selection: &Selection| {
            String::from_utf8_lossy(selection.canonical_bytes()).into_owned()
        };
        let selected = selection.as_ref().map(text);
        Self { key: Ok(key), path: operation.key_path(), selected, parts, fingerprint }
    }

    pub(crate) fn none(operation: &Prepared, reason: NoKey) -> Self {
        Self {
            key: Err(reason),
            path: operation.key_path(),
            selected: None,
            parts: Vec::new(),
            fingerprint: None,
        }
    }
}
