//! What a user can choose, as enums with safe defaults.

use std::time::Duration;

/// How the records of one operation are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How long a completed or remembered record answers later deliveries. Default: 24 hours.
    ///
    /// This *is* the guarantee: a duplicate that comes later is processed again.
    pub retention: Duration,
    /// By how much the clocks of two workers may differ. A takeover waits this long after the end
    /// of a lease. Default: 1 second.
    pub skew: Duration,
    /// How long after the deadline of an invocation its lease ends. Lambda has been seen to kill a
    /// function 0.7 s late. Default: 1 second.
    pub grace: Duration,
    /// The lease where no deadline is known. Default: 15 minutes, Lambda's longest timeout.
    pub fallback_lease: Duration,
    /// What becomes of a delivery whose key is held elsewhere.
    pub conflict: Conflict,
    /// What becomes of a record that has no key. Default: [`MissingKey::Fail`].
    pub missing_key: MissingKey,
    /// What becomes of a delivery whose failure is remembered. Default: [`Remembered::Return`].
    pub remembered: Remembered,
    /// After how many failures a key is remembered as failed, so that it is not tried again.
    /// Default: never.
    pub max_failures: Option<u32>,
    /// How many handlers of one batch run at once, at least 1. Default: 16.
    pub concurrency: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retention: Duration::from_hours(24),
            skew: Duration::from_secs(1),
            grace: Duration::from_secs(1),
            fallback_lease: Duration::from_mins(15),
            conflict: Conflict::Retry,
            missing_key: MissingKey::Fail,
            remembered: Remembered::Return,
            max_failures: None,
            concurrency: 16,
        }
    }
}

/// What becomes of a delivery while another worker holds its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// It goes back to its source, which will deliver it again; if the lease ends within two
    /// seconds, that is awaited instead. For queues.
    Retry,
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

/// What becomes of a record in which the key expression finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// The record fails and goes back to its source.
    #[default]
    Fail,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
    /// The record is acknowledged without being processed.
    Skip,
}

/// What becomes of a delivery whose key failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remembered {
    /// It goes back to its source, so that its dead-letter queue gets it.
    #[default]
    Return,
    /// It is acknowledged.
    Acknowledge,
}
