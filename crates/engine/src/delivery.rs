//! The input of the engine: a batch of deliveries, and what is to be done with each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    call::Call,
    delivered::{Delivered, RecordId},
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    outcome::Rejected,
    policy::Policy,
    record::{Fingerprint, Json},
};
use lambda_idempotency_keys::Key;

/// A handler with its decoded payload, ready to be called once.
pub type Job<'a> = Box<dyn FnOnce(Call) -> BoxFuture<'a, Result<Returned, Failure>> + Send + 'a>;

/// The result of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Its result as JSON text, for later deliveries.
    Value(Json),
    /// Nothing that a later delivery would want.
    Nothing,
    /// A result that could not be serialized. The work is done all the same.
    Unserializable,
    /// It turned the record away and did no work. The key is free again as if it had not been claimed:
    /// nothing is kept, and no failure is counted.
    Declined,
}

/// One delivery of one record.
pub struct Delivery<'a> {
    /// Which record.
    pub record: RecordId,
    /// How it was delivered, for its handler.
    pub delivered: Delivered,
    /// Its order group: records of one group are processed in the order of the batch, and none
    /// after one that is returned, unless that one [lets them pass](Self::lets_pass). `None` where the source keeps no order.
    pub group: Option<Arc<str>>,
    /// How often it was received, this time included; 0 if its source does not count that. Among records
    /// without a group, those received most often start first: they are closest to being given up by
    /// their source.
    pub receives: u32,
    /// The work to be done.
    pub work: Work<'a>,
    /// Whether the caller takes care of the record if it will never be processed: a permanent failure, a mismatch,
    /// a rejected record. Then the records behind it in its group do not wait for it, and a failure counts as permanent
    /// even where nothing records that, in mutex mode and without a claim.
    pub lets_pass: bool,
}

impl<'a> Delivery<'a> {
    /// A delivery that waits for no other.
    #[must_use]
    pub fn alone(record: RecordId, delivered: Delivered, work: Work<'a>) -> Self {
        let receives = delivered.receive_count().unwrap_or_default();
        Self { record, delivered, group: None, receives, work, lets_pass: false }
    }

    /// In this order group, if there is one.
    #[must_use]
    pub fn in_group(mut self, group: Option<Arc<str>>) -> Self {
        self.group = group;
        self
    }

    /// Whether it [lets others pass](Self::lets_pass).
    #[must_use]
    pub const fn letting_pass(mut self, lets_pass: bool) -> Self {
        self.lets_pass = lets_pass;
        self
    }

    /// The same delivery without a claim.
    pub(super) fn without_protection(mut self) -> Self {
        self.work = match self.work {
            Work::Keyed { key, job, .. } => Work::Unprotected { identity: key, job },
            work => work,
        };
        self
    }
}

/// The work to be done with a record.
pub enum Work<'a> {
    /// Once per key.
    Keyed {
        /// The idempotency key.
        key: Key,
        /// The fingerprint, which must agree with other deliveries of the key.
        fingerprint: Option<Fingerprint>,
        /// The whole payload, to recognise copies where there is no fingerprint.
        payload: &'a str,
        /// The handler.
        job: Job<'a>,
    },
    /// At every delivery: it has no key, and the user said to run it.
    Unprotected {
        /// Identifies the record, for the subkeys of its call. It is not used for a claim.
        identity: Key,
        /// The handler.
        job: Job<'a>,
    },
    /// It cannot be processed.
    Reject(Rejected),
}

impl Work<'_> {
    /// The key under which it is done once.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Keyed { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// The deliveries of one invocation.
pub struct Batch<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// The records, in the order of the event.
    pub deliveries: Vec<Delivery<'a>>,
    /// How they are treated.
    pub policy: &'a Policy,
    /// The request id of the invocation, if there is one.
    pub request_id: Option<&'a str>,
    /// When the invocation ends; `None` if that is not known.
    pub invocation_deadline: Option<Timestamp>,
    /// How much time handlers leave for work after the batch, a fifth at most.
    pub time_after: Duration,
    /// How long the operation's handlers take.
    pub pace: &'a Pace,
}

impl<'a> Batch<'a> {
    /// No delivery yet, in no invocation.
    #[must_use]
    pub const fn for_operation(operation: &'a str, policy: &'a Policy, pace: &'a Pace) -> Self {
        Self {
            operation,
            deliveries: Vec::new(),
            policy,
            request_id: None,
            invocation_deadline: None,
            time_after: Duration::ZERO,
            pace,
        }
    }

    /// In the invocation with this request id, which ends then, as far as that is known.
    #[must_use]
    pub const fn within(
        mut self,
        request_id: Option<&'a str>,
        deadline: Option<Timestamp>,
    ) -> Self {
        (self.request_id, self.invocation_deadline) = (request_id, deadline);
        self
    }

    /// Stops handlers so long before the invocation deadline, or after 80 % of the time: work follows after the batch. Leases
    /// and completions have all of the invocation.
    #[must_use]
    pub const fn leaving(mut self, time_after: Duration) -> Self {
        self.time_after = time_after;
        self
    }

    /// With these deliveries, in the order of the event.
    #[must_use]
    pub fn with(mut self, deliveries: Vec<Delivery<'a>>) -> Self {
        self.deliveries = deliveries;
        self
    }
}

/// How long the handlers of an operation take, learned from their calls. Shared by all invocations.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Follows slow calls at once and fast ones slowly: a start too many costs more than one too
    /// few.
    pub(crate) fn learn(&self, took: Duration) {
        // 0 means that nothing is known.
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let known = self.0.load(Ordering::Relaxed);
        let next = took.max(known.saturating_sub(known / 8).saturating_add(took / 8));
        self.0.store(next, Ordering::Relaxed);
    }

    pub(crate) fn estimate(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_rises_at_once_and_falls_slowly() {
        let pace = Pace::default();
        pace.learn(Duration::from_millis(800));
        pace.learn(Duration::ZERO);
        assert_eq!(pace.estimate(), Duration::from_millis(700));
    }
}
