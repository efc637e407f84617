//! What a user can choose, as enums with safe defaults.

use std::time::Duration;

/// How the records of one operation are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How long a completed or permanently failed record answers later deliveries. Default: 24 hours.
    ///
    /// This *is* the guarantee: a duplicate that comes later is processed again.
    pub retention: Duration,
    /// By how much the clocks of two workers may differ. A takeover waits this long after the end
    /// of a lease. Default: 1 second.
    pub clock_skew: Duration,
    /// How long after the deadline of an invocation its lease ends. Lambda has been seen to kill a
    /// function 0.7 s late. Default: 1 second.
    pub lease_grace: Duration,
    /// The lease where no deadline is known. Default: 15 minutes, Lambda's longest timeout.
    pub fallback_lease: Duration,
    /// How long a claim holds its key. Default: [`Lease::Invocation`].
    pub lease: Lease,
    /// What becomes of a delivery whose key is held elsewhere. Default: [`OnConflict::Return`]; sources
    /// other than queues choose [`OnConflict::Wait`].
    pub on_conflict: OnConflict,
    /// What becomes of a handler's failure that does not say. Default: [`OnFailure::Return`].
    pub on_failure: OnFailure,
    /// What becomes of a key whose handler was stopped. Default: [`OnTimeout::Return`].
    pub on_timeout: OnTimeout,
    /// What becomes of a record while the store is out of reach. Default: [`OnOutage::Return`].
    pub on_outage: OnOutage,
    /// What becomes of a delivery whose key has failed permanently. Default: [`OnPermanentFailure::Return`].
    pub on_permanent_failure: OnPermanentFailure,
    /// After how many failures a key fails permanently, so that it is not tried again.
    /// Default: never.
    pub max_failed_attempts: Option<u32>,
    /// How many handlers of one batch run at once, at least 1. Default: 16.
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

/// What becomes of a delivery while another worker holds its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// It goes back to its source, which will deliver it again; if the lease ends within two
    /// seconds, that is awaited instead. For queues.
    Return,
    /// It waits for the other worker's result, or for the end of its lease to take over, up to this
    /// long and never past its own deadline; then it goes back. For sources with few retries, all of
    /// which may fall inside one lease.
    Wait {
        /// The longest wait.
        up_to: Duration,
    },
    /// It is acknowledged: the other worker is trusted to finish. If that one dies, the event is
    /// lost.
    Skip,
}

/// What becomes of a delivery whose key failed permanently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnPermanentFailure {
    /// It goes back to its source, so that its dead-letter queue gets it.
    #[default]
    Return,
    /// It is acknowledged.
    Acknowledge,
}

/// How long a claim holds its key: what others wait for if its worker dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lease {
    /// Until the invocation ends, and the lease grace. Costs nothing.
    #[default]
    Invocation,
    /// For this long, renewed while the handler runs and never beyond the end of the invocation. For
    /// timeouts of many minutes, where the key of a worker that died would be held long; 30 seconds
    /// is a good length. Costs a write of the store a third of the length after each write, none for
    /// handlers that are faster. A handler that loses its lease is stopped.
    Renewed {
        /// The length of a lease, at least a second.
        length: Duration,
    },
}

/// What becomes of a failure that does not say itself, as [`Failure`](crate::failure::Failure) can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The key is released, and a later delivery calls the handler again.
    #[default]
    Return,
    /// The failure is the outcome: later deliveries get it as an answer, and the handler is not
    /// called again.
    FailPermanently,
}

/// What becomes of a key whose handler was stopped shortly before its invocation's deadline. Its
/// effect may be on its way all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnTimeout {
    /// The lease stands until it ends; then a later delivery calls the handler again, and tells it
    /// that an earlier call disappeared.
    #[default]
    Return,
    /// The key has failed permanently: a person has to look before it is tried again.
    FailPermanently,
}

/// What becomes of a record whose key cannot be claimed because the store is out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnOutage {
    /// It goes back to its source.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates: copies of the record, now or later,
    /// run it again. Not for refusals such as missing permissions.
    RunUnprotected,
}
