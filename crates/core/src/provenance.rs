//! Where a claim came from, so that an idempotency record leads to the logs of its attempt.

use std::{borrow::Cow, sync::Arc};

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
    /// Who claimed it. The claims of an invocation share it.
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
}

/// The worker that made a claim: an invocation of a Lambda function, as far as it is known. What is not
/// known, and a name of more than 128 bytes, is `None`.
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
}
