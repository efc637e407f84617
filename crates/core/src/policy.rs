//! The policies of an operation, with safe defaults.

use std::time::Duration;

/// How the records of one operation are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How long a completed or permanently failed record answers later deliveries. Default: 24 hours.
    ///
    /// A duplicate that arrives later than this is processed again.
    pub retention: Duration,
    /// By how much the clocks of two workers may differ. A takeover waits this long after the end
    /// of a lease. Default: 1 second.
    pub clock_skew: Duration,
    /// How long after the deadline of an invocation its lease ends. Lambda has been observed to
    /// stop a function 0.7 s after its deadline. Default: 1 second.
    pub lease_grace: Duration,
    /// The lease if the invocation's deadline is not known. Default: 15 minutes, Lambda's longest
    /// timeout.
    pub fallback_lease: Duration,
    /// How long a claim holds its key. Default: [`Lease::Invocation`].
    pub lease: Lease,
    /// What to do with a delivery whose key another worker holds. Default: [`OnConflict::Return`];
    /// sources other than queues choose [`OnConflict::Wait`].
    pub on_conflict: OnConflict,
    /// What to do about a failure that was not declared transient or permanent. Default:
    /// [`OnFailure::Return`].
    pub on_failure: OnFailure,
    /// What to do with a key whose handler was stopped at its deadline. Default:
    /// [`OnTimeout::Return`].
    pub on_timeout: OnTimeout,
    /// What to do with a record while the store is unavailable. Default: [`OnOutage::Return`].
    pub on_outage: OnOutage,
    /// What to do with a delivery whose key has failed permanently. Default:
    /// [`OnPermanentFailure::Return`].
    pub on_permanent_failure: OnPermanentFailure,
    /// The number of failed attempts after which a key fails permanently. Default: no limit.
    pub max_failed_attempts: Option<u32>,
    /// The most handlers of one batch that run at once, at least 1. Default: 16.
    pub concurrency: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retention: Duration::from_hours(24),
            clock_skew: Duration::from_secs(1),
            lease_grace: Duration::from_secs(1),
            fallback_lease: Duration::from_mins(15),
            lease: Lease::Invocation,
            on_conflict: OnConflict::Return,
            on_failure: OnFailure::Return,
            on_timeout: OnTimeout::Return,
            on_outage: OnOutage::Return,
            on_permanent_failure: OnPermanentFailure::Return,
            max_failed_attempts: None,
            concurrency: 16,
        }
    }
}

/// What to do with a delivery while another worker holds its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// The record returns to its source, which delivers it again. If the lease ends within two
    /// seconds, the worker waits for that instead. For queues.
    Return,
    /// The delivery waits for the other worker's result, or for the end of its lease to take the
    /// key over. It waits up to this long and never beyond its own deadline; then the record
    /// returns to its source. For sources with few retries, all of which may fall within one lease.
    Wait {
        /// The longest wait.
        up_to: Duration,
    },
    /// The delivery is acknowledged unprocessed, in the expectation that the other worker completes
    /// it. If that worker dies, the record is lost.
    Skip,
}

/// What to do with a delivery whose key failed permanently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnPermanentFailure {
    /// The record returns to its source, which moves it to its dead-letter queue.
    #[default]
    Return,
    /// The delivery is acknowledged.
    Acknowledge,
}

/// How long a claim holds its key, and so how long others wait if its worker dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lease {
    /// Until the end of the invocation plus the lease grace. Needs no further writes.
    #[default]
    Invocation,
    /// For this long, renewed while the handler runs, but never beyond the end of the invocation.
    /// Use it with timeouts of many minutes, where a worker that died would otherwise block its key
    /// for long; 30 seconds is a good length. Each third of the length costs one write to the
    /// store; faster handlers need none. A handler that loses its lease is stopped.
    Renewed {
        /// The length of a lease, at least a second.
        length: Duration,
    },
}

/// What to do about a [`Failure`](crate::failure::Failure) that was not declared transient or
/// permanent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The key is released, and a later delivery calls the handler again.
    #[default]
    Return,
    /// The failure is permanent: it is recorded, later deliveries get it as their answer, and the
    /// handler is not called again.
    FailPermanently,
}

/// What to do with a key whose handler was stopped shortly before the invocation's deadline. The
/// handler's effect may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnTimeout {
    /// The key is held until its lease ends. Then a later delivery calls the handler again and
    /// passes it the number of lost attempts.
    #[default]
    Return,
    /// The key fails permanently. A person has to check before it is tried again.
    FailPermanently,
}

/// What to do with a record whose key cannot be claimed because the store is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnOutage {
    /// The record returns to its source.
    #[default]
    Return,
    /// The handler runs without protection against duplicates: copies of the record run it again.
    /// Does not apply to refusals such as missing permissions.
    RunUnprotected,
}
