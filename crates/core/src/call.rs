//! What a handler is told about the call it gets.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    clock::{Clock, SystemClock, Timestamp},
    key::{Digest, Key},
    record::Record,
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
    history: History,
    deadline: Option<Timestamp>,
    clock: Arc<dyn Clock>,
}

/// What happened to a key before, and the fence of this call.
#[derive(Clone, Copy)]
pub(crate) struct History {
    failures: u32,
    vanished: u32,
    fence: u64,
}

impl History {
    pub(crate) const fn of(record: &Record) -> Self {
        Self { failures: record.failures, vanished: record.vanished, fence: record.fence }
    }

    /// Of a record that is not claimed.
    pub(crate) const fn none(now: Timestamp) -> Self {
        Self { failures: 0, vanished: 0, fence: now.as_millis() }
    }
}

impl Call {
    pub(crate) fn new(
        key: Option<Key>,
        record: RecordId,
        history: History,
        deadline: Option<Timestamp>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { key, record, history, deadline, clock }
    }

    /// A call for the unit test of a handler: the first for a key made of `name`, no deadline.
    #[must_use]
    pub fn test(name: &str) -> Self {
        let key = Some(Key::from_text(format!("test#{name}")));
        let history = History::none(Timestamp::from_millis(1));
        Self::new(key, RecordId::new("test", name), history, None, Arc::new(SystemClock))
    }

    /// As if the handler had failed this often before.
    #[must_use]
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.history.failures = failures;
        self
    }

    /// As if this many earlier calls had disappeared.
    #[must_use]
    pub const fn with_vanished(mut self, vanished: u32) -> Self {
        self.history.vanished = vanished;
        self
    }

    /// As if the call had this fence; a test call's is 1.
    #[must_use]
    pub const fn with_fence(mut self, fence: u64) -> Self {
        self.history.fence = fence;
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
        self.history.failures
    }

    /// How many earlier calls for this key disappeared: were killed, timed out, or lost the store.
    /// What they were to do may have been done: **where this is not 0, check before acting again**.
    #[must_use]
    pub const fn vanished(&self) -> u32 {
        self.history.vanished
    }

    /// A number that rises from call to call of a key, for systems downstream that can refuse what
    /// comes from a lower one than they have seen: a worker that was stopped in the middle, and goes
    /// on after its key was taken over, then changes nothing there.
    ///
    /// It is the fence of the call before plus one, or the time of the claim in milliseconds since
    /// the epoch if that is more. While the record lives it rises whatever the clocks say. Once the
    /// record is gone (it expired, or an operator deleted it), only the clock makes it rise: by as
    /// much as clocks may differ, a later call can then have a lower fence than an earlier one. It
    /// orders the calls of *one* key, and says nothing between keys. Without an idempotency key it
    /// is the time of the call.
    ///
    /// ```
    /// use lambda_idempotency_core::call::Call;
    /// // UPDATE accounts SET balance = .., fence = $1 WHERE id = .. AND fence < $1
    /// assert!(Call::test("o-1").with_fence(7).fence() > 6);
    /// ```
    ///
    /// See Kleppmann, [How to do distributed locking][fencing].
    ///
    /// [fencing]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.history.fence
    }

    /// A key for one effect of this call, to be handed to a system that deduplicates by itself: the
    /// same in every attempt, another for each `name`, and for each idempotency key. 64 hexadecimal
    /// digits, which say nothing of the payload.
    ///
    /// It closes the gap that no record can: a worker that dies between an effect and its completion.
    /// Where the record has no idempotency key, it follows from the record's source and id.
    ///
    /// ```
    /// use lambda_idempotency_core::call::Call;
    /// let call = Call::test("o-1");
    /// // payments.charge(amount).idempotency_key(call.subkey("charge")).send().await?;
    /// assert_eq!(call.subkey("charge"), Call::test("o-1").with_failures(3).subkey("charge"));
    /// assert_ne!(call.subkey("charge"), call.subkey("refund"));
    /// assert_ne!(call.subkey("charge"), Call::test("o-2").subkey("charge"));
    /// ```
    #[must_use]
    pub fn subkey(&self, name: &str) -> String {
        let mut digest = Digest::new(b"lambda-idempotency subkey 1");
        match &self.key {
            Some(key) => digest.part(key.as_str().as_bytes()),
            None => {
                let RecordId { source, id, arn } = &self.record;
                for part in [*source, id, arn.as_deref().unwrap_or_default()] {
                    digest.part(part.as_bytes());
                }
            }
        }
        digest.part(name.as_bytes());
        digest.hex()
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
            .field("failures", &self.failures())
            .field("vanished", &self.vanished())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
