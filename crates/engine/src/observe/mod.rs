//! Reports outcomes, calls of the store and ends of invocations to the log and to observers of the user.

mod log;
mod observers;
mod store_call;

pub use log::TracingObserver;
pub(crate) use observers::Observers;
pub(crate) use store_call::errors;
pub use store_call::{StoreCall, StorePurpose};

use std::time::Duration;

use crate::call::RecordId;
use lambda_idempotency_core::{clock::Timestamp, outcome::Outcome, store::StoreError};
use lambda_idempotency_keys::Key;

/// Gets reports of what happens. It must return quickly. If it panics, neither records nor other observers are
/// affected.
pub trait Observer: Send + Sync + 'static {
    /// A delivery has its outcome.
    fn reported(&self, report: &Report<'_>);

    /// A call of the store has ended. Calls for which an invocation no longer waits are not reported.
    ///
    /// Default: does nothing.
    fn store_called(&self, call: &StoreCall<'_>) {
        let _ = call;
    }

    /// All records of an operation in one invocation have their outcomes. An invocation that Lambda ends, or whose
    /// future is dropped, does not come to this.
    ///
    /// Default: does nothing.
    fn batch_ended(&self, end: &BatchEnd<'_>) {
        let _ = end;
    }
}

/// The end of an operation's records in one invocation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BatchEnd<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The source of the records.
    pub source: &'static str,
    /// How many records there were.
    pub records: usize,
    /// How often a key was found completed in the cache of this process.
    pub cache_hits: usize,
    /// How long it took, from the records to the last outcome.
    pub took: Duration,
    /// When it was.
    pub at: Timestamp,
}

impl<'a> BatchEnd<'a> {
    pub(crate) const fn new(operation: &'a str, source: &'static str, records: usize) -> Self {
        let (took, at) = (Duration::ZERO, Timestamp::EPOCH);
        Self { operation, source, records, cache_hits: 0, took, at }
    }
}

/// One delivery and its outcome.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Report<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The record.
    pub record: &'a RecordId,
    /// The key, if the record has one.
    pub key: Option<&'a Key>,
    /// The outcome of the delivery.
    pub outcome: &'a Outcome,
    /// How long the record waited from the beginning of the invocation until its handler was started, if that came to
    /// be: for its claim, for a busy key, for records before it.
    pub waited: Option<Duration>,
    /// How long the handler ran, if it did.
    pub ran_for: Option<Duration>,
    /// How long it took from the handler's return until the outcome was known, which includes the completion. `None` if
    /// the handler did not return.
    pub settled_in: Option<Duration>,
    /// Why the store does not know that the record's messages were sent, so that they may be sent again, with the same
    /// ids.
    pub unrecorded: Option<&'a StoreError>,
    /// How many attempts for the key failed before this one, if that is known.
    pub failed_attempts: u32,
    /// How many attempts for the key were lost before this one, if that is known.
    pub lost_attempts: u32,
}

impl<'a> Report<'a> {
    pub(crate) const fn new(
        operation: &'a str,
        record: &'a RecordId,
        key: Option<&'a Key>,
        outcome: &'a Outcome,
    ) -> Self {
        Self {
            operation,
            record,
            key,
            outcome,
            waited: None,
            ran_for: None,
            settled_in: None,
            unrecorded: None,
            failed_attempts: 0,
            lost_attempts: 0,
        }
    }
}
