//! What a store has to do: conditional writes in a batch, and consistent reads.
//!
//! A [`Store`] judges nothing. It is told which [`Guard`] must hold for each key and what to put
//! there, and says for each member whether it was [`Written`](Verdict::Written), what it
//! [`Found`](Verdict::Found) instead, or why it cannot tell. Time, leases and ownership are the
//! business of [`admission`](crate::admission).
//!
//! To write a store, implement both methods and run the conformance suite of the `testkit` crate
//! against it. There are no default methods: a safety property must not be inherited by accident.

use std::{error::Error, fmt, sync::Arc};

use crate::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
};

/// A durable map from [`Key`] to [`IdempotencyRecord`] with conditional writes.
pub trait Store: Send + Sync + 'static {
    /// Applies each write if its guard holds, each atomically and independently of the others, and
    /// answers in the order asked: one verdict for each write.
    ///
    /// No key occurs twice in one call. The store may retry a member as often as it likes until
    /// `call_deadline`, since every write carries a token by which it recognises itself; what is not
    /// known by then is [`Verdict::Unknown`]. A call whose deadline is past already may send nothing.
    ///
    /// A server-side expiry, where the store has one, must not remove a record before its
    /// `expires_at` has passed on the server's clock.
    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>>;

    /// Reads each key with strong consistency, in the order asked.
    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        (**self).write(writes, call_deadline)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        (**self).read(keys, call_deadline)
    }
}

/// One conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The key to write.
    pub key: Key,
    /// What must be there now.
    pub guard: Guard,
    /// What to put there, replacing every field; `None` deletes.
    pub record: Option<IdempotencyRecord>,
}

/// The condition of a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// There is no record, not even an expired one.
    Absent,
    /// The record is exactly the one that was read.
    Unchanged(RecordVersion),
    /// The record is in progress and carries this token.
    OwnedBy(Owner),
}

/// All that was read of a record and can change under its reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordVersion {
    /// The status read.
    pub status: Status,
    /// The owner read.
    pub owner: Option<Owner>,
    /// The last owner read. Two releases within one second differ in nothing else.
    pub last_owner: Option<Owner>,
    /// The lease read.
    pub lease_until: Option<Timestamp>,
    /// The expiry read.
    pub expires_at: Timestamp,
}

impl RecordVersion {
    /// Names everything of `record` that a later write could have changed.
    #[must_use]
    pub const fn of(record: &IdempotencyRecord) -> Self {
        Self {
            status: record.status,
            owner: record.owner,
            last_owner: record.last_owner,
            lease_until: record.lease_until,
            expires_at: record.expires_at,
        }
    }
}

impl Guard {
    /// Whether the guard holds for what is there.
    #[must_use]
    pub fn holds(&self, found: Option<&IdempotencyRecord>) -> bool {
        match (self, found) {
            (Self::Absent, found) => found.is_none(),
            (Self::Unchanged(seen), Some(record)) => *seen == RecordVersion::of(record),
            (Self::OwnedBy(owner), Some(record)) => {
                record.status == Status::InProgress && record.owner == Some(*owner)
            }
            (Self::Unchanged(_) | Self::OwnedBy(_), None) => false,
        }
    }
}

impl Write {
    /// Whether this write leaves the key as it asks, given what is there: its guard holds, or it
    /// deletes what is gone already.
    #[must_use]
    pub fn applies(&self, found: Option<&IdempotencyRecord>) -> bool {
        self.guard.holds(found) || (self.record.is_none() && found.is_none())
    }
}

/// What became of a [`Write`].
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The guard held and the write was applied, now or in an earlier try of the same call; or it
    /// deletes what is gone already. The same write in a *new* call is [`Found`](Self::Found): to
    /// recognise one's own work is the business of [`admission`](crate::admission).
    Written,
    /// The guard did not hold; this is what is there now.
    Found(Option<IdempotencyRecord>),
    /// Whether the write was applied is not known, or it was refused: see
    /// [`StoreError::may_have_applied`].
    Unknown(StoreError),
}

/// Why a store could not do what it was asked.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    in_doubt: bool,
    context: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The classes of [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer, or a server error: the store is out of reach or broken, perhaps briefly.
    Unavailable,
    /// The store asked to slow down, until the deadline.
    Throttled,
    /// Others kept changing the record; each try met a different one.
    Contended,
    /// The caller may not do this: credentials or permissions.
    Denied,
    /// The table, or what the store keeps its records in, is not there or has another shape.
    Misconfigured,
    /// The record is larger than the store can hold.
    TooLarge,
    /// What is stored under the key cannot be read as a record.
    Corrupt,
    /// Anything else the store refused.
    Refused,
}

impl StoreError {
    /// An error of this kind. `context` says what was tried and what to do; it must hold no
    /// payload and no raw key.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<Arc<str>>) -> Self {
        let in_doubt = matches!(kind, StoreErrorKind::Unavailable);
        Self { kind, in_doubt, context: context.into(), source: None }
    }

    /// Says whether the write [may have been applied](Self::may_have_applied) all the same. A store
    /// says so wherever it knows: what was never sent was not applied, whatever the kind; and what
    /// had no answer may have been, whatever a later attempt ended with. Otherwise the kind decides:
    /// [`Unavailable`](StoreErrorKind::Unavailable) leaves it open, the others do not.
    #[must_use]
    pub const fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The class of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later with nothing changed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable | StoreErrorKind::Throttled | StoreErrorKind::Contended
        )
    }

    /// Whether the write may have been applied all the same, or may be yet: its answer was lost.
    /// Whoever claimed has to put the claim back then.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        self.in_doubt
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StoreErrorKind::Unavailable => "store unavailable",
            StoreErrorKind::Throttled => "store throttled",
            StoreErrorKind::Contended => "record contended",
            StoreErrorKind::Denied => "access to the store denied",
            StoreErrorKind::Misconfigured => "store misconfigured",
            StoreErrorKind::TooLarge => "record too large",
            StoreErrorKind::Corrupt => "stored record unreadable",
            StoreErrorKind::Refused => "refused by the store",
        };
        write!(f, "{kind}: {}", self.context)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|e| &**e as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(by: u128) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        record.last_owner = Some(Owner::from_bits(by));
        record.lease_until = Some(Timestamp::from_millis(1));
        record
    }

    #[test]
    fn two_releases_within_a_second_are_told_apart() {
        let guard = Guard::Unchanged(RecordVersion::of(&released(1)));
        assert!(guard.holds(Some(&released(1))));
        assert!(!guard.holds(Some(&released(2))));
    }

    #[test]
    fn owned_by_needs_a_record_in_progress() {
        let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        record.owner = Some(Owner::from_bits(7));
        let guard = Guard::OwnedBy(Owner::from_bits(7));
        assert!(guard.holds(Some(&record)));
        record.status = Status::Completed;
        assert!(!guard.holds(Some(&record)));
        assert!(!guard.holds(None));
    }

    #[test]
    fn an_error_keeps_its_source() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "claiming 3 keys")
            .with_source(std::io::Error::other("reset"));
        assert!(error.is_transient() && error.may_have_applied());
        assert_eq!(error.to_string(), "store unavailable: claiming 3 keys");
        assert_eq!(error.source().unwrap().to_string(), "reset");
    }

    #[test]
    fn a_store_that_knows_says_whether_it_applied() {
        for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Throttled] {
            let error = StoreError::new(kind, "claiming");
            assert_eq!(error.may_have_applied(), kind == StoreErrorKind::Unavailable);
            assert!(error.clone().with_doubt(true).may_have_applied());
            assert!(!error.with_doubt(false).may_have_applied());
        }
    }
}
