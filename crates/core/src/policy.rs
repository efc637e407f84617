//! The policies of an operation, with safe defaults.

use std::time::Duration;

use crate::{clock::Timestamp, failure::Failure, outcome::Completion};

/// How long [`OnConflict::Return`] waits for the rest of another worker's lease.
const SHORT_WAIT: Duration = Duration::from_secs(2);
/// How long after the end of that lease a delivery still looks whether the key was taken over.
const AFTER_LEASE: Duration = Duration::from_secs(1);

/// How the records of one operation are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How long a completed or permanently failed record answers later deliveries. Default: 24 hours.
    ///
    /// A duplicate that arrives later than this is processed again.
    pub retention: Duration,
    /// How long a duplicate is answered with the *result*, counted from when the work was done. After that the key still
    /// answers, without the result. Default: as long as the key answers.
    pub result_retention: Option<Duration>,
    /// By how much the clocks of two workers may differ. A takeover waits this long after the end
    /// of a lease. Default: 1 second.
    pub clock_skew: Duration,
    /// How long after the deadline of an invocation its lease ends. Lambda has been observed to
    /// stop a function 0.7 s after its deadline. Default: 1 second.
    pub lease_grace: Duration,
    /// How long an invocation lasts whose deadline is not known. Default: 15 minutes, Lambda's
    /// longest timeout.
    pub fallback_timeout: Duration,
    /// How long a claim holds its key. Default: [`Lease::Invocation`].
    pub lease: Lease,
    /// What to do with a delivery whose key another worker holds. Default: [`OnConflict::Return`];
    /// sources other than queues choose [`OnConflict::Wait`].
    pub on_conflict: OnConflict,
    /// What to do with a key whose handler was stopped at its deadline. Default:
    /// [`OnTimeout::Return`].
    pub on_timeout: OnTimeout,
    /// What to do with a record while the store is unavailable. Default: [`OnOutage::Return`].
    pub on_outage: OnOutage,
    /// The number of failed attempts after which a key fails permanently. Default: no limit.
    pub max_failed_attempts: Option<u32>,
    /// The number of lost attempts in a row after which a key fails permanently, without another call of its
    /// handler. Default: no limit.
    pub max_lost_attempts: Option<u32>,
    /// The most handlers of one batch that run at once, at least 1. Default: 16.
    pub concurrency: usize,
    /// How keys are held, and what is kept of an attempt. Default: [`Mode::Claim`].
    pub mode: Mode,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retention: Duration::from_hours(24),
            result_retention: None,
            clock_skew: Duration::from_secs(1),
            lease_grace: Duration::from_secs(1),
            fallback_timeout: Duration::from_mins(15),
            lease: Lease::Invocation,
            on_conflict: OnConflict::Return,
            on_timeout: OnTimeout::Return,
            on_outage: OnOutage::Return,
            max_failed_attempts: None,
            max_lost_attempts: None,
            concurrency: 16,
            mode: Mode::Claim,
        }
    }
}

impl Policy {
    /// Whether a key fails permanently by this failure, which is the last of `failed_attempts`. If
    /// not, it is released, and a later delivery calls the handler again.
    ///
    /// ```
    /// use lambda_idempotency_core::{failure::Failure, policy::Policy};
    ///
    /// let mut policy = Policy::default();
    /// policy.max_failed_attempts = Some(3);
    /// let failure = Failure::transient("the bank is closed");
    /// assert!(!policy.fails_permanently(&failure, 2));
    /// assert!(policy.fails_permanently(&failure, 3));
    /// ```
    #[must_use]
    pub fn fails_permanently(&self, failure: &Failure, failed_attempts: u32) -> bool {
        failure.is_permanent()
            || self.max_failed_attempts.is_some_and(|most| failed_attempts >= most)
    }

    /// How long a completion answers whose handler asked for this time: not longer than [`retention`](Self::retention),
    /// and not so short that the mode could not exclude an attempt any more.
    #[must_use]
    pub fn retention_for(&self, asked: Duration) -> Duration {
        asked.max(self.mode.least_retention()).min(self.retention)
    }

    /// Whether a duplicate is answered with the result of this completion. A record that does not say when its work was
    /// done gives its result as long as it answers.
    #[must_use]
    pub fn gives_result_of(&self, completion: Option<Completion>, now: Timestamp) -> bool {
        let done_at = completion.and_then(|completion| completion.done_at);
        match (self.result_retention, done_at) {
            (Some(retention), Some(done_at)) => now <= done_at.plus(retention),
            _ => true,
        }
    }

    /// Whether a key fails permanently whose last attempts were lost, so many in a row.
    #[must_use]
    pub fn gives_up(&self, losses: u32) -> bool {
        losses > 0 && self.max_lost_attempts.is_some_and(|most| losses >= most)
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
}

impl OnConflict {
    /// Until when a delivery waits that first found its key held at `since`, while the lease ends at
    /// `lease_until`. It does not wait if that is `since`.
    #[must_use]
    pub fn waits_until(self, since: Timestamp, lease_until: Timestamp) -> Timestamp {
        match self {
            Self::Return if lease_until <= since.plus(SHORT_WAIT) => lease_until.plus(AFTER_LEASE),
            Self::Return => since,
            Self::Wait { up_to } => since.plus(up_to),
        }
    }
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

impl Lease {
    /// The length of a lease that is renewed; `None` if it lasts until the end of the invocation.
    #[must_use]
    pub const fn renewed_length(self) -> Option<Duration> {
        match self {
            Self::Invocation => None,
            Self::Renewed { length } => Some(length),
        }
    }
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

impl OnTimeout {
    /// Whether the key fails permanently.
    #[must_use]
    pub const fn fails_permanently(self) -> bool {
        match self {
            Self::Return => false,
            Self::FailPermanently => true,
        }
    }
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

impl OnOutage {
    /// Whether the handler runs without protection.
    #[must_use]
    pub const fn runs_unprotected(self) -> bool {
        match self {
            Self::Return => false,
            Self::RunUnprotected => true,
        }
    }
}

/// How the keys of an operation are held, and what is kept of an attempt.
///
/// ```
/// use lambda_idempotency_core::policy::Mode;
///
/// assert_eq!(Mode::default(), Mode::Claim);
/// assert!(Mode::Optimistic.commits_effects() && !Mode::Optimistic.claims());
/// assert!(Mode::Mutex.claims() && !Mode::Mutex.keeps_completions());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The key is claimed, the handler makes its effects itself, and its completion is recorded afterwards. If
    /// the worker dies between an effect and the completion, the effect may happen again.
    #[default]
    Claim,
    /// The key is claimed, and the [effects](crate::effects) that the call collects are committed in one
    /// transaction with the completion. They happen exactly once; the store has to commit effects.
    Transactional,
    /// The handler runs without a claim, and one transaction inserts the completion together with the
    /// [effects](crate::effects): see [`admission::Held`](crate::admission::Held). Of concurrent attempts one is
    /// committed, and nothing is recorded of an attempt that fails or dies, so leases are not renewed and failed
    /// attempts not counted.
    Optimistic,
    /// Keys only exclude each other: the key is claimed, and its record is deleted when the handler has ended,
    /// whether it succeeded or failed. Each delivery calls the handler, copies in a batch run one after the
    /// other, and no failure is recorded as permanent, whatever the other policies say.
    Mutex,
}

impl Mode {
    /// Whether calls collect effects, which are committed with their completion.
    #[must_use]
    pub const fn commits_effects(self) -> bool {
        matches!(self, Self::Transactional | Self::Optimistic)
    }

    /// Whether a key is claimed before its handler runs.
    #[must_use]
    pub const fn claims(self) -> bool {
        !matches!(self, Self::Optimistic)
    }

    /// The shortest time for which a completion must answer. Without a claim it is what excludes an attempt whose request
    /// is still under way: DynamoDB refuses requests that were signed more than 15 minutes ago.
    #[must_use]
    pub const fn least_retention(self) -> Duration {
        match self {
            Self::Optimistic => Duration::from_mins(15),
            Self::Claim | Self::Transactional | Self::Mutex => Duration::ZERO,
        }
    }

    /// Whether the record of a key outlasts the attempt, and answers later deliveries.
    #[must_use]
    pub const fn keeps_completions(self) -> bool {
        !matches!(self, Self::Mutex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{IdempotencyRecord, Owner, Status};

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_lease_that_ends_soon_is_waited_for_and_a_longer_one_is_not() {
        let until = |lease_ends| OnConflict::Return.waits_until(at(1_000), at(lease_ends));
        assert_eq!(until(3_000), at(4_000), "a second longer than the lease");
        assert_eq!(until(3_001), at(1_000), "a longer lease is not waited for");
        let wait = OnConflict::Wait { up_to: Duration::from_secs(9) };
        assert_eq!(wait.waits_until(at(1_000), at(90_000)), at(10_000));
    }

    #[test]
    fn a_key_fails_permanently_by_its_failure_or_after_so_many() {
        let failures = [Failure::transient("x"), Failure::from("x"), Failure::permanent("x")];
        let policy = Policy::default();
        let permanent = failures.map(|failure| policy.fails_permanently(&failure, 1));
        assert_eq!(permanent, [false, false, true]);
        let policy = Policy { max_failed_attempts: Some(2), ..Policy::default() };
        let transient = Failure::transient("x");
        assert_eq!([1, 2, 3].map(|n| policy.fails_permanently(&transient, n)), [false, true, true]);
    }

    #[test]
    fn a_completion_answers_for_as_long_as_was_asked_and_never_longer_than_the_retention() {
        let hours = Duration::from_hours;
        let mut policy = Policy::default();
        assert_eq!([1, 24, 25].map(|n| policy.retention_for(hours(n))), [1, 24, 24].map(hours));
        assert_eq!(policy.retention_for(Duration::ZERO), Duration::ZERO);
        policy.mode = Mode::Optimistic;
        assert_eq!(policy.retention_for(Duration::ZERO), Duration::from_mins(15));
        policy.retention = Duration::from_mins(1);
        assert_eq!(policy.retention_for(hours(1)), Duration::from_mins(1));
    }

    #[test]
    fn a_result_is_given_up_to_its_last_instant_and_always_if_its_age_is_not_known() {
        let mut record = IdempotencyRecord::new(Status::Completed, at(90_000));
        let policy = Policy { result_retention: Some(Duration::from_secs(5)), ..Policy::default() };
        let gives = |record: &_, now| policy.gives_result_of(Completion::of(record), at(now));
        assert!(gives(&record, 80_000));
        (record.owner, record.lease_until) = (Some(Owner::from_bits(1)), Some(at(1_000)));
        assert_eq!([6_000, 6_001].map(|now| gives(&record, now)), [true, false]);
        assert!(Policy::default().gives_result_of(Completion::of(&record), at(80_000)));
    }

    #[test]
    fn a_key_that_was_never_lost_is_not_given_up() {
        for (most, gives_up) in [(None, [false; 4]), (Some(0), [false, true, true, true])] {
            let policy = Policy { max_lost_attempts: most, ..Policy::default() };
            assert_eq!([0, 1, 2, 3].map(|losses| policy.gives_up(losses)), gives_up);
        }
        let policy = Policy { max_lost_attempts: Some(2), ..Policy::default() };
        assert_eq!([0, 1, 2, 3].map(|losses| policy.gives_up(losses)), [false, false, true, true]);
    }
}
