//! What a handler is told about the call it gets.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
};

/// Which record of which source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordId {
    /// The kind of source: `sqs`, `sns`, `eventbridge`, ...
    pub source: &'static str,
    /// The record's id in that source: message id, event id, ...
    pub id: Arc<str>,
    /// The queue, topic or bus it came from.
    pub arn: Option<Arc<str>>,
}

impl RecordId {
    /// The record `id` of a source.
    #[must_use]
    pub fn new(source: &'static str, id: impl Into<Arc<str>>) -> Self {
        Self { source, id: id.into(), arn: None }
    }

    /// Adds where it came from.
    #[must_use]
    pub fn from_arn(mut self, arn: Option<Arc<str>>) -> Self {
        self.arn = arn;
        self
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record {}", self.source, self.id)
    }
}

/// One call of a handler: for which key and record, what happened before, and how much time there
/// is.
///
/// ```
/// use lambda_idempotency_core::call::Call;
/// let call = Call::test("o-1").with_failures(2);
/// assert_eq!((call.failures(), call.vanished()), (2, 0));
/// ```
#[derive(Clone)]
pub struct Call {
    key: Option<Key>,
    record: RecordId,
    failures: u32,
    vanished: u32,
    deadline: Option<Timestamp>,
    clock: Arc<dyn Clock>,
}

impl Call {
    pub(crate) fn new(
        key: Option<Key>,
        record: RecordId,
        (failures, vanished): (u32, u32),
        deadline: Option<Timestamp>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { key, record, failures, vanished, deadline, clock }
    }

    /// A call for the unit test of a handler: the first for a key made of `name`, no deadline.
    #[must_use]
    pub fn test(name: &str) -> Self {
        let key = Some(Key::from_text(format!("test#{name}")));
        Self::new(key, RecordId::new("test", name), (0, 0), None, Arc::new(SystemClock))
    }

    /// As if the handler had failed this often before.
    #[must_use]
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// As if this many earlier calls had disappeared.
    #[must_use]
    pub const fn with_vanished(mut self, vanished: u32) -> Self {
        self.vanished = vanished;
        self
    }

    /// As if the invocation ended at `deadline`.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The hash of the idempotency key; `None` if the operation's policy let a record without a key
    /// run unprotected.
    #[must_use]
    pub fn key_hash(&self) -> Option<&str> {
        self.key.as_ref().map(Key::hash)
    }

    /// The record that is processed.
    #[must_use]
    pub const fn record(&self) -> &RecordId {
        &self.record
    }

    /// How often a handler reported failure for this key before.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// How many earlier calls for this key disappeared: were killed, timed out, or lost the store.
    /// What they were to do may have been done: **where this is not 0, check before acting again**.
    #[must_use]
    pub const fn vanished(&self) -> u32 {
        self.vanished
    }

    /// When the handler is stopped, if a deadline is known.
    #[must_use]
    pub const fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// How much time is left until then.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.clock.now()))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("key", &self.key_hash())
            .field("record", &self.record)
            .field("failures", &self.failures)
            .field("vanished", &self.vanished)
            .finish_non_exhaustive()
    }
}
