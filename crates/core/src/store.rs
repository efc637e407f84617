//! The contract of a store: conditional writes in a batch, and consistent reads.
//!
//! A [`Store`] makes no decisions. Each [`Write`] has the [`Guard`] that must hold for its key and
//! the record to put there. The store answers each with a verdict: [`Written`](Verdict::Written),
//! the record it [`Found`](Verdict::Found) instead, or [`Unknown`](Verdict::Unknown). Time, leases
//! and ownership are decided in [`admission`](crate::admission).
//!
//! To write a store, implement all three methods and run the conformance suite of the `testkit` crate
//! against it. There are no default methods, so that a store does not inherit a safety property by
//! accident. A store whose records people can list also implements [`Browse`](crate::browse::Browse).
//!
//! A store with transactions can commit [`Effects`] of the user together with a
//! write. It says so in its [`Capabilities`].

use std::{error::Error, fmt, sync::Arc};

use crate::{
    clock::{BoxFuture, Timestamp},
    effects::{Effects, EffectsKind, RefusalReason, RefusedEffect},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
};

/// A durable map from [`Key`] to [`IdempotencyRecord`] with conditional writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store of idempotency records",
    label = "not a store",
    note = "a store is `DynamoDbStore`, `PostgresStore`, `RedisStore` or `MemoryStore`; `from_env()` is awaited, and may fail: \
            `DynamoDbStore::from_env().await?`",
    note = "a client of DynamoDB goes into `DynamoDbStore::new(client, \"table\")`"
)]
pub trait Store: Send + Sync + 'static {
    /// The features of the store beyond the rest of this contract. Does no I/O. A store without any of it
    /// returns [`Capabilities::NONE`]; a store around another returns that of the other.
    fn capabilities(&self) -> Capabilities;

    /// Applies each write if its guard holds, each atomically and independently of the others, and
    /// returns one verdict for each write, in the order of `writes`.
    ///
    /// No key occurs twice in one call. The store may repeat a write until `call_deadline`, since
    /// every write carries a token by which the store recognises it; a write whose result is not
    /// known by then is [`Verdict::Unknown`]. A call after its deadline may send nothing. One request without
    /// an answer must not take all of that time: the engine does not repeat the claim of a batch with
    /// one record.
    ///
    /// The [effects](Write::effects) of a write are applied if and only if the write is, in the same
    /// transaction. A store that cannot do that answers such a write with
    /// [`StoreError::without_effects`] and applies nothing: it never drops effects.
    ///
    /// If the store has a server-side expiry, it must not remove a record before its `expires_at`
    /// has passed on the server's clock.
    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>>;

    /// Reads each key with strong consistency. The results are in the order of `keys`.
    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

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

/// The result of a [`Write`].
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a verdict is taken apart at once; a box would be an allocation for each record found"
)]
pub enum Verdict {
    /// The guard held and the write was applied, now or by an earlier request of the same call; or
    /// it deletes a record that is already gone. The same write in a *new* call is
    /// [`Found`](Self::Found): [`admission`](crate::admission) recognises a worker's own writes. With
    /// effects it may also be `Written` again, without being applied again.
    Written,
    /// The guard did not hold; this is the record now stored. Also if an effect would have been refused.
    Found(Option<IdempotencyRecord>),
    /// The guard held, but an effect was refused. Neither the record nor any effect was applied.
    EffectRefused(RefusedEffect),
    /// The write was refused, or it is not known whether it was applied: see
    /// [`StoreError::may_have_applied`].
    Unknown(StoreError),
}

impl From<StoreError> for Verdict {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error)
    }
}

/// A verdict is large, so what can fail with one returns it in a box.
impl From<Box<Verdict>> for Verdict {
    fn from(verdict: Box<Verdict>) -> Self {
        *verdict
    }
}

/// What a store can do beyond the contract that all stores keep: what
/// [`Store::capabilities`] returns. The same at each call.
///
/// ```
/// use lambda_idempotency_core::{
///     memory::{MemoryEffects, MemoryStore}, store::{Capabilities, Store},
/// };
///
/// let memory = MemoryStore::new().capabilities();
/// assert!(memory.effects.is_some_and(|kind| kind.is::<MemoryEffects>()));
/// assert!(!memory.native_expiry);
/// assert_eq!(Capabilities::NONE.effects, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// Which effects the store commits together with a write, in one transaction; `None` if it has no
    /// transactions. Operations that are transactional need it.
    pub effects: Option<EffectsKind>,
    /// Whether the store's server removes expired records by itself, at some time after their expiry.
    /// Otherwise they stay until somebody removes them.
    pub native_expiry: bool,
}

impl Capabilities {
    /// A store that can do nothing beyond the contract.
    pub const NONE: Self = Self { effects: None, native_expiry: false };

    /// The same, with effects of type `T`, which the store commits together with a write.
    #[must_use]
    pub fn with_effects<T: std::any::Any + Send + Sync>(mut self) -> Self {
        self.effects = Some(EffectsKind::of::<T>());
        self
    }

    /// The same, with a server that removes expired records.
    #[must_use]
    pub const fn with_native_expiry(mut self) -> Self {
        self.native_expiry = true;
        self
    }
}

/// One conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The key to write.
    pub key: Key,
    /// The condition on what is stored.
    pub guard: Guard,
    /// The record to store, which replaces every field that the write [changes](Self::extent); `None` deletes the record.
    pub record: Option<IdempotencyRecord>,
    /// The effects to apply together with the record, in one transaction. Only beside a record: a store
    /// refuses a deletion with effects. It may send them again, and applies them at most once.
    pub effects: Option<Effects>,
}

/// The condition of a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The key has no record, not even an expired one.
    Absent,
    /// The record is exactly the one that was read. Some of these writes change only [a part](Write::extent) of it.
    Unchanged(RecordVersion),
    /// The record is in progress and carries this token: it is that of a claim, which has no `last_owner`, `result` or
    /// `outbox`, and which this write settles.
    ///
    /// The new record has the `fingerprint`, `application` and `provenance` of the claim, and no lower counts of failed and lost
    /// attempts. It has the claim's `fence`, or a later one if no handler was called. A store may leave these fields as they are.
    OwnedBy(Owner),
}

/// All that was read of a record and that a later write could have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordVersion {
    /// The status read.
    pub status: Status,
    /// The owner read.
    pub owner: Option<Owner>,
    /// The last owner read. Two releases within the same second differ only in this field.
    pub last_owner: Option<Owner>,
    /// The lease read.
    pub lease_until: Option<Timestamp>,
    /// The expiry read.
    pub expires_at: Timestamp,
}

/// How much of the stored record a [`Write`] changes. The rest stays as it is stored, byte for byte: it may have been
/// written by another version or another library, and be encoded in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// All of it: a claim, or how one ended.
    Record,
    /// A renewal, or a step: `lease_until`, `expires_at` and, if the record has them, `steps`. A `payload` that the record of a
    /// step lacks may stay: it has to go where there is no room for both.
    Lease,
    /// The mark that messages are sent: `outbox`, which is gone.
    Outbox,
}

impl RecordVersion {
    /// The version of this record.
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

    /// A record of this version, without anything that the version does not name.
    #[must_use]
    pub fn to_record(&self) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(self.status, self.expires_at);
        record.expires_at = self.expires_at;
        (record.owner, record.last_owner) = (self.owner, self.last_owner);
        record.lease_until = self.lease_until;
        record
    }
}

impl Guard {
    /// Whether the guard holds for the record that is stored.
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
    /// A write without effects.
    #[must_use]
    pub const fn new(key: Key, guard: Guard, record: Option<IdempotencyRecord>) -> Self {
        Self { key, guard, record, effects: None }
    }

    /// The same write, with these effects.
    #[must_use]
    pub fn with_effects(mut self, effects: Option<Effects>) -> Self {
        self.effects = effects;
        self
    }

    /// Whether this takes a key, or tries to: it leaves a record in progress with another owner than its guard names.
    ///
    /// Any other write ends, renews or releases a claim, or keeps the result of a step with it. A store that lets writes
    /// wait for each other, or that has little room left, must not let those wait for claims: a lease ends meanwhile.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        let Some(IdempotencyRecord { status: Status::InProgress, owner: Some(owner), .. }) =
            &self.record
        else {
            return false;
        };
        let found = match &self.guard {
            Guard::Absent => None,
            Guard::Unchanged(found) => found.owner,
            Guard::OwnedBy(owner) => Some(*owner),
        };
        found != Some(*owner)
    }

    /// How much of the stored record the write changes. Under [`Guard::Unchanged`], a record of the same status and owner
    /// is that of the claim which is there, or of its completion.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let (Guard::Unchanged(seen), Some(record), None) =
            (&self.guard, &self.record, &self.effects)
        else {
            return Extent::Record;
        };
        let wanted = RecordVersion::of(record);
        let RecordVersion { lease_until, expires_at, .. } = wanted;
        match record.status {
            Status::Completed if wanted == *seen && record.outbox.is_none() => Extent::Outbox,
            Status::InProgress
                if seen.owner.is_some()
                    && wanted == (RecordVersion { lease_until, expires_at, ..seen.clone() }) =>
            {
                Extent::Lease
            }
            _ => Extent::Record,
        }
    }

    /// Whether this record is what the write leaves behind, as far as it changes the record.
    #[must_use]
    pub fn leaves(&self, found: &IdempotencyRecord) -> bool {
        let Some(record) = &self.record else { return false };
        match self.extent() {
            Extent::Record => record == found,
            Extent::Lease | Extent::Outbox => {
                RecordVersion::of(record) == RecordVersion::of(found)
                    && (&record.steps, &record.outbox) == (&found.steps, &found.outbox)
            }
        }
    }

    /// Whether the write succeeds on the stored record: its guard holds, or it deletes a record
    /// that is already gone.
    #[must_use]
    pub fn applies(&self, found: Option<&IdempotencyRecord>) -> bool {
        self.guard.holds(found) || (self.record.is_none() && found.is_none())
    }
}

/// Why a call of a store failed.
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
    /// No response, or a server error: the store is unreachable or broken, perhaps briefly.
    Unavailable,
    /// The store throttled every request until the deadline.
    Throttled,
    /// Others were in the way: other workers kept changing the record between the requests, or other calls of this process
    /// had all connections while the server answered. It is no outage, and may succeed later.
    Contended,
    /// The caller lacks credentials or permissions.
    Denied,
    /// The table, or other place of the records, does not exist or has the wrong schema.
    Misconfigured,
    /// The record is larger than the store can hold.
    TooLarge,
    /// The stored item cannot be read as a record.
    Corrupt,
    /// The record can be stored or read, but not its result: what keeps results apart from their records, or
    /// has the keys that they are encrypted with, does not answer, perhaps briefly. A key that is completed
    /// stays completed.
    ResultUnavailable,
    /// The store refused the request for another reason.
    Refused,
}

impl StoreError {
    /// An error of this kind. `context` says what failed and what to do; it must not hold a payload
    /// or a raw key.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<Arc<str>>) -> Self {
        let in_doubt = matches!(kind, StoreErrorKind::Unavailable);
        Self { kind, in_doubt, context: context.into(), source: None }
    }

    /// Sets whether the write [may have been applied](Self::may_have_applied) despite the error. A
    /// store sets it whenever it knows: a request that was never sent was not applied, and a
    /// request without a response may have been applied, whatever a later request returned.
    /// Default: `true` for [`Unavailable`](StoreErrorKind::Unavailable), `false` for other kinds.
    #[must_use]
    pub const fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    /// The error of a store that cannot commit the effects of a write: it has no transactions, the
    /// effects are of another type than the store's, or they are beside a deletion.
    #[must_use]
    pub fn without_effects(write: &Write) -> Self {
        let kind = write.effects.as_ref().map_or("?", |effects| effects.kind().name());
        let context = format!(
            "a write with effects of type `{kind}`, which this store cannot commit; nothing was \
             applied. Use a store that states them in its capabilities"
        );
        Self::new(StoreErrorKind::Refused, context)
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

    /// Whether the same call may succeed later without any change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable
                | StoreErrorKind::Throttled
                | StoreErrorKind::Contended
                | StoreErrorKind::ResultUnavailable
        )
    }

    /// Whether the write may have been applied, or may still be applied, because its response was
    /// lost. A worker whose claim failed in this way has to undo the claim.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        self.in_doubt
    }
}

/// The error where a refused effect is not the failure of a handler.
impl From<RefusedEffect> for StoreError {
    fn from(refused: RefusedEffect) -> Self {
        let kind = match refused.reason() {
            RefusalReason::TooSlow => StoreErrorKind::Unavailable,
            _ => StoreErrorKind::Refused,
        };
        Self::new(kind, refused.to_string()).with_doubt(false)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StoreErrorKind::Unavailable => "store unavailable",
            StoreErrorKind::Throttled => "store throttled",
            StoreErrorKind::Contended => "contended",
            StoreErrorKind::Denied => "access to the store denied",
            StoreErrorKind::Misconfigured => "store misconfigured",
            StoreErrorKind::TooLarge => "record too large",
            StoreErrorKind::Corrupt => "stored record unreadable",
            StoreErrorKind::ResultUnavailable => "result unavailable",
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
    fn only_a_new_owner_makes_a_claim() {
        let held = |owner| {
            let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
            record.owner = Some(Owner::from_bits(owner));
            record
        };
        let unchanged = |record: &IdempotencyRecord| Guard::Unchanged(RecordVersion::of(record));
        let completed = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        let is_claim = |guard, record| Write::new(Key::from_text("a#1"), guard, record).is_claim();
        assert!(is_claim(Guard::Absent, Some(held(1))));
        assert!(is_claim(unchanged(&held(1)), Some(held(2))), "a key is taken over");
        assert!(is_claim(unchanged(&released(1)), Some(held(2))));
        assert!(is_claim(unchanged(&completed), Some(held(2))), "an expired one");
        assert!(!is_claim(unchanged(&held(1)), Some(held(1))), "a renewal, or a step");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), Some(held(1))));
        assert!(!is_claim(unchanged(&held(1)), Some(released(1))));
        assert!(!is_claim(unchanged(&completed), Some(completed.clone())), "its messages are sent");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), Some(completed.clone())));
        assert!(!is_claim(Guard::Absent, Some(completed)), "without claims");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), None));
    }

    #[test]
    fn a_mark_and_a_renewal_change_a_part_of_the_record() {
        type Set = fn(&mut IdempotencyRecord);
        let mut held = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        (held.owner, held.steps) = (Some(Owner::from_bits(1)), Some("{}".into()));
        held.outbox = Some("[]".into());
        let extent = |set: Set, status, owner: u128| {
            let mut seen = held.clone();
            (seen.status, seen.owner) = (status, Some(Owner::from_bits(owner)));
            let mut wanted = IdempotencyRecord { status, ..held.clone() };
            set(&mut wanted);
            let guard = Guard::Unchanged(RecordVersion::of(&seen));
            Write::new(Key::from_text("a#1"), guard, Some(wanted)).extent()
        };
        let renews: Set = |record| record.expires_at = Timestamp::from_secs(99);
        let marks: Set = |record| record.outbox = None;
        let releases: Set = |record| record.last_owner = record.owner.take();
        assert_eq!(extent(renews, Status::InProgress, 1), Extent::Lease);
        assert_eq!(extent(renews, Status::InProgress, 2), Extent::Record, "a takeover");
        assert_eq!(extent(releases, Status::InProgress, 1), Extent::Record);
        assert_eq!(extent(marks, Status::Completed, 1), Extent::Outbox);
        assert_eq!(extent(|_| {}, Status::Completed, 1), Extent::Record, "its messages stay");
        assert_eq!(extent(renews, Status::Completed, 1), Extent::Record);
    }

    /// The rest of the record was never read, or is encoded in another way.
    #[test]
    fn a_write_of_a_part_is_recognised_by_that_part() {
        let mut held = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        held.owner = Some(Owner::from_bits(1));
        let guard = Guard::Unchanged(RecordVersion::of(&held));
        held.lease_until = Some(Timestamp::from_secs(5));
        let renewal = Write::new(Key::from_text("a#1"), guard, Some(held.clone()));
        let other = IdempotencyRecord { error_type: Some("E".into()), ..held.clone() };
        assert!(renewal.leaves(&other));
        assert!(!renewal.leaves(&IdempotencyRecord { steps: Some("{}".into()), ..held.clone() }));
        let claim = Write { guard: Guard::Absent, ..renewal };
        assert!(claim.leaves(&held) && !claim.leaves(&other));
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
    fn in_doubt_overrides_the_default_of_the_kind() {
        for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Throttled] {
            let error = StoreError::new(kind, "claiming");
            assert_eq!(error.may_have_applied(), kind == StoreErrorKind::Unavailable);
            assert!(error.clone().with_doubt(true).may_have_applied());
            assert!(!error.with_doubt(false).may_have_applied());
        }
    }
}
