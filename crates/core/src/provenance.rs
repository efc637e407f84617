//! Where a claim came from, so that an idempotency record leads to the logs of its attempt.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use crate::clock::Timestamp;

/// The longest name that a record keeps; a longer one is left out.
const LONGEST: usize = 128;

/// Which worker made the last claim of a key, when, and for which record of an event.
///
/// For people who look at a store: no decision is made from it, and no [`Guard`] names it. It holds no
/// payload, and no identifier that an application has chosen.
///
/// ```
/// use std::sync::Arc;
/// use lambda_idempotency_core::{clock::Timestamp, record::{Provenance, Worker}};
///
/// let worker = Arc::new(Worker::default().with_request_id("8f5d9c3e"));
/// let provenance = Provenance::new(Timestamp::from_secs(1_700_000_000), worker)
///     .with_record("sqs", "2e1424d4-f796-459a-8184-9c92662be6da".into());
/// assert_eq!(provenance.worker.request_id.as_deref(), Some("8f5d9c3e"));
/// ```
///
/// [`Guard`]: crate::store::Guard
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Provenance {
    /// When the key was claimed, by the worker's clock.
    pub claimed_at: Timestamp,
    /// The worker that claimed it. The claims of an invocation share it.
    pub worker: Arc<Worker>,
    /// The kind of source that delivered the record: `sqs`, `kinesis`, ...
    pub source: Option<Cow<'static, str>>,
    /// The record in that source, as logs name it: its id, or a hash of an id that an application has
    /// chosen.
    pub record: Option<Arc<str>>,
}

impl Provenance {
    /// A claim by this worker, of a record that is not known.
    #[must_use]
    pub const fn new(claimed_at: Timestamp, worker: Arc<Worker>) -> Self {
        Self { claimed_at, worker, source: None, record: None }
    }

    /// For this record of this kind of source. A label of more than 128 bytes, or an empty one, is left
    /// out.
    #[must_use]
    pub fn with_record(mut self, source: impl Into<Cow<'static, str>>, label: Arc<str>) -> Self {
        self.source = Some(source.into());
        self.record = Some(label).filter(|label| fits(label));
        self
    }

    /// The texts in it, with the names under which stores keep them; beside them they keep `claimed_at`.
    #[must_use]
    pub fn texts(&self) -> [(&'static str, Option<&str>); 6] {
        let worker = &self.worker;
        [
            (REQUEST_ID, worker.request_id.as_deref()),
            (FUNCTION, worker.function.as_deref()),
            (VERSION, worker.version.as_deref()),
            (LOG_STREAM, worker.log_stream.as_deref()),
            (SOURCE, self.source.as_deref()),
            (RECORD, self.record.as_deref()),
        ]
    }

    /// A provenance of these [texts](Self::texts): `text` has the text of a name. A text that it does not have is left out,
    /// since nothing is decided by it.
    #[must_use]
    pub fn of_texts(claimed_at: Timestamp, text: impl Fn(&str) -> Option<Arc<str>>) -> Self {
        let worker = Worker {
            request_id: text(REQUEST_ID),
            function: text(FUNCTION),
            version: text(VERSION),
            log_stream: text(LOG_STREAM),
        };
        let source = text(SOURCE).map(|source| Cow::Owned(String::from(&*source)));
        Self { claimed_at, worker: Arc::new(worker), source, record: text(RECORD) }
    }

    /// A JSON object with all of it, for stores that keep it as one text.
    ///
    /// ```
    /// use lambda_idempotency_core::{clock::Timestamp, record::Provenance};
    ///
    /// let provenance = Provenance::new(Timestamp::from_millis(7), Default::default());
    /// assert_eq!(provenance.to_json(), r#"{"claimed_at":7}"#);
    /// assert_eq!(Provenance::from_json(&provenance.to_json()), Some(provenance));
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let texts = self.texts().into_iter();
        let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
        let claimed_at = (CLAIMED_AT.to_owned(), self.claimed_at.as_millis().into());
        Value::Object(texts.chain([claimed_at]).collect()).to_string()
    }

    /// Reads [`to_json`](Self::to_json). A part that cannot be read is left out; `None` if it does not say when the
    /// key was claimed.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let members: Map<String, Value> = serde_json::from_str(text).ok()?;
        let claimed_at = Timestamp::from_millis(members.get(CLAIMED_AT)?.as_u64()?);
        Some(Self::of_texts(claimed_at, |name| members.get(name)?.as_str().map(Arc::from)))
    }
}

/// The names under which stores keep the parts.
const CLAIMED_AT: &str = "claimed_at";
const REQUEST_ID: &str = "request_id";
const FUNCTION: &str = "function";
const VERSION: &str = "version";
const LOG_STREAM: &str = "log_stream";
const SOURCE: &str = "source";
const RECORD: &str = "record";

/// The worker that made a claim: an invocation of a Lambda function, as far as it is known. A name that is not
/// known, or has more than 128 bytes, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Worker {
    /// The request id of the invocation.
    pub request_id: Option<Arc<str>>,
    /// The name of the function.
    pub function: Option<Arc<str>>,
    /// The version of the function: a number, or `$LATEST`.
    pub version: Option<Arc<str>>,
    /// The log stream of the execution environment, in the log group of the function.
    pub log_stream: Option<Arc<str>>,
}

impl Worker {
    /// The function of this process, by the environment variables that Lambda sets
    /// (`AWS_LAMBDA_FUNCTION_NAME`, `AWS_LAMBDA_FUNCTION_VERSION`, `AWS_LAMBDA_LOG_STREAM_NAME`).
    /// Outside Lambda nothing is known.
    #[must_use]
    pub fn from_environment() -> Self {
        let read = |variable| text(std::env::var(variable).ok()?);
        Self {
            request_id: None,
            function: read("AWS_LAMBDA_FUNCTION_NAME"),
            version: read("AWS_LAMBDA_FUNCTION_VERSION"),
            log_stream: read("AWS_LAMBDA_LOG_STREAM_NAME"),
        }
    }

    /// In the invocation of this request id.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.request_id = text(id);
        self
    }
}

fn text(text: impl Into<Arc<str>>) -> Option<Arc<str>> {
    Some(text.into()).filter(|text| fits(text))
}

fn fits(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_is_empty_or_too_long_is_left_out() {
        let by = |label: &str| {
            Provenance::new(Timestamp::EPOCH, Arc::default()).with_record("sqs", label.into())
        };
        for label in [String::new(), "x".repeat(129)] {
            assert_eq!(by(&label).record, None);
            assert_eq!(Worker::default().with_request_id(label), Worker::default());
        }
        assert_eq!(by(&"x".repeat(128)).record.map(|label| label.len()), Some(128));
        assert_eq!(by("").source.as_deref(), Some("sqs"));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for text in ["", "null", "[]", "{}", r#"{"claimed_at":"1"}"#, r#"{"claimed_at":-1}"#] {
            assert_eq!(Provenance::from_json(text), None, "{text}");
        }
        let text = r#"{"claimed_at":7,"source":"sqs","function":1,"new":{}}"#;
        let provenance = Provenance::from_json(text).unwrap();
        assert_eq!(provenance.claimed_at, Timestamp::from_millis(7));
        assert_eq!(
            (provenance.source.as_deref(), &provenance.worker.function),
            (Some("sqs"), &None)
        );
    }
}
