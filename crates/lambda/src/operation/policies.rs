//! How an operation's records are treated: the setters of its [`Policy`].
//!
//! [`Policy`]: lambda_idempotency_core::policy::Policy

use std::time::Duration;

use lambda_idempotency_core::policy::{
    Conflict, Lease, MissingKey, OnFailure, OnOutage, OnTimeout, Remembered,
};

use super::Operation;
use crate::bad_record::OnBadRecord;

impl Operation {
    /// How long a completed record, or a remembered failure, answers later deliveries; the end is
    /// rounded up to a whole second. Default: 24 hours.
    ///
    /// **A duplicate that arrives later is new work.** Choose the longest time between two deliveries of
    /// the same thing: 24 hours cover Lambda's own retries of an asynchronous event, for 6 hours at most. A queue
    /// keeps messages for 4 days by default and for 14 at most, its dead-letter queue for as long, and a
    /// redrive starts anew with both: whoever redrives needs as long a retention, and a
    /// [`key`](Self::key) from the payload, since a redriven message has another id. What a longer
    /// retention costs is storage: an item for each key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    /// // A queue and a dead-letter queue that each keep messages for 14 days.
    /// let place = Operation::new("place-order").key("orderId").retain(Duration::from_hours(24 * 28));
    /// # place.check().unwrap();
    /// ```
    #[must_use]
    pub fn retain(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self.changed()
    }

    /// What becomes of a delivery whose key is held elsewhere. Default: what suits the source.
    /// [`Conflict::Retry`] for SQS, whose queue delivers again, and for HTTP requests, whole events
    /// and [`run`](crate::Idempotency::run), whose callers are told; [`Conflict::Wait`] for all other
    /// sources, which have few retries or stand still meanwhile.
    #[must_use]
    pub fn on_conflict(mut self, conflict: Conflict) -> Self {
        self.conflict = Some(conflict);
        self.changed()
    }

    /// What becomes of a record without a key. Default: it fails.
    #[must_use]
    pub fn on_missing_key(mut self, missing_key: MissingKey) -> Self {
        self.policy.missing_key = missing_key;
        self.changed()
    }

    /// What becomes of a record that cannot be processed as it is: it cannot be read, has no key, or
    /// does not fit the handler's type. Default: it is put aside where [`divert`](Self::divert) says, or
    /// else returned to its source.
    #[must_use]
    pub fn on_bad_record(mut self, bad_record: OnBadRecord) -> Self {
        self.bad_record = Some(bad_record);
        self.changed()
    }

    /// What becomes of a delivery whose failure is remembered. Default: it is put aside where
    /// [`divert`](Self::divert) says, or else returned to its source. To acknowledge it *and* divert it
    /// is refused.
    #[must_use]
    pub fn on_remembered(mut self, remembered: Remembered) -> Self {
        self.policy.remembered = remembered;
        self.changed()
    }

    /// After how many failures a key is not tried again, but remembered as failed; 0 is as 1, after the
    /// first. Default: never.
    #[must_use]
    pub fn max_failures(mut self, most: u32) -> Self {
        self.policy.max_failures = Some(most);
        self.changed()
    }

    /// How many handlers of one batch run at once; 0 is as 1. Default: 16.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.policy.concurrency = handlers;
        self.changed()
    }

    /// By how much the clocks of two workers may differ. Default: 1 second.
    #[must_use]
    pub fn skew(mut self, allowance: Duration) -> Self {
        self.policy.skew = allowance;
        self.changed()
    }

    /// How long after the deadline of an invocation its lease ends. Default: 1 second.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.policy.grace = grace;
        self.changed()
    }

    /// How long a claim holds its key, which is what others wait for if its worker dies. Default:
    /// until the invocation ends. For functions with timeouts of many minutes:
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{Lease, Operation};
    /// let export = Operation::new("export").lease(Lease::Renewed { length: Duration::from_secs(30) });
    /// # export.check().unwrap();
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.policy.lease = lease;
        self.changed()
    }

    /// What becomes of an error that does not say so itself, as [`Failure`](crate::Failure) can.
    /// Default: the key is released and tried again.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.policy.on_failure = on_failure;
        self.changed()
    }

    /// What becomes of a key whose handler was stopped at the end of its invocation. Default: it is
    /// tried again when its lease has ended.
    #[must_use]
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.policy.on_timeout = on_timeout;
        self.changed()
    }

    /// What becomes of records while the store is out of reach. Default: they go back.
    #[must_use]
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self.changed()
    }
}
