//! The outcome of a delivery, when its work was done, and why it was not processed.

use std::{error::Error, fmt, sync::Arc};

use crate::{
    clock::Timestamp,
    failure::Failure,
    outbox::SendError,
    record::{IdempotencyRecord, Json, Status},
    store::StoreError,
};

/// The outcome of one delivery of one record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler ran, and the key is completed.
    Executed {
        /// The handler's result as JSON text. `kept` says whether later deliveries get it too.
        result: Option<Json>,
        /// What the store keeps of the result.
        kept: ResultKept,
        /// What is recorded of it. `None` in mutex mode, which records nothing.
        completion: Option<Completion>,
    },
    /// The handler ran without protection against duplicates, because of the policy for missing
    /// keys or for outages.
    Unprotected {
        /// What it returned, as JSON text.
        result: Option<Json>,
        /// The store's error; `None` if the record has no key.
        outage: Option<StoreError>,
    },
    /// An earlier delivery did the work.
    Replayed {
        /// The result of that delivery.
        result: Option<Json>,
        /// When that was, and until when the key answers; `None` if no record was seen.
        completion: Option<Completion>,
    },
    /// An identical record of the same batch did the work.
    Coalesced {
        /// The result of that delivery.
        result: Option<Json>,
        /// What is recorded of it; `None` if its completion was lost.
        completion: Option<Completion>,
    },
    /// The handler ran and lost its lease, and another worker has since completed the key. In optimistic mode,
    /// where there is no lease: another worker has completed the key.
    Superseded {
        /// The other worker's result.
        result: Option<Json>,
        /// When that was, and until when the key answers; `None` if no record was seen.
        completion: Option<Completion>,
    },
    /// The handler declined the delivery before it did any work, as an HTTP handler that answers
    /// 429 does. The key is free again, and no failure is counted.
    Declined,
    /// The handler returned, but its completion could not be recorded: a later delivery calls the
    /// handler again.
    CompletionLost {
        /// What it returned.
        result: Option<Json>,
        /// Why it could not be recorded.
        error: StoreError,
    },
    /// The handler returned, and the store did not say that its effects were committed with the
    /// completion. Neither was applied or, if the error [may have been
    /// applied](StoreError::may_have_applied), maybe both. The record returns to its source, and its
    /// next delivery finds out: it is answered from the completion, or runs again.
    Uncommitted {
        /// Why it is not known that they were committed.
        error: StoreError,
    },
    /// The key is completed, or its handler returned, and a message that it published is not known to be sent. The
    /// record returns to its source, and its next delivery sends the messages, with the same ids. It calls the
    /// handler again only if the completion was lost as well.
    Unsent {
        /// What the handler returned, now or earlier.
        result: Option<Json>,
        /// Why the message is not known to be sent.
        error: SendError,
    },
    /// The handler failed, and the record returns to its source.
    Failed {
        /// The handler's failure.
        failure: Failure,
        /// The number of failed attempts for this key, including this one.
        failed_attempts: u32,
        /// Whether the failure is permanent, so that the key is never tried again. In mutex mode and without a claim nothing
        /// records that, and it is said only where somebody takes care of the record.
        permanent: bool,
    },
    /// An earlier failure of this key was permanent.
    PermanentlyFailed {
        /// The type of the error.
        error_type: Option<Arc<str>>,
        /// How often the handler failed for this key.
        failed_attempts: u32,
    },
    /// Another worker holds the key.
    Busy {
        /// Up to and including this instant.
        until: Timestamp,
    },
    /// The key was used with another payload.
    Mismatch,
    /// The key belongs to another application, so its idempotency record does not apply to this
    /// one. The handler was not called, or it was called and lost its lease.
    Foreign(Foreign),
    /// The handler was stopped at its deadline, shortly before the invocation's. Its lease is kept
    /// until it ends, because the handler's effect may still happen.
    TimedOut {
        /// Whether the failure is permanent, so that the key is never tried again.
        permanent: bool,
    },
    /// The handler ran but lost its lease: another worker claimed the key and has not completed it,
    /// or the lease could not be renewed.
    Fenced,
    /// The handler was not started.
    Returned(NotStarted),
    /// The record cannot be processed as it is.
    Rejected(Rejected),
    /// The store failed when the key was claimed.
    Unavailable(StoreError),
}

/// What the store keeps of a handler's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultKept {
    /// The whole result.
    Whole,
    /// Only that the work was done: the result is larger than the store can hold.
    TooLarge,
    /// Only that the work was done: the result could not be serialized.
    Unserializable,
    /// Only that the work was done: what keeps large results, or encrypts them, did not answer.
    Unavailable,
    /// Only that the work was done: the store refused the result, for instance because of a character that it cannot
    /// hold.
    Refused,
}

impl fmt::Display for ResultKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "the result is kept",
            Self::TooLarge => {
                "the result is larger than a record can be, and is not kept; `Results::offload_above` (crate \
                 lambda-idempotency-results) keeps it elsewhere"
            }
            Self::Unserializable => "the result cannot be serialized as JSON",
            Self::Unavailable => "what keeps large results, or encrypts them, did not answer",
            Self::Refused => {
                "the store refused the result, perhaps for a character that it cannot hold"
            }
        })
    }
}

impl Outcome {
    /// Whether the delivery is acknowledged to its source.
    #[must_use]
    pub const fn is_acknowledged(&self) -> bool {
        match self {
            Self::Executed { .. }
            | Self::Unprotected { .. }
            | Self::Replayed { .. }
            | Self::Coalesced { .. }
            | Self::Superseded { .. }
            | Self::CompletionLost { .. } => true,
            Self::Declined
            | Self::Uncommitted { .. }
            | Self::Unsent { .. }
            | Self::Failed { .. }
            | Self::PermanentlyFailed { .. }
            | Self::Busy { .. }
            | Self::Mismatch
            | Self::Foreign(_)
            | Self::TimedOut { .. }
            | Self::Fenced
            | Self::Returned(_)
            | Self::Rejected(_)
            | Self::Unavailable(_) => false,
        }
    }

    /// Whether the record will never be processed, at this delivery or a later one: its key has failed permanently, it was
    /// used with another payload, or the record is rejected as it is.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Failed { permanent: true, .. }
                | Self::TimedOut { permanent: true }
                | Self::PermanentlyFailed { .. }
                | Self::Mismatch
                | Self::Rejected(_)
        )
    }

    /// A stable word for logs and metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Executed { .. } => "executed",
            Self::Unprotected { .. } => "unprotected",
            Self::Replayed { .. } => "replayed",
            Self::Coalesced { .. } => "coalesced",
            Self::Superseded { .. } => "superseded",
            Self::Declined => "declined",
            Self::CompletionLost { .. } => "completion_lost",
            Self::Uncommitted { .. } => "uncommitted",
            Self::Unsent { .. } => "unsent",
            Self::Failed { .. } => "failed",
            Self::PermanentlyFailed { .. } => "permanently_failed",
            Self::Busy { .. } => "busy",
            Self::Mismatch => "mismatch",
            Self::Foreign(_) => "foreign",
            Self::TimedOut { .. } => "timed_out",
            Self::Fenced => "fenced",
            Self::Returned(_) => "returned",
            Self::Rejected(_) => "rejected",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// The handler's result, of this or an earlier delivery, as JSON text.
    #[must_use]
    pub fn result(&self) -> Option<&Json> {
        match self {
            Self::Executed { result, .. }
            | Self::Unprotected { result, .. }
            | Self::Replayed { result, .. }
            | Self::Coalesced { result, .. }
            | Self::Superseded { result, .. }
            | Self::Unsent { result, .. }
            | Self::CompletionLost { result, .. } => result.as_ref(),
            _ => None,
        }
    }

    /// When the work of the key was done, and until when its record answers, if the store has that.
    #[must_use]
    pub const fn completion(&self) -> Option<Completion> {
        match self {
            Self::Executed { completion, .. }
            | Self::Replayed { completion, .. }
            | Self::Coalesced { completion, .. }
            | Self::Superseded { completion, .. } => *completion,
            _ => None,
        }
    }

    /// Why the record returns to its source, without payload; `None` if the delivery is
    /// acknowledged.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        Some(match self {
            _ if self.is_acknowledged() => return None,
            Self::Declined => {
                "the handler declined the record, and its key is free again".to_owned()
            }
            Self::Uncommitted { error } if error.may_have_applied() => format!(
                "the handler returned, and it is not known whether its effects were committed; the \
                 next delivery finds out: {error}"
            ),
            Self::Uncommitted { error } => format!(
                "the handler returned, but its effects could not be committed; the next delivery \
                 runs it again: {error}"
            ),
            Self::Unsent { error, .. } => {
                format!("the handler returned, and the next delivery sends its messages: {error}")
            }
            Self::Failed { failure, failed_attempts, permanent } => {
                let permanently = if *permanent { "; the failure is permanent" } else { "" };
                format!("{failure} (failure {failed_attempts} for this key{permanently})")
            }
            Self::PermanentlyFailed { error_type, .. } => {
                let error = error_type.as_deref().unwrap_or("an error of unknown type");
                format!("it failed permanently before, with {error}, and is not tried again")
            }
            Self::Busy { .. } => "another worker is processing the same key".to_owned(),
            Self::Mismatch => {
                "its key was used before with another payload: the fingerprints differ".to_owned()
            }
            Self::TimedOut { permanent: false } => {
                "the handler was stopped at the invocation's deadline".to_owned()
            }
            Self::TimedOut { permanent: true } => "the handler was stopped at the invocation's \
                deadline, and the record is not tried again"
                .to_owned(),
            Self::Fenced => {
                "the lease was lost: another worker took it over, or it could not be renewed"
                    .to_owned()
            }
            Self::Foreign(foreign) => foreign.to_string(),
            Self::Returned(why) => why.to_string(),
            Self::Rejected(why) => why.to_string(),
            Self::Unavailable(error) => error.to_string(),
            _ => return None,
        })
    }
}

/// When the work of a key was done, and until when later deliveries of the key are answered from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Completion {
    /// When it was recorded, by the clock of the worker that did the work, rounded up to a whole second. `None` in
    /// records of earlier versions and of other libraries, which do not say it.
    pub done_at: Option<Timestamp>,
    /// The last instant at which the key answers: the time of the completion plus the retention. A worker whose clock is
    /// behind may answer a little later.
    pub answers_until: Timestamp,
}

impl Completion {
    /// What this record says; `None` if its work is not done.
    #[must_use]
    pub fn of(record: &IdempotencyRecord) -> Option<Self> {
        let (done_at, answers_until) = (record.settled_at(), record.expires_at);
        (record.status == Status::Completed).then_some(Self { done_at, answers_until })
    }
}

/// A key that belongs to another application, which has an operation of the same name in the same
/// store. `Display` says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// The operation.
    pub operation: Arc<str>,
    /// The application that owns the key.
    pub theirs: Arc<str>,
    /// The application that found the key; `None` if it has no name.
    pub ours: Option<Arc<str>>,
}

impl Foreign {
    /// The key of `operation` belongs to `theirs`, as an application named `ours` has found.
    #[must_use]
    pub fn new(
        operation: impl Into<Arc<str>>,
        theirs: impl Into<Arc<str>>,
        ours: Option<Arc<str>>,
    ) -> Self {
        Self { operation: operation.into(), theirs: theirs.into(), ours }
    }
}

impl std::error::Error for Foreign {}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, theirs, ours } = self;
        match ours {
            Some(ours) => write!(
                f,
                "the key belongs to application `{theirs}`, and this is application `{ours}`: both \
                 have an operation `{operation}` in one table. If that is different work, give one \
                 of them another operation name or table; if it is the same work (a function that \
                 was renamed or replaced, a second one beside it), let this one have the other's name: \
                 `.application(\"{theirs}\")` or IDEMPOTENCY_APPLICATION"
            ),
            None => write!(
                f,
                "the key belongs to application `{theirs}`, and this is an application without a \
                 name: both have an operation `{operation}` in one table. If that is different \
                 work, give one of them another operation name or table; if it is the same work, \
                 let this one have the other's name: `.application(\"{theirs}\")` or \
                 IDEMPOTENCY_APPLICATION"
            ),
        }
    }
}

/// Why a handler was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// Too little time was left in the invocation.
    #[error("too little time was left in the invocation")]
    Deadline,
    /// Its lease ended before the handler could start.
    #[error("its lease ended before its turn came")]
    Lease,
    /// Its last attempts were lost, so it may be what kills its process, and other records of the invocation are
    /// acknowledged.
    #[error(
        "its last attempts were lost with their workers, and it does not start in an invocation that acknowledges other records"
    )]
    Quarantine,
    /// An earlier record of its group failed.
    #[error("a record before it in its group returns to its source")]
    Order,
}

/// Why a record cannot be processed as it is. The reason is an opaque error to the protocol;
/// `lambda-idempotency` uses its `Rejection`.
///
/// ```
/// use lambda_idempotency_core::outcome::Rejected;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the record has no body")]
/// struct NoBody;
///
/// let rejected = Rejected::new(NoBody);
/// assert_eq!(rejected.to_string(), "the record has no body");
/// assert!(rejected.reason::<NoBody>().is_some());
/// ```
#[derive(Clone)]
pub struct Rejected(Arc<dyn Error + Send + Sync>);

impl Rejected {
    /// A rejection with this reason. Its `Display` and `Debug` are logged, so neither may show a
    /// payload.
    #[must_use]
    pub fn new(reason: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(reason))
    }

    /// The reason, if it is of this type.
    #[must_use]
    pub fn reason<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

/// Two rejections are equal if their texts are equal.
impl PartialEq for Rejected {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Rejected {}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Rejected {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Owner;

    #[test]
    fn only_a_record_of_a_claim_says_when_its_work_was_done() {
        let at = Timestamp::from_secs;
        let mut record = IdempotencyRecord::new(Status::Completed, at(90));
        // Another library leaves the end of its lease in what it completes.
        record.lease_until = Some(at(30));
        let completion = |record: &_| Completion::of(record).map(|c| (c.done_at, c.answers_until));
        assert_eq!(completion(&record), Some((None, at(90))));
        record.owner = Some(Owner::from_bits(1));
        assert_eq!(completion(&record), Some((Some(at(30)), at(90))));
        record.status = Status::InProgress;
        assert_eq!(completion(&record), None);
    }
}
